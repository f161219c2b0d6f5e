package causes

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/ops/samples"
)

func sampled(to, took, cpu, children float64, cores int) samples.Sample {
	return samples.Sample{Time: after(to), Took: durationOf(took), CPU: durationOf(cpu), ChildrenCPU: durationOf(children),
		Cores: cores}
}

// zoned is a run of 60 s of one worker of two processors: it loads for 25 s, computes in Python for 20 s, and has
// nothing to do behind that.
func zoned() Facts {
	load, python := nodeOf("l", [2]float64{0, 10}, [2]float64{10, 25}), nodeOf("p", [2]float64{25, 45})
	load.Class, python.Class = "load", "python"
	load.Batches[0].Rows, load.Batches[0].Bytes = 1000, 4000
	f := factsOf(60, 2, load, python)
	f.Samples = []samples.Worker{{Name: "a", Samples: []samples.Sample{sampled(10, 10, 19, 0, 2),
		sampled(20, 10, 17, 1, 2), sampled(30, 10, 12, 7, 2), sampled(40, 10, 1, 20, 2), sampled(55, 10, 0.2, 0, 2)}}}
	return f
}

// A sample is of the class that had nine tenths of the work of its worker; else it is of none.
func TestZonesAreWhatTheProcessorsDidForAClass(t *testing.T) {
	t.Parallel()
	f := zoned()
	require.Equal(t, []Zone{{"load", 20, 0.9, 0.025}, {"idle", 10, 0.01, 0}, {"mixed", 10, 0.6, 0.35},
		{"python", 10, 0.05, 1}}, Explain(f).Zones)
	f.Samples[0].Name = "another" // whose batches these are not
	zones := Explain(f).Zones
	require.Len(t, zones, 1)
	require.Equal(t, "idle", zones[0].Class)
	f.Samples = nil
	require.Equal(t, []Zone{}, Explain(f).Zones)
}

func TestChartsHaveRatesOverTime(t *testing.T) {
	t.Parallel()
	r := Explain(zoned())
	const step = 60.0 / Bins
	sum := func(values []float64) (all float64) {
		for _, v := range values {
			all += v * step
		}
		return all
	}
	require.InDelta(t, 100, r.Series.Rows["load"][0], 1e-3)
	require.Zero(t, r.Series.Rows["load"][int(11/step)])
	require.InDelta(t, 1000, sum(r.Series.Rows["load"]), 1e-3)
	require.InDelta(t, 4000, sum(r.Series.Bytes["load"]), 1e-3)
	require.InDelta(t, 6, sum(r.Series.Calls), 1e-3, "three batches are claimed and committed")
	require.InDelta(t, 49.2, sum(r.Series.CPU), 0.1)
	require.InDelta(t, 28, sum(r.Series.Children), 0.1)
	require.InDelta(t, 2, r.Series.Cores[0], 1e-3)

	var svg strings.Builder
	require.NoError(t, r.WriteSVG(&svg))
	require.Equal(t, 6, strings.Count(svg.String(), `class="title"`))
	require.Contains(t, svg.String(), "processors of workers")
	f := zoned()
	f.Samples = nil
	svg.Reset()
	require.NoError(t, Explain(f).WriteSVG(&svg))
	require.NotContains(t, svg.String(), "processors of workers", "nothing is said of what nobody has measured")
}
