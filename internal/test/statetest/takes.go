package statetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
)

// A failure that somebody takes stays as it is: lists and all readers see who does, until the run goes on.
func testTaken(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(2)
	c := b.claim(key, 0, "w", 0)
	require.NoError(t, b.Commit(b.ctx, c, outcome("kept"), start))
	require.NoError(t, b.direct(key.RunKey, state.CommandFail))
	taken := func() *state.Mark {
		t.Helper()
		run, err := b.Run(b.ctx, key.RunKey)
		require.NoError(t, err)
		runs, err := state.All(b.ctx, b.Runs, b.workspace)
		require.NoError(t, err)
		same(t, run.Taken(), runs[0].Taken())
		return run.Taken()
	}
	require.Nil(t, taken())
	before, err := b.Run(b.ctx, key.RunKey)
	require.NoError(t, err)
	node := b.theNode(key)
	for _, who := range []string{"ann", "ben"} { // the second in place of the first
		take := order(state.CommandTake)
		take.Actor, take.Reason = who, "I ask the supplier"
		require.NoError(t, state.Direct(b.ctx, b.Store, key.RunKey, take))
		same(t, &state.Mark{Actor: who, Time: start, Reason: "I ask the supplier"}, taken())
	}
	after, err := b.Run(b.ctx, key.RunKey)
	require.NoError(t, err)
	require.Equal(t, before.Epoch+2, after.Epoch)
	after.Epoch, after.Command = before.Epoch, before.Command
	same(t, before, after)
	same(t, node, b.theNode(key))
	require.Equal(t, []string{"kept"}, b.manifestKeys(key))
	require.ErrorIs(t, b.direct(key.RunKey, state.CommandTake, state.CommandNode{Node: "n"}), state.ErrConflict,
		"a part of it")
	require.NoError(t, b.direct(key.RunKey, state.CommandReopen))
	require.Nil(t, taken())
	require.ErrorIs(t, b.direct(key.RunKey, state.CommandTake), state.ErrConflict, "it is running")
	require.NoError(t, b.direct(key.RunKey, state.CommandFail))
	require.Nil(t, taken(), "another failure")
	require.NoError(t, b.direct(key.RunKey, state.CommandDrop))
	require.ErrorIs(t, b.direct(key.RunKey, state.CommandTake), state.ErrConflict, "nobody lists it")
}
