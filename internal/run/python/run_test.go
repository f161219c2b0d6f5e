package python

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/expr"
	"thalweg/internal/test/effort"
)

func writeScript(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "interpreter")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
	return path
}

func TestOrder(t *testing.T) {
	eachInterpreter(t, func(t *testing.T, interpreter string) {
		pool := newTestPool(t, Config{Interpreter: interpreter, Size: 3, ChunkTarget: time.Millisecond})
		const rows = 200_000
		want := int64(0)
		stats, err := pool.Run(t.Context(), intProgram("r.n * 2"), ints(rows), func(row []any) error {
			if row[0] != want*2 {
				return fmt.Errorf("row %d has %v", want, row[0])
			}
			want++
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, int64(rows), stats.Rows)
		require.Greater(t, stats.Chunks, int64(10))
		require.Less(t, stats.Chunks, int64(rows), "they grow, by how much depends on how long they take")
		require.Positive(t, stats.Busy)
		require.Greater(t, stats.PeakBytes, int64(1<<20))
	})
}

func TestNoRows(t *testing.T) {
	t.Parallel()
	pool := newTestPool(t, Config{})
	stats, err := pool.Run(t.Context(), intProgram("r.n"), ints(0), discard)
	require.NoError(t, err)
	require.Zero(t, stats)
}

func TestExpressions(t *testing.T) {
	eachInterpreter(t, func(t *testing.T, interpreter string) {
		pool := newTestPool(t, Config{Interpreter: interpreter, Size: 1})
		prog := &Program{
			Files: source(
				"from __future__ import annotations",
				"from dataclasses import dataclass, field",
				"r_n = 'global'; p_a = 'global'; zip = enumerate = range = run = None",
				"@dataclass",
				"class Point:\n  x: int = field(default=1)",
				"def describe(text: str, times: int = 2) -> str:\n  return text * times",
			),
			Inputs: []Column{{Name: "n", Type: expr.Int}, {Name: "class", Type: expr.String}},
			Fields: []Field{
				{Name: "a", Type: expr.String, Expr: "'r.n' + str(r.n) + \"p.a\""},
				{Name: "b", Type: expr.String, Expr: "describe(r_n + p.a)"},
				{Name: "lambda", Type: expr.String,
					Expr: "\n  f\"{p.a}\" +\n  ''.join(c for c in p.b if c != str(r.n)) "},
				{Name: "x", Type: expr.Int, Expr: "Point(r.n).x"},
				{Name: "name", Type: expr.String, Expr: "__name__[:16] + __file__"},
			},
		}
		prog.Inputs[1].Name = "klass"
		got, err := runRows(t, pool, prog, []any{int64(1), "k"})
		require.NoError(t, err)
		require.Equal(t, [][]any{{"r.n1p.a", "globalr.n1p.aglobalr.n1p.a", "r.n1p.aglobalr.np.aglobalr.np.a", int64(1),
			"thalweg_program_formulas.py"[:16] + "formulas.py"}}, got)
	})
}

func TestSkewedRowsKeepBothProcessesBusy(t *testing.T) {
	t.Parallel()
	pool := newTestPool(t, Config{Size: 2})
	// The first row ends when nearly all others have been computed: but for one chunk of
	// a few, which may wait behind it. Were more given to its process, it would never end.
	dir := t.TempDir()
	prog := intProgram("wait(r.n)", "import os, time", fmt.Sprintf("os.chdir(%q)", dir), "def wait(n):",
		"  while n == 0 and len(os.listdir()) < 90: time.sleep(0.01)",
		"  if n: open(str(n), 'w').close()", "  time.sleep(0.01)", "  return n")
	_, err := pool.Run(t.Context(), prog, ints(101), discard)
	require.NoError(t, err)
}

func TestRunsShareTheProcesses(t *testing.T) {
	t.Parallel()
	pool := newTestPool(t, Config{Size: 2})
	prog := intProgram("wait(r.n)", "import time", "def wait(n):", "  time.sleep(0.005)", "  return n")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	under := make(chan struct{})
	var once sync.Once
	var done atomic.Int64 // rows of the long Run
	long := make(chan error, 1)
	go func() {
		_, err := pool.Run(ctx, prog, ints(1_000_000),
			func([]any) error { done.Add(1); once.Do(func() { close(under) }); return nil })
		long <- err
	}()
	<-under
	// The long Run occupies both processes; the short one must get its share at once.
	before := done.Load()
	_, err := pool.Run(t.Context(), prog, ints(50), discard)
	require.NoError(t, err)
	require.Less(t, done.Load()-before, int64(500), "rows of the long Run that the short one has waited for")
	cancel()
	require.Equal(t, fault.Canceled, fault.Of(<-long).Kind)
}

func TestNeediestRun(t *testing.T) {
	t.Parallel()
	some := []*chunk{{}}
	idle := &run{inProcess: 0}
	one := &run{ready: some, inProcess: 1, busy: 5}
	oneRested := &run{ready: some, inProcess: 1, busy: 4}
	two := &run{ready: some, inProcess: 2}
	for _, test := range []struct {
		name string
		runs []*run
		want *run
	}{
		{"nobody", nil, nil},
		{"nothing ready", []*run{idle}, nil},
		{"fewest in processes", []*run{two, idle, one}, one},
		{"least time used", []*run{one, oneRested, two}, oneRested},
	} {
		require.Same(t, test.want, (&Pool{runs: test.runs}).neediest(), test.name)
	}
}

func TestFreeSlot(t *testing.T) {
	t.Parallel()
	cfg := Config{ChunkTarget: 50 * time.Millisecond}
	short := &chunk{weight: 50, run: &run{rowCost: 1e6}}
	long := &chunk{weight: 50, run: &run{rowCost: 3e6}}
	unknown := &chunk{weight: 1, run: &run{}}
	idle, busy := &slot{}, &slot{load: 1, last: short}
	for _, test := range []struct {
		name     string
		slots    []*slot
		want     *slot
		prefetch bool
	}{
		{"idle first", []*slot{busy, idle}, idle, false},
		{"behind a short chunk", []*slot{{load: 1, last: long}, busy}, busy, true},
		{"not behind what may be long", []*slot{{load: 1, last: long}, {load: 1, last: unknown}}, nil, true},
		{"not a third one", []*slot{{load: maxChunksInProcess, last: short}}, nil, true},
		{"not when stopped", []*slot{{stopped: true}}, nil, true},
	} {
		got, prefetch := (&Pool{cfg: cfg, slots: test.slots, limit: len(test.slots)}).freeSlot()
		require.Same(t, test.want, got, test.name)
		require.Equal(t, test.prefetch, prefetch, test.name)
	}
}

func TestLastChunksWaitForAFreeProcess(t *testing.T) {
	t.Parallel()
	for _, ended := range []bool{false, true} {
		short := &chunk{rows: 1, weight: 1, run: &run{rowCost: 1}}
		r := &run{ended: ended}
		r.ready = []*chunk{{run: r}}
		busy := &slot{load: 1, last: short, wake: make(chan struct{}, 1)}
		pool := &Pool{cfg: Config{ChunkTarget: time.Second}, slots: []*slot{busy}, limit: 1, runs: []*run{r}}
		pool.schedule()
		require.Equal(t, ended, len(r.ready) == 1)
		require.Equal(t, ended, len(busy.assigned) == 0)
	}
}

func TestChunksGrowWithMeasure(t *testing.T) {
	t.Parallel()
	cfg := &Config{ChunkTarget: 50 * time.Millisecond}
	r := &run{}
	for _, step := range []struct {
		rows int
		busy time.Duration
		want int64
	}{
		{0, time.Second, 0},                       // says nothing
		{1, time.Microsecond, 4},                  // at most four times as many
		{4, 4 * time.Microsecond, 16},             //
		{16, 16 * time.Second, 1},                 // suddenly a second a row
		{1, time.Microsecond, 1},                  // not forgotten at once
		{64 << 10, 64 << 10 * time.Nanosecond, 1}, //
	} {
		r.learn(step.rows, step.busy, cfg)
		require.Equal(t, step.want, r.chunkRows.Load())
	}
	for range 40 {
		r.learn(maxChunkRows, maxChunkRows*time.Nanosecond, cfg)
	}
	require.Equal(t, int64(maxChunkRows), r.chunkRows.Load())
}

func TestManyRunsAtATime(t *testing.T) {
	eachInterpreter(t, func(t *testing.T, interpreter string) {
		pool := newTestPool(t, Config{Interpreter: interpreter, Size: 2, ChunkTarget: time.Millisecond})
		var wg sync.WaitGroup
		for k := range 2*maxProgramsInMemory + 3 { // more than a process remembers
			wg.Go(func() {
				prog := intProgram(fmt.Sprintf("add(r.n) + %d", k), fmt.Sprintf("def add(n): return n + %d", 10*k))
				for range 3 {
					var got results
					_, err := pool.Run(t.Context(), prog, ints(500), got.emit)
					if err != nil || len(got.rows) != 500 {
						t.Errorf("run %d: %d rows: %v", k, len(got.rows), err)
						return
					}
					for i, row := range got.rows {
						if row[0] != int64(i+11*k) {
							t.Errorf("run %d, row %d: %v", k, i, row[0])
							return
						}
					}
				}
			})
		}
		wg.Wait()
	})
}

func TestOneFailureDoesNotHurtOthers(t *testing.T) {
	t.Parallel()
	pool := newTestPool(t, Config{Size: 2, ChunkTarget: time.Millisecond})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range effort.Of(2, 6, 6) {
				_, err := pool.Run(t.Context(), intProgram("end(r.n)", "import os", "def end(n):",
					fmt.Sprintf("  if n == %d: os._exit(1)", 100*i), "  return n"), ints(1000), discard)
				if f := fault.Of(err); f == nil || f.Place.Record != int64(100*i+1) {
					t.Errorf("the failing run: %v", err)
				}
			}
		})
		wg.Go(func() {
			for range effort.Of(2, 6, 6) {
				var got results
				if _, err := pool.Run(t.Context(), intProgram("r.n + 1"), ints(20_000), got.emit); err != nil ||
					len(got.rows) != 20_000 {
					t.Errorf("the good run: %d rows: %v", len(got.rows), err)
				}
			}
		})
	}
	wg.Wait()
}

