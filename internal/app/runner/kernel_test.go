package runner_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
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

const (
	cpuPart  = 0.02                   // by which processor time of sheets may differ from the kernel's
	cpuFloor = 100 * time.Millisecond // and besides: /proc has ticks of 10 ms
	// cpuMargin is around the ends of a sheet: the process is asked what it has used a little before they are noted.
	cpuMargin = 200 * time.Millisecond
)

// account is a control group in which the kernel adds up the processor time of a process and of all that it starts,
// whoever waits for their ends.
type account struct {
	t   *testing.T
	dir string

	mu    sync.Mutex
	moves []used
}

// used is what the group has used up to a moment.
type used struct {
	at  time.Time
	cpu time.Duration
}

func newAccount(t *testing.T) *account {
	t.Helper()
	for _, root := range []string{"/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup"} {
		dir, err := os.MkdirTemp(root, "thalweg-test-")
		if err != nil {
			continue
		}
		a := &account{t: t, dir: dir}
		t.Cleanup(func() { _ = os.Remove(dir) }) // all in it have ended, unless the test failed
		if _, err := a.read(); err == nil {
			return a
		}
	}
	t.Skip("no control group may be made here that adds up processor time")
	return nil
}

func (a *account) read() (time.Duration, error) {
	text, err := os.ReadFile(filepath.Join(a.dir, "cpuacct.usage"))
	if err == nil {
		ns, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		return time.Duration(ns), err
	}
	if text, err = os.ReadFile(filepath.Join(a.dir, "cpu.stat")); err != nil {
		return 0, err
	}
	var us int64
	_, err = fmt.Sscanf(string(text), "usage_usec %d", &us)
	return time.Duration(us) * time.Microsecond, err
}

// run starts a command in the group, and looks at what it uses until it has ended.
func (a *account) run(cmd *exec.Cmd) (done chan error) {
	a.t.Helper()
	cmd.Args = append([]string{"sh", "-c", `echo $$ > "$0" && exec "$@"`, filepath.Join(a.dir, "cgroup.procs"),
		cmd.Path}, cmd.Args[1:]...)
	sh, err := exec.LookPath("sh")
	require.NoError(a.t, err)
	cmd.Path = sh
	require.NoError(a.t, cmd.Start())
	done = make(chan error, 1)
	ended := make(chan struct{})
	go func() { defer close(ended); done <- cmd.Wait() }()
	look := func() {
		before := time.Now()
		cpu, err := a.read()
		if err == nil {
			a.mu.Lock()
			a.moves = append(a.moves, used{before, cpu})
			a.mu.Unlock()
		}
	}
	go func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			look()
			select {
			case <-tick.C:
			case <-ended:
				look()
				return
			}
		}
	}()
	return done
}

// between returns what was used at least and at most between two moments.
func (a *account) between(from, to time.Time) (least, most time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := func(t time.Time) (least, most time.Duration) {
		most = a.moves[len(a.moves)-1].cpu
		for _, m := range a.moves {
			if !m.at.After(t.Add(-cpuMargin)) {
				least = m.cpu
			}
			if m.at.After(t.Add(cpuMargin)) {
				return least, m.cpu
			}
		}
		return least, most
	}
	fromLeast, fromMost := at(from)
	toLeast, toMost := at(to)
	return toLeast - fromMost, toMost - fromLeast
}

// requireKernels holds the processor time of a sheet to the kernel's, less what may be missing.
func (a *account) requireKernels(s sheet.Sheet, unseen time.Duration) {
	a.t.Helper()
	least, most := a.between(s.From, s.To)
	got := time.Duration((s.CPU + s.ChildrenCPU) * float64(time.Second))
	a.t.Logf("the kernel counted %s to %s, the sheet %s", least, most, got)
	require.Greater(a.t, least, 2*time.Second, "enough to compare")
	require.GreaterOrEqual(a.t, got, least-time.Duration(cpuPart*float64(least))-cpuFloor-unseen)
	require.LessOrEqual(a.t, got, most+time.Duration(cpuPart*float64(most))+cpuFloor)
}

