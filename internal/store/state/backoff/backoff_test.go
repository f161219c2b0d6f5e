package backoff

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Who has lost nothing does not wait; who has waits longer each time, up to a limit.
func TestTries(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable
	var p Tries
	p.Won()
	require.Zero(t, p.Wait(rng))
	p.Lost()
	for range 100 {
		require.Less(t, p.Wait(rng), First)
	}
	longest := First
	for range 100 {
		p.Lost()
		d := p.Wait(rng)
		require.Less(t, d, Longest)
		longest = max(longest, d)
	}
	require.Greater(t, longest, Longest/2)
	p.Won()
	require.Zero(t, p.Wait(rng))
}
