package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	"thalweg/internal/run/executor"
	"thalweg/internal/store/queue"
	"thalweg/internal/store/state"
)

// signalPatience bounds a signal, which nobody waits for.
const signalPatience = 2 * time.Second

// Use implements executor.Runs. A queue that processes share gives hints of any
// run: one that is not open is opened, and left to others where that fails.
func (c *crew) Use(ctx context.Context, key state.RunKey) (executor.Run, func(), error) {
	if r := c.at(key); r != nil {
		return r, func() {}, nil
	}
	if !c.queue.Shared() {
		return nil, nil, fmt.Errorf("run %d is not open: %w", key.Run, state.ErrNotFound)
	}
	if c.cfg.open != nil {
		if err := c.cfg.open(ctx, key); errors.Is(err, state.ErrNotFound) {
			return nil, nil, err
		} else if err != nil {
			return nil, nil, fmt.Errorf("open run %d: %w", key.Run, errors.Join(executor.ErrElsewhere, err))
		}
		if r := c.at(key); r != nil {
			return r, func() {}, nil
		}
	}
	return nil, nil, fmt.Errorf("run %d is not open: %w", key.Run, executor.ErrElsewhere)
}

func (c *crew) at(key state.RunKey) *openRun {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs[key]
}

// listen passes signals on until ctx ends.
func (c *crew) listen(ctx context.Context) {
	for {
		s, err := c.queue.Signalled(ctx)
		if err != nil {
			return
		}
		switch r := c.at(s.RunKey); {
		case r != nil:
			r.Signalled(s.Kind)
		case c.cfg.heard != nil:
			c.cfg.heard(s)
		}
	}
}

// hungerEvery is how often it is looked whether this process waits for work.
const hungerEvery = 100 * time.Millisecond

// notice tells the runs for how long this process has waited for work, until ctx ends: where
// there is some, its hints do not arrive.
func (c *crew) notice(ctx context.Context) {
	tick := time.NewTicker(hungerEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !c.queue.Shared() {
			continue
		}
		since := c.exec.Hungry()
		c.mu.Lock()
		for _, r := range c.runs {
			r.Hungry(since)
		}
		c.mu.Unlock()
	}
}

// keeping is a queue as a coordinator sees it: places that pause take what is kept at once.
type keeping struct {
	queue.Queue
	exec *executor.Executor
}

// Keep implements queue.Queue.
func (k keeping) Keep(ctx context.Context, hints ...queue.Hint) error {
	err := k.Queue.Keep(ctx, hints...)
	k.exec.Kept()
	return err
}

// signal does its best.
func (c *crew) signal(ctx context.Context, s queue.Signal) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), signalPatience)
	defer cancel()
	if err := c.queue.Signal(ctx, s); err != nil {
		c.cfg.logger.Debug("processes were not asked to look at a run", "run", s.Run, "error", err)
	}
}

// hinted joins a run of which a hint has come. It fails with state.ErrNotFound
// where there is nothing to do for it.
func (s *server) hinted(ctx context.Context, key state.RunKey) error {
	r, err := s.store.Run(ctx, key)
	if err != nil {
		return fmt.Errorf("read run %d: %w", key.Run, err)
	}
	if !r.GoesOn() {
		return fmt.Errorf("run %d is %s: %w", key.Run, r.Status, state.ErrNotFound)
	}
	if s.entersOther(key) { // which may take long: others may have this one, and this place what they offer
		return fmt.Errorf("run %d is not open, and another one is being joined: %w", key.Run, executor.ErrElsewhere)
	}
	s.consider(ctx, r)
	return nil
}

// look makes watch look for runs now.
func (s *server) look(queue.Signal) {
	select {
	case s.called <- struct{}{}:
	default:
	}
}
