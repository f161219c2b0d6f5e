package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"thalweg/internal/fault"
	"thalweg/internal/local"
)

type sqlCmd struct {
	Query  string `arg:"" help:"SQL of DuckDB; - reads it from standard input. Tables: NAME for the last run that wrote it, runN.NAME for run N's."`
	Format string `help:"${enum}." enum:"table,csv,json" default:"table"`
	Limit  int    `help:"Rows to print at most, 0 for all." default:"1000"`
	Memory string `help:"Memory for the query." default:"2GB" placeholder:"SIZE"`
	stateFlags
}

// queryBytesMax bounds a query read from standard input.
const queryBytesMax = 1 << 20

func (c *sqlCmd) Run(ctx context.Context, a *app) error {
	memory, err := parseSize(c.Memory)
	if err != nil {
		return err
	}
	query := c.Query
	if query == "-" {
		data, err := io.ReadAll(io.LimitReader(os.Stdin, queryBytesMax))
		if err != nil {
			return &fault.Error{Kind: fault.Environment, Message: "read the query from standard input", Err: err}
		}
		query = string(data)
	}
	home, err := c.openHome(ctx, a, false)
	if err != nil {
		return err
	}
	defer home.Close()
	res, err := local.Query(ctx, home, local.QueryOptions{Workspace: c.Workspace, SQL: query, MemoryBytes: memory, RowsMax: c.Limit})
	if err != nil {
		return err
	}
	for _, w := range res.Warnings {
		fmt.Fprintf(a.stderr, "%s %s\n", a.mark("warning:", yellow), w)
	}
	if err := c.print(a, res); err != nil {
		return err
	}
	if res.More {
		fmt.Fprintf(a.stderr, "only the first %s shown; --limit 0 shows all\n", counted(c.Limit, "row is", "rows are"))
	}
	return nil
}

func (c *sqlCmd) print(a *app, res local.QueryResult) error {
	if c.Format != "table" {
		if note := renameEqual(res.Columns); note != "" {
			fmt.Fprintln(a.stderr, note)
		}
	}
	switch c.Format {
	case "csv":
		return printCSV(a.data, res)
	case "json":
		return printRows(a.data, res)
	}
	headers := make([]any, len(res.Columns))
	for i, col := range res.Columns {
		headers[i] = col
	}
	t := a.newTable(headers...)
	t.out, t.sheet, t.hint = a.data, true, "name fewer columns, or see them with --format json"
	for _, row := range res.Rows {
		cells := make([]any, len(row))
		for i, v := range row {
			cells[i] = shorten(shownCell(v))
		}
		t.AppendRow(cells)
	}
	t.Render()
	return nil
}

// shownCell is a cell of a table on the screen: NULL is not the text NULL.
func shownCell(v any) string {
	switch v {
	case nil:
		return "NULL"
	case "NULL":
		return `"NULL"`
	}
	return fmt.Sprint(v)
}

// shorten keeps a long text from pushing the table off the screen.
func shorten(s string) string {
	const runesMax = 80
	return shortenTo(s, runesMax)
}

func shortenTo(s string, runesMax int) string {
	r := []rune(plain(s))
	if len(r) <= runesMax {
		return string(r)
	}
	return string(r[:runesMax-1]) + "…"
}
