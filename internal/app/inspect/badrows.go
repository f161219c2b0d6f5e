package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"thalweg/internal/app/view"
	"thalweg/internal/base/action"
	"thalweg/internal/base/fault"
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

// Side returns the name of a side table of a node, and whether the node may have rows there.
func (s *Service) Side(ctx context.Context, key state.RunKey, node, side string) (table string, has bool, err error) {
	n, err := s.Home.State.Node(ctx, state.NodeKey{RunKey: key, Node: node})
	if errors.Is(err, state.ErrNotFound) {
		return "", false, &fault.Error{Kind: fault.Script, Code: fault.NotFound,
			Message: fmt.Sprintf("run %d has no node %s", key.Run, node), Hint: "{{do nodes}} lists them", Err: err}
	}
	if err != nil {
		return "", false, fmt.Errorf("read node %s of run %d: %w", node, key.Run, err)
	}
	table = cmp.Or(n.Table, n.Name) + plan.SideMark + side
	if n.Plan == nil {
		return table, false, nil
	}
	np, err := plan.DecodeNodePlan(n.Plan)
	_, has = np.Sides[side]
	return table, has, err
}

// Columns lists the columns of a table of a run, side tables among them.
func (s *Service) Columns(ctx context.Context, key state.RunKey, table string) (view.TableColumns, error) {
	t, err := TableOf(ctx, s.Home, key, table)
	if err != nil {
		return view.TableColumns{}, err
	}
	out := view.TableColumns{Table: t.Name, Run: t.Run.Run, Node: t.Writer, Columns: []view.TableColumn{}}
	for _, c := range t.Layout.Columns {
		out.Columns = append(out.Columns, view.TableColumn{Name: c.Name, Type: c.Type, Nullable: c.Nullable})
	}
	return out, nil
}

// CountedBadRows returns the counters of a node with bad rows; nil without any: see BadRowsOf.
func CountedBadRows(rows int64) map[string]int64 {
	if rows == 0 {
		return nil
	}
	return map[string]int64{plan.CounterBadRows: rows}
}
