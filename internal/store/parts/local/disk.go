//go:build unix

package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"thalweg/internal/base/durable"
)

// disk is the only way to the file system for whatever Put does.
type disk struct{ durable.FS }

// open opens a staged file: a regular one, and no link to another place.
func (d disk) open(path string) (f *os.File, err error) {
	err = d.Do(durable.Open, path, func() error {
		if f, err = os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0); err != nil {
			return err
		}
		info, err := f.Stat()
		if err == nil && !info.Mode().IsRegular() {
			err = &fs.PathError{Op: "open", Path: path, Err: errNotRegular}
		}
		if err != nil {
			return errors.Join(err, f.Close())
		}
		return nil
	})
	return f, err
}

var errNotRegular = errors.New("not a regular file")

// protect takes everybody's right to write away.
func (d disk) protect(f *os.File) error {
	return d.Do(durable.Protect, f.Name(), func() error {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		return f.Chmod(info.Mode().Perm() &^ 0o222)
	})
}

// syncDir flushes the names in an open directory.
func (d disk) syncDir(f *os.File) error { return d.Do(durable.SyncDir, f.Name(), f.Sync) }

// makeDir makes the directory name in parent; one that is there is fine.
func (d disk) makeDir(parent *os.File, name string) error {
	path := filepath.Join(parent.Name(), name)
	return d.Do(durable.MakeDir, path, func() error {
		err := unix.Mkdirat(int(parent.Fd()), name, directoryMode)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return &fs.PathError{Op: "mkdir", Path: path, Err: err}
		}
		return nil
	})
}

func (d disk) openDir(parent *os.File, name string) (f *os.File, err error) {
	path := filepath.Join(parent.Name(), name)
	err = d.Do(durable.OpenDir, path, func() error {
		fd, err := unix.Openat(int(parent.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return &fs.PathError{Op: "open", Path: path, Err: err}
		}
		f = os.NewFile(uintptr(fd), path)
		return nil
	})
	return f, err
}

// move renames from/old to to/new and fails if there is a to/new.
func (d disk) move(s durable.Step, from *os.File, old string, to *os.File, new string) error {
	path := filepath.Join(to.Name(), new)
	return d.Do(s, path, func() error {
		if err := renameExclusive(int(from.Fd()), old, int(to.Fd()), new); err != nil {
			return &os.LinkError{Op: "rename", Old: filepath.Join(from.Name(), old), New: path, Err: err}
		}
		return nil
	})
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
