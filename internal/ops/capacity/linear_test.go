package capacity

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/ops/chart"
)

func TestRatesThatGrowWithNodesAreLinear(t *testing.T) {
	l, err := LinearityOf("writes", []Scaled{{Nodes: 288, Rate: 1_099_837}, {Nodes: 48, Rate: 174_373},
		{Nodes: 96, Rate: 366_828}, {Nodes: 144, Rate: 537_172}})
	require.NoError(t, err)
	require.InDelta(t, 1.02, l.Power, 0.01)
	require.Less(t, l.Low, l.Power)
	require.Greater(t, l.High, l.Power)
	require.Equal(t, 48, l.Rates[0].Nodes)
	require.InDelta(t, 1.0512, l.Rates[3].Linear, 1e-4)
	var svg bytes.Buffer
	require.NoError(t, chart.Write(&svg, "linearity", []chart.Panel{l.Panel()}))
	require.Contains(t, svg.String(), "288 nodes: 1,099,837/s")
}

// Intervals of 80 % hold about 80 % of the powers that rates were made with.
func TestIntervalsOfPowersHold(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const trials = 1000
	held := 0
	for range trials {
		power := 0.5 + random.Float64()/2
		var rates []Scaled
		for _, n := range []int{1, 1, 1, 3, 3, 3} {
			rates = append(rates, Scaled{Nodes: n,
				Rate: 1000 * math.Pow(float64(n), power) * math.Exp(0.05*random.NormFloat64())})
		}
		l, err := LinearityOf("reads", rates)
		require.NoError(t, err)
		if l.Low <= power && power <= l.High {
			held++
		}
	}
	require.InDelta(t, 0.8, float64(held)/trials, 0.04)
}

func TestHowLinearIsSaid(t *testing.T) {
	two, err := LinearityOf("reads", []Scaled{{Name: "a", Nodes: 1, Rate: 1000}, {Name: "b", Nodes: 3, Rate: 2400}})
	require.NoError(t, err)
	require.InDelta(t, 0.7969, two.Power, 1e-4)
	require.Equal(t, "not told: no interval", two.Verdict())
	require.NotEmpty(t, two.Notes)
	require.Equal(t, []string{"3", "2,400", "800", "80.0 %", "b"}, two.Tables()[0].Rows[1])
	less, err := LinearityOf("reads", []Scaled{{Nodes: 1, Rate: 1000}, {Nodes: 1, Rate: 1010}, {Nodes: 3, Rate: 2400},
		{Nodes: 3, Rate: 2410}})
	require.NoError(t, err)
	require.Equal(t, "less than linear", less.Verdict())
	for _, wrong := range [][]Scaled{nil, {{Nodes: 1, Rate: 1}, {Nodes: 1, Rate: 2}}, {{Nodes: 0, Rate: 1}},
		{{Nodes: 1, Rate: 0}, {Nodes: 2, Rate: 1}}, {{Nodes: 1, Rate: math.Inf(1)}, {Nodes: 2, Rate: 1}}} {
		_, err := LinearityOf("reads", wrong)
		require.Error(t, err)
	}
}
