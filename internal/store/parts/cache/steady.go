package cache

import (
	"context"
	"errors"
	"fmt"
	"io"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/parts"
)

// stuckMax bounds how often in turn a part may break without a byte more.
const stuckMax = 4

// steady reads a part, or a range of it, to its end: where reading breaks, it goes
// on by another range.
type steady struct {
	ctx     context.Context
	backend parts.Backend
	key     string
	body    io.ReadCloser // nil: it broke
	at      int64
	length  int64 // of the range; 0: to the end
	end     int64 // known when it was opened
	total   int64 // bytes of the whole part, likewise
	stuck   int
}

func (r *steady) open() (err error) {
	length := int64(-1)
	switch {
	case r.end > 0: // it was open before
		length = r.end - r.at
	case r.length > 0:
		length = r.length
	}
	r.body, r.total, err = r.backend.Open(r.ctx, r.key, r.at, length)
	if err == nil && r.end == 0 {
		if r.end = r.total; length >= 0 {
			r.end = min(r.end, r.at+length)
		}
	}
	return err
}

func (r *steady) close() {
	if r.body != nil {
		_ = r.body.Close() // only read from
	}
}

// Read implements io.Reader.
func (r *steady) Read(p []byte) (int, error) {
	for {
		if r.body == nil {
			if err := r.open(); err != nil {
				return 0, err
			}
		}
		n, err := r.body.Read(p)
		if r.at += int64(n); n > 0 {
			r.stuck = 0
			return n, nil // an error comes again
		}
		if err == nil {
			continue
		}
		if r.at >= r.end && errors.Is(err, io.EOF) {
			return 0, io.EOF
		}
		if r.stuck++; r.stuck > stuckMax || r.ctx.Err() != nil {
			return 0, &fault.Error{Kind: fault.Environment, Retryable: true, Err: errors.Join(r.ctx.Err(), err),
				Message: fmt.Sprintf("reading breaks at byte %d of %d", r.at, r.end)}
		}
		r.close()
		r.body = nil
	}
}
