package stats_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/stats"
)

func TestStudent90(t *testing.T) {
	t.Parallel()
	for free, want := range map[int]float64{1: 3.078, 5: 1.476, 10: 1.372, 11: 1.363, 12: 1.356, 20: 1.325, 30: 1.310,
		1000: 1.282} {
		require.InDelta(t, want, stats.Student90(free), 0.0006, free)
	}
}
