package runner_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/budget"
	"thalweg/internal/run/sheet"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// sleepyScript has 64 batches that sleep.
const sleepyScript = `
nodes:
  read:
    type: file_table
    r: {urls: ["in_*.csv"], types: {id: int}}
    w: read
  slow:
    type: table_custom_tfm_table
    custom_proc_type: py_calc
    r: {table: read}
    p:
      python_code_urls: [slow.py]
      calculated_fields:
        twice: {expression: twice(r.id), type: int}
    w:
      name: slow
      fields:
        twice: {expression: p.twice, type: int}
  write: {type: table_file, r: slow, w: out/all.csv}
`

func sleepyInputs(t *testing.T, seconds float64) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"script.yaml": sleepyScript,
		"slow.py": fmt.Sprintf("import time\n\ndef twice(id: int) -> int:\n    time.sleep(%g)\n    return 2 * id\n",
			seconds)}
	for i := range 64 {
		files[fmt.Sprintf("in_%d.csv", i)] = fmt.Sprintf("id\n%d\n", i)
	}
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// requireSheet holds a sheet to what is promised of it.
func requireSheet(t *testing.T, s sheet.Sheet) {
	t.Helper()
	whole := s.Presence * float64(s.Slots)
	require.InEpsilon(t, whole, s.SlotTime().Seconds(), 0.005, "%+v", s)
	require.Zero(t, s.Elsewhere)
	require.InDelta(t, s.To.Sub(s.From).Seconds(), s.Presence, 0.1)
	require.NotEmpty(t, s.Host)
	require.Positive(t, s.Cores)
	require.Positive(t, s.Calls)
	require.Positive(t, s.PeakBudget)
	require.Positive(t, s.PeakResident)
}

// A run in one process has one sheet, whose processor time is the kernel's.
func TestSheetOfALocalRun(t *testing.T) {
	effort.Unraced(t) // times of processes, which other tests race
	t.Parallel()
	dir := crashInputs(t)
	cmd := victimCmd(t, dir, "run", false)
	cmd.Env = append(cmd.Env, "THALWEG_MACHINE=c7g.large")
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, string(text))
	home := openHome(t, dir)
	defer func() { require.NoError(t, home.Close()) }()
	key := state.RunKey{Workspace: "main", Run: 1}
	sheets, err := sheet.Of(t.Context(), home.State, key)
	require.NoError(t, err)
	require.Len(t, sheets, 1)
	s := sheets[0]
	requireSheet(t, s)
	require.Equal(t, "c7g.large", s.Machine)
	require.Positive(t, s.Time(sheet.Work))
	require.Positive(t, s.Time(sheet.Commits))
	require.Positive(t, s.Time(sheet.Handover))
	require.Positive(t, s.GC)
	require.Zero(t, s.Lost)
	used := s.CPU + s.ChildrenCPU
	all := (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	require.LessOrEqual(t, used, all*1.02)
	require.Greater(t, used, all/10, "the rest is of the time before the run, and of looking at it")

	var batches, written, read int64
	nodes, err := home.State.Nodes(t.Context(), key)
	require.NoError(t, err)
	for _, n := range nodes {
		batches += int64(n.BatchesDone)
		parts, err := state.All(t.Context(), home.State.Parts, n.NodeKey)
		require.NoError(t, err)
		for _, p := range parts {
			written += p.Bytes
		}
		if n.Name != "orders" && n.Name != "items" { // which read files
			read += n.BytesIn
		}
	}
	require.Equal(t, []int64{batches, written, read}, []int64{s.Batches, s.PartsWritten, s.PartsRead})

	cmd = victimCmd(t, sleepyInputs(t, 0), "run", false)
	cmd.Env = append(cmd.Env, "THALWEG_MACHINE=my own")
	text, err = cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(text), "THALWEG_MACHINE does not name a type of machine")
}

