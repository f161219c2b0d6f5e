package statetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
)

func testCommit(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(2)
	c := b.claim(key, 1, "w", 0)
	end := start.Add(time.Minute)
	out := state.Outcome{
		Parts: []state.Part{{
			Key: "ws/1/n/1.parquet", Batch: 1, Seq: 0, Bucket: 5, Rows: 1 << 40, Bytes: 1 << 41, RawBytes: 1 << 42,
			Schema: "abc", Checksum: "crc32c:0000abcd", Keys: []byte(`{"rows":7}`),
		}},
		Files: []state.File{{NodeKey: key, Batch: 1, URL: "file:///out/1.csv", Rows: 7, Bytes: 70,
			Checksum: "crc32c:00000007"}},
		Stats: state.Stats{
			RowsIn: 1, RowsOut: 2, BytesIn: 3, BytesOut: 4, Elapsed: 5 * time.Second, Engine: 6,
			Python: 7, PeakBytes: 8, Counters: map[string]int64{"quarantined": 9},
		},
	}
	require.NoError(t, b.Commit(b.ctx, c, out, end))
	same(t, state.Batch{
		BatchKey: batchOf(key, 1), BatchSpec: light(specs(2)[1]), Status: state.Succeeded, Attempt: 1, Owner: "w",
		Started: start, Finished: end, Stats: out.Stats,
	}, b.theBatch(key, 1))
	same(t, []state.Attempt{{
		BatchKey: batchOf(key, 1), Attempt: 1, Owner: "w", Status: state.Succeeded, Started: start, Finished: end,
		Stats: out.Stats,
	}}, b.attempts(key))
	parts, err := state.Manifest(b.ctx, b.Store, key)
	require.NoError(t, err)
	out.Parts[0].Attempt = 1
	same(t, out.Parts, parts)
	files, err := state.All(b.ctx, b.Files, key)
	require.NoError(t, err)
	same(t, out.Files, files)
	n := b.theNode(key)
	require.Equal(t, state.Running, n.Status) // the worker moves it on, not the store
	require.Equal(t, []int64{1, 0, 1, 2, 3, 4},
		[]int64{int64(n.BatchesDone), int64(n.BatchesFailed), n.RowsIn, n.RowsOut, n.BytesIn, n.BytesOut})

	// An outcome of nothing at all is a success too.
	empty := b.claim(key, 0, "w", 0)
	require.NoError(t, b.Commit(b.ctx, empty, state.Outcome{}, end))
	require.Equal(t, 2, b.theNode(key).BatchesDone)
	require.Len(t, b.manifestKeys(key), 1)
}

// Whoever did not hear the answer asks again, and nothing counts twice.
func testEndRepeated(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(3)
	done, failed, released := b.claim(key, 0, "w", 0), b.claim(key, 1, "w", 0), b.claim(key, 2, "w", 0)
	for range 3 {
		require.NoError(t, b.Commit(b.ctx, done, outcome("p"), start))
		require.NoError(t, b.Fail(b.ctx, failed, failure(), state.Outcome{}, start))
		require.NoError(t, b.Release(b.ctx, released, start))
	}
	n := b.theNode(key)
	require.Equal(t, []int64{1, 1, 3}, []int64{int64(n.BatchesDone), int64(n.BatchesFailed), n.RowsOut})
	require.Equal(t, []string{"p"}, b.manifestKeys(key))

	// But an attempt ends in one way only.
	require.ErrorIs(t, b.Fail(b.ctx, done, failure(), state.Outcome{}, start), state.ErrLeaseLost)
	require.ErrorIs(t, b.Release(b.ctx, done, start), state.ErrLeaseLost)
	require.ErrorIs(t, b.Commit(b.ctx, failed, outcome("q"), start), state.ErrLeaseLost)
	require.ErrorIs(t, b.Commit(b.ctx, released, outcome("q"), start), state.ErrLeaseLost)
	require.ErrorIs(t, b.Extend(b.ctx, done, start.Add(lease)), state.ErrLeaseLost)

	// A repeated answer does not touch the batch's next attempt.
	next := b.claim(key, 2, "w", 0)
	require.NoError(t, b.Release(b.ctx, released, start))
	require.Equal(t, state.Claimed, b.theBatch(key, 2).Status)
	require.NoError(t, b.Commit(b.ctx, next, outcome("q"), start))
}

