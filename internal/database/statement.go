package database

import (
	"errors"
	"strings"

	"thalweg/internal/fault"
)

// statement is a query without what stands behind its end: semicolons, comments, blanks.
// Whatever follows a semicolon is another statement, which would be lost or worse.
func statement(query, kind string) (text string, more bool) {
	last, ended := 0, false
	for i := 0; i < len(query); {
		n, what := token(query[i:], kind, i > 0 && wordByte(query[i-1]))
		switch what {
		case tokenEnd:
			ended = true
		case tokenText:
			if ended {
				return query[:last], true
			}
			last = i + n
		case tokenBlank:
		}
		i += n
	}
	return query[:last], false
}

type tokenKind int

const (
	tokenText tokenKind = iota
	tokenBlank
	tokenEnd
)

// token is the length of the first token of a text and what it is, as far as it takes to
// know which semicolons are none. inWord says that a letter or digit stands before it.
func token(s, kind string, inWord bool) (int, tokenKind) {
	switch {
	case strings.ContainsRune(" \t\r\n\f\v", rune(s[0])):
		return 1, tokenBlank
	case s[0] == ';':
		return 1, tokenEnd
	case strings.HasPrefix(s, "--") && (kind != MySQL || len(s) == 2 || s[2] <= ' '), s[0] == '#' && kind == MySQL:
		if i := strings.IndexByte(s, '\n'); i >= 0 {
			return i + 1, tokenBlank
		}
		return len(s), tokenBlank
	case strings.HasPrefix(s, "/*"):
		what := tokenBlank
		if kind == MySQL && strings.HasPrefix(s[2:], "!") { // which MySQL executes
			what = tokenText
		}
		return comment(s, kind == Postgres), what
	case strings.IndexByte("'\"`", s[0]) >= 0:
		return quoted(s, s[0], kind == MySQL && s[0] != '`'), tokenText
	case s[0] == '[' && kind == SQLite:
		return quoted(s, ']', false), tokenText
	case (s[0] == 'e' || s[0] == 'E') && strings.HasPrefix(s[1:], "'") && kind == Postgres && !inWord:
		return 1 + quoted(s[1:], '\'', true), tokenText
	case s[0] == '$' && kind == Postgres && !inWord:
		return dollars(s), tokenText
	}
	return 1, tokenText
}

// quoted is the length of what stands between quotes. Two of them in it are another text behind the first.
func quoted(s string, end byte, backslash bool) int {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && backslash:
			i++
		case s[i] == end:
			return i + 1
		}
	}
	return len(s)
}

// comment is the length of one, which may have others in it.
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
			depth--
			if i++; depth == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}

// dollars is the length of a text such as $a$ … $a$; 1 if there is none.
func dollars(s string) int {
	i := 1
	for i < len(s) && wordByte(s[i]) {
		i++
	}
	if i == len(s) || s[i] != '$' || i > 1 && s[1] <= '9' {
		return 1
	}
	tag := s[:i+1]
	if end := strings.Index(s[len(tag):], tag); end >= 0 {
		return len(tag) + end + len(tag)
	}
	return len(s)
}

// wordByte reports whether a byte may be in a name.
func wordByte(b byte) bool {
	return b == '_' || b >= 0x80 || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

// one refuses a query of several statements.
func one(src Source, kind string) error {
	_, more := statement(src.Query, kind)
	if more {
		f := fault.New(fault.Script, "the query has several statements, with semicolons between them")
		f.Hint = "make a node for each"
		return f
	}
	return nil
}

func isSyntax(text string) bool {
	return strings.Contains(text, syntaxError) || strings.Contains(text, "syntax error")
}

// queryFault says what to do about a query that a database does not understand, where it
// stands in parentheses.
func queryFault(err error) error {
	var f *fault.Error
	if errors.As(err, &f) && f.Hint == "" && (isSyntax(f.Message) || f.Err != nil && isSyntax(f.Err.Error())) {
		f.Hint = onlySelect
	}
	return err
}

const (
	syntaxError = "error in your SQL syntax" // of MySQL
	onlySelect  = "the query has to be one SELECT, without INTO and the like: it is run in parentheses"
)
