package inspect

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
)

// RenameEqual gives columns of equal names others, because readers of the
// output keep one of each name, and says which.
func (res QueryResult) RenameEqual() (note string) {
	columns := res.Columns
	taken := map[string]bool{}
	for _, name := range columns {
		taken[name] = true
	}
	seen := map[string]bool{}
	var list []string
	for i, name := range columns {
		if !seen[name] {
			seen[name] = true
			continue
		}
		for n := 2; taken[columns[i]]; n++ {
			columns[i] = fmt.Sprintf("%s_%d", name, n)
		}
		taken[columns[i]] = true
		list = append(list, fmt.Sprintf("column %d, %q, is %q", i+1, name, columns[i]))
	}
	if len(list) == 0 {
		return ""
	}
	return "columns with equal names: " + strings.Join(list, ", ") + "; AS gives them names of your own"
}

// RowSink gets the rows of a query one by one.
type RowSink interface {
	// Begin is called once, before the first row, with a result that has no rows yet.
	Begin(head QueryResult) error
	// Row gets the cells of a row.
	Row(cells []any) error
}

// RowWriter is a RowSink that writes rows; Flush writes what is left of them.
type RowWriter interface {
	RowSink
	Flush() error
}

// NewRowWriter returns what writes rows to out, as csv or else as json: an object a line.
func NewRowWriter(format string, out io.Writer) RowWriter {
	if format == "csv" {
		return &csvRows{Writer: bufio.NewWriter(out), rules: script.FileWriter{Separator: ","}}
	}
	return &jsonRows{Writer: bufio.NewWriter(out)}
}

// WriteJSON writes each row as a JSON object, its keys in the order of the columns.
func (res QueryResult) WriteJSON(out io.Writer) error {
	w := NewRowWriter("json", out)
	err := w.Begin(res)
	for i := 0; i < len(res.Rows) && err == nil; i++ {
		err = w.Row(res.Rows[i])
	}
	return errors.Join(err, w.Flush())
}

// jsonRows writes rows as JSON objects. Its Writer keeps the first error for Flush.
type jsonRows struct {
	*bufio.Writer
	keys []string
}

// Begin implements RowSink.
func (w *jsonRows) Begin(head QueryResult) error {
	w.keys = make([]string, len(head.Columns))
	for i, name := range head.Columns {
		key, err := view.JSON(name)
		if err != nil {
			return err
		}
		w.keys[i] = string(key)
	}
	return nil
}

// Row implements RowSink.
func (w *jsonRows) Row(cells []any) error {
	for i, v := range cells {
		value, err := view.JSON(view.CellJSON(v))
		if err != nil {
			return err
		}
		w.WriteString(map[bool]string{true: "{", false: ","}[i == 0] + w.keys[i] + ":" + string(value))
	}
	_, err := w.WriteString("}\n")
	return err
}

// csvRows writes rows by the rules of CSV files (files.csvOutput): what readers would take for another text
// is in quotes, a NULL is an empty cell and an empty text "", and no line is empty.
type csvRows struct {
	*bufio.Writer
	rules script.FileWriter
	head  QueryResult
	count int // of rows
}

// Begin implements RowSink.
func (w *csvRows) Begin(head QueryResult) error {
	w.head = head
	header := make([]string, len(head.Columns))
	for i, name := range head.Columns {
		header[i] = w.text(name, i == 0 && strings.HasPrefix(name, "\ufeff")) // else taken for a mark of the encoding
	}
	return w.line(header)
}

// Row implements RowSink.
func (w *csvRows) Row(row []any) error {
	w.count++
	cells := make([]string, len(row))
	for i, v := range row {
		var err error
		if cells[i], err = w.cell(i, v); err != nil {
			return err
		}
	}
	return w.line(cells)
}

func (w *csvRows) line(cells []string) error {
	_, err := w.WriteString(strings.Join(cells, ",") + "\n")
	return err
}

func (w *csvRows) text(s string, quotes bool) string {
	if quotes || s == "" || w.rules.NeedsQuotes(s) {
		return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	return s
}

func (w *csvRows) cell(column int, v any) (string, error) {
	switch name := w.head.Columns[column]; {
	case v != nil:
		return w.text(fmt.Sprint(v), false), nil
	case len(w.head.Columns) > 1:
		return "", nil
	case !w.head.Text[column]: // a reader takes it for NULL
		return `""`, nil
	default:
		return "", &fault.Error{Kind: fault.Script, Place: fault.Place{Field: name},
			Message: fmt.Sprintf("row %d would be an empty line: column %q is NULL, and readers pass over empty lines",
				w.count, name),
			Hint: "coalesce the column to a text that stands for NULL, select a second column, or use {{set format=json}}"}
	}
}
