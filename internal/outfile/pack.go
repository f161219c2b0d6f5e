package outfile

import (
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"thalweg/internal/script"
	"thalweg/internal/unpack"
)

// pieceBytes is what is compressed at a time: always so much, because what comes
// out may depend on how the text was cut.
const pieceBytes = 256 << 10

// Pack gives a writer that compresses. Closing it does not close w.
func Pack(w io.Writer, p script.Packing) (io.WriteCloser, error) {
	switch p.Compression {
	case unpack.Plain:
		return unpacked{w}, nil
	case unpack.Gzip:
		level := gzip.DefaultCompression
		if p.Level > 0 {
			level = p.Level
		}
		return gzip.NewWriterLevel(w, level) // its header has no time and no name
	case unpack.Zstd:
		level := zstd.SpeedDefault
		if p.Level > 0 {
			level = zstd.EncoderLevelFromZstd(p.Level)
		}
		return zstd.NewWriter(w, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1))
	}
	return nil, fmt.Errorf("compress a file: %q is not known", p.Compression)
}

// unpacked writes through.
type unpacked struct{ io.Writer }

func (unpacked) Close() error { return nil }
