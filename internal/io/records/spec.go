package records

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// Kind names the values that a column accepts.
type Kind string

// The kinds. Their names are stored in plans: they do not change.
const (
	Text   Kind = "text"   // texts, and what is no text as JSON
	Number Kind = "number" // numbers only
	Whole  Kind = "whole"  // likewise, without a fraction
	Bool   Kind = "bool"
	Time   Kind = "time" // texts and numbers with a layout
)

// Format is the format of the file that records are taken from.
type Format string

// The formats.
const (
	JSON      Format = "json"
	Workbooks Format = "excel"
)

// Column is one that is wanted.
type Column struct {
	Path     string `json:"path"` // see CheckPath; of a sheet its header, or without one its letters
	Kind     Kind   `json:"kind"`
	Optional bool   `json:"optional,omitempty"` // records, or sheets, may be without it

	Layout string   `json:"layout,omitempty"` // Time, of sheets: of days, which are numbers there
	Nulls  []string `json:"nulls,omitempty"`  // of sheets: texts and errors that mean NULL
}

// Spec selects the records and columns to take from a file.
type Spec struct {
	Format  Format   `json:"format"`
	Columns []Column `json:"columns"`

	// Of workbooks:
	Sheet    string `json:"sheet,omitempty"`  // its name
	Number   int    `json:"number,omitempty"` // else its number, from 1; 0: the first
	Range    string `json:"range,omitempty"`  // see CheckRange
	NoHeader bool   `json:"no_header,omitempty"`
}

// Encode is the form that plans and copies keep: the same text means the same.
func (s Spec) Encode() (string, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("write what is taken from records: %w", err)
	}
	return string(data), nil
}

// Decode reads what Encode wrote.
func Decode(text string) (s Spec, err error) {
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, fmt.Errorf("read what is taken from records: %w", err)
	}
	return s, nil
}

// Place describes a record that cannot be read, and is encoded in its first field.
type Place struct {
	Line   int64  // at which it begins; 0: not known
	Column int    // whose value is bad; -1: it is not of a column
	Lacks  bool   // the column has no value
	Error  string // of a formula, which its cell has: #DIV/0!
}

// append writes the place: its line, behind a colon the column, a ? if it has no value, and the error of its cell.
func (p Place) append(out []byte) []byte {
	out = strconv.AppendInt(out, p.Line, 10)
	if p.Column >= 0 {
		out = strconv.AppendInt(append(out, ':'), int64(p.Column), 10)
	}
	if p.Lacks {
		out = append(out, '?')
	}
	return append(out, p.Error...)
}

// ParsePlace reads the first field of a record.
func ParsePlace(field []byte) Place {
	at, of, found := bytes.Cut(field, []byte{':'})
	of, failed, isError := bytes.Cut(of, []byte{'#'})
	of, lacks := bytes.CutSuffix(of, []byte{'?'})
	p := Place{Column: -1, Lacks: lacks}
	if isError {
		p.Error = "#" + string(failed)
	}
	var err error
	if p.Line, err = strconv.ParseInt(string(at), 10, 64); err != nil {
		return Place{Column: -1}
	}
	if n, err := strconv.Atoi(string(of)); found && err == nil {
		p.Column = n
	}
	return p
}

// Fields returns the number of CSV fields of a record: its line, and the columns. A bad one has one more.
func (s Spec) Fields() int { return 1 + len(s.Columns) }

// Limits.
const (
	// RecordBytesMax is the most that a record may have, in its source and as CSV.
	RecordBytesMax = 8 << 20
	// DepthMax limits how deep values may be nested.
	DepthMax = 200
	// rawBytesMax of a bad record are kept.
	rawBytesMax = 64 << 10
)
