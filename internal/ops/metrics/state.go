package metrics

import (
	"context"
	"errors"
	"time"

	"thalweg/internal/store/state"
)

// stateStore measures the calls of a state.
type stateStore struct {
	m      *Metrics
	claims claims
}

// State measures each call of a state.
func (m *Metrics) State(s state.Store) state.Store {
	measured := &stateStore{m: m, claims: claims{up: map[claimed]bool{}}}
	return state.Around(s, measured.call)
}

// Outcomes of calls.
const (
	done    = "done"
	lost    = "lost"
	unknown = "unknown"
)

// call counts a call, and the claims that it begins or ends.
func (s *stateStore) call(ctx context.Context, op state.Op, call func(context.Context) error) error {
	began := time.Now()
	err := call(ctx)
	s.m.stateCalls.WithLabelValues(op.Name, stateOutcome(err)).Inc()
	s.m.stateSeconds.WithLabelValues(op.Name).Observe(time.Since(began).Seconds())
	leaseLost := errors.Is(err, state.ErrLeaseLost)
	switch op.Method {
	case state.OpClaim:
		if err == nil {
			s.claimed(*state.Pointer[state.Claim](op.Results))
		}
	case state.OpExtend:
		if leaseLost {
			s.landed(*state.Pointer[state.Claim](op.Args), true)
		}
	case state.OpCommit, state.OpFail, state.OpRetry, state.OpRelease:
		s.landed(*state.Pointer[state.Claim](op.Args), leaseLost)
	}
	return err
}

// stateOutcome returns what metrics call the outcome of a call.
func stateOutcome(err error) string {
	switch {
	case err == nil:
		return done
	case state.Stray(err), errors.Is(err, state.ErrLeaseLost), errors.Is(err, state.ErrConflict),
		errors.Is(err, state.ErrHeld):
		return lost
	case errors.Is(err, state.ErrUnknown):
		return unknown
	}
	return failed
}
