package main

import (
	"cmp"
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
	cellLeast   = 8  // to which columns are narrowed, and go on below themselves, where leaving out does not do
	screenLeast = 40 // narrower terminals are taken for this
)

// screenTable is a table of the house's look that fits the terminal: columns that
// matter less are left out, and the last one, which has what failed, goes on below
// itself, in narrow terminals others, too; nothing of a text is cut. Cells stay in their lines, whatever texts of
// others are in them: a comment must not look like a row of its own.
type screenTable struct {
	a      *console
	out    io.Writer
	header []string // nil: none
	rows   [][]string
	right  []int    // columns that are aligned to the right, from 1
	spare  []string // headers of columns that are left out where there is no room, the first of them first
	hint   string   // how to see them
	sheet  bool     // rows of the user's: columns are left out from the right
}

// newTable is a table for standard output.
func (a *console) newTable(headers ...any) *screenTable {
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

// widths returns the widths of the columns, without gaps.
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

// fit decides which columns are shown, which are left out, and how wide those may be
// that do not fit as they are.
func (t *screenTable) fit() (shown []int, left []string, limits map[int]int) {
	widths := t.widths()
	for i := range widths {
		shown = append(shown, i)
	}
	room := max(t.a.width, screenLeast)
	if t.a.width == 0 || len(widths) == 0 {
		return shown, nil, nil
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
	return shown, left, narrowed(widths, shown, room)
}

// narrowed are the columns, of those that are shown, that do not fit as they are, and how wide they may be:
// the last one first, down to half of what it has at least, then always the widest.
func narrowed(widths, shown []int, room int) map[int]int {
	limits := map[int]int{}
	width := func(i int) int {
		if limit, ok := limits[i]; ok {
			return limit
		}
		return widths[i]
	}
	room -= (len(shown) - 1) * columnGap
	for _, i := range shown {
		room -= widths[i]
	}
	tail := shown[len(shown)-1]
	if give := min(-room, widths[tail]-textLeast/2); give > 0 {
		limits[tail] = widths[tail] - give
		room += give
	}
	for ; room < 0; room++ {
		widest := slices.MaxFunc(shown, func(a, b int) int { return cmp.Compare(width(a), width(b)) })
		if width(widest) <= cellLeast {
			break
		}
		limits[widest] = width(widest) - 1
	}
	return limits
}

// wrapped breaks a cell into lines. The library's lines may be a column too wide: a
// character of two columns that begins in the last one.
func wrapped(cell string, width int) string {
	lines := text.WrapSoft(cell, width)
	if text.LongestLineLen(lines) > width {
		return text.WrapSoft(cell, width-1)
	}
	return lines
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
	shown, left, limits := t.fit()
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
		if limit, narrow := limits[i]; narrow {
			c.WidthMax, c.WidthMaxEnforcer = limit, wrapped
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

// leftOutMax is the most left-out columns that are named.
const leftOutMax = 8

func leftOut(names []string) string {
	if len(names) > leftOutMax {
		return fmt.Sprintf("%d columns", len(names))
	}
	return strings.Join(names, ", ")
}

// note says something beside the output, dimmed.
func (a *console) note(format string, args ...any) {
	fmt.Fprintln(a.stderr, a.mark(fmt.Sprintf(format, args...), dim))
}
