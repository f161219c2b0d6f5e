package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/io/files"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
)

// A sql node is one batch, unless its query is known to give the same in pieces
// (package query says it): row by row its tables are cut one after the other, by
// keys each batch has the rows of some of them from all tables. The tables are
// views under the names that the query has for them, so that the query itself
// stays as its author wrote it.

// queryWorks cuts what a query reads.
func (p *Planner) queryWorks(ctx context.Context, n *script.Node, in Inputs) ([]Work, []size, error) {
	info, err := queryInfo(n)
	if err != nil {
		return nil, nil, err
	}
	works, sizes := p.queryPieces(n, in)
	for _, f := range info.Files {
		groups, err := files.PlanSlicesBy(ctx, f.Reader, in.Places, func(total int64) int64 { return total + 1 }, 1)
		if err != nil {
			return nil, nil, err
		}
		for i := range works { // all of each file in each batch
			works[i].Scans = append(works[i].Scans, groups[0])
			for _, slice := range groups[0] {
				sizes[i].rows += max(slice.Count, 0) // lines of CSV are not counted
				sizes[i].bytes += slice.Bytes
			}
		}
	}
	return works, sizes, nil
}

// uncounted reports whether a query's work reads files whose rows are not known before they are read.
func (w *Work) uncounted() bool {
	return slices.ContainsFunc(w.Scans, func(read []files.Slice) bool {
		return slices.ContainsFunc(read, func(s files.Slice) bool { return s.Count < 0 })
	})
}

// queryPieces cuts the tables that a query reads; one batch if it cannot be
// cut, or if they are small.
func (p *Planner) queryPieces(n *script.Node, in Inputs) ([]Work, []size) {
	all := in.Query
	switch {
	case n.Query.Info.Cut.Whole != "" || all == nil || all.Bytes() <= p.Budget.SmallBytes:
	case n.Query.By != nil:
		return cutWorks(hashCuts(p.bucketsFor(all.Bytes(), joinFactor)), all)
	default:
		if groups := sliceParts(all, p.batchCount(all), rowGroupRowsMin); len(groups) > 1 {
			return sliceWorks(all, groups)
		}
	}
	var s size
	for _, t := range in.Tables(n) {
		s.rows += t.Rows()
		s.bytes += t.Bytes()
	}
	return []Work{{}}, []size{s}
}

// QueryTables is all tables that a query reads as one, in the order in which it
// does; nil if it reads none, or n has no query.
func (in Inputs) QueryTables(n *script.Node) *Table {
	if n.Query == nil || n.Query.Info == nil {
		return nil
	}
	var tables []*Table
	for _, name := range n.Query.Info.Cut.Tables {
		for _, input := range n.Query.Inputs {
			if t := in.Named[input.Creator.Table.Name]; input.Name == name && !slices.Contains(tables, t) {
				tables = append(tables, t)
			}
		}
	}
	if len(tables) == 0 {
		return nil
	}
	return Together(nil, tables)
}

// sliced is the table that the parts of work are of.
func (in Inputs) sliced() *Table {
	if in.Query != nil {
		return in.Query
	}
	return in.Reader
}

func queryInfo(n *script.Node) (*script.QueryInfo, error) {
	if n.Query.Info == nil {
		return nil, fmt.Errorf("node %s: its query was never described", n.Name)
	}
	return n.Query.Info, nil
}

// queryCut says how a sql node's query is cut, and why not if it is one batch.
func (p *Planner) queryCut(n *script.Node, in Inputs) string {
	cut := n.Query.Info.Cut
	switch all := in.Query; {
	case cut.Whole != "":
		way := "; by: [fields] evaluates it for the rows of some keys at a time"
		if n.Query.Info.OneThread || all == nil {
			way = ""
		}
		return "one batch: " + cut.Whole + way
	case all == nil || all.Bytes() <= p.Budget.SmallBytes:
		return "one batch: its tables are small"
	case n.Query.By != nil:
		return "each batch has all rows of some values of " + strings.Join(n.Query.By, ", ")
	}
	return "row by row: each batch has some rows of one table"
}

