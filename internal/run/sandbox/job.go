package sandbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"thalweg/internal/base/awake"
	"thalweg/internal/run/job"
	"thalweg/internal/run/sheet"
	"thalweg/internal/store/state"
)

// job is a run's content whose batches are executed by children.
type sandboxedJob struct {
	job.Job
	slots   *Slots
	opening int64
}

// Execute implements job.Job.
func (j *sandboxedJob) Execute(ctx context.Context, c state.Claim) (job.Result, error) {
	asked := time.Now()
	over := sheet.Waits(ctx)
	at, err := j.slots.take(ctx, j.slots.cfg.batches())
	over()
	if err != nil {
		return job.Result{}, err
	}
	turn := time.Since(asked)
	p := at.process
	p.batches++
	p.batch.Store(&batchHooks{computes: func() func() { return sheet.Computes(ctx) }, waits: func() func() {
		limits, slots := awake.Waits(ctx), sheet.Waits(ctx)
		return func() { limits(); slots() }
	}})
	p.output.begin()
	x := &execution{slots: j.slots, at: at, process: p, claim: c}
	out, err := talk[executeAnswer](ctx, x, "executing "+nameOf(c), "execute", executeArgs{Opening: j.opening, Claim: c,
		Threads: job.ThreadsOf(ctx)})
	out.Outcome.Stats.Turn += turn
	sheet.Collected(ctx, out.Collector-p.collector)
	p.collector = max(p.collector, out.Collector)
	x.out = out.Outcome
	if out.HeldBytes > p.first+heldMax {
		p.batches = batchesMax
	}
	res := job.Result{Outcome: out.Outcome, Publications: out.Publications}
	if out.Discard {
		res.Discard = x.discard
	}
	if out.Publish && err == nil {
		res.Publish, res.Discard = x.publish, x.discard
		return res, nil // the child is kept until one of them was called
	}
	x.leave()
	return res, err
}

// execution is a batch that a child has executed. The child holds what can be
// published until it was, or was discarded.
type execution struct {
	slots   *Slots
	at      *place
	process *process
	claim   state.Claim
	out     state.Outcome
	hint    string // for its failure if the child dies; "": that of batches

	mu        sync.Mutex
	left      bool // the child is others'
	published bool
}

// talk asks the child something about an execution. A child that does not
// answer in time once ctx has ended is killed.
func talk[A any](ctx context.Context, x *execution, doing, method string, args any) (A, error) {
	type answer struct {
		out A
		err error
	}
	p := x.process
	done := make(chan answer, 1)
	p.work.Go(func() {
		out, err := ask[A](ctx, p.peer, method, args)
		done <- answer{out, err}
	})
	var got answer
	select {
	case got = <-done:
	case <-ctx.Done():
		grace := time.NewTimer(x.slots.cfg.Grace)
		defer grace.Stop()
		select {
		case got = <-done:
		case <-grace.C:
			p.kill(fmt.Sprintf("it did not stop within %s of being told to", x.slots.cfg.Grace))
			got = <-done
		}
	}
	if !errors.Is(got.err, errGone) {
		return got.out, got.err
	}
	p.guard.Kill() // it may live without being heard
	p.await()
	if ctx.Err() != nil {
		return got.out, canceled(ctx, doing)
	}
	return got.out, p.death(doing, x.hint)
}

// publish is Result.Publish.
func (x *execution) publish(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.published {
		return nil
	}
	if _, err := talk[any](ctx, x, "publishing "+nameOf(x.claim), "publish", x.claim.BatchKey); err != nil {
		return err
	}
	x.published = true
	x.giveBack()
	return nil
}

// discard is Result.Discard: by the child if it still has the result, and else
// here. What a dead child has announced and not published is left to the next
// attempt, as that of a dead worker is.
func (x *execution) discard() {
	x.mu.Lock()
	defer x.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), discardTimeout)
	defer cancel()
	if !x.left && !x.process.gone() {
		_, err := talk[any](ctx, x, "discarding "+nameOf(x.claim), "discard", x.claim.BatchKey)
		x.giveBack()
		if err == nil {
			return
		}
	}
	x.giveBack()
	logger := x.slots.cfg.Logger
	for _, part := range x.out.Parts {
		if err := x.slots.cfg.Parts.Delete(ctx, part.Key); err != nil {
			logger.Warn("a dropped attempt's part stays until gc", "part", part.Key, "error", err)
		}
	}
	if x.published {
		if err := x.slots.cfg.State.Forget(ctx, x.claim.BatchKey, x.claim.Attempt); err != nil {
			logger.Warn("what a dropped attempt has announced is not forgotten yet", "node", x.claim.Node, "batch",
				x.claim.Batch, "error", err)
		}
	}
}

// leave gives the child back when nothing more is wanted of it.
func (x *execution) leave() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.giveBack()
}

// giveBack gives the child to the next batch; mu is held.
func (x *execution) giveBack() {
	if x.left {
		return
	}
	x.left = true
	if !x.process.gone() {
		x.process.peer.tell("settled", x.claim.BatchKey)
	}
	x.slots.giveBack(x.at)
}

func nameOf(c state.Claim) string { return fmt.Sprintf("batch %d of node %s", c.Batch, c.Node) }
