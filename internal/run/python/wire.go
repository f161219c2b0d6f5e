package python

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/expr"
)

// The protocol, whose other end is worker.py. Integers are 64 bits in the
// machine's own order: both ends run on one machine. A message is its kind, the
// length of its payload, and the payload. A chunk's payload is a header, and for
// each column
//
//	flag: 1 if there are NULLs | a byte for each row, 1 is NULL, only with the flag | values
//
// where values are 8 bytes a row, except bool, 1 byte a row, and string: rows + 1
// offsets, beginning with 0, then the texts in one piece.
const (
	messageHeaderBytes = 16
	resultHeaderBytes  = 40 // sequence number, ns for rows, ns for imports, rows, length of the report that follows
	wordBytes          = 8
)

// Messages to an interpreter.
const (
	msgProgram uint64 = iota + 1
	msgForget
	msgChunk
)

// Messages from an interpreter.
const (
	msgHello uint64 = iota + 1
	msgResult
)

func appendWord(b []byte, n uint64) []byte { return binary.NativeEndian.AppendUint64(b, n) }

func word(b []byte, i int) uint64 { return binary.NativeEndian.Uint64(b[i*wordBytes:]) }

// readMessage returns io.EOF at the end of the stream between two messages.
func readMessage(r io.Reader, maxBytes int64) (uint64, []byte, error) {
	var head [messageHeaderBytes]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	kind, size := word(head[:], 0), word(head[:], 1)
	if kind != msgHello && kind != msgResult {
		return 0, nil, fmt.Errorf("a message of kind %d: %w", kind, errProtocol)
	}
	if size > uint64(maxBytes) {
		return 0, nil, &tooLargeError{Bytes: size, Limit: maxBytes}
	}
	payload := make([]byte, size)
	if _, err := io.ReadFull(r, payload); err != nil {
		return 0, nil, fmt.Errorf("read a message of %d bytes: %w", size, errors.Join(err, io.ErrUnexpectedEOF))
	}
	return kind, payload, nil
}

// tooLargeError is a message beyond the limit.
type tooLargeError struct {
	Bytes uint64
	Limit int64
}

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("%d bytes of results for one chunk of rows, over the limit of %d", e.Bytes, e.Limit)
}

// Row is a row of a program's inputs, by their positions. It is valid until the
// next one is asked for.
type Row interface {
	Null(i int) bool
	// Word is the bits of a whole number, a float, a bool (0 or 1), a decimal in
	// cents or a datetime in milliseconds since 1970.
	Word(i int) uint64
	Text(i int) []byte
}

// encoder collects rows column by column until they are enough for a chunk.
type encoder struct {
	columns []columnEncoder
	rows    int
	bytes   int64
}

type columnEncoder struct {
	column Column
	kind   wireKind
	nulls  []byte // a byte for each row once there has been a NULL, else nil
	values []byte // fixed width values, or offsets
	texts  []byte
}

func newEncoder(p *program) *encoder {
	e := &encoder{columns: make([]columnEncoder, len(p.Inputs))}
	for i, c := range p.Inputs {
		e.columns[i] = columnEncoder{column: c, kind: p.kind(c.Type, true)}
	}
	e.reset()
	return e
}

func (e *encoder) reset() {
	e.rows, e.bytes = 0, 0
	for i := range e.columns {
		c := &e.columns[i]
		c.nulls, c.values, c.texts = nil, c.values[:0], c.texts[:0]
		if c.kind.text() {
			c.values = appendWord(c.values, 0)
		}
	}
}

// add appends a row; nothing of it is kept. On error the encoder is spent.
func (e *encoder) add(row Row) error {
	for i := range e.columns {
		c := &e.columns[i]
		before := len(c.values) + len(c.texts)
		if err := c.add(row, i, e.rows); err != nil {
			return err
		}
		e.bytes += int64(len(c.values) + len(c.texts) - before)
	}
	e.rows++
	return nil
}

// add appends the value of a row's column i; before is how many rows there are.
func (c *columnEncoder) add(row Row, i, before int) error {
	if row.Null(i) {
		if c.nulls == nil {
			c.nulls = make([]byte, before, before+64)
		}
		c.nulls = append(c.nulls, 1)
		c.addZero()
		return nil
	}
	if c.nulls != nil {
		c.nulls = append(c.nulls, 0)
	}
	if c.kind.text() && (c.column.Type.IsDecimal() || c.column.Type.Nested()) {
		return c.addText(row.Text(i))
	}
	switch c.column.Type {
	case expr.Bool:
		c.values = append(c.values, byte(row.Word(i)))
	case expr.String:
		return c.addText(row.Text(i))
	case expr.DateTime:
		return c.addTime(int64(row.Word(i)))
	default:
		c.values = appendWord(c.values, row.Word(i))
	}
	return nil
}

