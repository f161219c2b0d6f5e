package infer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/engine"
	"thalweg/internal/sqltext"
)

func makeParquet(t *testing.T, path, query string) {
	t.Helper()
	in, err := engine.OpenInstance(t.Context(), engine.InstanceConfig{MemoryBytes: 64 << 20, Threads: 1, SpillDir: t.TempDir(), Paths: []string{path}})
	require.NoError(t, err)
	require.NoError(t, in.Exec(t.Context(), "COPY ("+query+") TO "+sqltext.String(path)+" (FORMAT parquet)"))
	require.NoError(t, in.Close())
}
