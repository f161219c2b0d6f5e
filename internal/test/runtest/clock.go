package runtest

import (
	"context"
	"sync"
	"time"

	"thalweg/internal/store/state"
	"thalweg/internal/store/state/retrying"
)

// Clock is a time that passes when it is asked for.
type Clock struct {
	mu   sync.Mutex
	at   time.Time
	step time.Duration
}

// NewClock makes a clock that goes on by a step each time.
func NewClock(at time.Time, step time.Duration) *Clock { return &Clock{at: at, step: step} }

// Now is the time, by a step later than when it was asked for before.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(c.step)
	return c.at
}

// Hurried gives a worker a clock in which pauses are over at once.
func Hurried(step time.Duration) func(*Worker) {
	return func(c *Worker) {
		clock := NewClock(time.Now(), step)
		c.Exec.Now, c.Coor.Now, c.Coor.Follow, c.Coor.Lease = clock.Now, clock.Now, time.Millisecond, time.Hour
		c.Exec.Lease = 24 * time.Hour
	}
}

// Unhurried is a store that is patient without waiting.
func Unhurried(s state.Store) state.Store {
	return retrying.New(s, retrying.Config{Pause: func(ctx context.Context, _ time.Duration) error {
		return ctx.Err()
	}})
}
