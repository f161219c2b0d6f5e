package durable

import (
	"errors"

	"golang.org/x/sys/unix"
)

// exchange gives each of two files the name of the other, in one step.
func exchange(a, b string) error {
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP) {
		return errCannotExchange
	}
	return err
}
