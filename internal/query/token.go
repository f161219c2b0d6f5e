package query

import "strings"

// token is a word, number, text, quoted name or other character of a query.
type token struct {
	start, end int // bytes
	depth      int // of parentheses and brackets around it; an opening one counts as outside of itself
	word       bool
}

// tokens cuts a query that DuckDB has parsed into tokens. Comments and blanks
// are none.
func tokens(text string) []token {
	var out []token
	depth := 0
	for at := 0; at < len(text); {
		end, kind := lex(text, at)
		if kind != blankToken {
			t := token{start: at, end: end, depth: depth, word: kind == wordToken}
			switch text[at] {
			case '(', '[', '{':
				depth++
			case ')', ']', '}':
				depth--
				t.depth = depth
			}
			out = append(out, t)
		}
		at = end
	}
	return out
}

type tokenKind uint8

const (
	blankToken tokenKind = iota
	wordToken
	quotedToken
	otherToken
)

// lex finds the end of what begins at a byte.
func lex(text string, at int) (end int, kind tokenKind) {
	rest := text[at:]
	switch c := rest[0]; {
	case c == ' ' || (c >= '\t' && c <= '\r'):
		return at + 1, blankToken
	case strings.HasPrefix(rest, "--"):
		if i := strings.IndexByte(rest, '\n'); i >= 0 {
			return at + i + 1, blankToken
		}
		return len(text), blankToken
	case strings.HasPrefix(rest, "/*"):
		return at + comment(rest), blankToken
	case c == '\'' || c == '"':
		return at + quoted(rest, c, false), quotedToken
	case (c == 'e' || c == 'E') && strings.HasPrefix(rest[1:], "'"):
		return at + 1 + quoted(rest[1:], '\'', true), quotedToken
	case c == '$':
		if n := dollarQuoted(rest); n > 0 {
			return at + n, quotedToken
		}
	case isWordByte(c):
		n := 1
		for n < len(rest) && (isWordByte(rest[n]) || rest[n] == '$') {
			n++
		}
		return at + n, wordToken
	}
	return at + 1, otherToken
}

func isWordByte(c byte) bool {
	return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80
}

// comment is the length of a block comment; they nest.
func comment(s string) int {
	depth := 0
	for i := 0; i+1 < len(s); i++ {
		switch s[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			if depth--; depth == 0 {
				return i + 2
			}
			i++
		}
	}
	return len(s)
}

// quoted is the length of a text or name in quotes, which double inside.
func quoted(s string, quote byte, escapes bool) int {
	for i := 1; i < len(s); i++ {
		switch {
		case escapes && s[i] == '\\':
			i++
		case s[i] != quote:
		case i+1 < len(s) && s[i+1] == quote:
			i++
		default:
			return i + 1
		}
	}
	return len(s)
}

// dollarQuoted is the length of a text such as $$a$$ or $x$a$x$; 0: it is none.
func dollarQuoted(s string) int {
	i := 1
	for i < len(s) && isWordByte(s[i]) {
		i++
	}
	if i >= len(s) || s[i] != '$' || (i > 1 && s[1] >= '0' && s[1] <= '9') {
		return 0
	}
	mark := s[:i+1]
	end := strings.Index(s[len(mark):], mark)
	if end < 0 {
		return len(s)
	}
	return len(mark) + end + len(mark)
}

// source is a query with its tokens.
type source struct {
	text   string
	tokens []token
}

func newSource(text string) *source { return &source{text: text, tokens: tokens(text)} }

// at finds the token that begins at a byte, else the last one before it; -1
// before the first.
func (s *source) at(offset int) int {
	lo, hi := 0, len(s.tokens)
	for lo < hi {
		if mid := (lo + hi) / 2; s.tokens[mid].start <= offset {
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
	return s.text[s.tokens[i].start:s.tokens[i].end]
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
		if s.tokens[j].depth == s.tokens[i].depth && s.is(j, ")", "]", "}") {
			return j
		}
	}
	return -1
}

// call finds the parentheses of the function call whose name begins at a byte.
func (s *source) call(offset int) (open, end int, ok bool) {
	i := s.at(offset)
	if i < 0 || s.tokens[i].start != offset {
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
		if s.tokens[i].depth == depth && s.tokens[i].word && s.is(i, words...) {
			return i
		}
	}
	return -1
}

// span gives the bytes of the token at an offset, for marking it.
func (s *source) span(offset int) (start, end int) {
	if i := s.at(offset); i >= 0 && offset >= 0 && offset < s.tokens[i].end {
		return s.tokens[i].start, s.tokens[i].end
	}
	return max(0, min(offset, len(s.text))), max(0, min(offset, len(s.text)))
}

// start is where the first of some tokens is, 0 if there is none.
func (s *source) start(words ...string) int {
	for i, t := range s.tokens {
		if s.is(i, words...) {
			return t.start
		}
	}
	return 0
}

// splice is text to put in at a byte.
type splice struct {
	at   int
	text string
}
