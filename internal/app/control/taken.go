package control

import (
	"context"
	"fmt"
	"strings"

	"thalweg/internal/app/caller"
	"thalweg/internal/app/registry"
	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
)

// AwaitTaken waits until the workers have looked at a new run of a cluster. It returns
// the reasons of those that cannot work on it. If none can, AwaitTaken stops the run,
// and returns an error.
func (s *Service) AwaitTaken(ctx context.Context, by caller.Caller, key state.RunKey) (cannot []string, err error) {
	c, err := registry.AwaitCandidates(ctx, s.Home, key, s.Process.Logger)
	if ctx.Err() != nil {
		return nil, nil // the caller leaves; the run goes on
	}
	if err != nil {
		return nil, &NotSeenError{err}
	}
	reasons := c.Reasons()
	for i, text := range reasons {
		reasons[i] = s.Process.Known.Text(text)
	}
	if !c.None() {
		return reasons, nil
	}
	if _, err := Stop(ctx, s.Home, key,
		by.Mark(shortReason("no worker can take it: "+strings.Join(reasons, "; ")))); err != nil {
		return nil, fmt.Errorf("stop run %d, which no worker can take: %w", key.Run, err)
	}
	return nil, &fault.Error{Kind: fault.Script,
		Message: fmt.Sprintf("no worker can take run %d, so it is stopped:\n%s",
			key.Run, strings.Join(reasons, "\n")),
		Hint: "mend these, or start a worker that can; with {{set wait}} the run waits for one"}
}

// NotSeenError says that a run was submitted, but that it is not known whether a worker can take it.
type NotSeenError struct{ Err error }

// Error implements error.
func (e *NotSeenError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *NotSeenError) Unwrap() error { return e.Err }

// reasonMost limits the reason with which a run is stopped that no worker can take, in characters.
const reasonMost = 400

func shortReason(text string) string {
	if r := []rune(text); len(r) > reasonMost {
		return string(r[:reasonMost]) + "…"
	}
	return text
}
