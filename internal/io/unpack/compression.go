package unpack

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/filespec"
)

// HeadBytes of a file are enough to know its compression.
const HeadBytes = 4

// zstdWindowBytesMax is the memory that unpacking may take: what `zstd --long=27` needs,
// which zstd unpacks without being asked to.
const zstdWindowBytesMax = 128 << 20

// CompressionOf finds a compression by how a file begins.
func CompressionOf(head []byte) filespec.Compression {
	switch {
	case bytes.HasPrefix(head, []byte("\x1f\x8b\x08")):
		return filespec.Gzip
	case bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")):
		return filespec.Zstd
	}
	return filespec.Plain
}

// CompressionIn finds it in a file.
func CompressionIn(f io.ReaderAt) (filespec.Compression, error) {
	head := make([]byte, HeadBytes)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return filespec.Plain, err
	}
	return CompressionOf(head[:n]), nil
}

// source remembers that reading the file failed, as opposed to what is in it.
type source struct {
	from io.Reader
	read int64
	err  error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	s.read += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// expand gives the bytes that were packed. The caller calls end.
func (s *source) expand(c filespec.Compression) (_ io.Reader, end func(), err error) {
	switch c {
	case filespec.Gzip:
		z := &members{from: bufio.NewReader(s)}
		if z.one, err = gzip.NewReader(z.from); err != nil {
			return nil, nil, s.damaged(c, err)
		}
		z.one.Multistream(false)
		return &expanded{z, c, s}, func() { _ = z.one.Close() }, nil
	case filespec.Zstd:
		z, err := zstd.NewReader(s, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindowBytesMax))
		if err != nil {
			return nil, nil, s.damaged(c, err)
		}
		return &expanded{z, c, s}, z.Close, nil
	}
	return s, func() {}, nil
}

// members are those of a gzip file, one behind the other. Behind the last there may be zeros, to fill a block.
type members struct {
	one  *gzip.Reader
	from *bufio.Reader
}

// errBehind reports bytes behind the last gzip member that are not another one.
var errBehind = errors.New("bytes behind the gzip data that are none")

func (m *members) Read(p []byte) (int, error) {
	for {
		n, err := m.one.Read(p)
		if !errors.Is(err, io.EOF) {
			return n, err
		}
		if err := m.next(); err != nil || n > 0 {
			return n, err
		}
	}
}

// next goes on to the next member; io.EOF: there is none.
func (m *members) next() error {
	filled := false
	for {
		head, err := m.from.Peek(1)
		switch {
		case err != nil:
			return err
		case head[0] == 0:
			filled = true
			if _, err := m.from.Discard(1); err != nil {
				return err
			}
			continue
		case head[0] != gzipFirst || filled:
			return errBehind
		}
		if err := m.one.Reset(m.from); err != nil {
			if errors.Is(err, io.EOF) {
				return io.ErrUnexpectedEOF
			}
			return err
		}
		m.one.Multistream(false)
		return nil
	}
}

// gzipFirst is the first byte of a member.
const gzipFirst = 0x1f

// expanded says what is wrong with the data in words of ours.
type expanded struct {
	io.Reader
	c    filespec.Compression
	from *source
}

func (e *expanded) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = e.from.damaged(e.c, err)
	}
	return n, err
}

// damaged says what is wrong with data that cannot be expanded.
func (s *source) damaged(c filespec.Compression, err error) error {
	f := fault.New(fault.UserData, "its %s data is damaged within the first %d bytes", c, s.read)
	f.Err, f.Hint = err, "get the file again from where it comes from"
	switch {
	case s.err != nil:
		return s.err
	case errors.Is(err, errBehind):
		f.Message = "behind its gzip data are bytes that are no gzip: something was appended to the file, or " +
			"it is damaged"
		f.Err = nil
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		f.Message = "its " + string(c) + " data ends too early: the file was not written or copied whole"
		f.Err = nil
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		f.Message, f.Hint = "unpacking its zstd data would take more than 128 MiB of memory",
			"compress it with `zstd --long=27` at most"
		f.Err = nil
	}
	return f
}
