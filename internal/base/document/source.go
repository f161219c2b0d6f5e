package document

import (
	"regexp"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"thalweg/internal/base/fault"
)

// Pos is a place in a text that people wrote.
type Pos struct {
	File string // as the user named it
	Line int    // 1-based; 0: unknown
	Col  int    // 1-based, in characters
}

// String renders file:line:col, leaving out what is not known.
func (p Pos) String() string {
	return fault.Place{File: p.File, Line: int64(p.Line), Column: p.Col}.String()
}

// Reference finds {name} and {name|type}, and the same of {env.name}, blanks allowed.
var Reference = regexp.MustCompile(`\{[ \t]*(env\.)?([A-Za-z0-9_]+)[ \t]*(?:\|[ \t]*([A-Za-z]+)[ \t]*)?\}`)

// Source is a text that diagnostics point into: the original as the user
// wrote it, and, where parameters were put in, the text that was parsed.
type Source struct {
	Name     string // as it is shown
	URL      string // as it was read
	Original string
	Text     string // what was parsed
	Swaps    []Swap // where text and original differ, in order
	lines    []int  // byte offset in original of each line's start
	textLine []int  // the same of text
	Pending  []Span // references without a value, in Text: nothing is said about them again

	// Where the last look-up ended: places are asked for mostly in order, and
	// a document may be one line of megabytes.
	lastPos    struct{ line, offset, col int }
	lastOffset struct{ line, col, offset int }
}

// Swap is a stretch of text that replaces another stretch of the original.
type Swap struct {
	TextStart, TextEnd int
	OrigStart, OrigEnd int
	Param              string // "" for a built-in and an environment value
	Env                bool   // an environment value
	Literal            bool   // braces that are meant as they stand
}

// Span is a stretch of a text, such as a reference to a parameter that could not be replaced.
type Span struct{ Start, End int }

// NewSource is a text that has no parameters in it; name is how it is shown.
func NewSource(name, original string) *Source {
	s := &Source{Name: name, Original: original, Text: original}
	s.lines = lineStarts(original)
	s.textLine = s.lines
	return s
}

// Replace sets the text that results from putting parameters in.
func (s *Source) Replace(text string, swaps []Swap) {
	s.Text, s.Swaps = text, swaps
	s.textLine = lineStarts(text)
}

func lineStarts(text string) []int {
	starts := []int{0}
	for i := 0; i < len(text); i++ {
		if text[i] == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

// Origin maps an offset of text to the original. Inside of a replaced stretch
// it is the stretch's start, or its end when end is asked for.
func (s *Source) Origin(offset int, end bool) int {
	i := sort.Search(len(s.Swaps), func(i int) bool { return s.Swaps[i].TextStart > offset }) - 1
	if i < 0 {
		return min(offset, len(s.Original))
	}
	sw := s.Swaps[i]
	switch {
	case offset >= sw.TextEnd:
		return min(sw.OrigEnd+offset-sw.TextEnd, len(s.Original))
	case end && offset > sw.TextStart:
		return sw.OrigEnd
	default:
		return sw.OrigStart
	}
}

// Params lists the parameters whose values lie between start and end of text.
func (s *Source) Params(start, end int) []string {
	var names []string
	i := sort.Search(len(s.Swaps), func(i int) bool { return s.Swaps[i].TextEnd > start })
	for ; i < len(s.Swaps) && s.Swaps[i].TextStart < max(end, start+1); i++ {
		if name := s.Swaps[i].Param; name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// IsPending reports whether the text contains a reference that has no value.
func (s *Source) IsPending(start, end int) bool {
	for _, p := range s.Pending {
		if p.Start < end && start < p.End {
			return true
		}
	}
	return false
}

// Pos gives the place of an offset of the original.
func (s *Source) Pos(offset int) Pos {
	offset = max(0, min(offset, len(s.Original)))
	line := sort.Search(len(s.lines), func(i int) bool { return s.lines[i] > offset }) - 1
	start := s.lines[line]
	if line == 0 && strings.HasPrefix(s.Original, ByteOrderMark) && offset >= len(ByteOrderMark) {
		start += len(ByteOrderMark)
	}
	col := 1
	if last := s.lastPos; last.line == line+1 && last.offset <= offset {
		start, col = last.offset, last.col
	}
	col += utf8.RuneCountInString(s.Original[start:offset])
	s.lastPos.line, s.lastPos.offset, s.lastPos.col = line+1, offset, col
	return Pos{File: s.Name, Line: line + 1, Col: col}
}

// line gives the text of a line of the original, 1-based.
func (s *Source) line(n int) string {
	if n < 1 || n > len(s.lines) {
		return ""
	}
	end := len(s.Original)
	if n < len(s.lines) {
		end = s.lines[n]
	}
	return strings.TrimPrefix(strings.TrimRight(s.Original[s.lines[n-1]:end], "\r\n"), ByteOrderMark)
}

// offset gives the byte offset in text of a line and column in characters, both 1-based.
func (s *Source) offset(line, col int) int {
	if line < 1 {
		return 0
	}
	if line > len(s.textLine) {
		return len(s.Text)
	}
	at, i := s.textLine[line-1], 1
	if at == 0 && strings.HasPrefix(s.Text, ByteOrderMark) {
		at = len(ByteOrderMark)
	}
	if last := s.lastOffset; last.line == line && last.col <= col {
		at, i = last.offset, last.col
	}
	for ; i < col && at < len(s.Text) && s.Text[at] != '\n'; i++ {
		_, size := utf8.DecodeRuneInString(s.Text[at:])
		at += size
	}
	s.lastOffset.line, s.lastOffset.col, s.lastOffset.offset = line, i, at
	return at
}

const ByteOrderMark = "\ufeff"
