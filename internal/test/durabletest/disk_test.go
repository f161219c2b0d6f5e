package durabletest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/durable"
	"thalweg/internal/test/durabletest"
)

// What is flushed stays, and anything can happen to what is not: each of it
// does, on some of many disks.
func TestPictures(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for seed := range uint64(200) {
		root := t.TempDir()
		at := func(name string) string { return filepath.Join(root, name) }
		require.NoError(t, os.WriteFile(at("old"), []byte("old"), 0o600))
		disk, err := durabletest.New(root, durabletest.Plan{At: 5, Seed: seed},
			func(path string) bool { return path == "trusted" })
		require.NoError(t, err)
		files := disk.FS()
		require.NoError(t, files.WriteFile(at("kept"), []byte("kept"), 0o600)) // steps 1 to 4
		require.NoError(t, os.WriteFile(at("new"), []byte("new"), 0o600))
		require.NoError(t, os.WriteFile(at("trusted"), []byte("trusted"), 0o600))
		require.NoError(t, os.Rename(at("old"), at("renamed")))
		require.ErrorIs(t, files.SyncDir(root), durabletest.ErrCut)
		require.ErrorIs(t, files.Do(durable.Write, at("x"), func() error { t.Error("without power"); return nil }),
			durabletest.ErrCut)
		require.NoError(t, disk.Restore())

		for _, name := range []string{"kept", "trusted"} {
			text, err := os.ReadFile(at(name))
			require.NoError(t, err)
			require.Equal(t, name, string(text))
		}
		for _, name := range []string{"old", "renamed", "new"} {
			text, err := os.ReadFile(at(name))
			if err != nil {
				text = []byte("gone")
			}
			seen[name+": "+string(text)] = true
		}
	}
	for _, want := range []string{"old: old", "old: gone", "renamed: old", "renamed: gone", "new: gone",
		"new: ", "new: n", "new: new", "new: \x00\x00\x00"} {
		require.True(t, seen[want], "%q has never been seen", want)
	}
}
