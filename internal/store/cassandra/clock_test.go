package cassandra

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// One clock of three that is wrong decides nothing.
func TestMiddle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ahead []time.Duration
		want  time.Duration
	}{
		{[]time.Duration{7}, 7},
		{[]time.Duration{60 * time.Second, 1, 2}, 2},
		{[]time.Duration{-60 * time.Second, 1, 2}, 1},
		{[]time.Duration{3, 60 * time.Second}, 3},
	} {
		var clocks []Clock
		for _, ahead := range c.ahead {
			clocks = append(clocks, Clock{Ahead: ahead})
		}
		require.Equal(t, c.want, middle(clocks).Ahead, c.ahead)
	}
}
