package python

import (
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/expr"
	"thalweg/internal/test/effort"
)

func isPyPy(interpreter string) bool { return strings.HasPrefix(interpreter, "pypy") }

func TestExceptionOnOneRow(t *testing.T) {
	effort.Raced(t)
	eachInterpreter(t, func(t *testing.T, interpreter string) {
		pool := newTestPool(t, Config{Interpreter: interpreter, Size: 2})
		prog := &Program{
			Files: []Source{
				{"first.py", "# comment\n\ndef helper(n):\n    return 100 // (n - 777)\n"},
				{"https://example.org/second.py", "def outer(n):\n    return helper(n)\n"},
			},
			Inputs: []Column{{Name: "n", Type: expr.Int}},
			Fields: []Field{
				{Name: "half", Type: expr.Int, Expr: "r.n // 2"},
				{Name: "bad", Type: expr.Int, Expr: "outer(r.n) + p.half"},
			},
		}
		var got results
		_, err := pool.Run(t.Context(), prog, ints(3000), got.emit)
		f := fault.Of(err)
		require.ErrorContains(t, err, "first.py:4: p.bad of row 778: ZeroDivisionError: ")
		require.Equal(t, fault.UserData, f.Kind)
		require.False(t, f.Retryable)
		require.Equal(t, fault.Place{File: "first.py", Line: 4, Record: 778, Field: "bad", Value: "r.n = 777",
			Expr: "outer(r.n) + p.half"}, f.Place)
		require.Contains(t, f.Detail, `File "https://example.org/second.py", line 2, in outer`)
		require.Contains(t, f.Detail, "return 100 // (n - 777)")
		require.Contains(t, f.Detail, "outer(r.n) + p.half", "the expression is shown as a line of the traceback")
		require.NotContains(t, f.Detail, "<stdin>", "frames of the worker are of no use")
		require.LessOrEqual(t, len(got.rows), 777)
		for i, row := range got.rows {
			require.Equal(t, int64(i/2), row[0])
		}
		requireWorks(t, pool)
	})
}

func TestKindsOfExceptions(t *testing.T) {
	effort.Raced(t)
	tests := []struct {
		expr string
		kind fault.Kind
		text string
	}{
		{"int('x')", fault.UserData, "ValueError: invalid literal"},
		{"{}['k']", fault.UserData, "KeyError: 'k'"},
		{"nowhere(r.n)", fault.Script, "NameError: name 'nowhere' is not defined"},
		{"r.n.upper()", fault.Script, "AttributeError: 'int' object has no attribute 'upper'"},
		{"1 + 'x'", fault.Script, "TypeError: "},
		{"open('/nowhere/at/all')", fault.Environment, "FileNotFoundError: "},
		{"exit(4)", fault.Script, "SystemExit: 4"},
		{"deep(r.n)", fault.Script, "RecursionError: maximum recursion depth"},
		{"odd()", fault.UserData, "Odd: (its text cannot be made)"},
		{"raise_(ValueError())", fault.UserData, "ValueError"},
		{"raise_(ValueError(chr(0xdc80)))", fault.UserData, `ValueError: \udc80`},
		{"raise_(ValueError('x' * 100000))", fault.UserData, "characters"},
		{"raise_(KeyboardInterrupt())", fault.UserData, "KeyboardInterrupt"},
	}
	eachInterpreter(t, func(t *testing.T, interpreter string) {
		pool := newTestPool(t, Config{Interpreter: interpreter, Size: 1})
		for _, test := range tests {
			t.Run(test.expr, func(t *testing.T) {
				f := runFault(t, pool, intProgram(test.expr,
					"def deep(n): return deep(n) + 1",
					"class Odd(Exception):\n  def __str__(self): raise ValueError",
					"def odd(): raise Odd()",
					"def raise_(error): raise error"), 1)
				require.Equal(t, test.kind, f.Kind)
				require.Contains(t, f.Message, "p.y of row 1: ")
				require.Contains(t, f.Message, test.text)
				require.Less(t, len(f.Message)+len(f.Detail), 60_000)
			})
		}
		requireWorks(t, pool)
	})
}