// Commit, Fail and the loss of the lease race; exactly one of them happens.
func testCommitRace(t *testing.T, open Open) {
	b := newBench(t, open)
	for range 10 {
		key := b.planned(1)
		c := b.claim(key, 0, "w", 0)
		late := b.request(batchOf(key, 0), "other", 2*lease)
		errs := together(3, func(i int) error {
			switch i {
			case 0:
				return b.Commit(b.ctx, c, outcome("first"), start)
			case 1:
				return b.Fail(b.ctx, c, failure(), state.Outcome{}, start)
			}
			_, err := b.Claim(b.ctx, late)
			return err
		})
		var won []int
		for i, err := range errs {
			if err == nil {
				won = append(won, i)
			}
		}
		require.Len(t, won, 1)
		want := map[int]state.Status{0: state.Succeeded, 1: state.Failed, 2: state.Claimed}[won[0]]
		require.Equal(t, want, b.theBatch(key, 0).Status)
		require.Equal(t, won[0] == 0, len(b.manifestKeys(key)) == 1)
	}
}

// Sums and counts of a node agree with its batches after a crowd has worked.
func testCounters(t *testing.T, open Open) {
	b := newBench(t, open)
	const batches = 30
	key := b.planned(batches)
	errs := together(batches, func(i int) error {
		c, err := b.Claim(b.ctx, state.ClaimRequest{Offer: state.Offer{BatchKey: batchOf(key, i)}, Owner: "w",
			Token: "t", Now: start, Lease: start.Add(lease)})
		if err != nil {
			return err
		}
		if i%5 == 0 {
			return b.Fail(b.ctx, c, failure(), state.Outcome{}, start)
		}
		return b.Commit(b.ctx, c, outcome(fmt.Sprint("part ", i)), start)
	})
	require.Equal(t, batches, split(t, errs, nil))
	n := b.theNode(key)
	const failed, done = batches / 5, batches - batches/5
	require.Equal(t, []int64{batches, done, failed, 4 * done, 3 * done, 100 * done, 50 * done},
		[]int64{int64(n.BatchesTotal), int64(n.BatchesDone), int64(n.BatchesFailed), n.RowsIn, n.RowsOut, n.BytesIn,
			n.BytesOut})
	require.Len(t, b.manifestKeys(key), done)
	sum, err := b.Tally(b.ctx, key)
	require.NoError(t, err)
	require.Equal(t, []int64{batches, 4 * done, int64(done * 1500 * time.Millisecond)},
		[]int64{int64(sum.Batches), sum.Stats.RowsIn, int64(sum.Stats.Elapsed)})
}

// Time that attempts took is kept by how they ended, until their lease ran out if nobody ended them, and stays when
// their batches are done again.
func testSpent(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(3)
	require.Zero(t, b.theNode(key).Spent)
	first := b.claim(key, 0, "w", 0)
	require.Zero(t, b.theNode(key).Spent, "it has not ended")
	for range 2 { // repeated, it counts once
		require.NoError(t, b.Commit(b.ctx, first, outcome("p"), start.Add(10*time.Second)))
	}
	retried := b.claim(key, 1, "w", 0)
	later := start.Add(3 * time.Second)
	require.NoError(t, b.Retry(b.ctx, retried, failure(), state.Stats{}, later, later))
	require.NoError(t, b.Release(b.ctx, b.claim(key, 1, "w", 4*time.Second), start.Add(5*time.Second)))
	require.NoError(t, b.Fail(b.ctx, b.claim(key, 1, "w", 5*time.Second), failure(), state.Outcome{},
		start.Add(7*time.Second)))
	b.claim(key, 2, "dead", 0)
	late := 2*lease + time.Minute
	next := b.claim(key, 2, "w", late)
	require.NoError(t, b.Commit(b.ctx, next, outcome("q"), start.Add(late-time.Second)), "a clock that was put back")
	want := state.Spent{Worked: 10 * time.Second, Lost: 3*time.Second + time.Second + 2*time.Second + lease}
	require.Equal(t, want, b.theNode(key).Spent)
	require.NoError(t, b.move(key, state.Running, state.Failed))
	require.NoError(t, b.direct(key.RunKey, state.CommandFail))
	require.NoError(t, state.Direct(b.ctx, b.Store, key.RunKey, order(state.CommandReopen)))
	require.Zero(t, b.theNode(key).BatchesFailed)
	require.Equal(t, want, b.theNode(key).Spent)
	runs, _, err := b.Runs(b.ctx, key.Workspace, state.Page{})
	require.NoError(t, err)
	at, ok := runs[0].Brief(key.Node)
	require.True(t, ok)
	require.Equal(t, want, at.Spent)
}

