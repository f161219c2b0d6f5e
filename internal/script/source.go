package script

import (
	"sort"
	"strings"
	"unicode/utf8"
)

// source is a text that diagnostics point into: the original as the user
// wrote it, and, where parameters were put in, the text that was parsed.
type source struct {
	name     string // as it is shown
	url      string // as it was read
	original string
	text     string    // what was parsed
	swaps    []swap    // where text and original differ, in order
	lines    []int     // byte offset in original of each line's start
	textLine []int     // the same of text
	pending  []textRef // references without a value, in text: see params.go

	// Where the last look-up ended: places are asked for mostly in order, and
	// a document may be one line of megabytes.
	lastPos    struct{ line, offset, col int }
	lastOffset struct{ line, col, offset int }
}

// swap is a stretch of text that replaces another stretch of the original.
type swap struct {
	textStart, textEnd int
	origStart, origEnd int
	param              string // "" for a built-in and an environment value
	env                bool   // an environment value
}

// textRef is a reference to a parameter that could not be replaced.
type textRef struct{ start, end int }

func newSource(name, original string) *source {
	s := &source{name: name, original: original, text: original}
	s.lines = lineStarts(original)
	s.textLine = s.lines
	return s
}

// replaced sets the text that results from putting parameters in.
func (s *source) replaced(text string, swaps []swap) {
	s.text, s.swaps = text, swaps
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

// origin maps an offset of text to the original. Inside of a replaced stretch
// it is the stretch's start, or its end when end is asked for.
func (s *source) origin(offset int, end bool) int {
	i := sort.Search(len(s.swaps), func(i int) bool { return s.swaps[i].textStart > offset }) - 1
	if i < 0 {
		return min(offset, len(s.original))
	}
	sw := s.swaps[i]
	switch {
	case offset >= sw.textEnd:
		return min(sw.origEnd+offset-sw.textEnd, len(s.original))
	case end && offset > sw.textStart:
		return sw.origEnd
	default:
		return sw.origStart
	}
}

// params lists the parameters whose values lie between start and end of text.
func (s *source) params(start, end int) []string {
	var names []string
	i := sort.Search(len(s.swaps), func(i int) bool { return s.swaps[i].textEnd > start })
	for ; i < len(s.swaps) && s.swaps[i].textStart < max(end, start+1); i++ {
		if name := s.swaps[i].param; name != "" && !contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// pos gives the place of an offset of the original.
func (s *source) pos(offset int) Pos {
	offset = max(0, min(offset, len(s.original)))
	line := sort.Search(len(s.lines), func(i int) bool { return s.lines[i] > offset }) - 1
	start := s.lines[line]
	if line == 0 && strings.HasPrefix(s.original, byteOrderMark) && offset >= len(byteOrderMark) {
		start += len(byteOrderMark)
	}
	col := 1
	if last := s.lastPos; last.line == line+1 && last.offset <= offset {
		start, col = last.offset, last.col
	}
	col += utf8.RuneCountInString(s.original[start:offset])
	s.lastPos.line, s.lastPos.offset, s.lastPos.col = line+1, offset, col
	return Pos{File: s.name, Line: line + 1, Col: col}
}

// line gives the text of a line of the original, 1-based.
func (s *source) line(n int) string {
	if n < 1 || n > len(s.lines) {
		return ""
	}
	end := len(s.original)
	if n < len(s.lines) {
		end = s.lines[n]
	}
	return strings.TrimPrefix(strings.TrimRight(s.original[s.lines[n-1]:end], "\r\n"), byteOrderMark)
}

// offset gives the byte offset in text of a line and column in characters, both 1-based.
func (s *source) offset(line, col int) int {
	if line < 1 {
		return 0
	}
	if line > len(s.textLine) {
		return len(s.text)
	}
	at, i := s.textLine[line-1], 1
	if at == 0 && strings.HasPrefix(s.text, byteOrderMark) {
		at = len(byteOrderMark)
	}
	if last := s.lastOffset; last.line == line && last.col <= col {
		at, i = last.offset, last.col
	}
	for ; i < col && at < len(s.text) && s.text[at] != '\n'; i++ {
		_, size := utf8.DecodeRuneInString(s.text[at:])
		at += size
	}
	s.lastOffset.line, s.lastOffset.col, s.lastOffset.offset = line, i, at
	return at
}

const byteOrderMark = "\ufeff"
