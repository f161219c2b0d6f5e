package instance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Copies of parts stay on a machine when a worker ends, for the one that comes
// next. A directory of copies belongs to one process at a time (package
// parts/cache): each worker of a machine takes the first that is free.

const (
	// copiesMax is the most workers of a machine that may keep copies.
	copiesMax = 256
	// CopiesAge is the time that a directory of copies waits for somebody to take it.
	CopiesAge = 24 * time.Hour
)

// TakeCopies takes the first directory of copies that nobody has, and removes
// those that nobody has wanted for long. leaveCopies gives it back.
func TakeCopies(parent string) (dir string, lock *os.File, err error) {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", nil, err
	}
	g, err := guard(parent)
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	for i := range copiesMax {
		path := filepath.Join(parent, fmt.Sprintf("copies%d", i))
		f, err := tryLock(path + LockSuffix)
		if err != nil {
			return "", nil, err
		}
		if f == nil {
			continue
		}
		if err := sweepCopies(parent, time.Now()); err != nil {
			return "", nil, errors.Join(err, f.Close())
		}
		return path, f, nil
	}
	return "", nil, fmt.Errorf("%d workers have directories for copies in %s", copiesMax, parent)
}

// leaveCopies gives a directory of copies back.
func leaveCopies(lock *os.File) error {
	now := time.Now()
	return errors.Join(os.Chtimes(lock.Name(), now, now), lock.Close())
}

// tryLock locks a file that may not be there yet; nil if somebody has the lock.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil, f.Close()
	case err != nil:
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// sweepCopies removes directories that were left long ago and that nobody has; the
// guard is held.
func sweepCopies(parent string, now time.Time) error {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, isLock := strings.CutSuffix(e.Name(), LockSuffix)
		info, err := e.Info()
		if !isLock || err != nil || now.Sub(info.ModTime()) < CopiesAge {
			continue
		}
		path := filepath.Join(parent, name)
		f, err := tryLock(path + LockSuffix)
		if err != nil {
			return err
		}
		if f == nil {
			continue
		}
		if err := errors.Join(os.RemoveAll(path), os.Remove(f.Name()), f.Close()); err != nil {
			return err
		}
	}
	return nil
}
