package state_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
)

func TestTallyAddsUpInAnyOrder(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	one := func(batch int, to *state.Tally) {
		s := state.Stats{RowsIn: int64(batch), Elapsed: time.Duration(batch%7+1) * time.Second, Engine: time.Second,
			PeakBytes: int64(batch), Counters: map[string]int64{"bad": 1}}
		if batch%3 == 0 {
			s.Warnings = []string{fmt.Sprint("first of ", batch), fmt.Sprint("second of ", batch)}
		}
		if batch%2 == 1 {
			s.Repeats = []state.Repeat{{Kind: []string{"a", "b"}[batch/2%2], First: fmt.Sprint("at ", batch),
				Count: int64(batch), Of: "values", Way: "go on"}}
		}
		as := state.Succeeded
		if batch == 40 {
			as = state.Failed
		}
		to.Count(batch, as, s)
	}
	var want state.Tally
	for batch := range 50 {
		one(batch, &want)
	}
	require.Equal(t, 50, want.Batches)
	require.Equal(t, int64(49), want.Stats.PeakBytes)
	require.Equal(t, map[string]int64{"bad": 50}, want.Stats.Counters)
	require.Equal(t, []int{6, 13, 20}, []int{want.Longest[0].Batch, want.Longest[1].Batch, want.Longest[2].Batch})
	require.Equal(t, 34, want.Warned)
	require.Len(t, want.Warnings, state.TallyWarningsMax)
	require.Equal(t, state.Warning{Batch: 3, Text: "second of 3"}, want.Warnings[3])
	require.Equal(t, []state.Repeat{{Kind: "a", Batch: 1, First: "at 1", Count: 325, Of: "values", Way: "go on"},
		{Kind: "b", Batch: 3, First: "at 3", Count: 300, Of: "values", Way: "go on"}}, want.Repeats)
	told, all := want.Told()
	require.Equal(t, 36, all)
	require.Len(t, told, state.TallyWarningsMax+2)
	require.Equal(t, state.Warning{Batch: 1, Text: "at 1 (the first of 325 values); go on"}, told[2])
	for range 20 {
		pieces := make([]state.Tally, 1+rng.IntN(4))
		for _, batch := range rng.Perm(50) {
			one(batch, &pieces[rng.IntN(len(pieces))])
		}
		var got state.Tally
		for _, p := range pieces {
			got.Merge(p)
		}
		require.Equal(t, want, got)
	}
}

func TestTallyMedian(t *testing.T) {
	t.Parallel()
	require.Zero(t, new(state.Tally).Median())
	for _, d := range []time.Duration{0, 3 * time.Microsecond, 900 * time.Microsecond,
		17 * time.Millisecond, time.Second, 61 * time.Second, 20 * time.Hour} {
		var tally state.Tally
		for i := range 101 {
			took := d
			if i > 50 { // half of them but one took much longer
				took += 40 * time.Hour
			}
			tally.Count(i, state.Succeeded, state.Stats{Elapsed: took})
		}
		require.InDelta(t, float64(d), float64(tally.Median()), float64(d)/8+float64(5*time.Microsecond), "%s", d)
	}
}

func TestSpansMeet(t *testing.T) {
	t.Parallel()
	var end time.Duration
	for span := 8; span < 200; span++ {
		from, to := state.SpanBounds(span)
		if span > 8 {
			require.Equal(t, end, from)
		}
		require.Greater(t, to, from)
		end = to
	}
}
