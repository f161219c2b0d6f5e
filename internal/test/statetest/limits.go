package statetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
)

// That a run is about to reach its limit is told once for each limit, and changes nothing else. A command that lets it
// go on may give it another limit, or none.
func testLimits(t *testing.T, open Open) {
	b := newBench(t, open)
	plain := b.run()
	require.ErrorIs(t, b.direct(plain, state.CommandForesee), state.ErrConflict, "it has no limit")
	run := state.Run{RunKey: state.RunKey{Workspace: b.workspace}, Created: start, Limit: &state.Limit{Elapsed: time.Hour}}
	key, err := b.CreateRun(b.ctx, run, []state.NodeSpec{{Name: "n"}})
	require.NoError(t, err)
	now := func() state.Run {
		t.Helper()
		run, err := b.Run(b.ctx, key)
		require.NoError(t, err)
		return run
	}
	before := now()
	require.NoError(t, b.direct(key, state.CommandForesee))
	after := now()
	require.True(t, after.Limit.Foreseen)
	require.True(t, after.Limit.Same(before.Limit))
	require.Equal(t, before.Epoch+1, after.Epoch)
	after.Epoch, after.Command, after.Limit = before.Epoch, before.Command, before.Limit
	same(t, before, after)
	require.ErrorIs(t, b.direct(key, state.CommandForesee), state.ErrConflict, "it was told")
	for _, limit := range []*state.Limit{{Cost: 7, PerHour: 3}, nil, {}} { // the second leaves it, the third takes it away
		require.NoError(t, b.direct(key, state.CommandPause))
		c := order(state.CommandUnpause)
		c.Limit = limit
		require.NoError(t, state.Direct(b.ctx, b.Store, key, c))
		if limit == nil {
			limit = &state.Limit{Cost: 7, PerHour: 3}
		}
		require.True(t, now().Limit.Same(limit), "%+v", now().Limit)
		require.Equal(t, state.Running, now().Status)
	}
	require.Nil(t, now().Limit)
}
