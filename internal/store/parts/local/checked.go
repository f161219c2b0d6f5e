//go:build unix

package local

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"thalweg/internal/store/parts"
)

// checked remembers which files were found to have the bytes of which
// checksum, so that each is read for it once.
type checked struct {
	mu    sync.Mutex
	files map[string]*checkedFile // by key
}

// checkedFile is the verified checksum of one file. Its reader holds turn; the others wait for the result.
type checkedFile struct {
	turn  chan struct{}
	sum   string
	stamp stamp
}

// stamp identifies a file's contents without reading them: another stamp means that somebody may have changed
// it.
type stamp struct {
	device, inode    uint64
	bytes            int64
	modified, change int64 // nanoseconds since 1970
}

func stampOf(path string) (stamp, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return stamp{}, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	return stamp{device: uint64(st.Dev), inode: st.Ino, bytes: st.Size, modified: st.Mtim.Nano(),
			change: st.Ctim.Nano()},
		nil
}

func (c *checked) of(key string) *checkedFile {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.files == nil {
		c.files = map[string]*checkedFile{}
	}
	f := c.files[key]
	if f == nil {
		f = &checkedFile{turn: make(chan struct{}, 1)}
		c.files[key] = f
	}
	return f
}

func (c *checked) forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.files, key)
}

// check is nil if the file at path has the bytes of sum: because that was
// found before and the system says of the file what it said then, or by
// reading it now. A failure is not remembered.
func (c *checked) check(ctx context.Context, key, path, sum string) error {
	f := c.of(key)
	select {
	case f.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-f.turn }()
	now, err := stampOf(path)
	if err != nil {
		return err
	}
	if f.sum == sum && f.stamp == now {
		return nil
	}
	if err := compare(ctx, path, sum); err != nil {
		return err
	}
	f.sum, f.stamp = sum, now
	return nil
}

// wrote notes that the file at path has the bytes of sum: its writer has just
// computed it. A file that cannot be looked at is read on its first use.
func (c *checked) wrote(key, path, sum string) {
	now, err := stampOf(path)
	if err != nil {
		return
	}
	f := c.of(key)
	f.turn <- struct{}{}
	f.sum, f.stamp = sum, now
	<-f.turn
}

// compare reads a file: parts.ErrCorrupt if its bytes do not have this sum.
func compare(ctx context.Context, path, sum string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // nothing was written
	got, _, err := parts.Checksum(contextFile{ctx, f})
	if err != nil {
		return err
	}
	if got != sum {
		return fmt.Errorf("%w: %s instead of %s", parts.ErrCorrupt, got, sum)
	}
	return nil
}
