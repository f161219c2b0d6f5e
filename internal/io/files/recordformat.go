package files

import (
	"bytes"
	"encoding/json"
	"fmt"

	"thalweg/internal/base/fault"
	"thalweg/internal/io/records"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/filespec"
	"thalweg/internal/lang/script"
)

// A reader of records (JSON, Excel sheets) reads CSV that package records has made of them. Each line has the number of
// the record's line in the original file, then a field for each column. Messages name places in the original file.

// madeHead sets the columns of such a file from the reader's spec, without reading the file.
func madeHead(r *script.FileReader, head csvHead) (csvHead, error) {
	spec, err := filespec.Decode(r.Records)
	if err != nil {
		return head, err
	}
	head.fields = spec.Fields()
	for _, c := range r.Columns {
		at := -1
		if c.InFile() {
			at = c.Index
		}
		head.index = append(head.index, at)
	}
	return head, nil
}

// lineOf is the line at which a record of the slice begins.
func (c *csvSlice) lineOf(rec csvRecord) int64 {
	if c.r.Records == "" {
		return c.firstLine() + rec.line
	}
	return madeLine(rec)
}

func madeLine(rec csvRecord) int64 {
	text, _, _ := bytes.Cut(rec.text, []byte{','})
	return records.ParsePlace(text).Line
}

// badMade says what package records says of a record: its fields are its place, that, and
// its text.
func (c *csvSlice) badMade(rec csvRecord) *fault.Error {
	f := c.source().bad("the record cannot be read: %s", rec.shape.value(rec.text, 1))
	text, _, _ := bytes.Cut(rec.text, []byte{','})
	at := records.ParsePlace(text)
	f.Place.Line, f.Place.Record = at.Line, c.FirstRecord+rec.row+1
	f.Hint = "correct that record"
	if at.Lacks {
		f.Hint += "; if records may be without a value, say optional: true of its column"
	}
	if at.Error != "" {
		f.Hint = fmt.Sprintf("correct that cell, or read NULL there with null_text: [%q] of its column; bad_rows: "+
			"quarantine puts such rows aside", at.Error)
	}
	for _, col := range c.r.Columns {
		if col.InFile() && at.Column >= 0 && col.Index == at.Column+1 {
			f.Place.Field, f.Hint = col.Name, atColumn(f.Hint, c.r, col)
			return f
		}
	}
	return f
}

// raw is a record for people: as it is in its file, or the values that are read of it.
func (c *csvSlice) raw(rec csvRecord) string {
	if c.r.Records == "" {
		return rawText(rec.text, rec.size)
	}
	if rec.flaw != flawNone {
		text := rec.shape.value(rec.text, 2)
		return rawText(text, int64(len(text)))
	}
	var out bytes.Buffer
	out.WriteByte('{')
	for i, col := range c.r.Columns {
		at := c.head.index[i]
		if at < 0 {
			continue
		}
		if out.Len() > 1 {
			out.WriteString(", ")
		}
		out.WriteString(quoted(col.Path) + ": ")
		text := string(rec.shape.value(rec.text, at))
		switch f := rec.shape.fields[at]; {
		case !f.quoted && text == "":
			out.WriteString("null")
		case f.quoted && !json.Valid([]byte(text)) || f.quoted && col.Type == expr.String:
			out.WriteString(quoted(text))
		default:
			out.WriteString(text)
		}
	}
	out.WriteByte('}')
	return rawText(out.Bytes(), int64(out.Len()))
}

func quoted(text string) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if e.Encode(text) != nil {
		return `""`
	}
	return string(bytes.TrimRight(out.Bytes(), "\n"))
}
