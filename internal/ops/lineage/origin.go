package lineage

import (
	"context"
	"errors"
	"maps"
	"slices"

	"thalweg/internal/lang/script"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/run/plan"
)

// RecordOf finds the record of an input file that a row of tables was computed from,
// whatever was looked up for it: nil if there is no such record, as for a row of a
// query, or of a function over groups.
func RecordOf(ctx context.Context, cfg Config, row pipeline.ReadRow) (_ *Row, err error) {
	cfg.Reach = append(slices.Clone(cfg.Reach), slices.Collect(maps.Values(row.Paths))...)
	t, err := open(ctx, cfg, Options{Limit: 1, Sample: 1})
	if err != nil {
		return nil, err
	}
	t.single = true
	defer func() { err = errors.Join(err, t.close()) }()
	for _, m := range row.Table.Members() {
		start, err := t.visit(ctx, nodeOf(m))
		if err != nil {
			return nil, err
		}
		if start.inner {
			return nil, nil
		}
	}
	if err := t.step(ctx, nil, plan.TraceStep{Table: row.Table, Role: plan.RoleRow, SQL: row.SQL}); err != nil {
		return nil, err
	}
	for _, n := range slices.Backward(t.order) {
		if err := t.follow(ctx, n); err != nil {
			return nil, err
		}
	}
	return t.tree.record(), nil
}

// record goes from the only root down to a record of a file, as long as each row is
// made of one.
func (t *Tree) record() *Row {
	if len(t.Roots) != 1 {
		return nil
	}
	row := t.Rows[t.Roots[0]]
	for row.File == "" {
		if row.Note != "" || len(row.From) != 1 || row.From[0].Count != 1 {
			return nil
		}
		row = t.Rows[row.From[0].Sample[0]]
	}
	return row
}

// singly are the steps from rows of a node to the one row that each is computed from.
// None: there is no such row, or finding it would call functions of the user's again.
func (n *traced) singly(rows string) []plan.TraceStep {
	switch {
	case n.Node.Query != nil, n.Node.PyTable != nil, n.In.Reader == nil:
		return nil
	case n.Node.Lookup != nil:
		return plan.FirstStep(plan.RoleLeft, n.In, rows)
	case n.Node.Type == script.Distinct: // what was kept is the first of the same key
		return plan.FirstStep(plan.RoleSame, n.In, rows)
	}
	return plan.FirstStep(plan.RoleRow, n.In, rows)
}

// callsPython reports whether the node's rows cannot be told without its formulas.
func (n *traced) callsPython() bool {
	return n.Node.PyTable != nil || n.Node.PyCalc != nil && (n.Node.Having() != nil || n.Node.BadRows != nil)
}
