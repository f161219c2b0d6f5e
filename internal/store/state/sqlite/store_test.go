package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/statetest"
)

func openTest(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(context.Background(), path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestConformance(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	root := t.TempDir()
	statetest.Run(t, func(t *testing.T) state.Store {
		t.Helper()
		s, err := Open(context.Background(), filepath.Join(root, strings.ReplaceAll(t.Name(), "/", "_"), "state.db"))
		require.NoError(t, err)
		return s
	})
}

// Every odd name of a directory is a directory, not part of a connection string.
func TestOpenPaths(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	root := t.TempDir()
	for _, name := range []string{"plain", "a b", "50%41", "q?mode=memory", "h#x", "ü漢", "&_pragma=x",
		"'\"", ":memory:"} {
		path := filepath.Join(root, name, name+".db")
		s := openTest(t, path)
		_, err := s.CreateRun(context.Background(), state.Run{RunKey: state.RunKey{Workspace: "w"}}, nil)
		require.NoError(t, err)
		require.FileExists(t, path)
	}
}

// Many that open and close a file at the same time, new at first, all get the
// same schema, and nobody is told that it is locked.
func TestOpenConcurrently(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	const openers, each = 8, 5
	var wg sync.WaitGroup
	errs := make([]error, openers)
	for i := range openers {
		wg.Go(func() {
			for range each {
				s, err := Open(context.Background(), path)
				if err == nil {
					_, err = s.CreateRun(context.Background(), state.Run{RunKey: state.RunKey{Workspace: "w"}}, nil)
					err = joinClose(s, err)
				}
				errs[i] = errors.Join(errs[i], err)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	runs, err := state.All(context.Background(), openTest(t, path).Runs, "w")
	require.NoError(t, err)
	require.Len(t, runs, openers*each)
}

func joinClose(s *Store, err error) error {
	if closeErr := s.Close(); err == nil {
		return closeErr
	}
	return err
}

// Several processes share one file: each batch is done once, run numbers have
// no gaps.
func TestProcesses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	s := openTest(t, path)
	planChild(t, s, childBatches)

	const processes = 3
	type result struct {
		lines []string
		err   error
	}
	results := make(chan result)
	for range processes {
		cmd, out := startChild(t, "work", path)
		go func() {
			var r result
			for out.Scan() {
				r.lines = append(r.lines, out.Text())
			}
			r.err = cmd.Wait()
			results <- r
		}()
	}
	var got []string
	for range processes {
		r := <-results
		require.NoError(t, r.err)
		got = append(got, r.lines...)
	}
	var want []string
	for i := range childBatches {
		want = append(want, fmt.Sprint("batch ", i), fmt.Sprint("run ", i+1))
	}
	sort.Strings(want)
	sort.Strings(got)
	require.Equal(t, want, got)
	n, err := s.Node(context.Background(), childKey())
	require.NoError(t, err)
	require.Equal(t, childBatches, n.BatchesDone)
	require.Equal(t, int64(childBatches), n.RowsOut)
}

func planChild(t *testing.T, s *Store, batches int) {
	t.Helper()
	ctx := context.Background()
	key := childKey()
	_, err := s.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: key.Workspace}},
		[]state.NodeSpec{{Name: key.Node}})
	require.NoError(t, err)
	specs := make([]state.BatchSpec, batches)
	for i := range specs {
		specs[i].Batch = i
	}
	require.NoError(t, planBatches(ctx, s, key, nil, specs))
}

// A process is killed in the middle of its commits: what it was told is
// committed is there, and of the rest all or nothing.
func TestKill(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	for range 3 {
		path := filepath.Join(t.TempDir(), "state.db")
		s := openTest(t, path)
		planChild(t, s, 10_000)
		cmd, out := startChild(t, "commit for ever", path)
		said := 0
		for said < 20 && out.Scan() {
			said++
		}
		require.NoError(t, cmd.Process.Kill())
		for out.Scan() {
			said++
		}
		require.Error(t, cmd.Wait())
		checkKilled(t, s, said)
	}
}

func checkKilled(t *testing.T, s *Store, said int) {
	t.Helper()
	require.GreaterOrEqual(t, said, 20)
	ctx := context.Background()
	batches, err := state.All(ctx, s.Batches, childKey())
	require.NoError(t, err)
	done := 0
	for _, b := range batches {
		if b.Status == state.Succeeded {
			require.Equal(t, done, b.BatchKey.Batch)
			done++
		}
	}
	require.GreaterOrEqual(t, done, said)
	require.LessOrEqual(t, done, said+1) // at most one was committed and not told
	parts, err := state.Manifest(ctx, s, childKey())
	require.NoError(t, err)
	require.Len(t, parts, 2*done)
	n, err := s.Node(ctx, childKey())
	require.NoError(t, err)
	require.Equal(t, []int64{int64(done), 2 * int64(done)}, []int64{int64(n.BatchesDone), n.RowsOut})
}

// What is under way or in the way is found by its own index, whatever else
// there is: SQLite says so of the query as it is.
func TestUnsettledReadsItsIndex(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t, filepath.Join(t.TempDir(), "state.db"))
	_, err := s.write.ExecContext(ctx, "DROP INDEX batches_unsettled")
	require.NoError(t, err)
	key := childKey()
	_, err = s.CreateRun(ctx, state.Run{RunKey: key.RunKey}, []state.NodeSpec{{Name: key.Node}})
	require.NoError(t, err)
	_, _, err = s.Unsettled(ctx, key, state.Page{})
	require.ErrorContains(t, err, "batches_unsettled")
	_, _, err = s.Batches(ctx, key, state.Page{})
	require.NoError(t, err)
}
