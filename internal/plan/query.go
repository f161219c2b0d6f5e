package plan

import (
	"context"
	"fmt"
	"strings"

	"thalweg/internal/engine"
	"thalweg/internal/expr"
	"thalweg/internal/fault"
	"thalweg/internal/files"
	"thalweg/internal/script"
	"thalweg/internal/sqltext"
)

// A sql node has one batch: nobody but its author knows how its query could
// be cut. Its tables are views under the names that the query has for them, so
// that the query itself stays as its author wrote it.

// queryWorks lists the files that a query reads.
func (p *Planner) queryWorks(ctx context.Context, n *script.Node, in Inputs) ([]Work, []size, error) {
	info, err := queryInfo(n)
	if err != nil {
		return nil, nil, err
	}
	var w Work
	var s size
	for _, t := range in.tables(n) {
		s.rows += t.Rows()
		s.bytes += t.Bytes()
	}
	for _, f := range info.Files {
		groups, err := files.PlanSlicesBy(ctx, f.Reader, in.Copies, func(total int64) int64 { return total + 1 }, 1)
		if err != nil {
			return nil, nil, err
		}
		w.Scans = append(w.Scans, groups[0])
		for _, slice := range groups[0] {
			s.rows += max(slice.Count, 0) // lines of CSV are not counted
			s.bytes += slice.Bytes
		}
	}
	return []Work{w}, []size{s}, nil
}

func queryInfo(n *script.Node) (*script.QueryInfo, error) {
	if n.Query.Info == nil {
		return nil, fmt.Errorf("node %s: its query was never described", n.Name)
	}
	return n.Query.Info, nil
}

// queryTask makes the views and the SELECT of a sql node's rows.
func (p *Planner) queryTask(t *engine.Task, n *script.Node, in Inputs, layout Layout, b Batch) error {
	info, err := queryInfo(n)
	if err != nil {
		return err
	}
	for _, input := range n.Query.Inputs {
		table := in.Named[input.Creator.Table.Name]
		t.Setup = append(t.Setup, fmt.Sprintf("CREATE VIEW %s AS %s", sqltext.Ident(input.Name), p.queryInput(table, info, b)))
	}
	var prepares []func(context.Context) error
	for i, f := range info.Files {
		from, prepare, err := queryFile(t, f.Reader, b.Work.Scans[i], fmt.Sprintf("%s/scan%d", b.Scratch, i))
		if err != nil {
			return err
		}
		prepares = append(prepares, prepare)
		t.Setup = append(t.Setup, "CREATE SCHEMA "+sqltext.Ident(f.Schema), fmt.Sprintf("CREATE VIEW %s.scan_file AS SELECT * FROM %s", sqltext.Ident(f.Schema), from))
	}
	t.Prepare = func(ctx context.Context) error {
		for _, prepare := range prepares {
			if err := prepare(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	t.Query, t.Secluded = resultQuery(n, layout), true
	// The query's own ORDER BY, or ours behind it, says the order; what is below
	// has been made independent of it (package query), or runs on one thread.
	t.OneThread, t.FreeOrder = info.OneThread, true
	t.MemoryHint = "give more with --memory, or let the query have less at once: filter and aggregate in nodes before it, select only the columns that it needs; continue with --resume"
	t.Explain = explainQuery(n)
	return nil
}

// queryInput reads all of a table under the script's names, in canonical order
// where the query can tell.
func (p *Planner) queryInput(table *Table, info *script.QueryInfo, b Batch) string {
	s := scan{table: table, slices: wholeTable(table), paths: b.Paths, order: info.OneThread && table.Layout.OrderCols > 0}
	var cols []string
	for _, c := range table.Layout.Columns {
		s.fields = append(s.fields, c.Name)
		cols = append(cols, sqltext.Ident(c.Stored())+" AS "+sqltext.Ident(c.Name))
	}
	sql := fmt.Sprintf("SELECT %s FROM (%s)", strings.Join(cols, ", "), s.sql())
	if s.order {
		sql += " ORDER BY " + strings.Join(orderColumns(s.orderCols()), ", ")
	}
	return sql
}

// queryFile reads a file of a query: CSV as a file_table would, all of it
// text; Parquet with its own columns and types.
func queryFile(t *engine.Task, r *script.FileReader, slices []files.Slice, scratch string) (from string, prepare func(context.Context) error, err error) {
	for _, s := range slices {
		t.Paths = append(t.Paths, s.Path)
	}
	if r.Parquet {
		return files.QueryParquet(slices, scratch)
	}
	return files.ReadSQL(r, slices, scratch, false)
}

// resultQuery casts the query's columns to the fields, where each value must
// fit, and puts its rows into an order that depends on them alone, unless the
// query has one or none is wanted.
func resultQuery(n *script.Node, layout Layout) string {
	info := n.Query.Info
	names := make([]string, len(info.Columns))
	at := map[string]int{}
	for i, c := range info.Columns {
		names[i] = fmt.Sprintf("c%d", i)
		at[c.Name] = i
	}
	cols := make([]string, len(n.Table.Fields))
	keys := make([]string, len(n.Table.Fields))
	for i, f := range n.Table.Fields {
		c := at[f.Name]
		cols[i] = fittedSQL(f, info.Columns[c], "q."+names[c]) + " AS " + sqltext.Ident(layout.Columns[i].Stored())
		keys[i] = fmt.Sprint(i + 1)
	}
	// The query is on lines of its own: it may end in a comment.
	q := fmt.Sprintf("SELECT %s FROM (\n%s\n) AS q(%s)", strings.Join(cols, ", "), info.SQL, strings.Join(names, ", "))
	if !info.Sorted && n.Query.Ordered {
		q += " ORDER BY " + strings.Join(keys, ", ")
	}
	return q
}

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
	stored := value
	var cases []string
	if !f.Nullable {
		cases = append(cases, fmt.Sprintf("WHEN %s IS NULL THEN %s", value, fail(raisedNull, " is NULL, but its field is not nullable")))
	}
	tried := fmt.Sprintf("TRY_CAST(%s AS %s)", value, f.Type.SQL())
	lost := ""
	switch {
	case c.SQLType == f.Type.SQL() && f.Type != expr.DateTime:
	case f.Type == expr.DateTime:
		stored, lost = tried, fmt.Sprintf("(%[1]s IS NULL OR NOT %[2]s OR %[1]s <> date_trunc('millisecond', %[1]s))", tried, expr.OfTable(tried))
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
func explainQuery(n *script.Node) func(context.Context, engine.Querier, error) error {
	return func(_ context.Context, _ engine.Querier, cause error) error {
		if !engine.IsValueFault(cause) {
			return nil
		}
		pos := n.Query.Pos
		f := &fault.Error{Kind: fault.UserData, Message: engine.Reason(cause),
			Place: fault.Place{File: pos.File, Line: int64(pos.Line), Column: pos.Col}, Hint: "change the query, or correct the rows that it meets; thalweg sql tries queries on the same tables"}
		switch raised, _ := engine.Raised(cause); raised.Kind {
		case raisedNull:
			f.Place.Field, f.Hint = raised.Subject, "write coalesce(…, value) in the query, or declare the field with nullable: true"
		case raisedUnfit:
			f.Place.Field, f.Hint = raised.Subject, "convert it in the query, or declare a type that holds it"
		}
		return f
	}
}