func TestFirstFailureInInputOrder(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	pool := newTestPool(t, Config{Size: 2})
	// Row 11 fails long after row 500 has failed elsewhere, because it takes its time.
	prog := intProgram("slow(r.n)", "import time", "def slow(n):", "  if n == 10: time.sleep(0.2)",
		"  return 1 // ((n - 10) * (n - 499))")
	require.Equal(t, int64(11), runFault(t, pool, prog, 1000).Place.Record)
	// A wrong type is found after an exception of a later row in the same chunk.
	prog = intProgram("none(r.n)", "def none(n):", "  return None if n == 300_000 else 1 // (n - 300_001)")
	require.Equal(t, int64(300_001), runFault(t, pool, prog, 400_000).Place.Record)
}

func TestCodeThatCannotBeLoaded(t *testing.T) {
	tests := []struct {
		name       string
		files      []Source
		expr, text string
		kind       fault.Kind
		place      fault.Place
	}{
		{"syntax", []Source{{"good.py", "x = 1\n"}, {"bad.py", "def f(:\n  pass\n"}}, "1", "SyntaxError", fault.Script,
			fault.Place{File: "bad.py", Line: 1}},
		{"import", source("", "import no_such_module_at_all"), "1",
			"ModuleNotFoundError: No module named 'no_such_module_at_all'", fault.Script,
			fault.Place{File: "formulas.py", Line: 2}},
		{"exception", source("x = 1", "x / 0"), "1", "ZeroDivisionError", fault.Script,
			fault.Place{File: "formulas.py", Line: 2}},
		{"exit", source("import sys", "sys.exit(3)"), "1", "SystemExit: 3", fault.Script,
			fault.Place{File: "formulas.py", Line: 2}},
		{"file", source("open('/nowhere/at/all')"), "1", "FileNotFoundError", fault.Environment,
			fault.Place{File: "formulas.py", Line: 1}},
		{"expression", nil, "f(r.n", "SyntaxError", fault.Script, fault.Place{Field: "y", Expr: "f(r.n"}},
		{"lines", nil, "f(\n1", "SyntaxError", fault.Script, fault.Place{Field: "y", Expr: "f(\n1"}},
		{"statement", nil, "import os", "SyntaxError", fault.Script, fault.Place{Field: "y", Expr: "import os"}},
		{"way out of the expression", nil, "1)\nimport os\n(1", "SyntaxError", fault.Script,
			fault.Place{Field: "y", Expr: "1)\nimport os\n(1"}},
		{"yield", nil, "(yield r.n)", "SyntaxError", fault.Script, fault.Place{Field: "y", Expr: "(yield r.n)"}},
		{"unknown input", nil, "r.other + 1", "r.other is not known here", fault.Script,
			fault.Place{Field: "y", Expr: "r.other + 1"}},
		{"itself", nil, "p.y", "p.y is not known here", fault.Script, fault.Place{Field: "y", Expr: "p.y"}},
	}
	eachInterpreter(t, func(t *testing.T, interpreter string) {
		pool := newTestPool(t, Config{Interpreter: interpreter, Size: 1})
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				prog := intProgram(test.expr)
				prog.Files = test.files
				for _, err := range []error{checked(t, pool, prog), runFault(t, pool, prog, 3)} {
					require.Error(t, err)
					f := fault.Of(err)
					require.ErrorContains(t, f, test.text)
					require.Equal(t, test.kind, f.Kind)
					require.Equal(t, test.place, f.Place)
				}
			})
		}
		require.NoError(t, checked(t, pool, intProgram("f(r.n)", "def f(n): return n")))
		requireWorks(t, pool)
	})
}

