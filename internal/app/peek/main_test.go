package peek_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"thalweg/internal/app/caller"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/peek"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/view"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/keeper"
	"thalweg/internal/io/remote"
	"thalweg/internal/store/state"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == peek.Command {
		os.Exit(child())
	}
	if len(os.Args) > 3 && os.Args[1] == restricted {
		os.Exit(tries(os.Args[2], os.Args[3]))
	}
	if keeper.Called(os.Args) {
		os.Exit(keeper.Main(os.Args, keeper.Cgroups()))
	}
	goleak.VerifyTestMain(m)
}

// child makes the test binary a child of the pools of these tests.
func child() int {
	err := peek.ServeInherited(func(_ json.RawMessage, logger *slog.Logger) (*remote.Client, error) {
		return remote.New(remote.Config{Logger: logger}), nil
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

var tester = caller.Caller{Actor: "tester", Via: caller.Session}

// bench is an instance with a pool.
type bench struct {
	t    testing.TB
	dir  string
	home *instance.Instance
	pool *peek.Pool
	log  *logged
}

// logged is what a pool has logged.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newBench(t testing.TB, limits peek.Limits) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir(), log: &logged{}}
	var err error
	b.home, err = instance.Open(t.Context(), filepath.Join(b.dir, "state"), true)
	require.NoError(t, err)
	b.open(limits)
	t.Cleanup(func() {
		if b.pool != nil {
			b.close()
		}
		require.NoError(t, b.home.Close())
	})
	return b
}

func (b *bench) open(limits peek.Limits) {
	b.t.Helper()
	pool, err := peek.New(peek.Config{Home: b.home, Program: os.Args[0], Limits: limits,
		Process: runtime.Process{Interpreter: "python3", Keeper: os.Args[0], Dir: b.dir,
			Logger: slog.New(slog.NewTextHandler(b.log, nil))}})
	require.NoError(b.t, err)
	b.pool = pool
}

// close closes the pool, and sees that nothing is left of it.
func (b *bench) close() {
	b.t.Helper()
	pids := b.children()
	require.NoError(b.t, b.pool.Close())
	b.pool = nil
	for _, pid := range pids {
		_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
		require.ErrorIs(b.t, err, os.ErrNotExist, "not even a zombie")
	}
	require.Empty(b.t, b.children())
	left, err := filepath.Glob(filepath.Join(b.dir, "state", "tmp", "*", "s-*"))
	require.NoError(b.t, err)
	require.Empty(b.t, left)
	shares, err := filepath.Glob(filepath.Join(b.dir, "state", "shares", "*.share"))
	require.NoError(b.t, err)
	require.Empty(b.t, shares)
}

// children lists the processes of the pool, by their directory.
func (b *bench) children() (pids []int) {
	entries, err := os.ReadDir("/proc")
	require.NoError(b.t, err)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		cwd, err := os.Readlink(filepath.Join("/proc", e.Name(), "cwd"))
		if err == nil && pid != os.Getpid() && strings.HasPrefix(cwd, b.dir) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// run runs a script over files, and returns the run.
func (b *bench) run(script string, files map[string]string, tune func(*budget.Budget)) state.RunKey {
	b.t.Helper()
	for name, text := range files {
		require.NoError(b.t, os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600))
	}
	path := filepath.Join(b.dir, "script.yaml")
	require.NoError(b.t, os.WriteFile(path, []byte(script), 0o600))
	sum, err := runner.Run(b.t.Context(), b.home, runner.Options{ScriptPath: path, Workspace: "main",
		Process: runtime.Process{MemoryBytes: 1 << 30, Cores: 2, Interpreter: "python3", Dir: b.dir, Tune: tune}})
	require.NoError(b.t, err)
	require.Equal(b.t, state.Complete, sum.Status, "%v", sum.Failure)
	return sum.Key
}

func (b *bench) query(sql string) (view.Page, error) { return b.queryAs(b.t.Context(), tester, sql) }

func (b *bench) queryAs(ctx context.Context, by caller.Caller, sql string) (view.Page, error) {
	return b.pool.Query(ctx, by, peek.SQL{Workspace: "main", SQL: sql})
}

// refused returns why a query has no answer.
func (b *bench) refused(sql string) *fault.Error {
	b.t.Helper()
	_, err := b.query(sql)
	require.Error(b.t, err, sql)
	return fault.Of(err)
}

// texts are the cells of a page, NULL as ∅.
func texts(p view.Page) [][]string {
	out := [][]string{}
	for _, row := range p.Rows {
		list := make([]string, len(row))
		for i, cell := range row {
			if list[i] = "∅"; cell != nil {
				list[i] = *cell
			}
		}
		out = append(out, list)
	}
	return out
}

const numbers = `
nodes:
  read:
    type: file_table
    r: {urls: [numbers.csv], types: {n: int}}
    w: {name: numbers, fields: {n: {expression: "coalesce(r.n, 0)", type: int}}}
`

func csvOf(rows int) string {
	var b strings.Builder
	b.WriteString("n\n")
	for i := range rows {
		fmt.Fprintln(&b, i)
	}
	return b.String()
}

// second is a short time of tests that reach a limit.
const second = time.Second

// damage changes a byte of each part.
func (b *bench) damage(limits peek.Limits) {
	b.t.Helper()
	b.close()
	require.NoError(b.t, b.home.Close())
	require.NoError(b.t, filepath.WalkDir(b.home.PartsDir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(path, "read") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil || len(data) == 0 {
			return err
		}
		data[len(data)/2] ^= 1
		return errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, data, 0o600))
	}))
	var err error
	b.home, err = instance.Open(b.t.Context(), filepath.Join(b.dir, "state"), false)
	require.NoError(b.t, err)
	b.open(limits)
}