func testFail(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(1)
	c := b.claim(key, 0, "w", 0)
	end := start.Add(time.Minute)
	f := failure()
	require.NoError(t, b.Fail(b.ctx, c, f, state.Outcome{}, end))
	same(t, state.Batch{
		BatchKey: batchOf(key, 0), BatchSpec: light(specs(1)[0]), Status: state.Failed, Attempt: 1, Owner: "w",
		Started: start, Finished: end, Failure: &f,
	}, b.theBatch(key, 0))
	same(t, []state.Attempt{{
		BatchKey: batchOf(key, 0), Attempt: 1, Owner: "w", Status: state.Failed, Started: start,
		Finished: end, Failure: &f,
	}}, b.attempts(key))
	require.Equal(t, 1, b.theNode(key).BatchesFailed)
	require.Empty(t, b.manifestKeys(key))
}

func testRelease(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(1)
	c := b.claim(key, 0, "w", 0)
	require.NoError(t, b.Release(b.ctx, c, start.Add(time.Minute)))
	same(t, state.Batch{BatchKey: batchOf(key, 0), BatchSpec: light(specs(1)[0]), Status: state.Pending, Attempt: 1},
		b.theBatch(key, 0))
	require.Equal(t, state.Released, b.attempts(key)[0].Status)

	// The next attempt has a number of its own, although no retry was used up.
	next := b.claim(key, 0, "w", time.Minute)
	require.Equal(t, 2, next.Attempt)
	require.ErrorIs(t, b.Commit(b.ctx, c, outcome("late"), start), state.ErrLeaseLost)
	require.NoError(t, b.Commit(b.ctx, next, outcome("p"), start))
	require.Equal(t, []string{"p"}, b.manifestKeys(key))
}

func testReopenFailed(t *testing.T, open Open) {
	b := newBench(t, open)
	run := b.run("a", "b", "c", "d")
	a, failedUnplanned, stopped, pending := state.NodeKey{RunKey: run, Node: "a"},
		state.NodeKey{RunKey: run, Node: "b"},
		state.NodeKey{RunKey: run, Node: "c"}, state.NodeKey{RunKey: run, Node: "d"}
	require.NoError(t, b.plan(a, []byte("plan"), specs(4)))
	require.NoError(t, b.Commit(b.ctx, b.claim(a, 0, "w", 0), outcome("kept"), start))
	require.NoError(t, b.Fail(b.ctx, b.claim(a, 1, "w", 0), failure(), state.Outcome{}, start))
	b.claim(a, 2, "w", 0)
	require.NoError(t, b.move(a, state.Running, state.Failed))
	require.NoError(t, b.move(failedUnplanned, state.Pending, state.Failed))
	require.NoError(t, b.direct(run, state.CommandFail))
	require.Equal(t, state.Stopped, b.theNode(stopped).Status)

	at := start.Add(time.Minute)
	again := order(state.CommandReopen)
	again.Time = at
	require.NoError(t, state.Direct(b.ctx, b.Store, run, again))
	got, err := b.Run(b.ctx, run)
	require.NoError(t, err)
	require.Equal(t, state.Running, got.Status)
	require.Nil(t, got.Failure)
	require.True(t, got.Finished.IsZero())
	for key, want := range map[state.NodeKey]state.Status{
		a: state.Running, failedUnplanned: state.Pending, stopped: state.Pending, pending: state.Pending,
	} {
		n := b.theNode(key)
		require.Equal(t, want, n.Status, key.Node)
		require.True(t, n.Finished.IsZero(), key.Node)
	}
	n := b.theNode(a)
	require.Equal(t, []int{4, 1, 0}, []int{n.BatchesTotal, n.BatchesDone, n.BatchesFailed})
	require.Equal(t, []byte("plan"), n.Plan)
	for batch, want := range []state.Status{state.Succeeded, state.Pending, state.Pending, state.Pending} {
		require.Equal(t, want, b.theBatch(a, batch).Status)
	}
	require.Nil(t, b.theBatch(a, 1).Failure)
	require.Equal(t, []string{"kept"}, b.manifestKeys(a))
	all := b.attempts(a)
	require.Equal(t, []state.Status{state.Succeeded, state.Failed, state.Lost},
		[]state.Status{all[0].Status, all[1].Status, all[2].Status})
	same(t, at, all[2].Finished)
	require.Equal(t, 2, b.claim(a, 1, "w", time.Minute).Attempt)
}

