package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Layout of tables, in columns of the terminal.
const (
	columnGap   = 2
	textLeast   = 32 // that the last column has at least before others are left out for it
	screenLeast = 40 // narrower terminals are taken for this
)

// screenTable is a table of the house's look that fits the terminal: columns that
// matter less are left out, and the last one, which has what failed, goes on below
// itself; nothing of a text is cut. Cells stay in their lines, whatever texts of
// others are in them: a comment must not look like a row of its own.
type screenTable struct {
	a      *app
	out    io.Writer
	header []string // nil: none
	rows   [][]string
	right  []int    // columns that are aligned to the right, from 1
	spare  []string // headers of columns that are left out where there is no room, the first of them first
	hint   string   // how to see them
	sheet  bool     // rows of the user's: columns are left out from the right
}

// newTable is a table for standard output.
func (a *app) newTable(headers ...any) *screenTable {
	t := &screenTable{a: a, out: a.stdout, hint: "a wider terminal or `| less -S` shows them, --json has them"}
	if len(headers) > 0 {
		t.header = t.cells(headers)
	}
	return t
}

// leaves names columns that may be left out, the least important first.
func (t *screenTable) leaves(headers ...string) *screenTable {
	t.spare = headers
	return t
}

func (t *screenTable) AppendRow(row []any) { t.rows = append(t.rows, t.cells(row)) }

func (t *screenTable) cells(row []any) []string {
	out := make([]string, len(row))
	for i, cell := range row {
		out[i] = t.a.plain(fmt.Sprint(cell))
	}
	return out
}

// rightAligned right-aligns columns, by number from 1.
func rightAligned(t *screenTable, columns ...int) { t.right = columns }

// widths are what the columns take, without gaps.
func (t *screenTable) widths() []int {
	var out []int
	for _, row := range append([][]string{t.header}, t.rows...) {
		for i, cell := range row {
			if i == len(out) {
				out = append(out, 0)
			}
			out[i] = max(out[i], text.StringWidthWithoutEscSequences(cell))
		}
	}
	return out
}

// fit decides which columns are shown, which are left out, and how wide the last one may be; 0: as it is.
func (t *screenTable) fit() (shown []int, left []string, last int) {
	widths := t.widths()
	for i := range widths {
		shown = append(shown, i)
	}
	room := max(t.a.width, screenLeast)
	if t.a.width == 0 || len(widths) == 0 {
		return shown, nil, 0
	}
	end := len(widths) - 1
	needed := func() (sum int) {
		for _, i := range shown {
			w := widths[i]
			if i == end && !t.sheet {
				w = min(w, textLeast)
			}
			sum += w + columnGap
		}
		return sum - columnGap
	}
	spare := t.spareColumns()
	for needed() > room && len(spare) > 0 && len(shown) > 1 {
		left = append(left, t.header[spare[0]])
		shown = slices.DeleteFunc(shown, func(i int) bool { return i == spare[0] })
		spare = spare[1:]
	}
	rest := room
	for _, i := range shown[:len(shown)-1] {
		rest -= widths[i] + columnGap
	}
	if tail := shown[len(shown)-1]; widths[tail] > rest {
		last = max(rest, textLeast/2)
	}
	return shown, left, last
}

// spareColumns are the columns that may be left out, in that order.
func (t *screenTable) spareColumns() (out []int) {
	if t.sheet {
		for i := len(t.header) - 1; i > 0; i-- {
			out = append(out, i)
		}
		return out
	}
	for _, name := range t.spare {
		if i := slices.Index(t.header, name); i >= 0 {
			out = append(out, i)
		}
	}
	return out
}

// Render prints the table, and says what is left out.
func (t *screenTable) Render() {
	shown, left, last := t.fit()
	w := table.NewWriter()
	w.SetOutputMirror(t.out)
	style := table.StyleLight
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = text.FormatDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = "", strings.Repeat(" ", columnGap)
	w.SetStyle(style)
	w.SuppressTrailingSpaces()
	pick := func(row []string) table.Row {
		out := make(table.Row, 0, len(shown))
		for _, i := range shown {
			if i < len(row) {
				out = append(out, row[i])
			}
		}
		return out
	}
	var configs []table.ColumnConfig
	for at, i := range shown {
		c := table.ColumnConfig{Number: at + 1}
		if slices.Contains(t.right, i+1) {
			c.Align, c.AlignHeader = text.AlignRight, text.AlignRight
		}
		if at == len(shown)-1 && last > 0 {
			c.WidthMax, c.WidthMaxEnforcer = last, text.WrapSoft
		}
		configs = append(configs, c)
	}
	w.SetColumnConfigs(configs)
	if t.header != nil {
		w.AppendHeader(pick(t.header))
	}
	for _, row := range t.rows {
		w.AppendRow(pick(row))
	}
	w.Render()
	if len(left) > 0 && t.a.stderr != nil {
		t.a.note("not shown for lack of room: %s; %s", leftOut(left), t.hint)
	}
}

// leftOutMax is how many columns are named that are left out.
const leftOutMax = 8

func leftOut(names []string) string {
	if len(names) > leftOutMax {
		return fmt.Sprintf("%d columns", len(names))
	}
	return strings.Join(names, ", ")
}

// note says something beside the output, dimmed.
func (a *app) note(format string, args ...any) {
	fmt.Fprintln(a.stderr, a.mark(fmt.Sprintf(format, args...), dim))
}
