package metrics_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/worker"
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/metrics"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/job"
	"thalweg/internal/run/python"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

const measuredScript = `
nodes:
  read:
    type: file_table
    r: {urls: [orders.csv], csv: {hdr_line_idx: 0, first_data_line_idx: 1}, ` +
	`columns: {id: {csv: {col_hdr: id}, col_type: int}, price: {csv: {col_hdr: price}, col_type: int}}}
    w: {name: orders, fields: {id: {expression: r.id, type: int}, price: {expression: r.price, type: int}}}
  double:
    type: table_custom_tfm_table
    custom_proc_type: py_calc
    r: orders
    p: {python_code_urls: [double.py], calculated_fields: {twice: {expression: double(r.price), type: int}}}
    w: {name: doubles, fields: {id: {expression: r.id, type: int}, twice: {expression: p.twice, type: int}}}
  write:
    type: table_file
    r: doubles
    w: {url_template: "out.csv"}
`

// hostileOnce is a state on which the first commit finds its lease lost.
type hostileOnce struct {
	state.Store
	lost atomic.Bool
}

func (s *hostileOnce) Commit(ctx context.Context, c state.Claim, out state.Outcome, now time.Time) error {
	if s.lost.CompareAndSwap(false, true) {
		return state.ErrLeaseLost
	}
	return s.Store.Commit(ctx, c, out, now)
}

// faultyOnce is an engine whose first task waits for somebody to help and fails
// for something that passes, and which leaves the others to them.
type faultyOnce struct {
	engine.Executor
	tasks atomic.Int32
	wait  func()
	leave func()
}

func (e *faultyOnce) Execute(ctx context.Context, cfg engine.InstanceConfig, pool *python.Pool,
	task engine.Task) (engine.Result, error) {
	switch e.tasks.Add(1) {
	case 1:
		e.wait()
		return engine.Result{}, &fault.Error{Kind: fault.Environment, Retryable: true, Message: "it passes"}
	default:
		e.leave()
		<-ctx.Done()
		return engine.Result{}, context.Cause(ctx)
	}
}

// Limits of the run: a lease so short that what was lost is taken again soon.
const (
	leaseOfTest  = time.Second
	memoryOfTest = 1 << 30
)

// measuredRun begins a run in a process that leaves it, and lets a worker go on
// with it to its end. look is called meanwhile.
func measuredRun(t *testing.T, m *metrics.Metrics, look func()) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("script.yaml", measuredScript)
	write("double.py", "def double(x):\n    return 2 * x\n")
	write("orders.csv", "id,price\n1,10\n2,20\n")
	open := func() *instance.Instance {
		home, err := instance.Open(t.Context(), filepath.Join(dir, "state"), true)
		require.NoError(t, err)
		home.State, home.Parts = m.State(&hostileOnce{Store: home.State}), m.Parts(home.Parts)
		return home
	}
	home, second := open(), open()
	defer func() { require.NoError(t, errors.Join(home.Close(), second.Close())) }()
	ctx, stop := context.WithCancel(t.Context())
	faulty := &faultyOnce{}
	there := make(chan struct{})
	var serving sync.WaitGroup
	var once sync.Once
	comes := func() { once.Do(func() { close(there) }) }
	seen := func(e job.Event) {
		m.Observe(e)
		look() // while it holds what it shows of its memory, however short that is
	}
	serving.Go(func() {
		err := worker.Serve(ctx, second,
			worker.WorkerOptions{Process: runtime.Process{MemoryBytes: memoryOfTest, Cores: 2,
				Lease: leaseOfTest, Observe: seen, Interpreter: "python3", Waiting: func(string) { comes() }},
				Wants:  func(state.Run) bool { return faulty.tasks.Load() > 0 },
				Joined: func(runner.Started) { comes() },
				Hinted: m.Hinted,
				Introspect: func(i worker.Introspection) {
					m.Watch(metrics.Sources{Waiting: i.Queue.Waiting, Budget: i.Budget, AtOnce: i.AtOnce})
				}})
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	defer serving.Wait()
	defer stop()
	begun, leave := context.WithCancelCause(t.Context())
	faulty.leave = func() { leave(runner.ErrLeave) }
	faulty.wait = func() {
		look()
		<-there // else the run would stop when this process leaves it
	}
	sum, err := runner.Run(begun, home, runner.Options{ScriptPath: filepath.Join(dir, "script.yaml"), Dir: dir,
		Workspace: "main", Process: runtime.Process{MemoryBytes: memoryOfTest, Cores: 2, Lease: leaseOfTest,
			Interpreter: "python3", Observe: m.Observe,
			Executor: func(inner engine.Executor) engine.Executor { faulty.Executor = inner; return faulty }}})
	require.NotZero(t, sum.Key.Run, "%v", err)
	leave(nil)
	require.Eventually(t, func() bool {
		look()
		run, err := home.State.Run(ctx, sum.Key)
		return err == nil && run.Status == state.Complete && saysEnded(m)
	}, effort.Patience, 5*time.Millisecond)
}

// saysEnded reports whether a worker has said that a run ended, which it does after the
// state has it: one that is stopped between the two never says it.
func saysEnded(m *metrics.Metrics) bool {
	families, err := m.Gather()
	return err == nil && slices.ContainsFunc(families, func(f metrics.Family) bool {
		return f.Name == "thalweg_runs_finished_total" && sumOf(f) > 0
	})
}

// sight knows which metrics have moved.
type sight struct {
	t     *testing.T
	m     *metrics.Metrics
	mu    sync.Mutex
	moved map[string]bool
}

func (s *sight) look() {
	families, err := s.m.Gather()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.t.Error(err)
	}
	for _, f := range families {
		s.moved[f.Name] = s.moved[f.Name] || moves(f)
	}
}

// clusters are the metrics of what only a cluster's worker has, and of decisions, which
// take longer than a test may.
var clusters = []string{"thalweg_requests_total", "thalweg_request_seconds", "thalweg_conditional_writes_total",
	"thalweg_part_copies_total", "thalweg_part_copies_bytes_total",
	"thalweg_slot_ends_total", "thalweg_concurrency_changes_total"}

// Every metric of the inventory moves in a real run, but those of what is not here.
func TestEveryMetricMoves(t *testing.T) {
	m := metrics.New("test")
	seen := &sight{t: t, m: m, moved: map[string]bool{}}
	measuredRun(t, m, seen.look)
	seen.look()
	for _, i := range m.Inventory() {
		require.Equal(t, !slices.Contains(clusters, i.Name), seen.moved[i.Name], i.Name)
	}
	require.NotZero(t, sumOf(family(t, m, "thalweg_leases_lost_total")))
	require.Zero(t, sumOf(family(t, m, "thalweg_batches_in_flight")))
}

// moves reports whether something was measured. That nothing waits is a figure, too.
func moves(f metrics.Family) bool {
	for _, s := range f.Samples {
		if s.Count != nil && *s.Count > 0 || s.Value != nil && (*s.Value > 0 || f.Name == "thalweg_queue_hints") {
			return true
		}
	}
	return false
}

func sumOf(f metrics.Family) (sum float64) {
	for _, s := range f.Samples {
		sum += *s.Value
	}
	return sum
}

const cassandraVariable = "THALWEG_TEST_CASSANDRA"
