package files

import (
	"context"
	"errors"
	"io"
	"iter"
	"unicode/utf8"
)

// Cells is a record of CSV text in a walk that keeps nothing: its values are
// valid until the next one.
type Cells struct {
	Line   int64 // of the text at which it begins, from 1
	Offset int64 // of its first byte
	Bad    error // a *fault.Error if the record's structure is broken; it has no values then

	text  []byte
	shape *csvShape
}

// Len is the number of values, of a record with too few or too many too.
func (c *Cells) Len() int { return len(c.shape.fields) }

// Value is value i without its quotes.
func (c *Cells) Value(i int) []byte { return c.shape.value(c.text, i) }

// Quoted reports whether value i is in quotes.
func (c *Cells) Quoted(i int) bool { return c.shape.fields[i].quoted }

// UTF8 reports whether all of its text is.
func (c *Cells) UTF8() bool { return utf8.Valid(c.text) }

// EachCells goes through CSV text with the grammar by which inputs are read
// (csvrecord.go), for those who look at all of it. Each record has to have as many
// values as fields says; 0 takes any. Bad records do not end the walk; an error is the last that it yields.
func EachCells(ctx context.Context, in io.ReaderAt, size int64, separator byte, fields int,
	u string) iter.Seq2[*Cells, error] {
	return func(yield func(*Cells, error) bool) {
		w := source{url: u}.walkText(in, size, separator)
		w.fields = fields
		for {
			rec, err := w.next(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
			one := Cells{Line: rec.line + 1, Offset: rec.offset, text: rec.text, shape: rec.shape, Bad: w.fault(rec)}
			if !yield(&one, nil) {
				return
			}
		}
	}
}
