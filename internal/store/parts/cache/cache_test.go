package cache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"thalweg/internal/store/parts"
	"thalweg/internal/test/partstest"
)

// flaky breaks every other reading somewhere, not always at the same place.
func flaky(seed uint64) func(string, int64, int64) int64 {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 0))
	return func(_ string, _, length int64) int64 {
		mu.Lock()
		defer mu.Unlock()
		if length == 0 || rng.IntN(2) == 0 {
			return -1
		}
		return rng.Int64N(length + 1)
	}
}

// A store without paths passes the whole suite: with room for all copies and
// for hardly one, and where every other reading breaks.
func TestConformance(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]int64{"room": 1 << 30, "little room": 400_000} {
		for _, breaks := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, breaks %v", name, breaks), func(t *testing.T) {
				t.Parallel()
				var mu sync.Mutex
				stores := map[string]*partstest.Memory{}
				partstest.Run(t, func(t *testing.T) parts.Store {
					t.Helper()
					mu.Lock()
					defer mu.Unlock()
					m := stores[t.Name()]
					if m == nil {
						m = &partstest.Memory{}
						if breaks {
							m.Break = flaky(uint64(len(t.Name())))
						}
						stores[t.Name()] = m
					}
					s, err := New(m, filepath.Join(t.TempDir(), "copies"), limit)
					require.NoError(t, err)
					return s
				})
			})
		}
	}
}

func openTest(t *testing.T, m *partstest.Memory, limit int64) *Store {
	t.Helper()
	s, err := New(m, filepath.Join(t.TempDir(), "copies"), limit)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// put stores a part of so many bytes from another worker and gives its checksum.
func put(t *testing.T, s *Store, key string, bytes int) string {
	t.Helper()
	other, err := New(s.Backend, filepath.Join(t.TempDir(), "other"), 1<<20)
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close()) }()
	return putBy(t, other, key, bytes)
}

// putBy stores a part from this one.
func putBy(t *testing.T, s *Store, key string, bytes int) string {
	t.Helper()
	stage, err := s.Stage(t.Context())
	require.NoError(t, err)
	path, err := stage.File(t.Context())
	require.NoError(t, err)
	content := make([]byte, bytes)
	copy(content, key)
	require.NoError(t, os.WriteFile(path, content, 0o600))
	info, err := s.Put(t.Context(), key, path)
	require.NoError(t, err)
	require.NoError(t, stage.Close())
	return info.Checksum
}

func fetch(t *testing.T, s *Store, key, sum string) (path string, release func()) {
	t.Helper()
	path, release, err := s.Fetch(t.Context(), key, sum)
	require.NoError(t, err)
	return path, release
}

// What was read last stays; what is being read stays though there is no room.
func TestLeastRecentlyRead(t *testing.T) {
	t.Parallel()
	m := &partstest.Memory{}
	s := openTest(t, m, 300)
	sums := map[string]string{}
	for _, key := range []string{"a", "b", "c", "d"} {
		sums[key] = put(t, s, key, 100)
	}
	_, held := fetch(t, s, "a", sums["a"])
	for _, key := range []string{"b", "c", "b", "d"} { // c goes for d
		_, release := fetch(t, s, key, sums[key])
		release()
		release()
	}
	require.Equal(t, 4, m.Opens())
	require.Equal(t, int64(300), s.bytes)
	for _, key := range []string{"a", "b", "d"} {
		path, release := fetch(t, s, key, sums[key])
		require.FileExists(t, path)
		release()
	}
	require.Equal(t, 4, m.Opens(), "none was copied twice")
	pathC, releaseC := fetch(t, s, "c", sums["c"])
	require.Equal(t, 5, m.Opens())
	releaseC()
	require.FileExists(t, pathC)
	held()
	entries, err := os.ReadDir(s.dir)
	require.NoError(t, err)
	require.Len(t, entries, 3)
	// One who needs more than there is room for gets it, and leaves no more than that.
	big := put(t, s, "big", 1000)
	path, release := fetch(t, s, "big", big)
	require.FileExists(t, path)
	require.Equal(t, int64(1000), s.bytes)
	release()
	require.Zero(t, s.bytes)
	require.NoFileExists(t, path)
}

