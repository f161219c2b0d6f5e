package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
)

// flight knows the batches that are being executed or recorded, so that those
// which do not come back can be given back in their place.
type inflight struct {
	mu *sync.Mutex
	up map[attemptKey]*batch
}

// tried names an attempt: a batch whose lease was lost may be in the air twice.
type attemptKey struct {
	state.BatchKey
	attempt int
}

func attemptOf(c state.Claim) attemptKey { return attemptKey{c.BatchKey, c.Attempt} }

// batch is one of them.
type batch struct {
	run      Run
	claim    state.Claim
	landed   bool          // it has been executed and is being recorded
	recorded chan struct{} // closed once it is
}

func newFlight() inflight { return inflight{mu: &sync.Mutex{}, up: map[attemptKey]*batch{}} }

func (f inflight) begin(run Run, c state.Claim) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.up[attemptOf(c)] = &batch{run: run, claim: c, recorded: make(chan struct{})}
}

// InFlight returns the number of batches that are being executed or recorded.
func (e *Executor) InFlight() int {
	e.inflight.mu.Lock()
	defer e.inflight.mu.Unlock()
	return len(e.inflight.up)
}

// land says that an execution has ended; false if it was left behind.
func (f inflight) land(c state.Claim) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.up[attemptOf(c)]
	if b == nil {
		return false
	}
	b.landed = true
	return true
}

// recorded says that nothing more happens to it.
func (f inflight) recorded(c state.Claim) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b := f.up[attemptOf(c)]; b != nil {
		close(b.recorded)
		delete(f.up, attemptOf(c))
	}
}

// of lists the batches of runs that are in the air.
func (f inflight) of(mine func(state.RunKey) bool) []*batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*batch
	for _, b := range f.up {
		if mine(b.claim.RunKey) {
			out = append(out, b)
		}
	}
	return out
}

// leave marks a batch as left behind unless it has landed, and says whether it did.
func (f inflight) leave(b *batch) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b.landed {
		return false
	}
	close(b.recorded)
	delete(f.up, attemptOf(b.claim))
	return true
}

// Leave returns when nothing of a run is in flight any more. Its context must
// have ended: what has not come back within Config.Grace is left behind.
func (e *Executor) Leave(ctx context.Context, key state.RunKey) error {
	mine := func(k state.RunKey) bool { return k == key }
	grace := time.NewTimer(e.cfg.Grace)
	defer grace.Stop()
	for _, b := range e.inflight.of(mine) {
		select {
		case <-b.recorded:
		case <-grace.C:
			return e.abandon(ctx, mine)
		}
	}
	return nil
}

// abandon gives back what is still being executed, and waits for what is being
// recorded already.
func (e *Executor) abandon(ctx context.Context, mine func(state.RunKey) bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	var errs []error
	for _, b := range e.inflight.of(mine) {
		if !e.inflight.leave(b) {
			<-b.recorded
			continue
		}
		e.cfg.Logger.Info("a batch did not stop in time; it is given back", "node", b.claim.Node,
			"batch", b.claim.Batch)
		err := e.cfg.Store.Release(ctx, b.claim, e.cfg.Now())
		if err != nil && !errors.Is(err, state.ErrLeaseLost) {
			errs = append(errs, fmt.Errorf("give back %s: %w", nameOf(b.claim), err))
			continue
		}
		b.run.Observe(e.event(job.BatchReleased, b.claim))
		b.run.Ended(b.claim, state.Pending)
	}
	return errors.Join(errs...)
}
