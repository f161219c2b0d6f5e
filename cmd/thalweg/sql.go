package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"thalweg/internal/app"
	"thalweg/internal/base/fault"

	"golang.org/x/term"
)

type sqlCmd struct {
	Query  string `arg:"" optional:"" help:"SQL of DuckDB, or - to read it from standard input; default: a session."`
	Format string `help:"${enum}; default: as the file's name ends." enum:"table,csv,json,ndjson,parquet" default:"table"`
	Output string `short:"o" help:"File to write to, instead of standard output." type:"path" placeholder:"FILE"`
	overwriteFlag
	Limit  int    `help:"Rows to print at most, 0 for all; default: 1000, and all to a file." default:"-1"`
	JSON   bool   `name:"json" help:"As --format json; with another format only failures are JSON."`
	Memory string `help:"Memory for the query." default:"2GB" placeholder:"SIZE"`
	stateFlags
}

// Help implements kong.HelpProvider.
func (c *sqlCmd) Help() string {
	return "Tables are NAME, of the last run that wrote it, and runN.NAME, of run N. In a session queries end in ; and " +
		"\\? says what else there is. The formats json and ndjson are the same: an object a line. Names of files end in " +
		".csv, .json, .ndjson, .jsonl or .parquet."
}

// queryBytesMax bounds a query read from standard input.
const queryBytesMax = 1 << 20

func (c *sqlCmd) Run(ctx context.Context, a *console) (err error) {
	memory, err := parseSize(c.Memory)
	if err != nil {
		return err
	}
	if err := c.choose(); err != nil {
		return err
	}
	query := c.Query
	if query == "-" {
		data, err := io.ReadAll(io.LimitReader(os.Stdin, queryBytesMax+1))
		if err != nil {
			return &fault.Error{Kind: fault.Environment, Message: "read the query from standard input", Err: err}
		}
		if len(data) > queryBytesMax {
			return fault.New(fault.Script, "the query on standard input is longer than %d bytes", queryBytesMax)
		}
		query = string(data)
	}
	home, err := c.openHome(ctx, a, false)
	if err != nil {
		return err
	}
	defer home.Close()
	opts := app.Query{Workspace: c.Workspace, Process: app.Process{MemoryBytes: memory}, RowsMax: c.Limit}
	if c.Query == "" && a.server != "" {
		return &fault.Error{Kind: fault.Script, Message: "there are no sessions through a server", Hint: "give one query"}
	}
	if c.Query == "" {
		if c.Format == formatParquet || c.Output != "" {
			return &fault.Error{Kind: fault.Script, Message: "only one query can be written to a file",
				Hint: "name the query: thalweg sql 'SELECT …' -o FILE"}
		}
		return c.session(ctx, a, home, opts)
	}
	opts.SQL = query
	if c.Format == formatParquet && c.Output == "" && term.IsTerminal(int(os.Stdout.Fd())) {
		return &fault.Error{Kind: fault.Script, Message: "Parquet is not for a terminal",
			Hint: "write it to a file: -o FILE"}
	}
	if a.server == "" { // else its runs have nothing to do with files that are here
		if err := c.spare(ctx, home); err != nil {
			return err
		}
	}
	out, done, err := c.output(a)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, done(err)); err == nil && c.Output != "" && a.server == "" {
			_ = home.Data.Written(ctx, c.Workspace, c.Output) // else it is not replaced once a run has read it
		}
	}()
	if a.server != "" && c.Format != formatTable && (c.Format == formatParquet || c.Limit == 0) {
		return c.download(ctx, a, query, out)
	}
	if c.Format == formatParquet {
		return c.parquet(ctx, a, home, opts, out)
	}
	return c.ask(ctx, a, home, opts, out)
}

const (
	formatTable   = "table"
	formatParquet = "parquet"
)

// shownRowsMax of a query are printed, unless the user says how many.
const shownRowsMax = 1000

// choose says in what form the rows are written, and how many, where the user does not.
func (c *sqlCmd) choose() error {
	if c.Limit < 0 {
		if c.Limit = shownRowsMax; c.Output != "" {
			c.Limit = 0
		}
	}
	if c.Format != formatTable {
		return nil
	}
	if c.JSON {
		c.Format = "json"
	}
	if c.Output == "" {
		return nil
	}
	formats := map[string]string{".csv": "csv", ".json": "json", ".ndjson": "json", ".jsonl": "json",
		".parquet": formatParquet, ".txt": c.Format, "": c.Format}
	ending := strings.ToLower(filepath.Ext(c.Output))
	format, ok := formats[ending]
	if !ok {
		return &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("--output: what form %s should have is not known: it is not told by %s",
				c.Output, ending),
			Hint: "let its name end in .csv, .ndjson, .parquet or .txt, or name the form with --format"}
	}
	c.Format = format
	return nil
}

