package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/access"
	"thalweg/internal/app/access/sqlite"
	"thalweg/internal/test/accesstest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	accesstest.Run(t, func(t *testing.T, name string) access.Store {
		s, err := sqlite.Open(t.Context(), filepath.Join(dir, name+".db"))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	})
}

func TestOpen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a b%.db")
	s, err := sqlite.Open(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	is, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), is.Mode().Perm(), "nobody else reads it")
	_, err = sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "none", "x.db"))
	require.ErrorContains(t, err, "cannot be opened")
}
