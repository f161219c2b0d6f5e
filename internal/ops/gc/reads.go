package gc

import (
	"context"
	"fmt"

	"thalweg/internal/run/gate"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// reads lists the nodes that plans of runs which are not dropped name.
type reads struct {
	foreign map[state.NodeKey]bool // nodes of other runs than the one that reads; no Node: all of the run's
	// nodes, also of the same run, that runs which are not over were planned to read; likewise
	living map[state.NodeKey]bool
	runs   map[int64]map[int64]bool // which run reads which others
	open   map[int64]bool           // runs that are not over
}

// holds reports whether a node of a dropped run is read by others.
func (r reads) holds(n state.NodeKey) bool {
	return r.foreign[n] || r.foreign[state.NodeKey{RunKey: n.RunKey}]
}

// busy reports whether a run that is not over was planned to read a node's table.
func (r reads) busy(n state.NodeKey) bool {
	return r.living[n] || r.living[state.NodeKey{RunKey: n.RunKey}]
}

// scan reads the plans of all runs that are not dropped. Drops are carried out
// by then: who takes something over from such a run and is not seen here sees that.
func (c *collector) scan(ctx context.Context) error {
	var err error
	c.reads, err = c.readPlans(ctx)
	return err
}

func (c *collector) readPlans(ctx context.Context) (reads, error) {
	r := reads{foreign: map[state.NodeKey]bool{}, living: map[state.NodeKey]bool{}, runs: map[int64]map[int64]bool{},
		open: map[int64]bool{}}
	return r, c.eachRun(ctx, func(run state.Run) error {
		if c.dropped[run.Run] {
			return nil
		}
		live := !run.Status.Terminal() || run.GoesOn()
		r.open[run.Run] = live
		if run.Status != state.Complete || live { // it may go on, and read what it was told to
			for _, n := range run.Sources {
				r.of(run.RunKey, state.NodeKey{RunKey: state.RunKey{Workspace: run.Workspace, Run: n}}, live)
			}
		}
		nodes, err := c.Store.Nodes(ctx, run.RunKey)
		if err != nil {
			return fmt.Errorf("read the nodes of run %d: %w", run.Run, err)
		}
		for _, n := range nodes {
			if gate.Is(n.NodeSpec) {
				if err := r.shown(n, live); err != nil {
					return err
				}
				continue
			}
			if n.PlanDigest == "" {
				continue
			}
			if err := c.readPlan(ctx, r, n.NodeKey, live); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *collector) readPlan(ctx context.Context, r reads, key state.NodeKey, live bool) error {
	n, err := c.Store.Node(ctx, key)
	if err != nil {
		return fmt.Errorf("read node %s of run %d: %w", key.Node, key.Run, err)
	}
	if n.ReusedFrom != nil {
		r.of(n.RunKey, *n.ReusedFrom, live)
	}
	for _, in := range n.Inputs {
		r.of(n.RunKey, state.NodeKey{RunKey: n.RunKey, Node: in}, live)
	}
	if n.PlanDigest == "" { // it is planned again
		return nil
	}
	np, err := plan.DecodeNodePlan(n.Plan)
	if err != nil {
		return fmt.Errorf("node %s of run %d: %w", n.Name, n.Run, err)
	}
	for _, of := range np.Sources {
		r.of(n.RunKey, of.NodeKey, live)
	}
	return nil
}

// shown adds what a gate that is not passed yet lets people look at: what is
// behind it will read that.
func (r reads) shown(n state.Node, live bool) error {
	if !live || len(n.Gate) == 0 {
		return nil
	}
	rec, err := gate.Decode(n.Gate)
	if err != nil {
		return fmt.Errorf("gate %s of run %d: %w", gate.NameOf(n.Name), n.Run, err)
	}
	for _, of := range rec.Reads(n.RunKey) {
		r.of(n.RunKey, of, live)
	}
	return nil
}

// of notes that a run reads a node.
func (r reads) of(by state.RunKey, of state.NodeKey, live bool) {
	if live {
		r.living[of] = true
	}
	if of.RunKey == by {
		return
	}
	r.foreign[of] = true
	if r.runs[by.Run] == nil {
		r.runs[by.Run] = map[int64]bool{}
	}
	r.runs[by.Run][of.Run] = true
}
