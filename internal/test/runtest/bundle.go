package runtest

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/run/coordinator"
	"thalweg/internal/run/executor"
	"thalweg/internal/run/job"
	"thalweg/internal/store/queue/inproc"
	"thalweg/internal/store/state"
	"thalweg/internal/store/state/sqlite"
)

// Job plans Batches[node] batches for each node and calls Executes for each, which may be nil. PlanErr has the nodes
// that cannot be planned. Plans, if it is not nil, plans instead of Batches.
type Job struct {
	Batches  map[string]int
	PlanErr  map[string]error
	Plans    func(n state.Node) (state.Plan, error)
	Executes func(ctx context.Context, c state.Claim) (job.Result, error)

	mu   sync.Mutex
	runs []state.BatchKey
}

// Plan implements job.Job.
func (j *Job) Plan(_ context.Context, n state.Node) (state.Plan, error) {
	if err := j.PlanErr[n.Name]; err != nil {
		return state.Plan{}, err
	}
	if j.Plans != nil {
		return j.Plans(n)
	}
	return Plan(j.Batches[n.Name]), nil
}

// Plan is a plan of so many batches in one phase.
func Plan(batches int) state.Plan {
	p := state.Plan{Record: []byte("{}"), Batches: make([]state.BatchSpec, batches)}
	for i := range p.Batches {
		p.Batches[i] = state.BatchSpec{Batch: i, Work: []byte("{}")}
	}
	return p
}

// Settle implements job.Job: everything is well.
func (j *Job) Settle(context.Context, state.Node) error { return nil }

// Execute implements job.Job.
func (j *Job) Execute(ctx context.Context, c state.Claim) (job.Result, error) {
	j.mu.Lock()
	j.runs = append(j.runs, c.BatchKey)
	j.mu.Unlock()
	if j.Executes != nil {
		return j.Executes(ctx, c)
	}
	return job.Result{}, nil
}

// Executed counts the executions that have begun of a node's batches.
func (j *Job) Executed(node string) int {
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

// Begun lists the executions in the order in which they began.
func (j *Job) Begun() []state.BatchKey {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.runs)
}

// Bundle is a store with one run of three nodes: a and b, and c which reads both.
type Bundle struct {
	Store *sqlite.Store
	Run   state.RunKey
}

// New makes a bundle, whose store is closed when the test ends.
func New(t testing.TB) Bundle {
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
	return Bundle{Store: store, Run: run}
}

// Batches lists the batches of a node.
func (b Bundle) Batches(t testing.TB, node string) []state.Batch {
	t.Helper()
	out, err := state.All(context.Background(), b.Store.Batches, state.NodeKey{RunKey: b.Run, Node: node})
	require.NoError(t, err)
	return out
}

// Attempts lists the attempts of a node.
func (b Bundle) Attempts(t testing.TB, node string) []state.Attempt {
	t.Helper()
	out, err := state.All(context.Background(), b.Store.Attempts, state.NodeKey{RunKey: b.Run, Node: node})
	require.NoError(t, err)
	return out
}

// Failure is why the run has failed.
func (b Bundle) Failure(t testing.TB) state.Failure {
	t.Helper()
	run, err := b.Store.Run(context.Background(), b.Run)
	require.NoError(t, err)
	require.Equal(t, state.Failed, run.Status)
	require.NotNil(t, run.Failure)
	return *run.Failure
}

// Order gives the run an order.
func (b Bundle) Order(t testing.TB, kind state.CommandKind) {
	t.Helper()
	require.NoError(t, state.Direct(context.Background(), b.Store, b.Run,
		state.Command{Kind: kind, Token: t.Name() + string(kind), Mark: state.Mark{Time: time.Now()}}))
}

// Worker is an executor and the coordinators of some runs, as a process with a queue of its own has them.
type Worker struct {
	Exec executor.Config
	Coor coordinator.Config

	mu   sync.Mutex
	runs map[state.RunKey]*coordinator.Coordinator
}

// Use implements executor.Runs.
func (c *Worker) Use(_ context.Context, key state.RunKey) (executor.Run, func(), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.runs[key]; r != nil {
		return r, func() {}, nil
	}
	return nil, nil, state.ErrNotFound
}

// Work drives runs to their ends, with one job each.
func (c *Worker) Work(ctx context.Context, jobs map[state.RunKey]job.Job) (map[state.RunKey]state.Status, error) {
	q := inproc.New(0)
	defer func() { _ = q.Close() }()
	c.Exec.Queue, c.Coor.Queue, c.Exec.Runs, c.runs = q, q, c, map[state.RunKey]*coordinator.Coordinator{}
	exec := executor.New(c.Exec)
	working, stop := context.WithCancel(ctx)
	defer stop()
	for key, fake := range jobs {
		cfg := c.Coor
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

// Work drives the bundle's run to its end, or stops it when ctx ends. change, which may be nil, sets what is to be
// otherwise than usual.
func (b Bundle) Work(ctx context.Context, t testing.TB, work job.Job, change func(*Worker)) (state.Status, error) {
	t.Helper()
	c := &Worker{Exec: executor.Config{Store: b.Store, Owner: t.Name(), Slots: 3},
		Coor: coordinator.Config{Store: b.Store,
			Owner: t.Name(), Slots: 3}}
	if change != nil {
		change(c)
	}
	out, err := c.Work(ctx, map[state.RunKey]job.Job{b.Run: work})
	if out[b.Run] == state.Running && err == nil {
		b.Order(t, state.CommandStop)
		return state.Stopped, nil
	}
	return out[b.Run], err
}
