package plan

import (
	"context"
	"fmt"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/io/files"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
	"thalweg/internal/store/state"
)

// Limits of what is kept of bad rows.
const (
	badKeptMin  = 100       // rows of a batch, also where fewer are allowed: people want to see them
	badRawChars = 64 << 10  // of a table row's JSON
	badExamples = 3         // in the message of a node that fails
	sourceTable = "__src"   // rows of a batch while the bad ones are found
	pairTable   = "__pairs" // rows of a tag node with their tags
	badRowTable = "__found" // the bad ones among them
)

// badLayout is the layout of side table "bad".
func badLayout() Layout {
	l := Layout{Columns: []Column{{Name: "node", Type: expr.String.String()}, {Name: "batch", Type: expr.Int.String()}}}
	for _, c := range engine.BadColumns() {
		t := expr.String
		if c[1] == "BIGINT" {
			t = expr.Int
		}
		l.Columns = append(l.Columns, Column{Name: c[0], Type: t.String()})
	}
	return l
}

// quarantine lets a task go on without bad rows, if its node wants that.
func (p *Planner) quarantine(t *engine.Task, n *script.Node, in Inputs, plan NodePlan, b Batch) {
	if n.BadRows == nil {
		return
	}
	if n.Out != nil {
		t.Paths = append(t.Paths, b.StageDir)
	}
	f := &badFinder{n: n, in: in, plan: plan, b: b, strict: *t, keep: max(n.BadRows.MaxRows+1, badKeptMin)}
	t.Quarantine = &engine.Quarantine{
		Retry: f.retry,
		Sides: []engine.SideOutput{{Side: state.SideBad, Query: f.sideQuery(), RowsMax: f.keep, Stage: b.Stage}},
		Judge: func(ctx context.Context, db engine.Querier, res engine.Result) error {
			rows := b.RowsIn
			if rows < 0 {
				rows = res.CSVRows
			}
			return judgeBadRows(ctx, db, n, in.Reader, b, f.sideQuery(), BadTotals{Rows: rows, Bad: res.BadRows,
				Complete: b.Work.Only})
		},
	}
}

// badFinder finds the bad rows of one batch.
type badFinder struct {
	n      *script.Node
	in     Inputs
	plan   NodePlan
	b      Batch
	strict engine.Task
	keep   int64 // rows that are described; the others are counted

	bad   *engine.Bad
	files *files.Tolerant
	kept  int64
	rows  int64 // of the batch
}

// badSource is the batch's rows in a table: r in the SQL of what refers to them.
type badSource struct {
	table string
	row   string                // SQL: the row of the batch, from 0
	ref   func(expr.Ref) string // a value
	try   func(expr.Ref) string // the same, failing inside TRY where the value could not be read
	cells map[int]string        // input columns that may not have been readable: index in the reader -> SQL
	order []string              // SQL of the order columns
	raw   string                // SQL of the row as text; "": the files know it
}

// retry implements engine.Quarantine: it stages the rows, finds those that
// fail, removes them, and leaves the rest to what the task would have done.
//
// A row for which having is false is no bad row: it would have been left out,
// whatever its other fields. That must not depend on whether a batch had
// reasons to look.
func (f *badFinder) retry(ctx context.Context, db *engine.Instance, bad *engine.Bad) (engine.Task, int64, error) {
	f.bad = bad
	src, err := f.open(ctx, db)
	if err != nil {
		return engine.Task{}, 0, err
	}
	if f.n.Tag != nil {
		if src, err = f.pairs(ctx, db, src); err != nil {
			return engine.Task{}, 0, err
		}
	}
	outputs, having := suspectsOf(f.n)
	if err := f.extractBadRows(ctx, db, src, outputs, having); err != nil {
		return engine.Task{}, 0, err
	}
	t, err := f.rest(src)
	return t, f.rows, err
}

// rest is the task of the rows that are left in the source table.
func (f *badFinder) rest(src badSource) (engine.Task, error) {
	t := f.strict
	t.Prepare, t.Python, t.CSV, t.Explain, t.Quarantine = nil, nil, nil, nil, nil
	rel := relation{from: src.table + " AS r", order: src.order, refer: src.ref}
	if f.n.Out != nil {
		out := outputFrom(f.n, rel)
		if f.b.Trace {
			t.Query = out.sorted
			return t, nil
		}
		file, err := fileOutput(f.n, out.sorted, f.b)
		t.Output.File = file
		return t, err
	}
	t.Query = tableQuery(f.n, f.plan.Layout, rel, nil)
	return t, nil
}