// Readers that reserve what they need never have more copies together than the limit.
func TestNeverOverTheLimit(t *testing.T) {
	t.Parallel()
	const limit, count, size = 1000, 20, 100
	m := &partstest.Memory{Break: flaky(7)}
	s := openTest(t, m, limit)
	sums := make([]string, count)
	for i := range sums {
		sums[i] = put(t, s, fmt.Sprint("k", i), size)
	}
	var group errgroup.Group
	for reader := range 8 {
		group.Go(func() error {
			rng := rand.New(rand.NewPCG(uint64(reader), 1))
			for range 40 {
				if err := readSome(s, limit, rng.Perm(count)[:1+rng.IntN(limit/size)], sums); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
}

// readSome reads parts of a hundred bytes together, as a batch does.
func readSome(s *Store, limit int64, wanted []int, sums []string) error {
	const size = 100
	ctx := context.Background()
	done, err := s.Reserve(ctx, int64(len(wanted)*size))
	if err != nil {
		return err
	}
	defer done()
	var paths []string
	for _, i := range wanted {
		path, release, err := s.Fetch(ctx, fmt.Sprint("k", i), sums[i])
		if err != nil {
			return err
		}
		defer release()
		paths = append(paths, path)
		s.mu.Lock()
		bytes := s.bytes
		s.mu.Unlock()
		if bytes > limit {
			return fmt.Errorf("%d bytes of copies", bytes)
		}
	}
	for _, path := range paths {
		if st, err := os.Stat(path); err != nil || st.Size() != size {
			return fmt.Errorf("a copy that is read is gone: %w", err)
		}
	}
	return nil
}

// Bytes that were changed on their way are given to nobody, and do not stay.
func TestAlteredOnItsWay(t *testing.T) {
	t.Parallel()
	m := &partstest.Memory{}
	s := openTest(t, m, 1000)
	sum := put(t, s, "k", 100)
	m.Alter = func(_ string, sent []byte) { sent[50] ^= 1 }
	for range 2 {
		_, _, err := s.Fetch(t.Context(), "k", sum)
		require.ErrorIs(t, err, parts.ErrCorrupt)
		require.Zero(t, s.bytes)
	}
	m.Alter = nil
	_, release := fetch(t, s, "k", sum)
	release()
}

// A part that can never be read is an error after some tries.
func TestBreaksForEver(t *testing.T) {
	t.Parallel()
	m := &partstest.Memory{Break: func(_ string, offset, _ int64) int64 { return max(60-offset, 0) }}
	s := openTest(t, m, 1000)
	sum := put(t, s, "k", 100)
	_, _, err := s.Fetch(t.Context(), "k", sum)
	require.ErrorContains(t, err, "byte 60 of 100")
	require.Equal(t, 1+stuckMax, m.Opens())
	require.Zero(t, s.bytes)
	m.Break = nil
	_, release := fetch(t, s, "k", sum)
	release()
}

// Many who want a part make one copy; one of them who gives up, be it the one
// that copies, does not make the others fail.
func TestOneCopyForMany(t *testing.T) {
	t.Parallel()
	at, on := make(chan struct{}), make(chan struct{})
	var once sync.Once
	m := &partstest.Memory{}
	s := openTest(t, m, 1000)
	sum := put(t, s, "k", 100)
	ctx, cancel := context.WithCancel(t.Context())
	m.Alter = func(string, []byte) {
		once.Do(func() {
			close(at)
			<-on
		})
	}
	m.Break = func(string, int64, int64) int64 {
		if ctx.Err() != nil {
			return -1
		}
		cancel()
		return 0 // the first, who then finds that it was given up
	}
	first := make(chan error, 1)
	go func() {
		_, _, err := s.Fetch(ctx, "k", sum)
		first <- err
	}()
	<-at
	var group errgroup.Group
	for range 8 {
		group.Go(func() error {
			path, release, err := s.Fetch(t.Context(), "k", sum)
			if err != nil {
				return err
			}
			defer release()
			_, err = os.Stat(path)
			return err
		})
	}
	close(on)
	require.ErrorIs(t, <-first, context.Canceled)
	require.NoError(t, group.Wait())
	require.Equal(t, 2, m.Opens())
}

// Who deletes a part, or finds that another one has its key, leaves no copy behind.
func TestDeleteWhileReading(t *testing.T) {
	t.Parallel()
	m := &partstest.Memory{}
	s, other := openTest(t, m, 1000), openTest(t, m, 1000)
	sum := put(t, s, "k", 100)
	path, release := fetch(t, s, "k", sum)
	require.NoError(t, s.Delete(t.Context(), "k"))
	require.FileExists(t, path, "it is being read")
	_, _, err := s.Fetch(t.Context(), "k", sum)
	require.ErrorIs(t, err, parts.ErrNotFound)
	release()
	require.NoFileExists(t, path)

	sum = put(t, s, "k", 200)
	_, release = fetch(t, s, "k", sum)
	release()
	require.NoError(t, other.Delete(t.Context(), "k"))
	sum = put(t, other, "k", 300)
	_, release, err = s.Fetch(t.Context(), "k", sum)
	if errors.Is(err, parts.ErrCorrupt) {
		t.Fatal("the copy of a part that is gone was taken for the part's")
	}
	require.NoError(t, err)
	release()
	require.Equal(t, int64(300), s.bytes)
}

// seen counts what a store says.
type seen struct {
	mu                                 sync.Mutex
	found, copied, written, failed     int
	foundBytes, copiedBytes, putsBytes int64
}

func (s *seen) Found(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found++
	s.foundBytes += bytes
}

func (s *seen) Copied(bytes int64, _ time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.copied++
	s.copiedBytes += bytes
	if err != nil {
		s.failed++
	}
}

func (s *seen) Written(bytes int64, _ time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written++
	s.putsBytes += bytes
	if err != nil {
		s.failed++
	}
}

// A worker does not read back what it has written, as long as there is room.
func TestWrittenIsNotReadBack(t *testing.T) {
	t.Parallel()
	m, o := &partstest.Memory{}, &seen{}
	s, err := Open(Config{Backend: m, Dir: filepath.Join(t.TempDir(), "copies"), LimitBytes: 300, Observer: o})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	sums := map[string]string{}
	for _, key := range []string{"a", "b", "c", "d"} { // a goes for d
		sums[key] = putBy(t, s, key, 100)
	}
	require.Equal(t, int64(300), s.bytes)
	require.False(t, s.Holds("a"))
	for _, key := range []string{"b", "c", "d"} {
		require.True(t, s.Holds(key))
		path, release := fetch(t, s, key, sums[key])
		require.FileExists(t, path)
		release()
	}
	require.Zero(t, m.Opens())
	_, release := fetch(t, s, "a", sums["a"])
	release()
	require.Equal(t, 1, m.Opens())
	putBy(t, s, "large", 301)
	require.False(t, s.Holds("large"))
	require.Equal(t, [3]int{3, 1, 5}, [3]int{o.found, o.copied, o.written})
	require.Equal(t, [3]int64{300, 100, 701}, [3]int64{o.foundBytes, o.copiedBytes, o.putsBytes})
	_, err = s.Put(t.Context(), "a", filepath.Join(s.dir, "nothing"))
	require.Error(t, err)
	require.Equal(t, 1, o.failed)
	entries, err := os.ReadDir(s.dir)
	require.NoError(t, err)
	require.LessOrEqual(t, len(entries), 3, "nothing stays that is not counted")
}

// A Store that begins where another one ended, or died, has its copies, and
// gives none that was damaged meanwhile.
func TestKeptOverARestart(t *testing.T) {
	t.Parallel()
	m, dir := &partstest.Memory{}, filepath.Join(t.TempDir(), "copies")
	begin := func(limit int64) *Store {
		s, err := Open(Config{Backend: m, Dir: dir, LimitBytes: limit, Keep: true})
		require.NoError(t, err)
		return s
	}
	s := begin(1000)
	sums := map[string]string{"own": putBy(t, s, "own", 100), "other": put(t, s, "other", 100),
		"bad": put(t, s, "bad", 100)}
	for _, key := range []string{"other", "bad"} {
		_, release := fetch(t, s, key, sums[key])
		release()
	}
	require.Equal(t, 2, m.Opens())
	_, held := fetch(t, s, "own", sums["own"]) // it dies while somebody reads, and writes
	_, err := s.Stage(t.Context())
	require.NoError(t, err)
	damaged := s.copies["bad"].path

	s = begin(1000)
	require.NoError(t, os.WriteFile(damaged, make([]byte, 100), 0o600))
	require.Equal(t, int64(300), s.bytes)
	for _, key := range []string{"own", "other"} {
		require.True(t, s.Holds(key))
		for range 2 {
			path, release := fetch(t, s, key, sums[key])
			sum, _, err := sumOfFile(path)
			require.NoError(t, err)
			require.Equal(t, sums[key], sum)
			release()
		}
	}
	require.Equal(t, 2, m.Opens())
	_, release := fetch(t, s, "bad", sums["bad"])
	release()
	require.Equal(t, 3, m.Opens())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "only what is kept")
	held()
	require.NoError(t, s.Close())

	s = begin(150)
	require.Equal(t, int64(100), s.bytes)
	require.NoError(t, s.Close())
}

func sumOfFile(path string) (string, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	return parts.Checksum(f)
}

// A store that keeps its copies passes the whole suite.
func TestConformanceKeeping(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	stores := map[string]*partstest.Memory{}
	partstest.Run(t, func(t *testing.T) parts.Store {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		m := stores[t.Name()]
		if m == nil {
			m = &partstest.Memory{}
			stores[t.Name()] = m
		}
		s, err := Open(Config{Backend: m, Dir: filepath.Join(t.TempDir(), "copies"), LimitBytes: 1 << 30, Keep: true})
		require.NoError(t, err)
		return s
	})
}
