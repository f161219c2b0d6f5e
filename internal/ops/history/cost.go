package history

import (
	"context"
	"fmt"

	"thalweg/internal/ops/bill"
	"thalweg/internal/ops/price"
	"thalweg/internal/store/state"
)

// Cost is what work has cost, in milliseconds of workers: see state.Spent.
type Cost struct {
	Worked int64 `json:"worked_ms"` // by attempts that succeeded
	Lost   int64 `json:"lost_ms"`   // by attempts that failed, were given back, or were lost with their worker
	// USD is of all that was paid, also while workers waited; a node has its part of what was worked and lost.
	USD     *price.Money `json:"usd,omitempty" doc:"Price in US dollars; none: none is known, or asked for."`
	Partial bool         `json:"usd_partial,omitempty" doc:"Something of it has no price."`
}

// CostOf returns it in that form.
func CostOf(s state.Spent) Cost {
	return Cost{Worked: s.Worked.Milliseconds(), Lost: s.Lost.Milliseconds()}
}

// Price adds the price of a run; nil: none is known.
func (c *Cost) Price(b *bill.Bill) {
	if b != nil && b.Total != nil {
		c.USD, c.Partial = b.Total, !b.Complete()
	}
}

// PriceNode adds a node's part of the price of its run; nil: none is known.
func (c *Cost) PriceNode(b *bill.Bill, node string) {
	if b == nil {
		return
	}
	for _, n := range b.Nodes {
		if n.Node == node {
			var of bill.Sum
			of.AddNode(b, n)
			c.USD, c.Partial = of.Total, of.Total != nil && of.Partial
		}
	}
}

// LastTime is what a complete run took that a later one can be compared with.
type LastTime struct {
	Run     int64 `json:"run"`
	Elapsed int64 `json:"elapsed_ms"`
	Cost    Cost  `json:"cost"`
}

// Last returns the latest complete run before a run for which same is true, among the 500 before it; nil: there is
// none.
func Last(ctx context.Context, store state.Store, run state.RunKey, same func(state.Run) bool) (*LastTime, error) {
	runs, _, err := store.Runs(ctx, run.Workspace, state.Page{From: run.Run, Limit: pageOfSelected, Brief: true})
	if err != nil {
		return nil, fmt.Errorf("list the runs before run %d: %w", run.Run, err)
	}
	for _, r := range runs {
		if r.Run >= run.Run || !Whole(r) || !same(r) {
			continue
		}
		one, err := One(ctx, store, r.RunKey, ListOptions{})
		return &LastTime{Run: r.Run, Elapsed: one.Elapsed, Cost: one.Cost}, err
	}
	return nil, nil
}
