package peek

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"thalweg/internal/app/caller"
	"thalweg/internal/app/inspect"
	"thalweg/internal/app/view"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/outfile"
)

// Format is the form of a download.
type Format string

// The formats.
const (
	CSV     Format = "csv"
	NDJSON  Format = "ndjson"
	Parquet Format = "parquet"
	XLSX    Format = "xlsx" // a sheet; texts stay texts, and no cell is a formula
)

// Download says what is downloaded, and in which form: the rows of a query, or of a table.
type Download struct {
	SQL    *SQL   // nil: of Table
	Table  *Table // Rows: at most, 0: all
	Format Format
	// Spreadsheet is for CSV that a spreadsheet will open: texts that it would take for formulas, those that begin with
	// =, +, -, @, a tab or a carriage return, get an apostrophe before them. Such files are not what the table is.
	Spreadsheet bool
	// Warned is told of what is wrong with the tables of SQL, before there are rows; may be nil.
	Warned func(warnings []string)
}

// downloadArgs ask for a file, as a stream of its bytes.
type downloadArgs struct {
	inspect.Prepared
	Format      Format   `json:"format"`
	Spreadsheet bool     `json:"spreadsheet,omitempty"`
	Columns     []string `json:"columns,omitempty"` // their names; none: as the query has them
}

// Download writes rows to out. If it fails, what was written is not all.
func (p *Pool) Download(ctx context.Context, by caller.Caller, d Download, out io.Writer) error {
	switch d.Format {
	case CSV, NDJSON, Parquet, XLSX:
	default:
		return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("there is no format %q for a download", d.Format),
			Hint: "take csv, ndjson, parquet or xlsx"}
	}
	args := downloadArgs{Format: d.Format, Spreadsheet: d.Spreadsheet}
	ask := question{by: by.Actor, heavy: true, method: askDownload, doing: "the download", limit: p.limits.DownloadTime}
	opts := inspect.QueryOptions{}
	if d.SQL != nil {
		prepared, of, err := p.prepare(ctx, by, *d.SQL)
		if err != nil {
			return err
		}
		defer prepared.Close()
		if d.Warned != nil {
			d.Warned(prepared.Warnings)
		}
		args.Prepared, args.RowsMax, opts, ask.actor = prepared.Prepared, d.SQL.Rows, of, by.Actor
		args.Spool = true
	} else {
		release, err := p.downloadTable(ctx, *d.Table, &args)
		if err != nil {
			return err
		}
		defer release()
		if d.Table.Where != "" {
			ask.actor = by.Actor
		}
	}
	return p.download(ctx, ask, args, opts, out)
}

func (p *Pool) downloadTable(ctx context.Context, q Table, args *downloadArgs) (release func(), err error) {
	t, columns, err := p.table(ctx, q)
	if err != nil {
		return nil, err
	}
	for _, c := range columns {
		args.Columns = append(args.Columns, c.Name)
	}
	args.Prepared, release, err = p.prepareTable(ctx, t, columns, q, max(q.From, 0), q.Rows)
	args.RowsMax = q.Rows
	return release, err
}

func (p *Pool) download(ctx context.Context, ask question, args downloadArgs, opts inspect.QueryOptions,
	to io.Writer) error {
	out := &counted{ctx: ctx, to: to}
	ctx = view.HearProgress(ctx, out.hear)
	args.Threads = min(threadsMax, budget.Cores())
	ask.args, ask.read = args, p.reads(args.Paths)
	text, err := p.ask(ctx, ask, func(from io.Reader) error {
		n, err := io.Copy(out, io.LimitReader(from, p.limits.DownloadBytes))
		if err == nil && n == p.limits.DownloadBytes {
			err = &fault.Error{Kind: fault.Script, Code: fault.TooMany,
				Message: fmt.Sprintf("the download has more than %d MiB", p.limits.DownloadBytes>>20),
				Hint:    "take fewer rows or columns, or Parquet, which is smaller; a run writes files of any size"}
		}
		return err
	})
	if err != nil {
		return err
	}
	var answer queryAnswer
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("decode an answer: %w", err)
	}
	if answer.Refused != nil {
		return p.refusal(ctx, answer.Refused, opts)
	}
	return nil
}

// download makes the file, in the child.
func (h *bareHost) download(ctx context.Context, d downloadArgs, out *bufio.Writer) (queryAnswer, error) {
	prepared := h.limited(d.Prepared)
	if d.Format == Parquet {
		return h.parquet(ctx, prepared, d.Columns, out)
	}
	if d.Format == XLSX {
		return h.sheet(ctx, prepared, d.Columns, out)
	}
	rows := newFormat(d, out)
	done, err := prepared.Execute(ctx, h.spill(), named{rows, d.Columns})
	return queryAnswer{Executed: done}, errors.Join(err, rows.Flush(), out.Flush())
}

