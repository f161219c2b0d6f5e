package retrying

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
)

// Defaults and limits.
const (
	// WithinDefault is for how long a call is repeated before it fails.
	WithinDefault = 30 * time.Second
	// Forever is for who has nothing better to do than to wait for the state: calls
	// that could not reach it are repeated until their context ends.
	Forever time.Duration = math.MaxInt64
	// firstPause and longestPause space the calls; each is shortened by up to
	// half, so that many workers do not come back at the same moment.
	firstPause   = 20 * time.Millisecond
	longestPause = 2 * time.Second
	// saidAfter is for how long a call is tried before somebody is told: a node that
	// is lost, or a moment without a quorum, is nobody's concern.
	saidAfter = 2 * time.Second
)

// Config of a store that repeats calls.
type Config struct {
	Within time.Duration // 0: WithinDefault
	Logger *slog.Logger  // is told once when the state cannot be reached for a while, and once when it can be again
	// Pause waits between calls; nil: for that time, or until ctx ends.
	Pause func(ctx context.Context, d time.Duration) error
}

// store repeats the calls of another one.
type store struct {
	cfg Config

	mu   sync.Mutex
	away time.Time // since when the state cannot be reached; zero: it can be
	back time.Time // when it could be again
	said bool      // somebody was told that it is away
}

// New returns a store that repeats the calls of s. Lists that are for people only, Close, and a run that is
// created without a token, which can not be repeated, are passed on as they are.
func New(s state.Store, cfg Config) state.Store {
	if cfg.Within == 0 {
		cfg.Within = WithinDefault
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Pause == nil {
		cfg.Pause = pause
	}
	patient := &store{cfg: cfg}
	return state.Around(s, patient.call)
}

// call makes a call, and repeats it if that may help.
func (s *store) call(ctx context.Context, op state.Op, call func(context.Context) error) error {
	switch op.Method {
	case state.OpBatch, state.OpSpecs, state.OpFiles:
		return call(ctx)
	case state.OpCreateRun:
		if state.Pointer[state.Run](op.Args).Token == "" {
			return call(ctx)
		}
	}
	return s.again(ctx, strings.ReplaceAll(op.Name, "_", " "), call)
}

// Passes reports whether the same call may succeed later by itself.
func Passes(err error) bool {
	if errors.Is(err, state.ErrUnknown) {
		return true
	}
	for _, final := range []error{
		state.ErrNotFound, state.ErrNotClaimable, state.ErrLeaseLost, state.ErrConflict,
		state.ErrIllegalMove, state.ErrHeld, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, final) {
			return false
		}
	}
	var f *fault.Error
	if errors.As(err, &f) {
		return f.Retryable
	}
	return err != nil
}

// away reports whether a call has failed because the state could not be reached.
func away(err error) bool {
	var f *fault.Error
	return errors.Is(err, state.ErrUnknown) || errors.As(err, &f) && f.Retryable
}

// again calls fn until it succeeds or fails for good.
func (s *store) again(ctx context.Context, what string, fn func(context.Context) error) error {
	spent := time.Duration(0)
	for next := firstPause; ; next = min(2*next, longestPause) {
		began := time.Now()
		err := fn(ctx)
		if !Passes(err) {
			s.reached(ctx, began)
			return err
		}
		within := s.cfg.Within
		if !away(err) {
			within = min(within, WithinDefault)
		}
		if spent += time.Since(began); spent >= within {
			return err
		}
		d := next - rand.N(next/2) //nolint:gosec // spacing, not a secret
		spent += d
		s.missed(what, err, began, spent)
		if s.cfg.Pause(ctx, d) != nil {
			return err
		}
	}
}

// missed says that the state cannot be reached, once, when it has been so for a while: by
// a call that had begun before it was reached again nothing new is known. lost is for how
// long the call has been tried.
func (s *store) missed(what string, err error, began time.Time, lost time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away.IsZero() && !began.Before(s.back) {
		s.away = time.Now()
	}
	if s.away.IsZero() || s.said || lost < saidAfter {
		s.cfg.Logger.Debug("the state could not be reached; it is tried again", "call", what, "error", err)
		return
	}
	s.said = true
	s.cfg.Logger.Warn("the state could not be reached; it is tried again until it can be", "call", what, "error", err)
}

// reached says that it can be again: a call that has begun since has been answered.
func (s *store) reached(ctx context.Context, began time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away.IsZero() || ctx.Err() != nil || began.Before(s.away) {
		return
	}
	if s.said {
		s.cfg.Logger.Warn("the state is reached again", "after", time.Since(s.away).Round(time.Millisecond))
	}
	s.away, s.back, s.said = time.Time{}, time.Now(), false
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
