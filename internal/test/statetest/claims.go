package statetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
)

func testClaimLife(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(2)
	c := b.claim(key, 1, "worker 1", 0)
	same(t, state.Claim{BatchKey: batchOf(key, 1), Attempt: 1, Owner: "worker 1", Lease: start.Add(lease),
		Spec: specs(2)[1]}, c)
	same(t, state.Batch{
		BatchKey: batchOf(key, 1), BatchSpec: light(specs(2)[1]), Status: state.Claimed, Attempt: 1,
		Owner: "worker 1", Lease: start.Add(lease), Started: start,
	}, b.theBatch(key, 1))
	same(t, []state.Attempt{{BatchKey: batchOf(key, 1), Attempt: 1, Owner: "worker 1", Status: state.Claimed,
		Started: start}}, b.attempts(key))
	require.Equal(t, state.Pending, b.theBatch(key, 0).Status)

	// The node starts with its first claim, whichever batch that is.
	b.claim(key, 0, "worker 2", time.Minute)
	same(t, start, b.theNode(key).Started)
}

func testClaimRace(t *testing.T, open Open) {
	b := newBench(t, open)
	const workers, batches = 16, 8
	key := b.planned(batches)
	wins := make([][]int, batches) // attempts, by batch
	for batch := range batches {
		claims, requests := make([]state.Claim, workers), make([]state.ClaimRequest, workers)
		for i := range requests {
			requests[i] = b.request(batchOf(key, batch), fmt.Sprint("worker ", i), 0)
		}
		errs := together(workers, func(i int) (err error) {
			claims[i], err = b.Claim(b.ctx, requests[i])
			return err
		})
		require.Equal(t, 1, split(t, errs, state.ErrNotClaimable))
		for i, err := range errs {
			if err == nil {
				wins[batch] = append(wins[batch], claims[i].Attempt)
				require.Equal(t, claims[i].Owner, b.theBatch(key, batch).Owner)
			}
		}
	}
	for _, w := range wins {
		require.Equal(t, []int{1}, w)
	}
	require.Len(t, b.attempts(key), batches)
}

func testClaimRefused(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(4)
	refused := func(key state.NodeKey, batch int, at time.Duration) {
		t.Helper()
		_, err := b.Claim(b.ctx, b.request(batchOf(key, batch), "other", at))
		require.ErrorIs(t, err, state.ErrNotClaimable)
	}
	late := 2 * lease
	done := b.claim(key, 0, "w", 0)
	require.NoError(t, b.Commit(b.ctx, done, outcome("p"), start))
	failed := b.claim(key, 1, "w", 0)
	require.NoError(t, b.Fail(b.ctx, failed, failure(), state.Outcome{}, start))
	b.claim(key, 2, "w", 0)
	refused(key, 0, late) // succeeded
	refused(key, 1, late) // failed
	refused(key, 2, 0)    // somebody has it
	refused(key, 2, lease)

	require.NoError(t, b.move(key, state.Running, state.Failed))
	refused(key, 3, 0)    // pending, but its node has failed
	refused(key, 2, late) // expired, but its node has failed

	key = b.planned(1)
	stale := b.request(batchOf(key, 0), "w", 0)
	require.NoError(t, b.direct(key.RunKey, state.CommandStop))
	refused(key, 0, 0)
	require.NoError(t, b.direct(key.RunKey, state.CommandReopen))
	_, err := b.Claim(b.ctx, stale)
	require.ErrorIs(t, err, state.ErrNotClaimable, "it was on offer before the order")
	require.Empty(t, b.attempts(key))
}

// A dead worker's batch goes to exactly one of those who notice.
func testExpiredRace(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(1)
	b.claim(key, 0, "dead", 0)
	requests := make([]state.ClaimRequest, 16)
	for i := range requests {
		requests[i] = b.request(batchOf(key, 0), fmt.Sprint("worker ", i), 2*lease)
	}
	errs := together(16, func(i int) error {
		_, err := b.Claim(b.ctx, requests[i])
		return err
	})
	require.Equal(t, 1, split(t, errs, state.ErrNotClaimable))
	all := b.attempts(key)
	require.Len(t, all, 2)
	require.Equal(t, state.Lost, all[0].Status)
	require.Equal(t, state.Claimed, all[1].Status)
}

func testLeaseExpiry(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(1)
	b.claim(key, 0, "first", 0)
	at := lease + time.Second
	c := b.claim(key, 0, "second", at)
	require.Equal(t, 2, c.Attempt)
	same(t, []state.Attempt{
		{BatchKey: batchOf(key, 0), Attempt: 1, Owner: "first", Status: state.Lost, Started: start,
			Finished: start.Add(at)},
		{BatchKey: batchOf(key, 0), Attempt: 2, Owner: "second", Status: state.Claimed, Started: start.Add(at)},
	}, b.attempts(key))
	got := b.theBatch(key, 0)
	require.Equal(t, "second", got.Owner)
	same(t, start.Add(at+lease), got.Lease)
	same(t, start.Add(at), got.Started)
}

