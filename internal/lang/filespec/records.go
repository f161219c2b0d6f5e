package filespec

import (
	"encoding/json"
	"fmt"
)

// Kind names the kind of values that a column takes.
type Kind string

// The kinds. Their names are stored in plans: they do not change.
const (
	Text   Kind = "text"   // texts, and what is no text as JSON
	Number Kind = "number" // numbers only
	Whole  Kind = "whole"  // likewise, without a fraction
	Bool   Kind = "bool"
	Time   Kind = "time" // texts and numbers with a layout
)

// Format names the format of the file that records are taken from.
type Format string

// The formats.
const (
	JSON      Format = "json"
	Workbooks Format = "excel"
)

// Column is one that is wanted.
type Column struct {
	Path     string `json:"path"` // see ParsePath; of a sheet its header, or without one its letters
	Kind     Kind   `json:"kind"`
	Optional bool   `json:"optional,omitempty"` // records, or sheets, may be without it

	Layout string   `json:"layout,omitempty"` // Time, of sheets: of days, which are numbers there
	Nulls  []string `json:"nulls,omitempty"`  // of sheets: texts and errors that mean NULL
}

// Spec says what is taken from a file.
type Spec struct {
	Format  Format   `json:"format"`
	Columns []Column `json:"columns"`

	// Of workbooks:
	Sheet    string `json:"sheet,omitempty"`  // its name
	Number   int    `json:"number,omitempty"` // else its number, from 1; 0: the first
	Range    string `json:"range,omitempty"`  // see ParseRange
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

// Fields returns the number of fields of a record in CSV: its line, and the columns. A bad one has
// one more.
func (s Spec) Fields() int { return 1 + len(s.Columns) }

// ExcelLayout is the layout of a sheet's datetimes where the script gives none.
const ExcelLayout = "2006-01-02 15:04:05.000"
