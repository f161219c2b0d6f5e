package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

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
	home, err := local.Open(ctx, c.State, false)
	if err != nil {
		return err
	}
	defer home.Close()
	res, err := local.Query(ctx, home, local.QueryOptions{Workspace: c.Workspace, SQL: query, MemoryBytes: memory, RowsMax: c.Limit})
	if err != nil {
		return err
	}
	if err := c.print(a, res); err != nil {
		return err
	}
	if res.More {
		fmt.Fprintf(a.stderr, "only the first %d rows are shown; --limit 0 shows all\n", c.Limit)
	}
	return nil
}

func (c *sqlCmd) print(a *app, res local.QueryResult) error {
	switch c.Format {
	case "csv":
		return printCSV(a.data, res)
	case "json":
		for _, row := range res.Rows {
			obj := map[string]any{}
			for i, v := range row {
				obj[res.Columns[i]] = jsonCell(v)
			}
			if err := printJSON(a.data, obj); err != nil {
				return err
			}
		}
		return nil
	}
	headers := make([]any, len(res.Columns))
	for i, col := range res.Columns {
		headers[i] = col
	}
	t := a.newTable(headers...)
	t.SetOutputMirror(a.data)
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

// printCSV writes a NULL as nothing and an empty text as "", so that a reader
// can tell them apart.
func printCSV(out io.Writer, res local.QueryResult) error {
	w := bufio.NewWriter(out)
	line := func(cells []any) {
		for i, v := range cells {
			if i > 0 {
				w.WriteByte(',')
			}
			w.WriteString(csvCell(v))
		}
		w.WriteByte('\n') // bufio keeps the first error for Flush
	}
	header := make([]any, len(res.Columns))
	for i, name := range res.Columns {
		header[i] = name
	}
	line(header)
	for _, row := range res.Rows {
		line(row)
	}
	return w.Flush()
}

func csvCell(v any) string {
	if v == nil {
		return ""
	}
	s := fmt.Sprint(v)
	if s == "" || strings.ContainsAny(s, "\",\r\n") || s[0] == ' ' || s[0] == '\t' {
		return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	return s
}

// jsonCell is a value that JSON can carry: it has no NaN and no infinities.
func jsonCell(v any) any {
	if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		switch {
		case f > 0:
			return "Infinity"
		case f < 0:
			return "-Infinity"
		}
		return "NaN"
	}
	return v
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
	r := []rune(strings.ReplaceAll(s, "\n", "⏎"))
	if len(r) <= runesMax {
		return string(r)
	}
	return string(r[:runesMax-1]) + "…"
}
