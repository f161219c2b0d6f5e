package cassandra

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/parts"
	"thalweg/internal/store/parts/cache"
	"thalweg/internal/test/cassandratest"
	"thalweg/internal/test/partstest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	cassandratest.Node(t)
	session := cassandratest.Open(t, shared)
	partstest.Run(t, func(t *testing.T) parts.Store {
		t.Helper()
		s, err := cache.New(New(session, Config{Space: t.Name()}), filepath.Join(t.TempDir(), "copies"), 64<<20)
		require.NoError(t, err)
		return s
	})
}

// open gives a store in the test's space.
func open(t *testing.T, cfg Config) *Store {
	t.Helper()
	cassandratest.Node(t)
	cfg.Space = t.Name()
	return New(cassandratest.Open(t, shared), cfg)
}

func noise(seed uint64, size int) []byte {
	out := make([]byte, size)
	rng := rand.NewChaCha8([32]byte{byte(seed)})
	_, _ = rng.Read(out) // never fails
	return out
}

func fileOf(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "part")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path
}

func read(t *testing.T, s *Store, key string, offset, length int64) ([]byte, error) {
	t.Helper()
	body, _, err := s.Open(t.Context(), key, offset, length)
	if err != nil {
		return nil, err
	}
	defer func() { require.NoError(t, body.Close()) }()
	return io.ReadAll(body)
}

func keys(t *testing.T, list func(ctx context.Context, prefix,
	after string) func(func(parts.Info, error) bool)) []string {
	t.Helper()
	out := []string{}
	for info, err := range list(t.Context(), "", "") {
		require.NoError(t, err)
		out = append(out, info.Key)
	}
	return out
}

func listed(t *testing.T, s *Store) []string {
	return keys(t, func(ctx context.Context, p, a string) func(func(parts.Info, error) bool) {
		return s.List(ctx, p, a)
	})
}

func unfinished(t *testing.T, s *Store) []string {
	return keys(t, func(ctx context.Context, p, a string) func(func(parts.Info, error) bool) {
		return s.Unfinished(ctx, p, a)
	})
}

// gone requires that nothing of a Put is there.
func gone(t *testing.T, s *Store, put gocql.UUID) {
	t.Helper()
	var n int
	require.NoError(t, s.session.Query(`SELECT count(*) FROM part_chunks WHERE put = ? AND section = 0`, put).Scan(&n))
	require.Zero(t, n)
}

// A process that dies at any point of a Put leaves nothing that shows, and what
// it leaves is found and removed, unless the part was there already.
func TestDiesWhilePutting(t *testing.T) {
	t.Parallel()
	content := noise(1, 3*chunkBytes+5)
	for _, point := range []Point{Intended, Sent, Done} {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			dying := open(t, Config{Checkpoint: func(at Point) {
				if at == point {
					runtime.Goexit()
				}
			}})
			path := fileOf(t, content)
			dead := make(chan struct{})
			go func() {
				defer close(dead)
				_, _ = dying.Put(context.Background(), "w/k", path) // does not return
			}()
			<-dead
			s := open(t, Config{})
			if point == Done {
				require.Equal(t, []string{"w/k"}, listed(t, s))
				require.Empty(t, unfinished(t, s))
				got, err := read(t, s, "w/k", 0, -1)
				require.NoError(t, err)
				require.True(t, bytes.Equal(content, got))
				return
			}
			require.Empty(t, listed(t, s))
			_, err := read(t, s, "w/k", 0, -1)
			require.ErrorIs(t, err, parts.ErrNotFound)
			require.Equal(t, []string{"w/k"}, unfinished(t, s))
			_, err = s.Put(t.Context(), "w/k", path)
			require.ErrorIs(t, err, parts.ErrExists)
			rows, err := s.rows(t.Context(), s.place("w/k"))
			require.NoError(t, err)
			require.NoError(t, s.Abandon(t.Context(), "w/k"))
			require.Empty(t, unfinished(t, s))
			gone(t, s, rows[0].put)
			_, err = s.Put(t.Context(), "w/k", path)
			require.NoError(t, err)
			require.NoError(t, s.Abandon(t.Context(), "w/k"))
			require.Equal(t, []string{"w/k"}, listed(t, s), "what has ended is not abandoned")
		})
	}
}

// Two processes that put one key at the same moment never both do.
func TestTwoProcessesPutOneKey(t *testing.T) {
	t.Parallel()
	a, b := open(t, Config{}), open(t, Config{})
	for round := range 20 {
		key := fmt.Sprint("w/", round)
		errs := make([]error, 2)
		var both sync.WaitGroup
		for i, s := range []*Store{a, b} {
			path := fileOf(t, noise(uint64(i), 1000))
			both.Go(func() { _, errs[i] = s.Put(t.Context(), key, path) })
		}
		both.Wait()
		won := -1
		for i, err := range errs {
			if err == nil {
				require.Equal(t, -1, won, "both")
				won = i
				continue
			}
			require.ErrorIs(t, err, parts.ErrExists)
		}
		got, err := read(t, a, key, 0, -1)
		if won < 0 {
			require.ErrorIs(t, err, parts.ErrNotFound)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, noise(uint64(won), 1000), got)
	}
	require.Empty(t, unfinished(t, a))
}

