package plan

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
)

// leftTable holds the left rows of a lookup that failed.
const leftTable = "__left"

// explainLookup finds the right row at which the filter failed, else the left
// row whose lookup does: it does the lookup again for half of the left rows,
// and half of those, until one is left.
func explainLookup(n *script.Node, in Inputs, plan NodePlan, w Work, paths Paths) explanation {
	return first(func(ctx context.Context, db engine.Querier, cause error) error {
		return blameLookup(ctx, db, n, in, plan, w, paths, cause)
	}, explainScript(n))
}

// blameLookup is explainLookup where it finds a row; nil if it does not.
func blameLookup(ctx context.Context, db engine.Querier, n *script.Node, in Inputs, plan NodePlan, w Work, paths Paths,
	cause error) error {
	x := lookupFailure{ctx: ctx, db: db, w: w, joiner: newJoiner(n, in, plan, w, paths)}
	if found := x.blameFilter(cause); found != nil {
		return found
	}
	return x.blameLeft()
}

// lookupFailure holds the inputs for repeating a lookup that failed.
type lookupFailure struct {
	joiner
	ctx context.Context
	db  engine.Querier
	w   Work
}

// blameFilter finds the right row at which the filter failed; nil: it did not.
func (x lookupFailure) blameFilter(cause error) error {
	n, t := x.n, x.in.Lookup
	if n.Lookup.Filter == nil {
		return nil
	}
	filter := []suspect{{name: "filter", what: "lookup", pos: n.Lookup.Pos, expr: n.Lookup.Filter, typ: expr.Bool}}
	right := relation{from: "(" + x.right.scan.sql() + ") AS l", aliases: columns{"l": t.Layout},
		order: prefixed("l", x.right.scan.orderCols()), unknown: t.Scattered()}
	var f *fault.Error
	if !errors.As(find(x.ctx, x.db, right, filter, cause), &f) {
		return nil
	}
	if x.w.Cut.Buckets > 0 { // the rows of a bucket have no numbers
		f.Place.Record = 0
	}
	f.Place.PutInTable(t.Name(), f.Place.Record)
	return f
}

// blameLeft finds the left row whose lookup fails, and what it is that fails: a
// value of a pair of rows or, as it has no row of its own, an aggregate, or
// having over aggregates. nil: there is none, or the lookup fails whatever the
// left rows are.
func (x lookupFailure) blameLeft() error {
	at, where, failure := x.findLeft()
	if failure == nil {
		return nil
	}
	x.left.source = oneLeft(at)
	f := x.blamePair(failure)
	if f == nil {
		f = x.blameValue(where, failure)
	}
	if f == nil {
		return nil
	}
	f.Message += fmt.Sprintf(", for the row of table %s with %s", x.in.Reader.Name(), where)
	f.Place.Record, f.Place.Sorted = 0, 0
	switch t := x.in.Reader; {
	case x.w.Cut.Buckets > 0 || t.inlined != nil:
		f.Place.PutInTable(t.Name(), 0)
	case t.Scattered():
		f.Place.Sorted = at + 1
	default:
		f.Place.Record = at + 1
	}
	return f
}

// oneLeft reads one of the left rows.
func oneLeft(at int64) string {
	return fmt.Sprintf("SELECT * FROM %s LIMIT 1 OFFSET %d", leftTable, at)
}

