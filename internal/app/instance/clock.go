package instance

import (
	"context"
	"sync/atomic"
	"time"

	"thalweg/internal/run/job"
	"thalweg/internal/store/cassandra"
)

// ClockEvery is the time between two looks at the state's clock.
const ClockEvery = time.Minute

// Clock is the time by which leases and notes are judged. Workers of several
// machines go by the clock of their state's nodes: by clocks of their own, one that is a
// minute ahead would take every batch from the others. Without such a state it
// is the machine's.
type Clock struct {
	job.WallClock
	at atomic.Pointer[moment]
}

// moment is one moment by two clocks.
type moment struct{ here, there time.Time }

// Now implements job.Clock. What is done to the machine's clock meanwhile does
// not change it: what counts is the time that has passed.
func (c *Clock) Now() time.Time {
	m := c.at.Load()
	if m == nil {
		return time.Now()
	}
	return m.there.Add(time.Since(m.here))
}

// Follow sets it by the clock of the state.
func (c *Clock) Follow(ctx context.Context, s *cassandra.Session) error {
	seen, err := s.Clock(ctx)
	if err != nil {
		return err
	}
	here := time.Now()
	c.at.Store(&moment{here: here, there: here.Round(0).Add(seen.Ahead)})
	return nil
}
