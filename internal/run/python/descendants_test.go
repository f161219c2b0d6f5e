package python

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"thalweg/internal/base/keeper"
	"thalweg/internal/test/effort"
)

const (
	// goneLimit is the limit that guarantees.md promises for the end of descendants, on a machine that has
	// time for them.
	goneLimit = 2 * time.Second

	runnerArgument = "__pool" // a process that runs a pool, to be killed
	cgroupsName    = "THALWEG_TEST_CGROUPS"
)

// testCgroups returns the cgroup versions that the keeper may try, from the environment of the interpreters.
func testCgroups() []int {
	switch os.Getenv(cgroupsName) {
	case "none":
		return nil
	case "1":
		return []int{1}
	}
	return keeper.Cgroups()
}

// family starts descendants of every kind, none of which ends by itself or at a
// polite signal, and returns when all have written down their numbers.
const family = `
import os, signal, sys, time
def live():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with open(PIDS, 'a') as file: file.write('%d\n' % os.getpid())
    while True: time.sleep(60)
def child(*steps):
    pid = os.fork()
    if pid: return pid
    try:
        for step in steps: step()
        live()
    finally:
        os._exit(0)
def orphan():
    if os.fork(): os._exit(0)
def daemon():
    os.chdir('/')
    os.closerange(0, 64)
def family():
    child()                              # holds all of our descriptors open
    child(child)                         # and a grandchild
    child(os.setsid)
    child(os.setpgrp)
    os.waitpid(child(orphan), 0)
    os.waitpid(child(orphan, os.setsid), 0)
    os.waitpid(child(os.setsid, orphan, daemon), 0)
    child(os.setsid, child, orphan)
    while True:
        with open(PIDS) as file:
            if len(file.read().split()) >= MEMBERS: return
        time.sleep(0.01)
`

const familyMembers = 10

func familyProgram(dir, then string) *Program {
	begin := fmt.Sprintf("PIDS, MEMBERS = %q, %d\nopen(PIDS, 'a').close()", filepath.Join(dir, "pids"), familyMembers)
	return intProgram("work(r.n)", begin, family, "def work(n):", "  if n == 0:", "    family()", "    "+then,
		"  return n")
}

func familyPids(t *testing.T, dir string) []int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "pids"))
	require.NoError(t, err)
	var pids []int
	for line := range strings.FieldsSeq(string(b)) {
		pid, err := strconv.Atoi(line)
		require.NoError(t, err)
		pids = append(pids, pid)
	}
	return pids
}

// living are those that have not ended; one that nobody has reaped has ended.
func living(pids []int) (alive []int) {
	for _, pid := range pids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		if _, rest, _ := strings.Cut(string(b), ") "); !strings.HasPrefix(rest, "Z") {
			alive = append(alive, pid)
		}
	}
	return alive
}

// requireGone waits for the end of processes, and ends those that the test has shown to survive.
func requireGone(t *testing.T, pids []int) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	left, limit := living(pids), effort.Of(effort.Patience, effort.Patience, goneLimit)
	for deadline := time.Now().Add(limit); len(left) > 0 && time.Now().Before(deadline); left = living(pids) {
		<-tick.C
	}
	for _, pid := range left {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	require.Empty(t, left, "of %v", pids)
}

// mechanisms are the ways of holding a tree together, those that this machine allows.
func eachMechanism(t *testing.T, test func(t *testing.T, cgroups string)) {
	t.Helper()
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has what holds descendants together")
	}
	for name, cgroups := range map[string]string{"best": "", "cgroup v1": "1", "subreaper": "none"} {
		t.Run(name, func(t *testing.T) { test(t, cgroups) })
	}
}

