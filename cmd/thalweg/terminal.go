package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// newApp looks at what the two streams are.
func newApp(stdout, stderr *os.File) *app {
	a := &app{stdout: stdout, stderr: stderr}
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
	t := table.NewWriter()
	t.SetOutputMirror(a.stdout)
	style := table.StyleLight
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = text.FormatDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	t.SetStyle(style)
	if a.width > 0 {
		t.Style().Size.WidthMax = a.width
	}
	t.AppendHeader(headers)
	return t
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

// count renders a number with thousands apart.
func count(n int64) string {
	s := fmt.Sprintf("%d", n)
	neg := ""
	if n < 0 {
		neg, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return neg + s
}

// size renders bytes in binary units.
func size(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	v, i := float64(n)/unit, 0
	for ; v >= unit && i < 4; i++ {
		v /= unit
	}
	return fmt.Sprintf("%.1f %ciB", v, "KMGTP"[i])
}

// span renders a duration for people.
func span(d time.Duration) string {
	switch {
	case d <= 0:
		return "-"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}