// busyInputs is like sleepyInputs with Python that computes.
func busyInputs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"script.yaml": sleepyScript, "slow.py": `import time

def twice(id: int) -> int:
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
    return 2 * id
`}
	for i := range 64 {
		files[fmt.Sprintf("in_%d.csv", i)] = fmt.Sprintf("id\n%d\n", i)
	}
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// The processor time of a sheet is the kernel's, with that of Python.
func TestProcessorTimeOfALocalRun(t *testing.T) {
	effort.Unraced(t) // times of processes, which other tests race
	t.Parallel()
	a := newAccount(t)
	dir := busyInputs(t)
	cmd := victimCmd(t, dir, "run", false)
	cmd.Stderr = os.Stderr
	require.NoError(t, <-a.run(cmd))
	home := openHome(t, dir)
	defer func() { require.NoError(t, home.Close()) }()
	sheets, err := sheet.Of(t.Context(), home.State, state.RunKey{Workspace: "main", Run: 1})
	require.NoError(t, err)
	require.Len(t, sheets, 1)
	requireSheet(t, sheets[0])
	require.Positive(t, sheets[0].ChildrenCPU)
	require.Zero(t, sheets[0].ChildrenGC, "no slot is a process")
	a.requireKernels(sheets[0], 0)
}

// Slots that are processes are in it, with their Pythons; also those that were killed.
func TestProcessorTimeOfSlotsThatAreProcesses(t *testing.T) {
	effort.Unraced(t) // times of processes, which other tests race
	t.Parallel()
	a := newAccount(t)
	ctx, dir := t.Context(), busyInputs(t)
	home := openHome(t, dir)
	defer func() { require.NoError(t, home.Close()) }()
	key, err := runner.Begin(ctx, home, runner.Options{ScriptPath: filepath.Join(dir, "script.yaml"), Dir: dir,
		Workspace: "main", Process: runtime.Process{MemoryBytes: victimBytes, Interpreter: "python3",
			Tune: func(b *budget.Budget) { b.BatchBytes, b.SmallBytes = 1, 1 }}})
	require.NoError(t, err)
	cmd := victimCmd(t, dir, "worker", false)
	cmd.Env = append(cmd.Env, slotsAreProcesses+"=1")
	cmd.Stderr = os.Stderr
	done := a.run(cmd)
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, unless the test failed
	killed := false
	require.Eventually(t, func() bool {
		run, err := home.State.Run(ctx, key)
		require.NoError(t, err)
		nodes, err := home.State.Nodes(ctx, key)
		require.NoError(t, err)
		for _, n := range nodes {
			if n.Name == "slow" && n.BatchesDone >= n.BatchesTotal*3/4 && n.BatchesDone < n.BatchesTotal && !killed {
				killed = killSlot(cmd.Process.Pid)
			}
		}
		return run.Status.Terminal()
	}, effort.Patience, 20*time.Millisecond)
	require.True(t, killed)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, <-done)
	sheets, err := sheet.Of(ctx, home.State, key)
	require.NoError(t, err)
	require.Len(t, sheets, 1)
	s := sheets[0]
	requireSheet(t, s)
	require.Positive(t, s.ChildrenGC)
	require.Less(t, s.ChildrenGC, s.ChildrenCPU)
	// nobody knows what Python did between the last look, which is made each second, and its death
	a.requireKernels(s, 2*time.Second)
}

// killSlot kills a process that a worker has started for its slots, if there is one that has a child.
func killSlot(worker int) bool {
	childrenOf := func(pid int) (pids []int) {
		all, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is ours
		for _, name := range all {
			text, _ := os.ReadFile(name) // it may have ended
			for field := range strings.FieldsSeq(string(text)) {
				if pid, err := strconv.Atoi(field); err == nil {
					pids = append(pids, pid)
				}
			}
		}
		return pids
	}
	for _, pid := range childrenOf(worker) {
		if len(childrenOf(pid)) > 0 {
			return syscall.Kill(pid, syscall.SIGKILL) == nil
		}
	}
	return false
}