func TestCodeIsImportedOnce(t *testing.T) {
	t.Parallel()
	path := touchFile(t)
	pool := newTestPool(t, Config{Size: 2, Env: []string{"TOUCH=" + path}})
	prog := intProgram("r.n", "import os", "with open(os.environ['TOUCH'], 'a') as f: f.write('x')")
	for range 5 {
		_, err := pool.Run(t.Context(), prog, ints(1000), discard)
		require.NoError(t, err)
	}
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.LessOrEqual(t, len(b), 2)
}

func TestProgramsAreApart(t *testing.T) {
	t.Parallel()
	pool := newTestPool(t, Config{Size: 1})
	one, two := intProgram("f()", "import itertools", "def f(): return 1"),
		intProgram("f()", "def f(): return 2 if 'itertools' not in globals() else 3")
	for range 2 {
		got, err := runRows(t, pool, one, []any{int64(0)})
		require.NoError(t, err)
		require.Equal(t, [][]any{{int64(1)}}, got)
		got, err = runRows(t, pool, two, []any{int64(0)})
		require.NoError(t, err)
		require.Equal(t, [][]any{{int64(2)}}, got)
	}
}

func TestCancel(t *testing.T) {
	eachInterpreter(t, func(t *testing.T, interpreter string) {
		path := touchFile(t)
		pool := newTestPool(t, Config{Interpreter: interpreter, Size: 1, RowTimeout: time.Hour,
			Env: []string{"TOUCH=" + path}})
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("a person asked for it")
		go func() {
			if waitForFile(t.Context(), path) == nil {
				cancel(cause)
			}
		}()
		_, err := pool.Run(ctx, intProgram("hang(r.n)", "import os, time", "def hang(n):", "  if n == 7:",
			"    open(os.environ['TOUCH'], 'w')", "    time.sleep(1e6)", "  return n"), ints(1000), discard)
		require.ErrorIs(t, err, cause)
		require.Equal(t, fault.Canceled, fault.Of(err).Kind)
		requireWorks(t, pool) // the process that slept for days was replaced
	})
}

