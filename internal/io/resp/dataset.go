package resp

import (
	"strconv"

	"thalweg/internal/io/tableindex"
)

// Rows finds rows by their keys; *tableindex.Table is one.
type Rows interface {
	// Lookup returns the frames of a row's values, as tableindex.Table has it.
	Lookup(key, buffer []byte) (frames, used []byte, found bool, err error)
	// Place returns where the lookup of a key begins, and Touch reads what lookups will, from many places at once.
	Place(key []byte) uint64
	Touch(places []uint64) byte
	Rows() int64
}

// Dataset is a table with the names of its columns as clients get them.
type Dataset struct {
	rows   Rows
	source string
	column map[string]int
	names  [][]byte // their frames
}

// NewDataset returns rows whose values have names.
func NewDataset(rows Rows, columns []string, source string) *Dataset {
	d := &Dataset{rows: rows, source: source, column: make(map[string]int, len(columns))}
	for i, name := range columns {
		d.column[name] = i
		d.names = append(d.names, tableindex.Frame(nil, []byte(name)))
	}
	return d
}

// frame cuts the first frame off: a bulk string, or NULL.
func frame(frames []byte) (first, rest []byte, null bool) {
	n, i := 0, 1
	for ; frames[i] != '\r'; i++ {
		if frames[i] == '-' {
			return frames[:len(tableindex.Null)], frames[len(tableindex.Null):], true
		}
		n = n*10 + int(frames[i]-'0')
	}
	end := i + 2 + n + 2
	return frames[:end], frames[end:], false
}

// appendHead appends the head of an answer of several parts.
func appendHead(to []byte, kind byte, n int) []byte {
	to = append(to, kind)
	to = strconv.AppendInt(to, int64(n), 10)
	return append(to, '\r', '\n')
}
