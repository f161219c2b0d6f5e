package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/state"
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
