package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// clock waits to a few microseconds. Timers of the runtime may be a millisecond late: it waits for them and for
// connections together, in whole milliseconds. One goroutine uses it.
type clock struct {
	file *os.File
	fd   int
}

func newClock() (*clock, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a timer: %w", err)
	}
	return &clock{file: os.NewFile(uintptr(fd), "timer"), fd: fd}, nil
}

func (c *clock) Close() error { return c.file.Close() }

// wait waits for so long, or until the context ends.
func (c *clock) wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	if err := unix.TimerfdSettime(c.fd, 0, &spec, nil); err != nil {
		return fmt.Errorf("set a timer: %w", err)
	}
	var times [8]byte
	if _, err := c.file.Read(times[:]); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("wait for a timer: %w", err)
	}
	return ctx.Err()
}

// interrupt ends the wait, and those that follow.
func (c *clock) interrupt() { _ = c.file.SetReadDeadline(time.Unix(1, 0)) } // a timer that is closed waits no more
