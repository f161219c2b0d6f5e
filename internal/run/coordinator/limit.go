package coordinator

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"thalweg/internal/run/job"
	"thalweg/internal/run/limit"
	"thalweg/internal/store/queue"
	"thalweg/internal/store/state"
)

// held says what the run has taken of its limit, as of the latest look.
type held struct {
	limit state.Limit
	clock limit.Clock
	at    time.Time
	used  limit.Used
	here  time.Duration // of attempts that have ended here since
	begun map[state.BatchKey]time.Time
}

// now returns what the run has taken now, as far as is known here.
func (h *held) now(at time.Time) limit.Used {
	return h.used.Plus(h.limit, max(at.Sub(h.at), 0), h.here)
}

// begins keeps when an attempt has begun here.
func (c *Coordinator) begins(e job.Event) {
	if e.Kind != job.BatchStarted {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held != nil {
		c.held.begun[state.BatchKey{NodeKey: state.NodeKey{RunKey: c.run, Node: e.Node}, Batch: e.Batch}] = e.Time
	}
}

// spent adds the time of an attempt that has ended here; mu is held.
func (c *Coordinator) spent(claim state.Claim) {
	if c.held == nil {
		return
	}
	if at, ok := c.held.begun[claim.BatchKey]; ok {
		c.held.here += max(c.cfg.Now().Sub(at), 0)
		delete(c.held.begun, claim.BatchKey)
	}
}

// spentHere returns the time of attempts that have ended here and that the latest look did not see.
func (c *Coordinator) spentHere() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		return 0
	}
	return c.held.here
}

// Full reports whether the run has reached its limit, so that no more batches of it may be claimed.
func (c *Coordinator) Full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		return false
	}
	name, _ := c.held.now(c.cfg.Now()).Reached(c.held.limit)
	if name != "" {
		c.Poke()
	}
	return name != ""
}

// untilLimit returns how long to wait before the next look: no longer than until the run reaches its limit.
func (c *Coordinator) untilLimit(wait time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		return wait
	}
	left, ok := c.held.now(c.cfg.Now()).Left(c.held.limit)
	if !ok || left == 0 { // who leads pauses it
		return wait
	}
	return min(wait, left)
}

// measure keeps what the run has taken. known is the time of attempts here that the nodes have, too.
func (c *Coordinator) measure(ctx context.Context, run state.Run, nodes []state.Node, known time.Duration) error {
	c.mu.Lock()
	h := c.held
	c.mu.Unlock()
	if run.Limit.None() {
		h = nil
	} else {
		if h == nil {
			h = &held{begun: map[state.BatchKey]time.Time{}, clock: limit.Clock{Epoch: -1}}
		}
		clock := h.clock
		if clock.Epoch != run.Epoch {
			var err error
			if clock, err = limit.ClockOf(ctx, c.cfg.Store, run); err != nil {
				return err
			}
		}
		at := c.cfg.Now()
		used := limit.Of(*run.Limit, clock.At(at), nodes)
		c.mu.Lock()
		h.limit, h.clock, h.at, h.used, h.here = *run.Limit, clock, at, used, max(h.here-known, 0)
		c.mu.Unlock()
	}
	c.mu.Lock()
	c.held = h
	c.mu.Unlock()
	return nil
}

// letGo forgets what the run has taken, until it goes on.
func (c *Coordinator) letGo() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = nil
}

// errNotDue says that a command of the limit is not due any more.
var errNotDue = errors.New("the run has moved")

// keepTo pauses a run that has reached its limit, and tells once that one is expected to. It reports whether it did
// one of the two.
func (c *Coordinator) keepTo(ctx context.Context, run state.Run, nodes []state.Node) (bool, error) {
	if run.Limit.None() || ending(nodes) {
		return false, nil
	}
	c.mu.Lock()
	used := c.held.used
	c.mu.Unlock()
	if name, figures := used.Reached(*run.Limit); name != "" {
		return true, c.command(ctx, run, state.CommandPause, name, figures)
	}
	if run.Limit.Foreseen {
		return false, nil
	}
	all, ok := used.Expect(*run.Limit, nodes)
	if !ok {
		return false, nil
	}
	if name, figures := all.Exceeds(*run.Limit); name != "" {
		return true, c.command(ctx, run, state.CommandForesee, name, figures)
	}
	return false, nil
}

// ending reports whether nothing is left to be done by batches, or the run fails.
func ending(nodes []state.Node) bool {
	done := true
	for _, n := range nodes {
		if n.Status == state.Failed || n.BatchesFailed > 0 {
			return true
		}
		done = done && (n.Status == state.Succeeded || n.Status == state.Running && n.BatchesDone == n.BatchesTotal)
	}
	return done
}

// command gives the run a command in the name of its limit.
func (c *Coordinator) command(ctx context.Context, run state.Run, kind state.CommandKind, name, figures string) error {
	now := c.cfg.Now()
	by := state.Mark{Actor: name, Time: now, Reason: figures}
	err := state.Decide(ctx, c.cfg.Store, c.run, state.TokenLimit+rand.Text(), now,
		func(is state.Run) (state.Command, error) {
			if is.Status != state.Running || !is.Limit.Same(run.Limit) {
				return state.Command{}, errNotDue
			}
			return state.Command{Kind: kind, Mark: by}, nil
		})
	if err != nil && !errors.Is(err, errNotDue) && !errors.Is(err, state.ErrConflict) {
		return fmt.Errorf("%s run %d, because %s: %w", kind, c.run.Run, figures, err)
	}
	c.cfg.Logger.Info("the run's limit", "run", c.run.Run, "order", kind, "limit", name, "figures", figures)
	if c.shared.Load() {
		c.signal(ctx, queue.Ordered)
	}
	return nil
}
