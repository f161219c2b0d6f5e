package local

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Each worker of a machine has copies of its own, the next one takes them over,
// and those that nobody has wanted for a day go.
func TestWorkersOfAMachineKeepCopiesApart(t *testing.T) {
	t.Parallel()
	parent := filepath.Join(t.TempDir(), "copies")
	first, firstLock, err := takeCopies(parent)
	require.NoError(t, err)
	second, secondLock, err := takeCopies(parent)
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	for _, dir := range []string{first, second} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	require.NoError(t, firstLock.Close())
	again, againLock, err := takeCopies(parent)
	require.NoError(t, err)
	require.Equal(t, first, again)

	require.NoError(t, againLock.Close())
	require.NoError(t, secondLock.Close())
	old := time.Now().Add(-2 * copiesAge)
	require.NoError(t, os.Chtimes(second+lockSuffix, old, old))
	again, againLock, err = takeCopies(parent)
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.DirExists(t, first)
	require.NoDirExists(t, second)
	require.NoError(t, againLock.Close())
}