// spare refuses to replace a file that runs have read or written, or were made from.
func (c *sqlCmd) spare(ctx context.Context, home *app.App) error {
	return outFile{path: c.Output, overwrite: c.Overwrite}.spare(ctx, home, c.Workspace)
}

// output opens where the rows go; done closes it, and leaves no half file.
func (c *sqlCmd) output(a *console) (to io.Writer, done func(error) error, err error) {
	if c.Output == "" {
		return a.data, func(error) error { return nil }, nil
	}
	if err := os.MkdirAll(filepath.Dir(c.Output), 0o755); err != nil {
		return nil, nil, &fault.Error{Kind: fault.Environment, Message: "make the directory of " + c.Output, Err: err}
	}
	f, err := os.CreateTemp(filepath.Dir(c.Output), ".thalweg-sql-*")
	if err != nil {
		return nil, nil, &fault.Error{Kind: fault.Environment, Message: "write " + c.Output, Err: err}
	}
	return f, func(failed error) error {
		err := errors.Join(failed, f.Chmod(0o644), f.Close())
		if err == nil {
			err = os.Rename(f.Name(), c.Output)
		}
		if err == nil {
			return nil
		}
		_ = os.Remove(f.Name()) // it is a temporary file
		if failed != nil {
			return nil // which is told already
		}
		return &fault.Error{Kind: fault.Environment, Message: "write " + c.Output, Err: err}
	}, nil
}

// ask asks one query and prints its rows: of a table on the screen all together, else as they come.
func (c *sqlCmd) ask(ctx context.Context, a *console, home *app.App, opts app.Query,
	out io.Writer) error {
	if c.Format != formatTable {
		opts.Sink = rowsPrinter{app.NewRowWriter(c.Format, out), a}
	}
	res, err := home.Operations.Query(ctx, a.caller(), opts)
	if printer, ok := opts.Sink.(rowsPrinter); ok { // also of a query that fails behind rows that it has given
		err = cmp.Or(err, printer.Flush())
	}
	switch {
	case err != nil:
		return err
	case c.Format == formatTable:
		a.warnQuery(res)
		if err := c.print(a, out, res); err != nil {
			return err
		}
	}
	if res.More {
		fmt.Fprintf(a.stderr, "only the first %s shown; --limit 0 shows all\n", counted(c.Limit, "row is", "rows are"))
	}
	return nil
}

// rowsPrinter writes rows for programs. What is to say of them is said before.
type rowsPrinter struct {
	app.RowWriter
	a *console
}

// Begin implements app.RowWriter.
func (p rowsPrinter) Begin(head app.QueryResult) error {
	p.a.warnQuery(head)
	if note := head.RenameEqual(); note != "" {
		fmt.Fprintln(p.a.stderr, note)
	}
	return p.RowWriter.Begin(head)
}

func (a *console) warnQuery(res app.QueryResult) {
	for _, w := range res.Warnings {
		fmt.Fprintf(a.stderr, "%s %s\n", a.mark("warning:", yellow), w)
	}
}

// parquet writes all rows of a query as a Parquet file.
func (c *sqlCmd) parquet(ctx context.Context, a *console, home *app.App, opts app.Query,
	out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "thalweg-sql-*")
	if err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "make a temporary directory", Err: err}
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	opts.Parquet = filepath.Join(dir, "rows.parquet")
	res, err := home.Data.Query(ctx, a.caller(), opts)
	if err != nil {
		return err
	}
	a.warnQuery(res)
	f, err := os.Open(opts.Parquet)
	if err != nil {
		return fmt.Errorf("read the rows: %w", err)
	}
	defer f.Close()
	if _, err := io.Copy(out, f); err != nil && !errors.Is(err, syscall.EPIPE) {
		return &fault.Error{Kind: fault.Environment, Message: "write the rows", Err: err}
	}
	return nil
}

// download writes what a page of a server does not hold.
func (c *sqlCmd) download(ctx context.Context, a *console, query string, out io.Writer) error {
	client, err := a.serverClient()
	if err != nil {
		return err
	}
	format := c.Format
	if format == "json" {
		format = "ndjson"
	}
	err = client.Download(ctx, c.Workspace, query, format, c.Limit, out, func(text string) {
		fmt.Fprintf(a.stderr, "%s %s\n", a.mark("warning:", yellow), plain(text))
	})
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

func (c *sqlCmd) print(a *console, out io.Writer, res app.QueryResult) error {
	headers := make([]any, len(res.Columns))
	for i, col := range res.Columns {
		headers[i] = col
	}
	t := a.newTable(headers...)
	t.out, t.sheet, t.hint = out, true, "name fewer columns, or see them with --format json"
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
