package patient

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"thalweg/internal/fault"
	"thalweg/internal/state"
)

// Defaults and limits.
const (
	// WithinDefault is for how long a call is repeated before it fails.
	WithinDefault = 30 * time.Second
	// firstPause and longestPause space the calls; each is shortened by up to
	// half, so that many workers do not come back at the same moment.
	firstPause   = 20 * time.Millisecond
	longestPause = 2 * time.Second
)

// Config of a patient store.
type Config struct {
	Within time.Duration // 0: WithinDefault
	Logger *slog.Logger
	// Pause waits between calls; nil: for that time, or until ctx ends.
	Pause func(ctx context.Context, d time.Duration) error
}

// Store repeats the calls of another one. Lists that are for people only, and
// Close, are passed on as they are.
type Store struct {
	state.Store
	cfg Config
}

// New returns a patient store.
func New(s state.Store, cfg Config) *Store {
	if cfg.Within == 0 {
		cfg.Within = WithinDefault
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Pause == nil {
		cfg.Pause = pause
	}
	return &Store{Store: s, cfg: cfg}
}

// Passes reports whether the same call may succeed later by itself.
func Passes(err error) bool {
	if errors.Is(err, state.ErrUnknown) {
		return true
	}
	for _, final := range []error{
		state.ErrNotFound, state.ErrNotClaimable, state.ErrLeaseLost, state.ErrConflict, state.ErrIllegalMove, state.ErrHeld,
		context.Canceled, context.DeadlineExceeded,
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

// again calls fn until it succeeds or fails for good.
func again(ctx context.Context, s *Store, what string, fn func() error) error {
	left := s.cfg.Within
	for next := firstPause; ; next = min(2*next, longestPause) {
		began := time.Now()
		err := fn()
		if left -= time.Since(began); !Passes(err) || left <= 0 {
			return err
		}
		d := next - rand.N(next/2) //nolint:gosec // spacing, not a secret
		left -= d
		s.cfg.Logger.Warn("the state could not be reached; it is tried again", "call", what, "error", err)
		if s.cfg.Pause(ctx, d) != nil {
			return err
		}
	}
}

// get is again for calls that answer with something.
func get[T any](ctx context.Context, s *Store, what string, fn func() (T, error)) (T, error) {
	var out T
	err := again(ctx, s, what, func() (err error) {
		out, err = fn()
		return err
	})
	return out, err
}

// list is again for pages of lists.
func list[T any](ctx context.Context, s *Store, what string, fn func() ([]T, int64, error)) ([]T, int64, error) {
	var next int64
	out, err := get(ctx, s, what, func() (some []T, err error) {
		some, next, err = fn()
		return some, err
	})
	return out, next, err
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
