package main

import (
	"errors"
	"io"
	"sync"
	"syscall"

	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"

	"github.com/alecthomas/kong"
)

// errNobodyReads ends a command that only shows something once nobody reads it any more.
var errNobodyReads = errors.New("nobody reads the output any more")

// outlet is standard output. It remembers what went wrong there, because few of
// those who print look at each line.
type outlet struct {
	to     io.Writer
	gone   func() // called once when nobody reads any more; may be nil
	goesOn bool   // the command's work is worth more than its output: who writes is told of no failure

	mu  sync.Mutex
	err error
}

// Write implements io.Writer.
func (o *outlet) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	if o.err == nil {
		if n, o.err = o.to.Write(p); errors.Is(o.err, syscall.EPIPE) && o.gone != nil {
			o.gone()
		}
	}
	if o.goesOn {
		return len(p), nil
	}
	return n, o.err
}

func (o *outlet) failure() error {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// goesOnUnread reports whether a command is worth its work although nobody reads what it prints.
func goesOnUnread(kctx *kong.Context) bool {
	switch kctx.Selected().Name {
	case "run", "resume", "retry", "worker", "scheduler":
		return true
	}
	return false
}

// keepsOn makes the command go on whatever becomes of its output.
func (o *outlet) keepsOn() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gone, o.goesOn = nil, true
}

// isFailureOf reports whether a command failed because standard output could not be written.
func (o *outlet) isFailureOf(err error) bool {
	failure := o.failure()
	return failure != nil && errors.Is(err, failure)
}

// unread reports whether nobody reads standard output any more, as behind `| head`: who
// closed it has what was wanted.
func (a *console) unread() bool {
	return a.outlet != nil && a.outlet.gone != nil && errors.Is(a.outlet.failure(), syscall.EPIPE)
}

// written is a command's exit code, after a look at whether its output was written.
func (a *console) written(code int) int {
	err := a.outlet.failure()
	if err == nil || errors.Is(err, syscall.EPIPE) || code != exitOK {
		return code
	}
	f := &fault.Error{Kind: fault.Environment, Message: "write standard output", Err: err,
		Hint: "what was printed is incomplete"}
	if a.json {
		a.printTwin(view.FailedOf(f, exitOurs))
		return exitOurs
	}
	a.printFailure(f.Error(), fault.Place{}, f.Hint, "")
	return exitOurs
}
