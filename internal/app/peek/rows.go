package peek

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"thalweg/internal/app/caller"
	"thalweg/internal/app/inspect"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/similar"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// Table asks for rows of a table of a run, in its canonical order if no other is said.
type Table struct {
	Run     state.RunKey
	Table   string   // also NAME__failed and NAME__bad
	Columns []string // none: all
	Where   string   // a condition of DuckDB's SQL over the columns; "": none
	Sort    []SortBy // rows that are equal by it come in canonical order
	From    int64    // number of the first row, from 0, of those that meet the condition
	Rows    int      // at most; 0: as many as a page has
}

// SortBy is a column by which rows are sorted, NULL last.
type SortBy struct {
	Column string
	Desc   bool
}

// Rows returns a page of a table. Without condition and sort, and where the table is stored in its order, it goes by
// the manifest to the parts that the page lies in, and by the numbers of rows to their row groups.
func (p *Pool) Rows(ctx context.Context, by caller.Caller, q Table) (view.Page, error) {
	t, columns, err := p.table(ctx, q)
	if err != nil {
		return view.Page{}, err
	}
	page, rows := newPage(max(q.From, 0)), p.rowsOf(q.Rows)
	if q.Where == "" {
		total := t.Rows()
		page.Total = &total
	}
	prepared, release, err := p.prepareTable(ctx, t, columns, q, page.From, rows)
	if err != nil {
		return view.Page{}, err
	}
	defer release()
	prepared.RowsMax, prepared.CellBytes = rows, p.limits.CellBytes
	ask := question{by: by.Actor, heavy: q.Where != "" || len(q.Sort) > 0, doing: "the page"}
	if q.Where != "" {
		ask.actor = by.Actor
	}
	answer, err := p.page(ctx, ask, prepared, &namedColumns{page, columns}, inspect.QueryOptions{})
	if err != nil {
		return view.Page{}, err
	}
	if end := page.From + int64(len(page.Rows)); answer.More || page.Total != nil && end < *page.Total &&
		len(page.Rows) > 0 {
		page.goOn()
	}
	return page.Page, nil
}

// namedColumns gives columns the names that the script has for them.
type namedColumns struct {
	*page
	columns []plan.Column
}

// Begin implements inspect.RowSink.
func (n *namedColumns) Begin(head inspect.QueryResult) error {
	if len(head.Columns) != len(n.columns) {
		return errGarbled
	}
	head.Columns = slices.Clone(head.Columns)
	for i, c := range n.columns {
		head.Columns[i] = c.Name
	}
	return n.page.Begin(head)
}

// table finds a table, and the columns of it that are wanted.
func (p *Pool) table(ctx context.Context, q Table) (inspect.RunTable, []plan.Column, error) {
	t, err := inspect.TableOf(ctx, p.home, q.Run, q.Table)
	if err != nil {
		return t, nil, err
	}
	if len(q.Columns) == 0 {
		return t, t.Layout.Columns, nil
	}
	var columns []plan.Column
	for _, name := range q.Columns {
		c, err := columnOf(t, name)
		if err != nil {
			return t, nil, err
		}
		columns = append(columns, c)
	}
	return t, columns, nil
}

func columnOf(t inspect.RunTable, name string) (plan.Column, error) {
	var names []string
	for _, c := range t.Layout.Columns {
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	f := &fault.Error{Kind: fault.Script, Code: fault.NotFound,
		Message: fmt.Sprintf("table %s of run %d has no column %q", t.Name, t.Run.Run, name),
		Hint:    "its columns: " + strings.Join(names, ", ")}
	if near := similar.Nearest(name, names); near != "" {
		f.Hint = "did you mean " + near + "?"
	}
	return plan.Column{}, f
}

// prepareTable makes the rows of a table readable from row from on: so many, 0 being all, which may be too many to be
// held in memory.
func (p *Pool) prepareTable(ctx context.Context, t inspect.RunTable, columns []plan.Column, q Table, from int64,
	rows int) (out inspect.Prepared, release func(), err error) {
	out.Ours = true
	if q.Where == "" && len(q.Sort) == 0 && !t.Scattered() {
		to := t.Rows()
		if rows > 0 {
			to = min(to, from+int64(rows))
		}
		paths, release, err := pipeline.FetchSlices(ctx, p.home.Parts, t.Table, t.RowSlices(from, to))
		if err != nil {
			return out, nil, err
		}
		out.Paths = slices.Sorted(maps.Values(paths))
		out.Threads = 1 // of a row group or two: a second one would look for work
		out.SQL, out.Then = inPieces(t, columns, from, to, paths)
		return out, release, nil
	}
	order, err := sortOf(t, q.Sort)
	if err != nil {
		return out, nil, err
	}
	paths, release, err := pipeline.FetchTables(ctx, p.home.Parts, []*plan.Table{t.Table})
	if err != nil {
		return out, nil, err
	}
	all, canonical := t.SelectOrdered(paths)
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = sqltext.Ident(c.Stored())
	}
	out.Paths, out.Condition = slices.Sorted(maps.Values(paths)), q.Where
	out.SQL = fmt.Sprintf("SELECT %s FROM (%s)", strings.Join(names, ", "), all)
	if q.Where != "" {
		out.SQL += " WHERE (\n" + q.Where + "\n)"
	}
	if order = append(order, canonical...); len(q.Sort) > 0 || t.Scattered() {
		out.SQL += " ORDER BY " + strings.Join(order, ", ")
	}
	if rows > 0 {
		out.SQL += fmt.Sprintf(" LIMIT %d OFFSET %d", rows+1, from)
	} else if out.Spool = true; from > 0 {
		out.SQL += fmt.Sprintf(" OFFSET %d", from)
	}
	return out, release, nil
}

// pieceBytes is about what the rows take in memory that are read by one statement.
const pieceBytes = 32 << 20

// inPieces reads a range of a table's rows by statements that are small enough.
func inPieces(t inspect.RunTable, columns []plan.Column, from, to int64, paths plan.Paths) (first string, then []string) {
	rows := max(pieceBytes*t.Rows()/max(t.Bytes(), 1), 1)
	for first = t.SelectRows(columns, from, min(from+rows, to), paths); from+rows < to; {
		from += rows
		then = append(then, t.SelectRows(columns, from, min(from+rows, to), paths))
	}
	return first, then
}

// sortOf lists the terms by which rows are sorted.
func sortOf(t inspect.RunTable, by []SortBy) (order []string, err error) {
	for _, s := range by {
		c, err := columnOf(t, s.Column)
		if err != nil {
			return nil, err
		}
		direction := " ASC NULLS LAST"
		if s.Desc {
			direction = " DESC NULLS LAST"
		}
		order = append(order, sqltext.Ident(c.Stored())+direction)
	}
	return order, nil
}
