package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// csvWalker goes through the records of a range of a CSV file, which starts
// where a record does. It holds no more than one record and a block.
type csvWalker struct {
	src       source
	separator byte
	fields    int // of each record; 0: any number
	in        io.ReaderAt
	read, end int64 // the next byte to read, and the end of the range

	window []byte // what has been read and not walked begins at from
	from   int

	offset int64 // of what comes next, in the file
	lines  int64 // line ends passed
	blank  int64 // blank lines passed
	row    int64 // records passed

	shape, ahead csvShape
	raw          []byte // of a bad record
}

// csvRecord is a record of a walk; its text and shape are valid until the next.
type csvRecord struct {
	text   []byte // as in the file, line end included; cut if it is longer than MaxRecordBytes
	size   int64  // of the whole record
	offset int64
	line   int64 // line ends before it
	row    int64 // records before it
	shape  *csvShape
	flaw   csvFlaw
}

// walk starts a walk over [offset, offset+length) of a text of the source. The window is memory to be used, or nil.
func (s source) walk(in io.ReaderAt, offset, length int64, separator byte, fields int, window []byte) csvWalker {
	return csvWalker{src: s, separator: separator, fields: fields, in: in, read: offset, end: offset + length,
		offset: offset, window: window[:0]}
}

// recordsBetweenLooks is the number of records between two checks for a stop.
const recordsBetweenLooks = 4096

// next returns the next record, or io.EOF. A failure to read is the source's.
func (w *csvWalker) next(ctx context.Context) (csvRecord, error) {
	if w.row%recordsBetweenLooks == 0 && ctx.Err() != nil {
		return csvRecord{}, ctx.Err()
	}
	for {
		n, err := w.blankLine()
		if err != nil {
			return csvRecord{}, err
		}
		if n == 0 {
			break
		}
		w.blank++
		w.pass(n)
	}
	if err := w.parse(&w.shape); err != nil {
		return csvRecord{}, err
	}
	rec := csvRecord{offset: w.offset, line: w.lines, row: w.row, shape: &w.shape, flaw: w.shape.flaw}
	w.row++
	var err error
	switch {
	case rec.flaw == flawLong:
		err = w.passLine(&rec)
	case rec.flaw.broken():
		err = w.absorb(ctx, &rec)
	default:
		if w.fields > 0 && len(w.shape.fields) != w.fields {
			rec.flaw = flawRagged
		}
		rec.text, rec.size = w.rest()[:w.shape.size], int64(w.shape.size)
		w.skip(w.shape.size, w.shape.lines)
	}
	return rec, err
}

// rest returns the bytes that were read and not yet walked.
func (w *csvWalker) rest() []byte { return w.window[w.from:] }

// whole reports whether the range ends with rest.
func (w *csvWalker) whole() bool { return w.read >= w.end }

func (w *csvWalker) skip(bytes, lines int) {
	w.from += bytes
	w.offset += int64(bytes)
	w.lines += int64(lines)
}

// pass is skip of one line.
func (w *csvWalker) pass(size int) {
	lines := 0
	if w.rest()[size-1] == '\n' {
		lines = 1
	}
	w.skip(size, lines)
}

// fill reads on, when the range is not whole.
func (w *csvWalker) fill() error {
	if w.from > 0 {
		w.window = w.window[:copy(w.window, w.window[w.from:])]
		w.from = 0
	}
	if len(w.window) == cap(w.window) {
		w.window = append(make([]byte, 0, max(min(scanBlockBytes, w.end-w.read), 2*int64(cap(w.window)))), w.window...)
	}
	have := len(w.window)
	to := have + int(min(w.end-w.read, int64(cap(w.window)-have)))
	n, err := w.in.ReadAt(w.window[have:to], w.read)
	w.window = w.window[:have+n]
	w.read += int64(n)
	if n == 0 && err != nil {
		return w.src.unread(fmt.Errorf("read at byte %d: %w", w.read, err))
	}
	return nil
}

// blankLine returns the size of the blank line that comes next, 0 if there is
// none, and io.EOF at the end of the range.
func (w *csvWalker) blankLine() (int, error) {
	for {
		rest := w.rest()
		switch {
		case len(rest) == 0 && w.whole():
			return 0, io.EOF
		case len(rest) > 0 && rest[0] == '\n':
			return 1, nil
		case bytes.HasPrefix(rest, crlfBytes):
			return len(crlfBytes), nil
		case len(rest) == 1 && rest[0] == '\r' && w.whole():
			return 1, nil
		case len(rest) > 0 && (rest[0] != '\r' || len(rest) > 1):
			return 0, nil
		}
		if err := w.fill(); err != nil {
			return 0, err
		}
	}
}

// parse takes the record that comes next, without passing it.
func (w *csvWalker) parse(s *csvShape) error {
	for s.split(w.rest(), w.separator, w.whole()) {
		if err := w.fill(); err != nil {
			return err
		}
	}
	return nil
}

// passLine passes a line that is too long to be looked into.
func (w *csvWalker) passLine(rec *csvRecord) error {
	w.raw = append(w.raw[:0], w.rest()[:min(len(w.rest()), rawBytesMax+1)]...)
	rec.text = w.raw
	for {
		if i := bytes.IndexByte(w.rest(), '\n'); i >= 0 {
			rec.size += int64(i + 1)
			w.skip(i+1, 1)
			return nil
		}
		n := len(w.rest())
		rec.size += int64(n)
		w.skip(n, 0)
		if w.whole() {
			return nil
		}
		if err := w.fill(); err != nil {
			return err
		}
	}
}

// absorb passes a broken record: its first line, and the lines behind it that
// are whole records with another number of fields. Nobody can tell whether
// they were meant to be inside of its quotes. Reading goes on at a line with
// the right number of fields, or one that ends inside quotes, sound or broken;
// or when there is more of them than is kept of a bad record: what is not kept
// is not lost. (Only what a line says by itself decides, so that the end of
// the range does not.)
func (w *csvWalker) absorb(ctx context.Context, rec *csvRecord) error {
	w.raw = append(w.raw[:0], w.rest()[:min(w.shape.size, rawBytesMax+1)]...)
	rec.size = int64(w.shape.size)
	w.skip(w.shape.size, w.shape.lines)
	err := w.absorbLines(ctx, rec)
	rec.text = w.raw
	if rec.size == int64(len(w.raw)) {
		rec.text = bytes.TrimRight(w.raw, "\r\n")
		rec.size = int64(len(rec.text))
	}
	return err
}

func (w *csvWalker) absorbLines(ctx context.Context, rec *csvRecord) error {
	for ctx.Err() == nil {
		n, err := w.blankLine()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if n == 0 {
			if err := w.parse(&w.ahead); err != nil {
				return err
			}
			if s := &w.ahead; s.flaw != flawNone || s.newline || w.fields == 0 || len(s.fields) == w.fields {
				return nil
			}
			n = w.ahead.size
		}
		if len(w.raw)+n > rawBytesMax {
			return nil
		}
		w.raw = append(w.raw, w.rest()[:n]...)
		rec.size += int64(n)
		w.pass(n)
	}
	return ctx.Err()
}
