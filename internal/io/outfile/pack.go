package outfile

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"thalweg/internal/lang/filespec"
	"thalweg/internal/lang/script"
)

// pieceBytes is the size of the pieces that are compressed: it never changes, because the result may depend
// on the cuts.
const pieceBytes = 256 << 10

// piecesOfTarget is the least number of pieces of a file of a target's size: files are cut between pieces.
const piecesOfTarget = 16

// compressor gives a writer that compresses. Closing it does not close to.
func compressor(to io.Writer, p script.Packing) (io.WriteCloser, error) {
	switch p.Compression {
	case filespec.Plain:
		return plain{to}, nil
	case filespec.Gzip:
		level := gzip.DefaultCompression
		if p.Level > 0 {
			level = p.Level
		}
		return gzip.NewWriterLevel(to, level) // its header has no time and no name
	case filespec.Zstd:
		level := zstd.SpeedDefault
		if p.Level > 0 {
			level = zstd.EncoderLevelFromZstd(p.Level)
		}
		return zstd.NewWriter(to, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1))
	}
	return nil, fmt.Errorf("compress a file: %q is not known", p.Compression)
}

// plain writes through.
type plain struct{ io.Writer }

func (plain) Close() error { return nil }

// packer makes files of a text.
type packer struct {
	w     *script.FileWriter
	at    place
	files []File // begun so far

	file   *os.File
	to     io.WriteCloser
	sent   counter // bytes of the file so far
	text   records
	header []byte
}

// counter counts what is written through it.
type counter struct {
	to    io.Writer
	bytes int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.bytes += int64(n)
	return n, err
}

// take makes the files of what it reads.
func (p *packer) take(from io.Reader) (err error) {
	defer func() {
		if p.file != nil {
			_ = p.file.Close() // after a failure: nobody looks at it
		}
	}()
	if p.w.TargetBytes == 0 {
		return writeFault(p.whole(from))
	}
	return writeFault(p.parts(from))
}

// whole makes one file.
func (p *packer) whole(from io.Reader) error {
	if err := p.begin(); err != nil {
		return err
	}
	piece := make([]byte, pieceBytes)
	for {
		n, err := io.ReadFull(from, piece)
		if _, werr := p.to.Write(piece[:n]); werr != nil {
			return werr
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return p.end()
		}
		if err != nil {
			return err
		}
	}
}

// parts begins another file where one has the target's size, in front of a record; each
// has the header. A text without records makes one file.
func (p *packer) parts(from io.Reader) error {
	p.text = records{from: from, quotes: p.w.Form == script.FormCSV,
		least: int(min(pieceBytes, max(p.w.TargetBytes/piecesOfTarget, 1)))}
	if p.w.Form == script.FormCSV {
		header, _, err := p.text.next(1)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		p.header = append([]byte(nil), header...)
	}
	if err := p.begin(); err != nil {
		return err
	}
	for {
		piece, count, err := p.text.next(p.text.least)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(piece) == 0 {
			return p.end()
		}
		if p.sent.bytes >= p.w.TargetBytes && p.files[len(p.files)-1].Rows > 0 {
			if err := errors.Join(p.end(), p.begin()); err != nil {
				return err
			}
		}
		if _, err := p.to.Write(piece); err != nil {
			return err
		}
		p.files[len(p.files)-1].Rows += count
	}
}

func (p *packer) begin() error {
	f, err := p.at(len(p.files))
	if err != nil {
		return err
	}
	if p.file, err = os.Create(f.Path); err != nil {
		return err
	}
	p.files = append(p.files, f)
	p.sent = counter{to: p.file}
	if p.to, err = compressor(&p.sent, p.w.Packing); err == nil {
		_, err = p.to.Write(p.header)
	}
	return err
}

func (p *packer) end() error {
	err := errors.Join(p.to.Close(), p.file.Close())
	p.file = nil
	return err
}
