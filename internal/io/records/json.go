package records

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/filespec"
)

// Writer takes the text of a file, and writes its records as CSV.
type Writer struct {
	to     io.Writer
	spec   filespec.Spec
	root   *node
	leaves []*node

	buf    []byte
	at     int    // what is before it in buf was used
	out    []byte // the record that is being written
	line   int64  // of buf's beginning, from 1
	record int64
	values [][]byte // of the columns; nil: none
	text   []byte   // of the value that is being written

	visit func(object []byte) error // nil: values are written

	begun   bool
	list    bool // the file is one list of records
	ended   bool // and it is over
	between bool // a comma has to come before the next record
	behind  bool // a comma has come, and a record has to
	bytes   int64
}

// NewWriter writes the values of the columns of a JSON file to to.
func NewWriter(to io.Writer, spec filespec.Spec) (*Writer, error) {
	w := &Writer{to: to, spec: spec, line: 1, values: make([][]byte, len(spec.Columns))}
	var err error
	w.root, w.leaves, err = tree(spec.Columns)
	return w, err
}

// Written is the length of the CSV so far.
func (w *Writer) Written() int64 { return w.bytes }

// Write takes the next of the file's text.
func (w *Writer) Write(p []byte) (int, error) {
	w.buf = append(w.buf, p...)
	return len(p), w.take(false)
}

// Close takes what is left.
func (w *Writer) Close() error {
	w.buf = append(w.buf, '\n') // a number may be the last
	if err := w.take(true); err != nil {
		return err
	}
	if w.list && !w.ended {
		w.line-- // the line end is ours
		return w.broken("the list of records is not closed: the file was not written or copied whole")
	}
	return nil
}

// take writes the records that are whole.
func (w *Writer) take(last bool) error {
	defer func() { w.buf, w.at = w.buf[:copy(w.buf, w.buf[w.at:])], 0 }()
	if !w.begun && !w.begin(last) {
		return nil
	}
	for {
		if w.pass(blanks(w.rest(), 0)); len(w.rest()) == 0 {
			return nil
		}
		end, err := w.one(last)
		if errors.Is(err, errMore) {
			return nil
		}
		if err != nil {
			return err
		}
		w.pass(end)
	}
}

// begin looks whether the file is a list; it says whether enough of it is there.
func (w *Writer) begin(last bool) bool {
	mark := []byte("\ufeff")
	if len(w.buf) < len(mark) && !last {
		return false
	}
	if bytes.HasPrefix(w.buf, mark) {
		w.at = len(mark)
	}
	w.pass(blanks(w.rest(), 0))
	if len(w.rest()) == 0 {
		return false
	}
	if w.begun = true; w.rest()[0] == '[' {
		w.list = true
		w.pass(1)
	}
	return true
}

// rest is the text that was not used yet.
func (w *Writer) rest() []byte { return w.buf[w.at:] }

// pass notes that text was used.
func (w *Writer) pass(n int) {
	w.line += int64(bytes.Count(w.buf[w.at:w.at+n], []byte{'\n'}))
	w.at += n
}

func (w *Writer) broken(format string, args ...any) error {
	f := fault.New(fault.UserData, format, args...)
	f.Place.Line = w.line
	f.Hint = "look at that line; a file with one object a line can be read without its bad lines: bad_rows"
	return f
}

