package local

import (
	"context"
	"fmt"

	"thalweg/internal/base/fault"
	"thalweg/internal/run/orders"
	"thalweg/internal/store/state"
)

// DropOptions say how runs are dropped.
type DropOptions struct {
	By     state.Mark
	DryRun bool // only find out what that means
}

// Drop drops runs: nobody reads, continues or lists them any more. What they
// have written stays where it is.
func Drop(ctx context.Context, home *Instance, keys []state.RunKey, opts DropOptions) ([]orders.Drop, error) {
	if opts.DryRun {
		return orders.Drops(ctx, home.State, keys)
	}
	return orders.DropRuns(ctx, home.control(), keys, opts.By)
}

// wasDropped refuses to go on with a run.
func wasDropped(run state.Run) error {
	return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("run %d was dropped by %s: %s", run.Run,
		run.Dropped.Actor, run.Dropped.Reason),
		Hint: "a dropped run does not go on: start a new one"}
}
