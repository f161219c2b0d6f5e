package lineage

import (
	"context"
	"errors"
	"maps"
	"slices"

	"thalweg/internal/pipeline"
	"thalweg/internal/plan"
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
		if row.Note != "" || len(row.From) != 1 || row.From[0].Count != 1 && row.From[0].Role != plan.RoleSame {
			return nil
		}
		row = t.Rows[row.From[0].Sample[0]]
	}
	return row
}

// singly are the steps to the one row that a row is computed from.
func singly(steps []plan.TraceStep) []plan.TraceStep {
	return slices.DeleteFunc(steps, func(s plan.TraceStep) bool { return s.Role == plan.RoleRight || s.Role == plan.RoleGroup })
}
