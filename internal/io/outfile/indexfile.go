package outfile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"thalweg/internal/base/durable"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
	"thalweg/internal/io/tableindex"
)

// IndexMemory is what making an index of so many rows takes beside the engine.
func IndexMemory(rows int64) int64 { return tableindex.WriterBytes(rows) + indexReadBytes + pipeBytes }

// PublishIndex makes an index of so many bytes beside o.Path, and gives it that name when it is whole and on the disk.
func PublishIndex(ctx context.Context, db Engine, o Output, bytes int64) (err error) {
	path := o.Path
	defer func() { err = publishFault(path, err) }()
	dir := filepath.Dir(path)
	if err := (durable.FS{}).MakeAll(dir, 0o755); err != nil {
		return err
	}
	if err := enoughDisk(dir, bytes); err != nil {
		return err
	}
	file, err := createBeside(path)
	if err != nil {
		return err
	}
	o.Path = file.Name()
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			_ = os.Remove(o.Path) // it is not whole
		}
	}()
	if _, err := Write(ctx, db, o); err != nil {
		return err
	}
	if err := errors.Join(file.Chmod(0o644), durable.FS{}.Sync(file)); err != nil {
		return err
	}
	return durable.FS{}.Rename(o.Path, path)
}

// createBeside creates a file beside path, under another name, which it locks for as long as the file is open. It
// removes those that nobody writes any more.
func createBeside(path string) (*os.File, error) {
	dir, prefix := filepath.Dir(path), "."+filepath.Base(path)+"-"
	if err := removeUnfinished(dir, prefix); err != nil {
		return nil, err
	}
	for {
		file, err := os.CreateTemp(dir, prefix+"*")
		if err != nil {
			return nil, err
		}
		locked := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		there, err := os.Stat(file.Name())
		if err == nil && !errors.Is(locked, unix.EWOULDBLOCK) { // without locks nothing is removed
			have, err := file.Stat()
			if err != nil || os.SameFile(have, there) {
				return file, err
			}
		}
		if err := file.Close(); err != nil { // somebody has taken it for one that nobody writes
			return nil, err
		}
	}
}

// removeUnfinished removes the files of createBeside whose processes were killed: nobody has locked them.
func removeUnfinished(dir, prefix string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), prefix)
		if _, err := strconv.ParseUint(number, 10, 32); !ok || err != nil || !e.Type().IsRegular() {
			continue
		}
		name := filepath.Join(dir, e.Name())
		file, err := os.OpenFile(name, os.O_RDWR|unix.O_NOFOLLOW, 0)
		if err != nil {
			continue // it is gone, or somebody else's
		}
		if unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = os.Remove(name) // if it stays, it does no harm
		}
		_ = file.Close()
	}
	return nil
}

// enoughDisk refuses to write more bytes than the disk of a directory has free.
func enoughDisk(dir string, bytes int64) error {
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil {
		return nil //nolint:nilerr // then the writing says what is wrong
	}
	free := int64(disk.Bavail) * int64(disk.Bsize)
	if free >= bytes {
		return nil
	}
	f := fault.New(fault.Environment, "the index has %s, and the disk of %s has %s free", format.Size(bytes), dir,
		format.Size(free))
	f.Hint = "write it elsewhere, or name fewer columns"
	return f
}

func publishFault(path string, err error) error {
	var known *fault.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return &fault.Error{Kind: fault.Environment, Message: "write " + path, Err: err}
}
