package starter

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"thalweg/internal/base/fault"
)

//go:embed all:templates
var content embed.FS

// Template is a project to begin with.
type Template struct{ Name, About string }

// Templates lists them, the simplest first.
func Templates() []Template {
	return []Template{
		{"clean", "untidy sales as CSV: types, bad rows put aside, checks, a sorted file"},
		{"join", "orders with their items: a lookup with sums, CSV and Parquet out"},
		{"python", "payments of loans: formulas in Python, with tests"},
	}
}

// Write makes the files of a template in a directory, which is made if need
// be, and gives their names in it.
func Write(name, dir string) (names []string, err error) {
	root := path.Join("templates", name)
	err = fs.WalkDir(content, root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, filepath.FromSlash(p))
		names = append(names, rel)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the files of template %s: %w", name, err)
	}
	for _, rel := range names {
		to := filepath.Join(dir, rel)
		if _, err := os.Lstat(to); err == nil {
			return nil, &fault.Error{Kind: fault.Script, Place: fault.Place{File: to},
				Message: "the file is there already", Hint: "name another directory: {{do init dir=DIR}}"}
		}
	}
	for _, rel := range names {
		text, err := content.ReadFile(path.Join(root, filepath.ToSlash(rel)))
		if err != nil {
			return nil, fmt.Errorf("read %s of template %s: %w", rel, name, err)
		}
		if err := writeNew(filepath.Join(dir, rel), text); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// writeNew writes a file that is not there.
func writeNew(name string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "make the directory of " + name, Err: err}
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "create " + name, Err: err}
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "write " + name, Err: err}
	}
	return nil
}
