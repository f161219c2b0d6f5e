package statetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
)

// A dropped run stays as it is, and nobody reads its tables.
func testDropped(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(2)
	c := b.claim(key, 0, "w", 0)
	require.ErrorIs(t, b.direct(key.RunKey, state.CommandDrop), state.ErrConflict, "it is running")
	require.NoError(t, b.direct(key.RunKey, state.CommandStop))
	require.ErrorIs(t, b.direct(key.RunKey, state.CommandDrop, state.CommandNode{Node: "n"}), state.ErrConflict,
		"a part of it")
	require.False(t, b.theNode(key).Dropped)
	require.NoError(t, b.direct(key.RunKey, state.CommandDrop))
	run, err := b.Run(b.ctx, key.RunKey)
	require.NoError(t, err)
	same(t, &state.Mark{Actor: "boss", Time: start, Reason: "why not"}, run.Dropped)
	require.Equal(t, []any{state.Stopped, (*state.Mark)(nil)}, []any{run.Status, run.Invalidated})
	require.Equal(t, []any{state.Invalidated, true}, []any{b.theNode(key).Status, b.theNode(key).Dropped})
	b.ended(c)
	for _, kind := range []state.CommandKind{state.CommandReopen, state.CommandRedo, state.CommandInvalidate,
		state.CommandDrop, state.CommandUnpause} {
		require.ErrorIs(t, b.direct(key.RunKey, kind), state.ErrConflict, kind)
		require.ErrorIs(t, b.direct(key.RunKey, kind, state.CommandNode{Node: "n"}), state.ErrConflict, kind)
	}
	runs, err := state.All(b.ctx, b.Runs, b.workspace)
	require.NoError(t, err)
	require.NotNil(t, runs[0].Dropped)
}

// A node of a dropped run loses what is large, and no other does.
func testPurge(t *testing.T, open Open) {
	b := newBench(t, open)
	run := b.run("kept", "purged")
	kept, key := state.NodeKey{RunKey: run, Node: "kept"}, state.NodeKey{RunKey: run, Node: "purged"}
	for _, n := range []state.NodeKey{kept, key} {
		plan := state.Plan{Record: []byte("plan"), Batches: specs(4), InputDigest: "d", ReusedFrom: &kept,
			Inputs: []state.Input{{Address: "a", Time: start}}}
		_, err := state.PlanNode(b.ctx, b.Store, n, 0, plan, "w", start)
		require.NoError(t, err)
		require.NoError(t, b.StagePlan(b.ctx, n, "another", state.PlanPiece{Batches: specs(2)}))
		out := outcome("part")
		out.Files, out.Checks = []state.File{{URL: "f"}}, []state.CheckResult{{Name: "c"}}
		require.NoError(t, b.Commit(b.ctx, b.claim(n, 0, "w", 0), out, start))
		require.NoError(t, b.Fail(b.ctx, b.claim(n, 1, "w", 0), failure(), beside(), start))
		c := b.claim(n, 2, "w", 0)
		require.NoError(t, b.Announce(b.ctx, c, []state.Publication{{Address: "a"}}, start))
		require.NoError(t, b.Retry(b.ctx, c, failure(), stats(), start, start))
	}
	late := b.claim(key, 3, "w", 0)
	refused := func(why string) {
		t.Helper()
		before, err := take(b.ctx, b.Store, run, start)
		require.NoError(t, err)
		require.ErrorIs(t, b.Purge(b.ctx, key), state.ErrConflict, why)
		after, err := take(b.ctx, b.Store, run, start)
		require.NoError(t, err)
		same(t, before, after)
	}
	refused("it is running")
	require.NoError(t, b.direct(run, state.CommandStop))
	refused("it is only over")
	require.NoError(t, b.direct(run, state.CommandInvalidate))
	refused("it is only invalid")
	drop := order(state.CommandDrop)
	drop.Epoch, drop.From = 3, state.Stopped
	require.NoError(t, b.BeginCommand(b.ctx, run, drop))
	refused("it has not heard")
	require.ErrorIs(t, b.direct(run, state.CommandReopen), state.ErrConflict, "which carries it out")

	before, err := takeNode(b.ctx, b.Store, kept, start)
	require.NoError(t, err)
	was, err := takeNode(b.ctx, b.Store, key, start)
	require.NoError(t, err)
	for range 2 { // the second time as one that did not hear the answer
		require.NoError(t, b.Purge(b.ctx, key))
		got, err := takeNode(b.ctx, b.Store, key, start)
		require.NoError(t, err)
		want := nodePicture{Node: was.Node, Events: was.Events, Tally: was.Tally}
		want.Node.Plan, want.Node.PlanDigest, want.Node.InputDigest, want.Node.ReusedFrom = nil, "", "", nil
		same(t, want, got)
	}
	after, err := takeNode(b.ctx, b.Store, kept, start)
	require.NoError(t, err)
	same(t, before, after)
	require.ErrorIs(t, b.Commit(b.ctx, late, outcome("late"), start), state.ErrLeaseLost)
	require.NoError(t, b.StagePlan(b.ctx, key, "late", state.PlanPiece{Batches: specs(2)}))
	require.ErrorIs(t, b.plan(key, nil, specs(2)), state.ErrConflict)
	require.NoError(t, b.Purge(b.ctx, key))
	require.Empty(t, b.manifestKeys(key))
}

