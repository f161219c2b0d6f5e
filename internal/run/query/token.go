package query

import (
	"strings"

	"thalweg/internal/base/sqltext"
)

// source is a query with its tokens.
type source struct {
	text   string
	tokens []sqltext.Token
}

func newSource(text string) *source { return &source{text: text, tokens: sqltext.Tokens(text)} }

// at finds the token that begins at a byte, else the last one before it; -1
// before the first.
func (s *source) at(offset int) int {
	lo, hi := 0, len(s.tokens)
	for lo < hi {
		if mid := (lo + hi) / 2; s.tokens[mid].Start <= offset {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

func (s *source) tokenText(i int) string {
	if i < 0 || i >= len(s.tokens) {
		return ""
	}
	return s.text[s.tokens[i].Start:s.tokens[i].End]
}

// is reports whether token i is one of the words, whatever their case.
func (s *source) is(i int, words ...string) bool {
	if i < 0 || i >= len(s.tokens) {
		return false
	}
	for _, w := range words {
		if strings.EqualFold(s.tokenText(i), w) {
			return true
		}
	}
	return false
}

// closing finds the parenthesis that closes the one at i; -1 if there is none.
func (s *source) closing(i int) int {
	for j := i + 1; j < len(s.tokens); j++ {
		if s.tokens[j].Depth == s.tokens[i].Depth && s.is(j, ")", "]", "}") {
			return j
		}
	}
	return -1
}

// call finds the parentheses of the function call whose name begins at a byte.
func (s *source) call(offset int) (open, end int, ok bool) {
	i := s.at(offset)
	if i < 0 || s.tokens[i].Start != offset {
		return 0, 0, false
	}
	for i++; s.is(i, "."); i += 2 {
	}
	if !s.is(i, "(") {
		return 0, 0, false
	}
	end = s.closing(i)
	return i, end, end > 0
}

// find looks for one of the words between two tokens, at their own depth.
func (s *source) find(from, to, depth int, words ...string) int {
	for i := from; i < to; i++ {
		if s.tokens[i].Depth == depth && s.tokens[i].Word && s.is(i, words...) {
			return i
		}
	}
	return -1
}

// span gives the bytes of the token at an offset, for marking it.
func (s *source) span(offset int) (start, end int) {
	if i := s.at(offset); i >= 0 && offset >= 0 && offset < s.tokens[i].End {
		return s.tokens[i].Start, s.tokens[i].End
	}
	return max(0, min(offset, len(s.text))), max(0, min(offset, len(s.text)))
}

// start returns the place of the first token that is one of words, 0 if there is none.
func (s *source) start(words ...string) int {
	for i, t := range s.tokens {
		if s.is(i, words...) {
			return t.Start
		}
	}
	return 0
}

// splice is text to put in at a byte.
type splice struct {
	at   int
	text string
}
