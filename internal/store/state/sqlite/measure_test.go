package sqlite

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// measuredBatches is how many batches TestMeasure claims and commits.
const measuredBatches = 2_000

// TestMeasure says what calls of the store take one by one, as the simulator has them: it lets writes wait for one
// another itself. They go into simulate.Directory.
func TestMeasure(t *testing.T) {
	if !effort.All() {
		t.Skip("it measures: of the long form")
	}
	ctx := context.Background()
	s, err := Open(ctx, filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	key := childKey()
	_, err = s.CreateRun(ctx, state.Run{RunKey: key.RunKey}, []state.NodeSpec{{Name: key.Node}})
	require.NoError(t, err)
	specs := make([]state.BatchSpec, measuredBatches)
	for i := range specs {
		specs[i] = state.BatchSpec{Batch: i, Class: "load", Work: []byte("a slice of a file")}
	}
	require.NoError(t, planBatches(ctx, s, key, nil, specs))
	took := map[string][]time.Duration{}
	timed := func(name string, call func() error) {
		began := time.Now()
		require.NoError(t, call())
		took[name] = append(took[name], time.Since(began))
	}
	for i := range measuredBatches {
		timed("read", func() error {
			_, _, err := s.Offers(ctx, key, time.Now(), state.Page{Limit: 8})
			return err
		})
		timed("read", func() error {
			_, err := s.Node(ctx, key)
			return err
		})
		var c state.Claim
		timed("write", func() (err error) {
			c, err = s.Claim(ctx, bidFor(i, "measure"))
			return err
		})
		timed("write", func() error {
			return s.Commit(ctx, c, state.Outcome{
				Parts: []state.Part{{Key: "a part of the table", Rows: 5000, Bytes: 100_000}},
				Stats: state.Stats{RowsIn: 5000, RowsOut: 5000}}, time.Now())
		})
	}
	for _, kind := range []string{"read", "write"} {
		all := slices.Sorted(slices.Values(took[kind]))
		at := func(share int) time.Duration { return all[len(all)*share/100].Round(time.Microsecond) }
		t.Logf("%s: p50 %v p90 %v p99 %v", kind, at(50), at(90), at(99))
	}
}
