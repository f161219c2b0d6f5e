package executor_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"thalweg/internal/run/coordinator"
	"thalweg/internal/run/executor"
	"thalweg/internal/run/job"
	"thalweg/internal/store/queue/inproc"
	"thalweg/internal/store/state"
	"thalweg/internal/store/state/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeJob plans batches[node] batches for each node and calls execute for each.
type fakeJob struct {
	batches map[string]int
	planErr map[string]error
	plan    func(n state.Node) (state.Plan, error)
	execute func(ctx context.Context, c state.Claim) (job.Result, error)

	mu   sync.Mutex
	runs []state.BatchKey
}

func (j *fakeJob) Plan(_ context.Context, n state.Node) (state.Plan, error) {
	if err := j.planErr[n.Name]; err != nil {
		return state.Plan{}, err
	}
	if j.plan != nil {
		return j.plan(n)
	}
	return planOf(j.batches[n.Name]), nil
}

func planOf(batches int) state.Plan {
	p := state.Plan{Record: []byte("{}"), Batches: make([]state.BatchSpec, batches)}
	for i := range p.Batches {
		p.Batches[i] = state.BatchSpec{Batch: i, Work: []byte("{}")}
	}
	return p
}

func (j *fakeJob) Settle(context.Context, state.Node) error { return nil }

func (j *fakeJob) Execute(ctx context.Context, c state.Claim) (job.Result, error) {
	j.mu.Lock()
	j.runs = append(j.runs, c.BatchKey)
	j.mu.Unlock()
	if j.execute != nil {
		return j.execute(ctx, c)
	}
	return job.Result{}, nil
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

func newBundle(t testing.TB) bundle {
	t.Helper()
	ctx := context.Background()
	store, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	run, err := store.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: "w"}, Created: time.Now()},
		[]state.NodeSpec{
			{Name: "a", Ordinal: 0}, {Name: "b", Ordinal: 1}, {Name: "c", Ordinal: 2, Inputs: []string{"a", "b"}},
		})
	require.NoError(t, err)
	return bundle{store: store, run: run}
}

func (b bundle) batches(t testing.TB, node string) []state.Batch {
	t.Helper()
	out, err := state.All(context.Background(), b.store.Batches, state.NodeKey{RunKey: b.run, Node: node})
	require.NoError(t, err)
	return out
}

func (b bundle) attempts(t testing.TB, node string) []state.Attempt {
	t.Helper()
	out, err := state.All(context.Background(), b.store.Attempts, state.NodeKey{RunKey: b.run, Node: node})
	require.NoError(t, err)
	return out
}

func (b bundle) failure(t testing.TB) state.Failure {
	t.Helper()
	run, err := b.store.Run(context.Background(), b.run)
	require.NoError(t, err)
	require.Equal(t, state.Failed, run.Status)
	require.NotNil(t, run.Failure)
	return *run.Failure
}

func (b bundle) order(t testing.TB, kind state.CommandKind) {
	t.Helper()
	require.NoError(t, state.Direct(context.Background(), b.store, b.run,
		state.Command{Kind: kind, Token: t.Name() + string(kind), Mark: state.Mark{Time: time.Now()}}))
}

// crew is an executor and the coordinators of some runs, as one process has them.
type crew struct {
	exec executor.Config
	coor coordinator.Config

	mu   sync.Mutex
	runs map[state.RunKey]*coordinator.Coordinator
}

func (c *crew) Use(_ context.Context, key state.RunKey) (executor.Run, func(), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.runs[key]; r != nil {
		return r, func() {}, nil
	}
	return nil, nil, state.ErrNotFound
}

// work drives runs to their ends, with one job each.
func (c *crew) work(ctx context.Context, jobs map[state.RunKey]job.Job) (map[state.RunKey]state.Status, error) {
	q := inproc.New(0)
	defer func() { _ = q.Close() }()
	c.exec.Queue, c.coor.Queue, c.exec.Runs, c.runs = q, q, c, map[state.RunKey]*coordinator.Coordinator{}
	exec := executor.New(c.exec)
	working, stop := context.WithCancel(ctx)
	defer stop()
	for key, fake := range jobs {
		cfg := c.coor
		cfg.Job = fake
		c.runs[key] = coordinator.New(ctx, cfg, key)
	}
	ended := make(chan error, 1)
	go func() { ended <- exec.Work(working) }()
	var mu sync.Mutex
	out, errs := map[state.RunKey]state.Status{}, []error{}
	var all sync.WaitGroup
	for key, r := range c.runs {
		all.Go(func() {
			status, err := r.Run()
			mu.Lock()
			defer mu.Unlock()
			out[key], errs = status, append(errs, err)
		})
	}
	all.Wait()
	stop()
	return out, errors.Join(append(errs, <-ended)...)
}

// work drives the bundle's run to its end, or stops it when ctx ends.
func (b bundle) work(ctx context.Context, t testing.TB, work job.Job, change func(*crew)) (state.Status, error) {
	t.Helper()
	c := &crew{exec: executor.Config{Store: b.store, Owner: t.Name(), Slots: 3},
		coor: coordinator.Config{Store: b.store,
			Owner: t.Name(), Slots: 3}}
	if change != nil {
		change(c)
	}
	out, err := c.work(ctx, map[state.RunKey]job.Job{b.run: work})
	if out[b.run] == state.Running && err == nil {
		b.order(t, state.CommandStop)
		return state.Stopped, nil
	}
	return out[b.run], err
}
