package files

import (
	"slices"
	"strings"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
)

// emptyIsNull reports whether the empty cell without quotes is one of the
// texts that mean NULL in c.
func emptyIsNull(c *script.InputColumn) bool { return slices.Contains(c.NullTexts, "") }

// tellsQuotes reports whether an empty cell means one thing with quotes and
// another without. DuckDB reads such a column with NULL for the latter.
func tellsQuotes(c *script.InputColumn) bool {
	switch {
	case !c.Nullable:
		return false
	case c.Type == expr.String:
		return emptyIsNull(c) != c.QuotedEmptyNull
	}
	// Blank is NULL for other types, unless it is the default.
	return c.QuotedEmptyNull && c.Default != ""
}

func anyTellsQuotes(r *script.FileReader) bool { return slices.ContainsFunc(r.Columns, tellsQuotes) }

// nullableText converts the text of a nullable string column.
func nullableText(c *script.InputColumn, text, fallback string) string {
	unquoted, quoted := "NULL", "''"
	if !emptyIsNull(c) {
		unquoted = fallback
	}
	switch {
	case c.QuotedEmptyNull:
		quoted = "NULL"
	case !emptyIsNull(c):
		quoted = fallback
	}
	var whens []string
	if unquoted != quoted && unquoted != "NULL" {
		whens = append(whens, "WHEN "+text+" IS NULL THEN "+unquoted)
	}
	if quoted != "''" {
		whens = append(whens, "WHEN "+text+" = '' THEN "+quoted)
	}
	if texts := nullTexts(c); len(texts) > 0 {
		whens = append(whens, "WHEN "+sqltext.OneOf(text, texts)+" THEN NULL")
	}
	if marksQuoted(c) {
		whens = append(whens, "WHEN "+hasMark(text)+" THEN "+withoutMark(text))
	}
	if len(whens) == 0 {
		return text
	}
	return "CASE " + strings.Join(whens, " ") + " ELSE " + text + " END"
}

// nullTexts lists the texts that mean NULL, but the empty one.
func nullTexts(c *script.InputColumn) []string {
	var texts []string
	for _, t := range c.NullTexts {
		if t != "" {
			texts = append(texts, t)
		}
	}
	return texts
}

// isNullText is the condition that a cell of a nullable column which is not a
// string is one of the texts that mean NULL, "" if there is none to test for.
func isNullText(c *script.InputColumn, text string) string {
	var terms []string
	if texts := nullTexts(c); len(texts) > 0 {
		terms = append(terms, sqltext.OneOf(text, texts))
	}
	if tellsQuotes(c) { // of quotes: without them it is NULL in DuckDB
		terms = append(terms, text+" = ''")
	}
	return strings.Join(terms, " OR ")
}