// The line is cut again and again while parts are put and read; what was put is
// there, whole.
func TestLineIsCut(t *testing.T) {
	t.Parallel()
	cassandratest.Node(t)
	var line cassandratest.Line
	cfg := shared
	cfg.Dial, cfg.Timeout = line.Dial, 5*time.Second
	cuts := 0
	s := New(cassandratest.Open(t, cfg), Config{Space: t.Name(), Checkpoint: func(Point) {
		if cuts++; cuts%2 == 0 {
			line.Cut(false)
		}
	}})
	content := noise(3, 20*chunkBytes)
	for i := range 4 {
		key := fmt.Sprint("w/", i)
		info, err := s.Put(t.Context(), key, fileOf(t, content))
		require.NoError(t, err)
		body, _, err := s.Open(t.Context(), key, 0, -1)
		require.NoError(t, err)
		first := make([]byte, 1)
		_, err = io.ReadFull(body, first)
		require.NoError(t, err)
		line.Cut(false)
		rest, err := io.ReadAll(body)
		require.NoError(t, err)
		require.True(t, bytes.Equal(content, append(first, rest...)))
		require.NoError(t, body.Close())
		require.Equal(t, int64(len(content)), info.Bytes)
	}
	require.Len(t, listed(t, s), 4)
}

// A database that is not there is said so after a while, as something that may
// pass; who does not want to wait is not kept.
func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	cassandratest.Node(t)
	var line cassandratest.Line
	cfg := shared
	cfg.Dial, cfg.Timeout = line.Dial, time.Second
	s := New(cassandratest.Open(t, cfg), Config{Space: t.Name(), Patience: 300 * time.Millisecond})
	path := fileOf(t, noise(4, 100))
	line.Cut(true)
	_, err := s.Put(t.Context(), "w/k", path)
	require.Error(t, err)
	f := fault.Of(err)
	require.Equal(t, fault.Environment, f.Kind)
	require.True(t, f.Retryable, "%v", err)
	require.NotEmpty(t, f.Hint)
	require.FileExists(t, path)

	patient := New(s.session, Config{Space: t.Name()})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := patient.Put(ctx, "w/k", path)
		ended <- err
	}()
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	line.Cut(false)
	_, err = patient.Put(t.Context(), "w/k", path)
	require.NoError(t, err, "it is there again")
}

// Ranges read the chunks that they touch, bytes that were changed are no bytes,
// and deletions do not depend on clocks.
func TestChunks(t *testing.T) {
	t.Parallel()
	s := open(t, Config{})
	content := noise(5, 4*chunkBytes)
	_, err := s.Put(t.Context(), "w/k", fileOf(t, content))
	require.NoError(t, err)
	rows, err := s.rows(t.Context(), s.place("w/k"))
	require.NoError(t, err)
	require.NoError(t, s.session.Query(`UPDATE part_chunks SET data = ? WHERE put = ? AND section = 0 AND n = 2`,
		noise(6, chunkBytes), rows[0].put).Exec())
	for _, r := range [][2]int64{{0, 10}, {chunkBytes - 1, 2}, {3 * chunkBytes, -1}, {0, 2 * chunkBytes}} {
		got, err := read(t, s, "w/k", r[0], r[1])
		require.NoError(t, err)
		to := int64(len(content))
		if r[1] >= 0 {
			to = r[0] + r[1]
		}
		require.True(t, bytes.Equal(content[r[0]:to], got))
	}
	for _, r := range [][2]int64{{0, -1}, {2 * chunkBytes, 1}} {
		_, err := read(t, s, "w/k", r[0], r[1])
		require.ErrorIs(t, err, parts.ErrCorrupt)
	}
	ahead := time.Now().Add(10 * time.Minute).UnixMicro() // written by a machine whose clock is ahead
	at := s.place("w/ahead")
	require.NoError(t, s.session.Query(insertIntent, at.root, at.shard, at.key, rows[0].put, s.owner, time.Now(),
		int64(1)).WithTimestamp(ahead).Exec())
	require.NoError(t, s.session.Query(insertDone, at.root, at.shard, at.key, rows[0].put,
		"x").WithTimestamp(ahead).Exec())
	require.Equal(t, []string{"w/ahead", "w/k"}, listed(t, s))
	require.NoError(t, s.Delete(t.Context(), "w/ahead"))
	require.Equal(t, []string{"w/k"}, listed(t, s))
	_, err = read(t, s, "w/k", 0, 1)
	require.ErrorIs(t, err, parts.ErrCorrupt)
	require.False(t, errors.Is(err, parts.ErrNotFound))
}

// A file that ends early is not a part.
func TestFileChanges(t *testing.T) {
	t.Parallel()
	s := open(t, Config{})
	path := fileOf(t, noise(7, 3*chunkBytes))
	s.cfg.Checkpoint = func(at Point) {
		if at == Intended {
			require.NoError(t, os.Truncate(path, chunkBytes+1))
		}
	}
	_, err := s.Put(t.Context(), "w/k", path)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Empty(t, listed(t, s))
	require.Empty(t, unfinished(t, s))
}

// Pages of the index end anywhere.
func TestManyPages(t *testing.T) {
	t.Parallel()
	s := open(t, Config{})
	const count = 2 * pageRows
	at := s.place("w/0")
	var want []string
	for i := range count { // in one shard, as only a whole workspace's would be
		key := fmt.Sprintf("w/%06d", i)
		want = append(want, key)
		require.NoError(t, s.session.Query(insertIntent, at.root, at.shard, key, s.owner, s.owner, time.Now(),
			int64(1)).Exec())
		if i%3 > 0 {
			require.NoError(t, s.session.Query(insertDone, at.root, at.shard, key, s.owner, "x").Exec())
		}
	}
	got := append(listed(t, s), unfinished(t, s)...)
	require.Len(t, listed(t, s), count*2/3)
	require.ElementsMatch(t, want, got)
}
