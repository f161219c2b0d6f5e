package sqlite

import (
	"bytes"
	"context"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// sectorBytes is the unit that a disk writes whole.
const sectorBytes = 512

// A power cut loses any of the sectors that were not flushed: of the log those of
// the last commit; while pages are moved from the log to the file, of the file and
// of its checksums any. Cut again and again, the state opens, has all that was
// confirmed, and of the last commit all or nothing.
func TestChaosPowerCuts(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed) // before: a trial that fails says which it was
	for trial := range uint64(effort.Of(3, 10, 150)) {
		powerCuts(t, rand.New(rand.NewPCG(seed, trial)))
	}
}

// These trials have left, by way of a frame that was cut short, what looked like
// two commits behind damage.
func TestWhatACutLeavesIsNoCommit(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	for _, seed := range []uint64{1584, 1613} {
		powerCuts(t, rand.New(rand.NewPCG(seed, 7)))
	}
}

func powerCuts(t *testing.T, rng *rand.Rand) {
	t.Helper()
	ctx, dir := context.Background(), t.TempDir()
	path := filepath.Join(dir, "state.db")
	commit := func(s *Store) {
		_, err := s.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: "w"},
			Description: strings.Repeat("d", rng.IntN(30_000)), Created: time.UnixMilli(1)},
			[]state.NodeSpec{{Name: "n"}})
		require.NoError(t, err)
	}
	for range 6 {
		s, err := Open(ctx, path)
		require.NoError(t, err)
		for range rng.IntN(4) {
			commit(s)
		}
		before, err := dump(ctx, s)
		require.NoError(t, err)
		was := getFiles(t, dir)
		commit(s)
		after, err := dump(ctx, s)
		require.NoError(t, err)
		moving := rng.IntN(2) == 0
		if moving {
			_, err := s.write.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)")
			require.NoError(t, err)
		}
		is := getFiles(t, dir)
		require.NoError(t, s.Close())

		for name := range is {
			if strings.HasSuffix(name, "-shm") { // it is in memory
				delete(is, name)
			} else if moving != strings.HasSuffix(name, "-wal") {
				is[name] = torn(rng, was[name], is[name])
			}
		}
		putFiles(t, dir, is)
		got, err := dumpOf(path)
		require.NoError(t, err)
		if moving {
			require.Equal(t, after, got)
		} else {
			require.Contains(t, []string{before, after}, got)
		}
		putFiles(t, dir, is) // not as it was closed: the next cut finds what this one left
	}
}

// torn is a file of whose changes some sectors are there.
func torn(rng *rand.Rand, was, is []byte) []byte {
	out := bytes.Clone(is)
	for at := 0; at < len(is); at += sectorBytes {
		end := min(at+sectorBytes, len(is))
		if rng.IntN(2) == 0 {
			clear(out[at:end])
			copy(out[at:end], was[min(at, len(was)):min(end, len(was))])
		}
	}
	if rng.IntN(4) == 0 {
		out = out[:len(was)+rng.IntN(max(len(is)-len(was), 0)+1)]
	}
	return out
}
