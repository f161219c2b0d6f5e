package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"thalweg/internal/figures"
)

// newApp looks at what the two streams are.
func newApp(stdout, stderr *os.File) *app {
	a := &app{stdout: stdout, stderr: stderr, drain: make(chan struct{})}
	fd := int(stderr.Fd())
	a.terminal = term.IsTerminal(fd) && os.Getenv("TERM") != "dumb"
	// Both streams: a summary that goes to a file has no colours either.
	a.color = a.terminal && term.IsTerminal(int(stdout.Fd())) && os.Getenv("NO_COLOR") == ""
	if w, _, err := term.GetSize(int(stdout.Fd())); err == nil {
		a.width = w
	}
	return a
}

type color string

const (
	red    color = "\x1b[31m"
	green  color = "\x1b[32m"
	yellow color = "\x1b[33m"
	reset        = "\x1b[0m"
)

func (a *app) paint(s string, c color) string {
	if !a.color {
		return s
	}
	return string(c) + s + reset
}

// newTable is a table of the house's look that fits the terminal.
func (a *app) newTable(headers ...any) table.Writer {
	t := screenTable{Writer: table.NewWriter(), a: a}
	t.SetOutputMirror(a.stdout)
	style := table.StyleLight
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = text.FormatDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	t.SetStyle(style)
	if a.width > 0 {
		t.Style().Size.WidthMax = a.width
	}
	t.AppendHeader(t.plain(headers))
	return t
}

// screenTable is a table whose cells stay in their lines, whatever texts of
// others are in them: a comment must not look like a row of its own.
type screenTable struct {
	table.Writer
	a *app
}

// AppendRow implements table.Writer.
func (t screenTable) AppendRow(row table.Row, config ...table.RowConfig) {
	t.Writer.AppendRow(t.plain(row), config...)
}

func (t screenTable) plain(row table.Row) table.Row {
	out := make(table.Row, len(row))
	for i, cell := range row {
		if text, ok := cell.(string); ok {
			cell = t.a.plain(text)
		}
		out[i] = cell
	}
	return out
}

// plain is a text that has our colours in it at most, as part of a line.
func (a *app) plain(text string) string {
	if !a.color {
		return plain(text)
	}
	var b strings.Builder
	for text != "" {
		at, mark := len(text), ""
		for _, c := range []string{string(red), string(green), string(yellow), reset} {
			if i := strings.Index(text, c); i >= 0 && i < at {
				at, mark = i, c
			}
		}
		b.WriteString(plain(text[:at]) + mark)
		text = text[at+len(mark):]
	}
	return b.String()
}

// plain is a text as part of a line: what would end the line, move the cursor,
// colour the screen or turn the direction of writing can be seen, and does nothing.
func plain(text string) string {
	return strings.Map(func(c rune) rune {
		const pictures = 0x2400 // of U+0000 to U+001F, in their order
		switch {
		case c == '\n', c == '\u2028', c == '\u2029':
			return '⏎'
		case c == '\t':
			return c
		case c < ' ':
			return pictures + c
		case unicode.IsControl(c), unicode.Is(unicode.Bidi_Control, c):
			return unicode.ReplacementChar
		}
		return c
	}, text)
}

// rightAligned right-aligns columns, by number from 1.
func rightAligned(t table.Writer, columns ...int) {
	configs := make([]table.ColumnConfig, len(columns))
	for i, n := range columns {
		configs[i] = table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight}
	}
	t.SetColumnConfigs(configs)
}

// printJSON writes v as one line.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

func count(n int64) string { return figures.Count(n) }

func size(n int64) string { return figures.Size(n) }

func span(d time.Duration) string { return figures.Span(d) }