func (c *columnEncoder) addZero() {
	switch {
	case c.kind.text():
		c.values = appendWord(c.values, uint64(len(c.texts)))
	case c.kind == wireBool:
		c.values = append(c.values, 0)
	default:
		c.values = appendWord(c.values, 0)
	}
}

func (c *columnEncoder) addText(s []byte) error {
	if !utf8.Valid(s) {
		f := fault.New(fault.UserData, "r.%s is not valid UTF-8 and cannot be given to Python", c.column.Name)
		f.Place = fault.Place{Field: c.column.Name, Value: shorten(fmt.Sprintf("%q", s))}
		return f
	}
	c.texts = append(c.texts, s...)
	c.values = appendWord(c.values, uint64(len(c.texts)))
	return nil
}

// Milliseconds since 1970 at which Python's years begin and end.
const (
	firstTimeMS = -62_135_596_800_000 // 0001-01-01
	endTimeMS   = 253_402_300_800_000 // 10000-01-01
)

func (c *columnEncoder) addTime(ms int64) error {
	if ms < firstTimeMS || ms >= endTimeMS {
		f := fault.New(fault.UserData, "the year of r.%s is outside of Python's range, 1 to 9999", c.column.Name)
		f.Place = fault.Place{Field: c.column.Name, Value: time.UnixMilli(ms).UTC().String()}
		return f
	}
	if c.kind == wireDatetime {
		c.values = appendWord(c.values, uint64(ms))
		return nil
	}
	c.texts = time.UnixMilli(ms).UTC().AppendFormat(c.texts, DatetimeLayout)
	c.values = appendWord(c.values, uint64(len(c.texts)))
	return nil
}

// encode returns the rows as the part of a chunk's payload that follows its header.
func (e *encoder) encode() []byte { return e.appendTo(nil) }

// appendTo appends the same to b.
func (e *encoder) appendTo(b []byte) []byte {
	size := 0
	for i := range e.columns {
		c := &e.columns[i]
		size += wordBytes + len(c.nulls) + len(c.values) + len(c.texts)
	}
	b = slices.Grow(b, size)
	for i := range e.columns {
		c := &e.columns[i]
		if c.nulls == nil {
			b = appendWord(b, 0)
		} else {
			b = append(appendWord(b, 1), c.nulls...)
		}
		b = append(append(b, c.values...), c.texts...)
	}
	return b
}

// answer is an interpreter's answer to a chunk.
type answer struct {
	sequence uint64
	busy     time.Duration // for the rows
	imports  time.Duration // for the program's code, the first time
	rows     int           // 0: there are no columns
	report   report
	columns  []byte // encoded
}

// report is the JSON part of an answer.
type report struct {
	LoadError *failure  `json:"load_error"`
	Errors    []failure `json:"errors"` // in the order of rows
	// Surroundings holds, by name, whatever else decides about the program's results: see Check.
	Surroundings map[string]string `json:"surroundings"`
}

// failure is one row's failure as worker.py describes it.
type failure struct {
	Row       int    `json:"row"`      // of the chunk
	Field     int    `json:"field"`    // -1: unknown
	Move      string `json:"move"`     // a fault.Kind
	Category  string `json:"category"` // exception, memory, timeout, type, value, digits, none
	Type      string `json:"type"`
	Message   string `json:"message"`
	Traceback string `json:"traceback"`
	File      string `json:"file"`
	Line      int64  `json:"line"`
	Value     string `json:"value"`
	Given     string `json:"given"`      // the values of the row that gave Value
	ResultRow int    `json:"result_row"` // of a function over many rows, from 1; 0: unknown
}

// ends says whether the process is to be replaced after the failure.
func (f *failure) ends() bool { return f.Category == "memory" || f.Category == "timeout" }

func decodeAnswer(payload []byte) (*answer, error) {
	if len(payload) < resultHeaderBytes {
		return nil, fmt.Errorf("an answer of %d bytes: %w", len(payload), errProtocol)
	}
	a := &answer{
		sequence: word(payload, 0),
		busy:     time.Duration(word(payload, 1)),
		imports:  time.Duration(word(payload, 2)),
		rows:     int(word(payload, 3)),
	}
	size := word(payload, 4)
	rest := payload[resultHeaderBytes:]
	if size > uint64(len(rest)) || a.rows < 0 || a.rows > maxChunkRows {
		return nil, fmt.Errorf("an answer of %d rows with a report of %d bytes: %w", a.rows, size, errProtocol)
	}
	if size > 0 {
		if err := json.Unmarshal(rest[:size], &a.report); err != nil {
			return nil, fmt.Errorf("read the report of an answer: %w", errors.Join(err, errProtocol))
		}
	}
	a.columns = rest[size:]
	return a, nil
}

// errProtocol is an answer that worker.py would not give: a formula has written to the descriptor.
var errProtocol = errors.New("the interpreter broke the protocol")

// decoder reads the values of an answer's columns.
type decoder struct {
	rows    int
	columns []columnDecoder
}

