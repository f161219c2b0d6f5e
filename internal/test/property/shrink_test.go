package property

import (
	"context"
	"slices"
	"time"
)

// shrinkTime limits the time for which a failing script is made smaller.
const shrinkTime = 30 * time.Second

// shrink leaves out nodes, conditions and rows as long as the script still
// fails in the variants that showed it, and describes what is left.
func (s *script) shrink(ctx context.Context, bad *failure) string {
	if len(bad.variants) == 0 {
		return ""
	}
	end := time.Now().Add(shrinkTime)
	smaller := func(to *script) bool {
		if time.Now().After(end) || ctx.Err() != nil || len(to.outputs()) == 0 || refusedBy(func() { to.tables() }) {
			return false
		}
		if again := to.fails(ctx, bad.variants); again != nil {
			bad, s = again, to
			return true
		}
		return false
	}
	for changed := true; changed && time.Now().Before(end); {
		changed = false
		for i := len(s.nodes) - 1; i >= 0; i-- {
			if i < len(s.nodes) && s.nodes[i].table() == nil {
				changed = smaller(s.without(s.nodes[i])) || changed
			}
		}
		for i := range s.sources {
			changed = s.dropRows(i, &s, smaller) || changed
		}
	}
	return s.show(bad)
}

// without is the script without an output and all that only it needed.
func (s *script) without(gone node) *script {
	out := &script{seed: s.seed}
	needed := map[string]bool{}
	for _, n := range slices.Backward(s.nodes) {
		if n == gone || n.table() != nil && !needed[n.table().name] {
			continue
		}
		for _, table := range n.reads() {
			needed[table] = true
		}
		if l, ok := n.(*load); ok {
			needed["source "+l.source] = true
		}
		out.nodes = append(out.nodes, n)
	}
	slices.Reverse(out.nodes)
	for _, src := range s.sources {
		if needed["source "+src.name] {
			out.sources = append(out.sources, src)
		}
	}
	return out
}

// dropRows leaves out ever smaller runs of rows of a source; *now is the
// smallest script so far.
func (s *script) dropRows(at int, now **script, smaller func(*script) bool) bool {
	changed := false
	for size := len((*now).sources[at].rows); size > 0; size /= 2 {
		for from := 0; from+size <= len((*now).sources[at].rows); {
			src := *(*now).sources[at]
			src.rows = slices.Delete(slices.Clone(src.rows), from, from+size)
			to := &script{seed: s.seed, nodes: (*now).nodes, sources: slices.Clone((*now).sources)}
			to.sources[at] = &src
			if smaller(to) {
				changed = true
			} else {
				from += size
			}
		}
	}
	return changed
}
