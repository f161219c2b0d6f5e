package statetest

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/statetest/explore"
	"thalweg/internal/test/statetest/hostile"
)

// Ways that are walked through the states of package explore, and their calls.
// A slow backend is asked less.
func waysFor() time.Duration { return effort.Of(time.Second/2, time.Second, time.Minute) }

const waySteps = 200

// testExplored walks ways through what package explore visits in full on its own
// store, with all that may happen at once, and holds the store to the same
// answers, and to the same picture at the end.
func testExplored(t *testing.T, open Open) {
	b := newBench(t, open)
	end := time.Now().Add(waysFor())
	ways, calls := 0, 0
	for ; ways == 0 || time.Now().Before(end); ways++ {
		seed := mathrand.Uint64()
		rng := mathrand.New(mathrand.NewPCG(seed, 1)) //nolint:gosec // reproducible
		workspace := fmt.Sprintf("%s_%d", b.workspace, ways)
		key, err := explore.Begin(b.ctx, b.Store, workspace)
		require.NoError(t, err)
		bounds := explore.Bounds{Crashes: 1, Ticks: 3, Duplicates: 2, Unheard: 2, Failures: 2}
		for range 4 {
			bounds.Orders = append(bounds.Orders, explore.Choices[rng.IntN(len(explore.Choices))])
		}
		model := hostile.New()
		err = explore.Walk(bounds, model, workspace, waySteps, rng.IntN,
			func(name string, do func(context.Context, state.Store) error, want error) error {
				calls++
				if got := do(b.ctx, b.Store); (got == nil) != (want == nil) || got != nil && !errors.Is(got, want) {
					return fmt.Errorf("%s: %w, but the model says %w", name, got, want)
				}
				return nil
			})
		require.NoError(t, err, "seed %d", seed)
		want, err := take(b.ctx, model.Open(), key, start)
		require.NoError(t, err)
		got, err := take(b.ctx, b.Store, key, start)
		require.NoError(t, err)
		same(t, want, got)
	}
	t.Logf("%d ways, %d calls", ways, calls)
}
