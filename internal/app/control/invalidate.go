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
	DryRun bool // only find out what that means
}

// Invalidated lists the batches and tables that are invalid, and what was made of them.
type Invalidated struct {
	orders.Invalidation
	Files []state.File     // that the run has written of it; they stay
	Made  []orders.Touched // by other runs
}

// Invalidate declares tables invalid: from then on no run reads them, nor
// commits what it was reading of them. What other runs have read before stays
// as it is, and is named.
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
	// Who reads now is refused: what is found is all that there will be.
	out.Made, err = orders.Reaches(ctx, home.State, key, out.Nodes)
	return out, err
}
