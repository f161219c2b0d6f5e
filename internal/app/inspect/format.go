package inspect

import (
	"bufio"
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

// WriteJSON writes each row as a JSON object, its keys in the order of the columns.
func (res QueryResult) WriteJSON(out io.Writer) error {
	w := bufio.NewWriter(out)
	keys := make([]string, len(res.Columns))
	for i, name := range res.Columns {
		key, err := view.JSON(name)
		if err != nil {
			return err
		}
		keys[i] = string(key)
	}
	for _, row := range res.Rows {
		for i, v := range row {
			value, err := view.JSON(view.CellJSON(v))
			if err != nil {
				return err
			}
			// bufio keeps the first error for Flush
			w.WriteString(map[bool]string{true: "{", false: ","}[i == 0] + keys[i] + ":" + string(value))
		}
		w.WriteString("}\n")
	}
	return w.Flush()
}

// csvResult prints a result by the rules of CSV files (files.csvOutput): what
// readers would take for another text is in quotes, a NULL is an empty cell and
// an empty text "", and no line is empty.
type csvResult struct {
	rules script.FileWriter
	QueryResult
}

// WriteCSV writes a header and the rows as CSV.
func (res QueryResult) WriteCSV(out io.Writer) error {
	p := csvResult{rules: script.FileWriter{Separator: ","}, QueryResult: res}
	w := bufio.NewWriter(out)
	line := func(cells []string) {
		w.WriteString(strings.Join(cells, ",") + "\n") // bufio keeps the first error for Flush
	}
	header := make([]string, len(res.Columns))
	for i, name := range res.Columns {
		header[i] = p.text(name, i == 0 && strings.HasPrefix(name, "\ufeff")) // else taken for a mark of the encoding
	}
	line(header)
	for n, row := range res.Rows {
		cells := make([]string, len(row))
		for i, v := range row {
			var err error
			if cells[i], err = p.cell(n, i, v); err != nil {
				return err
			}
		}
		line(cells)
	}
	return w.Flush()
}

func (p csvResult) text(s string, quotes bool) string {
	if quotes || s == "" || p.rules.NeedsQuotes(s) {
		return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	return s
}

func (p csvResult) cell(row, column int, v any) (string, error) {
	switch {
	case v != nil:
		return p.text(fmt.Sprint(v), false), nil
	case len(p.Columns) > 1:
		return "", nil
	case !p.Text[column]: // a reader takes it for NULL
		return `""`, nil
	}
	return "", &fault.Error{Kind: fault.Script, Place: fault.Place{Field: p.Columns[column]},
		Message: fmt.Sprintf("row %d would be an empty line: column %q is NULL, and readers pass over empty lines",
			row+1, p.Columns[column]),
		Hint: "coalesce the column to a text that stands for NULL, select a second column, or use {{set format=json}}"}
}
