package local

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/io/remote"
	"thalweg/internal/ops/gc"
	"thalweg/internal/store/state"
)

// A run ends, and removes its copies, between the moment in which gc sees them
// and that in which it has the run for itself.
func TestCopiesAreGoneWhenTheyAreCollected(t *testing.T) {
	t.Parallel()
	home, err := Open(t.Context(), filepath.Join(t.TempDir(), DefaultDir), true)
	require.NoError(t, err)
	defer func() { require.NoError(t, home.Close()) }()
	client := remote.New(remote.Config{})
	defer client.Close()
	var amount gc.Amount
	key := state.RunKey{Workspace: DefaultWorkspace, Run: 1}
	require.NoError(t, home.collectCopiesOf(t.Context(), key, CollectOptions{Workspace: DefaultWorkspace,
		Process: Process{Remote: client}},
		&amount))
	require.Zero(t, amount)
}
