package statetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
)

// Whoever gave an order may die at any step of it: anybody carries on, and
// what it slept through changes nothing when it wakes up.
func testOrderHalfCarriedOut(t *testing.T, open Open) {
	b := newBench(t, open)
	run := b.run("a", "b", "c")
	keys := make([]state.NodeKey, 3)
	claims := make([]state.Claim, 3)
	for i, name := range []string{"a", "b", "c"} {
		keys[i] = state.NodeKey{RunKey: run, Node: name}
		require.NoError(t, b.plan(keys[i], nil, specs(1)))
		claims[i] = b.claim(keys[i], 0, "w", 0)
	}
	stop := order(state.CommandStop)
	stop.Epoch, stop.From = 1, state.Running
	for range 2 { // the second time as one that did not hear the answer
		require.NoError(t, b.BeginCommand(b.ctx, run, stop))
	}
	require.NoError(t, b.ApplyCommand(b.ctx, keys[0], stop)) // and then it dies
	b.ended(claims[0])
	require.NoError(t, b.Extend(b.ctx, claims[1], start), "who has not heard goes on")

	other := order(state.CommandReopen)
	other.Epoch, other.From = 2, state.Running
	require.ErrorIs(t, b.BeginCommand(b.ctx, run, other), state.ErrConflict, "one after the other")
	require.ErrorIs(t, b.CompleteRun(b.ctx, run, 1, "w", start), state.ErrConflict)
	got, err := b.Run(b.ctx, run)
	require.NoError(t, err)
	require.Equal(t, state.Running, got.Status, "a request is not the state")
	require.True(t, got.Command.Pending())
	require.NoError(t, state.Carry(b.ctx, b.Store, got, start))
	for i := range keys {
		b.ended(claims[i])
		require.Equal(t, state.Stopped, b.theNode(keys[i]).Status)
	}
	require.NoError(t, b.direct(run, state.CommandReopen))
	again := b.claim(keys[2], 0, "w", 0)
	for _, key := range keys { // it wakes up
		require.NoError(t, b.ApplyCommand(b.ctx, key, stop))
	}
	require.ErrorIs(t, b.CommitCommand(b.ctx, run, 1, start), state.ErrConflict)
	require.ErrorIs(t, b.BeginCommand(b.ctx, run, stop), state.ErrConflict)
	require.NoError(t, b.Commit(b.ctx, again, outcome("p"), start))
	got, err = b.Run(b.ctx, run)
	require.NoError(t, err)
	require.Equal(t, state.Running, got.Status)
}

// Orders that are given together are carried out one after the other: the run
// and all its nodes are as the last one says.
func testOrderRace(t *testing.T, open Open) {
	b := newBench(t, open)
	run := b.run("a", "b", "c")
	kinds := []state.CommandKind{state.CommandStop, state.CommandReopen}
	errs := together(8, func(i int) error {
		return state.Direct(b.ctx, b.Store, run, order(kinds[i%2]))
	})
	split(t, errs, state.ErrConflict) // a stop of what is stopped
	got, err := b.Run(b.ctx, run)
	require.NoError(t, err)
	require.True(t, got.Command.Done)
	want := map[state.CommandKind][]state.Status{state.CommandStop: {state.Stopped, state.Stopped},
		state.CommandReopen: {state.Running, state.Pending}}[got.Command.Kind]
	require.Equal(t, want[0], got.Status)
	nodes, err := b.Nodes(b.ctx, run)
	require.NoError(t, err)
	for _, n := range nodes {
		require.Equal(t, want[1], n.Status)
		require.Equal(t, got.Epoch, n.Epoch)
	}
}

// An order that is about some nodes leaves what others do alone.
func testOrdersAndRuns(t *testing.T, open Open) {
	b := newBench(t, open)
	run := b.run("a", "b")
	busy, done := state.NodeKey{RunKey: run, Node: "a"}, state.NodeKey{RunKey: run, Node: "b"}
	require.NoError(t, b.plan(busy, nil, specs(1)))
	require.NoError(t, b.plan(done, nil, nil))
	require.NoError(t, b.move(done, state.Running, state.Succeeded))
	c := b.claim(busy, 0, "w", 0)
	require.NoError(t, b.direct(run, state.CommandRedo, state.CommandNode{Node: "b"}))
	require.NoError(t, b.Commit(b.ctx, c, outcome("p"), start))
	require.Equal(t, state.Running, b.theNode(done).Status)
	require.Equal(t, 1, b.theNode(done).Generation)
	require.NoError(t, b.move(busy, state.Running, state.Succeeded))
	require.NoError(t, b.move(done, state.Running, state.Succeeded))
	require.NoError(t, b.CompleteRun(b.ctx, run, 1, "w", start))

	// A complete run goes on with what is done again.
	require.NoError(t, b.direct(run, state.CommandRedo, state.CommandNode{Node: "a"}))
	require.Equal(t, []state.Status{state.Running, state.Succeeded},
		[]state.Status{b.theNode(busy).Status, b.theNode(done).Status})
	require.Empty(t, b.manifestKeys(busy))
	require.Equal(t, []int{0}, b.offers(busy, 0))
}

