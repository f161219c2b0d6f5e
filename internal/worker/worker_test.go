package worker_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"thalweg/internal/fault"
	"thalweg/internal/queue/inproc"
	"thalweg/internal/state"
	"thalweg/internal/state/sqlite"
	"thalweg/internal/worker"
)

// patience bounds what a run may take; only one that does not end reaches it.
const patience = 5 * time.Minute

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeJob plans batches[node] batches for each node and calls execute for each.
type fakeJob struct {
	batches map[string]int
	planErr map[string]error
	execute func(ctx context.Context, c state.Claim) (worker.Result, error)

	mu   sync.Mutex
	runs []state.BatchKey
}

func (j *fakeJob) Plan(_ context.Context, n state.Node) (state.Plan, error) {
	if err := j.planErr[n.Name]; err != nil {
		return state.Plan{}, err
	}
	specs := make([]state.BatchSpec, j.batches[n.Name])
	for i := range specs {
		specs[i] = state.BatchSpec{Batch: i, Work: []byte("{}")}
	}
	return state.Plan{Record: []byte("{}"), Batches: specs}, nil
}

func (j *fakeJob) Execute(ctx context.Context, c state.Claim) (worker.Result, error) {
	j.mu.Lock()
	j.runs = append(j.runs, c.BatchKey)
	j.mu.Unlock()
	if j.execute != nil {
		return j.execute(ctx, c)
	}
	return worker.Result{}, nil
}

func (j *fakeJob) executed(node string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := 0
	for _, k := range j.runs {
		if k.Node == node {
			n++
		}
	}
	return n
}

// bundle is a store with one run of three nodes: a and b, and c which reads both.
type bundle struct {
	store *sqlite.Store
	run   state.RunKey
}

func newBundle(t *testing.T) bundle {
	t.Helper()
	ctx := context.Background()
	store, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	run, err := store.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: "w"}, Created: time.Now()}, []state.NodeSpec{
		{Name: "a", Ordinal: 0}, {Name: "b", Ordinal: 1}, {Name: "c", Ordinal: 2, Inputs: []string{"a", "b"}},
	})
	require.NoError(t, err)
	return bundle{store: store, run: run}
}

func (b bundle) worker(t *testing.T, job worker.Job, change func(*worker.Config)) *worker.Worker {
	t.Helper()
	q := inproc.New(0)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	cfg := worker.Config{Store: b.store, Queue: q, Job: job, Owner: t.Name(), Slots: 3}
	if change != nil {
		change(&cfg)
	}
	return worker.New(cfg, b.run)
}

func TestRunsNodesInOrderAndCompletes(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	job := &fakeJob{batches: map[string]int{"a": 5, "b": 1, "c": 3}}
	job.execute = func(ctx context.Context, c state.Claim) (worker.Result, error) {
		if c.Node == "c" && (job.executed("a") < 5 || job.executed("b") < 1) {
			return worker.Result{}, errors.New("c began before its inputs were complete")
		}
		return worker.Result{Outcome: state.Outcome{Stats: state.Stats{RowsOut: 2}}}, nil
	}
	var finished []worker.EventKind
	status, err := b.worker(t, job, func(c *worker.Config) {
		c.Observe = func(e worker.Event) {
			if e.Kind == worker.RunFinished {
				finished = append(finished, e.Kind)
			}
		}
	}).Run(context.Background())
	require.NoError(t, err)
	require.Equal(t, state.Complete, status)
	require.Len(t, finished, 1)
	nodes, err := b.store.Nodes(context.Background(), b.run)
	require.NoError(t, err)
	for _, n := range nodes {
		require.Equal(t, state.Succeeded, n.Status, n.Name)
	}
	require.EqualValues(t, 10, nodes[0].RowsOut)
}

func TestNodeWithoutBatchesSucceeds(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	status, err := b.worker(t, &fakeJob{batches: map[string]int{"b": 1, "c": 1}}, nil).Run(context.Background())
	require.NoError(t, err)
	require.Equal(t, state.Complete, status)
}

