package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/worker"
	"thalweg/internal/base/keeper"
	"thalweg/internal/io/remote"
	"thalweg/internal/run/job"
	"thalweg/internal/run/sandbox"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// slotOf marks the processes of one test's slots.
const slotOf = "THALWEG_TEST_SLOT_OF"

// serveSlot makes the test binary a worker's slot.
func serveSlot() int {
	conn, err := sandbox.Inherited()
	if err == nil {
		err = worker.ServeSlot(conn, func(client json.RawMessage, p sandbox.Parent) (*remote.Client, error) {
			var cfg remote.Config
			err := json.Unmarshal(client, &cfg)
			cfg.Logger = p.Logger
			return remote.New(cfg), err
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// isolated is one run that a worker with slots of their own works on.
type isolated struct {
	t      *testing.T
	dir    string
	mark   string
	tries  int
	events struct {
		sync.Mutex
		all []job.Event
	}
}

func newIsolated(t *testing.T) *isolated {
	t.Helper()
	return &isolated{t: t, dir: crashInputs(t), mark: strconv.FormatInt(rand.Int64(), 36), tries: 50}
}

// run begins a run and works on it until it is over.
func (r *isolated) run() state.Status {
	r.t.Helper()
	home, err := instance.Open(r.t.Context(), filepath.Join(r.dir, instance.DefaultDir), true)
	require.NoError(r.t, err)
	defer func() { require.NoError(r.t, home.Close()) }()
	_, err = runner.Begin(r.t.Context(), home, runner.Options{ScriptPath: filepath.Join(r.dir, "script.yaml"),
		Dir: r.dir, Workspace: "main", Process: runtime.Process{MemoryBytes: victimBytes, Interpreter: "python3"}})
	require.NoError(r.t, err)
	return r.serve(home)
}

func (r *isolated) serve(home *instance.Instance) (status state.Status) {
	r.t.Helper()
	ctx, stop := context.WithTimeout(r.t.Context(), 5*time.Minute)
	defer stop()
	client := remote.New(remote.Config{})
	defer client.Close()
	err := worker.Serve(ctx, home,
		worker.WorkerOptions{Process: runtime.Process{MemoryBytes: 1 << 30, Cores: 2,
			Interpreter: "python3", Remote: client, Tries: r.tries, Observe: func(e job.Event) {
				r.events.Lock()
				r.events.all = append(r.events.all, e)
				r.events.Unlock()
				if e.Kind == job.RunFinished {
					status = e.Status
					stop()
				}
			}}, Isolate: &worker.Isolation{Client: remote.Config{}, Command: slotCommand(r.mark)},
		})
	require.NoError(r.t, err)
	return status
}

// slotCommand makes a slot's process, with a mark.
func slotCommand(mark string) func() keeper.Program {
	return func() keeper.Program {
		return keeper.Program{Path: os.Args[0], Args: []string{sandbox.Command},
			Env: append(keeper.All(), slotOf+"="+mark)}
	}
}

// of lists the events of a kind.
func (r *isolated) of(kind job.EventKind) (some []job.Event) {
	r.events.Lock()
	defer r.events.Unlock()
	for _, e := range r.events.all {
		if e.Kind == kind {
			some = append(some, e)
		}
	}
	return some
}

// processes lists the slots' processes.
func (r *isolated) processes() (pids []int) {
	all, _ := filepath.Glob("/proc/self/task/*/children")
	for _, name := range all {
		text, _ := os.ReadFile(name)
		for field := range strings.FieldsSeq(string(text)) {
			env, _ := os.ReadFile("/proc/" + field + "/environ")
			if pid, err := strconv.Atoi(field); err == nil && bytes.Contains(env, []byte(slotOf+"="+r.mark+"\x00")) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func TestSlotsThatAreProcessesWriteTheSame(t *testing.T) {
	t.Parallel()
	want := undisturbed(t)
	r := newIsolated(t)
	require.Equal(t, state.Complete, r.run())
	require.Equal(t, want, outputs(t, r.dir))
	require.Empty(t, r.of(job.BatchRetried))
	require.Empty(t, r.processes(), "they end with the worker")
}

// Slots are killed and stopped at random, as often as the test's length allows:
// what is written is the same, and each death costs one attempt at most.
func TestChaosSlotsAreKilled(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	want := undisturbed(t)
	r := newIsolated(t)
	done, killed := make(chan struct{}), 0
	var killer sync.WaitGroup
	killer.Go(func() {
		most := effort.Of(3, 6, 40)
		for killed < most {
			select {
			case <-done:
				return
			case <-time.After(rand.N(150 * time.Millisecond)):
			}
			for _, pid := range r.processes() {
				if syscall.Kill(pid, syscall.SIGKILL) == nil {
					killed++
				}
				break
			}
		}
	})
	status := r.run()
	close(done)
	killer.Wait()
	require.Equal(t, state.Complete, status)
	require.Equal(t, want, outputs(t, r.dir))
	retried := r.of(job.BatchRetried)
	t.Logf("%d processes were killed, %d attempts failed for it", killed, len(retried))
	require.LessOrEqual(t, len(retried), killed)
	for _, e := range retried {
		require.Contains(t, e.Failure.Message, "the process of slot ")
		require.Contains(t, e.Failure.Message, "signal: killed")
		require.True(t, e.Failure.Again)
	}
	require.Empty(t, r.processes())
}