// one writes the record at the beginning of the buffer, and says where it ends.
func (w *Writer) one(last bool) (end int, err error) {
	if w.list {
		if end, err := w.separator(); end > 0 || err != nil {
			return end, err
		}
	}
	text := w.rest()
	end, err = value(text, 0, 0)
	long := len(text) > RecordBytesMax && errors.Is(err, errMore)
	var bad *syntaxError
	switch {
	case err == nil:
		w.between, w.behind = w.list, false
		return end, w.write(text[:end])
	case errors.Is(err, errMore) && !last && !long:
		return 0, errMore
	case long:
		return 0, w.broken("the record is longer than %d MiB", RecordBytesMax>>20)
	case errors.Is(err, errMore):
		bad = &syntaxError{len(text), "the record is not whole: the file ends in it"}
	case !errors.As(err, &bad):
		return 0, err
	case bad.at+shownBytesMax > len(text) && !last:
		return 0, errMore // what is said must not depend on how the text comes
	}
	if w.list {
		w.pass(bad.at)
		return 0, w.broken("%s", bad.what)
	}
	end = nextObject(text)
	if end == len(text) && !last && len(text) < RecordBytesMax {
		return 0, errMore // the line may go on
	}
	return end, w.bad(text[:end], bad.what)
}

// separator passes what is between the records of a list; 0: a record begins.
func (w *Writer) separator() (int, error) {
	switch c := w.rest()[0]; {
	case w.ended:
		return 0, w.broken("%s is behind the end of the list of records", shown(w.rest()))
	case c == ']' && w.behind:
		return 0, w.broken("%s is no JSON: a record is expected behind the comma", shown(w.rest()))
	case c == ']':
		w.ended = true
		return 1, nil
	case w.between && c != ',':
		return 0, w.broken("%s is no JSON: a comma or ] is expected", shown(w.rest()))
	case w.between:
		w.between, w.behind = false, true
		return 1, nil
	}
	return 0, nil
}

// nextObject is the next line behind the first that begins like a record.
func nextObject(text []byte) int {
	if i := bytes.Index(text, []byte("\n{")); i >= 0 {
		return i + 1
	}
	return len(text)
}

// bad writes a record that cannot be read: its line, why, and its text.
func (w *Writer) bad(text []byte, what string) error {
	return w.badAt(text, Place{Line: w.line, Column: -1}, what)
}

// badAt is bad for the value of a column.
func (w *Writer) badAt(text []byte, at Place, what string) error {
	raw := bytes.TrimRight(text, " \r\n")
	if len(raw) > rawBytesMax {
		raw = raw[:rawBytesMax]
	}
	raw = bytes.ToValidUTF8(raw, []byte("\ufffd"))
	raw = bytes.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, raw)
	w.out = at.append(w.out[:0])
	w.out = appendText(append(w.out, ','), []byte(what))
	w.out = appendText(append(w.out, ','), raw)
	for range w.spec.Fields() - 2 {
		w.out = append(w.out, ',')
	}
	return w.flush()
}

func (w *Writer) flush() error {
	w.out = append(w.out, '\n')
	n, err := w.to.Write(w.out)
	w.bytes += int64(n)
	return err
}

// write writes a whole record.
func (w *Writer) write(text []byte) error {
	switch {
	case !utf8.Valid(text):
		return w.bad(text, "it is not UTF-8 text")
	case text[0] != '{':
		return w.bad(text, "it is no object: a record has its values by their names")
	}
	if w.visit != nil {
		return w.visit(text)
	}
	w.record++
	clear(w.values)
	if _, err := w.object(text, 0, w.root); err != nil {
		return w.bad(text, err.Error())
	}
	w.out = strconv.AppendInt(w.out[:0], w.line, 10)
	for i, c := range w.spec.Columns {
		w.out = append(w.out, ',')
		if err := w.cell(i, c); err != nil {
			return w.badAt(text, Place{Line: w.line, Column: i, Lacks: errors.Is(err, errLacks)}, err.Error())
		}
	}
	if len(w.out) > RecordBytesMax {
		return w.bad(text, fmt.Sprintf("its values take more than %d MiB", RecordBytesMax>>20))
	}
	return w.flush()
}

// object takes the values of a sound object.
func (w *Writer) object(text []byte, at int, n *node) (int, error) {
	at = blanks(text, at+1)
	for text[at] != '}' {
		if text[at] == ',' {
			at = blanks(text, at+1)
		}
		keyEnd, _ := stringEnd(text, at)
		name := text[at+1 : keyEnd-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			var err error
			if name, err = unquote(nil, text[at:keyEnd]); err != nil {
				return at, err
			}
		}
		at = blanks(text, keyEnd)
		at = blanks(text, at+1)
		var err error
		if at, err = w.member(text, at, n.keys[string(name)]); err != nil {
			return at, err
		}
		at = blanks(text, at)
	}
	return at + 1, nil
}

