package state

import (
	"context"
	"fmt"
	"time"
)

// Worked returns the time for which a node has been worked on until now, from its first claim to its end. It
// leaves out the times between an end or standstill and the order that let the node go on. What was done
// again counts each time.
func Worked(ctx context.Context, s Store, run Run, n Node, now time.Time) (time.Duration, error) {
	switch {
	case n.Started.IsZero():
		return 0, nil
	case !n.Finished.IsZero():
		now = n.Finished
	case run.Status != Running && !run.Finished.IsZero(): // it has ended under the node
		now = run.Finished
	}
	if n.Epoch == 0 {
		return max(now.Sub(n.Started), 0), nil
	}
	var sum time.Duration
	var since time.Time // zero: nobody works on it
	for after := int64(0); ; {
		events, err := s.Events(ctx, n.NodeKey, after, PageMax)
		if err != nil {
			return 0, fmt.Errorf("read the events of node %s of run %d: %w", n.Name, n.Run, err)
		}
		for _, e := range events {
			after = e.Seq
			switch {
			case e.Kind == BatchClaimed && since.IsZero():
				since = e.Time
			case e.Kind != NodeMoved && e.Kind != NodeHeard || e.Status == Running || since.IsZero():
			default:
				sum, since = sum+max(e.Time.Sub(since), 0), time.Time{}
			}
		}
		if len(events) < PageMax {
			break
		}
	}
	if !since.IsZero() {
		sum += max(now.Sub(since), 0)
	}
	return sum, nil
}
