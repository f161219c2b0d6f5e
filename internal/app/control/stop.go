package control

import (
	"context"
	"time"

	"thalweg/internal/app/instance"
	"thalweg/internal/run/orders"
	"thalweg/internal/store/state"
)

const (
	// StopBound is the longest time that a stop waits for the processes at work. They see the order within
	// 300 ms, and have a second to end what they are doing.
	StopBound = 2 * time.Second
	// stopLook is the time between two checks whether they have ended.
	stopLook = 10 * time.Millisecond
)

// Stopped describes the result of a stop.
type Stopped struct {
	Before state.Status  // of the run
	After  state.Status  // of the run
	AtWork bool          // a process has not ended its work on the run yet; it cannot commit anything
	Took   time.Duration // until all had ended, or StopBound was over
}

// Stop stops a run, and waits until the processes at work on it have ended, StopBound at
// most. A run that is over already is left as it is.
func Stop(ctx context.Context, home *instance.Instance, key state.RunKey, by state.Mark) (out Stopped, err error) {
	begun := time.Now()
	if out.Before, err = orders.Stop(ctx, home.Control(), key, by); err != nil {
		return out, err
	}
	if out.After = out.Before; out.Before.Terminal() {
		return out, nil
	}
	out.After = state.Stopped
	home.Ordered(ctx, key)
	look := time.NewTicker(stopLook)
	defer look.Stop()
	for out.AtWork = home.AtWork(key); out.AtWork && time.Since(begun) < StopBound; out.AtWork = home.AtWork(key) {
		select {
		case <-ctx.Done():
			return out, nil // the order stands
		case <-look.C:
		}
	}
	out.Took = time.Since(begun)
	return out, nil
}

// Pause pauses a run: claimed batches are finished, no others are begun. It returns
// the run's status and the number of claimed batches.
func Pause(ctx context.Context, home *instance.Instance, key state.RunKey, by state.Mark) (status state.Status,
	inFlight int,
	err error) {
	if status, err = orders.Pause(ctx, home.Control(), key, by); err != nil || status != state.Paused {
		return status, 0, err
	}
	home.Ordered(ctx, key)
	if !home.AtWork(key) {
		return status, 0, nil
	}
	batches, err := state.OfNodes(ctx, home.State, key, home.State.Unsettled)
	for _, b := range batches {
		if b.Status == state.Claimed {
			inFlight++
		}
	}
	return status, inFlight, err
}
