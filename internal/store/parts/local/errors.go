//go:build unix

package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/parts"
)

// explain wraps what an operation failed with: sentinels, faults and the
// context's error pass with the operation's name in front; the system's
// errors become faults of kind Environment. It is the only place that looks
// at the system's error numbers.
func (s *Store) explain(what string, err error) error {
	var classified *fault.Error
	for _, known := range []error{parts.ErrNotFound, parts.ErrExists, parts.ErrCorrupt, context.Canceled,
		context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	if errors.As(err, &classified) {
		return fmt.Errorf("%s: %w", what, err)
	}
	f := &fault.Error{Kind: fault.Environment, Retryable: fault.Passes(err), Place: fault.Place{File: s.root},
		Message: "part store: " + what, Err: err}
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		f.Hint = "the disk or the quota is full: make room, then resume the run"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.EROFS):
		f.Hint = "the directory and all in it must be readable and writable"
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		f.Hint = "too many open files: raise the limit (ulimit -n)"
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EISDIR):
		f.Kind, f.Hint = fault.Bug, "a key cannot be a directory of another key"
	case errors.Is(err, fs.ErrNotExist):
		f.Hint = "somebody has removed the directory or a file in it"
	default:
		f.Hint = "the disk gave an error: see the system's log"
	}
	return f
}
