package load

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/test/effort"
)

// counts is a server that counts how often it was asked, and tells when it has been asked three times.
type counts struct {
	asked  float64
	enough chan struct{}
}

// Observe implements Observer.
func (c *counts) Observe(context.Context) ([]Reading, error) {
	if c.asked++; c.asked == 3 {
		close(c.enough)
	}
	return []Reading{{Node: "a", Counters: map[string]float64{Operations: c.asked}}}, nil
}

// What servers say while a load is sent from elsewhere goes to the seconds in which they said it.
func TestServersAreLookedAtForLoadsFromElsewhere(t *testing.T) {
	t.Parallel()
	c := &counts{enough: make(chan struct{})}
	began := time.Now()
	seen := Observe(t.Context(), c)
	select {
	case <-c.enough:
	case <-time.After(effort.Patience):
		require.Fail(t, "it is not asked each second")
	}
	// The window began a second behind the first look.
	r := Result{Began: began.Add(time.Second), Seconds: make([]Second, 5)}
	seen(&r)
	require.InDelta(t, 2, r.Before[0].Counters[Operations], 0)
	require.InDelta(t, 3, r.Seconds[0].Servers[0].Counters[Operations], 0)
	require.Empty(t, r.Seconds[3].Servers)
	require.Empty(t, r.Notes)
	asked := c.asked
	require.NotPanics(t, func() { seen(&Result{}) }, "of a load that failed")
	require.InDelta(t, asked, c.asked, 0, "nobody asks any more")
}
