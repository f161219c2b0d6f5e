package files

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
)

// csvOutput renders the writing of a CSV file: each line is built as one text
// column and COPY writes it raw. With an empty quote character it neither
// quotes nor escapes, and the header is that column's name.
//
// The file reads back as what was written: in DuckDB's strict mode, in pandas,
// and here. So a value that would not is in quotes (script.FileWriter.NeedsQuotes),
// a NULL never is, and no line is empty, because readers pass over such lines.
type csvOutput struct{ w *script.FileWriter }

// rowNumber is a column beside those of the script.
const rowNumber = "__n"

func (o csvOutput) copy(source, path string) (sqltext.Copy, error) {
	parts := make([]string, 0, 2*len(o.w.Columns))
	for i, c := range o.w.Columns {
		text, err := c.PrintSQL(sqltext.Ident(c.Name))
		if err != nil {
			return sqltext.Copy{}, scriptFault(c.Pos, c.Name, "format %q of column %s: %s", c.Format, c.Name, err)
		}
		if i > 0 {
			parts = append(parts, sqltext.String(o.w.Separator))
		}
		parts = append(parts, o.cell(c, text))
	}
	end := ""
	if o.w.CRLF {
		end = "\r" // COPY adds the LF
		parts = append(parts, sqltext.String(end))
	}
	if o.mayRefuse() {
		source = "(SELECT *, row_number() OVER () AS " + rowNumber + " FROM " + source + ")"
	}
	// concat takes NULL for an empty text, where || would lose the line.
	return sqltext.Copy{
		Query: "SELECT concat(" + strings.Join(parts, ", ") + ") AS " + sqltext.Ident(o.header()+end) +
			" FROM " + source, Path: path,
		Options: []string{"FORMAT csv", "HEADER true", "QUOTE ''", "ESCAPE ''", "COMPRESSION 'uncompressed'"},
	}, nil
}

// alone reports whether a line is one cell, which must not be empty.
func (o csvOutput) alone() bool { return len(o.w.Columns) == 1 }

// header is the first line.
func (o csvOutput) header() string {
	cells := make([]string, len(o.w.Columns))
	for i, c := range o.w.Columns {
		cells[i] = c.Header
		// Readers would take U+FEFF at the start of a file for a mark of its encoding.
		if o.w.Quote == script.QuoteAll || o.w.NeedsQuotes(c.Header) || o.alone() && c.Header == "" || i == 0 &&
			strings.HasPrefix(c.Header, string(utf8BOM)) {
			cells[i] = `"` + strings.ReplaceAll(c.Header, `"`, `""`) + `"`
		}
	}
	return strings.Join(cells, o.w.Separator)
}

// cell renders a cell from the text of its value.
func (o csvOutput) cell(c *script.OutputColumn, text string) string {
	cell := text
	needs := o.needsQuotes(c, text)
	switch {
	case o.w.Quote == script.QuoteAll:
		cell = quotedSQL(text)
	case len(needs) == 0:
	case o.w.Quote == script.QuoteNone:
		cell = "CASE WHEN " + strings.Join(needs, " OR ") + " THEN " +
			o.refusal(c, "the value needs quotes, but csv.quote is none: ", "left("+text+
				fmt.Sprintf(", %d)", shownValueRunes)) +
			" ELSE " + text + " END"
	default:
		cell = "CASE WHEN " + strings.Join(needs, " OR ") + " THEN " + quotedSQL(text) + " ELSE " + text + " END"
	}
	if !c.Nullable {
		return cell
	}
	null := sqltext.String(c.NullText)
	if c.NullText == "" && o.alone() {
		null = sqltext.String(`""`) // not text: a reader takes it for NULL
		if c.Type == expr.String || o.w.Quote == script.QuoteNone {
			null = o.refusal(c, "a NULL would be an empty line, which readers pass over: give the column csv.null_text",
				"''")
		}
	}
	return "CASE WHEN " + sqltext.Ident(c.Name) + " IS NULL THEN " + null + " ELSE " + cell + " END"
}

// needsQuotes lists the conditions under which a value is put in quotes.
func (o csvOutput) needsQuotes(c *script.OutputColumn, text string) []string {
	var out []string
	if !o.harmless(c) {
		// A search for each looks at many bytes at a time; one regular expression for all at each byte.
		for _, r := range distinctRunes(o.w.QuotedAnywhere()) {
			out = append(out, fmt.Sprintf("contains(%s, chr(%d))", text, r))
		}
	}
	if c.Type == expr.String { // blanks that a format puts around a number are not part of it
		out = append(out, text+" < '!' AND "+text+" <> ''", "ends_with("+text+", ' ')", "ends_with("+text+", '\t')")
	}
	switch {
	case c.Nullable:
		out = append(out, text+" = "+sqltext.String(c.NullText))
		if o.alone() && c.NullText != "" {
			out = append(out, text+" = ''")
		}
	case o.alone():
		out = append(out, text+" = ''")
	}
	return out
}

// plainVerb is a format that has no text around its verb.
var plainVerb = regexp.MustCompile(`^(%[-+0]?[0-9]*(\.[0-9]+)?[a-z])?$`)

// harmless reports whether no value of the column can have a character in it
// that needs quotes.
func (o csvOutput) harmless(c *script.OutputColumn) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	if c.Type == expr.String || strings.ContainsAny(o.w.Separator, letters+" .+-:%!()=") {
		return false
	}
	if c.Type == expr.DateTime || c.Type == expr.Date || c.Type == expr.Instant {
		return c.Zone == "" && !strings.ContainsAny(c.Format, o.w.QuotedAnywhere())
	}
	return plainVerb.MatchString(c.Format) && expr.PrintNote(c.Type, c.Format) == nil
}

// mayRefuse reports whether a row can be refused, and so needs a number.
func (o csvOutput) mayRefuse() bool {
	c := o.w.Columns[0]
	return o.w.Quote == script.QuoteNone || o.alone() && c.Nullable && c.NullText == "" && c.Type == expr.String
}

// refusal raises an error that names the file's row.
func (o csvOutput) refusal(c *script.OutputColumn, why, detail string) string {
	return expr.Raised{Message: "row "}.SQL(rowNumber, sqltext.String(", column "+c.Name+": "+why), detail)
}

func quotedSQL(text string) string {
	return `concat('"', replace(` + text + `, '"', '""'), '"')`
}

// distinctRunes lists the characters of a text once each.
func distinctRunes(text string) []rune {
	runes := []rune(text)
	slices.Sort(runes)
	return slices.Compact(runes)
}
