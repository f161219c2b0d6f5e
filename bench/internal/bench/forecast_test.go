package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Runs from which others are foretold count for the spread alone; shapes are held against each other by their medians.
func TestScoreForecasts(t *testing.T) {
	t.Parallel()
	shape := func(name string, measured, middle float64) Forecast {
		return Forecast{Name: name, Measured: measured, Middle: middle, Low: 0.9 * middle, High: 1.1 * middle, Shape: true,
			Simulated: 2 * measured}
	}
	got := ScoreForecasts([]Forecast{
		{Name: "one", Measured: 100}, {Name: "one", Measured: 110},
		shape("a", 50, 50), shape("b", 40, 50), shape("c", 41, 41),
		{Name: "two", Measured: 60, Middle: 63, Low: 61, High: 70},
	})
	require.InDelta(t, 2.5, got[MedianError], 1e-9)
	require.InDelta(t, 25, got[WorstError], 1e-9)
	require.InDelta(t, 50, got[WithinInterval], 1e-9)
	require.InDelta(t, 100, got[MedianSimulate], 1e-9)
	require.InDelta(t, 100*10/105.0, got[MostSpread], 1e-9)
	require.InDelta(t, 2, got[ShapePairs], 0, "b and c are alike")
	require.InDelta(t, 1, got[ShapesWrong], 0, "a was to take as long as b")
}

// What was not measured is not there.
func TestScoreWithout(t *testing.T) {
	t.Parallel()
	require.Empty(t, ScoreForecasts([]Forecast{{Name: "one", Measured: 100}}))
	got := ScoreForecasts([]Forecast{{Name: "a", Measured: 100, Middle: 90, Low: 80, High: 110, Shape: true},
		{Name: "b", Measured: 101, Middle: 120, Low: 80, High: 110, Shape: true}})
	require.Zero(t, got[ShapePairs])
	require.NotContains(t, got, ShapesWrong)
	require.NotContains(t, got, MostSpread)
	require.NotContains(t, got, MedianSimulate)
}
