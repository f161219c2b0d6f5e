package files

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
)

// What a file's size and time do not show is seen in its beginning and end.
func TestUnchangedSeesTheEnds(t *testing.T) {
	t.Parallel()
	when := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	for _, size := range []int{1, edgeBytes, edgeBytes + 1, 2*edgeBytes - 1, 2 * edgeBytes, 5 * edgeBytes} {
		path := filepath.Join(t.TempDir(), "in")
		write := func(at int) {
			data := bytes.Repeat([]byte("x"), size)
			if at >= 0 {
				data[at] ^= 1
			}
			require.NoError(t, os.WriteFile(path, data, 0o644))
			require.NoError(t, os.Chtimes(path, when, when))
		}
		write(-1)
		digest, err := digestEdges(path, int64(size))
		require.NoError(t, err)
		s := Slice{Path: path, URL: "in", FileBytes: int64(size), ModTime: when, Digest: digest}
		require.NoError(t, Unchanged([]Slice{s}))
		for _, at := range []int{0, size - 1, min(size, edgeBytes) - 1, max(size-edgeBytes, 0)} {
			write(at)
			err := Unchanged([]Slice{s})
			require.ErrorContains(t, err, "its contents are not", "byte %d of %d", at, size)
			require.Contains(t, fault.Of(err).Hint, "begins a new one")
		}
	}
}
