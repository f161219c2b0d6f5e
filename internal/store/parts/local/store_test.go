//go:build unix

package local

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/durable"
	"thalweg/internal/base/fault"
	"thalweg/internal/store/parts"
	"thalweg/internal/test/partstest"
)

func openTest(t testing.TB, root string, files durable.FS) *Store {
	t.Helper()
	s, err := OpenOn(files, root)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func stageFile(t testing.TB, s *Store, content string) string {
	t.Helper()
	path := newFile(t, s)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	return path
}

// newFile gives the path of a file in a stage of its own.
func newFile(t testing.TB, s *Store) string {
	t.Helper()
	stage, err := s.Stage(context.Background())
	require.NoError(t, err)
	path, err := stage.File(context.Background())
	require.NoError(t, err)
	return path
}

func TestConformance(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	partstest.Run(t, func(t *testing.T) parts.Store {
		t.Helper()
		s, err := Open(filepath.Join(root, t.Name()))
		require.NoError(t, err)
		return s
	})
}

// The part is the file itself, and nobody may write to it.
func TestLayout(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "new", "store")
	s := openTest(t, root, durable.FS{})
	_, err := s.Put(context.Background(), "a/b", stageFile(t, s, "x"))
	require.NoError(t, err)
	path, release, err := s.Fetch(context.Background(), "a/b", "")
	require.NoError(t, err)
	release()
	release()
	require.Equal(t, filepath.Join(root, "data", "a", "b"), path)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o222)
	require.Equal(t, filepath.Join(root, "stage"), filepath.Dir(filepath.Dir(filepath.Dir(stageFile(t, s, "")))))

	require.NoError(t, s.Delete(context.Background(), "a/b"))
	require.NoDirExists(t, filepath.Join(root, "data", "a"))
	require.NotContains(t, s.dirs.open, "a", "a directory that is gone is not kept open")
	require.DirExists(t, filepath.Join(root, "data"))
}

// Nothing from elsewhere than a stage is taken away.
func TestPutOnlyStaged(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	root := t.TempDir()
	s := openTest(t, root, durable.FS{})
	mine := filepath.Join(t.TempDir(), "mine.csv")
	require.NoError(t, os.WriteFile(mine, []byte("x"), 0o644))
	link := newFile(t, s)
	require.NoError(t, os.Symlink(mine, link))
	stageDir := filepath.Dir(filepath.Dir(link))
	other := openTest(t, root, durable.FS{})
	for _, path := range []string{
		mine, link, filepath.Dir(link), stageDir, filepath.Join(stageDir, "..", "..", "VERSION"),
		filepath.Join(stageDir, lockName),
		stageFile(t, other, "of another"), "relative", "",
	} {
		_, err := s.Put(ctx, "k", path)
		require.Error(t, err, path)
	}
	require.FileExists(t, mine)
	_, _, err := s.Fetch(ctx, "k", "")
	require.ErrorIs(t, err, parts.ErrNotFound)
}

// A file that is not what was put is not given, whether the Store that finds it
// has put it, has read it before, or has never seen it.
func TestFetchDamaged(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	root := t.TempDir()
	mine, reader := openTest(t, root, durable.FS{}), openTest(t, root, durable.FS{})
	info, err := mine.Put(ctx, "k", stageFile(t, mine, "right"))
	require.NoError(t, err)
	_, _, err = reader.Fetch(ctx, "k", info.Checksum)
	require.NoError(t, err)
	path := filepath.Join(root, "data", "k")
	require.NoError(t, os.Chmod(path, 0o644))
	for what, content := range map[string]string{"a flipped bit": "rigit", "less": "righ", "more": "right.",
		"nothing": ""} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
		for _, s := range []*Store{mine, reader, openTest(t, root, durable.FS{})} {
			_, _, err := s.Fetch(ctx, "k", info.Checksum)
			require.ErrorIs(t, err, parts.ErrCorrupt, what)
		}
	}
	require.NoError(t, os.WriteFile(path, []byte("right"), 0o644)) // somebody has restored it
	for _, s := range []*Store{mine, reader} {
		_, _, err := s.Fetch(ctx, "k", info.Checksum)
		require.NoError(t, err)
	}
}

// One who stops waiting for a part to be read does not make the others fail.
func TestFetchCancelled(t *testing.T) {
	t.Parallel()
	s := openTest(t, t.TempDir(), durable.FS{})
	info, err := s.Put(context.Background(), "k", stageFile(t, s, "x"))
	require.NoError(t, err)
	turn := s.known.of("k").turn
	turn <- struct{}{} // somebody is reading it
	ctx, cancel := context.WithCancel(context.Background())
	failed := make(chan error)
	go func() {
		_, _, err := s.Fetch(ctx, "k", info.Checksum)
		failed <- err
	}()
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
	<-turn
	_, _, err = s.Fetch(context.Background(), "k", info.Checksum)
	require.NoError(t, err)
}

