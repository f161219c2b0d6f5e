package durable_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/durable"
)

// recorded is a file system that lists its steps, by path below root, and fails one.
func recorded(root string, fails string) (durable.FS, *[]string) {
	steps := &[]string{}
	return durable.Watched(func(op durable.Op, do func() error) error {
		rel, _ := filepath.Rel(root, op.Path)
		step := fmt.Sprintf("%s %s", op.Step, rel)
		if at := strings.Index(step, "-"); at > 0 { // what stands for a random name
			step = step[:at]
		}
		*steps = append(*steps, step)
		if step == fails {
			return syscall.EIO
		}
		return do()
	}), steps
}

// A directory's name is flushed before anything is put into it, and so is that
// of one that somebody else has made.
func TestMakeAll(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	files, steps := recorded(root, "")
	require.NoError(t, files.MakeAll(filepath.Join(root, "a", "b"), 0o755))
	require.Equal(t, []string{"sync directory ..", "make directory a", "sync directory .", "make directory a/b",
		"sync directory a"}, *steps)
	*steps = nil
	require.NoError(t, files.MakeAll(filepath.Join(root, "a", "b"), 0o755))
	require.Equal(t, []string{"sync directory a"}, *steps)
	require.NoError(t, os.WriteFile(filepath.Join(root, "f"), nil, 0o600))
	require.ErrorIs(t, files.MakeAll(filepath.Join(root, "f"), 0o755), syscall.ENOTDIR)
	require.ErrorIs(t, files.MakeAll(filepath.Join(root, "f", "g"), 0o755), syscall.ENOTDIR)
}

// A small file is whole under its name, or what it was before; nothing stays beside it.
func TestWriteFile(t *testing.T) {
	t.Parallel()
	for _, fails := range []string{"write .f", "sync .f", "rename f", "sync directory .", ""} {
		root := t.TempDir()
		path := filepath.Join(root, "f")
		require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
		files, steps := recorded(root, fails)
		err := files.WriteFile(path, []byte("new"), 0o640)
		text, rerr := os.ReadFile(path)
		require.NoError(t, rerr)
		entries, rerr := os.ReadDir(root)
		require.NoError(t, rerr)
		require.Len(t, entries, 1, fails)
		if fails != "" {
			require.ErrorIs(t, err, syscall.EIO, fails)
			require.Contains(t, []string{"old", "new"}, string(text), fails)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "new", string(text))
		require.Equal(t, []string{"write .f", "sync .f", "rename f", "sync directory ."}, *steps)
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o640), info.Mode().Perm())
	}
}

// The zero value is the system's own.
func TestZeroValue(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	var files durable.FS
	require.NoError(t, files.MakeAll(filepath.Join(root, "d"), 0o755))
	require.NoError(t, files.WriteFile(filepath.Join(root, "d", "f"), []byte("x"), 0o600))
	require.NoError(t, files.Rename(filepath.Join(root, "d", "f"), filepath.Join(root, "d", "g")))
	require.FileExists(t, filepath.Join(root, "d", "g"))
}
