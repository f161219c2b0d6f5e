package plan

import (
	"context"
	"fmt"

	"thalweg/internal/lang/script"
)

// BatchParts lists for each batch of a node the slices of its table that only it
// reads, as the node was planned; nil where batches read by key, or files: all of
// them read a little of everything.
func (p *Planner) BatchParts(ctx context.Context, n *script.Node, in Inputs) ([][]PartSlice, error) {
	if n.Files != nil || n.Query != nil || in.Reader == nil || in.Reader.Ephemeral() || in.Lookup.Ephemeral() {
		return nil, nil
	}
	works, _, err := p.works(ctx, n, in, &NodePlan{})
	if err != nil {
		return nil, fmt.Errorf("find what the batches of %s read: %w", n.Name, err)
	}
	out := make([][]PartSlice, len(works))
	for i, w := range works {
		switch {
		case w.Cut.Buckets > 0:
			return nil, nil
		case w.Ranged && in.Reader.Scattered():
			return nil, nil
		case w.Ranged:
			out[i] = rowRange(in.Reader, w.FromRow, w.ToRow)
		default:
			out[i] = w.Parts
		}
	}
	return out, nil
}

// SliceBytes is about what a slice of the table weighs in its part.
func (t *Table) SliceBytes(s PartSlice) int64 {
	p := t.Parts[s.Part]
	return p.Bytes * (t.end(s) - s.From) / max(p.Rows, 1)
}
