package outfile

import (
	"context"
	"errors"
	"io"
	"path/filepath"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/io/files"
	"thalweg/internal/lang/filespec"
	"thalweg/internal/lang/script"
)

// Engine runs statements.
type Engine interface {
	// CopyTo runs a COPY whose rows come in order, and gives their count. Each try at it is
	// inside of a call of around, if that is not nil.
	CopyTo(ctx context.Context, c sqltext.Copy,
		around func(ctx context.Context, try func(context.Context) error) error) (rows int64, err error)
	// Texts gives the rows of a query whose columns are texts; NULL is nil.
	Texts(ctx context.Context, query string) ([][]*string, error)
}

// Output describes the rows to write, and their destination.
type Output struct {
	Writer  *script.FileWriter
	Rows    string // SELECT of the rows, in order, with the columns of Writer by their names
	Path    string // of the file to make, or the directory
	Scratch string // a directory for what is gone at the end
	Source  string // of an index: what it says its rows are, for people
}

// File is a file that was written.
type File struct {
	Name string // seen from the directory; "": the output is this file
	Path string
	Rows int64
}

// Needed reports whether w's output is more than what one COPY writes.
func Needed(w *script.FileWriter) bool {
	return w.Dir() || w.Form == script.FormExcel || w.Form == script.FormIndex ||
		!w.Parquet && w.Packing.Compression != filespec.Plain
}

// Write writes the files.
func Write(ctx context.Context, db Engine, o Output) ([]File, error) {
	if o.Writer.Dir() {
		return writeDir(ctx, db, o)
	}
	return write(ctx, db, o, func(int) (File, error) { return File{Path: o.Path}, nil })
}

// place says where the next file is made.
type place func(nth int) (File, error)

// write writes the rows of a SELECT as one file or, if they are text that has a target, as several.
func write(ctx context.Context, db Engine, o Output, at place) ([]File, error) {
	w := o.Writer
	switch {
	case w.Form == script.FormIndex:
		rows, err := countRows(ctx, db, o.Rows)
		if err != nil {
			return nil, err
		}
		return writePiped(ctx, db, o, at, func(path string, lines io.Reader) error { return index(o, rows, path, lines) })
	case w.Form == script.FormExcel:
		return writePiped(ctx, db, o, at, func(path string, lines io.Reader) error { return sheet(w, path, lines) })
	case !w.Parquet && (w.Packing.Compression != filespec.Plain || w.TargetBytes > 0):
		return writePiped(ctx, db, o, at, nil)
	}
	f, err := at(0)
	if err != nil {
		return nil, err
	}
	c, err := files.WriteSQL(w, o.Rows, f.Path)
	if err == nil {
		f.Rows, err = db.CopyTo(ctx, c, nil)
	}
	return []File{f}, err
}

// writePiped writes the text of rows through a pipe, from which one makes the one file; nil: it is packed.
func writePiped(ctx context.Context, db Engine, o Output, at place, one func(path string, lines io.Reader) error) (
	out []File, err error) {
	c, err := files.WriteSQL(o.Writer, o.Rows, filepath.Join(o.Scratch, "rows"))
	if err != nil {
		return nil, err
	}
	count, err := db.CopyTo(ctx, c, func(ctx context.Context, try func(context.Context) error) error {
		if one != nil {
			f, err := at(0)
			if err != nil {
				return err
			}
			out = []File{f}
			return through(ctx, c.Path, try, func(lines io.Reader) error { return writeFault(one(f.Path, lines)) })
		}
		p := &packer{w: o.Writer, at: at}
		err := through(ctx, c.Path, try, p.take)
		out = p.files
		return err
	})
	if err == nil && len(out) == 1 {
		out[0].Rows = count
	}
	return out, err
}

func writeFault(err error) error {
	var known *fault.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return &fault.Error{Kind: fault.Environment, Retryable: fault.Passes(err),
		Message: "write the output file", Err: err,
		Hint: "check the path in url_template, its permissions and free space"}
}
