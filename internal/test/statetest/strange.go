package statetest

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
)

// strangeTexts are names that nothing has: whoever asks has them from somewhere else.
func strangeTexts() map[string]string {
	return map[string]string{
		"empty": "", "other": "nope", "NUL": "\x00", "control": "a\tb\n\x1b", "not UTF-8": "\xff\xfe",
		"a surrogate's place": "\ufffd",
		"long":                strings.Repeat("n", 70_000), "longer": strings.Repeat("ß", 600_000), "wild": "%",
		"quoted": `'"; --`,
	}
}

// strangeNumbers are numbers that nothing has.
func strangeNumbers() []int64 {
	return []int64{-1, math.MinInt64, math.MinInt32, math.MaxInt32, math.MaxInt32 + 1, math.MaxUint32 + 1,
		math.MaxInt64 - 1, math.MaxInt64}
}

// testStrangeBids: a queue may hold anything. What names something that is not there is
// not found, what is not as it is on offer cannot be claimed, and neither is anything else.
func testStrangeBids(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(3)
	held := b.claim(key, 1, "w", 0)
	right := b.offer(batchOf(key, 0))
	strange := map[string]state.Offer{}
	for name, text := range strangeTexts() {
		o := right
		o.Workspace = text
		strange["workspace "+name] = o
		o = right
		o.Node = text
		strange["node "+name] = o
	}
	for _, n := range strangeNumbers() {
		o := right
		o.Run = n
		strange["run"] = o
		b.refuses(o)
		o = right
		o.Batch = int(n)
		b.refuses(o)
		o = right
		o.Epoch = n
		b.refuses(o)
		o = right
		o.Attempt = int(n)
		b.refuses(o)
		o.Epoch, o.Batch, o.Run = n, int(n), n
		b.refuses(o)
	}
	for name, o := range strange {
		_, err := b.Run(b.ctx, o.RunKey)
		if o.RunKey != key.RunKey {
			require.ErrorIs(t, err, state.ErrNotFound, name)
		}
		b.refuses(o)
	}
	zero := right
	zero.Run = 0
	b.refuses(zero)
	classless := right
	classless.Class = strings.Repeat("c", 70_000)
	c, err := b.Claim(b.ctx, state.ClaimRequest{Offer: classless, Owner: "w", Token: "t", Now: start,
		Lease: start.Add(lease)})
	require.NoError(t, err, "what is said beside what counts does not")
	require.Equal(t, "load", c.Spec.Class)
	require.NoError(t, b.Commit(b.ctx, c, outcome("p"), start))
	require.NoError(t, b.Commit(b.ctx, held, outcome("q"), start))
	for batch, want := range []state.Status{state.Succeeded, state.Succeeded, state.Pending} {
		require.Equal(t, want, b.theBatch(key, batch).Status)
	}
	require.Len(t, b.attempts(key), 2)
}

// refuses requests for something that is not on offer.
func (b *bench) refuses(o state.Offer) {
	b.t.Helper()
	_, err := b.Claim(b.ctx, state.ClaimRequest{Offer: o, Owner: "other", Token: "t", Now: start,
		Lease: start.Add(time.Hour)})
	require.Truef(b.t, state.Stray(err), "%.100q: %v", o.RunKey.Workspace+" "+o.Node, err)
}

// testClaimOfALaterPhase: a batch that is not on offer yet cannot be claimed either.
func testClaimOfALaterPhase(t *testing.T, open Open) {
	b := newBench(t, open)
	key := state.NodeKey{RunKey: b.run("n"), Node: "n"}
	phased := specs(3)
	phased[0].Phase, phased[1].Phase, phased[2].Phase = 1, 0, 2
	require.NoError(t, b.plan(key, nil, phased))
	b.refuses(b.offer(batchOf(key, 0)))
	b.refuses(b.offer(batchOf(key, 2)))
	first := b.claim(key, 1, "w", 0)
	b.refuses(b.offer(batchOf(key, 0)))
	require.NoError(t, b.Commit(b.ctx, first, outcome("p"), start))
	b.refuses(b.offer(batchOf(key, 2)))
	require.NoError(t, b.Fail(b.ctx, b.claim(key, 0, "w", 0), failure(), state.Outcome{}, start))
	b.refuses(b.offer(batchOf(key, 2)))
	require.NoError(t, b.direct(key.RunKey, state.CommandReopen))
	b.refuses(b.offer(batchOf(key, 2)))
	require.NoError(t, b.Commit(b.ctx, b.claim(key, 0, "w", 0), outcome("q"), start))
	require.NoError(t, b.Commit(b.ctx, b.claim(key, 2, "w", 0), outcome("r"), start))
	require.Equal(t, 3, b.theNode(key).BatchesDone)
}
