package files

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"thalweg/internal/expr"
	"thalweg/internal/fault"
	"thalweg/internal/script"
)

// diagnoseCSV goes through the slices in order: first the structure of each
// as encoding/csv sees it, then its first value that does not convert, which
// DuckDB finds.
func diagnoseCSV(ctx context.Context, db Querier, r *script.FileReader, slices []Slice, scratchDir string) error {
	for _, s := range slices {
		plan, err := planCSV(r, []Slice{s}, filepath.Join(scratchDir, "diagnose"), true)
		if err != nil {
			return err
		}
		if len(plan.runs) == 0 {
			continue
		}
		if err := s.unchanged(); err != nil {
			return err
		}
		c := csvCopy{r: r, slice: s, head: plan.runs[0].head, lines: plan.runs[0].head.lines}
		if err := c.checkStructure(ctx); err != nil {
			return err
		}
		if err := plan.prepare(ctx); err != nil {
			return err
		}
		if err := c.checkValues(ctx, db, plan); err != nil {
			return err
		}
	}
	return nil
}

// errStop ends a walk.
var errStop = errors.New("stop")

// csvPosition is where a record of a walk is.
type csvPosition struct {
	record int64 // 0-based data record of the file
	line   int64 // 1-based physical line at which the walk started
	start  int64 // byte offset of the record, blank lines before it included
	end    int64
	reader *csv.Reader
}

// walk calls visit for each record of the slice.
func (c *csvCopy) walk(ctx context.Context, visit func(fields []string, at csvPosition) error) error {
	f, err := os.Open(c.slice.Path)
	if err != nil {
		return openFault(c.slice.URL, err)
	}
	defer f.Close()
	offset, length := c.dataRange()
	in := newCSVReader(c.r, bufio.NewReaderSize(io.NewSectionReader(f, offset, length), scanBlockBytes))
	in.FieldsPerRecord = c.head.fields
	at := csvPosition{record: c.slice.FirstRecord, line: c.firstLine(), start: offset, reader: in}
	for ; ; at.record++ {
		if at.record%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		fields, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if errors.Is(err, csv.ErrFieldCount) {
			line, _ := in.FieldPos(0)
			return raggedFault(c.slice.URL, at.line+int64(line)-1, at.record, len(fields), c.head.fields)
		}
		if err != nil {
			return openFault(c.slice.URL, err)
		}
		at.end = offset + in.InputOffset()
		if err := visit(fields, at); err != nil {
			if errors.Is(err, errStop) {
				return nil
			}
			return err
		}
		at.start = at.end
	}
}

// checkStructure finds what no reading of values can survive.
func (c *csvCopy) checkStructure(ctx context.Context) error {
	return c.walk(ctx, func(fields []string, at csvPosition) error {
		if at.end-at.start > MaxRecordBytes {
			line, _ := at.reader.FieldPos(0)
			return longRecordFault(c.slice.URL, at.line+int64(line)-1)
		}
		for i, n := range c.head.index {
			if utf8.ValidString(fields[n]) {
				continue
			}
			f := inputFault(fault.UserData, c.slice.URL, "column %s is not valid UTF-8", c.r.Columns[i].Name)
			c.place(f, at, i, strings.ToValidUTF8(fields[n], "\uFFFD"))
			f.Hint = "convert the file to UTF-8"
			return f
		}
		return nil
	})
}

// place fills in where column i of the record is.
func (c *csvCopy) place(f *fault.Error, at csvPosition, i int, value string) {
	line, column := at.reader.FieldPos(c.head.index[i])
	f.Place.Line = at.line + int64(line) - 1
	f.Place.Column = c.character(at, line, column)
	f.Place.Record = at.record + 1
	f.Place.Field = c.r.Columns[i].Name
	f.Place.Value = shorten(value)
}

// character turns encoding/csv's byte column into one that counts characters;
// line counts from the start of the walk.
func (c *csvCopy) character(at csvPosition, line, column int) int {
	f, err := os.Open(c.slice.Path)
	if err != nil {
		return column
	}
	defer f.Close()
	raw := make([]byte, at.end-at.start)
	if _, err := f.ReadAt(raw, at.start); err != nil {
		return column
	}
	// The record's last line is the reader's current one: count from its first.
	first, _ := at.reader.FieldPos(0)
	for bytes.HasPrefix(raw, newline) || bytes.HasPrefix(raw, crlfBytes) {
		raw = raw[bytes.IndexByte(raw, '\n')+1:]
	}
	lines := bytes.SplitAfter(raw, newline)
	if n := line - first; n >= 0 && n < len(lines) && column-1 <= len(lines[n]) {
		return utf8.RuneCount(lines[n][:column-1]) + 1
	}
	return column
}

// checkValues asks DuckDB for the first record with a value that is neither
// blank nor of its column's type.
func (c *csvCopy) checkValues(ctx context.Context, db Querier, plan *csvPlan) error {
	var bad, which []string
	texts := columnTexts(c.r, c.head)
	for i, col := range c.r.Columns {
		if col.Type == expr.String {
			continue
		}
		wrong, err := csvBad(col, texts[i])
		if err != nil {
			return err
		}
		bad = append(bad, wrong)
		which = append(which, fmt.Sprintf("WHEN %s THEN %d", wrong, i))
	}
	if len(bad) == 0 {
		return nil
	}
	row, err := queryRow(ctx, db, "SELECT CAST(n AS VARCHAR), CAST(CASE "+strings.Join(which, " ")+" END AS VARCHAR) FROM (SELECT *, row_number() OVER () AS n FROM "+
		plan.reader(plan.runs[0])+") WHERE "+strings.Join(bad, " OR ")+" ORDER BY n LIMIT 1")
	if err != nil || row == nil {
		return err
	}
	n, err := strconv.ParseInt(row[0].String, 10, 64)
	if err != nil {
		return err
	}
	i, err := strconv.Atoi(row[1].String)
	if err != nil {
		return err
	}
	return c.valueFault(ctx, c.slice.FirstRecord+n-1, i)
}

// valueFault reports column i of a record.
func (c *csvCopy) valueFault(ctx context.Context, record int64, i int) error {
	col := c.r.Columns[i]
	var f *fault.Error
	err := c.walk(ctx, func(fields []string, at csvPosition) error {
		if at.record < record {
			return nil
		}
		value := fields[c.head.index[i]]
		f = inputFault(fault.UserData, c.slice.URL, "%s", notOfType(col, value))
		c.place(f, at, i, value)
		return errStop
	})
	if err != nil || f == nil {
		return err
	}
	return f
}

// describeType says what a column's cells must look like.
func describeType(c *script.InputColumn) string {
	names := map[expr.Type]string{expr.Int: "an int", expr.Float: "a float", expr.Bool: "a bool (1, t, true, 0, f, false …)",
		expr.Decimal: "a decimal2", expr.DateTime: "a datetime"}
	if c.Format != "" {
		return fmt.Sprintf("%s in the format %q", names[c.Type], c.Format)
	}
	return names[c.Type]
}