// A purge of what no single step can remove.
func testPurgeMany(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(12_000)
	require.NoError(t, b.Commit(b.ctx, b.claim(key, 11_999, "w", 0), outcome("last"), start))
	require.NoError(t, b.direct(key.RunKey, state.CommandStop))
	require.NoError(t, b.direct(key.RunKey, state.CommandDrop))
	require.NoError(t, b.Purge(b.ctx, key))
	p, err := takeNode(b.ctx, b.Store, key, start)
	require.NoError(t, err)
	require.Zero(t, len(p.Batches)+len(p.Specs)+len(p.Attempts)+len(p.Parts))
	require.Equal(t, []int{12_000, 1}, []int{p.Node.BatchesTotal, p.Node.BatchesDone}, "its record stays")
}

// Each attempt keeps what it measured, also when the batch goes on without it.
func testAttemptStats(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(2)
	second := outcome("p")
	require.NoError(t, b.Retry(b.ctx, b.claim(key, 1, "host/1/2", 0), failure(), stats(), start, start))
	require.Zero(t, b.theBatch(key, 1).Stats.RowsIn)
	require.NoError(t, b.Release(b.ctx, b.claim(key, 1, "host/1/2", 0), start))
	third := beside()
	third.Stats = stats()
	third.Stats.RowsIn = 33
	require.NoError(t, b.Fail(b.ctx, b.claim(key, 1, "w", 0), failure(), third, start))
	require.NoError(t, b.direct(key.RunKey, state.CommandReopen))
	require.NoError(t, b.Commit(b.ctx, b.claim(key, 1, "w", 0), second, start))
	b.claim(key, 0, "w", 0)

	got, attempts, err := b.Batch(b.ctx, batchOf(key, 1))
	require.NoError(t, err)
	want := b.theBatch(key, 1)
	want.Work = specs(2)[1].Work
	same(t, want, got)
	same(t, b.attempts(key)[1:], attempts)
	var measured []state.Stats
	for _, a := range attempts {
		measured = append(measured, a.Stats)
	}
	same(t, []state.Stats{stats(), {}, third.Stats, second.Stats}, measured)
	require.Equal(t, "host/1/2", attempts[0].Owner)
	require.NoError(t, b.direct(key.RunKey, state.CommandRedo, state.CommandNode{Node: "n", Batches: []int{1}}))
	_, attempts, err = b.Batch(b.ctx, batchOf(key, 1))
	require.NoError(t, err)
	require.True(t, attempts[3].Withdrawn)
	same(t, second.Stats, attempts[3].Stats)
	for _, batch := range []int{2, -1} {
		_, _, err = b.Batch(b.ctx, batchOf(key, batch))
		require.ErrorIs(t, err, state.ErrNotFound)
	}
}