// sheet writes a workbook. One that is broken off has no end.
func (h *bareHost) sheet(ctx context.Context, p inspect.Prepared, names []string, out *bufio.Writer) (answer queryAnswer,
	err error) {
	errRefused := errors.New("refused")
	err = outfile.StreamSheet(out, "rows", func(add func([]any) error) (err error) {
		answer.Executed, err = p.Execute(ctx, h.spill(), named{&sheetRows{add: add}, names})
		if err == nil && answer.Refused != nil {
			err = errRefused
		}
		return err
	})
	if errors.Is(err, errRefused) {
		return answer, nil
	}
	return answer, errors.Join(err, out.Flush())
}

// sheetRows is an inspect.RowSink of a sheet. Numbers that Excel keeps whole are numbers there, all others texts.
type sheetRows struct {
	add    func([]any) error
	scales []int // of decimals; -1: the column has none
}

// Begin implements inspect.RowSink.
func (s *sheetRows) Begin(head inspect.QueryResult) error {
	header := make([]any, len(head.Columns))
	for i, name := range head.Columns {
		header[i] = name
		scale := -1
		if _, err := fmt.Sscanf(head.Types[i], "DECIMAL(%d,%d)", new(int), &scale); err != nil {
			scale = -1
		}
		s.scales = append(s.scales, scale)
	}
	return s.add(header)
}

// Row implements inspect.RowSink.
func (s *sheetRows) Row(cells []any) error {
	for i, cell := range cells {
		switch v := cell.(type) {
		case nil, bool:
		case int64:
			cells[i] = sheetNumber(inspect.Text(v), 0)
		case float64:
			if cells[i] = inspect.Text(v); !math.IsNaN(v) && !math.IsInf(v, 0) {
				cells[i] = outfile.Number{Value: v}
			}
		default:
			if cells[i] = inspect.Text(v); s.scales[i] >= 0 {
				cells[i] = sheetNumber(inspect.Text(v), s.scales[i])
			}
		}
	}
	return s.add(cells)
}

// sheetNumber is a number's text as a number, if Excel keeps all of its digits.
func sheetNumber(text string, scale int) any {
	digits := strings.TrimLeft(strings.NewReplacer("-", "", ".", "").Replace(text), "0")
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || len(digits) > outfile.SheetDigits {
		return text
	}
	return outfile.Number{Value: f, Scale: scale}
}

// parquet writes a file of DuckDB's, and sends it.
func (h *bareHost) parquet(ctx context.Context, p inspect.Prepared, names []string, out *bufio.Writer) (_ queryAnswer,
	err error) {
	p.Parquet = filepath.Join(h.dir, "download.parquet")
	defer func() { err = errors.Join(err, ignoreMissing(os.Remove(p.Parquet))) }()
	done, err := p.Execute(ctx, h.spill(), nil)
	if err != nil || done.Refused != nil {
		return queryAnswer{Executed: done}, err
	}
	f, err := os.Open(p.Parquet)
	if err != nil {
		return queryAnswer{}, fmt.Errorf("read what was written: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	about, err := f.Stat()
	if err != nil {
		return queryAnswer{}, fmt.Errorf("look at what was written: %w", err)
	}
	view.TellProgress(ctx, view.Progress{Phase: "handing over the file", Of: about.Size(), Unit: "bytes"})
	_, err = io.Copy(out, f)
	return queryAnswer{}, errors.Join(err, out.Flush())
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// named gives the columns of rows other names, if there are any.
type named struct {
	inspect.RowSink
	names []string
}

// Begin implements inspect.RowSink.
func (n named) Begin(head inspect.QueryResult) error {
	if len(n.names) == len(head.Columns) {
		head.Columns = n.names
	}
	head.RenameEqual()
	return n.RowSink.Begin(head)
}

// newFormat writes rows as CSV or NDJSON.
func newFormat(d downloadArgs, out *bufio.Writer) inspect.RowWriter {
	form := inspect.NewRowWriter(map[Format]string{CSV: "csv", NDJSON: "json"}[d.Format], out)
	if d.Format == CSV && d.Spreadsheet {
		return &harmless{RowWriter: form}
	}
	return form
}

// harmless writes rows without texts that a spreadsheet takes for formulas: see Download.Spreadsheet.
type harmless struct {
	inspect.RowWriter
	text []bool // of each column: it can have any text
}

// Begin implements inspect.RowSink.
func (h *harmless) Begin(head inspect.QueryResult) error {
	columns := make([]string, len(head.Columns))
	for i, name := range head.Columns {
		columns[i] = unformulated(name)
	}
	head.Columns, h.text = columns, head.Text
	return h.RowWriter.Begin(head)
}

// Row implements inspect.RowSink.
func (h *harmless) Row(cells []any) error {
	for i, cell := range cells {
		if v, is := cell.(string); is && h.text[i] {
			cells[i] = unformulated(v)
		}
	}
	return h.RowWriter.Row(cells)
}

// unformulated is a text that no spreadsheet takes for a formula.
func unformulated(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