func TestProcessEnds(t *testing.T) {
	effort.Raced(t)
	tests := []struct {
		name, code string
		kind       fault.Kind
		text       string
	}{
		{"exit", "os._exit(3)", fault.Script, "row 8: the Python process ended (exit status 3)"},
		{"segmentation fault", "os.kill(os.getpid(), signal.SIGSEGV)", fault.Script,
			"row 8: the Python process crashed (segmentation fault)"},
		{"killed", "os.kill(os.getpid(), signal.SIGKILL)", fault.Environment,
			"row 8: the system killed the Python process"},
		{"descriptors", "os.closerange(3, 7)", fault.Script, ": the Python process ended"},
		{"protocol", "os.write(4, b'x' * 100)", fault.Script, "is not understood"},
		{"large message", "os.write(4, b'\\x02' + b'\\0' * 7 + b'\\xff' * 7 + b'\\0')", fault.Script,
			"the results are too large"},
	}
	eachInterpreter(t, func(t *testing.T, interpreter string) {
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				pool := newTestPool(t, Config{Interpreter: interpreter, Size: 1})
				f := runFault(t, pool, intProgram("end(r.n)", "import os, signal, sys", "def end(n):", "  if n == 7:",
					"    print('the end is near', file=sys.stderr, flush=True)", "    "+test.code, "  return n"), 20)
				require.Equal(t, test.kind, f.Kind, "%v", f)
				require.Contains(t, f.Message, test.text)
				if test.name == "descriptors" { // how rows are cut into messages depends on how long they take
					requireRowAmong(t, 8, f.Message)
				}
				if strings.HasPrefix(test.text, "row 8") {
					require.Equal(t, int64(8), f.Place.Record)
					require.Equal(t, "end(r.n)", f.Place.Expr)
					require.Contains(t, f.Detail, "the end is near")
				}
				if test.name == "segmentation fault" && !isPyPy(interpreter) {
					require.Equal(t, "formulas.py", f.Place.File)
					require.Equal(t, int64(5), f.Place.Line)
				}
				requireWorks(t, pool)
			})
		}
	})
}

// requireRowAmong requires that a message names row, alone or as one of "rows 7 to 9".
func requireRowAmong(t *testing.T, row int, message string) {
	t.Helper()
	found := regexp.MustCompile(`\brows? (\d+)(?: to (\d+))?:`).FindStringSubmatch(message)
	require.NotNil(t, found, message)
	first, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	last := first
	if found[2] != "" {
		last, err = strconv.Atoi(found[2])
		require.NoError(t, err)
	}
	require.True(t, first <= row && row <= last, "row %d in %q", row, message)
}

func TestEndsWhileImporting(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	pool := newTestPool(t, Config{Size: 1})
	f := runFault(t, pool, intProgram("1", "import os", "os._exit(9)"), 1)
	require.Contains(t, f.Message, "importing the Python code: the Python process ended (exit status 9)")
	requireWorks(t, pool)
}

func TestEndlessRows(t *testing.T) {
	effort.Raced(t)
	tests := []struct {
		name, body string
		text       string
		line       int64 // in the traceback, of formulas.py
		killed     bool
	}{
		{"busy", "while True: pass", "the time for one row is over", 5, false},
		// A signal that comes between Python's last look and the system call does not end a sleep:
		// the next one sees it.
		{"asleep", "while True: time.sleep(1)", "the time for one row is over", 5, false},
		{"insistent", "while True:\n      try: time.sleep(1e6)\n      except BaseException: pass",
			"took longer than 300ms and did not stop: the Python process was killed", 6, true},
		{"deaf", "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1}); time.sleep(1e6)",
			"did not stop: the Python process was killed", 5, true},
	}
	eachInterpreter(t, func(t *testing.T, interpreter string) {
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				clock := newStillClock(t, test.killed)
				pool := newTestPool(t, Config{Interpreter: interpreter, Size: 1, RowTimeout: 300 * time.Millisecond,
					clock: clock.now})
				f := runFault(t, pool, intProgram("hang(r.n)", "import time, signal", "def hang(n):", "  if n == 7:",
					"    "+clock.hang(), "    "+test.body, "  return n"), 20)
				require.Equal(t, fault.Script, f.Kind)
				require.Equal(t, int64(8), f.Place.Record)
				require.Equal(t, "y", f.Place.Field)
				require.Equal(t, "hang(r.n)", f.Place.Expr)
				require.Contains(t, f.Message, test.text)
				require.Contains(t, f.Hint, "{{set row-timeout}}")
				if !isPyPy(interpreter) || test.name != "deaf" { // PyPy shows approximate lines only
					require.Equal(t, "formulas.py", f.Place.File, "%s", f.Detail)
					require.Equal(t, test.line, f.Place.Line, "%s", f.Detail)
				}
				require.NotContains(t, f.Detail, "on_timeout")
				requireWorks(t, pool)
			})
		}
	})
}

