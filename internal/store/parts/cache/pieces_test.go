package cache

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"thalweg/internal/store/parts"
	"thalweg/internal/test/partstest"
)

// pieced is a part in pieces.
type pieced struct {
	info    parts.Info
	content []byte
	pieces  []parts.Piece
}

// putPieced stores a part of random bytes, cut at random places.
func putPieced(t *testing.T, s *Store, key string, rng *rand.Rand, size int) pieced {
	t.Helper()
	p := pieced{content: make([]byte, size)}
	for i := range p.content {
		p.content[i] = byte(1 + rng.IntN(255)) // no zeros: holes show
	}
	stage, err := s.Stage(t.Context())
	require.NoError(t, err)
	path, err := stage.File(t.Context())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, p.content, 0o600))
	p.info, err = s.Backend.Put(t.Context(), key, path) // by another process: nothing of it is here
	require.NoError(t, err)
	require.NoError(t, stage.Close())
	for at := 0; at < size; {
		n := min(1+rng.IntN(size/8), size-at)
		sum, _, err := parts.Checksum(bytes.NewReader(p.content[at : at+n]))
		require.NoError(t, err)
		p.pieces = append(p.pieces, parts.Piece{From: int64(at), Bytes: int64(n), Checksum: sum})
		at += n
	}
	return p
}

// some of the pieces, in their order.
func (p pieced) some(rng *rand.Rand) (wanted []parts.Piece) {
	for _, piece := range p.pieces {
		if rng.IntN(3) == 0 {
			wanted = append(wanted, piece)
		}
	}
	return wanted
}

// holds compares a copy with the pieces that it must have.
func (p pieced) holds(path string, wanted []parts.Piece) error {
	have, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if len(have) != len(p.content) {
		return fmt.Errorf("the copy has %d bytes", len(have))
	}
	for _, w := range wanted {
		if !bytes.Equal(have[w.From:w.From+w.Bytes], p.content[w.From:w.From+w.Bytes]) {
			return fmt.Errorf("bytes from %d on differ", w.From)
		}
	}
	return nil
}

// Many readers of overlapping pieces get what they want, although reading
// breaks; where it does not, no byte travels twice.
func TestPieces(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 1))
			var sent atomic.Int64
			m := &partstest.Memory{Alter: func(_ string, b []byte) { sent.Add(int64(len(b))) }}
			breaks := seed%2 == 1
			if breaks {
				m.Break = flaky(seed)
			}
			s := openTest(t, m, 1<<30)
			p := putPieced(t, s, "a/b", rng, 100_000)
			var group errgroup.Group
			var mu sync.Mutex
			asked := map[parts.Piece]bool{}
			for range 30 {
				wanted := p.some(rng)
				group.Go(func() error {
					path, release, err := s.FetchPieces(t.Context(), p.info, wanted)
					if err != nil {
						return err
					}
					defer release()
					mu.Lock()
					for _, w := range wanted {
						asked[w] = true
					}
					mu.Unlock()
					return p.holds(path, wanted)
				})
			}
			require.NoError(t, group.Wait())
			var least int64
			for w := range asked {
				least += w.Bytes
			}
			require.Equal(t, least, s.bytes)
			if !breaks {
				require.Equal(t, least, sent.Load())
			}
			path, release, err := s.Fetch(t.Context(), p.info.Key, p.info.Checksum)
			require.NoError(t, err)
			require.NoError(t, p.holds(path, p.pieces))
			release()
			path, release, err = s.FetchPieces(t.Context(), p.info, p.pieces[:1])
			require.NoError(t, err)
			require.NoError(t, p.holds(path, p.pieces), "a whole copy serves as well")
			release()
			require.NoError(t, s.Delete(t.Context(), p.info.Key))
			require.Zero(t, s.bytes)
			left, err := filepath.Glob(filepath.Join(s.dir, "part-*"))
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// A piece with another byte is refused, takes up no room, and is asked for again.
func TestPiecesAreCompared(t *testing.T) {
	t.Parallel()
	m := &partstest.Memory{}
	s := openTest(t, m, 1<<30)
	p := putPieced(t, s, "a", rand.New(rand.NewPCG(7, 7)), 10_000)
	m.Alter = func(_ string, b []byte) { b[len(b)-1] ^= 1 }
	_, _, err := s.FetchPieces(t.Context(), p.info, p.pieces[1:3])
	require.ErrorIs(t, err, parts.ErrCorrupt)
	require.Equal(t, p.pieces[1].Bytes, s.bytes, "the first of the two came as it is")
	m.Alter = nil
	path, release, err := s.FetchPieces(t.Context(), p.info, p.pieces[1:3])
	require.NoError(t, err)
	require.NoError(t, p.holds(path, p.pieces[1:3]))
	release()
	wrong := p.info
	wrong.Bytes++
	_, _, err = s.FetchPieces(t.Context(), parts.Info{Key: "a", Bytes: wrong.Bytes}, p.pieces[5:6])
	require.ErrorIs(t, err, parts.ErrCorrupt)
	missing := p.info
	missing.Key = "none"
	_, _, err = s.FetchPieces(t.Context(), missing, p.pieces[:1])
	require.ErrorIs(t, err, parts.ErrNotFound)
}

// Pieces that nobody reads make room like whole copies.
func TestPiecesMakeRoom(t *testing.T) {
	t.Parallel()
	s := openTest(t, &partstest.Memory{}, 30_000)
	rng := rand.New(rand.NewPCG(3, 3))
	for i := range 20 {
		p := putPieced(t, s, fmt.Sprint("part", i), rng, 10_000)
		path, release, err := s.FetchPieces(t.Context(), p.info, p.pieces)
		require.NoError(t, err)
		require.NoError(t, p.holds(path, p.pieces))
		release()
		require.LessOrEqual(t, s.bytes, int64(30_000))
	}
}
