package control

import (
	"context"
	"time"

	"thalweg/internal/app/instance"
	"thalweg/internal/run/orders"
	"thalweg/internal/store/state"
)

// What people order of runs that this or other processes work on.

const (
	// StopBound is the longest time that a stop waits for the processes at work. They see it within
	// 300 ms, and have a second for what is in flight.
	StopBound = 2 * time.Second
	// stopLook is the time between two looks whether they have ended.
	stopLook = 10 * time.Millisecond
)

// Stopped describes the result of a stop.
type Stopped struct {
	Before state.Status  // of the run
	After  state.Status  // of the run
	AtWork bool          // a process has not ended its work on the run yet; what it does goes nowhere
	Took   time.Duration // until all had
}

// Stop ends a run in whatever processes are at work on it, and waits for them
// for StopBound at most. A run that is over already is left as it is.
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

// Pause lets a run finish the batches that are at work, and begin no others. It
// answers with the run's status, and how many those are.
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
