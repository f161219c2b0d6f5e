package state

import (
	"context"
	"fmt"
)

// All reads a list to its end, page by page.
func All[K, T any](ctx context.Context, read func(context.Context, K, Page) ([]T, int64, error), key K) ([]T, error) {
	var all []T
	for page := (Page{}); ; {
		some, next, err := read(ctx, key, page)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		if next == 0 {
			return all, nil
		}
		page.From = next
	}
}

// OfNodes reads a list of each node of a run, in the nodes' order.
func OfNodes[T any](ctx context.Context, s Store, key RunKey, read func(context.Context, NodeKey, Page) ([]T, int64,
	error)) ([]T, error) {
	nodes, err := s.Nodes(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read the nodes of run %d: %w", key.Run, err)
	}
	var all []T
	for _, n := range nodes {
		some, err := All(ctx, read, n.NodeKey)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// Manifest lists the committed parts of a table in order of batch and seq,
// those of its side tables not among them.
func Manifest(ctx context.Context, s Store, key NodeKey) ([]Part, error) {
	return partsOf(ctx, s, key, func(p Part) bool { return p.Side == "" })
}

// SideParts lists the parts of a node's side tables, also those of failed
// batches, in order of batch and seq.
func SideParts(ctx context.Context, s Store, key NodeKey) ([]Part, error) {
	return partsOf(ctx, s, key, func(p Part) bool { return p.Side != "" })
}

func partsOf(ctx context.Context, s Store, key NodeKey, wanted func(Part) bool) ([]Part, error) {
	all, err := All(ctx, s.Parts, key)
	if err != nil {
		return nil, err
	}
	out := all[:0]
	for _, p := range all {
		if wanted(p) {
			out = append(out, p)
		}
	}
	return out, nil
}
