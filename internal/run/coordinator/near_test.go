package coordinator_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/runtest"
)

// A process takes the batches first that read what it has at hand, and then the
// others: none waits.
func TestBatchesAtHandComeFirst(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithTimeout(t.Context(), effort.Patience)
	defer stop()
	const batches, each = 100, 3
	near := func(batch int) bool { return batch%each == 1 }
	b, fake := runtest.New(t), &runtest.Job{Batches: map[string]int{"a": batches}}
	status, err := b.Work(ctx, t, fake, func(c *runtest.Worker) {
		c.Exec.Slots, c.Coor.Slots = 1, 1
		c.Coor.Near = func(_ context.Context, n state.Node) (func(int) bool, error) { return near, nil }
	})
	require.NoError(t, err)
	require.Equal(t, state.Complete, status)
	require.Len(t, fake.Begun(), batches)
	for i, r := range fake.Begun() {
		require.Equal(t, i < batches/each, near(r.Batch), "batch %d came as number %d", r.Batch, i)
	}
}
