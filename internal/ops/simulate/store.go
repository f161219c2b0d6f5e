package simulate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"thalweg/internal/run/sheet"
	"thalweg/internal/store/state"
)

// timed is the state as one process calls it: the real store behind calls that
// take as long as is measured.
type timed struct {
	fleet *fleet
	*fleetWorker
	lanes map[string]*lane // to partitions
}

// newStore returns the state as a worker calls it.
func (f *fleet) newStore(w *fleetWorker) state.Store {
	t := &timed{fleet: f, fleetWorker: w, lanes: map[string]*lane{}}
	return state.Around(f.store, t.call)
}

// sleep takes the time of a call.
func (t *timed) sleep(l Latency) error {
	if t.fleet.world.isOver() ||
		!t.fleet.world.sleep(&t.process, time.Duration(float64(l.sample(t.random))*t.fleet.slow)) {
		return errOver
	}
	return nil
}

// read takes the time of one read, and counts so many partitions that are read at once.
func (t *timed) read(partitions int) error {
	if err := t.sleep(t.fleet.costs.State.Read); err != nil {
		return err
	}
	t.fleet.reads += partitions
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

// note traces a call that ended with err, and returns err.
func (t *timed) note(op string, key any, err error) error {
	if t.fleet.trace == nil || errors.Is(err, errOver) {
		return err
	}
	said := "ok"
	for cause := err; cause != nil; cause = errors.Unwrap(cause) {
		said = cause.Error()
	}
	fmt.Fprintf(t.fleet.trace, "%.6f %s %s %v %s\n", t.fleet.world.now.Seconds(), t.name, op, key, said)
	return err
}

func nodePartition(key state.NodeKey) string { return "node " + key.Node }

const runPartition = "run"

// call makes a call take its time.
func (t *timed) call(ctx context.Context, op state.Op, call func(context.Context) error) error {
	do := func() error { return call(ctx) }
	switch op.Method {
	case state.OpRun, state.OpOffers, state.OpUnsettled:
		return t.reading(1, do)
	case state.OpNodes:
		return t.reading(len(t.fleet.nodes), do)
	case state.OpNode: // its head, and what there is once of its plan
		return t.reading(2, do)
	case state.OpBeginCommand: // the only order in a simulation is that it failed
		o := state.Pointer[state.Command](op.Args)
		t.fleet.done, t.fleet.failure = true, fmt.Errorf("an order to %s the run: %v", o.Kind, o.Cause)
		return errOver
	case state.OpAcquire:
		return t.note("acquire", *state.Pointer[string](op.Args), t.change(runPartition, alone, always, do))
	case state.OpCompleteRun:
		err := t.change(runPartition, alone, always, do)
		t.fleet.done = t.fleet.done || err == nil
		return t.note("complete", state.Pointer[state.RunKey](op.Args).Run, err)
	case state.OpStagePlan:
		if err := t.sleep(t.fleet.costs.State.Write); err != nil {
			return err
		}
		return do()
	case state.OpAdoptPlan:
		key := state.Pointer[state.NodeKey](op.Args)
		err := t.change(nodePartition(*key), alone, always, do)
		if err == nil {
			t.fleet.open += state.Pointer[state.Adoption](op.Args).Batches
		}
		return t.note("plan", key.Node, err)
	case state.OpMoveNode:
		key := state.Pointer[state.NodeKey](op.Args)
		return t.note("move", key.Node, t.change(nodePartition(*key), alone, always, do))
	case state.OpClaim:
		return t.claim(*state.Pointer[state.ClaimRequest](op.Args), state.Pointer[state.Claim](op.Results), do)
	case state.OpExtend:
		c := state.Pointer[state.Claim](op.Args)
		return t.note("extend", batchName(c.BatchKey), t.change(nodePartition(c.NodeKey), urgent, always, do))
	case state.OpCommit:
		return t.commit(*state.Pointer[state.Claim](op.Args), state.Pointer[state.Outcome](op.Args).Stats, do)
	case state.OpRetry, state.OpRelease, state.OpFail: // only when all is over
		return errOver
	}
	return do()
}

// batchName names a batch in a trace.
func batchName(key state.BatchKey) string { return fmt.Sprint(key.Node, " ", key.Batch) }

func (t *timed) reading(partitions int, do func() error) error {
	if err := t.read(partitions); err != nil {
		return err
	}
	return do()
}

// claim makes a call that claims a batch, which c is when it is done.
func (t *timed) claim(b state.ClaimRequest, c *state.Claim, do func() error) error {
	began := t.fleet.world.now
	t.fleet.works(t.fleetWorker, 1)
	err := t.change(nodePartition(b.NodeKey), beside, func() bool { return t.fleet.latest[b.BatchKey] == b.Attempt },
		func() error {
			err := do()
			if err == nil {
				t.fleet.latest[b.BatchKey] = c.Attempt
			}
			return err
		})
	t.fleet.works(t.fleetWorker, -1)
	took := t.fleet.world.now - began
	switch {
	case err == nil:
		t.fleet.spent[sheet.Claims] += took
		if c.Attempt == 1 {
			t.fleet.open--
		}
	case errors.Is(err, state.ErrNotClaimable):
		t.fleet.refused++
		t.fleet.spent[sheet.Refused] += took
	}
	return t.note("claim", batchName(b.BatchKey), err)
}

// commit makes a call that commits a batch which measured stats.
func (t *timed) commit(c state.Claim, stats state.Stats, do func() error) error {
	began := t.fleet.world.now
	t.fleet.works(t.fleetWorker, 1)
	err := t.change(nodePartition(c.NodeKey), beside, always, do)
	t.fleet.works(t.fleetWorker, -1)
	_ = t.note("commit", batchName(c.BatchKey), err)
	if errors.Is(err, errOver) {
		return err
	}
	t.fleet.spent[sheet.Commits] += t.fleet.world.now - began
	if err == nil {
		t.fleet.spent[sheet.Work] += stats.Engine
		t.fleet.spent[sheet.Parts] += stats.Read
		t.fleet.batches++
	}
	return err
}
