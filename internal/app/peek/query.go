package peek

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"thalweg/internal/app/caller"
	"thalweg/internal/app/inspect"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/view"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
)

// SQL asks for the rows of a query over the tables of a workspace's runs: see inspect.Query.
type SQL struct {
	Workspace string
	SQL       string
	Rows      int // at most; 0: as many as a page has
}

// Query returns the first rows of a query.
func (p *Pool) Query(ctx context.Context, by caller.Caller, q SQL) (view.Page, error) {
	prepared, opts, err := p.prepare(ctx, by, q)
	if err != nil {
		return view.Page{}, err
	}
	defer prepared.Close()
	prepared.RowsMax, prepared.CellBytes = p.rowsOf(q.Rows), p.limits.CellBytes
	page := newPage(0)
	page.Warnings = append(page.Warnings, prepared.Warnings...)
	answer, err := p.page(ctx, question{by: by.Actor, actor: by.Actor, heavy: true, doing: "the query"},
		prepared.Prepared, page, opts)
	if err != nil {
		return view.Page{}, err
	}
	if answer.More {
		page.goOn()
	}
	return page.Page, nil
}

func (p *Pool) prepare(ctx context.Context, by caller.Caller, q SQL) (*inspect.PreparedQuery, inspect.QueryOptions,
	error) {
	opts := inspect.QueryOptions{Process: runtime.Process{Caller: by}, Workspace: q.Workspace, SQL: q.SQL}
	prepared, err := inspect.Prepare(ctx, p.home, opts)
	return prepared, opts, err
}

// rowsOf returns the rows of a page that somebody wants so many of.
func (p *Pool) rowsOf(wanted int) int {
	if wanted <= 0 {
		return p.limits.Rows
	}
	return min(wanted, p.limits.Rows)
}

// Execute implements inspect.Executor: nothing is cut off, and what is more than a page fails.
func (p *Pool) Execute(ctx context.Context, prepared inspect.Prepared, rows inspect.RowSink) (inspect.Executed, error) {
	if prepared.Parquet != "" {
		return inspect.Executed{}, fault.New(fault.Bug, "a child writes no files of others")
	}
	bounded := &boundedSink{RowSink: rows, left: p.limits.PageBytes}
	answer, err := p.rows(ctx, question{by: prepared.By.Actor, actor: prepared.By.Actor, heavy: true, doing: "the query",
		limit: p.limits.Time}, queryArgs{Prepared: prepared}, bounded)
	return answer.Executed, err
}

// boundedSink refuses more bytes than a page has.
type boundedSink struct {
	inspect.RowSink
	left int
}

// Row implements inspect.RowSink.
func (b *boundedSink) Row(cells []any) error {
	for _, cell := range cells {
		b.left -= inspect.CellBytes(cell)
	}
	if b.left < 0 {
		return &fault.Error{Kind: fault.Script, Code: fault.TooMany,
			Message: "the rows of the query have more bytes than are answered at once",
			Hint:    "ask for fewer rows or columns, or download them"}
	}
	return b.RowSink.Row(cells)
}

// page asks for the rows of a page; opts are what was asked, for what is said if it cannot be.
func (p *Pool) page(ctx context.Context, q question, prepared inspect.Prepared, to inspect.RowSink,
	opts inspect.QueryOptions) (queryAnswer, error) {
	q.limit = p.limits.Time
	answer, err := p.rows(ctx, q, queryArgs{Prepared: prepared, PageBytes: p.limits.PageBytes}, to)
	if err == nil && answer.Refused != nil {
		err = p.refusal(ctx, answer.Refused, opts)
	}
	return answer, err
}

// rows asks a child for rows.
func (p *Pool) rows(ctx context.Context, q question, args queryArgs, to inspect.RowSink) (answer queryAnswer,
	err error) {
	q.method, q.read = askQuery, p.reads(args.Paths)
	args.Threads = min(cmp.Or(args.Threads, threadsMax), threadsMax, budget.Cores())
	q.args = args
	cellMax := int64(p.limits.PageBytes)
	text, err := p.ask(ctx, q, func(from io.Reader) error { return readRows(from, cellMax, to) })
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return answer, fmt.Errorf("decode an answer: %w", err)
	}
	return answer, nil
}

// page is an inspect.RowSink that keeps rows as people see them.
type page struct{ view.Page }

func newPage(from int64) *page {
	return &page{view.Page{From: from, Columns: []view.PageColumn{}, Rows: [][]*string{}, Cut: []view.CutCell{},
		Warnings: []string{}}}
}

// Begin implements inspect.RowSink.
func (p *page) Begin(head inspect.QueryResult) error {
	for i, name := range head.Columns {
		p.Columns = append(p.Columns, view.PageColumn{Name: name, Type: head.Types[i], Text: head.Text[i]})
	}
	return nil
}

// Row implements inspect.RowSink.
func (p *page) Row(cells []any) error {
	row := make([]*string, len(cells))
	for i, cell := range cells {
		if cell == nil {
			continue
		}
		text := inspect.Text(cell)
		if _, is := cell.(inspect.CutText); is {
			p.Cut = append(p.Cut, view.CutCell{Row: len(p.Rows), Column: i})
		}
		row[i] = &text
	}
	p.Rows = append(p.Rows, row)
	return nil
}

// goOn says that there are more rows.
func (p *page) goOn() {
	next := p.From + int64(len(p.Rows))
	p.Next = &next
}
