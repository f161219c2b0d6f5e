//go:build unix

package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// step names what is asked of the file system, for the faults of tests.
type step string

// The steps of the store that can fail and matter when they do.
const (
	stepOpen     step = "open"
	stepRead     step = "read"
	stepProtect  step = "protect"
	stepSync     step = "sync"
	stepMakeDir  step = "make directory"
	stepOpenDir  step = "open directory"
	stepSyncDir  step = "sync directory"
	stepRename   step = "rename"
	stepTakeBack step = "take back"
)

// disk is the only way to the file system for whatever Put does. before is
// nil except in tests, which fail a step by returning an error from it or
// look at the order of the steps.
type disk struct {
	before func(s step, path string) error
}

func (d disk) enter(s step, path string) error {
	if d.before == nil {
		return nil
	}
	return d.before(s, path)
}

// open opens a staged file: a regular one, and no link to another place.
func (d disk) open(path string) (*os.File, error) {
	if err := d.enter(stepOpen, path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

var errNotRegular = errors.New("not a regular file")

// protect takes everybody's right to write away.
func (d disk) protect(f *os.File) error {
	if err := d.enter(stepProtect, f.Name()); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return f.Chmod(info.Mode().Perm() &^ 0o222)
}

func (d disk) sync(s step, f *os.File) error {
	if err := d.enter(s, f.Name()); err != nil {
		return err
	}
	return f.Sync()
}

// makeDir makes the directory name in parent; one that is there is fine.
func (d disk) makeDir(parent *os.File, name string) error {
	path := filepath.Join(parent.Name(), name)
	if err := d.enter(stepMakeDir, path); err != nil {
		return err
	}
	err := unix.Mkdirat(int(parent.Fd()), name, directoryMode)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return &fs.PathError{Op: "mkdir", Path: path, Err: err}
	}
	return nil
}

func (d disk) openDir(parent *os.File, name string) (*os.File, error) {
	path := filepath.Join(parent.Name(), name)
	if err := d.enter(stepOpenDir, path); err != nil {
		return nil, err
	}
	fd, err := unix.Openat(int(parent.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// move renames from/old to to/new and fails if there is a to/new.
func (d disk) move(s step, from *os.File, old string, to *os.File, new string) error {
	path := filepath.Join(to.Name(), new)
	if err := d.enter(s, path); err != nil {
		return err
	}
	if err := renameExclusive(int(from.Fd()), old, int(to.Fd()), new); err != nil {
		return &os.LinkError{Op: "rename", Old: filepath.Join(from.Name(), old), New: path, Err: err}
	}
	return nil
}

// renameByLink is the portable exclusive rename: two steps, of which the
// first decides.
func renameByLink(fromDir int, from string, toDir int, to string) error {
	if err := unix.Linkat(fromDir, from, toDir, to, 0); err != nil {
		return err
	}
	// The part is there. A name that stays behind in the stage is the same
	// file once more and goes with the stage.
	_ = unix.Unlinkat(fromDir, from, 0)
	return nil
}