func TestDescendantsEndWithTheirInterpreter(t *testing.T) {
	effort.Unraced(t)
	ends := map[string]struct{ then, text string }{
		"normal":   {"pass", ""}, // and those that a closed pool ends
		"failure":  {"1 / 0", "ZeroDivisionError"},
		"timeout":  {"any(time.sleep(1) for _ in iter(int, 1))", "the time for one row is over"}, // see TestEndlessRows
		"deaf":     {"signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65)); time.sleep(1e6)", "did not stop"},
		"memory":   {"bytearray(1 << 40)", "MemoryError"},
		"exit":     {"os._exit(3)", "exit status 3"},
		"sys.exit": {"sys.exit(3)", "SystemExit"},
		"crash":    {"os.kill(os.getpid(), signal.SIGSEGV)", "segmentation fault"},
		"killed":   {"os.kill(os.getpid(), signal.SIGKILL)", "the system killed"},
	}
	eachMechanism(t, func(t *testing.T, cgroups string) {
		for name, end := range ends {
			if cgroups != "" && name != "normal" && (name != "exit" || !effort.All()) {
				continue // the ways to this end are the same
			}
			if effort.Of(name != "normal" && name != "deaf" && name != "killed", false, false) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				clock, then := newStillClock(t, name == "deaf"), end.then
				if name == "timeout" || name == "deaf" {
					then = clock.hang() + "; " + then
				}
				pool := newTestPool(t, Config{Size: 1, MemoryBytes: 256 << 20, RowTimeout: time.Second,
					Env: []string{cgroupsName + "=" + cgroups}, clock: clock.now})
				_, err := pool.Run(t.Context(), familyProgram(dir, then), ints(2), discard)
				if end.text == "" {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, end.text)
				}
				requireWorks(t, pool)
				require.NoError(t, pool.Close())
				pids := familyPids(t, dir)
				require.Len(t, pids, familyMembers)
				requireGone(t, pids)
			})
		}
	})
}

// TestCancelEndsEverything gives up a Run, as Ctrl-C does, whose formula is deep in C,
// deaf to signals, and has a family.
func TestCancelEndsEverything(t *testing.T) {
	effort.Raced(t)
	eachInterpreter(t, func(t *testing.T, interpreter string) {
		dir := t.TempDir()
		ready := filepath.Join(dir, "ready")
		pool := newTestPool(t, Config{Interpreter: interpreter, Size: 1})
		prog := familyProgram(dir,
			fmt.Sprintf("open(%q, 'w').close(); signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65)); 7 ** 7 ** 9",
				ready))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			_ = waitForFile(ctx, ready) // without it the Run below does not end
			cancel()
		}()
		_, err := pool.Run(ctx, prog, ints(2), discard)
		require.ErrorIs(t, err, context.Canceled)
		pids := familyPids(t, dir)
		require.Len(t, pids, familyMembers)
		requireGone(t, pids) // before the pool is closed
	})
}

// TestDescendantsEndWithUs kills the process that runs a pool.
func TestDescendantsEndWithUs(t *testing.T) {
	effort.Unraced(t)
	all := []unix.Signal{unix.SIGKILL, unix.SIGTERM, unix.SIGSEGV}
	eachMechanism(t, func(t *testing.T, cgroups string) {
		for _, sig := range effort.Of(all[:1], all[:1], all) {
			t.Run(sig.String(), func(t *testing.T) {
				t.Parallel()
				r := startRunner(t, cgroups)
				require.NoError(t, r.cmd.Process.Signal(sig))
				_ = r.cmd.Wait() // it was killed
				requireGone(t, append(r.pids, r.below...))
			})
		}
	})
}

// TestDescendantsOfAKilledKeeper kills the keeper, too: a cgroup is left, and the next keeper ends what is in it.
func TestDescendantsOfAKilledKeeper(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	r := startRunner(t, "")
	if !strings.Contains(r.mechanism, "cgroup") {
		require.NoError(t, r.cmd.Process.Kill())
		_ = r.cmd.Wait()
		requireGone(t, r.pids)
		t.Skipf("there are no cgroups here, but %s", r.mechanism)
	}
	for _, pid := range append(r.keepers, r.cmd.Process.Pid) {
		require.NoError(t, unix.Kill(pid, unix.SIGKILL))
	}
	_ = r.cmd.Wait() // it was killed
	requireGone(t, r.keepers)
	requireWorks(t, newTestPool(t, Config{Size: 1}))
	requireGone(t, append(r.pids, r.below...))
}

// runner is a process that runs a pool, with a formula that has started its family and does not end.
type runner struct {
	cmd       *exec.Cmd
	pids      []int // of the family
	below     []int // keeper and interpreter
	keepers   []int
	mechanism string
}

