package files

import (
	"bytes"
	"slices"
	"strings"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/script"
)

// A text in quotes is no NULL, even if it is one of the column's null texts.
// DuckDB does not say which cells had quotes, so a file with such a cell is
// rewritten, with a mark in front of the cell's text; and in front of texts
// that begin with the mark. A file with neither is read as it is.

// cellMark is the mark: a control character (data link escape) that hardly any
// text begins with.
const cellMark = '\x10'

// marksQuoted reports whether null texts of the column do not count in quotes.
func marksQuoted(c *script.InputColumn) bool {
	return c.Nullable && !c.QuotedEmptyNull && len(nullTexts(c)) > 0
}

// markedTexts lists the texts that are marked in the field of a column: those
// of all columns that read it; none if there is no marking.
func markedTexts(r *script.FileReader, column int) []string {
	var texts []string
	if !r.Columns[column].InFile() {
		return nil
	}
	for _, c := range r.Columns {
		if !c.InFile() {
			continue
		}
		same := c.Index == r.Columns[column].Index
		if r.CSV.ByHeader {
			same = c.Header == r.Columns[column].Header
		}
		if same && marksQuoted(c) {
			texts = append(texts, nullTexts(c)...)
		}
	}
	return texts
}

// fieldMarks has, for each field of a record that is marked, the texts that
// are; nil if none is.
func fieldMarks(r *script.FileReader, head csvHead) [][]string {
	var fields [][]string
	for i := range r.Columns {
		if texts := markedTexts(r, i); texts != nil && head.index[i] >= 0 {
			if fields == nil {
				fields = make([][]string, head.fields)
			}
			fields[head.index[i]] = texts
		}
	}
	return fields
}

// isMarked reports whether field i of a record gets a mark.
func isMarked(marks [][]string, rec csvRecord, i int) bool {
	if marks == nil || marks[i] == nil {
		return false
	}
	value := rec.shape.value(rec.text, i)
	return len(value) > 0 && value[0] == cellMark || rec.shape.fields[i].quoted &&
		slices.Contains(marks[i], string(value))
}

// hasMark is the condition that a text has a mark, withoutMark what is behind it.
func hasMark(text string) string {
	return "starts_with(" + text + ", " + sqltext.String(string(cellMark)) + ")"
}
func withoutMark(text string) string { return "substr(" + text + ", 2)" }

// unmarked is the text of a cell, with a mark or without.
func unmarked(text string) string {
	return "CASE WHEN " + hasMark(text) + " THEN " + withoutMark(text) + " ELSE " + text + " END"
}

// isMarkedNull is the condition that a text is a marked null text of c.
func isMarkedNull(c *script.InputColumn, text string) string {
	texts := nullTexts(c)
	for i, t := range texts {
		texts[i] = string(cellMark) + t
	}
	return sqltext.OneOf(text, texts)
}

// markFinder looks whether a range may have a cell that has to be marked. It
// may say so of one that has none, never the other way round.
type markFinder struct {
	texts   map[string]bool
	longest int
	found   bool
	seen    int64 // what is before has been looked at
}

// newMarkFinder returns nil if nothing is to be found.
func newMarkFinder(marks [][]string) *markFinder {
	if marks == nil {
		return nil
	}
	f := &markFinder{texts: map[string]bool{}}
	for _, texts := range marks {
		for _, t := range texts {
			f.texts[t] = true
			f.longest = max(f.longest, len(t))
			f.found = f.found || strings.Contains(t, `"`) // doubled in the file: not worth a search
		}
	}
	return f
}

// look looks at text, which is at offset and begins where a record does.
func (f *markFinder) look(text []byte, offset int64) {
	end := offset + int64(len(text))
	if f == nil || f.found || f.seen >= end {
		return
	}
	// A cell may have been seen up to its closing quote.
	from := max(f.seen-int64(f.longest)-1, offset)
	f.found = f.in(text[from-offset:])
	f.seen = end
}

// in looks at what is between any two neighbouring quotes.
func (f *markFinder) in(text []byte) bool {
	if bytes.IndexByte(text, cellMark) >= 0 {
		return true
	}
	for {
		i := bytes.IndexByte(text, '"')
		if i < 0 {
			return false
		}
		text = text[i+1:]
		near := text[:min(len(text), f.longest+1)]
		if n := bytes.IndexByte(near, '"'); n >= 0 && f.texts[string(near[:n])] {
			return true
		}
	}
}
