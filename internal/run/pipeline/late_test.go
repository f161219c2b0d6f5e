package pipeline_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An attempt that stood still before it showed its file, and goes on when others have written the file
// and its manifest, changes nothing of what they have written.
func TestALateAttemptLeavesTheManifest(t *testing.T) {
	t.Parallel()
	b := newBench(t, "id\n1\n2\n")
	b.do("load")
	b.planned("listed", 2)
	earlier := filepath.Join(b.dir, "listed", "items.csv.manifest.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(earlier), 0o700))
	require.NoError(t, os.WriteFile(earlier, []byte("of an earlier run"), 0o600))

	first := b.claim("listed")
	late, err := b.job.Execute(t.Context(), first)
	require.NoError(t, err)
	require.Len(t, b.left("listed"), 2)
	require.NoError(t, b.state.Release(t.Context(), first, time.Now()))
	for batch := range 2 {
		c := b.claim("listed")
		require.Equal(t, batch, c.Batch)
		res, err := b.job.Execute(t.Context(), c)
		require.NoError(t, err)
		if batch == 0 {
			require.FileExists(t, earlier, "it goes when the file is shown, not before")
		}
		require.NoError(t, res.Publish(t.Context()))
		require.NoError(t, b.state.Commit(t.Context(), c, res.Outcome, time.Now()))
		if batch == 0 {
			require.Equal(t, []string{"items.csv"}, b.left("listed"))
		}
	}
	require.Equal(t, []string{"items.csv", "items.csv.manifest.json"}, b.left("listed"))
	require.Error(t, late.Publish(t.Context()))
	late.Discard()
	require.Equal(t, []string{"items.csv", "items.csv.manifest.json"}, b.left("listed"))
}
