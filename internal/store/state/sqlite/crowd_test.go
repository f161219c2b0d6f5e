package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// crowdBatches is more than any crowd gets through.
const crowdBatches = 20_000

// childCrowd commits batches, which others want as well, and opens the file
// again and again: a log in which others write is looked through each time.
func childCrowd(ctx context.Context, path string) error {
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	for {
		s, err := Open(ctx, path)
		if err != nil {
			return err
		}
		for range 20 + rng.IntN(60) {
			now := time.Now()
			key := state.BatchKey{NodeKey: childKey(), Batch: rng.IntN(crowdBatches)}
			c, err := s.Claim(ctx, bidFor(key.Batch, "child"))
			if errors.Is(err, state.ErrNotClaimable) {
				continue
			}
			if err != nil {
				return err
			}
			out := state.Outcome{Stats: state.Stats{RowsOut: 2}, Parts: []state.Part{
				{Key: fmt.Sprint("a", key.Batch), Seq: 0, Schema: strings.Repeat("s", rng.IntN(9000))},
				{Key: fmt.Sprint("b", key.Batch), Seq: 1}}}
			if err := s.Commit(ctx, c, out, now); err != nil {
				return err
			}
			fmt.Println("batch", key.Batch)
		}
		if _, err := state.All(ctx, s.Batches, childKey()); err != nil {
			return err
		}
		if err := s.Close(); err != nil {
			return err
		}
	}
}

// TestCrowdKilledAtRandom has several processes write, read, open and close one
// file while they are killed at random: what any of them was told is committed
// is there, once, no page differs from its checksum, and nobody sees damage in
// a log that others are writing.
func TestCrowdKilledAtRandom(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	s := openTest(t, path)
	planChild(t, s, crowdBatches)
	crowd, lives := 4, effort.Of(2, 4, 12)
	var mu sync.Mutex
	told := map[string]int{}
	var wg sync.WaitGroup
	errs := make([]error, crowd)
	for i := range crowd {
		rng := rand.New(rand.NewPCG(uint64(i), 7))
		first, out := startChild(t, "crowd", path)
		wg.Go(func() {
			cmd := first
			for life := range lives {
				if life > 0 {
					cmd, out = startChild(t, "crowd", path)
				}
				for left := 5 + rng.IntN(effort.Of(60, 120, 400)); out.Scan(); left-- {
					mu.Lock()
					told[out.Text()]++
					mu.Unlock()
					if left == 0 {
						_ = cmd.Process.Kill()
					}
				}
				if err := cmd.Wait(); cmd.ProcessState.Exited() { // by itself
					errs[i] = errors.Join(errs[i], fmt.Errorf("a process ended by itself: %w", err))
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	requireWhole(t, path)
	done := map[string]int{}
	batches, err := state.All(context.Background(), s.Batches, childKey())
	require.NoError(t, err)
	for _, b := range batches {
		if b.Status == state.Succeeded {
			done[fmt.Sprint("batch ", b.BatchKey.Batch)]++
		}
	}
	for line, n := range told {
		require.Equal(t, 1, n, line)
		require.Equal(t, 1, done[line], line)
	}
	require.LessOrEqual(t, len(done), len(told)+crowd*lives, "each death hides one commit at most")
	parts, err := state.Manifest(context.Background(), s, childKey())
	require.NoError(t, err)
	require.Len(t, parts, 2*len(done))
}

// requireWhole reads every page of a file, past its log, and has SQLite look at
// how they hang together.
func requireWhole(t *testing.T, path string) {
	t.Helper()
	db, err := openPool(path, synced, 1, "immediate", false)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	_, err = db.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
	require.NoError(t, err)
	var found sql.NullString
	require.NoError(t, db.QueryRow("PRAGMA integrity_check").Scan(&found))
	require.Equal(t, "ok", found.String)
}