// open stages the rows.
func (f *badFinder) open(ctx context.Context, db *engine.Instance) (badSource, error) {
	var src badSource
	var err error
	if f.n.Files != nil {
		src, err = f.openFiles(ctx, db)
	} else {
		src, err = f.openTable(ctx, db)
	}
	if err != nil {
		return src, err
	}
	var staged int64
	if err := queryRow(ctx, db, "SELECT count(*) FROM "+src.table, &staged); err != nil {
		return src, err
	}
	f.rows += staged
	if f.n.PyCalc != nil { // those whose formulas failed are known already
		err = db.Exec(ctx, "DELETE FROM "+src.table+" AS r WHERE r."+engine.BadFlag)
	}
	return src, err
}

func (f *badFinder) openFiles(ctx context.Context, db *engine.Instance) (badSource, error) {
	r := f.n.Files
	used := map[string]bool{}
	for _, ref := range fieldRefs(f.n.Table) {
		used[ref.Field] = true
	}
	src := badSource{table: sourceTable, row: "r.rowid", cells: map[int]string{}}
	names := map[string]string{}
	for i, c := range r.Columns {
		if used[c.Name] {
			names[c.Name] = "r." + files.TolerantColumn(i)
			src.cells[i] = names[c.Name]
		}
	}
	src.ref = func(ref expr.Ref) string { return names[ref.Field] + "[1]" }
	if f.b.Trace {
		src.order = fileOrder()
	}
	src.try = func(ref expr.Ref) string {
		return fmt.Sprintf("CASE WHEN %[1]s IS NULL THEN error(%[2]s) ELSE %[1]s[1] END", names[ref.Field],
			sqltext.String(files.RuntimeMarker+ref.Field))
	}
	var err error
	if f.files, err = files.ReadTolerant(r, f.b.Work.Files, f.b.Scratch,
		func(name string) bool { return used[name] }); err != nil {
		return src, err
	}
	err = f.files.Prepare(ctx, func(rec files.BadRecord) error {
		f.rows++
		return f.put(int64(rec.File), rec.Row, rec.BadRow)
	})
	if err != nil {
		return src, err
	}
	return src, db.Tolerantly(ctx, func() error {
		return execInOrder(ctx, db, "CREATE TEMP TABLE "+sourceTable+" AS SELECT * FROM "+f.files.SQL+" AS s")
	})
}

// openTable stages all columns of the reader's table, because a bad row is
// shown whole, and what Python has made of them.
func (f *badFinder) openTable(ctx context.Context, db *engine.Instance) (badSource, error) {
	layout := f.in.Reader.Layout
	s, text := f.wholeRows(f.in.Reader.Scattered() || f.b.Trace)
	source := s.inOrder()
	if f.n.Out != nil {
		source = s.ofFile(f.n.Out, f.b.Work)
		if f.in.Reader.Scattered() {
			source = fmt.Sprintf("SELECT * FROM (%s) ORDER BY %s", source,
				strings.Join(orderColumns(s.orderCols()), ", "))
		}
	}
	src := badSource{table: sourceTable, row: "r.rowid", order: prefixed("r", s.orderCols()),
		ref: columns{"r": layout}.ref,
		raw: fmt.Sprintf("left(CAST(%s AS VARCHAR), %d)", text, badRawChars)}
	stage := "SELECT * FROM (" + source + ") AS r"
	if f.n.PyCalc != nil {
		calculated := map[string]string{}
		cols := "r.*, p." + engine.BadFlag
		for i, p := range f.n.PyCalc.Fields {
			calculated[p.Name] = fmt.Sprintf("__c%d", i)
			cols += fmt.Sprintf(", p.%s AS %s", sqltext.Ident(p.Name), calculated[p.Name])
		}
		stage = "SELECT " + cols + " FROM (" + source + ") AS r POSITIONAL JOIN " + engine.ResultTable + " AS p"
		src.ref = func(ref expr.Ref) string {
			if ref.Alias == "p" {
				return "r." + calculated[ref.Field]
			}
			return columns{"r": layout}.ref(ref)
		}
	}
	src.try = src.ref
	return src, execInOrder(ctx, db, "CREATE TEMP TABLE "+sourceTable+" AS "+stage)
}