func TestCloseEndsRuns(t *testing.T) {
	t.Parallel()
	path := touchFile(t)
	pool, err := NewPool(Config{Size: 1, Env: []string{"TOUCH=" + path}})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		_, err := pool.Run(t.Context(), intProgram("hang()", "import os, time", "def hang():",
			"  open(os.environ['TOUCH'], 'w')", "  time.sleep(1e6)"), ints(1), discard)
		done <- err
	}()
	require.NoError(t, waitForFile(t.Context(), path))
	require.NoError(t, pool.Close())
	err = <-done
	require.ErrorIs(t, err, ErrClosed)
	require.Equal(t, fault.Canceled, fault.Of(err).Kind)
	require.NoError(t, pool.Close())
	_, err = pool.Run(t.Context(), intProgram("1"), ints(1), discard)
	require.ErrorIs(t, err, ErrClosed)
}

func TestErrorsOfCallers(t *testing.T) {
	t.Parallel()
	pool := newTestPool(t, Config{Size: 2})
	mine := errors.New("the disk is full")
	_, err := pool.Run(t.Context(), intProgram("r.n"), ints(100_000), func([]any) error { return mine })
	require.ErrorIs(t, err, mine)

	n := ints(100)
	_, err = pool.Run(t.Context(), intProgram("r.n"), func() (Row, error) {
		row, err := n()
		if err == io.EOF {
			return nil, mine
		}
		return row, err
	}, discard)
	require.ErrorIs(t, err, mine)
	require.ErrorContains(t, err, "read row 101 for Python")
	requireWorks(t, pool)
}

