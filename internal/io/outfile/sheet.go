package outfile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
)

const (
	// sheetDigits is the number of digits of a number that Excel keeps.
	sheetDigits = 15
	// sheetScaleMax is the most digits behind the point of a decimal.
	sheetScaleMax = 38
	lineTime      = "2006-01-02T15:04:05.999999999"
	dayStyle      = "yyyy-mm-dd hh:mm:ss.000"
	dateStyle     = "yyyy-mm-dd"
	lineDate      = time.DateOnly
)

// sheetEpoch is the day 0 of Excel's dates as they are counted from March 1900 on: earlier
// ones are counted wrongly there, for a February of 29 days.
var (
	sheetEpoch = time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	sheetFirst = time.Date(1900, 3, 1, 0, 0, 0, 0, time.UTC)
)

// sheetWriter makes cells of values.
type sheetWriter struct {
	w      *script.FileWriter
	rows   *sheetRows
	styles map[expr.Type]int // by which cells are shown; 0: as Excel does by itself
	row    int               // of the sheet, from 1
}

// sheet makes an Excel file of lines, each a list of values in JSON.
func sheet(w *script.FileWriter, path string, lines io.Reader) (err error) {
	s := &sheetWriter{w: w, styles: map[expr.Type]int{}}
	for _, c := range w.Columns {
		s.styles[c.Type] = slices.Index(sheetStyles(), styleOf(c.Type)) + 1
	}
	to, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	return writeSheet(to, w.Sheet, func(rows *sheetRows) error {
		s.rows = rows
		return s.fill(lines)
	})
}

// sheetStyles are the styles that the empty workbook has, from 1.
func sheetStyles() []string {
	styles := []string{dayStyle, dateStyle}
	for digits := 1; digits <= sheetScaleMax; digits++ {
		styles = append(styles, "0."+strings.Repeat("0", digits))
	}
	return styles
}

