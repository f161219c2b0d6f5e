package records

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/filespec"
)

// sheetReader goes through the rows of a sheet.
type sheetReader struct {
	book  *workbook
	sheet sheet
	area  filespec.Area
	ctx   context.Context
	each  func(row int, cells map[int]cell) error // not called for rows without a value
}

var errEnough = errors.New("enough")

// rows reads the sheet.
func (s *sheetReader) rows() error {
	row, column := 0, 0
	cells := map[int]cell{}
	flush := func() error {
		if len(cells) == 0 {
			return nil
		}
		err := s.each(row, cells)
		clear(cells)
		return err
	}
	const noLimit = 1 << 62
	err := s.book.part(s.sheet.file, noLimit, func(d *xml.Decoder, e xml.StartElement) error {
		switch e.Name.Local {
		case "row":
			if err := flush(); err != nil {
				return err
			}
			if err := s.ctx.Err(); err != nil {
				return err
			}
			if row, column = row+1, 0; attribute(e, "r") != "" {
				n, err := strconv.Atoi(attribute(e, "r"))
				if err != nil || n < row || n > filespec.RowsMax {
					return badBook("row %s of sheet %q is out of place", attribute(e, "r"), s.sheet.name)
				}
				row = n
			}
			if s.area.Bottom > 0 && row > s.area.Bottom {
				return errEnough
			}
		case "c":
			column++
			if at := attribute(e, "r"); at != "" {
				var ok bool
				if column, _, ok = filespec.ParseCell(at); !ok {
					return badBook("cell %s of sheet %q is out of place", at, s.sheet.name)
				}
			}
			c, err := s.cell(d, e, fmt.Sprintf("%s%d", filespec.ColumnLetters(column), row))
			if err != nil {
				return err
			}
			inside := row >= s.area.Top && column >= s.area.Left && (s.area.Right == 0 || column <= s.area.Right)
			if c.kind != 0 && inside {
				cells[column] = c
			}
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// cell reads a cell up to its end.
func (s *sheetReader) cell(d *xml.Decoder, e xml.StartElement, name string) (c cell, err error) {
	kind := attribute(e, "t")
	if n, err := strconv.Atoi(attribute(e, "s")); err == nil && n >= 0 && n < len(s.book.styles) {
		c.style = s.book.styles[n]
	}
	var value strings.Builder
	has, formula, inValue := false, false, false
	for {
		token, err := d.RawToken()
		if err != nil {
			return c, badBook("cell %s of sheet %q cannot be read: %s", name, s.sheet.name, err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			switch t.Name.Local {
			case "v":
				inValue, has = true, true
			case "f":
				formula = true
			case "is":
				text, err := richText(d, "is")
				if err != nil {
					return c, err
				}
				value.WriteString(text)
				has = true
			}
		case xml.CharData:
			if inValue {
				value.Write(t)
			}
		case xml.EndElement:
			inValue = false
			if t.Name.Local == "c" {
				return s.valueOf(c, kind, value.String(), has, formula, name)
			}
		}
	}
}

func (s *sheetReader) valueOf(c cell, kind, value string, has, formula bool, name string) (cell, error) {
	switch {
	case !has, value == "" && kind != "str" && kind != "inlineStr":
		if formula { // other programs write an empty value where they have computed none
			c.kind = 'f'
		}
		return c, nil
	}
	c.text = value
	switch kind {
	case "s":
		n, err := strconv.Atoi(strings.TrimSpace(value))
		if err != nil || n < 0 || n >= len(s.book.shared) {
			return c, badBook("cell %s of sheet %q has text number %s, which the workbook has not got", name,
				s.sheet.name, value)
		}
		c.kind, c.text = 's', s.book.shared[n]
	case "str":
		c.kind, c.text = 's', unescaped(value)
	case "inlineStr":
		c.kind = 's'
	case "b", "e", "d":
		c.kind = kind[0]
	case "", "n":
		c.kind = 'n'
	default:
		return c, badBook("cell %s of sheet %q is of type %q, which is not known", name, s.sheet.name, kind)
	}
	return c, nil
}

// Excel writes the rows of a sheet as CSV.
func Excel(ctx context.Context, to io.Writer, in io.ReaderAt, size int64, spec filespec.Spec) (written int64,
	err error) {
	book, err := openWorkbook(in, size)
	if err != nil {
		return 0, err
	}
	x := &excel{Writer: Writer{to: to, spec: spec}, book: book}
	s := &sheetReader{book: book, ctx: ctx, each: x.row}
	if s.sheet, err = book.find(spec.Sheet, spec.Number); err != nil {
		return 0, err
	}
	if s.area, err = filespec.ParseRange(spec.Range); err != nil {
		return 0, err
	}
	x.sheet = s.sheet.name
	if spec.NoHeader {
		if err := x.byLetters(); err != nil {
			return 0, err
		}
	}
	err = s.rows()
	if err == nil && x.at == nil {
		err = &fault.Error{Kind: fault.UserData, Message: fmt.Sprintf("sheet %q has no header: it is empty", x.sheet),
			Hint: "name the sheet that has the table: excel: {sheet: NAME}"}
	}
	return x.bytes, err
}

// excel writes rows.
type excel struct {
	Writer
	book  *workbook
	sheet string
	at    []int // of the columns, 0: not there; nil: the header has not been seen
}

func (x *excel) byLetters() error {
	x.at = make([]int, len(x.spec.Columns))
	for i, c := range x.spec.Columns {
		if x.at[i] = filespec.ColumnNumber(c.Path); x.at[i] == 0 || x.at[i] > filespec.ColumnsMax {
			return fault.New(fault.Script, "%q is no column of a sheet: without a header they are called A, B, … AA", c.Path)
		}
	}
	return nil
}

func (x *excel) row(row int, cells map[int]cell) error {
	x.line = int64(row)
	if x.at == nil {
		return x.header(row, cells)
	}
	empty := true
	for _, at := range x.at {
		if cells[at].kind != 0 {
			empty = false
		}
	}
	if empty {
		return nil // it may have values in columns that are not read
	}
	x.out = strconv.AppendInt(x.out[:0], x.line, 10)
	for i, c := range x.spec.Columns {
		x.out = append(x.out, ',')
		if err := x.value(cells[x.at[i]], c); err != nil {
			place := Place{Line: x.line, Column: i}
			var failed cellError
			if errors.As(err, &failed) && plainError.MatchString(string(failed)) {
				place.Error = string(failed)
			}
			return x.badAt([]byte(x.raw(cells)), place, fmt.Sprintf("cell %s%d of sheet %q: %s",
				filespec.ColumnLetters(x.at[i]), row, x.sheet, err))
		}
	}
	if len(x.out) > RecordBytesMax {
		return x.bad([]byte(x.raw(cells)), fmt.Sprintf("its values take more than %d MiB", RecordBytesMax>>20))
	}
	return x.flush()
}

// shownNamesMax of a header are shown.
const shownNamesMax = 30

// header finds the columns.
func (x *excel) header(row int, cells map[int]cell) error {
	found := map[string][]int{}
	var names []string
	for _, n := range sortedColumns(cells) {
		name, err := x.book.shown(cells[n])
		if err != nil {
			return err
		}
		name = strings.TrimSpace(name)
		found[name] = append(found[name], n)
		names = append(names, strconv.Quote(name))
	}
	x.at = make([]int, len(x.spec.Columns))
	for i, c := range x.spec.Columns {
		at := found[c.Path]
		refuse := func(format string, args ...any) error {
			f := fault.New(fault.UserData, format, args...)
			f.Place.Line, f.Place.Field = int64(row), c.Path
			return f
		}
		switch {
		case len(at) > 1:
			f := fault.Of(refuse("columns %s and %s of sheet %q are both called %q", filespec.ColumnLetters(at[0]),
				filespec.ColumnLetters(at[1]), x.sheet, c.Path))
			f.Hint = fmt.Sprintf("write another header into the file; or read columns by their letters, behind the header: "+
				"excel: {header: false, range: A%d}, columns: {NAME: {type: string, path: %s}}",
				row+1, filespec.ColumnLetters(at[0]))
			return f
		case len(at) == 1:
			x.at[i] = at[0]
		case !c.Optional:
			f := fault.Of(refuse("missing column %q; row %d of sheet %q, which is taken for its header, has: %s",
				c.Path, row, x.sheet, strings.Join(names[:min(len(names), shownNamesMax)], ", ")))
			f.Hint = "if the table begins elsewhere, say where: excel: {range: B3}; if files may be without the " +
				"column, say optional: true of it"
			return f
		}
	}
	return nil
}

func sortedColumns(cells map[int]cell) []int {
	var out []int
	for n := range cells {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// raw is a row for people.
func (x *excel) raw(cells map[int]cell) string {
	var b strings.Builder
	for i, n := range sortedColumns(cells) {
		if i > 0 {
			b.WriteString(", ")
		}
		text, err := x.book.shown(cells[n])
		if err != nil {
			text = cells[n].text
		}
		fmt.Fprintf(&b, "%s: %q", filespec.ColumnLetters(n), text)
	}
	return b.String()
}

// cellError is the error that a formula has in place of a value.
type cellError string

func (e cellError) Error() string { return "it is " + string(e) }

// plainError are the errors of formulas: #DIV/0!, #N/A, #NAME?, …
var plainError = regexp.MustCompile(`^#[A-Z0-9/_!?]+$`)

// value appends the value of a column.
func (x *excel) value(c cell, column filespec.Column) error {
	switch c.kind {
	case 0:
		return nil
	case 'f':
		return errors.New("it has a formula without a value: open the file in Excel or LibreOffice and save it")
	case 'e':
		if slices.Contains(column.Nulls, c.text) {
			return nil
		}
		return cellError(c.text)
	}
	text, err := x.text(c, column)
	switch {
	case err != nil:
		return err
	case strings.ContainsRune(text, 0):
		return errors.New("its text has a zero character, which tables cannot hold")
	case slices.Contains(column.Nulls, text) && c.kind == 's':
		return nil
	case column.Kind != filespec.Text && len(bytes.TrimSpace([]byte(text))) == 0:
		return nil
	case (column.Kind == filespec.Number || column.Kind == filespec.Whole) && !plainNumber.MatchString(text):
		return fmt.Errorf("%s is no number", shown([]byte(text)))
	case column.Kind == filespec.Whole && strings.ContainsAny(text, ".eE"):
		return fmt.Errorf("%s is no whole number", text)
	case column.Kind == filespec.Time && column.Layout != "":
		if _, err := time.Parse(column.Layout, text); err != nil {
			return fmt.Errorf("%s is no datetime like %q", shown([]byte(text)), column.Layout)
		}
	}
	x.out = appendText(x.out, []byte(text))
	return nil
}

// plainNumber is a number as CSV files have it.
var plainNumber = regexp.MustCompile(`^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$`)

func (x *excel) text(c cell, column filespec.Column) (string, error) {
	if c.kind == 'n' && c.style == elapsed {
		switch column.Kind {
		case filespec.Number, filespec.Whole:
			return number(c.text), nil // of days
		case filespec.Time:
			text, err := x.book.span(c.text)
			if err != nil {
				text = number(c.text)
			}
			return "", fmt.Errorf("%s is an elapsed time, and no datetime: read it as string, or as a number of days",
				text)
		}
	}
	if column.Kind != filespec.Time || c.kind != 'd' && (c.kind != 'n' || c.style == plain) {
		return x.book.shown(c)
	}
	var t time.Time
	var err error
	if c.kind == 'd' {
		for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02", time.RFC3339} {
			if t, err = time.Parse(layout, c.text); err == nil {
				break
			}
		}
	} else {
		t, err = x.book.moment(c.text)
	}
	if err != nil {
		return "", err
	}
	text := t.Format(column.Layout)
	if back, err := time.Parse(column.Layout, text); err != nil || !back.Equal(t) {
		return "", fmt.Errorf("%s is more than %q can say", t.Format(filespec.ExcelLayout), column.Layout)
	}
	return text, nil
}

// SheetRow is a row of a sheet that has values: the columns of these, from 1, and their texts.
type SheetRow struct {
	Row     int
	Columns []int
	Texts   []string
}

// TopRows are the first rows of a sheet that have values: at most so many.
func TopRows(ctx context.Context, in io.ReaderAt, size int64, spec filespec.Spec, most int) (out []SheetRow,
	err error) {
	s, err := openSheet(ctx, in, size, spec)
	if err != nil {
		return nil, err
	}
	s.each = func(row int, cells map[int]cell) error {
		one := SheetRow{Row: row, Columns: sortedColumns(cells)}
		for _, n := range one.Columns {
			text, err := s.book.shown(cells[n])
			if err != nil {
				text = cells[n].text // a number that is no day
			}
			one.Texts = append(one.Texts, text)
		}
		if out = append(out, one); len(out) == most {
			return errEnough
		}
		return nil
	}
	err = s.rows()
	return out, err
}

// openSheet finds the part of a workbook that is meant.
func openSheet(ctx context.Context, in io.ReaderAt, size int64, spec filespec.Spec) (*sheetReader, error) {
	book, err := openWorkbook(in, size)
	if err != nil {
		return nil, err
	}
	s := &sheetReader{book: book, ctx: ctx}
	if s.sheet, err = book.find(spec.Sheet, spec.Number); err != nil {
		return nil, err
	}
	s.area, err = filespec.ParseRange(spec.Range)
	return s, err
}

// LookExcel says which columns a sheet has, by its header and the first rows. Columns with values
// but without a header are among them, without a key.
func LookExcel(ctx context.Context, in io.ReaderAt, size int64, spec filespec.Spec) (out []Found, err error) {
	out, _, err = lookExcel(ctx, in, size, spec, lookedRecordsMax)
	return out, err
}

func lookExcel(ctx context.Context, in io.ReaderAt, size int64, spec filespec.Spec, most int) (out []Found, rows int,
	err error) {
	s, err := openSheet(ctx, in, size, spec)
	if err != nil {
		return nil, 0, err
	}
	at, begun := map[int]int{}, false
	s.each = func(row int, cells map[int]cell) error {
		if !begun && !spec.NoHeader {
			begun = true
			for _, n := range sortedColumns(cells) {
				name, err := s.book.shown(cells[n])
				if err != nil {
					return err
				}
				if name = strings.TrimSpace(name); name != "" {
					at[n] = len(out)
					out = append(out, Found{Key: name, Letters: filespec.ColumnLetters(n)})
				}
			}
			return nil
		}
		for _, n := range sortedColumns(cells) {
			i, ok := at[n]
			if !ok {
				i = len(out)
				at[n] = i
				out = append(out, Found{Letters: filespec.ColumnLetters(n), Row: row})
				if spec.NoHeader {
					out[i] = Found{Key: filespec.ColumnLetters(n), Letters: filespec.ColumnLetters(n)}
				}
			}
			out[i].Value = together(out[i].Value, s.book.kindOf(cells[n]))
			if cells[n].kind == 'e' {
				if out[i].Errors == nil {
					out[i].Errors = map[string]int64{}
				}
				out[i].Errors[cells[n].text]++
			}
		}
		if rows++; rows == most {
			return errEnough
		}
		return nil
	}
	if err := s.rows(); err != nil {
		return nil, 0, err
	}
	return out, rows, nil
}

func (w *workbook) kindOf(c cell) Value {
	switch {
	case c.kind == 'b':
		return Truth
	case c.kind == 'd', c.kind == 'n' && (c.style == day || c.style == dayTime):
		return Moment
	case c.kind == 'n' && c.style == plain:
		return kindOf([]byte(number(c.text)))
	case c.kind == 'e', c.kind == 'f':
		return Nothing
	}
	return Any
}
