package runner_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/run/job"
	"thalweg/internal/test/effort"
)

const watchingScript = `
name: watching
watch:
  - {name: objects, files: "s3://data/drop/*.csv"}
  - {name: files, files: "sftp://joe@SFTP/drop/*.csv", marker: "{file}.done"}
nodes:
  read: {type: file_table, r: {urls: ["{watched_file}"], columns: {id: int}}, w: t}
  write: {type: table_file, r: t, w: "out/{run_id}.csv"}
`

// Schedulers that watch two servers are killed where they begin runs, and one of
// the servers refuses at first: each file gets one run, which reads it.
func TestWatchedServers(t *testing.T) {
	effort.Unraced(t) // times of processes, which other tests race
	t.Parallel()
	m := newMachines(t)
	drop := filepath.Join(m.sftp.Dir, "drop")
	require.NoError(t, os.Mkdir(drop, 0o700))
	text := strings.ReplaceAll(watchingScript, "SFTP", m.sftp.Addr+m.sftp.Dir)
	require.NoError(t, os.WriteFile(filepath.Join(m.dir, "script.yaml"), []byte(text), 0o600))
	var refused atomic.Int64
	m.s3.Intercept(func(rw http.ResponseWriter, r *http.Request) bool {
		refuse := r.URL.Query().Has("list-type") && refused.Add(1) <= 2
		if refuse {
			rw.WriteHeader(http.StatusForbidden)
			fmt.Fprint(rw, "<Error><Code>AccessDenied</Code></Error>")
		}
		return refuse
	})
	clock := filepath.Join(t.TempDir(), "clock")
	startClock(t, clock)
	start := func(point string) *exec.Cmd {
		cmd := m.victim(t, "scheduler "+point, false)
		cmd.Env = append(cmd.Env, "AWS_SECRET_ACCESS_KEY=T0P5ECRET", clockFile+"="+clock, tickCount+"=100000")
		cmd.Stderr = os.Stderr
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, unless the test failed
		return cmd
	}
	put := func(n int) {
		m.s3.Put(t, fmt.Sprintf("drop/%d.csv", n), fmt.Sprintf("id\n%d\n", n))
		name := filepath.Join(drop, fmt.Sprintf("%d.csv", n))
		require.NoError(t, os.WriteFile(name, fmt.Appendf(nil, "id\n%d\n", 100+n), 0o600))
		require.NoError(t, os.WriteFile(name+".done", nil, 0o600))
	}
	put(1)
	for _, point := range []job.CrashPoint{job.RunDue, job.RunBegun, job.RunBegun} {
		cmd := start(string(point) + ":1")
		_ = cmd.Wait() // it has died there
		require.Equal(t, -1, cmd.ProcessState.ExitCode(), point)
	}
	put(2)
	last := start("run")
	waitForRuns(t, m.dir, 4, 4)
	require.NoError(t, last.Process.Signal(syscall.SIGTERM))
	require.NoError(t, last.Wait())
	require.GreaterOrEqual(t, refused.Load(), int64(3))

	got := map[string]int{}
	for _, run := range storedRuns(t, m.dir) {
		text, err := os.ReadFile(filepath.Join(m.dir, "out", fmt.Sprintf("%d.csv", run.Run)))
		require.NoError(t, err)
		got[string(text)]++
	}
	require.Equal(t, map[string]int{"id\n1\n": 1, "id\n2\n": 1, "id\n101\n": 1, "id\n102\n": 1}, got)
	states, err := filepath.Glob(filepath.Join(m.dir, instance.DefaultDir, "state.db*"))
	require.NoError(t, err)
	for _, path := range states {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NotContains(t, string(text), "T0P5ECRET")
	}
}
