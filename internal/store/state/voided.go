package state

import (
	"context"
	"fmt"
	"slices"
)

// Voided says who has made the table of a node unreadable, when, and why: by
// invalidating it or its run, or by dropping the run. false: nobody has.
func Voided(ctx context.Context, s Store, n Node) (Mark, bool, error) {
	if n.Status != Invalidated {
		return Mark{}, false, nil
	}
	run, err := s.Run(ctx, n.RunKey)
	switch {
	case err != nil:
		return Mark{}, false, fmt.Errorf("read run %d: %w", n.Run, err)
	case run.Dropped != nil:
		return *run.Dropped, true, nil
	case run.Invalidated != nil:
		return *run.Invalidated, true, nil
	}
	// The order is the latest that the node has heard; the run's events keep them all.
	for after := int64(0); ; {
		events, err := s.Events(ctx, NodeKey{RunKey: n.RunKey}, after, PageMax)
		if err != nil {
			return Mark{}, false, fmt.Errorf("read the events of run %d: %w", n.Run, err)
		}
		i := slices.IndexFunc(events, func(e Event) bool {
			return e.Kind == OrderBegun && e.Epoch == n.Epoch &&
				e.Command != nil
		})
		if i >= 0 {
			return events[i].Command.Mark, true, nil
		}
		if len(events) == 0 {
			return Mark{}, true, nil
		}
		after = events[len(events)-1].Seq
	}
}
