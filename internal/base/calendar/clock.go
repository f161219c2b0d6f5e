package calendar

import "time"

// Clock tells the time and waits, so that tests need not.
type Clock interface {
	Now() time.Time
	// After gives a channel on which something comes when a while is over, or
	// before: who waits looks again.
	After(d time.Duration) <-chan time.Time
}

// System is the machine's clock. While a machine sleeps its timers stand still,
// but not its time: who waits for a moment waits for short whiles.
type System struct{}

// Now implements Clock.
func (System) Now() time.Time { return time.Now() }

// After implements Clock.
func (System) After(d time.Duration) <-chan time.Time { return time.After(d) }
