package outfile

import (
	"errors"
	"io"
	"slices"
)

// records reads a text in pieces of whole records: lines whose ends are not inside of quotes.
// Where a piece ends follows from the text alone.
type records struct {
	from   io.Reader
	quotes bool // a record goes on behind a line end inside of them
	least  int

	buffer []byte
	used   int // of buffer: given out
	ended  bool
}

// readBytes is the size of one read.
const readBytes = 64 << 10

// next gives the shortest piece of at least so many bytes that ends with a record, or
// what is left of the text, and how many records that is. It is valid until the next call.
func (r *records) next(least int) (piece []byte, count int64, err error) {
	r.buffer = append(r.buffer[:0], r.buffer[r.used:]...)
	r.used = 0
	inside := false
	for at := 0; ; {
		for ; at < len(r.buffer); at++ {
			switch r.buffer[at] {
			case '"':
				inside = inside != r.quotes
			case '\n':
				if inside {
					continue
				}
				count++
				if at+1 >= least {
					r.used = at + 1
					return r.buffer[:r.used], count, nil
				}
			}
		}
		if r.ended {
			r.used = len(r.buffer)
			return r.buffer, count, io.EOF
		}
		if err := r.fill(); err != nil {
			return nil, 0, err
		}
	}
}

func (r *records) fill() error {
	r.buffer = slices.Grow(r.buffer, readBytes)
	n, err := r.from.Read(r.buffer[len(r.buffer) : len(r.buffer)+readBytes])
	r.buffer = r.buffer[:len(r.buffer)+n]
	if errors.Is(err, io.EOF) {
		r.ended, err = true, nil
	}
	return err
}
