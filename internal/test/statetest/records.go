package statetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
)

// A role is one owner's at a time.
func testRoles(t *testing.T, open Open) {
	b := newBench(t, open)
	run := b.run()
	take := func(owner string, at time.Duration) (state.Role, error) {
		return b.Acquire(b.ctx, run, "coordinator", owner, start.Add(at), start.Add(at+lease))
	}
	first, err := take("a", 0)
	require.NoError(t, err)
	same(t, state.Role{Name: "coordinator", Owner: "a", Term: 1, Until: start.Add(lease)}, first)
	held, err := take("b", time.Second)
	require.ErrorIs(t, err, state.ErrHeld)
	same(t, first, held)
	longer, err := take("a", time.Minute)
	require.NoError(t, err)
	require.Equal(t, int64(1), longer.Term)
	late, err := take("a", 0) // a call that comes late shortens nothing
	require.NoError(t, err)
	same(t, longer, late)
	_, err = b.Acquire(b.ctx, run, "another", "b", start, start)
	require.NoError(t, err)

	require.NoError(t, b.Resign(b.ctx, run, "coordinator", "b")) // it is not theirs
	_, err = take("b", time.Second)
	require.ErrorIs(t, err, state.ErrHeld)
	after, err := take("b", 3*lease)
	require.NoError(t, err)
	require.Equal(t, int64(2), after.Term)
	require.NoError(t, b.Resign(b.ctx, run, "coordinator", "b"))
	free, err := take("a", 0)
	require.NoError(t, err)
	require.Equal(t, int64(3), free.Term)

	race := b.run()
	errs := together(8, func(i int) error {
		_, err := b.Acquire(b.ctx, race, "r", fmt.Sprint(i), start, start.Add(lease))
		return err
	})
	require.Equal(t, 1, split(t, errs, state.ErrHeld))
}

// What a run was made from stays, and is there once whoever names it.
func testPins(t *testing.T, open Open) {
	b := newBench(t, open)
	blobs := []state.Blob{state.NewBlob([]byte("script\x00\xff")), state.NewBlob(nil)}
	run := state.Run{RunKey: state.RunKey{Workspace: b.workspace}, Token: "once"}
	for _, blob := range blobs {
		run.Pins = append(run.Pins, state.Pin{Kind: state.PinScript, Digest: blob.Digest,
			Bytes: int64(len(blob.Content))})
	}
	key, err := b.CreateRun(b.ctx, run, []state.NodeSpec{{Name: "n"}}, blobs...)
	require.NoError(t, err)
	again, err := b.CreateRun(b.ctx, run, []state.NodeSpec{{Name: "n"}}, blobs...) // its answer was lost
	require.NoError(t, err)
	require.Equal(t, key, again)
	run.Token = "another"
	again, err = b.CreateRun(b.ctx, run, []state.NodeSpec{{Name: "n"}}, blobs...)
	require.NoError(t, err)
	require.Equal(t, key.Run+1, again.Run)
	for _, blob := range blobs {
		content, err := b.Blob(b.ctx, blob.Digest)
		require.NoError(t, err)
		require.Equal(t, string(blob.Content), string(content))
	}
	_, err = b.Blob(b.ctx, "sha256:none")
	require.ErrorIs(t, err, state.ErrNotFound)
}

// What a dead attempt was about to publish is there for others to see to.
func testPublications(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(3)
	announced := func() []state.Publication {
		all, err := state.All(b.ctx, b.Publications, key)
		require.NoError(t, err)
		return all
	}
	dead := b.claim(key, 1, "dead", 0)
	first := []state.Publication{{Address: "out/1.csv", Temp: "out/.tmp1"}}
	both := []state.Publication{first[0], {Seq: 4, Address: "s3://b/1", Upload: "u"}}
	require.NoError(t, b.Announce(b.ctx, dead, first, start.Add(2*lease)))
	require.NoError(t, b.Announce(b.ctx, dead, both[1:], start.Add(lease)))
	// too late: what was said stays
	require.NoError(t, b.Announce(b.ctx, dead, []state.Publication{{Address: "another"}}, start))
	for i := range both {
		both[i].BatchKey, both[i].Attempt, both[i].Owner = dead.BatchKey, 1, "dead"
	}
	same(t, both, announced())
	same(t, start.Add(2*lease), b.theBatch(key, 1).Lease)

	for i, end := range []func(c state.Claim) error{
		func(c state.Claim) error { return b.Commit(b.ctx, c, outcome("p"), start) },
		func(c state.Claim) error { return b.Release(b.ctx, c, start) },
		func(c state.Claim) error { return b.Retry(b.ctx, c, failure(), stats(), start, start) },
		func(c state.Claim) error { return b.Fail(b.ctx, c, failure(), state.Outcome{}, start) },
	} {
		c := b.claim(key, min(i, 1)*2, "w", 0)
		require.NoError(t, b.Announce(b.ctx, c, first, start))
		require.Len(t, announced(), 3)
		require.NoError(t, end(c))
		if i > 0 { // what it left may still be there
			require.Len(t, announced(), 3)
			require.NoError(t, b.Forget(b.ctx, c.BatchKey, c.Attempt))
		}
		same(t, both, announced())
	}
	b.claim(key, 1, "w", 3*lease)
	require.ErrorIs(t, b.Announce(b.ctx, dead, first, start), state.ErrLeaseLost)
	same(t, both, announced())
	for range 2 {
		require.NoError(t, b.Forget(b.ctx, dead.BatchKey, 1))
		require.Empty(t, announced())
	}
}

