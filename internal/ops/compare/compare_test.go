package compare_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/parts"
	"thalweg/internal/store/state"
)

// part is a manifest entry of a file.
func part(t *testing.T, path string, rows int) state.Part {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	sum, bytes, err := parts.Checksum(f)
	require.NoError(t, err)
	return state.Part{Key: path, Rows: int64(rows), Bytes: bytes, Checksum: sum, Bucket: -1}
}
