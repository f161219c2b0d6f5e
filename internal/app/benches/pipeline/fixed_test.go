package pipeline

import (
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/ops/sweep"
	"thalweg/internal/run/concurrency"
)

// One number is another than what the worker chose, in each class that has the knob; a thread that it did not choose is
// left to it.
func TestFixedNumbers(t *testing.T) {
	t.Parallel()
	chosen := []concurrency.Setting{
		{Class: concurrency.Load, Knob: concurrency.Batches, Value: 3},
		{Class: concurrency.Load, Knob: concurrency.Threads, Value: 1},
		{Class: concurrency.Join, Knob: concurrency.Batches, Value: 5},
		{Class: concurrency.Join, Knob: concurrency.Threads, Value: 2},
	}
	of := func(class, knob string) concurrency.Of { return concurrency.Of{Class: class, Knob: knob} }
	own := concurrency.Fixed{of("load", "batches"): 3, of("join", "batches"): 5, of("join", "threads"): 2}
	require.Equal(t, own, fixed(sweep.Setting{}, chosen))
	require.Equal(t, concurrency.Fixed{of("load", "batches"): 8, of("join", "batches"): 8, of("join", "threads"): 2},
		fixed(sweep.Setting{Knob: concurrency.Batches, N: 8}, chosen))
	require.Equal(t, concurrency.Fixed{of("load", "batches"): 3, of("load", "threads"): 1, of("join", "batches"): 5,
		of("join", "threads"): 1}, fixed(sweep.Setting{Knob: concurrency.Threads, N: 1}, chosen))
	b := bench{opts: Options{Numbers: map[string][]int{concurrency.Batches: {4, 1, 4}, concurrency.Writers: {1}}}}
	require.Equal(t, []sweep.Setting{{}, {Knob: concurrency.Batches, N: 1}, {Knob: concurrency.Batches, N: 4}},
		b.settings(chosen), "there are no writers")
}