func TestFailedBatchFailsTheRunAndGivesTheOthersBack(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	inFlight := make(chan struct{})
	job := &fakeJob{batches: map[string]int{"a": 1, "b": 1, "c": 1}}
	job.execute = func(ctx context.Context, c state.Claim) (worker.Result, error) {
		if c.Node == "a" { // waits for b's failure to cancel it
			close(inFlight)
			<-ctx.Done()
			return worker.Result{}, ctx.Err()
		}
		<-inFlight
		return worker.Result{}, &fault.Error{Kind: fault.UserData, Message: "bad row", Place: fault.Place{File: "in.csv", Line: 7}}
	}
	status, err := b.worker(t, job, nil).Run(context.Background())
	require.NoError(t, err)
	require.Equal(t, state.Failed, status)
	run, err := b.store.Run(context.Background(), b.run)
	require.NoError(t, err)
	require.Equal(t, "bad row", run.Failure.Message)
	require.EqualValues(t, 7, run.Failure.Place.Line)
	require.Zero(t, job.executed("c"))

	// The cause is gone: a resumed run does only what is left.
	require.NoError(t, state.Direct(context.Background(), b.store, b.run, state.Order{Kind: state.OrderReopen, Token: t.Name(), Mark: state.Mark{Time: time.Now()}}))
	again := &fakeJob{batches: job.batches}
	status, err = b.worker(t, again, nil).Run(context.Background())
	require.NoError(t, err)
	require.Equal(t, state.Complete, status)
}

func TestFailedPlanFailsTheRun(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	job := &fakeJob{batches: map[string]int{"a": 1, "b": 1}, planErr: map[string]error{"c": fault.New(fault.Environment, "no such file")}}
	status, err := b.worker(t, job, nil).Run(context.Background())
	require.NoError(t, err)
	require.Equal(t, state.Failed, status)
	run, err := b.store.Run(context.Background(), b.run)
	require.NoError(t, err)
	require.Equal(t, "no such file", run.Failure.Message)
	require.Equal(t, "c", run.Failure.Node)
}

// The nodes behind the failed one in the list could be planned, but for the
// run being over.
func TestFailedPlanEndsTheRunAlthoughOtherNodesAreDue(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	b := newBundle(t)
	job := &fakeJob{batches: map[string]int{"b": 1, "c": 1}, planErr: map[string]error{"a": fault.New(fault.Environment, "no such file")}}
	status, err := b.worker(t, job, nil).Run(ctx)
	require.NoError(t, err)
	require.Equal(t, state.Failed, status)
	run, err := b.store.Run(context.Background(), b.run)
	require.NoError(t, err)
	require.Equal(t, "no such file", run.Failure.Message)
	require.Equal(t, "a", run.Failure.Node)
	require.Zero(t, job.executed("b"))
	require.NoError(t, ctx.Err(), "the run has to end by itself")
}

func TestShutdownGivesBatchesBackWithoutUsingUpAnAttempt(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	ctx, cancel := context.WithCancel(context.Background())
	job := &fakeJob{batches: map[string]int{"a": 2, "b": 1, "c": 1}}
	job.execute = func(ctx context.Context, c state.Claim) (worker.Result, error) {
		cancel()
		<-ctx.Done()
		return worker.Result{}, &fault.Error{Kind: fault.Canceled, Message: "interrupted"}
	}
	status, err := b.worker(t, job, nil).Run(ctx)
	require.NoError(t, err)
	require.Equal(t, state.Stopped, status)
	batches, err := state.All(context.Background(), b.store.Batches, state.NodeKey{RunKey: b.run, Node: "a"})
	require.NoError(t, err)
	for _, batch := range batches {
		require.Equal(t, state.Pending, batch.Status)
	}
	attempts, err := state.All(context.Background(), b.store.Attempts, state.NodeKey{RunKey: b.run, Node: "a"})
	require.NoError(t, err)
	for _, a := range attempts {
		require.Equal(t, state.Released, a.Status)
	}
}

// beating is a store with a clock in which time passes with heartbeats only:
// with each that the store has accepted, nearly a lease.
type beating struct {
	state.Store
	lease time.Duration

	mu    sync.Mutex
	at    time.Time
	beats chan time.Time
}

func (s *beating) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

func (s *beating) Extend(ctx context.Context, c state.Claim, until time.Time) error {
	if err := s.Store.Extend(ctx, c, until); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = s.at.Add(s.lease * 9 / 10)
	s.beats <- s.at
	return nil
}

