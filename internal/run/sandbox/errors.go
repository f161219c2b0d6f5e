package sandbox

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"syscall"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/parts"
	"thalweg/internal/store/state"
)

// Errors of the connection.
var (
	errFrameTooLarge = errors.New("a frame is larger than the limit")
	errGone          = errors.New("the other process is gone")
)

// sentinels are the errors that somebody asks for with errors.Is, by the names
// under which they travel.
var sentinels = map[string]error{
	"canceled": context.Canceled, "deadline": context.DeadlineExceeded,
	"not exist": fs.ErrNotExist, "exist": fs.ErrExist, "permission": fs.ErrPermission, "eof": io.EOF,
	"unexpected eof":   io.ErrUnexpectedEOF,
	"state: not found": state.ErrNotFound, "state: not claimable": state.ErrNotClaimable,
	"state: lease lost": state.ErrLeaseLost, "state: conflict": state.ErrConflict,
	"state: illegal move": state.ErrIllegalMove, "state: held": state.ErrHeld, "state: unknown": state.ErrUnknown,
	"parts: not found": parts.ErrNotFound, "parts: exists": parts.ErrExists, "parts: corrupt": parts.ErrCorrupt,
}

// wireError is an error as it travels.
type wireError struct {
	Text  string        `json:"text"`
	Is    []string      `json:"is,omitempty"`    // names of sentinels
	Errno syscall.Errno `json:"errno,omitempty"` // 0: none
	Fault *wireFault    `json:"fault,omitempty"` // the outermost in its chain
	Exact bool          `json:"exact,omitempty"` // the error is that fault itself
}

// wireFault is a *fault.Error.
type wireFault struct {
	Kind      fault.Kind  `json:"kind"`
	Code      fault.Code  `json:"code,omitempty"`
	Retryable bool        `json:"retryable,omitempty"`
	Place     fault.Place `json:"place,omitzero"`
	Table     string      `json:"table,omitempty"` // of Place, which JSON leaves out
	Message   string      `json:"message"`
	Hint      string      `json:"hint,omitempty"`
	Detail    string      `json:"detail,omitempty"`
	Err       *wireError  `json:"err,omitempty"`
}

// toWire takes an error apart; nil of nil.
func toWire(err error) *wireError {
	if err == nil {
		return nil
	}
	w := &wireError{Text: err.Error()}
	for _, name := range slices.Sorted(maps.Keys(sentinels)) {
		if errors.Is(err, sentinels[name]) {
			w.Is = append(w.Is, name)
		}
	}
	errors.As(err, &w.Errno)
	var f *fault.Error
	if errors.As(err, &f) {
		w.Exact = err == error(f) //nolint:errorlint // whether it is wrapped is the question
		w.Fault = &wireFault{Kind: f.Kind, Code: f.Code, Retryable: f.Retryable, Place: f.Place, Table: f.Place.Table,
			Message: f.Message, Hint: f.Hint, Detail: f.Detail, Err: toWire(f.Err)}
	}
	return w
}

// fromWire puts an error together again; nil of nil.
func fromWire(w *wireError) error {
	if w == nil {
		return nil
	}
	far := &farError{wire: w}
	if w.Fault == nil {
		return far
	}
	f := &fault.Error{Kind: w.Fault.Kind, Code: w.Fault.Code, Retryable: w.Fault.Retryable, Place: w.Fault.Place, Message: w.Fault.Message,
		Hint: w.Fault.Hint, Detail: w.Fault.Detail, Err: fromWire(w.Fault.Err)}
	f.Place.Table = w.Fault.Table
	if w.Exact {
		return f
	}
	far.fault = f
	return far
}

// farError is an error of the other process.
type farError struct {
	wire  *wireError
	fault *fault.Error // nil: none
}

// Error implements error.
func (e *farError) Error() string { return e.wire.Text }

// Unwrap gives the classified failure in it.
func (e *farError) Unwrap() error {
	if e.fault == nil {
		return nil
	}
	return e.fault
}

// Is says what errors.Is said of it over there.
func (e *farError) Is(target error) bool {
	for _, name := range e.wire.Is {
		if sentinels[name] == target { //nolint:errorlint // this is Is
			return true
		}
	}
	return e.wire.Errno != 0 && (target == e.wire.Errno || e.wire.Errno.Is(target)) //nolint:errorlint // likewise
}

// As gives the system's number of it.
func (e *farError) As(target any) bool {
	number, ok := target.(*syscall.Errno)
	if ok && e.wire.Errno != 0 {
		*number = e.wire.Errno
		return true
	}
	return false
}
