package instance

import (
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
)

// Who looks whether a run is at work is not taken for somebody at work by others who look.
func TestLookersAreNotAtWork(t *testing.T) {
	t.Parallel()
	home, err := Open(t.Context(), filepath.Join(t.TempDir(), "state"), true)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, home.Close()) })
	key := state.RunKey{Workspace: DefaultWorkspace, Run: 1}
	var lookers sync.WaitGroup
	var wrong atomic.Int64
	for range 8 {
		lookers.Go(func() {
			for range 500 {
				if home.AtWork(key) {
					wrong.Add(1)
				}
			}
		})
	}
	lookers.Wait()
	require.Zero(t, wrong.Load())
	lock, _, err := home.JoinRun(key)
	require.NoError(t, err)
	require.True(t, home.AtWork(key))
	require.NoError(t, lock.Close())
	require.False(t, home.AtWork(key))
}
