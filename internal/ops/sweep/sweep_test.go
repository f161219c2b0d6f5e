package sweep_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/ops/sweep"
	"thalweg/internal/run/concurrency"
)

const (
	rows   = 1_000_000
	rounds = 4
)

// plant is a machine whose rate is known: it does 100,000 rows/s for each of the first four batches at once and no more
// for others, and slows down by 5 % from run to run.
func plant(chosen int, numbers ...int) (samples []sweep.Sample) {
	settings := []sweep.Setting{{}}
	for _, n := range numbers {
		settings = append(settings, sweep.Setting{Knob: concurrency.Batches, N: n})
	}
	drift := 1.0
	for round := range rounds {
		for _, s := range sweep.Order(settings, round) {
			n := s.N
			if n == 0 {
				n = chosen
			}
			took := time.Duration(rows / (100_000 * float64(min(n, 4))) * drift * float64(time.Second))
			samples = append(samples, sweep.Sample{Setting: s, Round: round, Classes: map[string]sweep.Work{
				concurrency.Load: {Rows: rows, Bytes: 10 * rows, Took: took}}})
			drift *= 1.05
		}
	}
	return samples
}

func chose(n int, settled bool) []concurrency.Setting {
	return []concurrency.Setting{{Class: concurrency.Load, Knob: concurrency.Batches, Value: n, Settled: settled},
		{Class: concurrency.Load, Knob: concurrency.Threads, Value: 1, Settled: true}}
}

func classOf(t *testing.T, chosen int, numbers ...int) sweep.Class {
	t.Helper()
	classes := sweep.New(plant(chosen, numbers...), map[string][]string{concurrency.Load: {"read"}}, chose(chosen, true))
	require.Len(t, classes, 1)
	require.Equal(t, []string{"read"}, classes[0].Nodes)
	require.Equal(t, concurrency.Threads, classes[0].Knobs[1].Knob)
	require.Empty(t, classes[0].Knobs[1].Fixed)
	return classes[0]
}

// The gain of a doubling is what the plant's is, and it is known from where on there is none, whatever drifts.
func TestGainsOfDoublings(t *testing.T) {
	t.Parallel()
	k := classOf(t, 4, 1, 2, 4, 8, 16).Knobs[0]
	require.Nil(t, k.Fixed[0].Gain)
	for i, want := range map[int]float64{1: 1, 2: 1, 3: 0, 4: 0} {
		gain := *k.Fixed[i].Gain
		require.InDelta(t, want, gain.Mean, 1e-6, i)
		require.LessOrEqual(t, gain.Low, gain.Mean)
		require.GreaterOrEqual(t, gain.High, want)
		require.Less(t, gain.Low, want)
	}
	require.Equal(t, 4, k.Enough)
	require.True(t, k.Fixed[2].Chosen)
	require.False(t, k.Fixed[3].Chosen)
	wide := classOf(t, 4, 1, 4).Knobs[0]
	require.InDelta(t, 1, wide.Fixed[1].Gain.Mean, 0.01, "two doublings gain as much each")
	require.Zero(t, wide.Enough)
}

// What the worker chose is held against the best fixed number, in the same rounds.
func TestShareOfTheBest(t *testing.T) {
	t.Parallel()
	best := classOf(t, 4, 1, 2, 4, 8)
	require.Equal(t, &sweep.Setting{Knob: concurrency.Batches, N: 8}, best.Best)
	require.InDelta(t, 1, best.Share.Mean, 0.01)
	ahead := classOf(t, 4, 1, 2, 4)
	require.Equal(t, &sweep.Setting{Knob: concurrency.Batches, N: 2}, ahead.Best, "4 is its own choice")
	require.InDelta(t, 2, ahead.Share.Mean, 0.01)
	half := classOf(t, 2, 1, 2, 4)
	require.InDelta(t, 0.5, half.Share.Mean, 0.01)
	require.Equal(t, sweep.Missed, half.Verdict)
	require.EqualValues(t, rows, half.Rows)
	none := classOf(t, 2)
	require.Nil(t, none.Share)
	require.Empty(t, none.Verdict)

	steady := func(spread float64) sweep.Class {
		var samples []sweep.Sample
		for round := range rounds {
			sign := 1 - 2*float64(round%2)
			for n, took := range map[int]float64{0: 10 * (1 + spread*sign), 2: 10} {
				s := sweep.Setting{}
				if n > 0 {
					s = sweep.Setting{Knob: concurrency.Batches, N: n}
				}
				samples = append(samples, sweep.Sample{Setting: s, Round: round, Classes: map[string]sweep.Work{
					concurrency.Load: {Rows: 1, Took: time.Duration(took * float64(time.Second))}}})
			}
		}
		return sweep.New(samples, nil, chose(1, true))[0]
	}
	require.Equal(t, sweep.Reached, steady(0.01).Verdict)
	require.Equal(t, sweep.NotSure, steady(0.2).Verdict)
}