func TestAnExecutionThatDoesNotEndIsLeftBehind(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	deaf, dropped, published := make(chan struct{}), make(chan struct{}), false
	job := &fakeJob{batches: map[string]int{"a": 1, "b": 1, "c": 1}}
	job.execute = func(_ context.Context, c state.Claim) (worker.Result, error) {
		cancel()
		<-deaf
		return worker.Result{Publish: func(context.Context) error { published = true; return nil }, Discard: func() { close(dropped) }}, nil
	}
	// The worker's end is awaited here, not the execution's.
	status, err := b.worker(t, job, func(c *worker.Config) { c.Grace, c.Slots = time.Millisecond, 1 }).Run(ctx)
	require.NoError(t, err)
	require.Equal(t, state.Stopped, status)
	key := state.BatchKey{NodeKey: state.NodeKey{RunKey: b.run, Node: "a"}}
	batches, err := state.All(context.Background(), b.store.Batches, key.NodeKey)
	require.NoError(t, err)
	require.Equal(t, state.Pending, batches[0].Status)
	attempts, err := state.All(context.Background(), b.store.Attempts, key.NodeKey)
	require.NoError(t, err)
	require.Equal(t, state.Released, attempts[0].Status, "no attempt is used up")
	// What comes back at last finds its claim gone.
	close(deaf)
	<-dropped
	batches, err = state.All(context.Background(), b.store.Batches, key.NodeKey)
	require.NoError(t, err)
	require.Equal(t, state.Pending, batches[0].Status)
	require.False(t, published)
}

// A run that has failed does not wait for a batch in another slot for longer
// than one that was interrupted.
func TestAFailedRunLeavesBehindWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	inFlight, deaf, dropped, published := make(chan struct{}), make(chan struct{}), make(chan struct{}), false
	job := &fakeJob{batches: map[string]int{"a": 1, "b": 1, "c": 1}}
	job.execute = func(_ context.Context, c state.Claim) (worker.Result, error) {
		if c.Node == "a" {
			close(inFlight)
			<-deaf
			return worker.Result{Publish: func(context.Context) error { published = true; return nil }, Discard: func() { close(dropped) }}, nil
		}
		<-inFlight
		return worker.Result{}, &fault.Error{Kind: fault.UserData, Message: "bad row"}
	}
	// The run's end is awaited here, not the execution's.
	status, err := b.worker(t, job, func(c *worker.Config) { c.Grace = time.Millisecond }).Run(context.Background())
	require.NoError(t, err)
	require.Equal(t, state.Failed, status)
	run, err := b.store.Run(context.Background(), b.run)
	require.NoError(t, err)
	require.Equal(t, "bad row", run.Failure.Message)
	// A resumed run may begin before it comes back: it finds its claim gone.
	require.NoError(t, state.Direct(context.Background(), b.store, b.run, state.Order{Kind: state.OrderReopen, Token: t.Name(), Mark: state.Mark{Time: time.Now()}}))
	close(deaf)
	<-dropped
	require.False(t, published)
	batches, err := state.All(context.Background(), b.store.Batches, state.NodeKey{RunKey: b.run, Node: "a"})
	require.NoError(t, err)
	require.Equal(t, state.Pending, batches[0].Status)
	status, err = b.worker(t, &fakeJob{batches: job.batches}, nil).Run(context.Background())
	require.NoError(t, err)
	require.Equal(t, state.Complete, status)
}

