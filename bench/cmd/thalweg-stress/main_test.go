package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each bar is met up to its limit, and missed beyond.
func TestBars(t *testing.T) {
	t.Parallel()
	windows := func(rate, cpu, p50, p99 float64) *session {
		s := &session{}
		for _, kind := range kinds {
			for _, fixed := range []int{0, 100} {
				s.windows = append(s.windows, window{theirs{}.name(), kind, fixed, 1000, 100, 1000, 10_000},
					window{ours{}.name(), kind, fixed, rate, cpu, p50, p99})
			}
		}
		return s
	}
	for name, tc := range map[string]struct {
		rate, cpu, p50, p99 float64
		missed              int // of reads and of writes
	}{
		"at the limits":  {950, 100, 1300, 11_500, 0},
		"below them":     {2000, 10, 700, 8500, 0},
		"too slow":       {949, 100, 1000, 10_000, 2},
		"too much work":  {1000, 101, 1000, 10_000, 2},
		"p50 too long":   {1000, 100, 1301, 10_000, 2},
		"p99 too short":  {1000, 100, 1000, 8499, 2},
		"all are missed": {1, 1000, 1, 1, 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.missed, windows(tc.rate, tc.cpu, tc.p50, tc.p99).print())
		})
	}
}
