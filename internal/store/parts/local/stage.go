//go:build unix

package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	stageName = "stage"
	lockName  = ".lock"
)

// stage is a process's own directory for files that are being written.
type stage struct {
	dir  *os.File
	lock *os.File // held until the process ends, however it ends
}

// withStageLock runs fn while no other process adds to or sweeps the stage.
func withStageLock(root string, fn func(all string) error) (err error) {
	all := filepath.Join(root, stageName)
	f, err := os.OpenFile(filepath.Join(all, lockName), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }() // which unlocks
	if err := flock(f, unix.LOCK_EX); err != nil {
		return err
	}
	return fn(all)
}

// flock takes the lock of an open file; it waits unless how says otherwise.
func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			if err != nil {
				return &fs.PathError{Op: "flock", Path: f.Name(), Err: err}
			}
			return nil
		}
	}
}

// newStage makes a process's own directory and locks it.
func newStage(root string) (s *stage, err error) {
	err = withStageLock(root, func(all string) error {
		path, err := os.MkdirTemp(all, fmt.Sprintf("%d-", os.Getpid()))
		if err != nil {
			return err
		}
		s = &stage{}
		if s.lock, err = os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE|os.O_EXCL,
			0o600); err != nil {
			return err
		}
		if err := flock(s.lock, unix.LOCK_EX|unix.LOCK_NB); err != nil {
			return errors.Join(err, s.lock.Close())
		}
		if s.dir, err = os.Open(path); err != nil {
			return errors.Join(err, s.lock.Close())
		}
		return nil
	})
	return s, err
}

// close removes the directory with whatever is left in it.
func (s *stage) close() error {
	return errors.Join(os.RemoveAll(s.dir.Name()), s.dir.Close(), s.lock.Close())
}

// sweep removes the directories of processes that are gone and says how many.
func (s *stage) sweep(ctx context.Context, root string) (removed int, err error) {
	err = withStageLock(root, func(all string) error {
		entries, err := os.ReadDir(all)
		if err != nil {
			return err
		}
		for _, e := range entries {
			path := filepath.Join(all, e.Name())
			if !e.IsDir() || path == s.dir.Name() {
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			dead, err := sweepOne(path)
			if err != nil {
				return err
			}
			if dead {
				removed++
			}
		}
		return nil
	})
	return removed, err
}

// sweepOne removes a directory unless its process lives. One without a lock
// file belongs to a process that died before it had made it.
func sweepOne(path string) (dead bool, err error) {
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return true, os.RemoveAll(path)
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := flock(lock, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			return false, nil
		}
		return false, err
	}
	return true, os.RemoveAll(path)
}
