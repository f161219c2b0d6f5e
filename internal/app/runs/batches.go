package runs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/history"
	"thalweg/internal/run/orders"
	"thalweg/internal/store/state"
)

// Batches lists the batches of a node.
func (s *Service) Batches(ctx context.Context, key state.RunKey, node string) ([]view.Batch, error) {
	batches, _, err := s.BatchesPage(ctx, key, node, BatchesPage{})
	return batches, err
}

// BatchesPage selects batches of a node.
type BatchesPage struct {
	From   int          // number of the first one
	Limit  int          // 0: all
	Status state.Status // "": all
}

// batchesReadMax limits the batches that are read for a page of selected ones.
const batchesReadMax = 20_000

// BatchesPage lists batches of a node, and returns the From of the next page; 0: there is none.
func (s *Service) BatchesPage(ctx context.Context, key state.RunKey, node string, p BatchesPage) ([]view.Batch, int,
	error) {
	of := state.NodeKey{RunKey: key, Node: node}
	read := s.Home.State.Batches
	if p.Status == state.Claimed || p.Status == state.Failed { // the store knows where those are
		read = s.Home.State.Unsettled
	}
	out, seen := []view.Batch{}, 0
	for page := (state.Page{From: int64(p.From)}); ; {
		if p.Limit > 0 && p.Status == "" {
			page.Limit = min(p.Limit-len(out)+1, state.PageMax) // one more: whether there is a next page
		}
		some, next, err := read(ctx, of, page)
		if errors.Is(err, state.ErrNotFound) {
			return nil, 0, s.noNode(ctx, key, node)
		}
		if err != nil {
			return nil, 0, err
		}
		for _, b := range some {
			if p.Status == "" || b.Status == p.Status {
				out = append(out, listedBatch(b))
			}
			if p.Limit > 0 && len(out) == p.Limit {
				if last := b.BatchKey.Batch + 1; next > 0 || last <= some[len(some)-1].BatchKey.Batch {
					return out, last, nil
				}
				return out, 0, nil
			}
		}
		seen += len(some)
		if page.From = next; next == 0 || p.Limit > 0 && seen >= batchesReadMax {
			return out, int(next), nil
		}
	}
}

func listedBatch(b state.Batch) view.Batch {
	return view.Batch{Batch: b.BatchKey.Batch, Status: b.Status, Attempt: b.Attempt, Owner: b.Owner,
		RowsIn: b.Stats.RowsIn, RowsOut: b.Stats.RowsOut, BytesIn: b.Stats.BytesIn, BytesOut: b.Stats.BytesOut,
		MS: b.Stats.Elapsed.Milliseconds(), Took: b.Stats.Elapsed, Failure: b.Failure}
}

// Timeline says when batches of a node were worked on: those from number from to the one before to, 0 being all.
func (s *Service) Timeline(ctx context.Context, key state.RunKey, node string, from, to int) (view.Timeline, error) {
	return history.ReadTimeline(ctx, s.Home.State, state.NodeKey{RunKey: key, Node: node},
		history.TimelineOptions{From: from, To: to, Now: time.Now()})
}

// Attempts lists the tries at the batches of a node, and returns the from of the next page; 0: there is none.
func (s *Service) Attempts(ctx context.Context, key state.RunKey, node string, from int64, limit int) (
	[]view.ListedTry, int64, error) {
	return history.ListAttempts(ctx, s.Home.State, state.NodeKey{RunKey: key, Node: node},
		state.Page{From: from, Limit: limit}, time.Now())
}

// Alike lists the batches of a run that have failed for the reason that one has: those of each node in ranges.
func (s *Service) Alike(ctx context.Context, key state.BatchKey) (out []orders.Batches, err error) {
	like, _, err := s.Home.State.Batch(ctx, key)
	switch {
	case err != nil && !errors.Is(err, state.ErrNotFound):
		return nil, fmt.Errorf("read batch %d of %s: %w", key.Batch, key.Node, err)
	case err != nil, like.Status != state.Failed, like.Failure == nil:
		return nil, &fault.Error{Kind: fault.Script, Code: fault.Conflict,
			Message: fmt.Sprintf("batch %d of node %s of run %d has not failed", key.Batch, key.Node, key.Run)}
	}
	nodes, err := s.Home.State.Nodes(ctx, key.RunKey)
	if err != nil {
		return nil, fmt.Errorf("read the nodes of run %d: %w", key.Run, err)
	}
	reason := like.Failure.Reason()
	for _, n := range nodes {
		if n.ReusedFrom != nil {
			continue
		}
		unsettled, err := state.All(ctx, s.Home.State.Unsettled, n.NodeKey)
		if err != nil {
			return nil, fmt.Errorf("read the batches of %s: %w", n.Name, err)
		}
		for _, b := range unsettled {
			if b.Status != state.Failed || b.Failure == nil || b.Failure.Reason() != reason {
				continue
			}
			number := b.BatchKey.Batch
			if last := len(out) - 1; last >= 0 && out[last].Node == n.Name && out[last].To == number-1 {
				out[last].To = number
			} else {
				out = append(out, orders.Batches{Node: n.Name, From: number, To: number})
			}
		}
	}
	return out, nil
}
