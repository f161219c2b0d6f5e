package runtime

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/registry"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/store/state"
)

// A cluster's runs are cut for its workers, not for the machine that they are submitted from.
func TestRunsArePlannedForTheWorkers(t *testing.T) {
	home, err := instance.Open(t.Context(), filepath.Join(t.TempDir(), "state"), true)
	require.NoError(t, err)
	t.Cleanup(func() { home.Close() })
	here, err := ShareOf(16<<30, 8, false)
	require.NoError(t, err)
	tl := &Runtime{Instance: home, OwnBudget: here}
	got, err := tl.PlanFor(t.Context(), false)
	require.NoError(t, err)
	require.Equal(t, here, got)

	home.ClusterConfig = &clusterconfig.Config{}
	got, err = tl.PlanFor(t.Context(), false)
	require.NoError(t, err)
	require.Equal(t, here, got, "nobody is there yet")

	put := func(name string, memory int64, slots int, seen time.Time, draining bool) {
		data, err := json.Marshal(registry.WorkerEntry{Owner: name, Host: name, Memory: memory, Slots: slots,
			Draining: draining})
		require.NoError(t, err)
		note := state.Note{Topic: registry.TopicWorkers, Name: name, Data: data, Time: seen}
		require.NoError(t, home.State.PutNote(t.Context(), registry.FleetWorkspace, note))
	}
	put("big/1", 64<<30, 32, time.Now(), false)
	put("small/1", 1<<30, 2, time.Now(), false)
	put("gone/1", 256<<20, 1, time.Now().Add(-time.Hour), false)
	put("leaving/1", 256<<20, 1, time.Now(), true)
	small, err := shareProcesses(1<<30, 2, false)
	require.NoError(t, err)
	got, err = tl.PlanFor(t.Context(), false)
	require.NoError(t, err)
	require.Equal(t, small.BatchBytes, got.BatchBytes)
	require.Equal(t, 34, got.Slots)
}
