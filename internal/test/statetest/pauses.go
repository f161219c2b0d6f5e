package statetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
)

// statuses lists those of a run and its nodes.
func (b *bench) statuses(run state.RunKey) []state.Status {
	b.t.Helper()
	r, err := b.Run(b.ctx, run)
	require.NoError(b.t, err)
	nodes, err := b.Nodes(b.ctx, run)
	require.NoError(b.t, err)
	all := []state.Status{r.Status}
	for _, n := range nodes {
		all = append(all, n.Status)
	}
	return all
}

// A paused run ends what is under way and begins nothing more: no batch is
// claimed and no node planned, until it goes on where it was.
func testPause(t *testing.T, open Open) {
	b := newBench(t, open)
	run := b.run("busy", "next", "done")
	busy, next, done := state.NodeKey{RunKey: run, Node: "busy"}, state.NodeKey{RunKey: run, Node: "next"},
		state.NodeKey{RunKey: run, Node: "done"}
	require.NoError(t, b.plan(busy, nil, specs(6)))
	require.NoError(t, b.plan(done, nil, nil))
	require.NoError(t, b.move(done, state.Running, state.Succeeded))
	var claims []state.Claim
	for i := range 5 {
		claims = append(claims, b.claim(busy, i, "w", 0))
	}
	hint := b.request(batchOf(busy, 5), "w", 0)
	before := b.theNode(next)

	require.NoError(t, b.direct(run, state.CommandPause))
	require.Equal(t, []state.Status{state.Paused, state.Paused, state.Paused, state.Succeeded}, b.statuses(run))
	require.Empty(t, b.offers(busy, 0))
	_, err := b.Claim(b.ctx, hint)
	require.ErrorIs(t, err, state.ErrNotClaimable, "a hint from before")
	_, err = b.Claim(b.ctx, b.request(batchOf(busy, 5), "w", 0))
	require.ErrorIs(t, err, state.ErrNotClaimable)
	require.ErrorIs(t, planAt(b.ctx, b.Store, next, before.Epoch, nil, specs(1)), state.ErrConflict,
		"a planner that does not know of it")
	require.ErrorIs(t, b.plan(next, nil, specs(1)), state.ErrConflict, "one that has read the node, and not the run")
	require.ErrorIs(t, b.CompleteRun(b.ctx, run, 1, "w", start), state.ErrConflict)
	require.ErrorIs(t, b.direct(run, state.CommandPause), state.ErrConflict, "twice")
	require.ErrorIs(t, b.direct(run, state.CommandInvalidate), state.ErrConflict)
	require.ErrorIs(t, b.direct(run, state.CommandDrop), state.ErrConflict)

	require.NoError(t, b.Extend(b.ctx, claims[0], start.Add(2*lease)))
	require.NoError(t, b.Announce(b.ctx, claims[0], []state.Publication{{Address: "a"}}, start))
	require.NoError(t, b.Commit(b.ctx, claims[0], outcome("while paused"), start))
	require.NoError(t, b.Release(b.ctx, claims[1], start))
	require.NoError(t, b.Retry(b.ctx, claims[2], failure(), stats(), start, start))
	n := b.theNode(busy)
	require.Equal(t, []any{int64(1), int64(0), 0, 1}, []any{n.Epoch, n.Fence, n.Generation, n.BatchesDone})

	require.NoError(t, b.direct(run, state.CommandUnpause))
	require.Equal(t, []state.Status{state.Running, state.Running, state.Pending, state.Succeeded}, b.statuses(run))
	require.Equal(t, []int{1, 2, 5}, b.offers(busy, 0))
	require.NoError(t, b.Commit(b.ctx, claims[3], outcome("over a pause"), start))
	require.NoError(t, b.plan(next, nil, specs(1)))
	_, err = b.Claim(b.ctx, hint)
	require.ErrorIs(t, err, state.ErrNotClaimable, "a late call of before")

	// What a pause leaves good, a stop behind it does not.
	require.NoError(t, b.direct(run, state.CommandPause))
	require.NoError(t, b.direct(run, state.CommandStop))
	require.Equal(t, []state.Status{state.Stopped, state.Stopped, state.Stopped, state.Succeeded}, b.statuses(run))
	b.ended(claims[4])
	require.NoError(t, b.direct(run, state.CommandReopen))
	require.NoError(t, b.direct(run, state.CommandPause))
	require.NoError(t, b.direct(run, state.CommandUnpause))
	b.ended(claims[4])
	require.Equal(t, []string{"while paused", "over a pause"}, b.manifestKeys(busy))
}

// A paused run may fail, be reopened and done again; whoever has not heard
// whether it has a batch may ask again while it is paused.
func testPausedOrders(t *testing.T, open Open) {
	b := newBench(t, open)
	for kind, want := range map[state.CommandKind][]state.Status{
		state.CommandFail:   {state.Failed, state.Stopped},
		state.CommandReopen: {state.Running, state.Running},
		state.CommandRedo:   {state.Running, state.Running},
	} {
		key := b.planned(2)
		request := b.request(batchOf(key, 0), "w", 0)
		c, err := b.Claim(b.ctx, request)
		require.NoError(t, err)
		require.NoError(t, b.direct(key.RunKey, state.CommandPause))
		again, err := b.Claim(b.ctx, request)
		require.NoError(t, err)
		same(t, c, again)
		var about []state.CommandNode
		if kind == state.CommandRedo {
			about = []state.CommandNode{{Node: "n", Batches: []int{1}}}
		}
		require.NoError(t, b.direct(key.RunKey, kind, about...))
		require.Equal(t, want, b.statuses(key.RunKey), kind)
		b.ended(c)
		_, err = b.Claim(b.ctx, request)
		require.ErrorIs(t, err, state.ErrNotClaimable, kind)
	}
	run := b.run("n")
	require.ErrorIs(t, b.direct(run, state.CommandUnpause), state.ErrConflict, "it is not paused")
	require.ErrorIs(t, b.direct(run, state.CommandPause, state.CommandNode{Node: "n"}), state.ErrConflict, "a part of it")
}

// Whoever pauses may die at any step, and a stop may come first.
func testPauseHalfCarriedOut(t *testing.T, open Open) {
	b := newBench(t, open)
	run := b.run("a", "b")
	a, second := state.NodeKey{RunKey: run, Node: "a"}, state.NodeKey{RunKey: run, Node: "b"}
	for _, key := range []state.NodeKey{a, second} {
		require.NoError(t, b.plan(key, nil, specs(2)))
	}
	pause := order(state.CommandPause)
	pause.Epoch, pause.From = 1, state.Running
	require.NoError(t, b.BeginCommand(b.ctx, run, pause))
	require.NoError(t, b.ApplyCommand(b.ctx, a, pause)) // and then it dies
	late := b.claim(second, 0, "w", 0)                  // it has not heard
	require.NoError(t, b.direct(run, state.CommandStop))
	b.ended(late)
	require.NoError(t, b.ApplyCommand(b.ctx, a, pause)) // it wakes up
	require.Equal(t, []state.Status{state.Stopped, state.Stopped, state.Stopped}, b.statuses(run))
	require.ErrorIs(t, b.BeginCommand(b.ctx, run, pause), state.ErrConflict)
	require.ErrorIs(t, b.CommitCommand(b.ctx, run, 1, start), state.ErrConflict)
}
