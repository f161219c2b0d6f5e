package sqltext

import "strings"

// Dialect names the database system whose SQL a text is in.
type Dialect string

// The dialects.
const (
	Postgres Dialect = "postgres"
	MySQL    Dialect = "mysql"
	SQLite   Dialect = "sqlite"
)

// Statement is a query without what stands behind its end: semicolons, comments, blanks. If
// more follows than that, it is another statement.
func Statement(query string, d Dialect) (text string, more bool) {
	last, ended := 0, false
	for at := 0; at < len(query); {
		end, blank := d.lex(query, at)
		switch {
		case query[at] == ';':
			ended = true
		case blank:
		case ended:
			return query[:last], true
		default:
			last = end
		}
		at = end
	}
	return query[:last], false
}

// lex finds the end of what begins at a byte, as far as it takes to know which semicolons are none.
func (d Dialect) lex(text string, at int) (end int, blank bool) {
	rest, inWord := text[at:], at > 0 && isWordByte(text[at-1])
	switch c := rest[0]; {
	case c == ' ' || (c >= '\t' && c <= '\r'):
		return at + 1, true
	case strings.HasPrefix(rest, "--") && (d != MySQL || len(rest) == 2 || rest[2] <= ' '), c == '#' && d == MySQL:
		if i := strings.IndexByte(rest, '\n'); i >= 0 {
			return at + i + 1, true
		}
		return len(text), true
	case strings.HasPrefix(rest, "/*"): // MySQL executes what is in some
		return at + comment(rest, d == Postgres), d != MySQL || !strings.HasPrefix(rest, "/*!")
	case c == '\'' || c == '"' || c == '`':
		return at + quoted(rest, c, d == MySQL && c != '`'), false
	case c == '[' && d == SQLite:
		return at + quoted(rest, ']', false), false
	case (c == 'e' || c == 'E') && strings.HasPrefix(rest[1:], "'") && d == Postgres && !inWord:
		return at + 1 + quoted(rest[1:], '\'', true), false
	case c == '$' && d == Postgres && !inWord:
		return at + max(1, dollarQuoted(rest)), false
	}
	return at + 1, false
}