// A number that the worker has chosen, too, is measured twice as often, and is no rival.
func TestTheSameNumberIsItsChoice(t *testing.T) {
	t.Parallel()
	var samples []sweep.Sample
	for round := range rounds {
		for n, took := range map[int]time.Duration{0: 20 * time.Second, 2: 5 * time.Second, 4: 10 * time.Second} {
			s := sweep.Setting{}
			if n > 0 {
				s = sweep.Setting{Knob: concurrency.Batches, N: n}
			}
			samples = append(samples, sweep.Sample{Setting: s, Round: round, Classes: map[string]sweep.Work{
				concurrency.Load: {Rows: 1, Took: took}}})
		}
	}
	c := sweep.New(samples, nil, chose(2, true))[0]
	require.Equal(t, &sweep.Setting{Knob: concurrency.Batches, N: 4}, c.Best)
	require.InDelta(t, 1, c.Share.Mean, 1e-9)
	require.Equal(t, sweep.Reached, c.Verdict)
}

// One round has no interval, and no certain verdict.
func TestOneRound(t *testing.T) {
	t.Parallel()
	samples := plant(1, 4)[:2]
	c := sweep.New(samples, nil, chose(1, true))[0]
	require.Equal(t, c.Share.Mean, c.Share.Low)
	require.Equal(t, sweep.NotSure, c.Verdict)
	require.InDelta(t, 100_000, c.Chosen.Rows.Mean, 1)
}

func TestReport(t *testing.T) {
	t.Parallel()
	r := sweep.Report{Version: sweep.Version, Cores: 4, State: "a directory", Rounds: rounds,
		Classes: sweep.New(plant(2, 1, 2, 4, 8), map[string][]string{concurrency.Load: {"read"}}, chose(2, false))}
	tables := r.Tables()
	require.Len(t, tables, 2)
	require.Equal(t, []string{"load", "2?", "free", "-"}, tables[0].Rows[0][:4])
	require.Equal(t, "batches 4", tables[0].Rows[0][5])
	require.Equal(t, sweep.Missed, tables[0].Rows[0][7])
	require.Equal(t, "load (read): 1,000,000 rows, 9.5 MiB a run", tables[1].Title)
	require.Equal(t, "chosen 2", tables[1].Rows[1][1])
	require.Equal(t, "gain < 5 %", tables[1].Rows[2][5])
	require.Contains(t, tables[1].Rows[1][4], "+100.0 % (")
	once := sweep.Report{Classes: sweep.New(plant(2, 1, 2, 4, 8)[:5], nil, chose(2, true))}
	require.Equal(t, "may gain < 5 %", once.Tables()[1].Rows[2][5])

	var svg bytes.Buffer
	require.NoError(t, r.WriteSVG(&svg))
	require.Equal(t, 1, strings.Count(svg.String(), "beside what the worker chose"), "a panel for batches, and no other")
	text, err := json.Marshal(r)
	require.NoError(t, err)
	require.Contains(t, string(text), `"version":1`)
	require.False(t, math.IsNaN(r.Classes[0].Share.High))
}

// What rests on too little is said: runs below a second, and more batches at once than there are.
func TestDoubts(t *testing.T) {
	t.Parallel()
	of := func(n int, took time.Duration, batches int) []sweep.Sample {
		return []sweep.Sample{{Setting: sweep.Setting{Knob: concurrency.Batches, N: n}, Classes: map[string]sweep.Work{
			concurrency.Join: {Rows: 1, Took: took, Batches: batches}}}}
	}
	require.Empty(t, sweep.Doubts(of(4, time.Second, 4)))
	require.Equal(t, []string{"join took 300 ms a run: so short a time says little; measure more rows"},
		sweep.Doubts(of(4, 300*time.Millisecond, 4)))
	require.Equal(t, []string{"join had 1 batch at most: larger numbers of batches say nothing of it"},
		sweep.Doubts(of(2, time.Second, 1)))
	require.Empty(t, sweep.Doubts(nil))
}
