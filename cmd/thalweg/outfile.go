package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"

	"thalweg/internal/app"
	"thalweg/internal/base/fault"
)

// overwriteFlag is of commands that write a file.
type overwriteFlag struct {
	Overwrite bool `help:"Replace FILE if it is there."`
}

// outFile describes the file that a command writes; without a path it is standard output.
type outFile struct {
	path      string
	overwrite bool           // whatever is there
	mine      *regexp.Regexp // how files begin that the command has made: they are replaced; nil: none are
}

// headBytes of a file say whether a command has made it.
const headBytes = 512

// madeSVG and madeDOT are how drawings of ours begin.
var (
	madeSVG = regexp.MustCompile(
		`^<svg xmlns="http://www\.w3\.org/2000/svg" width="[0-9]+" height="[0-9]+" ` +
			`(?:viewBox="[0-9 ]+" )?role="img">\n`)
	madeDOT = regexp.MustCompile(
		`^digraph ".*" \{\n  node \[fontname=monospace, fontsize=11, shape=box, style=rounded\];\n`)
)

// check refuses to replace a file that has something in it, unless the command has made it.
func (o outFile) check() error {
	if o.path == "" || o.overwrite {
		return nil
	}
	st, err := os.Stat(o.path)
	if err != nil || !st.Mode().IsRegular() || st.Size() == 0 {
		return nil //nolint:nilerr // what cannot be looked at cannot be written either, which the writing says
	}
	if o.mine != nil {
		head, err := headOf(o.path)
		if err == nil && o.mine.Match(head) {
			return nil
		}
	}
	return o.there("the file is there already")
}

// there is the refusal to replace a file.
func (o outFile) there(why string) error {
	return &fault.Error{Kind: fault.Script, Place: fault.Place{File: o.path}, Message: why,
		Hint: "choose another name, or say --overwrite to replace it"}
}

// spare refuses to replace a file that runs of a workspace have read or written, or were made from.
func (o outFile) spare(ctx context.Context, home *app.App, workspace string) error {
	if o.path == "" || o.overwrite {
		return nil
	}
	what, err := home.Data.UseOf(ctx, workspace, o.path)
	if err != nil || what == "" {
		return err
	}
	return o.there("the file is " + what)
}

func headOf(path string) (head []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(io.LimitReader(f, headBytes))
}

// write writes the file, whose directory it makes as a run does for its outputs.
func (o outFile) write(a *console, write func(io.Writer) error) (err error) {
	if o.path == "" {
		return write(a.stdout)
	}
	if err := o.check(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(o.path), 0o755); err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "make the directory of " + o.path, Err: err}
	}
	f, err := os.Create(o.path)
	if err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "create " + o.path, Err: err}
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("write %s: %w", o.path, cerr)
		}
	}()
	return write(a.known.Writer(f))
}
