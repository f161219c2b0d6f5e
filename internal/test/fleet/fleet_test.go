package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/cluster"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/settings"
	"thalweg/internal/io/remote"
	"thalweg/internal/store/state"
	"thalweg/internal/test/statetest"
)

// Sizes of the fleets here: batches and leases are small, so that much happens.
const (
	leaseTime   = 2 * time.Second
	memoryBytes = 512 << 20
	drainTime   = 20 * time.Second
	batchesOf   = 6 // that the largest input is cut into
	pollEvery   = 100 * time.Millisecond
	runTimeout  = 5 * time.Minute  // longer than what a fault of the ordinary tests lasts
	longTimeout = 30 * time.Minute // of scripts/chaos-cluster, beside which a machine may do anything
	workspace   = "main"
)

// workerFleet is some workers of one cluster.
type workerFleet struct {
	t      *testing.T
	dir    string
	with   services
	home   *instance.Instance // of the test
	state  state.Store        // the same one's, which waits where nodes do not answer
	client *remote.Client

	mu      sync.Mutex
	workers []*member
	counts  map[string]int
	rand    *rand.Rand
}

// member is one worker: a process, or the next one in its place.
type member struct {
	spec spec
	log  string
	net  *network // of its own; nil: the machine's
	cmd  *exec.Cmd
	done chan struct{} // closed when cmd has ended
}

// services say what the workers' configuration has below state, parts and queue.
type services struct {
	config string   // YAML
	ends   []string // addresses of the services, which a worker's network leads to
	broker string   // its address; "": none
	prefix *string  // of the broker's queues, as soon as there is a fleet
	hosts  *hosts   // that the database nodes are on; nil: this one
}

// newFleet starts workers over some services. shape may be nil.
func newFleet(t *testing.T, with services, workers int, shape func(i int, s *spec)) *workerFleet {
	t.Helper()
	f := &workerFleet{t: t, dir: t.TempDir(), with: with, client: remote.New(remote.Config{}), counts: map[string]int{},
		rand: rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 2))}
	t.Cleanup(func() { f.client.Close() })
	cfg, err := instance.LoadCluster(f.config("test", with), settings.Options{Known: nil})
	require.NoError(t, err)
	ctx := t.Context()
	require.NoError(t, cluster.Init(ctx, cfg))
	f.home, err = instance.OpenCluster(ctx, cfg, instance.ClusterOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { f.home.Close() })
	if with.prefix != nil {
		*with.prefix, err = instance.QueuePrefix(ctx, cfg)
		require.NoError(t, err)
	}
	f.state = f.home.Waiting(slog.New(slog.DiscardHandler))
	for i := range workers {
		name := fmt.Sprintf("worker%d", i)
		m := &member{spec: spec{Config: f.config(name, with), Lease: leaseTime, Cores: 1, Memory: memoryBytes},
			log: filepath.Join(f.dir, name+".log")}
		if separate() {
			m.spec.Host = name
			m.net, err = newNetwork(with.ends)
			require.NoError(t, err)
			t.Cleanup(m.net.close)
		}
		if shape != nil {
			shape(i, &m.spec)
		}
		f.workers = append(f.workers, m)
		require.NoError(t, m.start())
	}
	t.Cleanup(f.stop)
	return f
}