func startRunner(t *testing.T, cgroups string) *runner {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	r := &runner{cmd: exec.Command(self, runnerArgument, dir)}
	r.cmd.Env = append(os.Environ(), cgroupsName+"="+cgroups)
	require.NoError(t, r.cmd.Start())
	t.Cleanup(func() { _ = r.cmd.Process.Kill() })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	require.NoError(t, waitForFile(ctx, filepath.Join(dir, "ready")))
	r.pids = familyPids(t, dir)
	require.Len(t, r.pids, familyMembers)
	b, err := os.ReadFile(filepath.Join(dir, "mechanism"))
	require.NoError(t, err)
	r.mechanism = string(b)
	for _, pid := range childrenOf(r.cmd.Process.Pid) {
		r.keepers = append(r.keepers, pid)
		r.below = append(append(r.below, pid), childrenOf(pid)...)
	}
	require.NotEmpty(t, r.keepers)
	return r
}

// childrenOf looks at the parents of all processes.
func childrenOf(parent int) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // fails for a bad pattern only
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		if f := strings.Fields(rest); len(f) > 1 && f[1] == strconv.Itoa(parent) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// runnerMain is the life of such a process.
func runnerMain(dir string) int {
	log := slog.New(slog.NewTextHandler(mechanismFile{dir}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	pool, err := NewPool(Config{Size: 1, Keeper: "/proc/self/exe",
		Env: []string{cgroupsName + "=" + os.Getenv(cgroupsName)}, Logger: log})
	if err != nil {
		return 1
	}
	ready := filepath.Join(dir, "ready")
	_, err = pool.Run(context.Background(),
		familyProgram(dir, fmt.Sprintf("open(%q, 'w').close(); time.sleep(1e6)", ready)), ints(2), discard)
	fmt.Fprintln(os.Stderr, "the runner was not killed:", err)
	return 1
}

// mechanismFile keeps what the log says of how children are held.
type mechanismFile struct{ dir string }

func (m mechanismFile) Write(b []byte) (int, error) {
	if _, how, ok := strings.Cut(string(b), "children_held_by="); ok {
		return len(b), os.WriteFile(filepath.Join(m.dir, "mechanism"), []byte(how), 0o600)
	}
	return len(b), nil
}

// TestChildThatGoesOnComputing forks in a formula and lets the child fall through:
// its answer must not be taken for the interpreter's.
func TestChildThatGoesOnComputing(t *testing.T) {
	effort.Raced(t)
	eachInterpreter(t, func(t *testing.T, interpreter string) {
		pool := newTestPool(t, Config{Interpreter: interpreter, Size: 1})
		var got results
		_, err := pool.Run(t.Context(), intProgram("twice(r.n)", "import os", "def twice(n):",
			"  if n % 100 == 5: return n if os.fork() else -1", "  return n"), ints(1000), got.emit)
		require.NoError(t, err)
		for i, row := range got.rows {
			require.Equal(t, int64(i), row[0])
		}
	})
}

// TestForkingWithoutEnd has a process that is always another one: no list of processes is ever true of it.
func TestForkingWithoutEnd(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	r := startRunner(t, "")
	require.NoError(t, r.cmd.Process.Kill())
	_ = r.cmd.Wait() // it was killed
	requireGone(t, append(r.pids, r.below...))
	if !strings.Contains(r.mechanism, "cgroup") {
		t.Skipf("there are no cgroups here, but %s", r.mechanism)
	}
	alive := filepath.Join(t.TempDir(), "alive")
	pool := newTestPool(t, Config{Size: 1})
	comet := intProgram("run(r.n)", "import os, time", "def run(n):", "  if os.fork() == 0:", "    os.setsid()",
		"    while True:",
		"      if os.fork(): os._exit(0)", "      os.utime("+strconv.Quote(alive)+")", "  return n")
	require.NoError(t, os.WriteFile(alive, nil, 0o600))
	_, err := pool.Run(t.Context(), comet, ints(1), discard)
	require.NoError(t, err)
	require.NoError(t, pool.Close())
	before, err := os.Stat(alive)
	require.NoError(t, err)
	requireWorks(t, newTestPool(t, Config{Size: 1})) // takes its time
	after, err := os.Stat(alive)
	require.NoError(t, err)
	require.Equal(t, before.ModTime(), after.ModTime(), "it still runs")
}
