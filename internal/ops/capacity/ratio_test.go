package capacity

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func compared(t *testing.T, a, b string) (Compared, error) {
	t.Helper()
	sets := make([]Measured, 2)
	for i, text := range []string{a, b} {
		runs, err := readTable(t, text)
		require.NoError(t, err)
		sets[i] = MeasuredRuns([]string{"a.csv", "b.csv"}[i], runs)
	}
	return Compare(sets[0], sets[1])
}

func TestSetsOfRunsAreCompared(t *testing.T) {
	t.Parallel()
	c, err := compared(t, "nodes,cores,seconds,load_s\n1,8,100,50\n1,8,110,50\n2,8,60,\n9,8,10,\n",
		"nodes,cores,seconds,load_s\n1,8,50,50\n1,8,55,50\n2,8,31,\n4,8,20,7\n")
	require.NoError(t, err)
	by := map[string]Ratio{}
	for _, r := range c.Ratios {
		by[r.What+" "+r.Where] = r
	}
	require.Len(t, by, 4)
	one := by["time 1 × 8"] // logarithms 4.6052, 4.7005 and 3.9120, 4.0073: half as long, ± 1.8856 · 0.0674
	require.InDelta(t, 0.5, one.Ratio, 1e-9)
	require.InDelta(t, 0.4403, one.Low, 1e-3)
	require.InDelta(t, 0.5678, one.High, 1e-3)
	require.InDelta(t, 104.88, one.A, 0.01)
	require.Equal(t, 2, one.OfB)
	two := by["time 2 × 8"]
	require.InDelta(t, 31.0/60, two.Ratio, 1e-9)
	require.Zero(t, two.High, "one run each says nothing of the spread")
	all := by["time "]
	require.InDelta(t, 0.5083, all.Ratio, 1e-4)
	require.InDelta(t, 0.4832, all.Low, 1e-3)
	require.InDelta(t, 0.5346, all.High, 1e-3)
	require.Equal(t, []string{"Measured in a.csv alone, and not compared: time 9 × 8.",
		"Measured in b.csv alone, and not compared: time 4 × 8, load 4 × 8."}, c.Notes)
	table := c.Tables()[0]
	require.Equal(t, []string{"time", "1 × 8", "105 s", "52.4 s", "2, 2", "0.500", "0.440–0.568", "less"}, table.Rows[0])
	require.Equal(t, "no difference told", by["load 1 × 8"].verdict())
	require.Equal(t, "not repeated", two.verdict())
}

func TestSetsWithNothingInCommonAreNotCompared(t *testing.T) {
	t.Parallel()
	_, err := compared(t, "nodes,cores,seconds\n1,8,100\n", "nodes,cores,seconds\n1,16,100\n")
	require.EqualError(t, err, "nothing was measured in both: a.csv has time 1 × 8, b.csv has time 1 × 16")
}

func TestFiguresOfHostsAreCompared(t *testing.T) {
	t.Parallel()
	read := func(text string) (Measured, error) { return ReadFigures("host.json", []byte(text)) }
	a, err := read(`{"machine": "c7g.large", "more": 1, "figures": {"sort": {"unit": "s", "repeats": [4, 4.1, 3.9]},
		"disk": {"value": 100, "unit": "MB/s"}}}`)
	require.NoError(t, err)
	b, err := read(`{"machine": "c8g.large", "figures": {"sort": {"value": 3, "unit": "s", "repeats": [3, 3.1, 2.9]}}}`)
	require.NoError(t, err)
	c, err := Compare(a, b)
	require.NoError(t, err)
	require.Len(t, c.Ratios, 1)
	r := c.Ratios[0]
	require.InDelta(t, 0.75, r.Ratio, 0.001)
	require.Equal(t, 3.0, r.B, "what the report says")
	require.Less(t, r.High, 0.8)
	require.Equal(t, []string{"Measured in c7g.large alone, and not compared: disk."}, c.Notes)
	other, err := read(`{"figures": {"sort": {"value": 3, "unit": "ms"}}}`)
	require.NoError(t, err)
	_, err = Compare(a, other)
	require.ErrorContains(t, err, `sort is in "s" in c7g.large, and in "ms" in host.json`)
	for text, want := range map[string]string{
		``:                                   "cannot be read",
		`{}`:                                 "there are 0 figures",
		`{"figures": {"sort": {}}}`:          `figure "sort" has the value 0`,
		`{"figures": {"a": {"value": -1}}}`:  "values are above 0",
		`{"figures": {"a": {"value": "1"}}}`: "cannot be read",
	} {
		_, err := read(text)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "host.json")
	}
}

// What is shown of a figure is what its report says, whatever its parts say; they say how far it is by chance.
func TestFiguresThatArePoorlyRepeatedKeepTheirValues(t *testing.T) {
	t.Parallel()
	read := func(text string) Measured {
		m, err := ReadFigures("store.json", []byte(text))
		require.NoError(t, err)
		return m
	}
	calm := read(`{"figures": {"max": {"value": 2, "unit": "ms"}, "p99": {"value": 1, "unit": "ms", "repeats": [1, 1, 1]},
		"reads": {"value": 900, "unit": "operations/s", "repeats": [1000, 1000, 700]}}}`)
	stood := read(`{"figures": {"max": {"value": 1000, "unit": "ms"}, "p99": {"value": 600, "unit": "ms", "repeats": [1, 1, 900]},
		"reads": {"value": 1800, "unit": "operations/s", "repeats": [2000, 2000, 1400]}}}`)
	c, err := Compare(calm, stood)
	require.NoError(t, err)
	require.Len(t, c.Ratios, 3)
	largest, p99, rate := c.Ratios[0], c.Ratios[1], c.Ratios[2]
	require.Equal(t, [...]float64{2, 1000, 500, 0}, [...]float64{largest.A, largest.B, largest.Ratio, largest.High})
	require.Equal(t, [...]float64{1, 600, 600}, [...]float64{p99.A, p99.B, p99.Ratio})
	require.InDelta(t, p99.Ratio, math.Sqrt(p99.Low*p99.High), 1e-6, "the interval is around what is shown")
	require.Equal(t, [...]float64{900, 1800, 2}, [...]float64{rate.A, rate.B, rate.Ratio})
	l, err := LinearitiesOf([]Measured{calm, stood}, []int{1, 2})
	require.NoError(t, err)
	require.InDelta(t, 1800, l[0].Rates[1].Rate, 1e-9)
}