type columnDecoder struct {
	field *Field
	kind  wireKind
	nulls []byte
	data  []byte
	texts string // all of them in one string if they are short
	blob  []byte // else all of them
	ends  []byte // offsets
}

// shortTextBytes is the average length from which texts get memory of their own,
// so that keeping one does not keep its neighbours.
const shortTextBytes = 256

func newDecoder(p *program, a *answer) (*decoder, error) {
	d, rest, err := cutColumns(p, a.rows, a.columns)
	if err == nil && len(rest) != 0 && a.rows > 0 {
		err = fmt.Errorf("%d bytes after the last column: %w", len(rest), errProtocol)
	}
	return d, err
}

// cutColumns takes the columns of so many rows off b and returns what follows.
func cutColumns(p *program, rows int, b []byte) (*decoder, []byte, error) {
	d := &decoder{rows: rows, columns: make([]columnDecoder, len(p.Fields))}
	if rows == 0 {
		return d, b, nil
	}
	for i := range p.Fields {
		c := &d.columns[i]
		c.field, c.kind = &p.Fields[i], p.kind(p.Fields[i].Type, false)
		var err error
		if b, err = c.cut(b, rows); err != nil {
			return nil, nil, err
		}
	}
	return d, b, nil
}

// cut takes the column off b and returns what follows.
func (c *columnDecoder) cut(b []byte, rows int) ([]byte, error) {
	short := fmt.Errorf("column p.%s is cut short: %w", c.field.Name, errProtocol)
	take := func(n int) []byte {
		if n < 0 || n > len(b) {
			return nil
		}
		out := b[:n:n]
		b = b[n:]
		return out
	}
	flag := take(wordBytes)
	if flag == nil {
		return nil, short
	}
	if word(flag, 0) == 1 {
		if c.nulls = take(rows); c.nulls == nil {
			return nil, short
		}
	}
	switch {
	case c.kind == wireBool:
		c.data = take(rows)
	case c.kind.text():
		if c.ends = take((rows + 1) * wordBytes); c.ends == nil {
			return nil, short
		}
		if err := checkOffsets(c.ends, rows, len(b)); err != nil {
			return nil, err
		}
		c.data = take(int(word(c.ends, rows)))
		if len(c.data) < shortTextBytes*rows {
			c.texts = string(c.data)
		} else {
			c.blob = c.data
		}
	default:
		c.data = take(rows * wordBytes)
	}
	if c.data == nil {
		return nil, short
	}
	return b, nil
}

func checkOffsets(ends []byte, rows, limit int) error {
	last := word(ends, 0)
	for i := 1; i <= rows; i++ {
		end := word(ends, i)
		if end < last || end > uint64(limit) {
			return fmt.Errorf("text offset %d after %d: %w", end, last, errProtocol)
		}
		last = end
	}
	if word(ends, 0) != 0 {
		return fmt.Errorf("the first text begins at %d: %w", word(ends, 0), errProtocol)
	}
	return nil
}

// row stores the values of row i in out.
func (d *decoder) row(i int, out []any) *failure {
	for k := range d.columns {
		v, err := d.columns[k].value(i)
		if err != nil {
			return &failure{Row: i, Field: k, Move: string(fault.Script), Category: "value", Message: err.Error(),
				Value: d.columns[k].text(i)}
		}
		out[k] = v
	}
	return nil
}

func (c *columnDecoder) value(i int) (any, error) {
	if c.nulls != nil && c.nulls[i] != 0 {
		return nil, nil
	}
	switch c.field.Type {
	case expr.Int, expr.Date, expr.Instant: // as transported
		return int64(word(c.data, i)), nil
	case expr.Float:
		return math.Float64frombits(word(c.data, i)), nil
	case expr.Decimal:
		return Cents(word(c.data, i)), nil
	case expr.Bool:
		return c.data[i] != 0, nil
	case expr.DateTime:
		if c.kind == wireDatetime {
			return time.UnixMilli(int64(word(c.data, i))).UTC(), nil
		}
		return parseDatetime(c.text(i))
	}
	return c.text(i), nil
}

func (c *columnDecoder) text(i int) string {
	if c.ends == nil {
		return ""
	}
	start, end := word(c.ends, i), word(c.ends, i+1)
	if c.blob != nil {
		return string(c.blob[start:end])
	}
	return c.texts[start:end]
}

// parseDatetime reads DatetimeLayout, with any offset, and with any number of
// digits of the second, of which three are kept. The offset stays the time's
// zone; it has no name, whatever the machine's own zone is.
func parseDatetime(s string) (time.Time, error) {
	t, err := time.ParseInLocation("2006-01-02T15:04:05Z07:00", s, time.UTC)
	if err != nil {
		return time.Time{}, errors.New("the text is not a datetime like " + DatetimeLayout)
	}
	return t.Truncate(time.Millisecond), nil
}
