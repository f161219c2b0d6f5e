package workerprocess

import (
	"context"
	"errors"
	"fmt"
	"time"

	"thalweg/internal/app/instance"
	"thalweg/internal/run/executor"
	"thalweg/internal/store/queue"
	"thalweg/internal/store/state"
)

// Use implements executor.Runs. A queue that processes share gives hints of any
// run: one that is not open is opened, and left to others where that fails.
func (c *Process) Use(ctx context.Context, key state.RunKey) (executor.Run, func(), error) {
	if r := c.at(key); r != nil {
		return r, func() {}, nil
	}
	if !c.Queue.Shared() {
		return nil, nil, fmt.Errorf("run %d is not open: %w", key.Run, state.ErrNotFound)
	}
	if c.cfg.Open != nil {
		if err := c.cfg.Open(ctx, key); errors.Is(err, state.ErrNotFound) {
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

func (c *Process) at(key state.RunKey) *OpenRun {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs[key]
}

// listen passes signals on until ctx ends.
func (c *Process) listen(ctx context.Context) {
	for {
		s, err := c.Queue.Signalled(ctx)
		if err != nil {
			return
		}
		switch r := c.at(s.RunKey); {
		case r != nil:
			r.Signalled(s.Kind)
		case c.cfg.Heard != nil:
			c.cfg.Heard(s)
		}
	}
}

// hungerEvery is the time between two looks whether this process waits for work.
const hungerEvery = 100 * time.Millisecond

// notice tells the runs for how long this process has waited for work, until ctx ends: where
// there is some, its hints do not arrive.
func (c *Process) notice(ctx context.Context) {
	tick := time.NewTicker(hungerEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !c.Queue.Shared() {
			continue
		}
		since := c.Exec.Hungry()
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
func (c *Process) signal(ctx context.Context, s queue.Signal) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), instance.SignalPatience)
	defer cancel()
	if err := c.Queue.Signal(ctx, s); err != nil {
		c.cfg.Logger.Debug("processes were not asked to look at a run", "run", s.Run, "error", err)
	}
}
