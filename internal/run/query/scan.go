package query

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/io/files"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
)

// filesMax bounds the files that one query reads: the names that stand for
// them must not be longer than the shortest call.
const filesMax = 100

// fileCall is a call of scan_file.
type fileCall struct {
	start, end int // bytes of all of the call
	url        string
	urlAt      int
	separator  byte
	parquet    bool
	columns    []string // as far as they are known
}

// scanCall reads the arguments of scan_file('url', separator := ';', format := 'csv').
func (c *checker) scanCall(f node) {
	open, end, ok := c.src.call(f.location())
	if !ok || len(c.calls) >= filesMax {
		c.problem(f.location(), "", "a query can read %d files", filesMax)
		return
	}
	call := &fileCall{start: f.location(), end: c.src.tokens[end].End, separator: ',', urlAt: c.src.tokens[open].Start}
	given := ""
	for i, a := range f.list("children") {
		name, value := argument(a)
		text, isText := value.child("value")["value"].(string)
		switch {
		case name != "" && !inList(strings.ToLower(name), "separator", "format"):
			c.problem(a.first(), "it takes the file's address, separator and format", "%s has no such argument: %s",
				scanFile, name)
			return
		case value.text("class") != "CONSTANT" || !isText:
			c.problem(a.first(), "write it as a text in single quotes",
				"what %s reads must be known before the query runs", scanFile)
			return
		case i == 0 && name == "":
			call.url, call.urlAt = text, a.first()
		case strings.EqualFold(name, "separator"):
			if len(text) != 1 || text[0] >= 0x80 || strings.ContainsAny(text, "\"\r\n\x00") {
				c.problem(a.first(), "use one ASCII character that is neither a quote nor a line break",
					"%s cannot separate columns", sqltext.String(text))
				return
			}
			call.separator = text[0]
		case strings.EqualFold(name, "format"):
			given = strings.ToLower(text)
			if !inList(given, "csv", "parquet") {
				c.problem(a.first(), "it is csv or parquet", "there is no format %s", sqltext.String(text))
				return
			}
		default:
			c.problem(a.first(), "it takes the file's address, separator and format", "%s takes one address", scanFile)
			return
		}
	}
	if strings.TrimSpace(call.url) == "" {
		c.problem(call.urlAt, "write "+scanFile+"('file.csv')", "%s needs the address of a file", scanFile)
		return
	}
	if what := address.Records(call.url); what != "" && given == "" {
		c.problem(call.urlAt, "load it with a file_table, and give the query its table",
			"%s reads CSV and Parquet, not %s", scanFile, what)
		return
	}
	call.parquet = given == "parquet" || (given == "" && address.Parquet(call.url))
	c.calls = append(c.calls, call)
}

// argument takes name := value and name = value apart; name is "" without one.
func argument(a node) (name string, value node) {
	if a.text("type") == "COMPARE_EQUAL" {
		names, _ := a.child("left")["column_names"].([]any)
		if len(names) == 1 {
			name, _ = names[0].(string)
		}
		return name, a.child("right")
	}
	return a.text("alias"), a
}

// name replaces the i-th call in the query. It is as long as the call, so that places in the text stay, and
// still called scan_file.
func (f *fileCall) name(i int) string {
	name := fmt.Sprintf("__%d.%s", i, scanFile)
	return name + strings.Repeat(" ", max(f.end-f.start-len(name), 0))
}

// reader describes the file, after looking at its header or footer. columns
// are those that the query sees, with DuckDB's types.
func (d *describer) reader(ctx context.Context, f *fileCall) (_ *script.FileReader, columns []string, err error) {
	r := &script.FileReader{URLs: []script.FileURL{{URL: f.url}}, Parquet: f.parquet}
	if f.parquet {
		columns, err = d.parquetColumns(ctx, r)
		return r, columns, err
	}
	r.CSV = script.CSVReader{Separator: f.separator, ByHeader: true, FirstDataRecord: 1}
	header, err := files.Columns(ctx, d.look, f.url, r.CSV, false)
	if err != nil {
		return nil, nil, err
	}
	seen := map[string]bool{}
	for _, h := range header {
		name := h.Name
		if low := strings.ToLower(name); name == "" || seen[low] {
			f := fault.New(fault.UserData, "the header has %s", map[bool]string{true: "a column without a name",
				false: "two columns " + quote(name)}[name == ""])
			f.Hint = "read the file with a file_table, which picks columns; names that differ only by case are the same"
			if name == "" {
				f.Hint = "read the file with a file_table, which picks columns, and takes a header below titles: " +
					"csv: {hdr_line_idx: N}, counted from 0"
			}
			return nil, nil, f
		} else {
			seen[low] = true
		}
		r.Columns = append(r.Columns, &script.InputColumn{Name: name, Type: expr.String, Header: name})
		columns = append(columns, ident(name)+" VARCHAR")
	}
	return r, columns, nil
}

// parquetColumns reads the columns off a Parquet file's footer, in an instance
// of its own: that of the queries may open no file.
func (d *describer) parquetColumns(ctx context.Context, r *script.FileReader) (columns []string, err error) {
	at, done, err := d.look.At(ctx, r.URLs[0].URL, true)
	if err != nil {
		return nil, err
	}
	defer done()
	inputs, err := files.Inspect(ctx, r, at)
	if err != nil {
		return nil, err
	}
	if err := files.CheckQueryParquet(inputs[0]); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "thalweg-describe-")
	if err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	in, err := engine.OpenInstance(ctx, engine.InstanceConfig{Threads: 1, SpillDir: filepath.Join(dir, "spill"),
		Paths: []string{inputs[0].Path}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	cols, err := describeSQL(ctx, in, "SELECT * FROM read_parquet("+sqltext.String(sqltext.Glob(inputs[0].Path))+
		", hive_partitioning = false)")
	if err != nil {
		f := fault.New(fault.UserData, "cannot read the Parquet file: %s", engine.Reason(err))
		f.Err = err
		return nil, f
	}
	for _, c := range cols {
		columns = append(columns, ident(c.name)+" "+c.sqlType)
	}
	return columns, nil
}
