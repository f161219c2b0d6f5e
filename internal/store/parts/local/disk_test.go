//go:build unix

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"thalweg/internal/base/durable"
	"thalweg/internal/base/fault"
	"thalweg/internal/store/parts"
)

// trouble fails the nth step from when it is armed, and keeps a record.
type trouble struct {
	mu    sync.Mutex
	at    int // 0: never
	err   error
	steps []string
	deaf  bool // it lets everything pass, and forgets it
}

func (f *trouble) watch(op durable.Op, do func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.deaf {
		return do()
	}
	f.steps = append(f.steps, fmt.Sprintf("%s %s", op.Step, filepath.Base(op.Path)))
	if f.at == len(f.steps) {
		return f.err
	}
	return do()
}

// A failure at each step leaves neither a visible part nor a lost one: the
// same file can be put again, and then all is well.
func TestFailureAtEachStep(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	const key = "ws/1/n/part"
	for at := 1; ; at++ {
		f := &trouble{at: at, err: unix.ENOSPC, deaf: true}
		root := t.TempDir()
		s := openTest(t, root, durable.Watched(f.watch))
		staged := stageFile(t, s, "content")
		f.deaf = false
		_, err := s.Put(ctx, key, staged)
		if err == nil {
			require.Greater(t, at, 12, "all steps have had their turn")
			return
		}
		what := f.steps[at-1]
		require.ErrorIs(t, err, unix.ENOSPC, what)
		require.Equal(t, fault.Environment, fault.Of(err).Kind, what)
		require.Contains(t, fault.Of(err).Hint, "full", what)
		_, _, fetchErr := s.Fetch(ctx, key, "")
		require.ErrorIs(t, fetchErr, parts.ErrNotFound, what)
		require.FileExists(t, staged, what)

		// Another process sees nothing, either.
		other := openTest(t, root, durable.FS{})
		for info := range other.List(ctx, "", "") {
			t.Fatalf("after a failure to %s there is %s", what, info.Key)
		}
		info, err := s.Put(ctx, key, staged)
		require.NoError(t, err, what)
		_, _, err = other.Fetch(ctx, key, info.Checksum)
		require.NoError(t, err, what)
		require.NoFileExists(t, staged, what)
	}
}

// When not even the way back works, the error says both, and a later Put of
// the key finds it taken instead of replacing it.
func TestFailureToTakeBack(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	broken := false
	s := openTest(t, t.TempDir(), durable.Watched(func(op durable.Op, do func() error) error {
		if broken && (op.Step == durable.TakeBack || op.Step == durable.SyncDir && filepath.Base(op.Path) == "d") {
			return unix.EIO
		}
		return do()
	}))
	_, err := s.Put(ctx, "d/first", stageFile(t, s, "x"))
	require.NoError(t, err)
	broken = true
	_, err = s.Put(ctx, "d/k", stageFile(t, s, "x"))
	require.ErrorIs(t, err, unix.EIO)
	_, err = s.Put(ctx, "d/k", stageFile(t, s, "y"))
	require.ErrorIs(t, err, parts.ErrExists)
}

// The order of the steps is what makes a part survive a power cut: its bytes
// before its name, its name before the answer, and each directory's own name
// before the part's.
func TestOrderOfSteps(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := &trouble{}
	s := openTest(t, t.TempDir(), durable.Watched(f.watch))
	put := func(key string) []string {
		f.steps = nil
		_, err := s.Put(ctx, key, stageFile(t, s, "x"))
		require.NoError(t, err)
		return f.steps[3:] // open, read, protect
	}
	require.Equal(t, []string{
		"sync 000001", "open directory data",
		"make directory ws", "open directory ws", "sync directory data",
		"make directory n", "open directory n", "sync directory ws",
		"rename a", "sync directory n",
	}, put("ws/n/a"))
	// What is known to be on the disk is not flushed again.
	require.Equal(t, []string{"sync 000001", "rename b", "sync directory n"}, put("ws/n/b"))
	// Somebody else made the directory: its entry may not be on the disk yet.
	require.NoError(t, os.Mkdir(filepath.Join(s.root, "data", "ws", "m"), 0o755))
	require.Equal(t, []string{
		"sync 000001", "make directory m", "open directory m", "sync directory ws", "rename c", "sync directory m",
	}, put("ws/m/c"))
	// Somebody else removed and made it again: it is another directory.
	require.NoError(t, os.RemoveAll(filepath.Join(s.root, "data", "ws", "n")))
	require.NoError(t, os.Mkdir(filepath.Join(s.root, "data", "ws", "n"), 0o755))
	require.Equal(t, []string{
		"sync 000001", "rename d",
		"make directory n", "open directory n", "sync directory ws", "rename d", "sync directory n",
	}, put("ws/n/d"))
	// The whole branch is gone.
	require.NoError(t, os.RemoveAll(filepath.Join(s.root, "data", "ws")))
	steps := put("ws/n/e")
	require.Equal(t, []string{"rename e", "sync directory n"}, steps[len(steps)-2:])
	require.Contains(t, steps, "sync directory data")
}

func TestExplain(t *testing.T) {
	t.Parallel()
	s := &Store{root: "/r"}
	for err, hint := range map[error]string{
		unix.ENOSPC: "full", unix.EDQUOT: "full", unix.EROFS: "writable", unix.EACCES: "writable", unix.EIO: "log",
		unix.EMFILE: "ulimit", unix.ENOENT: "removed",
	} {
		f := fault.Of(s.explain("x", &os.PathError{Op: "open", Path: "p", Err: err}))
		require.Equal(t, fault.Environment, f.Kind, err)
		require.Contains(t, f.Hint, hint)
		require.ErrorIs(t, f, err)
	}
	require.Equal(t, fault.Bug, fault.Of(s.explain("x", unix.ENOTDIR)).Kind)
	require.ErrorIs(t, s.explain("x", errors.Join(parts.ErrExists)), parts.ErrExists)
	require.ErrorIs(t, s.explain("x", context.Canceled), context.Canceled)
}