// One batch is done again: the others keep what they have, and the attempts
// all stay.
func testRedoBatch(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(3)
	for i := range 3 {
		require.NoError(t, b.Commit(b.ctx, b.claim(key, i, "w", 0), outcome(fmt.Sprint("first ", i)), start))
	}
	require.NoError(t, b.move(key, state.Running, state.Succeeded))
	require.NoError(t, b.direct(key.RunKey, state.CommandRedo, state.CommandNode{Node: "n", Batches: []int{1}}))
	n := b.theNode(key)
	require.Equal(t, []any{state.Running, 1, int64(1), 2, int64(6)},
		[]any{n.Status, n.Generation, n.Epoch, n.BatchesDone,
			n.RowsOut})
	require.Equal(t, []string{"first 0", "first 2"}, b.manifestKeys(key))
	require.Equal(t, []int{1}, b.offers(key, 0))
	c := b.claim(key, 1, "w", 0)
	require.Equal(t, []int{2, 0}, []int{c.Attempt, c.Tries})
	require.NoError(t, b.Commit(b.ctx, c, outcome("second"), start))
	require.Equal(t, []string{"first 0", "second", "first 2"}, b.manifestKeys(key))
	all := b.attempts(key)
	require.Len(t, all, 4)
	for i, a := range all {
		require.Equal(t, i == 1, a.Withdrawn, i)
		require.Equal(t, i == 2, a.Generation == 1, i)
	}
}

// A node whose inputs have changed is planned again, perhaps otherwise; the
// numbers of attempts go on where they were.
func testRedoReplanned(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(3)
	late := b.claim(key, 2, "w", 0)
	require.NoError(t, b.Commit(b.ctx, b.claim(key, 0, "w", 0), outcome("first"), start))
	require.NoError(t, b.direct(key.RunKey, state.CommandRedo, state.CommandNode{Node: "n", Replan: true}))
	n := b.theNode(key)
	require.Equal(t, []any{state.Pending, "", 0, 0}, []any{n.Status, n.PlanDigest, n.BatchesTotal, n.BatchesDone})
	b.ended(late)
	require.Empty(t, b.manifestKeys(key))
	require.NoError(t, b.plan(key, []byte("new"), specs(1)))
	b.ended(late)
	c := b.claim(key, 0, "w", 0)
	require.Equal(t, 2, c.Attempt)
	require.NoError(t, b.Commit(b.ctx, c, outcome("second"), start))
	require.Equal(t, []string{"second"}, b.manifestKeys(key))

	require.NoError(t, b.direct(key.RunKey, state.CommandRedo, state.CommandNode{Node: "n", Replan: true}))
	require.NoError(t, b.plan(key, []byte("plan"), specs(3))) // the plan of the beginning
	require.Equal(t, []int{0, 1, 2}, b.offers(key, 0))
	require.Equal(t, 2, b.claim(key, 2, "w", 0).Attempt)
	require.Len(t, b.attempts(key), 4)
	b.ended(late)
}

// Nobody reads what is invalid, and an invalid run does not go on.
func testInvalidated(t *testing.T, open Open) {
	b := newBench(t, open)
	run := b.run("a", "b")
	a := state.NodeKey{RunKey: run, Node: "a"}
	require.NoError(t, b.plan(a, nil, nil))
	require.NoError(t, b.move(a, state.Running, state.Succeeded))
	require.NoError(t, b.direct(run, state.CommandStop))
	require.NoError(t, b.direct(run, state.CommandInvalidate, state.CommandNode{Node: "a"}))
	require.Equal(t, state.Invalidated, b.theNode(a).Status)
	got, err := b.Run(b.ctx, run)
	require.NoError(t, err)
	require.Nil(t, got.Invalidated, "a part of it")
	require.NoError(t, b.direct(run, state.CommandReopen)) // which does the invalid part again
	require.Equal(t, []any{state.Running, 1}, []any{b.theNode(a).Status, b.theNode(a).Generation})

	require.NoError(t, b.direct(run, state.CommandStop))
	require.NoError(t, b.direct(run, state.CommandInvalidate))
	got, err = b.Run(b.ctx, run)
	require.NoError(t, err)
	same(t, &state.Mark{Actor: "boss", Time: start, Reason: "why not"}, got.Invalidated)
	require.ErrorIs(t, b.direct(run, state.CommandReopen), state.ErrConflict)
	require.ErrorIs(t, b.direct(run, state.CommandRedo, state.CommandNode{Node: "a"}), state.ErrConflict)
	runs, err := state.All(b.ctx, b.Runs, b.workspace)
	require.NoError(t, err)
	require.NotNil(t, runs[0].Invalidated)
	require.Equal(t, state.NodeBrief{Name: "a", Status: state.Invalidated}, runs[0].Nodes[0])
}

