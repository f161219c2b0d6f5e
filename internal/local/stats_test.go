package local_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/local"
	"thalweg/internal/state"
	"thalweg/internal/state/statetest/hostile"
)

// All warnings of a node are there, also where a tally keeps only the first.
func TestNodeStatsHasAllWarnings(t *testing.T) {
	t.Parallel()
	ctx, store, now := t.Context(), hostile.New().Open(), time.Now()
	key, err := store.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: "main"}}, []state.NodeSpec{{Name: "few"}, {Name: "many"}})
	require.NoError(t, err)
	for node, batches := range map[string]int{"few": 3, "many": state.TallyWarningsMax + 5} {
		at := state.NodeKey{RunKey: key, Node: node}
		specs := make([]state.BatchSpec, batches)
		for i := range specs {
			specs[i].Batch = i
		}
		_, err := state.PlanNode(ctx, store, at, 0, state.Plan{Record: []byte("x"), Batches: specs}, "w", now)
		require.NoError(t, err)
		for i := range specs {
			c, err := store.Claim(ctx, state.Bid{Offer: state.Offer{BatchKey: state.BatchKey{NodeKey: at, Batch: i}}, Owner: "w", Now: now, Lease: now.Add(time.Hour)})
			require.NoError(t, err)
			require.NoError(t, store.Commit(ctx, c, state.Outcome{Stats: state.Stats{Engine: time.Second, Warnings: []string{fmt.Sprint("of batch ", i)}}}, now))
		}
	}
	nodes, err := store.Nodes(ctx, key)
	require.NoError(t, err)
	stats := local.NodeStats(ctx, store, nodes)
	for node, batches := range map[string]int{"few": 3, "many": state.TallyWarningsMax + 5} {
		require.Equal(t, time.Duration(batches)*time.Second, stats[node].Engine)
		require.Len(t, stats[node].Warnings, batches)
		require.Equal(t, fmt.Sprint("of batch ", batches-1), stats[node].Warnings[batches-1])
	}
}
