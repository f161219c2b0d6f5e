package files

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"thalweg/internal/base/allow"

	"thalweg/internal/base/address"
	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/parquetfile"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
)

// Copy is a local copy of a remote file, or what its server says of the file
// while there is none.
type Copy struct {
	Key     string // names the file among the copies
	Path    string // "": it is not copied
	Bytes   int64  // of the file; 0 once it is copied
	Version string // of the remote file
	Tag     string // its strong ETag; "": it has none
}

// Places maps the files that a script names to files of this machine.
type Places struct {
	Dir    string              // that relative names are seen from; "": the working directory
	Policy *allow.Policy       // of what may be read; nil: everything
	Copies map[string]Copy     // of remote files, by the names that the script gives them
	Listed map[string][]string // the files of servers that match patterns, by those
}

// Input is an input file as planning sees it.
type Input struct {
	URL      string    // as the script names it, without secrets
	Copy     Copy      // of a remote file
	Path     string    // absolute, symbolic links resolved
	Bytes    int64     // size on disk
	Rows     int64     // -1: not known without reading it all (CSV)
	RawBytes int64     // estimate of the uncompressed size
	ModTime  time.Time // of the file at Path

	policy *allow.Policy // of what is opened; nil: a copy
}

// Inspect looks at every input of r: sizes, and for Parquet the rows and the
// uncompressed size from the footers. The first file in the order of the
// script that is missing or unreadable is the error.
func Inspect(ctx context.Context, r *script.FileReader, at Places) ([]Input, error) {
	found, err := inspectAll(ctx, r, at)
	if err != nil {
		return nil, err
	}
	out := make([]Input, len(found))
	for i, f := range found {
		out[i] = f.Input
	}
	return out, nil
}

// inspected is an Input with its footer if it is Parquet.
type inspected struct {
	Input
	footer *parquetfile.Footer
}

func inspectAll(ctx context.Context, r *script.FileReader, at Places) ([]inspected, error) {
	urls, err := Expand(ctx, at, r.URLs)
	if err != nil {
		return nil, err
	}
	out := make([]inspected, len(urls))
	err = eachInOrder(ctx, len(urls), func(ctx context.Context, i int) error {
		in, err := stat(urls[i], at)
		if err != nil {
			return err
		}
		out[i].Input = in
		if !r.Parquet {
			return nil
		}
		if out[i].footer, err = in.source().footer(nil); err != nil {
			return err
		}
		out[i].footer.Weigh(rowBytesMin(r))
		out[i].Rows, out[i].RawBytes = out[i].footer.Rows, out[i].footer.RawBytes
		return nil
	})
	return out, err
}

// Bytes returns the bytes of all inputs of r, uncompressed, as plans count them. Remote ones are not looked at: r names
// none.
func Bytes(ctx context.Context, r *script.FileReader, at Places) (int64, error) {
	inputs, err := inspectAll(ctx, r, at)
	var sum int64
	for _, in := range inputs {
		sum += in.RawBytes
	}
	return sum, err
}

// rowBytesMin is the least that a row of r takes in memory.
func rowBytesMin(r *script.FileReader) int64 {
	const valueBytes, stringBytes = 8, 24
	var n int64
	for _, c := range r.Columns {
		if c.Type == expr.String {
			n += stringBytes
		} else {
			n += valueBytes
		}
	}
	return n
}

// stat finds the file that u names, or its copy.
func stat(u script.FileURL, at Places) (Input, error) {
	copied, isCopy := at.Copies[u.URL]
	path, err := copied.Path, error(nil)
	if !isCopy {
		path, err = at.local(u.URL)
	}
	u.URL = address.Redact(u.URL)
	if err != nil {
		f := fault.Of(err)
		f.Place = scriptPlace(u.Pos)
		return Input{}, f
	}
	path, err = resolved(path)
	src := source{url: u.URL, path: path}
	if err != nil {
		return Input{}, src.unread(err)
	}
	in := Input{URL: u.URL, Copy: copied, Path: path, Rows: -1}
	if !isCopy {
		in.policy = at.Policy
	}
	if err := in.policy.ReadFile(path); err != nil { // a link may have been swapped since
		f := fault.Of(err)
		f.Place = scriptPlace(u.Pos)
		return Input{}, f
	}
	st, err := os.Stat(path)
	if err != nil {
		return Input{}, src.unread(err)
	}
	if !st.Mode().IsRegular() {
		return Input{}, src.irregular(st)
	}
	in.Bytes, in.RawBytes, in.ModTime = st.Size(), st.Size(), st.ModTime()
	return in, nil
}

// resolved is a path without symbolic links: DuckDB compares it with what it is
// allowed to read. Of a file that is not there it is where it would be.
func resolved(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return path, err
	}
	return real, nil
}

// local returns the path of a file that a script names, if it may be read.
func (at Places) local(name string) (string, error) {
	path, err := address.LocalIn(at.Dir, name)
	if err != nil {
		return path, err
	}
	return path, at.Policy.MayRead(path)
}

// PathOf returns the path of a local file that a script names. If it is not there, it
// returns the path nevertheless, with an error that is fs.ErrNotExist.
func PathOf(at Places, name string) (string, error) {
	path, err := at.local(name)
	if err != nil {
		return "", err
	}
	return resolved(path)
}

func scriptPlace(p document.Pos) fault.Place {
	return fault.Place{File: p.File, Line: int64(p.Line), Column: p.Col}
}

// scriptFault places a wrong declaration.
func scriptFault(p document.Pos, field, format string, args ...any) *fault.Error {
	f := fault.New(fault.Script, format, args...)
	f.Place = scriptPlace(p)
	f.Place.Field = field
	return f
}
