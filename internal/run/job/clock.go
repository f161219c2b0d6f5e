package job

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Clock is time, waiting and chance, as those see them who drive runs and execute
// batches: whoever gives them another one than WallClock decides when each goes on.
type Clock interface {
	// Now is the time that is kept in state.
	Now() time.Time
	// Source is the chance that spaces what many would do at one moment.
	rand.Source
	// NewAlarm gives an alarm that nobody has rung.
	NewAlarm() Alarm
	// Go runs f on a goroutine of the group.
	Go(group *sync.WaitGroup, f func())
	// Every calls do at intervals until do says that it was the last time, or stop
	// is called. When stop returns, do is not under way.
	Every(interval time.Duration, do func() (again bool)) (stop func())
}

// Alarm wakes one waiting goroutine.
type Alarm interface {
	// Ring ends the Wait that is under way, or else the next one.
	Ring()
	// Wait returns when the alarm is rung, the time is over (0: there is no limit), or
	// ctx has ended.
	Wait(ctx context.Context, limit time.Duration)
}

// WallClock is the time of the machine. Its zero value is ready.
type WallClock struct{}

// Now implements Clock.
func (WallClock) Now() time.Time { return time.Now() }

// Uint64 implements Clock.
func (WallClock) Uint64() uint64 { return rand.Uint64() } //nolint:gosec // spacing, not a secret

// NewAlarm implements Clock.
func (WallClock) NewAlarm() Alarm { return wallAlarm{rung: make(chan struct{}, 1)} }

type wallAlarm struct{ rung chan struct{} }

func (a wallAlarm) Ring() {
	select {
	case a.rung <- struct{}{}:
	default:
	}
}

func (a wallAlarm) Wait(ctx context.Context, limit time.Duration) {
	var over <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ctx.Done():
	case <-a.rung:
	case <-over:
	}
}

// Go implements Clock.
func (WallClock) Go(group *sync.WaitGroup, f func()) { group.Go(f) }

// Every implements Clock.
func (WallClock) Every(interval time.Duration, do func() bool) (stop func()) {
	over := make(chan struct{})
	var beat sync.WaitGroup
	beat.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for again := true; again; {
			select {
			case <-over:
				return
			case <-tick.C:
				again = do()
			}
		}
	})
	return func() {
		close(over)
		beat.Wait()
	}
}
