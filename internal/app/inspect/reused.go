package inspect

import (
	"context"
	"fmt"

	"thalweg/internal/store/state"
)

// A node that has taken its rows over has no results of its own: what is shown
// of it is what the node has that computed them.

// Shown gives nodes with the figures of those that computed their rows. What
// cannot be read is not shown.
func Shown(ctx context.Context, store state.Store, nodes []state.Node) []state.Node {
	out := make([]state.Node, len(nodes))
	for i, n := range nodes {
		if out[i] = n; n.ReusedFrom == nil {
			continue
		}
		if origin, err := store.Node(ctx, *n.ReusedFrom); err == nil && origin.InputDigest == n.InputDigest {
			out[i].RowsIn, out[i].RowsOut, out[i].BytesIn, out[i].BytesOut = origin.RowsIn,
				origin.RowsOut, origin.BytesIn, origin.BytesOut
		}
	}
	return out
}

// Checks lists what the checks of nodes found, in the nodes' order.
func Checks(ctx context.Context, store state.Store, nodes []state.Node) ([]state.CheckResult, error) {
	return results(ctx, nodes, store.Checks, func(r *state.CheckResult, key state.NodeKey) { r.NodeKey = key })
}

// Files lists the output files of nodes, likewise.
func Files(ctx context.Context, store state.Store, nodes []state.Node) ([]state.File, error) {
	return results(ctx, nodes, store.Files, func(f *state.File, key state.NodeKey) { f.NodeKey = key })
}

func results[T any](ctx context.Context, nodes []state.Node, read func(context.Context, state.NodeKey, state.Page) ([]T,
	int64, error), name func(*T, state.NodeKey)) ([]T, error) {
	var all []T
	for _, n := range nodes {
		some, err := state.All(ctx, read, HolderOf(n))
		if err != nil {
			return nil, fmt.Errorf("read the results of %s in run %d: %w", n.Name, n.Run, err)
		}
		for i := range some {
			name(&some[i], n.NodeKey)
		}
		all = append(all, some...)
	}
	return all, nil
}

// HolderOf names the node that has a node's results.
func HolderOf(n state.Node) state.NodeKey {
	if n.ReusedFrom != nil {
		return *n.ReusedFrom
	}
	return n.NodeKey
}
