package control

import (
	"context"
	"fmt"

	"thalweg/internal/app/instance"
	"thalweg/internal/run/orders"
	"thalweg/internal/store/state"
)

// InvalidateOptions say what is to be declared invalid.
type InvalidateOptions struct {
	Nodes  []string // none: all of the run
	By     state.Mark
	DryRun bool // only return what would be invalid
}

// Invalidated lists what is invalid, and what was made from it.
type Invalidated struct {
	orders.Invalidation
	Files []state.File     // that the invalid nodes have written; they stay
	Made  []orders.Touched // what other runs have made from the tables
}

// Invalidate declares tables invalid. No run reads them any more, and batches that are
// reading them cannot commit. Results that other runs made from them before stay, and
// are listed in Made.
func Invalidate(ctx context.Context, home *instance.Instance, key state.RunKey,
	opts InvalidateOptions) (out Invalidated,
	err error) {
	if opts.DryRun {
		run, err := home.State.Run(ctx, key)
		if err != nil {
			return out, fmt.Errorf("read run %d: %w", key.Run, err)
		}
		out.Invalidation, err = orders.Invalidates(ctx, home.State, run, opts.Nodes)
		if err != nil {
			return out, err
		}
	} else if out.Invalidation, err = orders.Invalidate(ctx, home.Control(), key, opts.Nodes,
		opts.By); err != nil {
		return out, err
	}
	for _, n := range out.Nodes {
		files, err := state.All(ctx, home.State.Files, state.NodeKey{RunKey: key, Node: n})
		if err != nil {
			return out, fmt.Errorf("read the files of node %s: %w", n, err)
		}
		out.Files = append(out.Files, files...)
	}
	// Readers are refused from now on, so the list is complete.
	out.Made, err = orders.Reaches(ctx, home.State, key, out.Nodes)
	return out, err
}