// fill writes the header, and a row for each line.
func (s *sheetWriter) fill(lines io.Reader) (err error) {
	s.row = 1
	header := make([]any, len(s.w.Columns))
	for i, c := range s.w.Columns {
		if header[i], err = s.text(c, c.Header); err != nil {
			return err
		}
	}
	if err := s.add(header); err != nil {
		return err
	}
	read := bufio.NewReaderSize(lines, readBytes)
	for {
		line, err := read.ReadBytes('\n')
		if len(line) > 0 {
			if err := s.line(line); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// styleOf returns the number format in which Excel shows the values of a type; "" for its default.
func styleOf(t expr.Type) string {
	switch _, scale, _ := strings.Cut(strings.TrimSuffix(t.String(), ")"), ","); {
	case t == expr.DateTime:
		return dayStyle
	case t.String() == "date":
		return dateStyle
	case t == expr.Decimal:
		return "0.00"
	case strings.HasPrefix(t.String(), "decimal("):
		if n, err := strconv.Atoi(scale); err == nil && n > 0 {
			return "0." + strings.Repeat("0", n)
		}
	}
	return ""
}

func (s *sheetWriter) add(cells []any) error {
	if s.row > script.SheetRowsMax {
		return s.refuse(nil, fmt.Sprintf("a sheet has at most %d rows with its header, and the table has more",
			script.SheetRowsMax), "write CSV, partition the output with partition_by, or keep less of it with "+
			"having or top")
	}
	return s.rows.add(s.row, cells)
}

func (s *sheetWriter) line(line []byte) error {
	s.row++
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	var values []any
	if err := d.Decode(&values); err != nil {
		return fmt.Errorf("read a row of the sheet: %w", err)
	}
	cells := make([]any, len(values))
	for i, v := range values {
		var err error
		if cells[i], err = s.cell(s.w.Columns[i], v); err != nil {
			return err
		}
	}
	return s.add(cells)
}

// cell is a value as a row takes it.
func (s *sheetWriter) cell(c *script.OutputColumn, value any) (any, error) {
	switch v := value.(type) {
	case nil:
		return nil, nil
	case bool:
		return v, nil
	case json.Number:
		return s.number(c, v)
	case string:
		switch {
		case c.Type == expr.DateTime:
			return s.moment(c, lineTime, v)
		case c.Type.String() == "date":
			return s.moment(c, lineDate, v)
		case c.Type == expr.Float:
			return nil, s.refuse(c, "a sheet has no "+v,
				"leave such rows out with having, or make NULL of them: iif(…, null, r."+c.Name+")")
		}
		return s.text(c, v)
	}
	text, err := json.Marshal(value) // a list or a struct
	if err != nil {
		return nil, err
	}
	return s.text(c, string(text))
}

// number is a number that Excel keeps with all of its digits.
func (s *sheetWriter) number(c *script.OutputColumn, v json.Number) (any, error) {
	f, err := v.Float64()
	if err != nil {
		return nil, s.refuse(c, "a sheet cannot hold "+v.String(), "write it as a text: string(…)")
	}
	if c.Type == expr.Float {
		return styled{value: f}, nil
	}
	whole, behind, _ := strings.Cut(strings.TrimPrefix(v.String(), "-"), ".")
	digits := strings.TrimLeft(whole+strings.TrimRight(behind, "0"), "0")
	if len(digits) > sheetDigits {
		return nil, s.refuse(c, fmt.Sprintf("Excel keeps %d digits of a number, and %s has more", sheetDigits, v),
			"write it as a text: string(…)")
	}
	return styled{f, s.styles[c.Type]}, nil
}

// moment is a date and time as Excel counts it: in days.
func (s *sheetWriter) moment(c *script.OutputColumn, layout, v string) (any, error) {
	at, err := time.Parse(layout, v)
	year, _, _ := strings.Cut(v, "-")
	before := strings.HasPrefix(v, "-") // Go has no text of such years
	switch {
	case err != nil && len(year) > len("9999"):
		return nil, s.refuse(c, "Excel has no dates after 9999, such as "+v, "write it as a text")
	case err != nil && !before:
		return nil, fmt.Errorf("read a time of the sheet: %w", err)
	case before || at.Before(sheetFirst):
		return nil, s.refuse(c, "Excel has no dates before March 1900, such as "+v, "write it as a text")
	}
	const dayMS = 24 * 60 * 60 * 1000
	ms := at.UnixMilli() - sheetEpoch.UnixMilli()
	days := float64(ms) / dayMS
	for int64(days*dayMS) < ms { // some readers cut off what is less than a millisecond
		days = math.Nextafter(days, math.Inf(1))
	}
	return styled{days, s.styles[c.Type]}, nil
}

// text is a text that a cell can hold.
func (s *sheetWriter) text(c *script.OutputColumn, v string) (any, error) {
	if message, hint := notInCell(v); message != "" {
		return nil, s.refuse(c, message, hint)
	}
	return v, nil
}

// notInCell says why no cell can hold a text, and what to do; "": one can.
func notInCell(v string) (message, hint string) {
	if len(v) > script.SheetTextMax && len(utf16.Encode([]rune(v))) > script.SheetTextMax {
		return fmt.Sprintf("a cell has at most %d characters, and a text has more: %.40s…", script.SheetTextMax, v),
			"write CSV, or cut it off"
	}
	for _, r := range v {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			return fmt.Sprintf("a cell cannot have the character U+%04X", r), "write CSV, or replace it"
		}
	}
	return "", ""
}

func (s *sheetWriter) refuse(c *script.OutputColumn, message, hint string) error {
	f := fault.New(fault.UserData, "row %d: %s", s.row, message)
	if c != nil {
		f.Message = fmt.Sprintf("row %d, column %s: %s", s.row, c.Name, message)
	}
	pos := s.w.Pos
	f.Hint, f.Place = hint, fault.Place{File: pos.File, Line: int64(pos.Line), Column: pos.Col}
	return f
}
