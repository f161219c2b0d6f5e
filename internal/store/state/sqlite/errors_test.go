package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	codes "modernc.org/sqlite/lib"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
)

// environment checks that an error says what is wrong, where, and what to do.
func environment(t *testing.T, err error, path, hint string) *fault.Error {
	t.Helper()
	require.Error(t, err)
	f := fault.Of(err)
	require.Equal(t, fault.Environment, f.Kind, "%v", err)
	require.Equal(t, path, f.Place.File)
	require.Contains(t, f.Hint, hint)
	return f
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	file := func(t *testing.T, content string) string {
		path := filepath.Join(t.TempDir(), "state.db")
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	made := func(t *testing.T, statements string) string {
		path := filepath.Join(t.TempDir(), "state.db")
		db, err := openPool(path, synced, 1, "deferred", false)
		require.NoError(t, err)
		_, err = db.Exec(statements)
		require.NoError(t, err)
		require.NoError(t, db.Close())
		return path
	}
	tests := []struct {
		name string
		path func(t *testing.T) string
		hint string
	}{
		{"not a database", func(t *testing.T) string {
			return file(t, "name,qty\nthis is a table of another kind, and long enough to be read as a header of a "+
				"hundred bytes or more\n")
		}, "not a state file"},
		{"another program's database", func(t *testing.T) string { return made(t, "CREATE TABLE mine (x)") },
			"another path"},
		{"another application's mark", func(t *testing.T) string { return made(t, "PRAGMA application_id = 7") },
			"another path"},
		{"newer schema", func(t *testing.T) string {
			return made(t, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = 999", applicationID))
		}, "newer program"},
		{"a directory", func(t *testing.T) string { return t.TempDir() }, "directory"},
		{"a file in the way", func(t *testing.T) string { return filepath.Join(file(t, "x"), "state.db") }, "director"},
		{"nobody may write there", func(t *testing.T) string { return "/proc/thalweg/state.db" }, "writable"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			path := test.path(t)
			before, _ := os.ReadFile(path)
			_, err := Open(ctx, path)
			environment(t, err, path, test.hint)
			after, _ := os.ReadFile(path)
			require.Equal(t, before, after, "a refused file is left as it was")
		})
	}
}

func TestOpenReadOnly(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("the superuser may write everywhere")
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o500))
	path := filepath.Join(dir, "state.db")
	_, err := Open(context.Background(), path)
	environment(t, err, path, "writable")
}

// A full disk stops the work with a clear word, loses nothing, and the same
// store goes on when there is room again.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "state.db")
	s := openTest(t, path)
	key, err := s.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: "w"}}, []state.NodeSpec{{Name: "n"}})
	require.NoError(t, err)
	_, err = s.write.ExecContext(ctx, "PRAGMA max_page_count = 1") // no page more than there are
	require.NoError(t, err)
	node := state.NodeKey{RunKey: key, Node: "n"}
	many := make([]state.BatchSpec, 1000)
	for i := range many {
		many[i] = state.BatchSpec{Batch: i, Work: make([]byte, 100)}
	}
	f := environment(t, planBatches(ctx, s, node, nil, many), path, "full")
	require.False(t, f.Retryable)
	n, err := s.Node(ctx, node)
	require.NoError(t, err)
	require.Equal(t, state.Pending, n.Status)

	_, err = s.write.ExecContext(ctx, "PRAGMA max_page_count = 1000000")
	require.NoError(t, err)
	require.NoError(t, planBatches(ctx, s, node, nil, many))
}

// Another program keeps the file locked: a reader goes on, a writer waits,
// gives up when its context ends, and says so when it has waited too long.
func TestLocked(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "state.db")
	s := openTest(t, path)
	planChild(t, s, 1)
	other := openTest(t, path)
	holder, err := other.write.BeginTx(ctx, nil)
	require.NoError(t, err)

	_, err = s.Node(ctx, childKey())
	require.NoError(t, err)
	patience, cancel := context.WithTimeout(ctx, 1) // ends while the write waits
	defer cancel()
	err = s.MoveNode(patience, childKey(), state.Move{From: state.Running, To: state.Failed})
	require.ErrorIs(t, err, context.DeadlineExceeded)

	_, err = s.write.ExecContext(ctx, "PRAGMA busy_timeout = 10")
	require.NoError(t, err)
	s.lockWait = 0
	f := environment(t, s.MoveNode(ctx, childKey(), state.Move{From: state.Running, To: state.Failed}), path, "locked")
	require.True(t, f.Retryable)

	require.NoError(t, holder.Rollback())
	require.NoError(t, s.MoveNode(ctx, childKey(), state.Move{From: state.Running, To: state.Failed}))
}

// A waiting write leaves as soon as its context is cancelled.
func TestLockedCancel(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "state.db")
	s, other := openTest(t, path), openTest(t, path)
	planChild(t, s, 1)
	holder, err := other.write.BeginTx(ctx, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, holder.Rollback()) }()

	waiting, cancel := context.WithCancel(ctx)
	result := make(chan error)
	go func() { result <- s.MoveNode(waiting, childKey(), state.Move{From: state.Running, To: state.Failed}) }()
	for s.write.Stats().InUse == 0 { // until the write is under way
	}
	cancel()
	require.ErrorIs(t, <-result, context.Canceled)
}

func TestDamaged(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "state.db")
	s := openTest(t, path)
	planChild(t, s, 2000)
	require.NoError(t, s.Close())
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	for i := 4096; i < len(content); i++ {
		content[i] = byte(i * 7)
	}
	require.NoError(t, os.WriteFile(path, content, 0o600))
	s, err = Open(ctx, path)
	if err == nil {
		_, err = state.All(ctx, s.Batches, childKey())
		require.NoError(t, s.Close())
	}
	environment(t, err, path, "damaged")
}

func TestExplain(t *testing.T) {
	t.Parallel()
	s := &Store{path: "/s/state.db"}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	// A definite answer is not hidden by a context that ends at the same time.
	require.ErrorIs(t, s.explain(ended, "x", state.ErrConflict), state.ErrConflict)
	require.ErrorIs(t, s.explain(ended, "x", errors.New("interrupted")), context.Canceled)
	require.Equal(t, fault.Bug, fault.Of(s.explain(context.Background(), "x", sql.ErrConnDone)).Kind)

	for code, want := range map[int]fault.Kind{
		codes.SQLITE_FULL: fault.Environment, codes.SQLITE_IOERR | 3<<8: fault.Environment,
		codes.SQLITE_READONLY | 6<<8: fault.Environment, codes.SQLITE_BUSY | 1<<8: fault.Environment,
		codes.SQLITE_CONSTRAINT: fault.Bug, codes.SQLITE_ERROR: fault.Bug,
	} {
		f := &fault.Error{Kind: fault.Bug}
		describe(f, code)
		require.Equal(t, want, f.Kind, code)
		require.Equal(t, want == fault.Environment, f.Hint != "", code)
	}
}
