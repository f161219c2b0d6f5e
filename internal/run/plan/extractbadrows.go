package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/io/files"
	"thalweg/internal/run/engine"
)

// Verdicts over a row besides the index of what failed: its input columns in
// the order of the reader, then the suspects, then having.
const verdictOut = -1 // having is false

// badFound is a bad row that was found by SQL.
type badFound struct {
	id, row int64 // in the source table, of the batch
	verdict int
	file    int64 // files only
	fileRow int64
	values  string
	reason  string
}

// sift finds the rows of a source table of which a suspect fails, describes
// them, and removes them together with those that having leaves out.
func (f *badFinder) extractBadRows(ctx context.Context, db *engine.Instance, src badSource, suspects []suspect,
	having *suspect) error {
	find := fmt.Sprintf("CREATE OR REPLACE TEMP TABLE __verdicts AS SELECT * FROM (%s) WHERE verdict IS NOT NULL",
		f.verdictSQL(src, suspects, having))
	if err := db.Tolerantly(ctx, func() error { return db.Exec(ctx, find) }); err != nil {
		return err
	}
	var total int64
	if err := queryRow(ctx, db, "SELECT count(DISTINCT batch_row) FROM __verdicts WHERE verdict >= 0",
		&total); err != nil {
		return err
	}
	room := max(f.keep-f.kept, 0)
	if total > room {
		f.bad.Omit(total - room)
	}
	if total > 0 && room > 0 {
		if err := f.describe(ctx, db, src, suspects, having, room); err != nil {
			return err
		}
	}
	return db.Exec(ctx,
		fmt.Sprintf("DELETE FROM %s AS r WHERE r.rowid IN (SELECT id FROM __verdicts) OR %s IN (SELECT "+
			"batch_row FROM __verdicts WHERE verdict >= 0)", src.table, src.row))
}

// verdictSQL gives id, batch_row and verdict of all rows; NULL: nothing is wrong.
func (f *badFinder) verdictSQL(src badSource, suspects []suspect, having *suspect) string {
	var cases strings.Builder
	cells := src.cellIndexes()
	for i, c := range cells {
		fmt.Fprintf(&cases, " WHEN %s IS NULL THEN %d", src.cells[c], i)
	}
	test := "CAST(NULL AS BOOLEAN[])"
	if having != nil {
		test = "TRY([" + having.sql(src.try) + "])"
		fmt.Fprintf(&cases, " WHEN r.__having IS NULL THEN %d", len(cells)+len(suspects))
	}
	for i, s := range suspects {
		fmt.Fprintf(&cases, " WHEN TRY([%s]) IS NULL THEN %d", s.sql(src.try), len(cells)+i)
	}
	// Without having the first branch is never taken: NULL is not false.
	return fmt.Sprintf("SELECT __id AS id, __nth AS batch_row, CASE WHEN r.__having IS NOT NULL AND NOT "+
		"coalesce(r.__having[1], false) THEN %d%s END AS verdict"+
		" FROM (SELECT r.*, r.rowid AS __id, %s AS __nth, %s AS __having FROM %s AS r) AS r",
		verdictOut, cases.String(), src.row, test, src.table)
}

// cellIndexes lists the columns of the reader that may be unreadable, in order.
func (s badSource) cellIndexes() []int {
	out := make([]int, 0, len(s.cells))
	for i := range s.cells {
		out = append(out, i)
	}
	slices.Sort(out)
	return out
}

// describe keeps the first bad rows with what is wrong with each.
func (f *badFinder) describe(ctx context.Context, db *engine.Instance, src badSource, suspects []suspect,
	having *suspect, most int64) error {
	stage := fmt.Sprintf("CREATE OR REPLACE TEMP TABLE %s AS SELECT r.*, r.rowid AS __id, v.batch_row AS __nth, "+
		"v.verdict AS __verdict FROM %s AS r"+
		" JOIN (SELECT DISTINCT ON (batch_row) * FROM __verdicts WHERE verdict >= 0 ORDER BY batch_row, id) AS v ON "+
		"r.rowid = v.id ORDER BY v.batch_row LIMIT %d", badRowTable, src.table, most)
	if err := db.Exec(ctx, stage); err != nil {
		return err
	}
	all := suspects
	if having != nil {
		all = append(slices.Clone(suspects), *having)
	}
	found, err := f.listFound(ctx, db, src, all)
	if err != nil {
		return err
	}
	cells := len(src.cells)
	for i := range found {
		if s := found[i].verdict - cells; s >= 0 {
			found[i].reason = whyNot(ctx, db, all[s].sql(src.try), all[s].expr.Quoted(), found[i].id)
		}
	}
	before := f.kept
	if f.files != nil {
		err = f.describeRecords(ctx, db, src, all, found)
	} else {
		err = f.describeRows(ctx, db, src, all, found)
	}
	if err == nil && f.kept-before != int64(len(found)) {
		// They are about to be left out of the output: none may be lost.
		err = fault.New(fault.Bug, "%d bad rows were found, but %d could be described", len(found), f.kept-before)
	}
	return err
}

