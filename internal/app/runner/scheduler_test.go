package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/scheduler"
	"thalweg/internal/app/worker"
	"thalweg/internal/base/message"
	"thalweg/internal/io/remote"
	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/jobtest"
)

// fastClock shows a minute for each second that passes, until a moment. It
// stands still until there is its file.
type fastClock struct {
	file  string // says when it began to go
	until time.Time
}

const (
	fasterBy    = 60
	clockBegins = "2026-03-29T00:50:00Z" // minutes before summer time
	clockFile   = "THALWEG_TEST_CLOCK"
	tickCount   = "THALWEG_TEST_TICKS"
)

// startClock makes the clock go.
func startClock(t *testing.T, file string) {
	t.Helper()
	part := file + ".part"
	require.NoError(t, os.WriteFile(part, []byte(strconv.FormatInt(time.Now().UnixNano(), 10)), 0o600))
	require.NoError(t, os.Rename(part, file))
}

func (c fastClock) Now() time.Time {
	begin, _ := time.Parse(time.RFC3339, clockBegins)
	text, err := os.ReadFile(c.file)
	if err != nil {
		return begin
	}
	began, _ := strconv.ParseInt(string(text), 10, 64) // of startClock
	now := begin.Add(time.Since(time.Unix(0, began)) * fasterBy)
	if !c.until.IsZero() && now.After(c.until) {
		return c.until
	}
	return now
}

func (c fastClock) After(d time.Duration) <-chan time.Time { return time.After(d / fasterBy) }

// serveSchedules is a scheduler that dies at a crash point.
func serveSchedules(ctx context.Context, home *instance.Instance, client *remote.Client, point string) int {
	ticks, err := strconv.Atoi(os.Getenv(tickCount))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	begin, _ := time.Parse(time.RFC3339, clockBegins)
	clock := fastClock{file: os.Getenv(clockFile), until: begin.Add(time.Duration(ticks)*time.Minute + 30*time.Second)}
	err = scheduler.Schedule(ctx, home, scheduler.SchedulerOptions{Workspace: "main", Scripts: []string{"script.yaml"},
		Clock: clock,
		WorkerOptions: worker.WorkerOptions{Process: runtime.Process{Remote: client, MemoryBytes: 2 << 30, Cores: 1,
			Interpreter: "python3", Lease: time.Second, Checkpoint: jobtest.DieAt(point)}, Most: 2}})
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// heard keeps what hooks are told, by id.
type heard struct {
	mu    sync.Mutex
	byID  map[string]message.Message
	times int
}

func (h *heard) ServeHTTP(_ http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	var m message.Message
	if err != nil || json.Unmarshal(body, &m) != nil {
		return // it is sent again
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.byID[m.ID] = m
	h.times++
}

func (h *heard) runs() map[int64]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[int64]int{}
	for _, m := range h.byID {
		out[m.Run]++
	}
	return out
}

// Two schedulers at once are killed at each of their crash points, and then at
// any moment: each minute gets one run, in order, each run is complete, and it
// was told of each under one id.
func TestChaosSchedulersAreKilled(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	h := &heard{byID: map[string]message.Message{}}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in.csv"), []byte("id\n1\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "script.yaml"), fmt.Appendf(nil, `
name: minutes
schedule: {cron: "* * * * *", catch_up: all, timezone: Europe/Berlin}
notify: {on: done, url: "%s"}
nodes:
  read: {type: file_table, r: {urls: [in.csv], columns: {id: int}}, `+
		`w: {name: t, fields: [r.id, {at: "\"{scheduled_time}\""}]}}
  write: {type: table_file, r: t, w: "out/{run_id}.csv"}
`, server.URL), 0o600))
	ticks := effort.Of(5, 7, 120)
	clock := filepath.Join(t.TempDir(), "clock")
	start := func(point string) *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Dir, cmd.Stderr = dir, os.Stderr
		cmd.Env = append(os.Environ(), crashAt+"=scheduler "+point, clockFile+"="+clock, tickCount+"="+
			strconv.Itoa(ticks))
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, unless the test failed
		return cmd
	}
	first := start("run")
	waitForSchedule(t, dir) // it counts from here on, however long the process took to start
	startClock(t, clock)
	waitForRuns(t, dir, 1, 0)
	require.NoError(t, first.Process.Kill())
	_ = first.Wait()
	for _, point := range job.ServingPoints() { // each finds what the one before has left
		cmd := start(string(point) + ":1")
		_ = cmd.Wait() // it has died there
		require.Equal(t, -1, cmd.ProcessState.ExitCode(), point)
	}
	random := rand.New(rand.NewPCG(5, 8))
	children := []*exec.Cmd{start("run"), start("run")}
	for range effort.Of(2, 4, 100) {
		<-time.After(time.Duration(random.IntN(500)) * time.Millisecond)
		one := random.IntN(2)
		require.NoError(t, children[one].Process.Kill())
		_ = children[one].Wait()
		children[one] = start("run")
	}
	waitForRuns(t, dir, ticks, ticks)
	for len(h.runs()) < ticks {
		<-time.After(10 * time.Millisecond)
	}
	for _, cmd := range children {
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		require.NoError(t, cmd.Wait())
	}
	begin, err := time.Parse(time.RFC3339, clockBegins)
	require.NoError(t, err)
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	told := h.runs()
	runs := storedRuns(t, dir)
	require.Len(t, runs, ticks)
	for i, run := range runs {
		at := begin.Add(time.Duration(i+1) * time.Minute).In(berlin).Format(time.RFC3339)
		require.Equal(t, "schedule * * * * *, for "+at, run.Description)
		require.Equal(t, 1, told[run.Run], "ids of run %d", run.Run)
		text, err := os.ReadFile(filepath.Join(dir, "out", fmt.Sprintf("%d.csv", run.Run)))
		require.NoError(t, err)
		require.Equal(t, "id,at\n1,"+at+"\n", string(text))
	}
	t.Logf("%d runs, told %d times", len(runs), h.times)
}

// waitForSchedule waits until a scheduler has recorded that it knows one.
func waitForSchedule(t *testing.T, dir string) {
	t.Helper()
	for {
		if _, err := os.Stat(filepath.Join(dir, instance.DefaultDir, "state.db")); err == nil {
			home, err := instance.Open(t.Context(), filepath.Join(dir, instance.DefaultDir), false)
			require.NoError(t, err)
			known, err := scheduler.ScheduleBox(home, "main").List(t.Context())
			require.NoError(t, err)
			require.NoError(t, home.Close())
			if len(known) > 0 {
				return
			}
		}
		select {
		case <-t.Context().Done():
			t.Fatal("the test is over")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// waitForRuns waits until there are so many runs, and so many complete ones.
func waitForRuns(t *testing.T, dir string, all, complete int) {
	t.Helper()
	for {
		runs, done := storedRuns(t, dir), 0
		for _, run := range runs {
			if run.Status == state.Complete {
				done++
			}
		}
		if len(runs) >= all && done >= complete {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal("the test is over")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// storedRuns lists the runs of a directory, the first one first.
func storedRuns(t *testing.T, dir string) (out []state.Run) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, instance.DefaultDir, "state.db")); err != nil {
		return nil
	}
	home, err := instance.Open(t.Context(), filepath.Join(dir, instance.DefaultDir), false)
	require.NoError(t, err)
	defer home.Close()
	runs, err := state.All(t.Context(), home.State.Runs, "main")
	require.NoError(t, err)
	for i := len(runs) - 1; i >= 0; i-- {
		out = append(out, runs[i])
	}
	return out
}