// queryTask makes the views and the SELECT of a sql node's rows.
func (p *Planner) queryTask(t *engine.Task, n *script.Node, in Inputs, layout Layout, b Batch) error {
	info, err := queryInfo(n)
	if err != nil {
		return err
	}
	what := "VIEW"
	if b.Trace { // whose rows have rowids
		what = "TABLE"
	}
	for _, input := range n.Query.Inputs {
		table := in.Named[input.Creator.Table.Name]
		t.Setup = append(t.Setup, fmt.Sprintf("CREATE %s %s AS %s", what, sqltext.Ident(input.Name),
			queryInput(n, in, table, b)))
	}
	var prepares []func(context.Context) error
	for i, f := range info.Files {
		how := files.Unnumbered
		if b.Trace {
			how = files.Positioned
		}
		from, prepare, err := queryFile(t, f.Reader, b.Work.Scans[i], fmt.Sprintf("%s/scan%d", b.Scratch, i), how)
		if err != nil {
			return err
		}
		prepares = append(prepares, prepare)
		t.Setup = append(t.Setup, "CREATE SCHEMA "+sqltext.Ident(f.Schema))
		t.Setup = append(t.Setup, scannedFile(f, b.Work.Scans[i], from, b.Trace)...)
	}
	t.Prepare = func(ctx context.Context) error {
		for _, prepare := range prepares {
			if err := prepare(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	t.Query, t.Secluded = resultQuery(n, layout, b), true
	// The query's own ORDER BY, or ours behind it, says the order; what is below
	// has been made independent of it (package query), or runs on one thread.
	t.OneThread, t.FreeOrder = info.OneThread, true
	t.MemoryHint = "give more with {{set memory}}, or let the query have less at once: filter and aggregate in nodes " +
		"before it, select only the columns that it needs; continue with {{set resume}}"
	t.Explain = explainQuery(n)
	return nil
}

// queryKey is the key by which a query's tables are cut.
func queryKey(n *script.Node) expr.Order {
	key := make(expr.Order, len(n.Query.By))
	for i, name := range n.Query.By {
		key[i].Field = name
	}
	return key
}

// queryScan returns a batch's scan of one of the query's tables.
func queryScan(n *script.Node, in Inputs, table *Table, w Work, paths Paths) scan {
	if w.Parts == nil {
		return keyed{table, queryKey(n)}.scan(w.Cut, paths)
	}
	s := scan{table: table, paths: paths}
	for _, m := range in.Query.each() {
		for _, p := range w.Parts {
			if m.Table == table && p.Part >= m.first && p.Part < m.first+len(table.Parts) {
				p.Part -= m.first
				s.slices = append(s.slices, p)
			}
		}
	}
	return s
}

// queryInput reads a batch's rows of a table under the script's names, in
// canonical order where the query can tell.
func queryInput(n *script.Node, in Inputs, table *Table, b Batch) string {
	s := queryScan(n, in, table, b.Work, b.Paths)
	s.order = (n.Query.Info.OneThread || b.Trace) && table.Scattered()
	var cols []string
	for _, c := range table.Layout.Columns {
		s.fields = append(s.fields, c.Name)
		value := ident("r", c.Stored())
		if c.Type == expr.Float.String() {
			value = unsignedSQL(value)
		}
		cols = append(cols, value+" AS "+sqltext.Ident(c.Name))
	}
	sql := fmt.Sprintf("SELECT %s FROM (%s) AS r", strings.Join(cols, ", "), s.sql())
	if f := (keyed{table, queryKey(n)}).filter(b.Work.Cut, "r"); f != "" {
		sql += " WHERE " + f
	}
	if s.order {
		sql += " ORDER BY " + strings.Join(prefixed("r", s.orderCols()), ", ")
	}
	return sql
}

// querySort is the order of a query's rows by their columns, where several
// batches make them; nil: they come in the order of the batches.
func querySort(n *script.Node, l Layout) []SortColumn {
	info := n.Query.Info
	if len(info.Cut.Sort) == 0 && !n.Query.Ordered {
		return nil
	}
	var out []SortColumn
	for _, k := range info.Cut.Sort {
		c, _ := l.column(info.Columns[k.Column].Name)
		out = append(out, SortColumn{Column: c.Stored(), Desc: k.Desc, NullsFirst: k.NullsFirst})
	}
	if len(info.Cut.Sort) == 0 {
		for _, c := range l.Columns {
			out = append(out, SortColumn{Column: c.Stored()})
		}
	}
	return out
}

// scannedFile makes what a query knows a file as. To trace it, it is a table, whose
// rowids are those of another one of the places of its rows.
func scannedFile(f script.QueryFile, read []files.Slice, from string, trace bool) []string {
	name, places := sqltext.Ident(f.Schema)+".scan_file", filePlaces(f)
	switch {
	case !trace:
		return []string{fmt.Sprintf("CREATE VIEW %s AS SELECT * FROM %s", name, from)}
	case !f.Reader.Parquet:
		return []string{fmt.Sprintf("CREATE TABLE %s AS SELECT * FROM %s", places, from),
			fmt.Sprintf("CREATE TABLE %s AS SELECT * EXCLUDE (%s, %s) FROM %s", name, files.FileColumn,
				files.RowColumn, places)}
	}
	rows := []string{fmt.Sprintf("SELECT 0 AS %s, 0 AS %s WHERE false", files.FileColumn, files.RowColumn)}
	for _, s := range read {
		rows = append(rows, fmt.Sprintf("SELECT %d, unnest(range(%d, %d))", s.File, s.FirstRow, s.FirstRow+s.Count))
	}
	return []string{fmt.Sprintf("CREATE TABLE %s AS %s", places, strings.Join(rows, " UNION ALL ")),
		fmt.Sprintf("CREATE TABLE %s AS SELECT * FROM %s", name, from)}
}

// filePlaces is the table of the places of a file's rows.
func filePlaces(f script.QueryFile) string { return sqltext.Ident(f.Schema) + `."#places"` }

// queryFile reads a file of a query: CSV as a file_table would, all of it
// text; Parquet with its own columns and types.
func queryFile(t *engine.Task, r *script.FileReader, slices []files.Slice, scratch string, how files.Rows) (from string,
	prepare func(context.Context) error, err error) {
	for _, s := range slices {
		t.Paths = append(t.Paths, s.Path)
	}
	if r.Parquet {
		return files.QueryParquet(slices, scratch)
	}
	reading, err := files.Read(r, slices, scratch, how)
	if err != nil {
		return "", nil, err
	}
	countCSV(t, r, reading)
	return reading.SQL, reading.Prepare, nil
}

// resultQuery casts the query's columns to the fields, where each value must
// fit, and puts its rows into an order that depends on them alone, unless the
// query has one or none is wanted.
func resultQuery(n *script.Node, layout Layout, b Batch) string {
	info := n.Query.Info
	query, lists := info.SQL, 0
	if b.Traced != "" {
		query, lists = b.Traced, len(n.Query.Inputs)+len(info.Files)
	}
	names := make([]string, len(info.Columns))
	at := map[string]int{}
	for i, c := range info.Columns {
		names[i] = fmt.Sprintf("c%d", i)
		at[c.Name] = i
	}
	cols := make([]string, len(n.Table.Fields))
	for i, f := range n.Table.Fields {
		c := at[f.Name]
		value := "q." + names[c]
		if t := info.Columns[c].SQLType; t == "DOUBLE" || t == "FLOAT" {
			value = unsignedSQL(value)
		}
		cols[i] = fittedSQL(f, info.Columns[c], value) + " AS " + sqltext.Ident(layout.Columns[i].Stored())
	}
	beside := ""
	for i := range lists {
		list := fmt.Sprintf("q.__o%d", i)
		if at := i - len(n.Query.Inputs); at >= 0 { // of a file: places for numbers
			beside += fmt.Sprintf(", (SELECT list(%s * %d + %s ORDER BY rowid) AS list FROM %s) AS places_%d",
				files.FileColumn, int64(orderStride), files.RowColumn, filePlaces(info.Files[at]), at)
			list = fmt.Sprintf("list_select(coalesce(places_%d.list, CAST([] AS BIGINT[])), %s)", at, list)
		}
		names = append(names, fmt.Sprintf("__o%d", i))
		cols = append(cols, fmt.Sprintf("list_sort(list_distinct(%s)) AS __o%d", list, i))
	}
	// The query is on lines of its own: it may end in a comment.
	q := fmt.Sprintf("SELECT %s FROM (\n%s\n) AS q(%s)%s", strings.Join(cols, ", "), query,
		strings.Join(names, ", "), beside)
	switch {
	case lists > 0:
	case layout.Sort != nil:
		hidden := layout.sortKey() + " AS __o0"
		if layout.OrderCols > 1 { // a lookup gives the matches of one row and then those of the next, the same or not
			hidden += fmt.Sprintf(", row_number() OVER () + %d AS __o1", int64(b.Number)*orderStride+b.RowsDone)
		}
		return fmt.Sprintf("SELECT *, %s FROM (%s) AS q", hidden, q)
	case !info.Sorted && n.Query.Ordered:
		q += " ORDER BY ALL"
	}
	return q
}

// unsignedSQL is a float without the sign of its zero, and with one NaN. DuckDB
// takes them for equal and gives whichever it has seen first, so that in a query
// (package query sees to what it computes) they would tell the order of rows.
func unsignedSQL(float string) string { return expr.UnsignedSQL(float) }

// Kinds of errors about a column of a query's rows, which is their subject.
const (
	raisedNull  = "null"  // it has a NULL where none may be
	raisedUnfit = "unfit" // it has a value that its field cannot hold
)

// fittedSQL is a column's value as the field stores it; a value that does not
// fit, or a NULL where none may be, is an error that names the column.
func fittedSQL(f *script.Field, c script.QueryColumn, value string) string {
	fail := func(kind, message string, texts ...string) string {
		return expr.Raised{Kind: kind, Subject: f.Name, Message: "column " + f.Name + message}.SQL(texts...)
	}
	if f.Type.Nested() {
		return f.Type.EachSQL(value, func(t expr.Type, value string) string {
			if t == expr.Float {
				return unsignedSQL("CAST(" + value + " AS " + t.SQL() + ")")
			}
			inner := &script.Field{Name: f.Name, Type: t, Nullable: true}
			return fittedSQL(inner, script.QueryColumn{}, value)
		})
	}
	stored := value
	var cases []string
	if !f.Nullable {
		cases = append(cases, fmt.Sprintf("WHEN %s IS NULL THEN %s", value,
			fail(raisedNull, " is NULL, but its field is not nullable")))
	}
	tried := fmt.Sprintf("TRY_CAST(%s AS %s)", value, f.Type.SQL())
	lost := ""
	switch {
	case c.SQLType == f.Type.SQL() && f.Type != expr.DateTime && f.Type != expr.Date && f.Type != expr.Instant:
	case f.Type == expr.Date:
		stored, lost = tried, fmt.Sprintf("(%[1]s IS NULL OR NOT (%[2]s))", tried, expr.DayOfTable(tried))
	case f.Type == expr.Instant: // of infinity there are no microseconds
		stored, lost = tried, fmt.Sprintf("(%[1]s IS NULL OR (%[2]s) IS NOT TRUE)", tried,
			expr.InstantOfTable("make_timestamp(epoch_us("+tried+"))"))
	case f.Type == expr.DateTime:
		stored, lost = tried, fmt.Sprintf("(%[1]s IS NULL OR NOT %[2]s OR %[1]s <> date_trunc('millisecond', %[1]s))",
			tried, expr.OfTable(tried))
	default:
		stored, lost = tried, tried+" IS NULL"
	}
	if lost != "" {
		cases = append(cases, fmt.Sprintf("WHEN %s IS NOT NULL AND %s THEN %s", value, lost,
			fail(raisedUnfit, ": ", "CAST("+value+" AS VARCHAR)", sqltext.String(" does not fit "+f.Type.String()))))
	}
	if len(cases) == 0 {
		return stored
	}
	return "CASE " + strings.Join(cases, " ") + " ELSE " + stored + " END"
}

// explainQuery places the failure of a query at its text.
func explainQuery(n *script.Node) explanation {
	return func(_ context.Context, _ engine.Querier, cause error) error {
		if !engine.IsValueFault(cause) {
			return nil
		}
		pos := n.Query.Pos
		const tries = "; {{do sql}} tries queries on the same tables"
		message, hint := engine.Reason(cause), "change the query, or correct the rows that it meets"
		if what, way := engine.QueryWords(message); way != "" {
			message, hint = what, way
		}
		f := &fault.Error{Kind: fault.UserData, Message: message, Place: fault.Place{File: pos.File,
			Line: int64(pos.Line), Column: pos.Col}, Hint: hint + tries}
		switch raised, _ := engine.Raised(cause); raised.Kind {
		case raisedNull:
			f.Place.Field, f.Hint = raised.Subject,
				"write coalesce(…, value) in the query, or declare the field with nullable: true"
		case raisedUnfit:
			f.Place.Field, f.Hint = raised.Subject, "convert it in the query, or declare a type that holds it"
		}
		return f
	}
}