// Each change leaves one event, in order, with what it did; what changes
// nothing leaves none.
func testEvents(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(2)
	dead := b.claim(key, 0, "dead", 0)
	require.NoError(t, b.Extend(b.ctx, dead, start))
	c := b.claim(key, 0, "w", 2*lease)
	for range 2 {
		require.NoError(t, b.Commit(b.ctx, c, outcome("p"), start))
	}
	require.NoError(t, b.direct(key.RunKey, state.CommandStop))
	all, err := b.Events(b.ctx, key, 0, 0)
	require.NoError(t, err)
	var said []string
	for i, e := range all {
		require.Equal(t, int64(i+1), e.Seq)
		require.Equal(t, state.EventVersion, e.Version)
		said = append(said, fmt.Sprint(e.Kind, " ", e.Actor, " ", e.Status, " ", e.Attempt))
	}
	require.Equal(t, []string{"node_planned planner running 0", "batch_claimed dead claimed 1",
		"batch_ended dead lost 1", "batch_claimed w claimed 2",
		"batch_ended w succeeded 2", "node_heard boss stopped 0"}, said)
	require.Equal(t, int64(3), all[4].RowsOut)
	require.Equal(t, int64(len(all)), b.theNode(key).Revision)
	rest, err := b.Events(b.ctx, key, 2, 3)
	require.NoError(t, err)
	same(t, all[2:5], rest)

	all, err = b.Events(b.ctx, state.NodeKey{RunKey: key.RunKey}, 0, 0)
	require.NoError(t, err)
	said = nil
	for _, e := range all {
		said = append(said, fmt.Sprint(e.Kind, " ", e.Status))
	}
	require.Equal(t, []string{"run_created running", "order_begun ", "order_ended stopped"}, said)
	require.Equal(t, "why not", all[1].Command.Reason)

	other := state.NodeKey{RunKey: b.run("n"), Node: "n"}
	_, err = state.PlanNode(b.ctx, b.Store, other, 0, state.Plan{Record: []byte("x"), ReusedFrom: &key}, "w", start)
	require.NoError(t, err)
	all, err = b.Events(b.ctx, other, 0, 0)
	require.NoError(t, err)
	require.Equal(t, &key, all[0].ReusedFrom)
}

// Lists are given in pieces, and the pieces are the whole.
func testPages(t *testing.T, open Open) {
	b := newBench(t, open)
	key := state.NodeKey{RunKey: b.run("n"), Node: "n"}
	const batches = 7
	plan := state.Plan{Batches: specs(batches)}
	for i := range 5 {
		plan.Inputs = append(plan.Inputs, state.Input{Address: fmt.Sprint("file ", i), Bytes: 5, Time: start,
			Digest: "d", Rows: -1})
	}
	_, err := state.PlanNode(b.ctx, b.Store, key, 0, plan, "w", start)
	require.NoError(t, err)
	for i := range batches {
		if i%3 == 2 {
			continue // nothing of it to show
		}
		out := outcome(fmt.Sprint("part ", i))
		out.Parts = append(out.Parts, state.Part{Key: "second", Seq: 1})
		out.Files, out.Checks = []state.File{{URL: "f"}}, []state.CheckResult{{Name: "c"}}
		require.NoError(t, b.Release(b.ctx, b.claim(key, i, "w", 0), start))
		require.NoError(t, b.Commit(b.ctx, b.claim(key, i, "w", 0), out, start))
	}
	paged(b, key, b.Batches, batches)
	paged(b, key, b.Specs, batches)
	paged(b, key, b.Inputs, 5)
	paged(b, key, b.Attempts, 10)
	paged(b, key, b.Parts, 10)
	paged(b, key, b.Files, 5)
	paged(b, key, b.Checks, 5)
	for range 4 {
		b.run("n")
	}
	paged(b, b.workspace, b.Runs, 5)
}

// paged reads a list in pieces of every size.
func paged[K, T any](b *bench, key K, read func(ctx context.Context, key K, page state.Page) ([]T, int64, error),
	length int) {
	b.t.Helper()
	whole, err := state.All(b.ctx, read, key)
	require.NoError(b.t, err)
	require.Len(b.t, whole, length)
	for size := 1; size <= length+1; size++ {
		var got []T
		for page := (state.Page{Limit: size}); ; {
			some, next, err := read(b.ctx, key, page)
			require.NoError(b.t, err)
			got = append(got, some...)
			if next == 0 {
				break
			}
			page.From = next
		}
		same(b.t, whole, got)
	}
}