// wholeRows reads all columns of the reader's table, and gives the SQL of a row as JSON.
func (f *badFinder) wholeRows(order bool) (scan, string) {
	s := scan{table: f.in.Reader, slices: f.b.Work.Parts, paths: f.b.Paths, order: order}
	var pairs []string
	for _, c := range s.table.Layout.Columns {
		s.fields = append(s.fields, c.Name)
		pairs = append(pairs, sqltext.String(c.Name)+": "+ident("r", c.Stored()))
	}
	return s, "to_json({" + strings.Join(pairs, ", ") + "})"
}

// pairs puts the rows of a tag node whose conditions fail aside and pairs the
// others with their tags.
func (f *badFinder) pairs(ctx context.Context, db *engine.Instance, src badSource) (badSource, error) {
	if err := f.extractBadRows(ctx, db, src, tagSuspects(f.n.Tag), nil); err != nil {
		return src, err
	}
	layout := f.in.Reader.Layout
	rel := tagRelation(f.n.Tag, "SELECT *, rowid AS __n FROM "+src.table, layout, nil)
	tag := tagRef(f.n.Tag, rel)(expr.Ref{Alias: "p", Field: f.n.Tag.Field})
	if err := execInOrder(ctx, db, fmt.Sprintf("CREATE TEMP TABLE %s AS SELECT r.*, %s AS __tag FROM %s", pairTable,
		tag, rel.from)); err != nil {
		return src, err
	}
	out := src
	out.table, out.row = pairTable, "r.__n"
	if len(src.order) > 0 {
		out.order = append(append([]string{}, src.order...), "CAST(r.__t AS BIGINT)")
	}
	out.ref = func(ref expr.Ref) string {
		if ref.Alias == "p" {
			return "r.__tag"
		}
		return src.ref(ref)
	}
	out.try = out.ref
	return out, nil
}

// put keeps a bad row, or only counts it when there are too many.
func (f *badFinder) put(file, row int64, r fault.BadRow) error {
	if f.kept >= f.keep {
		f.bad.Omit(1)
		return nil
	}
	f.kept++
	return f.bad.Add(file, row, r, engine.ActionQuarantined)
}

// sideQuery gives the bad rows as the side table holds them. Those that Python
// put aside get the row's text here.
func (f *badFinder) sideQuery() string {
	var cols []string
	for _, c := range engine.BadColumns() {
		cols = append(cols, "b."+sqltext.Ident(c[0]))
	}
	from := engine.BadTable + " AS b"
	if f.n.PyCalc != nil {
		s, text := f.wholeRows(true)
		from = fmt.Sprintf("(SELECT b.* REPLACE (CASE WHEN b.raw IS NULL THEN left(CAST(t.raw AS VARCHAR), %d) ELSE "+
			"b.raw END AS raw) FROM %s AS b"+
			" LEFT JOIN (SELECT row_number() OVER (ORDER BY %s) - 1 AS n, %s AS raw FROM (%s) AS r) AS t "+
			"ON t.n = b.at_row) AS b",
			badRawChars, engine.BadTable, strings.Join(orderColumns(s.orderCols()), ", "), text, s.sql())
	}
	return fmt.Sprintf("SELECT %s AS node, CAST(%d AS BIGINT) AS batch, %s FROM %s ORDER BY b.at_file, b.at_row",
		sqltext.String(f.n.Name), f.b.Number, strings.Join(cols, ", "), from)
}

// recordOf is the number, from 1, of a batch's row in the table; 0 where rows
// have none that means anything.
func recordOf(t *Table, w Work, row int64) int64 {
	if t.Scattered() {
		return 0
	}
	return FirstRow(t, w) + row + 1
}

// FirstRow counts the rows of a table before those of a batch.
func FirstRow(t *Table, w Work) int64 {
	if w.Ranged {
		return w.FromRow
	}
	if len(w.Parts) == 0 {
		return 0
	}
	n := w.Parts[0].From
	for _, part := range t.Parts[:w.Parts[0].Part] {
		n += part.Rows
	}
	return n
}
