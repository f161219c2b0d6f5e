package control

import (
	"context"

	"thalweg/internal/app/instance"
	"thalweg/internal/run/orders"
	"thalweg/internal/store/state"
)

// DropOptions say how runs are dropped.
type DropOptions struct {
	By     state.Mark
	DryRun bool // only return what would be dropped
}

// Drop drops runs: nobody reads, continues or lists them any more. Their output files
// stay where they are.
func Drop(ctx context.Context, home *instance.Instance, keys []state.RunKey, opts DropOptions) ([]orders.Drop, error) {
	if opts.DryRun {
		return orders.Drops(ctx, home.State, keys)
	}
	return orders.DropRuns(ctx, home.Control(), keys, opts.By)
}