// A process that dies leaves its staged files until the next Open or Sweep; a
// living one keeps them.
func TestSweep(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	mine := openTest(t, root, durable.FS{})
	kept := stageFile(t, mine, "mine")

	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childVariable+"="+root)
	child.Stderr = os.Stderr
	_, err := child.StdinPipe() // held open: the child waits on it
	require.NoError(t, err)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	left := lines.Text()

	n, err := mine.Sweep(context.Background())
	require.NoError(t, err)
	require.Zero(t, n)
	require.FileExists(t, left)

	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())
	require.FileExists(t, left)
	half := filepath.Join(root, "stage", "half-made") // died before it had a lock
	require.NoError(t, os.Mkdir(half, 0o755))
	n, err = mine.Sweep(context.Background())
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.NoFileExists(t, left)
	require.NoDirExists(t, half)
	require.FileExists(t, kept)
}

func TestOpenSweeps(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	openTest(t, root, durable.FS{})
	dead := filepath.Join(root, "stage", "1-dead")
	require.NoError(t, os.Mkdir(dead, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dead, lockName), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dead, "00000001"), []byte("x"), 0o600))
	openTest(t, root, durable.FS{})
	require.NoDirExists(t, dead)
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o644))
	other := filepath.Join(dir, "other")
	require.NoError(t, os.Mkdir(other, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(other, versionName), []byte("thalweg parts 2\n"), 0o644))
	for root, hint := range map[string]string{file: "", filepath.Join(file, "below"): "", other: "another directory",
		"/proc/thalweg": ""} {
		_, err := Open(root)
		require.Error(t, err, root)
		require.Contains(t, fault.Of(err).Hint, hint)
		require.NotEmpty(t, fault.Of(err).Hint)
	}
}

// More directories than may stay open, by several at once.
func TestManyDirectories(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t, t.TempDir(), durable.FS{})
	errs := make(chan error)
	const workers, each = 4, 2 * maxOpenDirectories
	for w := range workers {
		go func() {
			var err error
			for i := 0; i < each && err == nil; i++ {
				var stage *parts.Stage
				if stage, err = s.Stage(ctx); err != nil {
					break
				}
				path := filepath.Join(stage.Dir, "x")
				if err = os.WriteFile(path, nil, 0o644); err != nil {
					break
				}
				_, err = s.Put(ctx, fmt.Sprintf("d%d/e/f/%d", i, w), path)
			}
			errs <- err
		}()
	}
	for range workers {
		require.NoError(t, <-errs)
	}
	require.LessOrEqual(t, len(s.dirs.open), maxOpenDirectories)
	n := 0
	for _, err := range s.List(ctx, "", "") {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, workers*each, n)
}

// The portable way to rename keeps the same promises.
func TestRenameByLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, err := os.Open(dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	fd := int(f.Fd())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte("a"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b"), []byte("b"), 0o644))
	require.ErrorIs(t, renameByLink(fd, "a", fd, "b"), os.ErrExist)
	require.FileExists(t, filepath.Join(dir, "a"))
	require.NoError(t, renameByLink(fd, "a", fd, "c"))
	require.NoFileExists(t, filepath.Join(dir, "a"))
	require.ErrorIs(t, renameByLink(fd, "x", fd, "y"), os.ErrNotExist)
}

// BenchmarkPut measures a durable small part; doc.go quotes it.
func BenchmarkPut(b *testing.B) {
	for _, parallel := range []int{1, concurrency} {
		b.Run(fmt.Sprint(parallel), func(b *testing.B) {
			s := openTest(b, b.TempDir(), durable.FS{})
			paths := make([]string, b.N)
			for i := range paths {
				paths[i] = stageFile(b, s, strings.Repeat("x", 4000))
			}
			var next atomic.Int64
			errs := make(chan error)
			b.ResetTimer()
			for range parallel {
				go func() {
					var err error
					for i := next.Add(1); int(i) <= b.N && err == nil; i = next.Add(1) {
						_, err = s.Put(context.Background(), fmt.Sprintf("ws/1/node/%d", i), paths[i-1])
					}
					errs <- err
				}()
			}
			for range parallel {
				require.NoError(b, <-errs)
			}
		})
	}
}
