package simulate

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"thalweg/internal/run/job"
)

// epoch is the time at which simulations begin.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// clock is the time of one process.
type clock struct {
	world *world
	of    *process
	*rand.PCG
}

var _ job.Clock = (*clock)(nil)

// Now implements job.Clock.
func (c *clock) Now() time.Time {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	return epoch.Add(c.world.now)
}

// NewAlarm implements job.Clock.
func (c *clock) NewAlarm() job.Alarm { return &alarm{clock: c} }

type alarm struct {
	*clock
	rung bool
	who  *waiter // waits; nil: nobody
}

// Ring implements job.Alarm.
func (a *alarm) Ring() {
	a.world.mu.Lock()
	defer a.world.mu.Unlock()
	if a.who == nil {
		a.rung = true
		return
	}
	a.world.resume(a.who)
	a.who = nil
}

// Wait implements job.Alarm.
func (a *alarm) Wait(ctx context.Context, limit time.Duration) {
	a.world.mu.Lock()
	defer a.world.mu.Unlock()
	if a.rung || a.world.over || ctx.Err() != nil {
		a.rung = false
		return
	}
	who := newWaiter(a.of)
	a.who = who
	if limit > 0 {
		a.world.schedule(limit, event{of: a.of, who: who})
	}
	a.world.wait(who)
	a.who = nil
}

// Go implements job.Clock.
func (c *clock) Go(group *sync.WaitGroup, f func()) {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	who := newWaiter(c.of)
	if c.world.over {
		close(who.wake)
	} else {
		c.world.waiting[who] = struct{}{}
		c.world.resume(who)
	}
	group.Go(func() {
		<-who.wake
		f()
		c.world.mu.Lock()
		defer c.world.mu.Unlock()
		c.world.rest()
	})
}

// Every implements job.Clock.
func (c *clock) Every(interval time.Duration, do func() bool) (stop func()) {
	t := &ticker{clock: c, interval: interval, do: do}
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	t.next()
	return t.stop
}

type ticker struct {
	*clock
	interval time.Duration
	do       func() bool
	stopped  bool
	busy     bool
	who      *waiter // waits until it is not busy
	calls    sync.WaitGroup
}

// next schedules a call; mu is held.
func (t *ticker) next() {
	if !t.world.over {
		t.world.schedule(t.interval, event{of: t.of, do: t.call})
	}
}

func (t *ticker) call() {
	t.world.mu.Lock()
	if t.stopped || t.world.over {
		t.world.mu.Unlock()
		return
	}
	t.busy = true
	t.calls.Add(1)
	t.world.mu.Unlock()
	defer t.calls.Done()
	again := t.do()
	t.world.mu.Lock()
	defer t.world.mu.Unlock()
	t.busy = false
	switch {
	case t.who != nil:
		t.world.resume(t.who)
	case again && !t.stopped:
		t.next()
	}
}

func (t *ticker) stop() {
	t.world.mu.Lock()
	t.stopped = true
	if t.busy && !t.world.over {
		t.who = newWaiter(t.of)
		t.world.wait(t.who)
	}
	t.world.mu.Unlock()
	t.calls.Wait()
}
