package statetest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
)

// beside returns an outcome that a failed attempt may publish.
func beside() state.Outcome {
	return state.Outcome{
		Parts: []state.Part{
			{Key: "failed", Side: state.SideFailed, Seq: 0, Bucket: -1, Rows: 2, Bytes: 9, Schema: "s",
				Checksum: "crc32c:00000002"},
			{Key: "bad", Side: state.SideBad, Seq: 1, Bucket: -1, Rows: 1, Bytes: 8, Schema: "t",
				Checksum: "crc32c:00000003"},
		},
		Checks: []state.CheckResult{{Name: "id is unique", Kind: "unique", Severity: "error", Checked: 7,
			Failed: 4, Kept: 2, Message: "it's not", Measured: "{}"}},
		Stats: state.Stats{RowsIn: 7, Elapsed: 8},
	}
}

func (b *bench) sideParts(key state.NodeKey) []state.Part {
	b.t.Helper()
	parts, err := state.SideParts(b.ctx, b.Store, key)
	require.NoError(b.t, err)
	return parts
}

func (b *bench) checks(key state.NodeKey) []state.CheckResult {
	b.t.Helper()
	results, err := state.OfNodes(b.ctx, b.Store, key.RunKey, b.Checks)
	require.NoError(b.t, err)
	return results
}

// owned returns an outcome as a store returns it: it belongs to the batch.
func owned(c state.Claim, out state.Outcome) state.Outcome {
	key := c.BatchKey
	parts, checks := append([]state.Part{}, out.Parts...), append([]state.CheckResult{}, out.Checks...)
	for i := range parts {
		parts[i].Batch, parts[i].Attempt = key.Batch, c.Attempt
	}
	for i := range checks {
		checks[i].NodeKey, checks[i].Batch = key.NodeKey, key.Batch
	}
	return state.Outcome{Parts: parts, Checks: checks, Stats: out.Stats}
}

// What lies beside a table is not in its manifest.
func testSidesOfCommitted(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(2)
	c := b.claim(key, 1, "w", 0)
	out := beside()
	out.Parts = append(out.Parts, state.Part{Key: "table", Seq: 2, Bucket: -1, Checksum: "crc32c:00000004"})
	require.NoError(t, b.Commit(b.ctx, c, out, start))
	want := owned(c, beside())
	require.Equal(t, []string{"table"}, b.manifestKeys(key))
	same(t, want.Parts, b.sideParts(key))
	same(t, want.Checks, b.checks(key))
	require.NoError(t, b.direct(key.RunKey, state.CommandReopen)) // a committed batch keeps what it has
	same(t, want.Parts, b.sideParts(key))
	same(t, want.Checks, b.checks(key))
}

// A failed attempt leaves what shows why, until it is tried again; of the
// table itself it leaves nothing.
func testSidesOfFailed(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(1)
	c := b.claim(key, 0, "w", 0)
	require.Error(t, b.Fail(b.ctx, c, failure(), outcome("of the table"), start))
	require.Error(t, b.Fail(b.ctx, c, failure(), state.Outcome{Files: []state.File{{URL: "f"}}}, start))
	require.Equal(t, state.Claimed, b.theBatch(key, 0).Status)
	want := owned(c, beside())
	for range 2 { // the second time as one that did not hear the answer
		require.NoError(t, b.Fail(b.ctx, c, failure(), beside(), start))
	}
	require.Empty(t, b.manifestKeys(key))
	same(t, want.Parts, b.sideParts(key))
	same(t, want.Checks, b.checks(key))
	require.Equal(t, want.Stats, b.theBatch(key, 0).Stats)
	require.Zero(t, b.theNode(key).RowsIn, "a node counts what succeeded")

	require.NoError(t, b.direct(key.RunKey, state.CommandFail))
	same(t, want.Parts, b.sideParts(key))
	require.NoError(t, b.direct(key.RunKey, state.CommandReopen))
	require.Empty(t, b.sideParts(key))
	require.Empty(t, b.checks(key))
	c = b.claim(key, 0, "w", 0)
	require.NoError(t, b.Commit(b.ctx, c, beside(), start)) // in the same places
	same(t, owned(c, beside()).Parts, b.sideParts(key))

	lost := b.planned(1)
	dead := b.claim(lost, 0, "w", 0)
	b.claim(lost, 0, "w", 2*lease)
	require.ErrorIs(t, b.Fail(b.ctx, dead, failure(), beside(), start), state.ErrLeaseLost)
	require.Empty(t, b.sideParts(lost))
	require.Empty(t, b.checks(lost))
}

func testChecksOrder(t *testing.T, open Open) {
	b := newBench(t, open)
	run := b.run("second", "first")
	want := []state.CheckResult{}
	for _, name := range []string{"second", "first"} {
		key := state.NodeKey{RunKey: run, Node: name}
		require.NoError(t, b.plan(key, nil, specs(2)))
		for batch := range 2 {
			for i := range 2 {
				want = append(want, state.CheckResult{NodeKey: key, Batch: batch, Name: fmt.Sprint(name, batch, 1-i),
					Passed: i == 0})
			}
		}
	}
	for _, at := range []int{6, 0, 4, 2} {
		c := b.claim(want[at].NodeKey, want[at].Batch, "w", 0)
		require.NoError(t, b.Commit(b.ctx, c, state.Outcome{Checks: want[at : at+2]}, start))
	}
	same(t, want, b.checks(state.NodeKey{RunKey: run}))
}
