package runner

import (
	"context"
	"fmt"
	"time"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runtime"
	"thalweg/internal/run/gate"
	"thalweg/internal/store/state"
)

// askedOf lists the gates that wait among a run's nodes.
func askedOf(nodes []state.Node) []gate.Asked {
	var out []gate.Asked
	for _, n := range nodes {
		if n.Status != state.Waiting {
			continue
		}
		if r, err := gate.Decode(n.Gate); err == nil { // what cannot be read is not shown
			out = append(out, gate.Asked{Run: n.Run, Node: n.Name, Record: r})
		}
	}
	return out
}

// decisionLook is the time between two looks at a run that waits for people.
const decisionLook = 300 * time.Millisecond

// awaitDecision waits until there is something to do in a run that waits:
// somebody has ordered something, or the time to decide is over. It holds nothing.
func awaitDecision(ctx context.Context, home *instance.Instance, sum Summary) error {
	until := firstEnd(sum.Asked)
	tick := time.NewTicker(decisionLook)
	defer tick.Stop()
	for {
		nodes, err := home.State.Nodes(ctx, sum.Key)
		switch {
		case ctx.Err() != nil:
			return nil // whoever waits has had enough
		case err != nil:
			return fmt.Errorf("look whether run %d still waits: %w", sum.Key.Run, err)
		case !state.Waits(nodes) || !until.IsZero() && !time.Now().Before(until):
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// wholePinned reports whether a run can go on from what was pinned of it, whatever
// its script has become meanwhile.
func wholePinned(ctx context.Context, home *instance.Instance, key state.RunKey) (bool, error) {
	run, err := home.State.Run(ctx, key)
	if err != nil {
		return false, fmt.Errorf("read run %d: %w", key.Run, err)
	}
	pins, err := runtime.PinnedOf(ctx, home.State, run)
	return pins != nil, err
}

// firstEnd returns the time at which the first of some gates is rejected; zero: none is by itself.
func firstEnd(asked []gate.Asked) (until time.Time) {
	for _, a := range asked {
		if end := a.Record.Until; !end.IsZero() && (until.IsZero() || end.Before(until)) {
			until = end
		}
	}
	return until
}
