package statetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
)

// A brief list has the runs and batches of the full one, on the same pages, with what is promised of each.
func testBriefLists(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(5)
	c := b.claim(key, 0, "w", 0)
	require.NoError(t, b.Commit(b.ctx, c, state.Outcome{Stats: state.Stats{RowsIn: 3, RowsOut: 2, Elapsed: 1_234_567}},
		start.Add(time.Second)))
	c = b.claim(key, 1, "v", 0)
	require.NoError(t, b.Retry(b.ctx, c, state.Failure{Message: "away"}, state.Stats{Elapsed: 5}, start, start))
	b.claim(key, 2, "v", 0)
	promised := func(batches []state.Batch) (out []state.Batch) {
		for _, x := range batches {
			out = append(out, state.Batch{BatchKey: x.BatchKey, Status: x.Status, Attempt: x.Attempt, Owner: x.Owner,
				Started: x.Started, Finished: x.Finished, Stats: state.Stats{Elapsed: x.Stats.Elapsed,
					RowsOut: x.Stats.RowsOut}})
		}
		return out
	}
	for page := (state.Page{Limit: 2}); ; {
		full, next, err := b.Batches(b.ctx, key, page)
		require.NoError(t, err)
		page.Brief = true
		brief, briefNext, err := b.Batches(b.ctx, key, page)
		require.NoError(t, err)
		require.Equal(t, promised(full), promised(brief))
		require.Equal(t, next, briefNext)
		page.Brief = false
		if page.From = next; next == 0 {
			break
		}
	}
	b.planned(1)
	full, next, err := b.Runs(b.ctx, b.workspace, state.Page{Limit: 1})
	require.NoError(t, err)
	brief, briefNext, err := b.Runs(b.ctx, b.workspace, state.Page{Limit: 1, Brief: true})
	require.NoError(t, err)
	require.Equal(t, next, briefNext)
	for i := range full {
		full[i].Nodes, brief[i].Nodes = nil, nil
	}
	require.Equal(t, full, brief)
}