// TestHoldInterpreter is the process that TestInterpretersDieWithTheirParent kills.
func TestHoldInterpreter(t *testing.T) {
	path := os.Getenv("HOLD_INTERPRETER")
	if path == "" {
		t.Skip("part of another test")
	}
	pool := newTestPool(t, Config{Size: 1})
	_, err := pool.Run(t.Context(), intProgram("hang()", "import os, time", "def hang():",
		fmt.Sprintf("  with open(%q, 'w') as f: f.write(str(os.getpid()))", path+".tmp"),
		fmt.Sprintf("  os.rename(%q, %q)", path+".tmp", path), "  time.sleep(1e6)"), ints(1), discard)
	require.NoError(t, err)
}

func TestInterpretersDieWithTheirParent(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells a child of its parent's death")
	}
	path := touchFile(t)
	holder := exec.Command(os.Args[0], "-test.run=^TestHoldInterpreter$")
	holder.Env = append(os.Environ(), "HOLD_INTERPRETER="+path)
	require.NoError(t, holder.Start())
	require.NoError(t, waitForFile(t.Context(), path))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	pid, err := strconv.Atoi(string(text))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, 0))

	require.NoError(t, holder.Process.Kill())
	require.Error(t, holder.Wait())
	require.Eventually(t, func() bool {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		return err != nil || bytes.Contains(status, []byte("State:\tZ"))
	}, effort.Patience, 10*time.Millisecond)
}

