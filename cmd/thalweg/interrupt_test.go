package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/test/effort"
)

const (
	// interruptedWithin is the promise of docs/guarantees.md: how long Ctrl-C takes.
	interruptedWithin = 2 * time.Second
	// starvedMax bounds what a machine with other work may add (see cpuPressure).
	starvedMax = 3 * time.Second
	// runsWait is longer than any machine takes for all that a test does.
	runsWait = 10 * time.Minute
)

// heavyRuns are scripts that would work for minutes, each in another way. The
// first node is cheap; when its table is there the second one is at work.
func heavyRuns() map[string]string {
	const read = "nodes:\n  read:\n    type: file_table\n    r: {urls: [in.csv], types: {a: int}}\n    w: t\n"
	sql := func(query string) string {
		return read + "  heavy:\n    type: sql\n    r: [t]\n    query: |\n      " + query +
			"\n    w: {name: heavy, fields: {n: int}}\n"
	}
	// Rows of 96 kB without a period, and patterns over them whose automata have
	// more states than are worth keeping: what is alike would be matched once.
	patterns := func() string {
		var each []string
		for i := range 100 {
			each = append(each, fmt.Sprintf("re.MatchString(`[0-7][0-9a-f]{%d}x`, r.s)", 20+i))
		}
		return read + "  heavy:\n    type: table_table\n    r: big\n" +
			"    w: {name: heavy, fields: [{x: 'string(" + strings.Join(each, " || ") + ")'}]}\n" +
			"  big:\n    type: sql\n    r: [t]\n    query: >-\n" +
			"      SELECT a, list_aggregate(list_transform(range(3000), lambda i: md5(concat(a, ' ', i))), " +
			"'string_agg', '') AS s\n" +
			"      FROM t WHERE a < 300\n    w: {name: big, fields: {a: int, s: string}}\n"
	}
	python := func(code string) string {
		return read + "  heavy:\n    type: table_custom_tfm_table\n    custom_proc_type: py_calc\n    r: t\n    " +
			"p:\n      python_code_urls: [f.py]\n" +
			"      calculated_fields: {x: {expression: 'f(r.a)', type: int}}\n    w: {name: heavy, fields: {x: " +
			"{expression: p.x, type: int}}}\n-- f.py --\n" + code
	}
	return map[string]string{
		"cross join": sql("SELECT count(*) AS n FROM t AS a, t AS b, t AS c, t AS d WHERE (a.a * b.a + c.a * " +
			"d.a) % 7 = 8"),
		"one long row": sql("SELECT len(list_filter(range(a * 0 + 3000000000), lambda x: x % 7 = 8)) AS n FROM t " +
			"WHERE a = 0"),
		"nested lists": sql("SELECT list_sum(list_transform(range(a * 0 + 100000), lambda x: " +
			"list_sum(list_transform(range(1000), lambda y: x * y % 7)))) AS n FROM t"),
		"regular regex": sql("SELECT count(*) AS n FROM t AS a, t AS b " +
			"WHERE regexp_matches(repeat('ab', 100000 + a.a + b.a), '(a|b)*c(a|b)*d')"),
		"sort": sql("SELECT row_number() OVER (ORDER BY md5(concat(a.a, b.a, c.a))) AS n FROM t AS a, t AS b, t AS c"),
		"hash aggregate": sql("SELECT count(*) AS n FROM (" +
			"SELECT md5(concat(a.a, b.a, c.a)) AS k, count(*) AS n FROM t AS a, t AS b, t AS c GROUP BY k) AS g"),
		"patterns":       patterns(),
		"endless Python": python("def f(a):\n    open(\"started\", \"w\").close()\n    while True:\n        pass\n"),
		"deaf Python": python("import signal\nsignal.signal(signal.SIGTERM, " +
			"signal.SIG_IGN)\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n" +
			"def f(a):\n    open(\"started\", \"w\").close()\n    while True:\n        try:\n            while True: " +
			"pass\n        except BaseException:\n            pass\n"),
	}
}

// interruptSample lists the kinds of runs that are tried where THALWEG_CHAOS does not ask for all.
var interruptSample = []string{"one long row", "nested lists", "endless Python"}

// TestChaosInterrupt starts a run of each kind, interrupts it while it
// works, and wants it to end in time, and what it left to be resumable.
func TestChaosInterrupt(t *testing.T) {
	for name, archive := range heavyRuns() {
		if !effort.All() && !slices.Contains(interruptSample, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			script, code, _ := strings.Cut(archive, "-- f.py --\n")
			dir := heavyDir(t, script, code)
			ctx, cancel := context.WithTimeout(t.Context(), runsWait)
			defer cancel()
			run := startHeavy(ctx, t, dir, "--memory", "1GB")
			awaitWork(ctx, t, run.Process.Pid, filepath.Join(dir, "started"))
			require.NoError(t, run.Process.Signal(syscall.SIGINT))
			requireEndsSoon(t, run, exitInterrupted)
			require.Regexp(t, `"(stopped|interrupted)"`, listRuns(ctx, t, dir))
			// The batch is nobody's any more: another run at it may begin.
			again := startHeavy(ctx, t, dir, "--resume", "--memory", "1GB")
			require.NoError(t, again.Process.Kill())
			err := again.Wait()
			require.True(t, errors.As(err, new(*exec.ExitError)), "it was killed: %v", err)
		})
	}
}

