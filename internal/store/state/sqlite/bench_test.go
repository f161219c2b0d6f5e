package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
)

// BenchmarkCommit measures what a durable commit costs by level of flushing;
// store.go quotes it.
func BenchmarkCommit(b *testing.B) {
	for _, level := range []string{"FULL", "NORMAL"} {
		b.Run(level, func(b *testing.B) {
			ctx := context.Background()
			s, err := Open(ctx, filepath.Join(b.TempDir(), "state.db"))
			require.NoError(b, err)
			defer func() { require.NoError(b, s.Close()) }()
			_, err = s.write.ExecContext(ctx, "PRAGMA synchronous = "+level)
			require.NoError(b, err)
			claims := benchClaims(b, s, b.N)
			b.ResetTimer()
			for i, c := range claims {
				out := state.Outcome{Parts: []state.Part{{Key: fmt.Sprint("part ", i)}}}
				require.NoError(b, s.Commit(ctx, c, out, c.Lease))
			}
		})
	}
}

func benchClaims(b *testing.B, s *Store, n int) []state.Claim {
	b.Helper()
	ctx := context.Background()
	key := childKey()
	_, err := s.CreateRun(ctx, state.Run{RunKey: key.RunKey}, []state.NodeSpec{{Name: key.Node}})
	require.NoError(b, err)
	specs := make([]state.BatchSpec, n)
	for i := range specs {
		specs[i].Batch = i
	}
	require.NoError(b, planBatches(ctx, s, key, nil, specs))
	claims := make([]state.Claim, n)
	for i := range claims {
		claims[i], err = s.Claim(ctx, bidFor(i, "bench"))
		require.NoError(b, err)
	}
	return claims
}

// BenchmarkOffers measures what a look for work costs in a node most of whose
// batches are done: it must not grow with their number.
func BenchmarkOffers(b *testing.B) {
	for _, batches := range []int{100, 100_000} {
		b.Run(fmt.Sprint(batches), func(b *testing.B) {
			ctx := context.Background()
			s, err := Open(ctx, filepath.Join(b.TempDir(), "state.db"))
			require.NoError(b, err)
			defer func() { require.NoError(b, s.Close()) }()
			key := childKey()
			_, err = s.CreateRun(ctx, state.Run{RunKey: key.RunKey}, []state.NodeSpec{{Name: key.Node}})
			require.NoError(b, err)
			specs := make([]state.BatchSpec, batches)
			for i := range specs {
				specs[i].Batch = i
			}
			require.NoError(b, planBatches(ctx, s, key, nil, specs))
			_, err = s.write.ExecContext(ctx, "UPDATE batches SET status = 'succeeded' WHERE batch < ?", batches-20)
			require.NoError(b, err)
			for b.Loop() {
				offers, _, err := s.Offers(ctx, key, time.Now(), state.Page{Limit: 8})
				require.NoError(b, err)
				require.Len(b, offers, 8)
			}
		})
	}
}
