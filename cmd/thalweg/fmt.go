package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"thalweg/internal/app"
	"thalweg/internal/base/fault"

	"github.com/rogpeppe/go-internal/diff"
)

type fmtCmd struct {
	Files []string `arg:"" help:"Scripts and parameters files: .yaml or .json." placeholder:"FILE"`
	Check bool     `help:"Only name the files that would change; exit with 2 if there are any." xor:"what"`
	Diff  bool     `help:"Only print what would change." xor:"what"`
}

func (c *fmtCmd) Run(a *console) error {
	changed, failed := 0, error(nil)
	for _, name := range c.Files {
		did, err := c.file(a, name)
		if err != nil {
			// The other files are none the worse for it.
			f := fault.Of(err)
			a.printFailure(err.Error(), f.Place, f.Hint, f.Detail)
			failed = errReported{exitCode(f.Kind)}
		}
		if did {
			changed++
		}
	}
	switch {
	case failed != nil:
		return failed
	case c.Check && changed > 0:
		return errReported{exitUsers}
	}
	return nil
}

// file formats one file and reports whether that changes it.
func (c *fmtCmd) file(a *console, name string) (changed bool, err error) {
	text, mode, err := readBounded(name, app.ScriptBytesMax)
	if err != nil {
		return false, err
	}
	a.known.Learn(string(text))
	out, err := app.FormatScript(name, text)
	if err != nil || bytes.Equal(text, out) {
		return false, err
	}
	switch {
	case c.Diff:
		_, err = a.known.Writer(a.data).Write(diff.Diff(name, text, name+" (formatted)", out))
	case !c.Check:
		err = replaceFile(name, out, mode)
		fallthrough
	default:
		if err == nil {
			_, err = fmt.Fprintln(a.stdout, name)
		}
	}
	if err != nil {
		return false, fmt.Errorf("format %s: %w", name, err)
	}
	return true, nil
}

// readBounded reads a file of at most limit bytes.
func readBounded(name string, limit int64) ([]byte, fs.FileMode, error) {
	f, err := os.Open(name)
	if err != nil {
		kind := fault.Environment
		if errors.Is(err, fs.ErrNotExist) {
			kind = fault.Script
		}
		return nil, 0, &fault.Error{Kind: kind, Message: "cannot open the file", Err: err}
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, 0, fmt.Errorf("look at %s: %w", name, err)
	}
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, 0, fmt.Errorf("read %s: %w", name, err)
	}
	return text, st.Mode().Perm(), nil
}

// replaceFile writes a file beside the old one and renames it, so that a full
// disk or a crash leaves one of the two.
func replaceFile(name string, text []byte, mode fs.FileMode) (err error) {
	path, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
