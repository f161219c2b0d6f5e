package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Only the time counts in which a place was free.
func TestPlaceFree(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	held := []change{{at(1), 1}, {at(2), 1}, {at(10), -1}, {at(11), 1}, {at(20), -1}, {at(30), -1}}
	for name, c := range map[string]struct{ places, from, to, want int }{
		"both are taken":           {2, 3, 9, 0},
		"one was free for a while": {2, 3, 19, 1},
		"free at the end":          {2, 12, 25, 5},
		"never full":               {3, 0, 25, 25},
		"before anything":          {2, 0, 3, 2},
	} {
		require.Equal(t, time.Duration(c.want)*time.Second, placeFree(held, c.places, at(c.from), at(c.to)), name)
	}
}
