package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/test/effort"
)

// stopSample lists the kinds of runs that are tried where THALWEG_CHAOS does not ask for all.
var stopSample = []string{"nested lists", "deaf Python"}

// TestChaosStop stops a run from another process while its batch is at work in
// one that began it, with a worker beside it: both end their work on it in
// time, the command says so, and another process may go on at once.
func TestChaosStop(t *testing.T) {
	for name, archive := range heavyRuns() {
		if !effort.All() && !slices.Contains(stopSample, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			script, code, _ := strings.Cut(archive, "-- f.py --\n")
			dir := heavyDir(t, script, code)
			ctx, cancel := context.WithTimeout(t.Context(), runsWait)
			defer cancel()
			worker := thalweg(ctx, dir, "worker", "--memory", "1GB")
			require.NoError(t, worker.Start())
			defer func() { _ = worker.Process.Kill(); _ = worker.Wait() }()
			run := startHeavy(ctx, t, dir, "--memory", "1GB", "--row-timeout", "1h")
			awaitWork(ctx, t, run.Process.Pid, filepath.Join(dir, "started"))
			requireStops(ctx, t, dir, run)
			// The run goes on without its script.
			again := thalweg(ctx, dir, "resume", "last", "--json", "--memory", "1GB", "--row-timeout", "1h")
			events, err := again.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, again.Start())
			awaitHeavy(t, events)
			require.NoError(t, again.Process.Kill())
			err = again.Wait()
			require.True(t, errors.As(err, new(*exec.ExitError)), "it was killed: %v", err)
			// Nobody works on it: a stop has nothing to wait for.
			require.Equal(t, "stopped", stopLast(ctx, t, dir).Status)
		})
	}
}

// A stop ends the copying of a remote input, which no batch is at work on yet.
func TestStopWhileARemoteFileIsCopied(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), runsWait)
	defer cancel()
	begun := make(chan struct{}, 10)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000000")
		if r.Method == http.MethodHead {
			return
		}
		_, _ = io.WriteString(w, "a\n1\n")
		w.(http.Flusher).Flush()
		begun <- struct{}{}
		<-r.Context().Done()
	})}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	dir := heavyDir(t, "nodes:\n  read:\n    type: file_table\n    r: {urls: [http://"+listener.Addr().String()+
		"/in.csv], columns: {a: {csv: {col_hdr: a}, col_type: int}}, csv: {hdr_line_idx: 0, first_data_line_idx: 1}}\n"+
		"    w: {name: t, fields: {a: {expression: r.a, type: int}}}\n", "")
	run := thalweg(ctx, dir, "run", "script.yaml", "--json", "--memory", "1GB")
	run.Stderr = new(strings.Builder)
	require.NoError(t, run.Start())
	select {
	case <-begun:
	case <-ctx.Done():
		t.Fatal("nothing is copied: " + run.Stderr.(*strings.Builder).String())
	}
	requireStops(ctx, t, dir, run)
}

// requireStops stops the last run, and wants the process that began it to end
// its work in time.
func requireStops(ctx context.Context, t *testing.T, dir string, run *exec.Cmd) {
	t.Helper()
	begin, starved := time.Now(), cpuPressure(t)
	out := stopLast(ctx, t, dir)
	took := time.Since(begin)
	starved = min(cpuPressure(t)-starved, starvedMax)
	t.Logf("the command took %v, the stop %d ms; something waited for a processor for %v of it", took, out.MS, starved)
	require.Equal(t, "stopped", out.Status)
	if effort.All() && starved < interruptedWithin/10 {
		require.False(t, out.AtWork, "its work on the run has ended within the promised time")
	}
	requireEndsSoon(t, run, exitStopped)
	require.Regexp(t, `"stopped"`, listRuns(ctx, t, dir))
	require.Equal(t, "stopped", stopLast(ctx, t, dir).Before, "it is not stopped twice")
}

// saidStopped holds the output of stop --json.
type saidStopped struct {
	Before string `json:"before"`
	Status string `json:"status"`
	AtWork bool   `json:"at_work"`
	MS     int64  `json:"took_ms"`
}

func stopLast(ctx context.Context, t *testing.T, dir string) (out saidStopped) {
	t.Helper()
	text, err := thalweg(ctx, dir, "stop", "last", "--json", "--reason", "enough").Output()
	require.NoError(t, err, string(text))
	require.NoError(t, json.Unmarshal(text, &out))
	return out
}
