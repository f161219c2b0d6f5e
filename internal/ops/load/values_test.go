package load

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestValuesAreKnownAgain(t *testing.T) {
	seen := map[string]bool{}
	for key := range uint64(1000) {
		for _, size := range []int{0, 1, 8, 34, 170} {
			a, b := make([]byte, size), make([]byte, size)
			Fill(a, key)
			Fill(b, key)
			require.Equal(t, a, b)
			if size >= 8 {
				require.False(t, seen[string(a)], "key %d, %d bytes", key, size)
				seen[string(a)] = true
			}
		}
	}
	value := make([]byte, 170)
	require.Zero(t, testing.AllocsPerRun(100, func() { Fill(value, 7) }))
}

func TestValuesBeginAlikeWhateverTheirSize(t *testing.T) {
	long, short := make([]byte, 40), make([]byte, 13)
	Fill(long, 3)
	Fill(short, 3)
	require.Equal(t, long[:13], short)
}

// A server that began again in the middle has done what it had done before, and what it counts since. One reading says
// nothing of growth.
func TestNodesSumUpWhatServersSay(t *testing.T) {
	at := func(at float64, ops, pending float64) Second {
		return Second{At: at, Servers: []Reading{{Node: "b", Counters: map[string]float64{Operations: ops},
			Gauges: map[string]float64{"pending": pending}}}}
	}
	seconds := []Second{at(1, 100, 0), at(2, 160, 7), at(3, 10, 1), at(5, 30, 2)}
	seconds[3].Servers = append(seconds[3].Servers, Reading{Node: "a", Counters: map[string]float64{Operations: 5}})
	got := Nodes(seconds)
	require.Equal(t, []NodeUse{
		{Node: "a", Rates: map[string]float64{}, Gauges: map[string]float64{}},
		{Node: "b", Rates: map[string]float64{Operations: (60 + 10 + 20) / 4.0}, Gauges: map[string]float64{"pending": 7}},
	}, got)
	require.Empty(t, Nodes(nil))
}