// listFound reads which rows were found, with the values that the failing
// expression looks at.
func (f *badFinder) listFound(ctx context.Context, db engine.Querier, src badSource,
	suspects []suspect) (found []badFound, err error) {
	var values strings.Builder
	for i, s := range suspects {
		fmt.Fprintf(&values, " WHEN %d THEN %s", len(src.cells)+i, s.shown(src.ref))
	}
	at := "CAST(0 AS BIGINT), CAST(0 AS BIGINT)"
	if f.files != nil {
		at = "r." + files.FileColumn + ", r." + files.RowColumn
	}
	rows, err := db.QueryContext(ctx,
		fmt.Sprintf("SELECT r.__id, r.__nth, r.__verdict, %s, CASE r.__verdict WHEN -1 THEN ''%s ELSE '' END FROM %s "+
			"AS r ORDER BY r.__nth",
			at, values.String(), badRowTable))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var b badFound
		if err := rows.Scan(&b.id, &b.row, &b.verdict, &b.file, &b.fileRow, &b.values); err != nil {
			return nil, err
		}
		found = append(found, b)
	}
	return found, rows.Err()
}

// whyNot computes an expression for one bad row and says why it cannot be.
func whyNot(ctx context.Context, db engine.Querier, sql, source string, id int64) string {
	var n int64
	err := queryRow(ctx, db, fmt.Sprintf("SELECT count(v) FROM (SELECT %s AS v FROM (SELECT * FROM %s WHERE __id = %d "+
		"LIMIT 1) AS r)", sql, badRowTable, id), &n)
	if err == nil {
		return "cannot be computed"
	}
	reason, _, _ := engine.ExpressionReason(err, source)
	return reason
}

// describeRows keeps rows of a table.
func (f *badFinder) describeRows(ctx context.Context, db engine.Querier, src badSource, suspects []suspect,
	found []badFound) (err error) {
	rows, err := db.QueryContext(ctx, fmt.Sprintf("SELECT %s FROM %s AS r ORDER BY r.__nth", src.raw, badRowTable))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for i := 0; rows.Next() && i < len(found); i++ {
		b := found[i]
		s := suspects[b.verdict]
		r := fault.BadRow{Reason: b.reason, Place: fault.Place{Field: s.name, Value: b.values, Expr: s.expr.Source()}}
		r.Place.PutInTable(f.in.Reader.Name(), recordOf(f.in.Reader, f.b.Work, b.row))
		if err := rows.Scan(&r.Raw); err != nil {
			return err
		}
		if err := f.put(0, b.row, r); err != nil {
			return err
		}
	}
	return rows.Err()
}

// describeRecords keeps records of files.
func (f *badFinder) describeRecords(ctx context.Context, db engine.Querier, src badSource, suspects []suspect,
	found []badFound) error {
	cells := src.cellIndexes()
	list := make([]files.BadCell, len(found))
	for i, b := range found {
		list[i] = files.BadCell{File: int(b.file), Row: b.fileRow, Column: -1}
		if b.verdict < len(cells) {
			list[i].Column = cells[b.verdict]
		}
	}
	return f.files.Locate(ctx, db, list, func(i int, rec files.BadRecord) error {
		if s := found[i].verdict - len(cells); s >= 0 {
			rec.Reason = found[i].reason
			rec.Place.Field, rec.Place.Value, rec.Place.Expr = suspects[s].name, found[i].values,
				suspects[s].expr.Source()
		}
		return f.put(int64(rec.File), rec.Row, rec.BadRow)
	})
}

// execInOrder runs a statement whose rows must keep their order, because those
// of its result are numbered.
func execInOrder(ctx context.Context, db engine.Querier, statement string) error {
	if err := engine.InOrder(ctx, db, statement); err != nil {
		return err
	}
	return queryRow(ctx, db, statement)
}

// queryRow reads the first row of a query.
func queryRow(ctx context.Context, db engine.Querier, query string, into ...any) (err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if rows.Next() && len(into) > 0 {
		return rows.Scan(into...)
	}
	return rows.Err()
}