func TestEndlessImport(t *testing.T) {
	effort.Raced(t)
	const stubborn = "import time\nwhile True:\n  try: time.sleep(1e6)\n  except BaseException: pass"
	table := tableProgram(Lists)
	for name, c := range map[string]struct {
		prog   *Program
		body   string
		killed bool
		text   string
		line   int64
	}{
		"formulas": {intProgram("1"), "while True: pass", false,
			"the Python code cannot be used: the time for its import is over", 2},
		"function": {table, "while True: pass", false,
			"the Python code cannot be used: the time for its import is over", 2},
		"stubborn formulas": {intProgram("1"), stubborn, true,
			"importing the Python code: took longer than 300ms and did not stop: the Python process was killed", 4},
		"function, and stubborn": {table, stubborn, true,
			"importing the Python code: took longer than 300ms and did not stop: the Python process was killed", 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := newStillClock(t, c.killed)
			pool := newTestPool(t, Config{Size: 1, RowTimeout: time.Second, ImportTimeout: 300 * time.Millisecond,
				clock: clock.now})
			prog := *c.prog
			prog.Files = source(clock.hang(), c.body)
			err := checked(t, pool, &prog)
			f := fault.Of(err)
			require.ErrorContains(t, err, c.text)
			require.Equal(t, fault.Script, f.Kind)
			require.Equal(t, "formulas.py", f.Place.File)
			require.Equal(t, c.line, f.Place.Line)
			require.Equal(t, hintImportTime, f.Hint)
			requireWorks(t, pool)
		})
	}
}

func TestMemoryLimit(t *testing.T) {
	eachInterpreter(t, func(t *testing.T, interpreter string) {
		tests := map[string]string{
			"large":  "x = bytearray(1 << 40)",
			"text":   "x = 'x'\n    while True: x += x",
			"chain":  "global kept\n    while True: kept = (kept,)", // to the last byte, and not given back
			"pieces": "x = []\n    while True: x.append([1.5 * len(x), str(len(x))])",
		}
		for name, body := range tests {
			if effort.Of(name != "pieces", false, false) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				pool := newTestPool(t, Config{Interpreter: interpreter, Size: 1, MemoryBytes: 128 << 20})
				f := runFault(t, pool, intProgram("grow(r.n)", "kept = None", "def grow(n):",
					"  if n == 7:", "    "+body, "  return n"), 20)
				require.Equal(t, fault.Script, f.Kind, "%v", f)
				require.Equal(t, int64(8), f.Place.Record)
				require.Equal(t, hintMemory, f.Hint, "%v\n%s", f, f.Detail)
				require.Contains(t, f.Message, "p.y of row 8: MemoryError", "%v\n%s", f, f.Detail)
				requireWorks(t, pool)
			})
		}
	})
}

// TestLargeCaches has a PyPy that takes 240 MiB for new objects unless it is told
// otherwise, as it does by itself where the largest cache has 480 MiB.
func TestLargeCaches(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("pypy3"); err != nil {
		t.Skip("pypy3 is not installed")
	}
	pool := newTestPool(t, Config{Interpreter: writeScript(t,
		"#!/bin/sh\nPYPY_GC_NURSERY=${PYPY_GC_NURSERY:-240M} exec pypy3 \"$@\"\n"), Size: 1, MemoryBytes: 128 << 20})
	requireWorks(t, pool)
}

// TestTooLittleRoomToStart has interpreters that map more than they may before they do anything.
func TestTooLittleRoomToStart(t *testing.T) {
	t.Parallel()
	const mapped = `exec python3 -c 'import mmap, sys
keep = mmap.mmap(-1, 1 << 30)
sys.argv = sys.argv[-2:]
exec(sys.stdin.read())' "$@"`
	for name, script := range map[string]string{"python3": mapped, "pypy3": `PYPY_GC_NURSERY=300M exec pypy3 "$@"`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(name); err != nil {
				t.Skipf("%s is not installed", name)
			}
			pool := newTestPool(t, Config{Interpreter: writeScript(t, "#!/bin/sh\n"+script+"\n"), Size: 1,
				MemoryBytes: 128 << 20})
			_, err := pool.Run(t.Context(), intProgram("1"), ints(5), discard)
			require.Regexp(t, `cannot work with (128|256) MiB of address space: it has mapped [0-9]+ MiB before it `+
				`has done anything`, err)
			require.Equal(t, fault.Environment, fault.Of(err).Kind)
			require.Contains(t, fault.Of(err).Hint, "{{set memory}}")
		})
	}
}

func TestInterpreterThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	_, err := NewPool(Config{Interpreter: "no-such-python-here"})
	require.Equal(t, fault.Environment, fault.Of(err).Kind)
	require.NotEmpty(t, fault.Of(err).Hint)

	_, err = NewPool(Config{MemoryBytes: 1 << 20})
	require.Equal(t, fault.Environment, fault.Of(err).Kind)

	for name, script := range map[string]string{
		"ends at once":        "#!/bin/sh\necho broken installation >&2\nexit 5\n",
		"says strange things": "#!/bin/sh\nprintf 'hello, world, this is not a message' >&4\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := newTestPool(t, Config{Interpreter: writeScript(t, script), Size: 1})
			for range 2 {
				_, err := pool.Run(t.Context(), intProgram("1"), ints(5), discard)
				require.Error(t, err)
				require.Equal(t, fault.Environment, fault.Of(err).Kind, "%v", err)
				if name == "ends at once" {
					require.Contains(t, fault.Of(err).Detail, "broken installation")
					require.ErrorContains(t, err, "exit status 5")
				}
			}
		})
	}
}

func TestOldPython(t *testing.T) {
	t.Parallel()
	p := &process{hello: hello{Version: [3]int{3, 8, 18}, Implementation: "CPython"}}
	require.ErrorContains(t, p.usable("python3"), "python3 is Python 3.8")
	for _, v := range [][3]int{{3, 9, 0}, {3, 14, 1}, {4, 0, 0}} {
		p.hello.Version = v
		require.NoError(t, p.usable("python3"))
	}
}

func TestTolerantRun(t *testing.T) {
	eachInterpreter(t, func(t *testing.T, interpreter string) {
		pool := newTestPool(t, Config{Interpreter: interpreter, Size: 2})
		prog := &Program{
			Files:  source("def f(n):", "  if n % 10 == 3: raise ValueError(n)", "  return None if n % 10 == 7 else n"),
			Inputs: []Column{{Name: "n", Type: expr.Int}},
			Fields: []Field{
				{Name: "n", Type: expr.Int, Expr: "r.n"},
				{Name: "f", Type: expr.Int, Expr: "f(r.n)"},
				{Name: "t", Type: expr.DateTime, Expr: "'2021-01-01T00:00:00.000+00:00' if r.n % 10 != 8 else 'x'"},
			},
		}
		var order, failed []int64
		stats, err := pool.RunTolerant(t.Context(), prog, ints(5000),
			func(row []any) error { order = append(order, row[0].(int64)); return nil },
			func(f *fault.Error, reason string) error {
				order = append(order, f.Place.Record-1)
				failed = append(failed, f.Place.Record-1)
				return nil
			})
		require.NoError(t, err)
		require.Equal(t, int64(3500), stats.Rows)
		require.Len(t, failed, 1500)
		for i, n := range order {
			require.Equal(t, int64(i), n, "rows and failures are in the order of the input")
		}
		for _, n := range failed {
			require.Contains(t, []int64{3, 7, 8}, n%10)
		}

		stop := fault.New(fault.UserData, "that is enough")
		count := 0
		_, err = pool.RunTolerant(t.Context(), prog, ints(5000), discard, func(*fault.Error, string) error {
			if count++; count == 20 {
				return stop
			}
			return nil
		})
		require.ErrorIs(t, err, stop)

		prog.Files[0].Text = "import os\ndef f(n):\n  if n == 3: os._exit(1)\n  return n\n"
		_, err = pool.RunTolerant(t.Context(), prog, ints(50), discard, func(*fault.Error, string) error { return nil })
		require.ErrorContains(t, err, "row 4: the Python process ended")
	})
}

func checked(t *testing.T, pool *Pool, prog *Program) error {
	t.Helper()
	_, err := pool.Check(t.Context(), prog)
	return err
}
