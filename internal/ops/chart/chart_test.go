package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func drawn(t *testing.T, panels ...Panel) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, Write(&b, "a < b", panels))
	d := xml.NewDecoder(strings.NewReader(b.String()))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return b.String()
		} else {
			require.NoError(t, err)
		}
	}
}

func TestPointsLieWhereTheyBelong(t *testing.T) {
	t.Parallel()
	svg := drawn(t, Panel{Title: "T", X: "nodes", Y: "s", Series: []Series{
		{Name: "8 <cores>", Points: []Point{{1, 0, "first"}, {2, 50, "half"}, {4, 100, "last & most"}}},
		{Name: "perfect", Dashed: true, Points: []Point{{1, 100, "p"}}}}})
	require.Contains(t, svg, "<title>a &lt; b</title>")
	require.Contains(t, svg, `points="90.0,280.0 350.0,160.0 610.0,40.0"`)
	require.Contains(t, svg, "<title>last &amp; most</title>")
	require.Contains(t, svg, "8 &lt;cores&gt;")
	require.Contains(t, svg, `class="line s0 dashed"`)
	require.NotContains(t, svg, `class="line s1`)
}

func TestWhatCannotBeDrawnIsLeftOut(t *testing.T) {
	t.Parallel()
	svg := drawn(t, Panel{Log: true, Series: []Series{{Points: []Point{{1, 10, "in"}, {2, 0, "zero"}, {0, 1, "x"},
		{1, math.NaN(), "nan"}, {math.Inf(1), 1, "inf"}, {8, 90, "in"}}}}}, Panel{})
	require.Equal(t, 2, strings.Count(svg, "<circle"))
	require.NotContains(t, svg, "NaN")
	require.Contains(t, svg, "nothing to draw")
	require.Equal(t, 1, strings.Count(drawn(t, Panel{Series: []Series{{Points: []Point{{3, 0, ""}}}}}), "<circle"))
}

func TestEvenAxesBeginAtZero(t *testing.T) {
	t.Parallel()
	svg := drawn(t, Panel{Even: true, X: "s", Series: []Series{{Name: "l", Line: true, Points: []Point{{0, 0, "a"},
		{50, 5, "b"}, {100, 10, "c"}}}}})
	require.Contains(t, svg, `points="90.0,280.0 350.0,160.0 610.0,40.0"`)
	require.NotContains(t, svg, "<circle ")
}

func TestTicksAreRound(t *testing.T) {
	t.Parallel()
	require.Equal(t, []float64{0, 500, 1000, 1500}, ticksOf(115, 1408, false))
	require.Equal(t, []float64{100, 200, 500, 1000, 2000}, ticksOf(115, 1408, true))
	require.Equal(t, []float64{0, 0.5, 1, 1.5, 2}, ticksOf(0.63, 1.78, false))
	require.Equal(t, []float64{1, 2}, ticksOf(1, 1, true))
	for most := 1e-3; most < 1e9; most *= 1.7 {
		n := len(ticksOf(most/40, most, false))
		require.LessOrEqual(t, n, ticksMost+2, most)
		require.Greater(t, n, 2, most)
	}
}
