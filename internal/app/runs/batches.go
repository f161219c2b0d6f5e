package runs

import (
	"context"
	"errors"
	"time"

	"thalweg/internal/app/view"
	"thalweg/internal/ops/history"
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
