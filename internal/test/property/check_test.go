package property

import (
	"bytes"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
)

// check compares the files of a run with the tables that the reference made.
func (s *script) check(files map[string]string, tables map[string][][]any) error {
	known := 0
	for _, o := range s.outputs() {
		var texts []string
		for _, name := range o.files() {
			data, ok := files[name]
			if !ok {
				return fmt.Errorf("%s is missing", name)
			}
			known++
			texts = append(texts, data)
		}
		if err := o.check(texts, tables[o.name]); err != nil {
			return fmt.Errorf("%s: %w", o.file(), err)
		}
	}
	if known != len(files) {
		return fmt.Errorf("%d files were written, not %d", len(files), known)
	}
	return nil
}

func (n *output) files() []string {
	if n.pieces == 0 {
		return []string{n.file()}
	}
	var out []string
	for i := range n.pieces {
		out = append(out, strings.ReplaceAll(n.file(), "{batch_idx}", fmt.Sprintf("%05d", i)))
	}
	return out
}

func (n *output) check(texts []string, want [][]any) error {
	done := 0
	for _, data := range texts {
		var err error
		var rows int
		if n.parquet {
			rows, err = n.checkParquet(data, want[done:])
		} else {
			rows, err = n.checkCSV(data, want[done:])
		}
		if err != nil {
			return err
		}
		done += rows
	}
	if done != len(want) {
		return fmt.Errorf("%d rows, the reference has %d; the first that is missing: %v", done, len(want), want[done])
	}
	return nil
}

// csvCell is a cell as it stands in a file.
type csvCell struct {
	text   string
	quoted bool
}

// parseCSV reads strictly: quotes stand around whole cells and are doubled
// inside, every line ends alike.
func parseCSV(data, separator, end string) ([][]csvCell, error) {
	var out [][]csvCell
	var row []csvCell
	for at := 0; at < len(data); {
		var c csvCell
		var text strings.Builder // some have megabytes
		if data[at] == '"' {
			c.quoted = true
			for at++; ; at++ {
				if at >= len(data) {
					return nil, fmt.Errorf("row %d: a quote is not closed", len(out))
				}
				if data[at] == '"' {
					if at++; at >= len(data) || data[at] != '"' {
						break
					}
				}
				text.WriteByte(data[at])
			}
		} else {
			for at < len(data) && !strings.HasPrefix(data[at:], end) && !strings.HasPrefix(data[at:], separator) {
				if data[at] == '"' || data[at] == '\r' || data[at] == '\n' {
					return nil, fmt.Errorf("row %d: %q in a cell without quotes", len(out), data[at])
				}
				text.WriteByte(data[at])
				at++
			}
		}
		c.text = text.String()
		row = append(row, c)
		switch {
		case strings.HasPrefix(data[at:], end):
			out, row = append(out, row), nil
			at += len(end)
		case strings.HasPrefix(data[at:], separator):
			if at += len(separator); at == len(data) {
				return nil, fmt.Errorf("row %d ends in a separator", len(out))
			}
			if strings.HasPrefix(data[at:], end) {
				out, row = append(out, append(row, csvCell{})), nil
				at += len(end)
			}
		default:
			return nil, fmt.Errorf("row %d: text behind a cell: %.20q", len(out), data[at:])
		}
	}
	return out, nil
}

func (n *output) checkCSV(data string, want [][]any) (int, error) {
	lines, err := parseCSV(data, n.separator, n.lineEnd)
	if err != nil {
		return 0, err
	}
	if len(lines) == 0 {
		return 0, fmt.Errorf("no header")
	}
	for i, c := range n.columns {
		if len(lines[0]) != len(n.columns) || lines[0][i].text != c.header {
			return 0, fmt.Errorf("the header is %v", lines[0])
		}
	}
	for i, line := range lines[1:] {
		if i >= len(want) {
			return 0, fmt.Errorf("row %d is one too many: %v", i, line)
		}
		if len(line) != len(n.columns) {
			return 0, fmt.Errorf("row %d has %d cells: %v", i, len(line), line)
		}
		for j, c := range n.columns {
			if err := c.checkCell(line[j], want[i][j]); err != nil {
				return 0, fmt.Errorf("row %d column %s (%s): %w; the row is %v, wanted %v", i, c.header,
					c.formula.src, err, line, want[i])
			}
		}
	}
	return len(lines) - 1, nil
}