func TestPrintFlood(t *testing.T) {
	eachInterpreter(t, func(t *testing.T, interpreter string) {
		var log lockedBuffer
		pool := newTestPool(t, Config{Interpreter: interpreter, Size: 1,
			Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		prog := intProgram("flood(r.n)", "import os, sys", "def flood(n):", "  print('x' * 1000)",
			"  os.write(2, b'y' * 1000)", "  sys.stdout.write('z')", "  return n")
		var got results
		_, err := pool.Run(t.Context(), prog, ints(5000), got.emit)
		require.NoError(t, err)
		require.Len(t, got.rows, 5000)
		require.Contains(t, log.String(), "python printed")
		require.Less(t, len(log.String()), 200_000, "what is printed is logged with measure")
	})
}

func TestStandardInputIsEmpty(t *testing.T) {
	t.Parallel()
	pool := newTestPool(t, Config{Size: 1})
	got, err := runRows(t, pool, intProgram("len(sys.stdin.read())", "import sys"), []any{int64(1)})
	require.NoError(t, err)
	require.Equal(t, [][]any{{int64(0)}}, got)
}

func TestEnvironmentIsOurs(t *testing.T) {
	t.Setenv("SECRET_TOKEN", "for the worker's eyes only")
	pool := newTestPool(t, Config{Size: 1, Env: []string{"GIVEN=yes"}, Dir: t.TempDir()})
	prog := &Program{
		Files: source("import os, sys, time"),
		Fields: []Field{{Name: "env", Type: expr.String,
			Expr: "' '.join(sorted(set(os.environ) - {'PATH', 'HOME', 'LANG'}))"},
			{Name: "zone", Type: expr.String, Expr: "time.tzname[0]"}, {Name: "hash", Type: expr.Int,
				Expr: "hash('stable')"}},
	}
	var first []any
	for range 2 {
		got, err := runRows(t, pool, prog, []any{})
		require.NoError(t, err)
		names := strings.Fields(got[0][0].(string))
		require.Contains(t, names, "GIVEN")
		for _, name := range names { // a version manager's shim may add its own
			require.NotContains(t, name, "SECRET")
		}
		require.Equal(t, "UTC", got[0][1])
		if first != nil {
			require.Equal(t, first, got[0], "hashes are the same in every process")
		}
		first = got[0]
		_ = runFault(t, pool, intProgram("os._exit(0)", "import os"), 1) // another process
	}
}

func TestLargeRows(t *testing.T) {
	eachInterpreter(t, func(t *testing.T, interpreter string) {
		pool := newTestPool(t, Config{Interpreter: interpreter, Size: 2})
		prog := &Program{
			Inputs: []Column{{Name: "s", Type: expr.String}},
			Fields: []Field{{Name: "s", Type: expr.String, Expr: "r.s + '!'"}},
		}
		texts := []string{strings.Repeat("x", 600_000), strings.Repeat("ü", 300_000), "small",
			strings.Repeat("z", 9_000_000)}
		i := -1
		k := 0
		stats, err := pool.Run(t.Context(), prog, func() (Row, error) {
			if i++; i == 60 {
				return nil, io.EOF
			}
			return values{texts[i%len(texts)]}, nil
		}, func(row []any) error {
			if row[0] != texts[k%len(texts)]+"!" {
				return fmt.Errorf("row %d differs", k)
			}
			k++
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, int64(60), stats.Rows)
	})
}

func TestProcessThatGrowsIsReplaced(t *testing.T) {
	t.Parallel()
	pool := newTestPool(t, Config{Size: 1, RecycleBytes: 60 << 20})
	prog := intProgram("leak(r.n)", "import os", "kept = []", "def leak(n):",
		"  kept.append(bytearray(10 << 20) if n else b'')", "  return os.getpid()")
	first := map[any]bool{}
	for i := range 40 {
		got, err := runRows(t, pool, prog, []any{int64(i)})
		require.NoError(t, err)
		first[got[0][0]] = true
	}
	if memoryNow, _ := memoryOf(os.Getpid()); memoryNow == 0 {
		t.Skip("the system does not say how much memory a process has")
	}
	require.Greater(t, len(first), 1)
}

func TestWindowBoundsWhatIsHeld(t *testing.T) {
	t.Parallel()
	pool := newTestPool(t, Config{Size: 2, MaxChunkBytes: 64 << 10})
	text := strings.Repeat("x", 32<<10)
	var mu sync.Mutex
	ahead, most := 0, 0
	path := touchFile(t)
	prog := &Program{
		Files: source("import os, time", "def first(n):", "  while n == 0 and not os.path.exists("+
			fmt.Sprintf("%q", path)+"): time.sleep(0.01)", "  return n"),
		Inputs: []Column{{Name: "n", Type: expr.Int}, {Name: "s", Type: expr.String}},
		Fields: []Field{{Name: "n", Type: expr.Int, Expr: "first(r.n)"}, {Name: "s", Type: expr.String, Expr: "r.s"}},
	}
	i := -1
	stuck := time.AfterFunc(time.Second, func() { require.NoError(t, os.WriteFile(path, nil, 0o600)) })
	defer stuck.Stop()
	_, err := pool.Run(t.Context(), prog, func() (Row, error) {
		mu.Lock()
		defer mu.Unlock()
		if i++; i == 2000 {
			return nil, io.EOF
		}
		ahead++
		most = max(most, ahead)
		return values{int64(i), text}, nil
	}, func([]any) error {
		mu.Lock()
		defer mu.Unlock()
		ahead--
		return nil
	})
	require.NoError(t, err)
	// 2·Size+2 chunks of two rows each, and one that was just read.
	require.LessOrEqual(t, most, 30)
}

// lockedBuffer is a log that may be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Early interpreters start without work; one that does not start is reported by the work that meets it.
func TestEarly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, wrapper := filepath.Join(dir, "started"), filepath.Join(dir, "python")
	script := "#!/bin/sh\nfor i in 1 2 3; do mkdir \"$TOUCH.$i\" 2>/dev/null && break; done\nexec python3 \"$@\"\n"
	require.NoError(t, os.WriteFile(wrapper, []byte(script), 0o700))
	pool := newTestPool(t, Config{Interpreter: wrapper, Size: 3, Early: 2, Env: []string{"TOUCH=" + path}})
	require.NoError(t, waitForFile(t.Context(), path+".1"))
	require.NoError(t, waitForFile(t.Context(), path+".2"))
	require.NoDirExists(t, path+".3")
	requireWorks(t, pool)

	require.NoError(t, os.WriteFile(wrapper, []byte("#!/bin/sh\nexit 3\n"), 0o700))
	broken := newTestPool(t, Config{Interpreter: wrapper, Size: 1, Early: 1})
	_, err := broken.Check(t.Context(), intProgram("r.n"))
	require.Equal(t, fault.Environment, fault.Of(err).Kind)
	require.NoError(t, broken.Close())
}
