package control

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runtime"
	"thalweg/internal/io/remote"
	"thalweg/internal/ops/gc"
	"thalweg/internal/store/state"
)

// A run ends, and removes its copies, between the moment in which gc sees them
// and that in which it has the run for itself.
func TestCopiesAreGoneWhenTheyAreCollected(t *testing.T) {
	t.Parallel()
	home, err := instance.Open(t.Context(), filepath.Join(t.TempDir(), instance.DefaultDir), true)
	require.NoError(t, err)
	defer func() { require.NoError(t, home.Close()) }()
	client := remote.New(remote.Config{})
	defer client.Close()
	var amount gc.Amount
	key := state.RunKey{Workspace: instance.DefaultWorkspace, Run: 1}
	require.NoError(t, collectCopiesOf(t.Context(), home, key, CollectOptions{Workspace: instance.DefaultWorkspace,
		Process: runtime.Process{Remote: client}},
		&amount))
	require.Zero(t, amount)
}
