package benches

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/ops/load"
	"thalweg/internal/store/state"
)

// Of the runs whose batches are claimed.
const (
	batchesDefault = 10_000
	batchesMax     = 1_000_000
	stateLease     = time.Minute
	stateWorkspace = "bench"
	stateNode      = "n"
)

// stateTarget is the state of a place: a write claims a batch and commits it, and a read reads the batch that was
// written under a key.
type stateTarget struct {
	*place
	batches int
	owner   string
	written sync.Map // batches by key

	mu    sync.Mutex
	run   state.RunKey    // whose batches are claimed
	next  int             // batch of it
	later chan made       // the run behind it, which is being made
	life  context.Context // of the making of runs
	end   context.CancelFunc
}

// made is a run, or why there is none.
type made struct {
	run state.RunKey
	err error
}

// openState makes a place for runs.
func openState(ctx context.Context, o TargetOptions) (*stateTarget, error) {
	batches := cmp.Or(o.Batches, batchesDefault)
	if batches < 1 || batches > batchesMax {
		return nil, fault.New(fault.Script, "a run has 1 to %d batches, not %d", batchesMax, batches)
	}
	p, err := openPlace(ctx, o, "state_rows")
	if err != nil {
		return nil, err
	}
	t := &stateTarget{place: p, batches: batches, owner: "bench-" + rand.Text()[:8], later: make(chan made, 1)}
	if t.run, err = t.makeRun(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	t.life, t.end = context.WithCancel(context.WithoutCancel(ctx))
	t.prepare()
	return t, nil
}

// prepare makes the run that comes next, so that no operation waits for it.
func (t *stateTarget) prepare() {
	go func() {
		run, err := t.makeRun(t.life)
		t.later <- made{run, err}
	}()
}

// Close implements load.Target.
func (t *stateTarget) Close() error {
	t.end()
	<-t.later // the run that is being made
	return t.place.Close()
}

// makeRun makes a run of batches that can be claimed.
func (t *stateTarget) makeRun(ctx context.Context) (state.RunKey, error) {
	run, err := t.State.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: stateWorkspace}, Script: "bench"},
		[]state.NodeSpec{{Name: stateNode, Table: stateNode}})
	if err != nil {
		return run, fmt.Errorf("make a run: %w", err)
	}
	p := state.Plan{Record: []byte("{}"), Batches: make([]state.BatchSpec, t.batches)}
	for i := range p.Batches {
		p.Batches[i] = state.BatchSpec{Batch: i, Class: "load", Work: workOf(i)}
	}
	_, err = state.PlanNode(ctx, t.State, state.NodeKey{RunKey: run, Node: stateNode}, 0, p, t.owner, t.Clock.Now())
	if err != nil {
		return run, fmt.Errorf("plan a run: %w", err)
	}
	return run, nil
}

// workOf describes a batch as a planner does.
func workOf(batch int) []byte {
	return fmt.Appendf(nil, `{"file":"in.csv","from":%d,"to":%d}`, batch, batch+1)
}

// take gives the next batch that nobody has claimed.
func (t *stateTarget) take(ctx context.Context) (state.BatchKey, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next == t.batches {
		select {
		case m := <-t.later:
			t.prepare()
			if m.err != nil {
				return state.BatchKey{}, m.err
			}
			t.run, t.next = m.run, 0
		case <-ctx.Done():
			return state.BatchKey{}, ctx.Err()
		}
	}
	t.next++
	return state.BatchKey{NodeKey: state.NodeKey{RunKey: t.run, Node: stateNode}, Batch: t.next - 1}, nil
}

// Client implements load.Target.
func (t *stateTarget) Client(context.Context, int) (load.Client, error) { return stateClient{t}, nil }

// stateClient claims and commits, batches that come together at once.
type stateClient struct{ t *stateTarget }

// Close implements load.Client.
func (stateClient) Close() error { return nil }

// Do implements load.Client.
func (c stateClient) Do(ctx context.Context, ops []load.Op, errs []error) {
	together(ops, errs, func(op load.Op) error {
		if op.Kind == load.Write {
			return c.t.commit(ctx, op.Key)
		}
		return c.t.read(ctx, op.Key)
	})
}

// commit claims a batch and commits it with a part, as a worker does.
func (t *stateTarget) commit(ctx context.Context, key uint64) error {
	batch, err := t.take(ctx)
	if err != nil {
		return err
	}
	now := t.Clock.Now()
	claim, err := t.State.Claim(ctx, state.ClaimRequest{Offer: state.Offer{BatchKey: batch, Class: "load"},
		Owner: t.owner, Token: t.owner + "-" + strconv.FormatInt(batch.Run, 10) + "-" + strconv.Itoa(batch.Batch),
		Now: now, Lease: now.Add(stateLease)})
	if err != nil {
		return fmt.Errorf("claim a batch: %w", err)
	}
	part := state.Part{Key: fmt.Sprintf("%s/%05d/00-n/b%05d-a1-0000.parquet", stateWorkspace, batch.Run, batch.Batch),
		Batch: batch.Batch, Bucket: -1, Rows: 10, Bytes: 1000, RawBytes: 2000, Schema: "id:int,status:string",
		Checksum: "crc32c:00000000"}
	err = t.State.Commit(ctx, claim, state.Outcome{Parts: []state.Part{part},
		Stats: state.Stats{RowsIn: 10, RowsOut: 10, Engine: time.Millisecond}}, t.Clock.Now())
	if err != nil {
		return fmt.Errorf("commit a batch: %w", err)
	}
	t.written.Store(key, batch)
	return nil
}

// read reads the batch that was written under a key.
func (t *stateTarget) read(ctx context.Context, key uint64) error {
	of, ok := t.written.Load(key)
	if !ok {
		return load.ErrMissing
	}
	want := of.(state.BatchKey)
	got, _, err := t.State.Batch(ctx, want)
	switch {
	case errors.Is(err, state.ErrNotFound):
		return load.ErrMissing
	case err != nil:
		return fmt.Errorf("read a batch: %w", err)
	case got.BatchKey != want || got.Status != state.Succeeded || !bytes.Equal(got.Work, workOf(want.Batch)):
		return load.ErrWrong
	}
	return nil
}
