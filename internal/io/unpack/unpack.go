package unpack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/filespec"
)

// Form is the packing of a file's text into bytes: its compression and encoding.
type Form struct {
	Compression filespec.Compression `json:"compression,omitempty"`
	Charset     filespec.Charset     `json:"charset,omitempty"`
}

// Changes reports whether the text is anything else than the bytes.
func (f Form) Changes() bool { return f != Form{} }

// bufferBytes are read, decoded and written at a time.
const bufferBytes = 256 << 10

// Text writes the text of a file, in UTF-8, and says how many bytes it has. Faults of
// characters name the line of the text; the caller knows the file.
func Text(ctx context.Context, to io.Writer, from io.Reader, form Form) (written int64, err error) {
	src := &source{from: from}
	r, end, err := src.expand(form.Compression)
	if err != nil {
		return 0, err
	}
	defer end()
	decode, err := decoderOf(form.Charset)
	if err != nil {
		return 0, err
	}
	buffer, held, line := make([]byte, bufferBytes), 0, int64(1)
	var text []byte
	for last := false; !last; {
		if ctx.Err() != nil {
			return written, context.Cause(ctx)
		}
		n, err := r.Read(buffer[held:])
		if last = errors.Is(err, io.EOF); err != nil && !last {
			return written, err
		}
		var left []byte
		text, left, err = decode(text[:0], buffer[:held+n], last)
		line += int64(bytes.Count(text, []byte{'\n'}))
		if err != nil {
			return written, atLine(err, line)
		}
		held = copy(buffer, left)
		n, err = to.Write(text)
		if written += int64(n); err != nil {
			return written, fmt.Errorf("write the text of a file: %w", err)
		}
	}
	return written, nil
}

// atLine says in which line of the text the data is bad.
func atLine(err error, line int64) error {
	var f *fault.Error
	if errors.As(err, &f) && f.Kind == fault.UserData && f.Place.Line == 0 {
		f.Place.Line = line
	}
	return err
}
