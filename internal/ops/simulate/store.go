package simulate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"thalweg/internal/store/state"
)

// timed is the state as one process calls it: the real store behind calls that
// take as long as is measured.
type timed struct {
	state.Store
	fleet *fleet
	*fleetWorker
	lanes map[string]*lane // to partitions
}

// sleep takes the time of a call.
func (t *timed) sleep(l Latency) error {
	if t.fleet.world.isOver() ||
		!t.fleet.world.sleep(&t.process, time.Duration(float64(l.sample(t.random))*t.fleet.slow)) {
		return errOver
	}
	return nil
}

func (t *timed) read() error {
	if err := t.sleep(t.fleet.costs.State.Read); err != nil {
		return err
	}
	t.fleet.reads++
	return nil
}

// always is the condition of writes that depend on no earlier read.
func always() bool { return true }

// queued carries out a write in a store with one writer, after those before it.
func (t *timed) queued(write func() error) error {
	if t.fleet.world.isOver() {
		return errOver
	}
	took := time.Duration(float64(t.fleet.costs.State.Write.sample(t.random)) * t.fleet.slow)
	t.fleet.writes++
	t.fleet.writerFree = max(t.fleet.writerFree, t.fleet.world.now) + took
	if !t.fleet.world.sleep(&t.process, t.fleet.writerFree-t.fleet.world.now) {
		return errOver
	}
	return write()
}

func (t *timed) note(op string, key any, err error) {
	if t.fleet.trace == nil || errors.Is(err, errOver) {
		return
	}
	said := "ok"
	if err != nil {
		said = err.Error()
	}
	fmt.Fprintf(t.fleet.trace, "%.6f %s %s %v %s\n", t.fleet.world.now.Seconds(), t.name, op, key, said)
}

func nodePartition(key state.NodeKey) string { return "node " + key.Node }

const runPartition = "run"

// Run implements state.Store.
func (t *timed) Run(ctx context.Context, key state.RunKey) (state.Run, error) {
	if err := t.read(); err != nil {
		return state.Run{}, err
	}
	return t.Store.Run(ctx, key)
}

// Nodes implements state.Store: a partition for each of them, read at once.
func (t *timed) Nodes(ctx context.Context, key state.RunKey) ([]state.Node, error) {
	if err := t.read(); err != nil {
		return nil, err
	}
	t.fleet.reads += len(t.fleet.nodes) - 1
	return t.Store.Nodes(ctx, key)
}

// Node implements state.Store: its head, and what there is once of its plan.
func (t *timed) Node(ctx context.Context, key state.NodeKey) (state.Node, error) {
	if err := t.read(); err != nil {
		return state.Node{}, err
	}
	t.fleet.reads++
	return t.Store.Node(ctx, key)
}

// Acquire implements state.Store.
func (t *timed) Acquire(ctx context.Context, key state.RunKey, role, owner string, now, until time.Time) (r state.Role,
	err error) {
	err = t.change(runPartition, alone, always, func() (err error) {
		r, err = t.Store.Acquire(ctx, key, role, owner, now, until)
		return err
	})
	t.note("acquire", role, err)
	return r, err
}

// CompleteRun implements state.Store.
func (t *timed) CompleteRun(ctx context.Context, key state.RunKey, epoch int64, actor string, now time.Time) error {
	err := t.change(runPartition, alone, always,
		func() error { return t.Store.CompleteRun(ctx, key, epoch, actor, now) })
	t.note("complete", key.Run, err)
	if err == nil {
		t.fleet.done = true
	}
	return err
}

// BeginOrder implements state.Store: the only order in a simulation is that it failed.
func (t *timed) BeginOrder(_ context.Context, _ state.RunKey, o state.Order) error {
	t.fleet.done, t.fleet.failure = true, fmt.Errorf("an order to %s the run: %v", o.Kind, o.Cause)
	return errOver
}

// FlipPlan implements state.Store.
func (t *timed) FlipPlan(ctx context.Context, key state.NodeKey, f state.Flip) (standing string, err error) {
	err = t.change(nodePartition(key), alone, always, func() (err error) {
		standing, err = t.Store.FlipPlan(ctx, key, f)
		return err
	})
	t.note("plan", key.Node, err)
	if err == nil {
		t.fleet.open += f.Batches
	}
	return standing, err
}

