package runner_test

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/worker"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/remote"
	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
	"thalweg/internal/test/statetest/hostile"
)

// awayCalls is the number of calls that find the state away in TestStateAway.
const awayCalls = 12

// TestStateAway takes the state away from a worker in the middle of a run: it waits, says
// so once, and goes on by itself. No attempt is lost by that. That it would wait for ever
// is tested in package patient.
func TestStateAway(t *testing.T) {
	t.Parallel()
	dir := crashInputs(t)
	home, err := instance.Open(t.Context(), filepath.Join(dir, instance.DefaultDir), true)
	require.NoError(t, err)
	defer func() { require.NoError(t, home.Close()) }()
	client := remote.New(remote.Config{})
	defer client.Close()
	key, err := runner.Begin(t.Context(), home, runner.Options{ScriptPath: filepath.Join(dir, "script.yaml"), Dir: dir,
		Workspace: "main", Process: runtime.Process{MemoryBytes: victimBytes, Interpreter: "python3"}})
	require.NoError(t, err)
	truth := home.State
	var mu sync.Mutex
	left, log := -1, &bytes.Buffer{}
	home.State = hostile.Away(truth, func() error {
		mu.Lock()
		defer mu.Unlock()
		if left <= 0 {
			return nil
		}
		left--
		return &fault.Error{Kind: fault.Environment, Retryable: true, Message: "the state is away"}
	})
	logged := slog.New(slog.NewTextHandler(&locked{mu: &mu, Buffer: log}, nil))
	drain := make(chan struct{})
	var over sync.Once
	require.NoError(t, worker.Serve(t.Context(), home,
		worker.WorkerOptions{Process: runtime.Process{MemoryBytes: 1 << 30, Cores: 2,
			Interpreter: "python3", Remote: client, Logger: logged, Observe: func(e job.Event) {
				mu.Lock()
				defer mu.Unlock()
				if e.Kind == job.BatchStarted && left < 0 {
					left = awayCalls
				}
				if e.Kind == job.RunFinished {
					over.Do(func() { close(drain) })
				}
			}}, Drain: drain,
		}))
	home.State = truth
	run, err := truth.Run(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, state.Complete, run.Status)
	attempts, err := state.OfNodes(t.Context(), truth, key, truth.Attempts)
	require.NoError(t, err)
	for _, a := range attempts {
		require.Equal(t, 1, a.Attempt)
	}
	require.Zero(t, left, "calls that were to fail")
	// none where it was a moment
	require.LessOrEqual(t, strings.Count(log.String(), "could not be reached"), 1, log.String())
}

// locked is a buffer that several write to.
type locked struct {
	mu *sync.Mutex
	*bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}
