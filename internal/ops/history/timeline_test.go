package history_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/ops/history"
	"thalweg/internal/store/state"
	"thalweg/internal/store/state/sqlite"
	"thalweg/internal/test/statetest/hostile"
)

// timed plans batches, of which the first done have ended: each took a second more than the one before.
func timed(t testing.TB, store state.Store, batches, done int) state.NodeKey {
	t.Helper()
	ctx := t.Context()
	key, err := store.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: "main"}, Created: noon},
		[]state.NodeSpec{{Name: "a"}})
	require.NoError(t, err)
	node := state.NodeKey{RunKey: key, Node: "a"}
	specs := make([]state.BatchSpec, batches)
	for i := range specs {
		specs[i].Batch = i
	}
	_, err = state.PlanNode(ctx, store, node, 0, state.Plan{Record: []byte("x"), Batches: specs}, "w", noon)
	require.NoError(t, err)
	for i := range done {
		begin := noon.Add(time.Duration(i) * time.Second)
		c, err := store.Claim(ctx, state.ClaimRequest{Offer: state.Offer{BatchKey: state.BatchKey{NodeKey: node, Batch: i}},
			Owner: fmt.Sprint("w", i%2), Token: fmt.Sprint(i), Now: begin, Lease: begin.Add(time.Hour)})
		require.NoError(t, err)
		took := time.Duration(i+1) * time.Second
		require.NoError(t, store.Commit(ctx, c, state.Outcome{Stats: state.Stats{RowsIn: 10_000, RowsOut: 10_000,
			BytesIn: 1 << 20, BytesOut: 1 << 19, Elapsed: took, Engine: took / 2, Read: took / 4, Write: took / 5,
			Commit: took / 100, Wait: time.Millisecond, PeakBytes: 1 << 26,
			Counters: map[string]int64{"engine_cpu_us": 12_345}}}, begin.Add(took)))
	}
	return node
}

// A timeline of few batches has each, with exact figures.
func TestTimeline(t *testing.T) {
	t.Parallel()
	store := hostile.New().Open()
	node := timed(t, store, 6, 4)
	_, err := store.Claim(t.Context(), state.ClaimRequest{Offer: state.Offer{BatchKey: state.BatchKey{NodeKey: node, Batch: 4}},
		Owner: "w0", Token: "x", Now: noon.Add(4 * time.Second), Lease: noon.Add(time.Hour)})
	require.NoError(t, err)
	got, err := history.ReadTimeline(t.Context(), store, node, history.TimelineOptions{Now: noon.Add(20 * time.Second)})
	require.NoError(t, err)
	require.Equal(t, history.Timeline{Node: "a", Status: state.Running, Total: 6, To: 6, Began: &noon,
		Summary: history.TimelineSummary{ElapsedMS: 20_000, MeanMS: 2500, Deviation: got.Summary.Deviation,
			Variation: got.Summary.Variation, MedianMS: 2500,
			Statuses: map[state.Status]int{state.Succeeded: 4, state.Claimed: 1, state.Pending: 1},
			Ranges:   map[state.Status][][2]int{state.Succeeded: {{0, 3}}, state.Claimed: {{4, 4}}, state.Pending: {{5, 5}}},
			Slowest: []history.Longest{{Batch: 3, Elapsed: 4000}, {Batch: 2, Elapsed: 3000}, {Batch: 1, Elapsed: 2000},
				{Batch: 0, Elapsed: 1000}}},
		Batches: &history.TimelineBatches{Statuses: []state.Status{state.Succeeded, state.Claimed, state.Pending},
			Workers: []string{"w0", "w1"}, Status: []int{0, 0, 0, 0, 1, 2}, Worker: []int{0, 1, 0, 1, 0, -1},
			Attempts: []int{1, 1, 1, 1, 1, 0}, Rows: []int64{10_000, 10_000, 10_000, 10_000, 0, 0},
			Start: []int64{0, 1000, 2000, 3000, 4000, -1},
			End:   []int64{1000, 3000, 5000, 7000, -1, -1}}}, got)
	require.InDelta(t, 1118.03, got.Summary.Deviation, 0.01)
	require.InDelta(t, 0.4472, got.Summary.Variation, 0.0001)
	some, err := history.ReadTimeline(t.Context(), store, node, history.TimelineOptions{From: 2, To: 4})
	require.NoError(t, err)
	require.Equal(t, []int64{0, 1000}, some.Batches.Start)
	none, err := history.ReadTimeline(t.Context(), store, node, history.TimelineOptions{From: 900, To: 3})
	require.NoError(t, err)
	require.Empty(t, none.Batches.Start)
	node.Node = "b"
	_, err = history.ReadTimeline(t.Context(), store, node, history.TimelineOptions{})
	require.ErrorContains(t, err, "no node b")
}

// A timeline of many batches has spans, all batches in one of them.
func TestTimelineOfMany(t *testing.T) {
	t.Parallel()
	store := hostile.New().Open()
	const batches = history.TimelineBatchesMax + 2
	got, err := history.ReadTimeline(t.Context(), store, timed(t, store, batches, 10), history.TimelineOptions{Now: noon})
	require.NoError(t, err)
	require.Nil(t, got.Batches)
	require.LessOrEqual(t, len(got.Spans), 1_000)
	at := 0
	for _, span := range got.Spans {
		require.Equal(t, at, span.From)
		at += span.Batches
	}
	require.Equal(t, batches, at)
	require.Equal(t, history.TimelineSpan{Batches: 6, Statuses: map[state.Status]int{state.Succeeded: 6}, Attempts: 1,
		End: 11_000, LongestMS: 6000, TookMS: 21_000, Rows: 60_000}, got.Spans[0])
	require.Equal(t, int64(-1), got.Spans[5].Start)
}

// BenchmarkTimeline measures a node of 32,000 batches that are done.
func BenchmarkTimeline(b *testing.B) {
	store, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "state.db"))
	require.NoError(b, err)
	defer func() { require.NoError(b, store.Close()) }()
	node := timed(b, store, 32_000, 32_000)
	for b.Loop() {
		got, err := history.ReadTimeline(b.Context(), store, node, history.TimelineOptions{Now: noon})
		require.NoError(b, err)
		require.Len(b, got.Spans, 1_000)
	}
}