// heavyDir has a script, its formulas and 2,000 rows.
func heavyDir(t *testing.T, script, code string) string {
	t.Helper()
	dir := t.TempDir()
	var rows strings.Builder
	rows.WriteString("a\n")
	for i := range 2000 {
		fmt.Fprintln(&rows, i)
	}
	for file, text := range map[string]string{"script.yaml": script, "f.py": code, "in.csv": rows.String()} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	}
	return dir
}

func thalweg(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "thalweg", args...)
	cmd.Dir = dir
	return cmd
}

// startHeavy starts a run and waits until a batch of its heavy node has begun.
func startHeavy(ctx context.Context, t *testing.T, dir string, flags ...string) *exec.Cmd {
	t.Helper()
	run := thalweg(ctx, dir, append([]string{"run", "script.yaml", "--json"}, flags...)...)
	run.Stderr = new(strings.Builder)
	events, err := run.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, run.Start())
	awaitHeavy(t, events)
	return run
}

// requireEndsSoon waits for a run, which has been told to end. It holds it to the promise
// where everything is asked for, which is on a machine that has time for it, and to the
// order of magnitude elsewhere.
func requireEndsSoon(t *testing.T, run *exec.Cmd, code int) {
	t.Helper()
	begin, starved := time.Now(), cpuPressure(t)
	_ = run.Wait()
	took := time.Since(begin)
	starved = cpuPressure(t) - starved
	require.Equal(t, code, run.ProcessState.ExitCode(), run.Stderr)
	t.Logf("it took %v; something waited for a processor for %v of it", took, starved)
	effort.Promised(t, begin, interruptedWithin+min(starved, starvedMax), run.Stderr)
}

func listRuns(ctx context.Context, t *testing.T, dir string) string {
	t.Helper()
	out, err := thalweg(ctx, dir, "runs", "--json").Output()
	require.NoError(t, err)
	return string(out)
}

// awaitHeavy reads events until a batch of the heavy node has begun; the rest is
// read and thrown away, so that the run does not wait for its reader.
func awaitHeavy(t *testing.T, events io.Reader) {
	t.Helper()
	lines := bufio.NewScanner(events)
	last := ""
	for lines.Scan() {
		last = lines.Text()
		if line := lines.Text(); strings.Contains(line, `"batch_started"`) && strings.Contains(line, `"heavy"`) {
			go func() { _, _ = io.Copy(io.Discard, events) }()
			return
		}
	}
	t.Fatal("the heavy node does not begin: " + last)
}

// workSeconds of a processor show that a batch is in the middle of it.
const workSeconds = 0.5

// awaitWork waits until the process has worked for a while, or a formula has
// left a sign.
func awaitWork(ctx context.Context, t *testing.T, pid int, sign string) {
	t.Helper()
	before, tick := cpuSeconds(t, pid), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for cpuSeconds(t, pid)-before < workSeconds {
		if _, err := os.Stat(sign); err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("the run does not work")
		}
	}
}

// cpuSeconds returns the processor time that a process has used.
func cpuSeconds(t *testing.T, pid int) float64 {
	t.Helper()
	const ticksPerSecond = 100 // of Linux, whatever its own clock
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err, "the run has ended by itself")
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	require.Greater(t, len(fields), 12)
	require.NotEqual(t, "Z", fields[0], "the run has ended by itself: it is not heavy enough")
	user, err := strconv.Atoi(fields[11])
	require.NoError(t, err)
	system, err := strconv.Atoi(fields[12])
	require.NoError(t, err)
	return float64(user+system) / ticksPerSecond
}

// cpuPressure is for how long something on this machine has waited for a
// processor: by so much later may an interrupted run end. Where the kernel does
// not tell, there is no excuse.
func cpuPressure(t *testing.T) time.Duration {
	t.Helper()
	const firstLine = "some avg10=%f avg60=%f avg300=%f total=%d"
	text, err := os.ReadFile("/proc/pressure/cpu")
	if err != nil {
		return 0
	}
	var avg10, avg60, avg300 float64
	var microseconds int64
	_, err = fmt.Sscanf(string(text), firstLine, &avg10, &avg60, &avg300, &microseconds)
	require.NoError(t, err, "%s", text)
	return time.Duration(microseconds) * time.Microsecond
}

// TestFailureDoesNotWait: a batch that fails while another one works at what
// cannot be interrupted soon ends the run as soon as Ctrl-C would.
func TestFailureDoesNotWait(t *testing.T) {
	script, _, _ := strings.Cut(heavyRuns()["one long row"], "-- f.py --")
	script += "  fails:\n    type: table_custom_tfm_table\n    custom_proc_type: py_calc\n    r: t\n    p:\n      " +
		"python_code_urls: [f.py]\n" +
		"      calculated_fields: {x: {expression: 'f(r.a)', type: int}}\n    w: {name: fails, fields: {x: " +
		"{expression: p.x, type: int}}}\n"
	code := "import os, time\ndef f(a):\n    while not os.path.exists('go'):\n        time.sleep(0.01)\n    raise " +
		"ValueError('enough')\n"
	dir := heavyDir(t, script, code)
	ctx, cancel := context.WithTimeout(t.Context(), runsWait)
	defer cancel()
	run := startHeavy(ctx, t, dir, "--memory", "2GB", "--cores", "2")
	awaitWork(ctx, t, run.Process.Pid, filepath.Join(dir, "started"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	requireEndsSoon(t, run, exitUsers)
	runs := listRuns(ctx, t, dir)
	require.Contains(t, runs, `"failed"`)
	require.Contains(t, runs, "enough")
}
