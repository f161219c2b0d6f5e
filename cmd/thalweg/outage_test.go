package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/cassandra"
)

// A worker that is started while the state is away lives, says that it is not ready and why, and ends at
// once, and well, when it is told to.
func TestWorkerStartedInAnOutage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cluster.yaml"), []byte(`version: 1
state: { cassandra: { hosts: "127.0.0.1:1", keyspace: nowhere } }
worker: { scratch: scratch, metrics: "127.0.0.1:0" }
`), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), runsWait)
	defer cancel()
	worker := thalweg(ctx, dir, "worker", "--cluster", "cluster.yaml", "--memory", "1GB")
	out, err := worker.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, worker.Start())
	defer func() { _ = worker.Process.Kill() }()
	address := ""
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "level=WARN") {
		if at, ok := strings.CutPrefix(lines.Text(), "metrics: "); ok {
			address = strings.TrimSuffix(at, "/metrics")
		}
	}
	require.Contains(t, lines.Text(), "connection refused")
	require.Contains(t, lines.Text(), "tried again until it is there")
	get := func(path string) (int, string) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+path, nil)
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(body)
	}
	code, _ := get("/healthz")
	require.Equal(t, http.StatusOK, code)
	code, body := get("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Contains(t, body, "it waits for the services of the cluster: ")
	require.Contains(t, body, "connection refused")
	require.NoError(t, worker.Process.Signal(syscall.SIGTERM))
	_, err = io.Copy(io.Discard, out)
	require.NoError(t, err)
	require.NoError(t, worker.Wait()) // exit code 0
}

// Without a quorum a command says in our words how many nodes answer and are needed, and a worker that is
// started waits until there is one.
func TestBegunWithoutAQuorum(t *testing.T) {
	t.Parallel()
	node := os.Getenv("THALWEG_TEST_CASSANDRA")
	if node == "" {
		t.Skip("THALWEG_TEST_CASSANDRA is not set")
	}
	keyspace := "quorum_" + strings.ToLower(rand.Text()[:12])
	t.Cleanup(func() { dropKeyspace(node, keyspace, "") })
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cluster.yaml"), fmt.Appendf(nil,
		"version: 1\nstate: { cassandra: { hosts: %q, keyspace: %s, replication: 1 } }\nworker: { scratch: "+
			"scratch }\n", node, keyspace), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), runsWait)
	defer cancel()
	out, err := thalweg(ctx, dir, "cluster", "init", "--cluster", "cluster.yaml").CombinedOutput()
	require.NoError(t, err, string(out))
	session, err := cassandra.Open(cassandra.Config{Hosts: []string{node}})
	require.NoError(t, err)
	defer session.Close()
	copies := func(n int) {
		text, err := cassandra.AlterKeyspace(keyspace, map[string]int{"": n})
		require.NoError(t, err)
		require.NoError(t, session.Query(text).ExecContext(ctx))
	}
	copies(3) // of which 2 have to answer, and there is one node

	out, err = thalweg(ctx, dir, "runs", "--cluster", "cluster.yaml").CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, exitOurs, exit.ExitCode(), string(out))
	require.Contains(t, string(out), "too few nodes of Cassandra answer: 1 of the 2 that are needed")
	require.Contains(t, string(out), "`thalweg doctor --cluster cluster.yaml`")
	require.NotRegexp(t, "gocql|Cannot achieve|QUORUM", string(out))

	worker := thalweg(ctx, dir, "worker", "--cluster", "cluster.yaml", "--memory", "1GB")
	said, err := worker.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, worker.Start())
	defer func() { _ = worker.Process.Kill() }()
	lines := bufio.NewScanner(said)
	for lines.Scan() && !strings.Contains(lines.Text(), "tried again until it is there") {
	}
	require.Contains(t, lines.Text(), "too few nodes of Cassandra answer: 1 of the 2 that are needed")
	copies(1)
	for lines.Scan() && !strings.Contains(lines.Text(), "the services of the cluster are there") {
	}
	require.Contains(t, lines.Text(), "the services of the cluster are there")
	require.NoError(t, worker.Process.Signal(syscall.SIGTERM))
	_, err = io.Copy(io.Discard, said)
	require.NoError(t, err)
	require.NoError(t, worker.Wait())
}
