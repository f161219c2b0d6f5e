package around

import (
	"context"
	"errors"
	"fmt"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/keeper"
)

// Second is a load that has run beside another one.
type Second struct {
	Command string `json:"command"`
	// How long it ran beside the first load; shorter than that: what was measured behind it was measured alone.
	Ran   time.Duration `json:"ran_ns"`
	Ended bool          `json:"ended_by_itself"`
}

// errBesideFailed says that the second load was not what it should have been.
var errBesideFailed = errors.New("the second load has failed")

// Beside runs a command line of the shell while something is done, and then ends it with all that it has started. If it
// fails before that, so does what is done: its figures would be those of a load alone.
func Beside[T any](ctx context.Context, self, command string, do func(context.Context) (T, error)) (out T, s Second,
	err error) {
	doing, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	printed := &head{most: outputMost}
	began := time.Now()
	g, err := keeper.Start(self, keeper.Program{Path: "sh", Args: []string{"-c", command}, Stdout: printed, Stderr: printed,
		Env: keeper.Some("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR"), WaitDelay: time.Second})
	if err != nil {
		return out, s, fmt.Errorf("start the second load: %w", err)
	}
	s.Command = command
	over := make(chan struct{})
	var end keeper.State
	go func() {
		defer close(over)
		end = g.Wait()
		s.Ran = time.Since(began)
		if !succeeded(end) {
			stop(errBesideFailed)
		}
	}()
	out, err = do(doing)
	g.Kill()
	<-over
	if s.Ended = end.Err != nil || end.Status.Exited(); s.Ended && !succeeded(end) {
		return out, s, &fault.Error{Kind: fault.Environment, Message: fmt.Sprintf("the second load, %s, ended before the "+
			"first one: %s: %s", command, end, firstLine(printed.String())), Hint: "it is a command line of sh that goes " +
			"on until it is ended"}
	}
	return out, s, err
}

func succeeded(end keeper.State) bool {
	return end.Err == nil && end.Status.Exited() && end.Status.ExitStatus() == 0
}