// A run whose workers all died is still Running; reopening frees its claims
// without waiting for their leases.
func testReopenOrphaned(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(2)
	dead := b.claim(key, 0, "dead", 0)
	require.NoError(t, b.direct(key.RunKey, state.CommandReopen))
	require.Equal(t, state.Running, b.theNode(key).Status)
	b.ended(dead)
	require.Equal(t, 2, b.claim(key, 0, "w", 0).Attempt)
	require.NoError(t, b.direct(key.RunKey, state.CommandReopen)) // and again
	require.Equal(t, 3, b.claim(key, 0, "w", 0).Attempt)
}

func testReopenRefused(t *testing.T, open Open) {
	b := newBench(t, open)
	run := b.run()
	require.NoError(t, b.CompleteRun(b.ctx, run, 0, "w", start))
	require.ErrorIs(t, b.direct(run, state.CommandReopen), state.ErrConflict)
	got, err := b.Run(b.ctx, run)
	require.NoError(t, err)
	require.Equal(t, state.Complete, got.Status)
}

func testManifestOrder(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(12)
	part := func(batch, seq int) state.Part {
		return state.Part{Key: fmt.Sprintf("part-%d-%d", batch, seq), Batch: batch, Seq: seq, Bucket: -1, Attempt: 1,
			Checksum: "crc32c:00000000"}
	}
	for batch := 11; batch >= 0; batch-- { // batches commit and parts come in any order
		out := state.Outcome{Parts: []state.Part{part(batch, 10), part(batch, 2), part(batch, 0)}}
		require.NoError(t, b.Commit(b.ctx, b.claim(key, batch, "w", 0), out, start))
	}
	want := []state.Part{}
	for batch := range 12 {
		want = append(want, part(batch, 0), part(batch, 2), part(batch, 10))
	}
	got, err := state.Manifest(b.ctx, b.Store, key)
	require.NoError(t, err)
	same(t, want, got)

	// Two parts cannot share a place; the attempt goes on.
	other := b.planned(1)
	c := b.claim(other, 0, "w", 0)
	require.Error(t, b.Commit(b.ctx, c, state.Outcome{Parts: []state.Part{part(0, 1), part(0, 1)}}, start))
	require.Empty(t, b.manifestKeys(other))
	require.NoError(t, b.Commit(b.ctx, c, outcome("p"), start))
}

func testFilesOrder(t *testing.T, open Open) {
	b := newBench(t, open)
	run := b.run("second", "first") // by ordinal, not by name
	want := []state.File{}
	for _, name := range []string{"second", "first"} {
		key := state.NodeKey{RunKey: run, Node: name}
		require.NoError(t, b.plan(key, nil, specs(2)))
		for batch := range 2 {
			for i := range 2 {
				want = append(want, state.File{NodeKey: key, Batch: batch,
					URL:  fmt.Sprintf("file:///%s/%d-%d", name, batch, 1-i),
					Rows: 1, Bytes: 2})
			}
		}
	}
	for _, at := range []int{6, 0, 4, 2} {
		c := b.claim(want[at].NodeKey, want[at].Batch, "w", 0)
		require.NoError(t, b.Commit(b.ctx, c, state.Outcome{Files: want[at : at+2]}, start))
	}
	got, err := state.OfNodes(b.ctx, b.Store, run, b.Files)
	require.NoError(t, err)
	same(t, want, got)
}
