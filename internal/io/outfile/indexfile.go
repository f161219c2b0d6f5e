package outfile

import (
	"context"
	"errors"
	"os"
	"path/filepath"

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
	file, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*")
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
