package coordinator_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/runtest"
)

// counted is a store that counts what it is asked, and what it gives in lists.
type counted struct {
	state.Store
	calls, rows atomic.Int64
}

func (s *counted) Run(ctx context.Context, key state.RunKey) (state.Run, error) {
	s.calls.Add(1)
	return s.Store.Run(ctx, key)
}

func (s *counted) Nodes(ctx context.Context, key state.RunKey) ([]state.Node, error) {
	s.calls.Add(1)
	return s.Store.Nodes(ctx, key)
}

func (s *counted) Batches(ctx context.Context, key state.NodeKey, page state.Page) ([]state.Batch, int64, error) {
	b, next, err := s.Store.Batches(ctx, key, page)
	s.rows.Add(int64(len(b)))
	return b, next, err
}

func (s *counted) Offers(ctx context.Context, key state.NodeKey, now time.Time, page state.Page) ([]state.Offer,
	int64, error) {
	o, next, err := s.Store.Offers(ctx, key, now, page)
	s.calls.Add(1)
	s.rows.Add(int64(len(o)))
	return o, next, err
}

// What coordinating costs grows with the batches that are done, not with those
// that there are: each is read a few times, however many there are.
func TestCoordinationCostsByBatch(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	for _, batches := range []int{200, effort.Of(800, 2_000, 2_000)} {
		b := runtest.New(t)
		s := &counted{Store: b.Store}
		fake := &runtest.Job{Batches: map[string]int{"a": batches}}
		status, err := b.Work(context.Background(), t, fake, func(c *runtest.Worker) {
			c.Coor.Store = s
			c.Coor.Follow = time.Hour // only what happens makes it look
		})
		require.NoError(t, err)
		require.Equal(t, state.Complete, status)
		require.Less(t, s.rows.Load(), int64(3*batches+1_000), "batches read, of %d", batches)
		require.Less(t, s.calls.Load(), int64(batches/2+1_000), "looks, at %d batches", batches)
	}
}

// BenchmarkBatches measures the cost of a batch that does nothing, in a node with many.
func BenchmarkBatches(b *testing.B) {
	for _, batches := range []int{1_000, 32_000} {
		b.Run(map[int]string{1_000: "1000", 32_000: "32000"}[batches], func(b *testing.B) {
			for b.Loop() {
				bundle := runtest.New(b)
				start := time.Now()
				var fake job.Job = &runtest.Job{Batches: map[string]int{"a": batches}}
				status, err := bundle.Work(context.Background(), b, fake, nil)
				require.NoError(b, err)
				require.Equal(b, state.Complete, status)
				b.ReportMetric(float64(time.Since(start).Microseconds())/float64(batches), "us/batch")
			}
		})
	}
}