// Of several workers one is killed: its sheet is there, short by no more than 20 s, and all add up.
func TestSheetsOfSeveralWorkers(t *testing.T) {
	effort.Unraced(t) // times of processes, which other tests race
	t.Parallel()
	ctx := t.Context()
	dir := sleepyInputs(t, 0.4)
	home := openHome(t, dir)
	defer func() { require.NoError(t, home.Close()) }()
	key, err := runner.Begin(ctx, home, runner.Options{ScriptPath: filepath.Join(dir, "script.yaml"), Dir: dir,
		Workspace: "main", Process: runtime.Process{MemoryBytes: victimBytes, Interpreter: "python3",
			Tune: func(b *budget.Budget) { b.BatchBytes, b.SmallBytes = 1, 1 }}})
	require.NoError(t, err)
	began := time.Now()
	var workers []*exec.Cmd
	for range 2 {
		w := victimCmd(t, dir, "worker", false)
		w.Stderr = os.Stderr
		require.NoError(t, w.Start())
		t.Cleanup(func() { _ = w.Process.Kill() }) // it has ended, unless the test failed
		workers = append(workers, w)
	}
	of := func(w *exec.Cmd) (sheet.Sheet, bool) {
		sheets, err := sheet.Of(ctx, home.State, key)
		require.NoError(t, err)
		for _, s := range sheets {
			if strings.Contains(s.Worker, fmt.Sprintf("/%d/", w.Process.Pid)) {
				return s, true
			}
		}
		return sheet.Sheet{}, false
	}
	until := func(what string, is func() bool) {
		t.Helper()
		require.Eventually(t, is, effort.Patience, 50*time.Millisecond, what)
	}
	until("both are at work", func() bool {
		one, _ := of(workers[0])
		other, _ := of(workers[1])
		return one.Batches > 0 && one.Time(sheet.Other) > 0 && other.Batches > 0
	})
	require.NoError(t, workers[0].Process.Kill())
	killed := time.Now()
	_ = workers[0].Wait() // it was killed
	until("the run is over", func() bool {
		run, err := home.State.Run(ctx, key)
		require.NoError(t, err)
		return run.Status.Terminal()
	})
	require.NoError(t, workers[1].Process.Signal(syscall.SIGTERM))
	require.NoError(t, workers[1].Wait())
	elapsed := time.Since(began)

	dead, ok := of(workers[0])
	require.True(t, ok)
	requireSheet(t, dead)
	require.WithinDuration(t, killed, dead.To, 20*time.Second)
	require.Positive(t, dead.Shares["other"], "what it was at is lost")
	last, ok := of(workers[1])
	require.True(t, ok)
	requireSheet(t, last)
	require.Positive(t, last.Time(sheet.Work))
	require.Less(t, last.Presence, elapsed.Seconds())
	require.Greater(t, last.Presence, 10.0)
	all := (workers[1].ProcessState.UserTime() + workers[1].ProcessState.SystemTime()).Seconds()
	require.LessOrEqual(t, last.CPU+last.ChildrenCPU, all*1.02)
	require.Greater(t, last.CPU+last.ChildrenCPU, all/10)
	require.GreaterOrEqual(t, dead.Batches+last.Batches, int64(50))
}

// Slots that are processes compute while they hold memory.
func TestSheetOfSlotsThatAreProcesses(t *testing.T) {
	effort.Unraced(t) // times of processes, which other tests race
	t.Parallel()
	r := newIsolated(t)
	require.Equal(t, state.Complete, r.run())
	home := openHome(t, r.dir)
	defer func() { require.NoError(t, home.Close()) }()
	sheets, err := sheet.Of(t.Context(), home.State, state.RunKey{Workspace: "main", Run: 1})
	require.NoError(t, err)
	require.Len(t, sheets, 1)
	requireSheet(t, sheets[0])
	require.Positive(t, sheets[0].Time(sheet.Work))
	require.Positive(t, sheets[0].Time(sheet.Parts))
	require.Positive(t, sheets[0].ChildrenCPU)
}
