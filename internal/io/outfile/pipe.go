package outfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// pipeMode lets nobody else read what goes through a pipe.
const pipeMode = 0o600

// pipeBytes is what a pipe holds where users may have as much: the sides wait less often for each other.
const pipeBytes = 1 << 20

// through runs what writes to a pipe, which it makes at path, and meanwhile take, which
// reads from it to the end. A failure of take cancels run, and is what is returned, unless take misses
// what run has not written.
func through(ctx context.Context, path string, run func(context.Context) error,
	take func(io.Reader) error) (err error) {
	if err := syscall.Mkfifo(path, pipeMode); err != nil {
		return fmt.Errorf("make a pipe for the rows of a file: %w", err)
	}
	defer func() { err = errors.Join(err, os.Remove(path)) }()
	reads, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // does not wait for a writer
	if err != nil {
		return err
	}
	defer reads.Close() // nothing can be lost: it is read
	if c, err := reads.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeBytes) }) // else it is smaller
	}
	writes, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	taken := make(chan error, 1)
	go func() {
		err := take(reads)
		if err != nil {
			cancel()
			_, _ = io.Copy(io.Discard, reads) // who writes must not meet a pipe without a reader
		}
		taken <- err
	}()
	ran := run(ctx)
	closed := writes.Close() // the pipe ends when all that have it open for writing have closed it
	if err := <-taken; err != nil && (ran == nil || !errors.Is(err, io.ErrUnexpectedEOF)) {
		return err
	}
	return errors.Join(ran, closed)
}
