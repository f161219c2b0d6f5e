package plan

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"thalweg/internal/engine"
	"thalweg/internal/expr"
	"thalweg/internal/fault"
	"thalweg/internal/script"
)

// leftTable holds the left rows of a lookup that failed.
const leftTable = "__left"

// explainLookup finds the right row at which the filter failed, else the left
// row whose lookup does: it does the lookup again for half of the left rows,
// and half of those, until one is left. Aggregates have no row of their own
// that could be blamed.
func explainLookup(n *script.Node, in Inputs, plan NodePlan, w Work, paths Paths) func(context.Context, engine.Querier, error) error {
	return func(ctx context.Context, db engine.Querier, cause error) error {
		if found := blameLookup(ctx, db, n, in, plan, w, paths, cause); found != nil {
			return found
		}
		return explainScript(n)(ctx, db, cause)
	}
}

// blameLookup is explainLookup where it finds a row; nil if it does not.
func blameLookup(ctx context.Context, db engine.Querier, n *script.Node, in Inputs, plan NodePlan, w Work, paths Paths, cause error) error {
	known := explainScript(n)(ctx, db, cause)
	var f *fault.Error
	if !errors.As(known, &f) {
		return nil
	}
	j := newJoiner(n, in, plan, w, paths)
	if n.Lookup.Filter != nil {
		filter := []suspect{{name: "filter", what: "lookup", pos: n.Lookup.Pos, expr: n.Lookup.Filter, typ: expr.Bool}}
		right := relation{from: "(" + j.right.scan.sql() + ") AS l", aliases: columns{"l": in.Lookup.Layout},
			order: prefixed("l", j.right.scan.orderCols()), unknown: in.Lookup.Scattered()}
		if err := find(ctx, db, n, right, filter, nil, cause); errors.As(err, &f) {
			f.Place.PutInTable(in.Lookup.Node.Table.Name, 0) // the rows of a bucket have no numbers
			return f
		}
	}
	where, there := findLeft(ctx, db, n, j)
	// The batch may have failed for another row: what is said of this one is
	// how it fails by itself.
	if where == "" || !errors.As(explainScript(n)(ctx, db, there), &f) {
		return nil
	}
	f.Message += fmt.Sprintf(", for the row of table %s with %s", in.Reader.Name(), where)
	f.Place.Value = where
	return f
}

// findLeft shows the join keys of the first left row whose lookup fails, with
// its failure; "" if there is none, or it fails whatever the left rows are.
func findLeft(ctx context.Context, db engine.Querier, n *script.Node, j joiner) (where string, failure error) {
	var rows int64
	left := "SELECT * FROM (" + j.left.scan.sql() + ") ORDER BY " + strings.Join(orderColumns(j.left.scan.orderCols()), ", ")
	if execInOrder(ctx, db, "CREATE OR REPLACE TEMP TABLE "+leftTable+" AS "+left) != nil ||
		queryRow(ctx, db, "SELECT count(*) FROM "+leftTable, &rows) != nil {
		return "", nil
	}
	try := func(from, to int64) error {
		part := j
		part.left.source = fmt.Sprintf("SELECT * FROM %s LIMIT %d OFFSET %d", leftTable, to-from, from)
		return queryRow(ctx, db, "SELECT max(hash(w)) FROM ("+part.query()+") AS w")
	}
	holds := func(from, to int64) bool { return try(from, to) == nil }
	if rows == 0 || holds(0, rows) || !holds(0, 0) {
		return "", nil
	}
	at := firstFailure(rows, holds)
	var shown []expr.Ref
	for _, field := range n.Lookup.JoinOn {
		shown = append(shown, expr.Ref{Alias: "r", Field: field})
	}
	if failure = try(at, at+1); !engine.IsValueFault(failure) {
		return "", nil
	}
	query := fmt.Sprintf("SELECT %s FROM (SELECT * FROM %s LIMIT 1 OFFSET %d) AS r", shownSQL(shown, columns{"r": j.in.Reader.Layout}.ref), leftTable, at)
	if queryRow(ctx, db, query, &where) != nil {
		return "", nil
	}
	return where, failure
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
func explainDistinct(n *script.Node, in Inputs, paths Paths) func(context.Context, engine.Querier, error) error {
	return func(ctx context.Context, db engine.Querier, cause error) error {
		rel := sourceRelation(n, in.placedRows(), Batch{Paths: paths})
		err := explainExpressions(n, rel, rel.placedIn())(ctx, db, cause)
		var f *fault.Error
		if errors.As(err, &f) && f.Place.File == "" {
			f.Place.PutInTable(in.Reader.Name(), f.Place.Record)
		}
		return err
	}
}
