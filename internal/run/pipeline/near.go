package pipeline

import (
	"context"

	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// Holder knows which parts this process has at hand; see parts/cache.
type Holder interface{ Holds(key string) bool }

// Near tells which of a node's batches read mostly parts that are at hand here;
// nil if parts always are, or if all batches read a little of everything.
func (p *Pipeline) Near(ctx context.Context, node state.Node) (func(batch int) bool, error) {
	held, ok := p.cfg.Parts.(Holder)
	if !ok {
		return nil, nil
	}
	p, err := p.versionFor(ctx, node.Name, node.Epoch)
	if err != nil {
		return nil, err
	}
	n := p.cfg.Script.Node(node.Name)
	if n == nil || n.Reader == nil {
		return nil, nil
	}
	in, err := p.inputs(ctx, n, node)
	if err != nil {
		return nil, err
	}
	batches, err := p.planner.BatchParts(ctx, n, in)
	if err != nil || batches == nil {
		return nil, err
	}
	return func(batch int) bool { return batch < len(batches) && mostlyHeld(held, in.Reader, batches[batch]) }, nil
}

// mostlyHeld reports whether at least half of what slices weigh is at hand.
func mostlyHeld(held Holder, t *plan.Table, slices []plan.PartSlice) bool {
	var at, all int64
	for _, s := range slices {
		bytes := t.SliceBytes(s)
		all += bytes
		if held.Holds(t.Parts[s.Part].Key) {
			at += bytes
		}
	}
	return all > 0 && 2*at >= all
}
