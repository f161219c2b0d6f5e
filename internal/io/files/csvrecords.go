package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
)

// Record is a record of CSV text.
type Record struct {
	Values []string // without their quotes
	Quoted []bool   // whether they had any
	Offset int64    // of its first byte
}

// Records goes through CSV text with the grammar by which inputs are read
// (csvrecord.go), for those who want a few records as values. The first record
// says how many fields each has. One that is bad is a *fault.Error, which
// names u and the line; the walk goes on behind it.
func Records(ctx context.Context, in io.ReaderAt, size int64, separator byte, u string) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		w := source{url: u}.walkText(in, size, separator)
		for {
			rec, err := w.next(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Record{}, err)
				return
			}
			one := Record{Offset: rec.offset}
			if err = w.fault(rec); err == nil {
				one.Values, one.Quoted = rec.shape.values(rec.text), rec.shape.quotes()
				w.fields = len(one.Values)
			}
			if !yield(one, err) {
				return
			}
		}
	}
}

// walkText walks all of a text, behind its byte order mark.
func (s source) walkText(in io.ReaderAt, size int64, separator byte) csvWalker {
	bom := int64(0)
	first := make([]byte, len(utf8BOM))
	if n, _ := in.ReadAt(first, 0); bytes.Equal(first[:n], utf8BOM) {
		bom = int64(len(utf8BOM))
	}
	return s.walk(in, bom, size-bom, separator, 0, make([]byte, 0, headBlockBytes))
}

// quotes says which fields have quotes.
func (s *csvShape) quotes() []bool {
	out := make([]bool, len(s.fields))
	for i, f := range s.fields {
		out[i] = f.quoted
	}
	return out
}