// findLeft is the number of the first left row whose lookup fails, its join keys as
// text and its failure; nil if there is none.
func (x lookupFailure) findLeft() (at int64, where string, failure error) {
	var rows int64
	left := "SELECT * FROM (" + x.left.scan.sql() + ") ORDER BY " +
		strings.Join(orderColumns(x.left.scan.orderCols()), ", ")
	if execInOrder(x.ctx, x.db, "CREATE OR REPLACE TEMP TABLE "+leftTable+" AS "+left) != nil ||
		queryRow(x.ctx, x.db, "SELECT count(*) FROM "+leftTable, &rows) != nil {
		return 0, "", nil
	}
	try := func(from, to int64) error {
		part := x.joiner
		part.left.source = fmt.Sprintf("SELECT * FROM %s LIMIT %d OFFSET %d", leftTable, to-from, from)
		return x.try(part)
	}
	holds := func(from, to int64) bool { return try(from, to) == nil }
	if rows == 0 || holds(0, rows) || !holds(0, 0) {
		return 0, "", nil
	}
	at = firstFailure(rows, holds)
	if failure = try(at, at+1); !engine.IsValueFault(failure) {
		return 0, "", nil
	}
	var shown []expr.Ref
	for _, field := range x.n.Lookup.JoinOn {
		shown = append(shown, expr.Ref{Alias: "r", Field: field})
	}
	ref := columns{"r": x.in.Reader.Layout}.ref
	if queryRow(x.ctx, x.db, fmt.Sprintf("SELECT %s FROM (%s) AS r", shownSQL(shown, ref), oneLeft(at)),
		&where) != nil {
		return 0, "", nil
	}
	return at, where, failure
}

// try does a lookup for its failure.
func (x lookupFailure) try(j joiner) error {
	return queryRow(x.ctx, x.db, "SELECT max(hash(w)) FROM ("+j.query()+") AS w")
}

// blamePair finds the value of the left row and one of its matches that fails: of a
// field, of what an aggregate takes from the pair, of having.
func (x lookupFailure) blamePair(cause error) *fault.Error {
	suspects := allSuspects(x.n)
	if x.n.Lookup.Group {
		suspects, _ = suspectsOf(x.n)
		for i, f := range x.n.Table.Fields {
			suspects[i].each = f.Expr.Aggregate()
		}
	}
	pairs := relation{
		from:    fmt.Sprintf("(%s) AS r INNER JOIN (%s) AS l ON %s", x.left.sql(), x.right.sql(), x.on()),
		aliases: columns{"r": x.in.Reader.Layout, "l": x.in.Lookup.Layout},
		order:   append(prefixed("r", x.left.scan.orderCols()), prefixed("l", x.right.scan.orderCols())...),
		unknown: true,
	}
	var f *fault.Error
	errors.As(find(x.ctx, x.db, pairs, suspects, cause), &f)
	return f
}

// blameValue finds the field of the left row that fails by itself, else having, with
// the values that it looks at.
func (x lookupFailure) blameValue(where string, cause error) *fault.Error {
	values, having := suspectsOf(x.n)
	for i, f := range x.n.Table.Fields {
		if err := x.try(x.only(f)); engine.IsValueFault(err) {
			return values[i].failed(err, where)
		}
	}
	if having == nil {
		return nil
	}
	all := x.only(x.n.Table.Fields...)
	shown := shownSQL(having.expr.Refs(), columns{"w": all.layout}.ref)
	if queryRow(x.ctx, x.db, fmt.Sprintf("SELECT %s FROM (%s) AS w", shown, all.query()), &where) != nil {
		return nil
	}
	return having.failed(cause, where)
}

// only is the lookup with these fields, and without having.
func (j joiner) only(fields ...*script.Field) joiner {
	node, table := *j.n, *j.n.Table
	table.Fields, table.Having = fields, nil
	node.Table, j.n, j.layout = &table, &node, layoutOf(fields)
	return j
}

// firstFailure finds the first of so many rows for which holds is false, given
// that there is one.
func firstFailure(rows int64, holds func(from, to int64) bool) int64 {
	from, to := int64(0), rows // rows before from hold; one in [from, to) does not
	for to-from > 1 {
		mid := from + (to-from)/2
		if holds(from, mid) {
			from = mid
		} else {
			to = mid
		}
	}
	return from
}

// explainDistinct finds the row of the reader's table at which a distinct
// table's field failed: its fields are computed row by row.
func explainDistinct(n *script.Node, in Inputs, paths Paths) explanation {
	return func(ctx context.Context, db engine.Querier, cause error) error {
		err := explainRows(n, sourceRelation(n, in.placedRows(), Batch{Paths: paths}))(ctx, db, cause)
		var f *fault.Error
		if errors.As(err, &f) && f.Place.File == "" {
			f.Place.PutInTable(in.Reader.Name(), f.Place.Record)
		}
		return err
	}
}