// config writes a cluster.yaml: the services, and scratch space of a machine's own.
func (f *workerFleet) config(name string, with services) string {
	path := filepath.Join(f.dir, name+".yaml")
	text := fmt.Sprintf("version: 1\n%sworker: {scratch: %q, drain: %s}\n", with.config,
		filepath.Join(f.dir, name), drainTime)
	require.NoError(f.t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// start starts the worker's process.
func (m *member) start() error {
	text, err := json.Marshal(m.spec)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(m.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	m.cmd = exec.Command(os.Args[0])
	m.cmd.Env = append(os.Environ(), workerSpec+"="+string(text))
	m.cmd.Stdout, m.cmd.Stderr = log, log
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if m.spec.Host != "" {
		m.cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUTS
	}
	started := make(chan error, 1)
	done := make(chan struct{})
	m.done = done
	cmd := m.cmd
	within(m.net, func() func() {
		started <- cmd.Start()
		return func() {
			if cmd.Process != nil {
				_ = cmd.Wait() // how it ends is the fault's
			}
			close(done)
		}
	})
	return <-started
}

// over reports whether the worker's process has ended.
func (m *member) over() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

// signal sends a signal to a worker, and says whether it was there.
func (f *workerFleet) signal(m *member, s syscall.Signal) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.over() {
		return false
	}
	if err := m.cmd.Process.Signal(s); err != nil {
		return false
	}
	f.counts[s.String()]++
	return true
}

// replace starts a worker again in place of one that has ended.
func (f *workerFleet) replace(m *member) error {
	<-m.done
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts["workers started again"]++
	return m.start()
}

// count adds to what is printed.
func (f *workerFleet) count(what string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[what] += n
}

// random is a number below n.
func (f *workerFleet) random(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rand.IntN(n)
}

// stop ends all workers.
func (f *workerFleet) stop() {
	for _, m := range f.workers {
		if !m.over() {
			_ = m.cmd.Process.Signal(syscall.SIGCONT)
			_ = m.cmd.Process.Kill()
			<-m.done
		}
	}
	var all []string
	for _, what := range slices.Sorted(maps.Keys(f.counts)) {
		all = append(all, fmt.Sprintf("%s %d", what, f.counts[what]))
	}
	f.t.Logf("%s", strings.Join(all, ", "))
	if f.t.Failed() {
		for _, m := range f.workers {
			text, _ := os.ReadFile(m.log)
			f.t.Logf("%s:\n%s", m.log, text[max(0, len(text)-logShown):])
		}
	}
}

const logShown = 6000

// trial is a script that a fleet runs, and the files of an undisturbed run.
type trial struct {
	sample
	dir  string
	want map[string]string
}

// newTrial makes a script's undisturbed run.
func (f *workerFleet) newTrial(ctx context.Context, s sample) (*trial, error) {
	dir, err := os.MkdirTemp(f.dir, "trial")
	if err != nil {
		return nil, err
	}
	t := &trial{sample: s, dir: dir}
	plain := s
	plain.pace = 0
	alone := filepath.Join(dir, "alone")
	if err := os.MkdirAll(alone, 0o755); err != nil {
		return nil, err
	}
	path, err := plain.write(alone, filepath.Join(alone, "out"))
	if err != nil {
		return nil, err
	}
	home, err := instance.Open(ctx, filepath.Join(alone, "state"), true)
	if err != nil {
		return nil, err
	}
	defer home.Close()
	sum, err := runner.Run(ctx, home, runner.Options{ScriptPath: path, Workspace: workspace,
		Process: runtime.Process{MemoryBytes: memoryBytes, Cores: 2, Interpreter: "python3", Remote: f.client}})
	if err != nil || sum.Status != state.Complete {
		return nil, fmt.Errorf("the undisturbed run is %s: %+v: %w", sum.Status, sum.Failure, err)
	}
	t.want, err = read(filepath.Join(alone, "out"))
	return t, err
}

func read(dir string) (map[string]string, error) {
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		out[e.Name()] = string(data)
	}
	return out, nil
}

// flight is a run that was submitted.
type flight struct {
	*trial
	key state.RunKey
	out string
}

// submit begins a run of a trial's script in the fleet.
func (f *workerFleet) submit(ctx context.Context, t *trial) (*flight, error) {
	dir, err := os.MkdirTemp(t.dir, "run")
	if err != nil {
		return nil, err
	}
	fl := &flight{trial: t, out: filepath.Join(dir, "out")}
	path, err := t.write(dir, fl.out)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(filepath.Join(dir, "sales0.csv"))
	if err != nil {
		return nil, err
	}
	fl.key, _, err = runner.Submit(ctx, f.home, runner.Options{ScriptPath: path, Workspace: workspace,
		Process: runtime.Process{MemoryBytes: memoryBytes, Cores: 2, Interpreter: "python3", Remote: f.client,
			Tune: func(b *budget.Budget) {
				b.BatchBytes, b.SmallBytes, b.BroadcastBytes = salesFiles*info.Size()/batchesOf, 0, int64(t.seed%2)<<20
			}}, Token: dir})
	f.count("runs", 1)
	return fl, err
}

// await waits until the run is over, and looks at what it has left.
func (f *workerFleet) await(ctx context.Context, fl *flight) error {
	patience := runTimeout
	if os.Getenv(chaosVariable) != "" {
		patience = longTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var run state.Run
	var err error
	for {
		// The state may be away as long as the fault lasts.
		if run, err = f.state.Run(ctx, fl.key); err == nil && run.Status.Terminal() {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("run %d of seed %d is %s and does not end: %w\n%s", fl.key.Run, fl.seed, run.Status, err,
				f.stuck(fl))
		case <-tick.C:
		}
	}
	if run.Status != state.Complete {
		return fmt.Errorf("run %d of seed %d is %s: %s", fl.key.Run, fl.seed, run.Status, f.why(ctx, fl))
	}
	got, err := read(fl.out)
	if err != nil {
		return err
	}
	for name, want := range fl.want {
		if got[name] != want {
			_ = os.WriteFile(filepath.Join(os.TempDir(), "fleet-want-"+name), []byte(want), 0o644)
			_ = os.WriteFile(filepath.Join(os.TempDir(), "fleet-got-"+name), []byte(got[name]), 0o644)
			return fmt.Errorf("run %d of seed %d: %s is not what an undisturbed run writes: both are in %s",
				fl.key.Run, fl.seed, name, os.TempDir())
		}
	}
	if len(got) != len(fl.want) {
		return fmt.Errorf("run %d of seed %d wrote %v", fl.key.Run, fl.seed, slices.Sorted(maps.Keys(got)))
	}
	return f.audit(ctx, fl)
}

// audit looks at what state has of a run.
func (f *workerFleet) audit(ctx context.Context, fl *flight) error {
	if err := statetest.Audit(ctx, f.state, fl.key); err != nil {
		return fmt.Errorf("run %d of seed %d: %w", fl.key.Run, fl.seed, err)
	}
	nodes, err := f.state.Nodes(ctx, fl.key)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		attempts, err := state.All(ctx, f.state.Attempts, n.NodeKey)
		if err != nil {
			return err
		}
		done := map[int]int{}
		for _, a := range attempts {
			switch {
			case a.Status == state.Succeeded && !a.Withdrawn:
				done[a.Batch]++
			case a.Status == state.Lost:
				f.count("claims lost", 1)
			}
			if a.Attempt > 1 {
				f.count("retries", 1)
			}
		}
		for b := range n.BatchesTotal {
			if done[b] != 1 {
				return fmt.Errorf("run %d of seed %d: batch %d of node %s was done %d times", fl.key.Run, fl.seed, b,
					n.Name, done[b])
			}
		}
		f.count("batches", n.BatchesTotal)
	}
	return nil
}

// why returns the failure of a run.
func (f *workerFleet) why(ctx context.Context, fl *flight) string {
	sum, err := runner.SummaryOf(ctx, f.home, fl.key)
	if err != nil || sum.Failure == nil {
		return fmt.Sprint(err)
	}
	return fmt.Sprintf("%+v", *sum.Failure)
}

// stuck describes a run that does not end.
func (f *workerFleet) stuck(fl *flight) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	nodes, err := f.state.Nodes(ctx, fl.key)
	text := fmt.Sprint("nodes: ", err, "\n")
	for _, n := range nodes {
		text += fmt.Sprintf("  %s %s, %d batches\n", n.Name, n.Status, n.BatchesTotal)
		if n.Status.Terminal() {
			continue
		}
		attempts, err := state.All(ctx, f.state.Attempts, n.NodeKey)
		text += fmt.Sprintf("    %v %+v\n", err, attempts[max(0, len(attempts)-3):])
	}
	for _, m := range f.workers {
		text += fmt.Sprintf("  %s over: %v\n", m.log, m.over())
	}
	return text
}

// runs keeps some runs in flight until there were so many, and time is over.
func (f *workerFleet) runs(ctx context.Context, trials []*trial, atOnce, least int, until time.Time) error {
	var mu sync.Mutex
	var hands sync.WaitGroup
	begun := 0
	var failed []error
	for range atOnce {
		hands.Go(func() {
			for {
				mu.Lock()
				over := begun >= least && time.Now().After(until) || len(failed) > 0 || ctx.Err() != nil
				mine := trials[begun%len(trials)]
				begun++
				mu.Unlock()
				if over {
					return
				}
				fl, err := f.submit(ctx, mine)
				if err == nil {
					err = f.await(ctx, fl)
				}
				if err != nil {
					mu.Lock()
					failed = append(failed, err)
					mu.Unlock()
				}
			}
		})
	}
	hands.Wait()
	return errors.Join(failed...)
}
