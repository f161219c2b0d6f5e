package sqltext

import "strings"

// Token is a word, number, text, quoted name or other character of SQL.
type Token struct {
	Start, End int // bytes
	Depth      int // of the parentheses and brackets around it; they themselves are outside
	Word       bool
}

// Tokens cuts SQL that DuckDB can parse into tokens. Comments and blanks are
// none. Of other text it makes some tokens.
func Tokens(text string) []Token {
	var out []Token
	depth := 0
	for at := 0; at < len(text); {
		end, kind := lex(text, at)
		if kind != blankToken {
			t := Token{Start: at, End: end, Depth: depth, Word: kind == wordToken}
			switch text[at] {
			case '(', '[', '{':
				depth++
			case ')', ']', '}':
				depth--
				t.Depth = depth
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
		return at + comment(rest, true), blankToken
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
		number := c >= '0' && c <= '9'
		for n < len(rest) && (isWordByte(rest[n]) || rest[n] == '$' || (number && rest[n] == '.')) {
			n++
		}
		return at + n, wordToken
	}
	return at + 1, otherToken
}

func isWordByte(c byte) bool {
	return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80
}

// comment is the length of a block comment, which may have others in it.
func comment(s string, nested bool) int {
	depth := 0
	for i := 0; i+1 < len(s); i++ {
		switch s[i : i+2] {
		case "/*":
			if depth == 0 || nested {
				depth++
			}
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