// StagePlan implements state.Store.
func (t *timed) StagePlan(ctx context.Context, key state.NodeKey, digest string, piece state.PlanPiece) error {
	if err := t.sleep(t.fleet.costs.State.Write); err != nil {
		return err
	}
	return t.Store.StagePlan(ctx, key, digest, piece)
}

// MoveNode implements state.Store.
func (t *timed) MoveNode(ctx context.Context, key state.NodeKey, m state.Move) error {
	err := t.change(nodePartition(key), alone, always, func() error { return t.Store.MoveNode(ctx, key, m) })
	t.note("move", key.Node, err)
	return err
}

// Offers implements state.Store.
func (t *timed) Offers(ctx context.Context, key state.NodeKey, now time.Time, page state.Page) ([]state.Offer,
	int64, error) {
	if err := t.read(); err != nil {
		return nil, 0, err
	}
	return t.Store.Offers(ctx, key, now, page)
}

// Unsettled implements state.Store.
func (t *timed) Unsettled(ctx context.Context, key state.NodeKey, page state.Page) ([]state.Batch, int64, error) {
	if err := t.read(); err != nil {
		return nil, 0, err
	}
	return t.Store.Unsettled(ctx, key, page)
}

// Claim implements state.Store.
func (t *timed) Claim(ctx context.Context, b state.Bid) (c state.Claim, err error) {
	began := t.fleet.world.now
	t.fleet.works(t.fleetWorker, 1)
	err = t.change(nodePartition(b.NodeKey), beside, func() bool { return t.fleet.latest[b.BatchKey] == b.Attempt },
		func() (err error) {
			if c, err = t.Store.Claim(ctx, b); err == nil {
				t.fleet.latest[b.BatchKey] = c.Attempt
			}
			return err
		})
	t.fleet.works(t.fleetWorker, -1)
	t.note("claim", fmt.Sprint(b.Node, " ", b.Batch), err)
	took := t.fleet.world.now - began
	switch {
	case err == nil:
		t.fleet.spent[Claims] += took
		if c.Attempt == 1 {
			t.fleet.open--
		}
	case errors.Is(err, state.ErrNotClaimable):
		t.fleet.refused++
		t.fleet.spent[Refused] += took
	}
	return c, err
}

// Extend implements state.Store.
func (t *timed) Extend(ctx context.Context, c state.Claim, lease time.Time) error {
	err := t.change(nodePartition(c.NodeKey), urgent, always, func() error { return t.Store.Extend(ctx, c, lease) })
	t.note("extend", fmt.Sprint(c.Node, " ", c.Batch), err)
	return err
}

// Commit implements state.Store.
func (t *timed) Commit(ctx context.Context, c state.Claim, out state.Outcome, now time.Time) error {
	began := t.fleet.world.now
	t.fleet.works(t.fleetWorker, 1)
	err := t.change(nodePartition(c.NodeKey), beside, always, func() error { return t.Store.Commit(ctx, c, out, now) })
	t.fleet.works(t.fleetWorker, -1)
	t.note("commit", fmt.Sprint(c.Node, " ", c.Batch), err)
	if errors.Is(err, errOver) {
		return err
	}
	t.fleet.spent[Commits] += t.fleet.world.now - began
	if err == nil {
		t.fleet.spent[Work] += out.Stats.Engine
		t.fleet.spent[Transfers] += out.Stats.Read
		t.fleet.batches++
	}
	return err
}

// Retry implements state.Store: as Release and Fail it is called only when all is over.
func (t *timed) Retry(context.Context, state.Claim, state.Failure, state.Stats, time.Time, time.Time) error {
	return errOver
}

// Release implements state.Store.
func (t *timed) Release(context.Context, state.Claim, time.Time) error { return errOver }

// Fail implements state.Store.
func (t *timed) Fail(context.Context, state.Claim, state.Failure, state.Outcome, time.Time) error {
	return errOver
}
