package api

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/test/effort"
)

func TestLimiter(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	l, now := newLimiter(2, 3), time.Unix(1, 0)
	for range 3 {
		require.NoError(t, l.take("a", now))
	}
	require.Error(t, l.take("a", now))
	require.Error(t, l.take("a", now), "what is refused costs nothing")
	require.NoError(t, l.take("b", now))
	require.NoError(t, l.take("a", now.Add(500*time.Millisecond)))
	require.Error(t, l.take("a", now.Add(500*time.Millisecond)))
}

// However many addresses there are, memory and their common requests are limited.
func TestLimiterOfMany(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	l, now := newLimiter(1, 2), time.Unix(1, 0)
	refused := 0
	for i := range limitedMost + 100 {
		if l.take(fmt.Sprint(i), now) != nil {
			refused++
		}
	}
	require.Equal(t, 98, refused)
	require.Len(t, l.of, limitedMost)
	require.NoError(t, l.take("new", now.Add(time.Minute)), "the old ones are forgotten")
	require.Less(t, len(l.of), limitedMost)
	for address, want := range map[string]string{"203.0.113.9": "203.0.113.9", "[2001:db8::1:2]": "2001:db8::",
		"2001:db8::ffff:1": "2001:db8::", "::ffff:203.0.113.9": "::ffff:203.0.113.9", "no address": "no address"} {
		require.Equal(t, want, networkOf(address))
	}
}