// A try that failed may be repeated, not before its time; being shut down uses
// up none, being taken for dead does.
func testRetry(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(1)
	c := b.claim(key, 0, "w", 0)
	for range 2 { // the second time as one that did not hear the answer
		require.NoError(t, b.Retry(b.ctx, c, failure(), stats(), start.Add(time.Minute), start))
	}
	got := b.theBatch(key, 0)
	require.Equal(t, []any{state.Pending, 1, 1}, []any{got.Status, got.Attempt, got.Tries})
	same(t, start.Add(time.Minute), got.NotBefore)
	f := failure()
	same(t, state.Attempt{BatchKey: c.BatchKey, Attempt: 1, Owner: "w", Status: state.Failed, Started: start,
		Finished: start, Failure: &f, Stats: stats()}, b.attempts(key)[0])
	require.Zero(t, b.theNode(key).BatchesFailed)
	require.Empty(t, b.offers(key, time.Second))
	_, err := b.Claim(b.ctx, b.request(c.BatchKey, "w", time.Second))
	require.ErrorIs(t, err, state.ErrNotClaimable)
	require.Equal(t, []int{0}, b.offers(key, time.Minute))

	c = b.claim(key, 0, "w", time.Minute)
	require.Equal(t, 1, c.Tries)
	require.NoError(t, b.Release(b.ctx, c, start))
	require.Equal(t, 1, b.theBatch(key, 0).Tries)
	b.claim(key, 0, "dead", 2*time.Minute)
	c = b.claim(key, 0, "w", 2*lease)
	require.Equal(t, []int{4, 2}, []int{c.Attempt, c.Tries})
	require.NoError(t, b.direct(key.RunKey, state.CommandReopen))
	require.Zero(t, b.claim(key, 0, "w", 0).Tries, "an order counts anew")
}

// What is on offer is what can be claimed, phase by phase.
func testOffers(t *testing.T, open Open) {
	b := newBench(t, open)
	key := state.NodeKey{RunKey: b.run("n"), Node: "n"}
	require.Empty(t, b.offers(key, 0))
	phased := specs(4)
	phased[0].Phase, phased[3].Phase = 2, 2
	require.NoError(t, b.plan(key, nil, phased))
	require.Equal(t, []int{1, 2}, b.offers(key, 0))
	some, next, err := b.Offers(b.ctx, key, start, state.Page{Limit: 1})
	require.NoError(t, err)
	same(t, []state.Offer{{BatchKey: batchOf(key, 1), Class: "load"}}, some)
	some, _, err = b.Offers(b.ctx, key, start, state.Page{Limit: 1, From: next})
	require.NoError(t, err)
	require.Equal(t, 2, some[0].Batch)
	b.claim(key, 1, "dead", 0)
	require.NoError(t, b.Fail(b.ctx, b.claim(key, 2, "w", 0), failure(), state.Outcome{}, start))
	require.Empty(t, b.offers(key, lease))
	require.Equal(t, []int{1}, b.offers(key, 2*lease))
	require.NoError(t, b.Commit(b.ctx, b.claim(key, 1, "w", 2*lease), outcome("p"), start))
	require.Empty(t, b.offers(key, 0), "one of the first phase has failed")
	require.NoError(t, b.direct(key.RunKey, state.CommandReopen))
	require.NoError(t, b.Commit(b.ctx, b.claim(key, 2, "w", 0), outcome("q"), start))
	require.Equal(t, []int{0, 3}, b.offers(key, 0))
	require.NoError(t, b.direct(key.RunKey, state.CommandStop))
	require.Empty(t, b.offers(key, 0))
}

// Whoever did not hear whether it has the batch asks again; a message that
// comes twice gives nothing to nobody.
func testClaimRepeated(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(1)
	request := b.request(batchOf(key, 0), "w", 0)
	first, err := b.Claim(b.ctx, request)
	require.NoError(t, err)
	again, err := b.Claim(b.ctx, request)
	require.NoError(t, err)
	same(t, first, again)
	require.Len(t, b.attempts(key), 1)
	other := request
	other.Token = "another slot of the same worker"
	_, err = b.Claim(b.ctx, other)
	require.ErrorIs(t, err, state.ErrNotClaimable)
	require.NoError(t, b.Release(b.ctx, first, start))
	_, err = b.Claim(b.ctx, request)
	require.ErrorIs(t, err, state.ErrNotClaimable, "a late one: nobody would work on it")
	require.Equal(t, []int{0}, b.offers(key, 0))
}
