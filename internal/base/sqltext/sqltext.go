// Package sqltext quotes names and values for DuckDB SQL. Nothing else in the
// project may put a name or a value into SQL text.
//
// It promises that whatever the input, a quoted name or value is one token of
// the kind asked for, and that a [Copy] to Parquet can be written without taking
// one float for another. It cannot fail.
package sqltext

import (
	"math"
	"strconv"
	"strings"
)

// Ident quotes name as an identifier.
func Ident(name string) string {
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// String quotes s as a VARCHAR literal. DuckDB text holds no NUL bytes, so
// those are written through chr(0).
func String(s string) string {
	if !strings.Contains(s, "\x00") {
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	pieces := strings.Split(s, "\x00")
	for i, p := range pieces {
		pieces[i] = "'" + strings.ReplaceAll(p, "'", "''") + "'"
	}
	return "(" + strings.Join(pieces, " || chr(0) || ") + ")"
}

// Strings quotes each of values and writes them as a list literal.
func Strings(values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = String(v)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// OneOf is the condition that a text is one of values; NULL for NULL. It is
// not written as IN: DuckDB makes a join with a table of five constants or
// more, and a join loses the order of rows.
func OneOf(text string, values []string) string {
	return "list_contains(" + Strings(values) + ", " + text + ")"
}

// Int writes a BIGINT literal. The smallest value has no literal of its own
// in SQL (the minus is an operator), hence the cast from text.
func Int(v int64) string {
	if v == math.MinInt64 {
		return "CAST('-9223372036854775808' AS BIGINT)"
	}
	return "CAST(" + strconv.FormatInt(v, 10) + " AS BIGINT)"
}

// Float writes a DOUBLE literal that reads back to the same bits.
func Float(v float64) string {
	return "CAST('" + strconv.FormatFloat(v, 'g', -1, 64) + "' AS DOUBLE)"
}

// Bool writes a BOOLEAN literal.
func Bool(v bool) string {
	if v {
		return "true"
	}
	return "false"
}

// Glob keeps DuckDB from taking characters of a path as wildcards.
func Glob(path string) string {
	var b strings.Builder
	for i := range len(path) {
		if c := path[i]; c == '*' || c == '?' || c == '[' {
			b.WriteString("[" + string(c) + "]")
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// Path quotes a name with points between its parts: schema.table.
func Path(name string) string {
	parts := strings.Split(name, ".")
	for i, p := range parts {
		parts[i] = Ident(p)
	}
	return strings.Join(parts, ".")
}
