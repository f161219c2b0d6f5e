package runner_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
)

// TestABatchThatEndsItsProcessesIsGivenUp has worker after worker die at the one
// batch of a run. After as many tries as a batch has, a worker that would live
// gives it up instead, and the run fails and says so. Each attempt is kept. A
// retry tries again from the beginning.
func TestABatchThatEndsItsProcessesIsGivenUp(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	script := "nodes:\n  poison:\n    type: file_table\n    r: {urls: [in.csv], types: {a: int}}\n    w: poison\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "script.yaml"), []byte(script), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in.csv"), []byte("a\n1\n"), 0o600))
	killed, err := victimCmd(t, dir, "claimed:1", false).CombinedOutput()
	requireKilled(t, err, killed)
	for deaths := 1; deaths < triesOfWorkers; deaths++ {
		cmd := victimCmd(t, dir, "worker", false)
		cmd.Env = append(cmd.Env, workerDiesAt+"=claimed:1")
		killed, err = cmd.CombinedOutput()
		requireKilled(t, err, killed)
	}
	worker := victimCmd(t, dir, "worker", false)
	require.NoError(t, worker.Start())
	home := openHome(t, dir)
	defer func() { require.NoError(t, home.Close()) }()
	key := state.RunKey{Workspace: "main", Run: 1}
	run, err := home.State.Run(ctx, key)
	for ; err == nil && run.Status == state.Running; run, err = home.State.Run(ctx, key) {
	}
	require.NoError(t, err)
	require.NoError(t, worker.Process.Signal(syscall.SIGTERM))
	_ = worker.Wait()
	require.Equal(t, state.Failed, run.Status)
	require.Equal(t, fault.Environment, run.Failure.Kind)
	require.Contains(t, run.Failure.Message,
		"batch 0 of node poison was given up: 3 attempts before did not come back, or failed")
	attempts, err := state.All(ctx, home.State.Attempts, state.NodeKey{RunKey: key, Node: "poison"})
	require.NoError(t, err)
	require.Len(t, attempts, triesOfWorkers+1)
	for _, a := range attempts[:triesOfWorkers] {
		require.Contains(t, []state.Status{state.Failed, state.Lost}, a.Status)
	}
	text, err := victimCmd(t, dir, "order resume run", false).CombinedOutput()
	require.NoError(t, err, string(text))
	require.Equal(t, "complete\n", string(text))
}
