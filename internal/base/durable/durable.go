package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Step names what is asked of the file system.
type Step string

// The steps that can fail and matter when they do.
const (
	Open     Step = "open"
	Read     Step = "read"
	Write    Step = "write"
	Protect  Step = "protect"
	Sync     Step = "sync"
	MakeDir  Step = "make directory"
	OpenDir  Step = "open directory"
	SyncDir  Step = "sync directory"
	Rename   Step = "rename"
	TakeBack Step = "take back" // a rename that undoes one
	Remove   Step = "remove"
)

// Op is a step on a path.
type Op struct {
	Step Step
	Path string
}

// FS does the steps. The zero value is the operating system's.
type FS struct {
	watch func(op Op, do func() error) error
}

// Watched is a file system whose steps pass through watch, which does them or
// not. It may be called by several goroutines at once.
func Watched(watch func(op Op, do func() error) error) FS { return FS{watch} }

// Do does a step that is the caller's own.
func (f FS) Do(step Step, path string, do func() error) error {
	if f.watch == nil {
		return do()
	}
	return f.watch(Op{step, path}, do)
}

// Sync flushes an open file's content.
func (f FS) Sync(file *os.File) error { return f.Do(Sync, file.Name(), file.Sync) }

// SyncDir flushes the names in a directory.
func (f FS) SyncDir(path string) error {
	return f.Do(SyncDir, path, func() (err error) {
		d, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, d.Close()) }()
		return d.Sync()
	})
}

// Rename gives a file whose content is flushed another name, also in place of
// another file, and flushes the name.
func (f FS) Rename(from, to string) error {
	if err := f.Do(Rename, to, func() error { return os.Rename(from, to) }); err != nil {
		return err
	}
	return f.SyncDir(filepath.Dir(to))
}

// WriteFile writes a small file that is there whole or not at all, also in
// place of another one. Two processes may write the same content at once.
func (f FS) WriteFile(path string, content []byte, mode fs.FileMode) error {
	temp, err := f.writeTemp(path, content, mode)
	if err == nil {
		err = f.Rename(temp, path)
	}
	if err != nil && temp != "" {
		_ = os.Remove(temp) // it may have its final name already
	}
	return err
}

// writeTemp writes and flushes a file beside another one.
func (f FS) writeTemp(path string, content []byte, mode fs.FileMode) (temp string, err error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	err = f.Do(Write, file.Name(), func() error {
		_, err := file.Write(content)
		return errors.Join(err, file.Chmod(mode))
	})
	if err != nil {
		return file.Name(), err
	}
	return file.Name(), f.Sync(file)
}

// MakeAll makes a directory and those above it that are missing, each of them
// flushed before anything is put into it. So of directories that somebody else
// has made this way, only the lowest may not be flushed yet: it is, here.
func (f FS) MakeAll(dir string, mode fs.FileMode) error {
	info, err := os.Stat(dir)
	switch {
	case err == nil && !info.IsDir():
		return &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
	case err == nil:
		return f.flushName(dir)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	up := filepath.Dir(dir)
	if err := f.MakeAll(up, mode); err != nil {
		return err
	}
	err = f.Do(MakeDir, dir, func() error { return os.Mkdir(dir, mode) })
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return f.SyncDir(up)
}

// flushName flushes the name of a directory that is there, if this user may:
// one above may be somebody else's, and then so is the directory's name.
func (f FS) flushName(dir string) error {
	err := f.SyncDir(filepath.Dir(dir))
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EROFS) {
		return nil
	}
	return err
}
