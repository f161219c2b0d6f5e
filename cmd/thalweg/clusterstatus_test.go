package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/store/state"
)

// A worker that has died is gone as soon as its note has expired, and runs that are over are not listed as
// if it, or anybody, worked on them.
func TestClusterStatusOfAWorkerThatHasDied(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cluster.yaml"),
		[]byte("version: 1\nstate: { directory: runs }\n"), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), runsWait)
	defer cancel()
	out, err := thalweg(ctx, dir, "cluster", "init", "--cluster", "cluster.yaml").CombinedOutput()
	require.NoError(t, err, string(out))
	home, err := instance.Open(ctx, filepath.Join(dir, "runs"), false)
	require.NoError(t, err)
	for range 2 {
		_, err := home.State.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: "main"}, Created: time.Now()},
			[]state.NodeSpec{{Name: "n", Kind: "k"}})
		require.NoError(t, err)
	}
	const lease = 20 * time.Second // that a note counts
	for host, age := range map[string]time.Duration{"died": lease + time.Second, "works": -time.Hour} {
		note := state.Note{Topic: "workers", Name: host, Time: time.Now().Add(-age), Data: fmt.Appendf(nil,
			`{"owner": %q, "host": %q, "runs": [{"workspace": "main", "run": 2}, {"workspace": "main", "run": 1}]}`,
			host+"/1/1/x", host)}
		require.NoError(t, home.State.PutNote(ctx, "_fleet", note))
	}
	require.NoError(t, home.Close())
	out, err = thalweg(ctx, dir, "stop", "1", "--cluster", "cluster.yaml").CombinedOutput()
	require.NoError(t, err, string(out))
	out, err = thalweg(ctx, dir, "cluster", "status", "--cluster", "cluster.yaml").CombinedOutput()
	require.NoError(t, err, string(out))
	require.Regexp(t, `(?m)^died .* main/2 +gone: last heard of`, string(out))
	require.Regexp(t, `(?m)^works .* main/2 +at work`, string(out))
	require.NotContains(t, string(out), "main/1")
	out, err = thalweg(ctx, dir, "cluster", "status", "--cluster", "cluster.yaml", "--json").Output()
	require.NoError(t, err)
	require.NotContains(t, string(out), `"run":1`)
}
