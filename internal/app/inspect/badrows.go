package inspect

import (
	"cmp"
	"context"

	"thalweg/internal/base/action"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// BadRows counts the rows that a node has put aside, and holds the command that shows them.
type BadRows struct {
	Node string
	Rows int64
	Show action.Action
}

// ComputedIn says of the ephemeral ones among nodes inside which node each is
// computed. What cannot be read is not shown.
func ComputedIn(ctx context.Context, store state.Store, nodes []state.Node) map[string]string {
	in := map[string]string{}
	for _, n := range nodes {
		if n.Table == "" || n.PlanDigest == "" || n.BatchesTotal > 0 {
			continue
		}
		full, err := store.Node(ctx, n.NodeKey)
		if err != nil {
			continue
		}
		if np, err := plan.DecodeNodePlan(full.Plan); err == nil && np.ComputedIn != "" {
			in[n.Name] = np.ComputedIn
		}
	}
	return in
}

// ListBadRows lists the nodes with bad rows, given what their batches measured.
func ListBadRows(nodes []state.Node, stats map[string]state.Stats) []BadRows {
	var out []BadRows
	for _, n := range nodes {
		rows := BadRowsOf(stats[n.Name])
		if rows == 0 {
			continue
		}
		out = append(out, BadRows{Node: n.Name, Rows: rows, Show: plan.ShowBadRows(cmp.Or(n.Table, n.Name), n.RunKey)})
	}
	return out
}

// BadRowsOf counts a node's bad rows.
func BadRowsOf(s state.Stats) int64 { return s.Counters[plan.CounterBadRows] }

// CountedBadRows returns the counters of a node with bad rows; nil without any: see BadRowsOf.
func CountedBadRows(rows int64) map[string]int64 {
	if rows == 0 {
		return nil
	}
	return map[string]int64{plan.CounterBadRows: rows}
}
