package python

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/keeper"
	"thalweg/internal/lang/expr"
	"thalweg/internal/test/effort"
)

func TestMain(m *testing.M) {
	if keeper.Called(os.Args) {
		syscall.Exit(keeper.Main(os.Args, testCgroups())) // os.Exit would sleep a second for the race detector
	}
	if len(os.Args) == 3 && os.Args[1] == runnerArgument {
		os.Exit(runnerMain(os.Args[2]))
	}
	goleak.VerifyTestMain(m)
}

// eachInterpreter runs a test with CPython, and with PyPy where there is one, or
// with those that THALWEG_TEST_PYTHONS lists, separated by commas.
func eachInterpreter(t *testing.T, test func(t *testing.T, interpreter string)) {
	t.Helper()
	t.Parallel()
	both := []string{"python3", "pypy3"}
	names := effort.Of(both[:1], both, both)
	if list := os.Getenv("THALWEG_TEST_PYTHONS"); list != "" {
		names = strings.Split(list, ",")
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(name); err != nil {
				t.Skipf("%s is not installed", name)
			}
			test(t, name)
		})
	}
}

func newTestPool(t testing.TB, cfg Config) *Pool {
	t.Helper()
	cfg.Keeper = or(cfg.Keeper, "/proc/self/exe")
	p, err := NewPool(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// source is a program's only file.
func source(lines ...string) []Source {
	return []Source{{Name: "formulas.py", Text: strings.Join(lines, "\n") + "\n"}}
}

// intProgram has an int input r.n and an int field p.y.
func intProgram(expression string, lines ...string) *Program {
	return &Program{
		Files:  source(lines...),
		Inputs: []Column{{Name: "n", Type: expr.Int}},
		Fields: []Field{{Name: "y", Type: expr.Int, Expr: expression}},
	}
}

// values is a row of int64, float64, bool, string, time.Time, Cents and nil.
type values []any

func (v values) Null(i int) bool { return v[i] == nil }

func (v values) Text(i int) []byte { return []byte(v[i].(string)) }

func (v values) Word(i int) uint64 {
	switch v := v[i].(type) {
	case int64:
		return uint64(v)
	case float64:
		return math.Float64bits(v)
	case Cents:
		return uint64(v)
	case time.Time:
		return uint64(v.UnixMilli())
	default:
		if v.(bool) {
			return 1
		}
		return 0
	}
}

// ints gives rows with the numbers from 0.
func ints(n int) func() (Row, error) {
	i := -1
	return func() (Row, error) {
		if i++; i >= n {
			return nil, io.EOF
		}
		return values{int64(i)}, nil
	}
}

func slice(rows [][]any) func() (Row, error) {
	i := -1
	return func() (Row, error) {
		if i++; i >= len(rows) {
			return nil, io.EOF
		}
		return values(rows[i]), nil
	}
}

// results collects copies of what is emitted.
type results struct{ rows [][]any }

func (r *results) emit(row []any) error {
	r.rows = append(r.rows, append([]any(nil), row...))
	return nil
}

func discard([]any) error { return nil }

// run computes rows and returns the results.
func runRows(t *testing.T, p *Pool, prog *Program, rows ...[]any) ([][]any, error) {
	t.Helper()
	var got results
	_, err := p.Run(t.Context(), prog, slice(rows), got.emit)
	return got.rows, err
}

// runFault runs n rows and returns the failure that must come.
func runFault(t *testing.T, p *Pool, prog *Program, n int) *fault.Error {
	t.Helper()
	_, err := p.Run(t.Context(), prog, ints(n), discard)
	require.Error(t, err)
	f := fault.Of(err)
	require.NotEqual(t, fault.Bug, f.Kind, "%v", err)
	return f
}

// stillClock is a clock for Config that stands still, however long something that ends takes,
// until what does not end has made a file: then its limit passes at once.
type stillClock struct {
	path  string // of the file
	mu    sync.Mutex
	at    time.Time
	seen  int       // looks of the watch at what does not end
	moves bool      // goes on after the limit, for what has to be killed
	since time.Time // when it began to
}

func newStillClock(t *testing.T, moves bool) *stillClock {
	return &stillClock{path: touchFile(t), at: time.Now(), moves: moves}
}

// hang is Python that says that what comes behind it does not end.
func (c *stillClock) hang() string { return fmt.Sprintf("open(%q, 'w').close()", c.path) }

// now is asked at each look of the only process's watch. It is the second look at a row that
// finds it to have been there for too long.
func (c *stillClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen < 2 {
		if _, err := os.Stat(c.path); err != nil {
			return c.at
		}
		if c.seen++; c.seen == 2 {
			c.at, c.since = c.at.Add(stillLimit+time.Second), time.Now()
		}
	}
	switch {
	case c.seen < 2:
	case c.moves:
		return c.at.Add(time.Since(c.since))
	case time.Since(c.since) > stillAgain: // the row was begun between the two looks: it has not been there for long
		c.at, c.since = c.at.Add(stillLimit+time.Second), time.Now()
	}
	return c.at
}

// stillAgain is the time that a process has to end when it is told to, before the limit passes again.
const stillAgain = 10 * time.Second

// stillLimit is the highest limit of pools with a stillClock.
const stillLimit = time.Hour

// requireWorks shows that a pool is still good.
func requireWorks(t *testing.T, p *Pool) {
	t.Helper()
	var got results
	_, err := p.Run(t.Context(), intProgram("r.n + 1"), ints(100), got.emit)
	require.NoError(t, err)
	require.Len(t, got.rows, 100)
	require.Equal(t, int64(100), got.rows[99][0])
}

// touchFile names a file that a formula makes to be noticed.
func touchFile(t *testing.T) string { t.Helper(); return filepath.Join(t.TempDir(), "touched") }

func waitForFile(ctx context.Context, path string) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", path, ctx.Err())
		case <-tick.C:
		}
	}
}