// member takes the value of a key or an element; nil: it is not wanted.
func (w *Writer) member(text []byte, at int, n *node) (int, error) {
	end, _ := value(text, at, 0)
	if n == nil {
		return end, nil
	}
	if n.record == w.record && n.found {
		return at, fmt.Errorf("it has the key %s twice", n.path)
	}
	n.record, n.found, n.null = w.record, true, text[at] == 'n'
	for _, c := range n.columns {
		w.values[c] = text[at:end]
	}
	if !n.leads() || n.null {
		return end, nil
	}
	switch c := text[at]; {
	case c == '{' && n.keys != nil:
		return w.object(text, at, n)
	case c == '[' && n.items != nil:
		return w.items(text, at, n)
	}
	if len(n.columns) > 0 {
		return end, nil // it is wanted as a whole, too
	}
	return at, fmt.Errorf("%s is %s, and has no values inside", n.path, what(text[at]))
}

func (w *Writer) items(text []byte, at int, n *node) (int, error) {
	at = blanks(text, at+1)
	for i := 0; text[at] != ']'; i++ {
		if text[at] == ',' {
			at = blanks(text, at+1)
		}
		var err error
		if at, err = w.member(text, at, n.items[i]); err != nil {
			return at, err
		}
		at = blanks(text, at)
	}
	return at + 1, nil
}

// what names a kind of value by its first character.
func what(c byte) string {
	switch c {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a text"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}

// errLacks says that a record has no value where its column must have one.
var errLacks = errors.New("it has no value")

// cell appends the value of a column.
func (w *Writer) cell(i int, c filespec.Column) error {
	raw := w.values[i]
	switch {
	case raw == nil && !c.Optional && !w.nullAbove(c):
		return fmt.Errorf("%w at %q", errLacks, c.Path)
	case raw == nil, raw[0] == 'n':
		return nil
	}
	w.text = w.text[:0]
	text := raw[0] == '"'
	switch {
	case text && (c.Kind == filespec.Text || c.Kind == filespec.Time):
		var err error
		if w.text, err = unquote(w.text, raw); err != nil {
			return fmt.Errorf("%s: %w", c.Path, err)
		}
		if c.Kind == filespec.Time && len(bytes.TrimSpace(w.text)) == 0 {
			w.text = raw
		}
	case (c.Kind == filespec.Number || c.Kind == filespec.Whole) && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9'):
		w.out = append(w.out, raw...)
		return nil
	case c.Kind == filespec.Bool && (raw[0] >= '0' && raw[0] <= '9'):
		w.text = append(append(w.text, raw...), " (a number)"...)
	default:
		var b bytes.Buffer
		if err := json.Compact(&b, raw); err != nil {
			return fmt.Errorf("%s: %w", c.Path, err)
		}
		w.text = append(w.text, b.Bytes()...)
	}
	w.out = appendText(w.out, w.text)
	return nil
}

// nullAbove reports whether what leads to a column is null in the record.
func (w *Writer) nullAbove(c filespec.Column) bool {
	steps, err := filespec.ParsePath(c.Path)
	if err != nil {
		return false
	}
	at := w.root
	for _, s := range steps {
		at = at.child(s)
		if at.record == w.record && at.found && at.null {
			return true
		}
	}
	return false
}

// appendText appends a cell in quotes.
func appendText(out, text []byte) []byte {
	out = append(out, '"')
	for {
		i := bytes.IndexByte(text, '"')
		if i < 0 {
			break
		}
		out = append(append(out, text[:i+1]...), '"')
		text = text[i+1:]
	}
	return append(append(out, text...), '"')
}
