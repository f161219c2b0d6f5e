package peek

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"thalweg/internal/app/inspect"
)

// Rows travel as a stream of bytes: a headMark, the length of the head and the head as JSON, then of each row a rowMark
// and its cells, and an endMark. Without rows there may be no head. A cell is a tag, and a length and so many bytes where its kind has any.
const (
	headMark = 'H'
	rowMark  = 'R'
	endMark  = 'E'

	tagNull   = '0'
	tagText   = 's'
	tagNested = 'n'
	tagCut    = 'c'
	tagInt    = 'i'
	tagFloat  = 'f'
	tagTrue   = 't'
	tagFalse  = 'u'
)

// Bounds of what a child may send: no table has more.
const (
	headBytesMax = 2 << 20
	columnsMax   = 100_000
)

var errGarbled = errors.New("a child has sent what is no row")

// head is the first that is said of rows.
type head struct {
	Columns []string `json:"columns"`
	Types   []string `json:"types"`
	Text    []bool   `json:"text"`
}

// rowWriter is an inspect.RowSink that writes rows to a stream.
type rowWriter struct {
	*bufio.Writer
	scratch []byte
}

// Begin implements inspect.RowSink.
func (w *rowWriter) Begin(res inspect.QueryResult) error {
	text, err := json.Marshal(head{res.Columns, res.Types, res.Text})
	if err != nil {
		return fmt.Errorf("encode the columns: %w", err)
	}
	_ = w.WriteByte(headMark) // see Row
	w.length(len(text))
	_, err = w.Write(text)
	return err
}

// Row implements inspect.RowSink. The writer keeps its first error for the end.
func (w *rowWriter) Row(cells []any) error {
	err := w.WriteByte(rowMark)
	for _, cell := range cells {
		switch v := cell.(type) {
		case nil:
			err = w.WriteByte(tagNull)
		case bool:
			err = w.WriteByte(map[bool]byte{true: tagTrue, false: tagFalse}[v])
		case int64:
			w.scratch = binary.AppendVarint(append(w.scratch[:0], tagInt), v)
			_, err = w.Write(w.scratch)
		case float64:
			w.scratch = binary.BigEndian.AppendUint64(append(w.scratch[:0], tagFloat), math.Float64bits(v))
			_, err = w.Write(w.scratch)
		case inspect.Nested:
			err = w.text(tagNested, string(v))
		case inspect.CutText:
			err = w.text(tagCut, string(v))
		default:
			err = w.text(tagText, fmt.Sprint(v))
		}
	}
	return err
}

func (w *rowWriter) text(tag byte, s string) error {
	err := w.WriteByte(tag)
	w.length(len(s))
	if _, more := w.WriteString(s); more != nil {
		err = more
	}
	return err
}

func (w *rowWriter) length(n int) {
	w.scratch = binary.AppendUvarint(w.scratch[:0], uint64(n)) //nolint:gosec // of a slice
	_, _ = w.Write(w.scratch)                                  // see Row
}

// end writes what is left, and that there is no more.
func (w *rowWriter) end() error { return errors.Join(w.WriteByte(endMark), w.Flush()) }

// readRows gives the rows of a stream to a sink, cells of bytesMax bytes at most. A stream that was broken off is no
// error of its own: whoever sends it says why.
func readRows(from io.Reader, bytesMax int64, to inspect.RowSink) error {
	r, columns := bufio.NewReader(from), -1
	for {
		mark, err := r.ReadByte()
		switch {
		case brokenOff(err), err == nil && mark == endMark:
			return nil
		case err != nil:
			return err
		case mark == headMark && columns < 0:
			columns, err = readHead(r, to)
		case mark == rowMark && columns >= 0:
			err = readRow(r, columns, bytesMax, to)
		default:
			err = errGarbled
		}
		if brokenOff(err) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func brokenOff(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// readHead gives the head to a sink, and returns the number of columns.
func readHead(r *bufio.Reader, to inspect.RowSink) (columns int, err error) {
	size, err := binary.ReadUvarint(r)
	if err != nil {
		return 0, err
	}
	if size > headBytesMax {
		return 0, errGarbled
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(r, text); err != nil {
		return 0, err
	}
	var h head
	if err := json.Unmarshal(text, &h); err != nil {
		return 0, errors.Join(errGarbled, err)
	}
	columns = len(h.Columns)
	if columns > columnsMax || len(h.Types) != columns || len(h.Text) != columns {
		return 0, errGarbled
	}
	return columns, to.Begin(inspect.QueryResult{Columns: h.Columns, Types: h.Types, Text: h.Text})
}

func readRow(r *bufio.Reader, columns int, bytesMax int64, to inspect.RowSink) (err error) {
	row := make([]any, columns)
	for i := range row {
		if row[i], err = readCell(r, bytesMax); err != nil {
			return err
		}
	}
	return to.Row(row)
}

func readCell(r *bufio.Reader, bytesMax int64) (any, error) {
	tag, err := r.ReadByte()
	if err != nil {
		return nil, err
	}
	switch tag {
	case tagNull:
		return nil, nil
	case tagTrue, tagFalse:
		return tag == tagTrue, nil
	case tagInt:
		return binary.ReadVarint(r)
	case tagFloat:
		var bits [8]byte
		_, err := io.ReadFull(r, bits[:])
		return math.Float64frombits(binary.BigEndian.Uint64(bits[:])), err
	}
	size, err := binary.ReadUvarint(r)
	if err != nil {
		return nil, err
	}
	if size > uint64(bytesMax) { //nolint:gosec // a limit
		return nil, errGarbled
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, err
	}
	switch tag {
	case tagText:
		return string(text), nil
	case tagNested:
		return inspect.Nested(text), nil
	case tagCut:
		return inspect.CutText(text), nil
	}
	return nil, errGarbled
}
