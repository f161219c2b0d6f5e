package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
	"thalweg/internal/store/state/sqlite/pagesum"
)

// primaryCode masks the extended part of a result code away.
const primaryCode = 0xff

// explain wraps what an operation failed with. The state's sentinels and
// faults pass with the operation's name in front; then the context's end wins
// over the interrupt that it caused; SQLite's own errors become faults. It is the
// only place that reads SQLite's codes.
func (s *Store) explain(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	var classified *fault.Error
	if errors.As(err, &classified) || isSentinel(err) {
		return fmt.Errorf("%s: %w", what, err)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
	f := &fault.Error{
		Kind:    fault.Bug,
		Place:   fault.Place{File: s.path},
		Message: "state file: " + what,
		Err:     err,
	}
	var e *driver.Error
	switch {
	case errors.As(err, &e):
		describe(f, e.Code())
	case errors.Is(err, pagesum.ErrLogDamaged):
		f.Kind, f.Hint = fault.Environment, damagedHint
	}
	return f
}

func isSentinel(err error) bool {
	for _, s := range []error{
		state.ErrNotFound, state.ErrNotClaimable, state.ErrLeaseLost,
		state.ErrConflict, state.ErrIllegalMove, state.ErrHeld,
		context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, s) {
			return true
		}
	}
	return false
}

// isLocked reports whether the same call may succeed when another process has
// gone on.
func isLocked(err error) bool {
	var e *driver.Error
	if !errors.As(err, &e) {
		return false
	}
	code := e.Code() & primaryCode
	return code == codes.SQLITE_BUSY || code == codes.SQLITE_LOCKED || code == codes.SQLITE_PROTOCOL
}

const damagedHint = "the file is damaged, or another program has written to it: restore a copy of it together with " +
	"its -sums and -wal files; a copy must be made with all programs stopped"

// describe sets the kind and the hint of an error by SQLite's result code. Codes that are not here are ours:
// they stay a Bug.
func describe(f *fault.Error, code int) {
	if code == codes.SQLITE_IOERR_DATA {
		f.Kind, f.Hint = fault.Environment, damagedHint
		return
	}
	switch code & primaryCode {
	case codes.SQLITE_BUSY, codes.SQLITE_LOCKED, codes.SQLITE_PROTOCOL:
		f.Kind, f.Retryable = fault.Environment, true
		f.Hint = fmt.Sprintf("another program has held the file locked for %d s: look for one that is suspended, or "+
			"for a database tool with an open transaction", lockWaitMillis/1000)
	case codes.SQLITE_FULL:
		f.Kind = fault.Environment
		f.Hint = "the disk or the quota is full: make room, then resume the run"
	case codes.SQLITE_READONLY, codes.SQLITE_PERM:
		f.Kind = fault.Environment
		f.Hint = "the file and its directory must be writable"
	case codes.SQLITE_CANTOPEN:
		f.Kind = fault.Environment
		f.Hint = "the file's directory must exist and be writable"
	case codes.SQLITE_IOERR, codes.SQLITE_NOMEM:
		f.Kind = fault.Environment
		f.Hint = "the disk or memory gave an error: see the system's log; state must be on a local disk, not on a " +
			"network one"
	case codes.SQLITE_NOTADB:
		f.Kind = fault.Environment
		f.Hint = "this file is not a state file: give another path or move the file away"
	case codes.SQLITE_CORRUPT:
		f.Kind = fault.Environment
		f.Hint = damagedHint
	}
}

func unusableDirectory(path string, err error) error {
	f := fault.New(fault.Environment, "create the directory of the state file")
	f.Place.File, f.Err = path, err
	f.Hint = "the directory must be writable"
	if errors.Is(err, os.ErrExist) {
		f.Hint = "a file stands where the directory should be"
	}
	return f
}
