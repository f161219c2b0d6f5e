package outfile

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"thalweg/internal/fault"
	"thalweg/internal/script"
	"thalweg/internal/sqltext"
	"thalweg/internal/unpack"
)

// Engine is what runs COPY statements.
type Engine interface {
	// CopyThrough runs a COPY whose rows come in order, and gives their count. Each try at it
	// is inside of a call of around.
	CopyThrough(ctx context.Context, c sqltext.Copy, around func(ctx context.Context, try func(context.Context) error) error) (rows int64, err error)
}

// Piped reports whether w's files are more than what a COPY writes.
func Piped(w *script.FileWriter) bool { return !w.Parquet && w.Packing.Compression != unpack.Plain }

// Write makes the file that c says, compressed as p says, through a pipe in dir.
func Write(ctx context.Context, db Engine, c sqltext.Copy, p script.Packing, dir string) (rows int64, err error) {
	path := c.Path
	c.Path = filepath.Join(dir, "rows")
	return db.CopyThrough(ctx, c, func(ctx context.Context, try func(context.Context) error) error {
		return through(ctx, c.Path, try, func(text io.Reader) error { return writeFault(packed(path, text, p)) })
	})
}

// packed makes a file of a text.
func packed(path string, text io.Reader, p script.Packing) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	to, err := Pack(f, p)
	if err != nil {
		return err
	}
	piece := make([]byte, pieceBytes)
	for {
		n, err := io.ReadFull(text, piece)
		if _, werr := to.Write(piece[:n]); werr != nil {
			return werr
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return to.Close()
		}
		if err != nil {
			return err
		}
	}
}

func writeFault(err error) error {
	if err == nil {
		return nil
	}
	return &fault.Error{Kind: fault.Environment, Retryable: fault.Passes(err), Message: "write the output file", Err: err,
		Hint: "check the path in url_template, its permissions and free space"}
}