func (c outColumn) checkCell(got csvCell, v any) error {
	if v == nil {
		if got.quoted || got.text != c.nullText {
			return fmt.Errorf("%+v, wanted NULL", got)
		}
		return nil
	}
	want := c.cell(v)
	if got.text != want {
		return fmt.Errorf("%q, wanted %q", got.text, want)
	}
	if c.null && want == c.nullText && !got.quoted {
		return fmt.Errorf("%q would be read as NULL", want)
	}
	return nil
}

func (n *output) checkParquet(data string, want [][]any) (int, error) {
	file, err := parquet.OpenFile(bytes.NewReader([]byte(data)), int64(len(data)))
	if err != nil {
		return 0, err
	}
	columns := file.Schema().Fields()
	if len(columns) != len(n.columns) {
		return 0, fmt.Errorf("%d columns, not %d", len(columns), len(n.columns))
	}
	at := 0
	for _, group := range file.RowGroups() {
		rows := group.Rows()
		buffer := make([]parquet.Row, 100)
		for {
			k, err := rows.ReadRows(buffer)
			for _, row := range buffer[:k] {
				if at >= len(want) {
					return 0, fmt.Errorf("row %d is one too many: %v", at, row)
				}
				if err := n.checkRow(columns, row, want[at]); err != nil {
					return 0, fmt.Errorf("row %d: %w", at, err)
				}
				at++
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				return 0, err
			}
		}
		if err := rows.Close(); err != nil {
			return 0, err
		}
	}
	return at, nil
}

func (n *output) checkRow(columns []parquet.Field, row parquet.Row, want []any) error {
	for i, c := range n.columns {
		at := slices.IndexFunc(columns, func(f parquet.Field) bool { return f.Name() == c.header })
		if at < 0 {
			return fmt.Errorf("there is no column %s", c.header)
		}
		got, err := plainValue(columns[at].Type(), row[at])
		if err != nil {
			return fmt.Errorf("column %s: %w", c.header, err)
		}
		v := want[i]
		if t, ok := v.(time.Time); ok && !c.null && t.Equal(zero(timeKind).(time.Time)) {
			v = nil // written as null where there are no NULLs
		}
		if !sameValue(v, got) {
			return fmt.Errorf("column %s (%s): %#v, wanted %#v", c.header, c.formula.src, got, v)
		}
	}
	return nil
}

// plainValue is a value of a file as the reference has it.
func plainValue(t parquet.Type, v parquet.Value) (any, error) {
	if v.IsNull() {
		return nil, nil
	}
	var logical format.LogicalTypeValue
	if l := t.LogicalType(); l != nil {
		logical = l.Value
	}
	switch logical := logical.(type) {
	case *format.DecimalType:
		return decimalValue(t, v, logical.Scale)
	case *format.TimestampType:
		if logical.Unit.Value.Duration() == time.Microsecond {
			return time.UnixMicro(v.Int64()).UTC(), nil
		}
		return time.UnixMilli(v.Int64()).UTC(), nil
	}
	switch t.Kind() {
	case parquet.Boolean:
		return v.Boolean(), nil
	case parquet.Int64:
		if converted := t.ConvertedType(); converted != nil && *converted == deprecated.TimestampMillis {
			return time.UnixMilli(v.Int64()).UTC(), nil
		}
		return v.Int64(), nil
	case parquet.Double:
		return v.Double(), nil
	case parquet.ByteArray:
		return string(v.ByteArray()), nil
	}
	return nil, fmt.Errorf("a value of type %s", t)
}

func decimalValue(t parquet.Type, v parquet.Value, scale int32) (any, error) {
	if scale != 2 {
		return nil, fmt.Errorf("a decimal of scale %d", scale)
	}
	switch t.Kind() {
	case parquet.Int32:
		return cents(v.Int32()), nil
	case parquet.Int64:
		return cents(v.Int64()), nil
	}
	if n := fixedDecimal(v.ByteArray()); n.CmpAbs(big.NewInt(1e18)) < 0 {
		return cents(n.Int64()), nil
	}
	return nil, fmt.Errorf("a decimal of %d bytes", len(v.ByteArray()))
}
