// Package awake measures time in which this process runs. A process that is
// stopped, or whose machine stands still or has no processor for it, learns
// nothing of what others did meanwhile: that they were too slow least of all.
// So limits of what others may take count looks at the clock, not the clock.
package awake

import (
	"context"
	"sync"
	"time"
)

// Clock is a clock that stands still while nobody looks at it. Its methods are
// called by one goroutine.
type Clock struct {
	now   func() time.Time
	every time.Duration
	last  time.Time
	spent time.Duration
}

// New returns a clock that is looked at as often as every says. Between two
// looks it goes on by twice as much at most. now is time.Now if it is nil.
func New(every time.Duration, now func() time.Time) *Clock {
	if now == nil {
		now = time.Now
	}
	return &Clock{now: now, every: every, last: now()}
}

// Look returns how long this process has run since New.
func (c *Clock) Look() time.Duration {
	now := c.now()
	c.spent += min(max(now.Sub(c.last), 0), 2*c.every)
	c.last = now
	return c.spent
}

// looks divides a limit into the intervals at which it is checked.
const looks = 100

// timed is a context that ends by a limit as those of the standard library do.
type timed struct {
	context.Context
	over error
	done chan struct{}
}

// Done is another channel than the inner context's, or contexts that are made of
// this one would not ask for its Err.
func (t timed) Done() <-chan struct{} { return t.done }

// Err is context.DeadlineExceeded if the time is over.
func (t timed) Err() error {
	if err := t.Context.Err(); err == nil || context.Cause(t.Context) != t.over { //nolint:errorlint // it is that one or none
		return err
	}
	return context.DeadlineExceeded
}

// waits are times that a limit, and those around it, leave out.
type waits struct {
	outer *waits

	mu    sync.Mutex
	begun int // that are under way
	since time.Time
	spent time.Duration
}

// waitsKey is the context key of the waits of the innermost limit.
type waitsKey struct{}

func waitsOf(ctx context.Context) *waits {
	w, _ := ctx.Value(waitsKey{}).(*waits)
	return w
}

// Waits begins a wait, for memory, for a turn, that is no work of what has the context: no limit
// that this package has set for it counts the time until over is called.
func Waits(ctx context.Context) (over func()) {
	first := waitsOf(ctx)
	for w := first; w != nil; w = w.outer {
		w.add(1)
	}
	return sync.OnceFunc(func() {
		for w := first; w != nil; w = w.outer {
			w.add(-1)
		}
	})
}

// add counts the time so far, if a wait is under way, and one wait more or less.
func (w *waits) add(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if w.begun > 0 {
		w.spent += now.Sub(w.since)
	}
	w.begun, w.since = w.begun+n, now
}

// total returns the time spent waiting so far.
func (w *waits) total() time.Duration {
	w.add(0)
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.spent
}

// WithTimeoutCause is context.WithTimeoutCause for a time in which this process runs, and what has
// the context does not wait (see Waits).
func WithTimeoutCause(parent context.Context, limit time.Duration, cause error) (context.Context, context.CancelFunc) {
	waited := &waits{outer: waitsOf(parent)}
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, waitsKey{}, waited))
	t := timed{ctx, cause, make(chan struct{})}
	every := max(limit/looks, time.Millisecond)
	go func() {
		defer close(t.done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for clock := New(every, nil); clock.Look() < limit+waited.total(); {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
		cancel(cause)
	}()
	return t, func() { cancel(context.Canceled) }
}

// WithTimeout is context.WithTimeout for a time in which this process runs.
func WithTimeout(parent context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return WithTimeoutCause(parent, limit, context.DeadlineExceeded)
}
