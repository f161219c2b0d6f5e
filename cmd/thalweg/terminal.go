package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"thalweg/internal/base/format"

	"golang.org/x/term"
)

// newConsole looks at what the two streams are.
func newConsole(stdout, stderr *os.File) *console {
	out := &outlet{to: stdout}
	a := &console{stdout: out, stderr: stderr, outlet: out, drain: make(chan struct{}),
		again: make(chan struct{}, 1)}
	shows, talks := term.IsTerminal(int(stdout.Fd())), term.IsTerminal(int(stderr.Fd()))
	a.terminal = talks && os.Getenv("TERM") != "dumb"
	a.color, a.talkColor = colored(shows, os.Getenv), colored(talks, os.Getenv)
	if w, _, err := term.GetSize(int(stdout.Fd())); err == nil {
		a.width = w
	}
	return a
}

// colored reports whether a stream has colours: a terminal that knows them does, unless
// NO_COLOR says no; CLICOLOR_FORCE says yes of all.
func colored(terminal bool, getenv func(string) string) bool {
	switch force := getenv("CLICOLOR_FORCE"); {
	case getenv("NO_COLOR") != "":
		return false
	case force != "" && force != "0":
		return true
	}
	return terminal && getenv("TERM") != "dumb"
}

type color string

const (
	red    color = "\x1b[31m"
	green  color = "\x1b[32m"
	yellow color = "\x1b[33m"
	bold   color = "\x1b[1m"
	dim    color = "\x1b[2m"
	reset        = "\x1b[0m"
)

// paint colours a text for standard output.
func (a *console) paint(s string, c color) string { return painted(s, c, a.color) }

// mark colours a text for standard error.
func (a *console) mark(s string, c color) string { return painted(s, c, a.talkColor) }

func painted(s string, c color, on bool) string {
	if !on || s == "" {
		return s
	}
	return string(c) + s + reset
}

// plain is a text that has our colours in it at most, as part of a line.
func (a *console) plain(text string) string {
	if !a.color {
		return plain(text)
	}
	var b strings.Builder
	for text != "" {
		at, mark := len(text), ""
		for _, c := range []string{string(red), string(green), string(yellow), string(bold), string(dim), reset} {
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

// printJSON writes v as one line.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

func count(n int64) string { return format.Count(n) }

func size(n int64) string { return format.Size(n) }

func span(d time.Duration) string { return format.Span(d) }