func testLeaseExtended(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(1)
	c := b.claim(key, 0, "w", 0)
	require.NoError(t, b.Extend(b.ctx, c, start.Add(3*lease)))
	same(t, start.Add(3*lease), b.theBatch(key, 0).Lease)
	_, err := b.Claim(b.ctx, b.request(batchOf(key, 0), "other", 2*lease))
	require.ErrorIs(t, err, state.ErrNotClaimable)

	require.NoError(t, b.Extend(b.ctx, c, start.Add(lease))) // a call that comes late
	same(t, start.Add(3*lease), b.theBatch(key, 0).Lease)

	// A lease that ended is still the holder's until somebody else comes.
	require.Equal(t, []int{0}, b.offers(key, 4*lease))
	require.NoError(t, b.Commit(b.ctx, c, outcome("p"), start.Add(9*lease)))
	require.True(t, b.theBatch(key, 0).Lease.IsZero())
}

// ended asks every call that needs a lease, and expects that it is lost.
func (b *bench) ended(c state.Claim) {
	b.t.Helper()
	require.ErrorIs(b.t, b.Extend(b.ctx, c, start.Add(99*lease)), state.ErrLeaseLost)
	require.ErrorIs(b.t, b.Commit(b.ctx, c, outcome("late"), start), state.ErrLeaseLost)
	require.ErrorIs(b.t, b.Fail(b.ctx, c, failure(), state.Outcome{}, start), state.ErrLeaseLost)
	require.ErrorIs(b.t, b.Release(b.ctx, c, start), state.ErrLeaseLost)
}

// A worker that was taken for dead comes back: nothing it does shows.
func testFencing(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(1)
	dead := b.claim(key, 0, "same name", 0)
	alive := b.claim(key, 0, "same name", 2*lease)
	before := b.theBatch(key, 0)
	b.ended(dead)
	same(t, before, b.theBatch(key, 0))
	require.Empty(t, b.manifestKeys(key))

	require.NoError(t, b.Commit(b.ctx, alive, outcome("good"), start.Add(3*lease)))
	b.ended(dead)
	require.Equal(t, []string{"good"}, b.manifestKeys(key))
	n := b.theNode(key)
	require.Equal(t, []int64{1, 0, 3}, []int64{int64(n.BatchesDone), int64(n.BatchesFailed), n.RowsOut})
	require.Equal(t, state.Lost, b.attempts(key)[0].Status)
}

// Once a run has been stopped, failed, reopened or begun again, no worker that
// was at it before publishes anything.
func testFencingByOrder(t *testing.T, open Open) {
	b := newBench(t, open)
	for _, kind := range []state.CommandKind{state.CommandStop, state.CommandFail} {
		key := b.planned(1)
		c := b.claim(key, 0, "w", 0)
		require.NoError(t, b.direct(key.RunKey, kind))
		b.ended(c)
		require.Empty(t, b.manifestKeys(key))
		require.Equal(t, state.Claimed, b.theBatch(key, 0).Status)
		require.Equal(t, state.Stopped, b.theNode(key).Status)

		// Not even after somebody has reopened the run.
		require.NoError(t, b.direct(key.RunKey, state.CommandReopen))
		b.ended(c)
		require.Equal(t, state.Pending, b.theBatch(key, 0).Status)
		require.Equal(t, 2, b.claim(key, 0, "w", 0).Attempt)
		b.ended(c)
	}

	// A failed node stops claims, but the work that is under way counts.
	key := b.planned(1)
	c := b.claim(key, 0, "w", 0)
	require.NoError(t, b.move(key, state.Running, state.Failed))
	require.NoError(t, b.Extend(b.ctx, c, start.Add(lease)))
	require.NoError(t, b.Commit(b.ctx, c, outcome("p"), start))
}

// A decision about a node that is at work changes nothing of it, but fences it as any
// order does: its batch is lost when its lease ends, and the events may say so.
func testFencedAndLost(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(1)
	c := b.claim(key, 0, "first", 0)
	require.NoError(t, b.decides(key, state.CommandReject, "shown"))
	require.Equal(t, state.Running, b.theNode(key).Status)
	b.ended(c)
	second := b.claim(key, 0, "second", lease+time.Second)
	require.Equal(t, state.Lost, b.attempts(key)[0].Status)
	b.ended(c)
	require.NoError(t, b.Commit(b.ctx, second, outcome("p"), start.Add(lease+time.Second)))
	require.NoError(t, Audit(b.ctx, b, key.RunKey))
}

// A claim that the store never gave is worth nothing.
func testFencingOfStrangers(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(2)
	c := b.claim(key, 0, "w", 0)
	for what, change := range map[string]func(*state.Claim){
		"another owner": func(c *state.Claim) { c.Owner = "x" },
		"attempt ahead": func(c *state.Claim) { c.Attempt = 2 },
		"no attempt":    func(c *state.Claim) { c.Attempt = 0 },
		"other batch":   func(c *state.Claim) { c.Batch = 1 },
		"other epoch":   func(c *state.Claim) { c.Epoch = 1 },
	} {
		t.Log(what)
		forged := c
		change(&forged)
		b.ended(forged)
	}
	require.Equal(t, state.Claimed, b.theBatch(key, 0).Status)
	require.Equal(t, state.Pending, b.theBatch(key, 1).Status)
	require.NoError(t, b.Commit(b.ctx, c, outcome("p"), start))
}
