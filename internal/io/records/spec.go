package records

import (
	"bytes"
	"strconv"
)

// Place holds the content of the first field of a record that cannot be read.
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

// Limits.
const (
	// RecordBytesMax is the most that a record may have, in its source and as CSV.
	RecordBytesMax = 8 << 20
	// DepthMax limits how deep values may be nested.
	DepthMax = 200
	// rawBytesMax of a bad record are kept.
	rawBytesMax = 64 << 10
)