func TestHeartbeatKeepsALongBatch(t *testing.T) {
	t.Parallel()
	const lease = 150 * time.Millisecond
	b := newBundle(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	store := &beating{Store: b.store, lease: lease, at: time.Now(), beats: make(chan time.Time, 1<<16)}
	job := &fakeJob{batches: map[string]int{"a": 1, "b": 1, "c": 1}}
	job.execute = func(ctx context.Context, c state.Claim) (worker.Result, error) {
		if c.Node != "a" {
			return worker.Result{}, nil
		}
		// Until three leases have passed: without heartbeats somebody would
		// have taken the batch over.
		claimed := store.now()
		for {
			select {
			case <-ctx.Done():
				return worker.Result{}, ctx.Err()
			case now := <-store.beats:
				if now.After(claimed.Add(3 * lease)) {
					return worker.Result{}, nil
				}
			}
		}
	}
	status, err := b.worker(t, job, func(c *worker.Config) { c.Lease, c.Store, c.Now = lease, store, store.now }).Run(ctx)
	require.NoError(t, err)
	require.Equal(t, state.Complete, status)
	require.Equal(t, 1, job.executed("a"))
}

func TestLostLeaseNeverPublishes(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	ctx := context.Background()
	published := false
	job := &fakeJob{batches: map[string]int{"a": 1, "b": 1, "c": 1}}
	job.execute = func(_ context.Context, c state.Claim) (worker.Result, error) {
		if c.Node != "a" || c.Attempt > 1 {
			return worker.Result{}, nil
		}
		// Another worker takes the batch over behind this one's back.
		if _, err := b.store.Claim(ctx, state.Bid{Offer: state.Offer{BatchKey: c.BatchKey, Epoch: c.Epoch, Attempt: c.Attempt}, Owner: "thief", Now: time.Now().Add(time.Hour), Lease: time.Now().Add(time.Hour)}); err != nil {
			return worker.Result{}, err
		}
		return worker.Result{Publish: func(context.Context) error { published = true; return nil }}, nil
	}
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	w := b.worker(t, job, func(c *worker.Config) {
		c.Observe = func(e worker.Event) {
			if e.Kind == worker.NodeFinished && e.Node == "b" {
				cancel() // the thief never finishes
			}
		}
	})
	status, err := w.Run(stop)
	require.NoError(t, err)
	require.Equal(t, state.Stopped, status)
	require.False(t, published)
}

// lostAnswer is a store whose first commits take effect and then fail.
type lostAnswer struct {
	*sqlite.Store
	left int
}

func (s *lostAnswer) Commit(ctx context.Context, c state.Claim, out state.Outcome, now time.Time) error {
	if err := s.Store.Commit(ctx, c, out, now); err != nil {
		return err
	}
	if s.left > 0 {
		s.left--
		return errors.New("the connection broke")
	}
	return nil
}

func TestLostAnswerOfACommitDiscardsNothing(t *testing.T) {
	t.Parallel()
	for _, answers := range []int{1, 3} { // repeated with success; given up
		b := newBundle(t)
		discarded := false
		job := &fakeJob{batches: map[string]int{"a": 1, "b": 1, "c": 1}}
		job.execute = func(_ context.Context, c state.Claim) (worker.Result, error) {
			part := state.Part{Key: c.Node + ".parquet", Batch: c.Batch, Rows: 1}
			return worker.Result{Outcome: state.Outcome{Parts: []state.Part{part}}, Discard: func() { discarded = true }}, nil
		}
		status, err := b.worker(t, job, func(c *worker.Config) {
			c.Store = &lostAnswer{Store: b.store, left: answers}
			c.Slots = 1
		}).Run(context.Background())
		require.NoError(t, err)
		require.Equal(t, state.Complete, status)
		require.False(t, discarded, "the manifest lists the parts")
	}
}

func TestWhatAFailureLeavesIsPublishedWithIt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err       error
		published bool
	}{
		"a failure":       {fault.New(fault.UserData, "bad row"), true},
		"an interruption": {&fault.Error{Kind: fault.Canceled, Message: "interrupted"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var discarded atomic.Bool
			job := &fakeJob{batches: map[string]int{"a": 1}}
			job.execute = func(_ context.Context, c state.Claim) (worker.Result, error) {
				cancelIf(cancel, !tc.published)
				return worker.Result{
					Outcome: state.Outcome{Parts: []state.Part{{Key: "rows", Side: state.SideFailed}}, Checks: []state.CheckResult{{Name: "c"}}},
					Discard: func() { discarded.Store(true) },
				}, tc.err
			}
			_, err := b.worker(t, job, nil).Run(ctx)
			require.NoError(t, err)
			parts, err := state.SideParts(context.Background(), b.store, state.NodeKey{RunKey: b.run, Node: "a"})
			require.NoError(t, err)
			checks, err := state.OfNodes(context.Background(), b.store, b.run, b.store.Checks)
			require.NoError(t, err)
			require.Equal(t, tc.published, len(parts) == 1)
			require.Equal(t, tc.published, len(checks) == 1)
			require.Equal(t, !tc.published, discarded.Load())
		})
	}
}

func cancelIf(cancel context.CancelFunc, yes bool) {
	if yes {
		cancel()
	}
}

// A result that could not be published leaves nothing, not even beside it.
func TestFailedPublishLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	discarded := false
	job := &fakeJob{batches: map[string]int{"a": 1}}
	job.execute = func(context.Context, state.Claim) (worker.Result, error) {
		return worker.Result{
			Outcome: state.Outcome{Parts: []state.Part{{Key: "table"}, {Key: "rows", Side: state.SideFailed, Seq: 1}}},
			Publish: func(context.Context) error { return fault.New(fault.Environment, "no rename") },
			Discard: func() { discarded = true },
		}, nil
	}
	status, err := b.worker(t, job, nil).Run(context.Background())
	require.NoError(t, err)
	require.Equal(t, state.Failed, status)
	require.True(t, discarded)
	parts, err := state.SideParts(context.Background(), b.store, state.NodeKey{RunKey: b.run, Node: "a"})
	require.NoError(t, err)
	require.Empty(t, parts)
}
