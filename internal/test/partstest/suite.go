package partstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/parts"
)

// Open opens the store that belongs to t. A first call gives an empty one; a
// second call with the same t opens the same parts once more, as another
// process would. The suite closes what it opens.
type Open func(t *testing.T) parts.Store

// Run holds a store to the promises of package parts.
func Run(t *testing.T, open func(t *testing.T) parts.Store) {
	tests := []struct {
		name string
		test func(*testing.T, Open)
	}{
		{"RoundTrip", testRoundTrip},
		{"EmptyPart", testEmpty},
		{"BigPart", testBig},
		{"ManySmallParts", testMany},
		{"StageOfItsOwn", testStage},
		{"StageCloses", testStageCloses},
		{"PutTakesTheFile", testTakes},
		{"PutExisting", testExisting},
		{"PutOneKeyConcurrently", testOneKey},
		{"PutWhatIsNotThere", testNoFile},
		{"HostileKeys", testHostile},
		{"LongKeys", testLong},
		{"NotFound", testNotFound},
		{"Corrupt", testCorrupt},
		{"CorruptTogether", testCorruptTogether},
		{"Delete", testDelete},
		{"DeleteWhilePutting", testDeletePut},
		{"ListOrderAndPrefix", testList},
		{"ListStops", testListStops},
		{"ListInPages", testListPages},
		{"Ranges", testRanges},
		{"RangesWhileDeleting", testRangesDelete},
		{"Reserve", testReserve},
		{"WholeOrNotAtAll", testWhole},
		{"LeftoversDoNotShow", testLeftovers},
		{"TwoHandles", testTwoHandles},
		{"Cancellation", testCancellation},
		{"CloseTwice", testClose},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.test(t, open)
		})
	}
}

// patience bounds what a backend may take; only a hang reaches it.
const patience = 10 * time.Minute

// bench holds the store and context of a test.
type bench struct {
	parts.Store
	t   *testing.T
	ctx context.Context
}

func newBench(t *testing.T, open Open) *bench {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	store := open(t)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return &bench{Store: store, t: t, ctx: ctx}
}

// newFile gives the path of a file in a stage of its own.
func newFile(ctx context.Context, store parts.Store) (string, error) {
	stage, err := store.Stage(ctx)
	if err != nil {
		return "", err
	}
	return stage.File(ctx)
}

// stage writes a staged file.
func (b *bench) stage(content []byte) string {
	b.t.Helper()
	path, err := newFile(b.ctx, b.Store)
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(path, content, 0o644))
	return path
}

func (b *bench) put(key string, content []byte) parts.Info {
	b.t.Helper()
	info, err := b.Put(b.ctx, key, b.stage(content))
	require.NoError(b.t, err, key)
	return info
}

// fetch reads a part.
func (b *bench) fetch(key, sum string) ([]byte, error) {
	path, release, err := b.Fetch(b.ctx, key, sum)
	if err != nil {
		return nil, err
	}
	defer release()
	return os.ReadFile(path)
}

func (b *bench) has(key string, content []byte) {
	b.t.Helper()
	got, err := b.fetch(key, sumOf(content))
	require.NoError(b.t, err, key)
	require.True(b.t, bytes.Equal(content, got), "%s has other bytes", key)
}

func (b *bench) hasNot(key string) {
	b.t.Helper()
	_, err := b.fetch(key, "")
	require.ErrorIs(b.t, err, parts.ErrNotFound, key)
}

func (b *bench) list(prefix string) []string {
	b.t.Helper()
	keys := []string{}
	for info, err := range b.List(b.ctx, prefix, "") {
		require.NoError(b.t, err)
		keys = append(keys, info.Key)
	}
	return keys
}

func sumOf(content []byte) string {
	return fmt.Sprintf("crc32c:%08x", crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli)))
}

// noise is content that nothing can compress or guess, the same for a seed.
func noise(seed uint64, bytes int) []byte {
	content := make([]byte, bytes)
	rng := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	_, _ = rng.Read(content) // never fails
	return content
}

// together runs fn from n goroutines that start at the same moment.
func together(n int, fn func(i int) error) []error {
	errs := make([]error, n)
	gate, done := make(chan struct{}), make(chan struct{})
	for i := range n {
		go func() {
			defer func() { done <- struct{}{} }()
			<-gate
			errs[i] = fn(i)
		}()
	}
	close(gate)
	for range n {
		<-done
	}
	return errs
}

func testRoundTrip(t *testing.T, open Open) {
	b := newBench(t, open)
	const key = "ws/00001/02-node/bucket=3_a.1-x.parquet"
	content := noise(1, 100_000)
	require.Equal(t, parts.Info{Key: key, Bytes: 100_000, Checksum: sumOf(content)}, b.put(key, content))
	b.has(key, content)
	got, err := b.fetch(key, "") // without a checksum
	require.NoError(t, err)
	require.Equal(t, content, got)
	for info, err := range b.List(b.ctx, "", "") {
		require.NoError(t, err)
		require.Equal(t, int64(len(content)), info.Bytes)
		if info.Checksum != "" {
			require.Equal(t, sumOf(content), info.Checksum)
		}
	}
}

func testEmpty(t *testing.T, open Open) {
	b := newBench(t, open)
	require.Equal(t, parts.Info{Key: "empty", Checksum: "crc32c:00000000"}, b.put("empty", nil))
	b.has("empty", nil)
	require.Equal(t, []string{"empty"}, b.list(""))
}

// Big is more than any block, chunk or buffer of a backend.
func testBig(t *testing.T, open Open) {
	b := newBench(t, open)
	size := 20<<20 + 7
	if limit := b.Properties().MaxPartBytes; limit > 0 && int64(size) > limit {
		size = int(limit)
	}
	content := noise(2, size)
	require.Equal(t, int64(size), b.put("big", content).Bytes)
	b.has("big", content)
}

func testMany(t *testing.T, open Open) {
	b := newBench(t, open)
	const workers, each = 8, 25
	require.Positive(t, b.Properties().Concurrency)
	began := time.Now()
	errs := together(workers, func(w int) error {
		for i := range each {
			path, err := newFile(b.ctx, b.Store)
			if err != nil {
				return err
			}
			if err := os.WriteFile(path, fmt.Appendf(nil, "%d %d", w, i), 0o644); err != nil {
				return err
			}
			if _, err := b.Put(b.ctx, fmt.Sprintf("t/%d/%d", i, w), path); err != nil {
				return err
			}
		}
		return nil
	})
	for _, err := range errs {
		require.NoError(t, err)
	}
	t.Logf("%d small parts in %v", workers*each, time.Since(began))
	require.Len(t, b.list("t/"), workers*each)
	for i := range each {
		for w := range workers {
			b.has(fmt.Sprintf("t/%d/%d", i, w), fmt.Appendf(nil, "%d %d", w, i))
		}
	}
}

func testStage(t *testing.T, open Open) {
	b := newBench(t, open)
	seen := map[string]bool{}
	for range 5 {
		stage, err := b.Stage(b.ctx)
		require.NoError(t, err)
		require.False(t, seen[stage.Dir], "a directory of its own for each")
		seen[stage.Dir] = true
		entries, err := os.ReadDir(stage.Dir)
		require.NoError(t, err)
		require.Empty(t, entries)
		for range 4 {
			path, err := stage.File(b.ctx)
			require.NoError(t, err)
			require.Equal(t, stage.Dir, filepath.Dir(path))
			require.False(t, seen[path])
			seen[path] = true
			require.NoFileExists(t, path)
		}
	}
}

// Closing a stage takes what was not put, and nothing of what was.
func testStageCloses(t *testing.T, open Open) {
	b := newBench(t, open)
	stage, err := b.Stage(b.ctx)
	require.NoError(t, err)
	var paths []string
	for range 2 {
		path, err := stage.File(b.ctx)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, []byte("x"), 0o644))
		paths = append(paths, path)
	}
	_, err = b.Put(b.ctx, "k", paths[0])
	require.NoError(t, err)
	require.NoError(t, stage.Close())
	require.NoError(t, stage.Close())
	require.NoDirExists(t, stage.Dir)
	b.has("k", []byte("x"))
	_, err = b.Put(b.ctx, "k2", paths[1])
	require.Error(t, err)
}

func testTakes(t *testing.T, open Open) {
	b := newBench(t, open)
	path := b.stage([]byte("x"))
	_, err := b.Put(b.ctx, "k", path)
	require.NoError(t, err)
	require.NoFileExists(t, path)
	_, err = b.Put(b.ctx, "k2", path)
	require.Error(t, err)
	b.hasNot("k2")
}

// A part never changes. A file that was refused is still the caller's.
func testExisting(t *testing.T, open Open) {
	b := newBench(t, open)
	b.put("a/k", []byte("first"))
	for _, content := range []string{"second", "first", ""} {
		path := b.stage([]byte(content))
		_, err := b.Put(b.ctx, "a/k", path)
		require.ErrorIs(t, err, parts.ErrExists)
		b.has("a/k", []byte("first"))
		_, err = b.Put(b.ctx, "a/other"+content, path)
		require.NoError(t, err)
		b.has("a/other"+content, []byte(content))
	}
}

func testOneKey(t *testing.T, open Open) {
	b := newBench(t, open)
	const n = 12
	for round := range 5 {
		key := fmt.Sprintf("race/%d/k", round)
		paths := make([]string, n)
		for i := range paths {
			paths[i] = b.stage(noise(uint64(i), 5000))
		}
		errs := together(n, func(i int) error {
			_, err := b.Put(b.ctx, key, paths[i])
			return err
		})
		winner := -1
		for i, err := range errs {
			if err == nil {
				require.Equal(t, -1, winner, "two winners")
				winner = i
				continue
			}
			require.ErrorIs(t, err, parts.ErrExists)
		}
		require.NotEqual(t, -1, winner)
		b.has(key, noise(uint64(winner), 5000))
	}
}

func testNoFile(t *testing.T, open Open) {
	b := newBench(t, open)
	path, err := newFile(b.ctx, b.Store)
	require.NoError(t, err)
	_, err = b.Put(b.ctx, "k", path)
	require.Error(t, err)
	require.NoError(t, os.Mkdir(path, 0o755))
	_, err = b.Put(b.ctx, "k", path)
	require.Error(t, err)
	b.hasNot("k")
}

// hostile keys lead out of the store or are no keys.
var hostile = []string{
	"", "/", "/etc/passwd", "..", ".", "../x", "a/../../x", "a/..", "a/.", "./a", "a//b", "a/", "a\x00b", "a\nb", "a b",
	`..\x`, `a\b`,
	"%2e%2e/x", "a:b", "~/x", "*", "ü", "a?b", "$HOME", strings.Repeat("x", parts.MaxSegmentBytes+1),
	strings.Repeat("x/", parts.MaxKeyBytes),
}

func testHostile(t *testing.T, open Open) {
	b := newBench(t, open)
	path := b.stage([]byte("x"))
	for _, key := range hostile {
		_, err := b.Put(b.ctx, key, path)
		require.Error(t, err, "%q", key)
		require.Equal(t, fault.Bug, fault.Of(err).Kind, "%q", key)
		_, _, err = b.Fetch(b.ctx, key, "")
		require.Error(t, err, "%q", key)
		_, _, err = b.Open(b.ctx, key, 0, -1)
		require.Error(t, err, "%q", key)
		require.Error(t, b.Delete(b.ctx, key), "%q", key)
	}
	for _, prefix := range []string{"/", "/etc", "../", "a/../", "a//", "a b", "\x00"} {
		var last error
		for _, err := range b.List(b.ctx, prefix, "") {
			last = err
		}
		require.Error(t, last, "%q", prefix)
	}
	require.FileExists(t, path)
	require.Empty(t, b.list(""))
}

func testLong(t *testing.T, open Open) {
	b := newBench(t, open)
	keys := []string{
		strings.Repeat("s", parts.MaxSegmentBytes),
		strings.Repeat("d/", parts.MaxKeyBytes/2-1) + "kk",
		strings.Repeat("x", parts.MaxSegmentBytes) + "/" + strings.Repeat("y", parts.MaxSegmentBytes),
		".hidden", "..dots", "=", "-",
	}
	for _, key := range keys {
		b.put(key, []byte(key))
		b.has(key, []byte(key))
	}
	require.Len(t, b.list(""), len(keys))
}

func testNotFound(t *testing.T, open Open) {
	b := newBench(t, open)
	b.put("a/b/c", []byte("x"))
	for _, key := range []string{"x", "a", "a/b", "a/b/d", "a/b/c/d", "a/b/c.tmp"} {
		b.hasNot(key)
		require.NoError(t, b.Delete(b.ctx, key), key)
	}
	b.has("a/b/c", []byte("x"))
	require.Empty(t, b.list("z"))
	require.Empty(t, b.list("a/b/c/"))
}

// What is not the bytes of the checksum is not given to anybody, by the Store
// that put the part and by one that finds it.
func testCorrupt(t *testing.T, open Open) {
	b := newBench(t, open)
	b.put("k", []byte("right"))
	for _, b := range []*bench{b, newBench(t, open)} {
		for range 2 {
			_, err := b.fetch("k", sumOf([]byte("wrong")))
			require.ErrorIs(t, err, parts.ErrCorrupt)
			b.has("k", []byte("right"))
		}
	}
}

// Many who want one part at once all learn the same of it.
func testCorruptTogether(t *testing.T, open Open) {
	b := newBench(t, open)
	content := noise(11, 1<<20)
	b.put("k", content)
	again := newBench(t, open)
	for _, sum := range []string{sumOf([]byte("wrong")), sumOf(content)} {
		for _, err := range together(8, func(int) error {
			_, err := again.fetch("k", sum)
			return err
		}) {
			if sum == sumOf(content) {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, parts.ErrCorrupt)
			}
		}
	}
}

func testDelete(t *testing.T, open Open) {
	b := newBench(t, open)
	b.put("a/b/1", []byte("one"))
	b.put("a/b/2", []byte("two"))
	for range 2 { // twice is fine
		require.NoError(t, b.Delete(b.ctx, "a/b/1"))
		b.hasNot("a/b/1")
		require.Equal(t, []string{"a/b/2"}, b.list(""))
	}
	require.NoError(t, b.Delete(b.ctx, "a/b/2"))
	require.Empty(t, b.list(""))
	b.put("a/b/1", []byte("new"))
	b.has("a/b/1", []byte("new"))
	require.NoError(t, b.Delete(b.ctx, "a/b/1"))
	b.put("a", []byte("no longer a directory of others"))
	b.has("a", []byte("no longer a directory of others"))
}

// Who deletes the last part of a table does not disturb who puts the first.
func testDeletePut(t *testing.T, open Open) {
	b := newBench(t, open)
	const n, rounds = 6, 20
	errs := together(n, func(i int) error {
		for round := range rounds {
			key := fmt.Sprintf("d/e/f/%d-%d", i, round)
			path, err := newFile(b.ctx, b.Store)
			if err != nil {
				return err
			}
			if err := os.WriteFile(path, []byte(key), 0o644); err != nil {
				return err
			}
			if _, err := b.Put(b.ctx, key, path); err != nil {
				return err
			}
			if got, err := b.fetch(key, sumOf([]byte(key))); err != nil || string(got) != key {
				return fmt.Errorf("fetch %s: %q %w", key, got, err)
			}
			if err := b.Delete(b.ctx, key); err != nil {
				return err
			}
		}
		return nil
	})
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Empty(t, b.list(""))
}

func testList(t *testing.T, open Open) {
	b := newBench(t, open)
	keys := []string{ // in order of bytes: - and . come before /, = and letters after it
		"a-b/x", "a.b", "a/1", "a/10", "a/2", "a/b/c", "a/b=1", "a=1", "ab", "b/1",
	}
	for i := len(keys) - 1; i >= 0; i-- {
		b.put(keys[i], []byte(keys[i]))
	}
	tests := map[string][]string{
		"":      keys,
		"a":     keys[:9],
		"a/":    keys[2:7],
		"a/1":   {"a/1", "a/10"},
		"a/b":   {"a/b/c", "a/b=1"},
		"a/b/":  {"a/b/c"},
		"a-":    {"a-b/x"},
		"a-b/x": {"a-b/x"},
		"c":     {},
		"a/1/":  {},
		"..":    {},
		"A":     {},
	}
	for prefix, want := range tests {
		require.Equal(t, want, b.list(prefix), "prefix %q", prefix)
	}
}

func testListStops(t *testing.T, open Open) {
	b := newBench(t, open)
	for i := range 5 {
		b.put(fmt.Sprintf("d%d/x", i), nil)
		b.put(fmt.Sprintf("d%d/y", i), nil)
	}
	n := 0
	for _, err := range b.List(b.ctx, "", "") {
		require.NoError(t, err)
		if n++; n == 3 {
			break
		}
	}
	require.Equal(t, 3, n)
}

// A page ends anywhere, and the next one begins behind it, whatever has come
// and gone meanwhile.
func testListPages(t *testing.T, open Open) {
	b := newBench(t, open)
	keys := []string{"a-b/x", "a/1", "a/10", "a/2", "a/b/c", "a/b/d", "a/c", "a=1", "b/1"}
	for _, key := range keys {
		b.put(key, nil)
	}
	page := func(prefix, after string, n int) []string {
		out := []string{}
		for info, err := range b.List(b.ctx, prefix, after) {
			require.NoError(t, err)
			if out = append(out, info.Key); len(out) == n {
				break
			}
		}
		return out
	}
	for n := 1; n <= len(keys); n++ {
		all := []string{}
		for after := ""; ; after = all[len(all)-1] {
			some := page("", after, n)
			if len(some) == 0 {
				break
			}
			all = append(all, some...)
		}
		require.Equal(t, keys, all, "pages of %d", n)
	}
	require.Equal(t, []string{"a/2", "a/b/c", "a/b/d", "a/c"}, page("a/", "a/11", 9), "behind a key that is not there")
	require.Equal(t, []string{"a/1"}, page("a/", "A", 1), "behind one that is before all")
	require.Empty(t, page("a/", "a0", 9))
	require.NoError(t, b.Delete(b.ctx, "a/b/c"))
	require.Equal(t, []string{"a/b/d"}, page("", "a/b/c", 1))
}

// rangeOf reads a range of a part; breaks are mended by other ranges.
func (b *bench) rangeOf(key string, offset, length int64) (content []byte, total int64) {
	b.t.Helper()
	for content = []byte{}; ; {
		rest := length
		if length >= 0 {
			rest -= int64(len(content))
		}
		body, size, err := b.Open(b.ctx, key, offset+int64(len(content)), rest)
		require.NoError(b.t, err)
		some, err := io.ReadAll(body)
		require.NoError(b.t, body.Close())
		content = append(content, some...)
		if err == nil {
			return content, size
		}
	}
}

func testRanges(t *testing.T, open Open) {
	b := newBench(t, open)
	content := noise(3, 1<<20+3)
	size := int64(len(content))
	b.put("t/k", content)
	b.put("empty", nil)
	for _, r := range [][2]int64{{0, -1}, {0, size}, {0, 1}, {0, 0}, {1, 4}, {size - 8, 8}, {size - 8, -1},
		{size - 1, 100}, {size / 2, 300_000}, {size, -1}, {size, 5}, {size + 7, 5}, {0, size + 1}} {
		from, to := min(r[0], size), size
		if r[1] >= 0 {
			to = min(from+r[1], size)
		}
		got, total := b.rangeOf("t/k", r[0], r[1])
		require.True(t, bytes.Equal(content[from:to], got), "range %v", r)
		require.Equal(t, size, total)
	}
	for _, length := range []int64{-1, 0, 3} {
		got, total := b.rangeOf("empty", 0, length)
		require.Empty(t, got)
		require.Zero(t, total)
	}
	for _, key := range []string{"x", "t", "t/k/l"} {
		_, _, err := b.Open(b.ctx, key, 0, -1)
		require.ErrorIs(t, err, parts.ErrNotFound, key)
	}
	for _, err := range together(8, func(i int) error {
		if got, _ := b.rangeOf("t/k", int64(i)*1000, 1000); !bytes.Equal(got, content[i*1000:(i+1)*1000]) {
			return fmt.Errorf("range %d has other bytes", i)
		}
		return nil
	}) {
		require.NoError(t, err)
	}
}

// A range of a part that goes is its bytes or an error, never other bytes, and
// once the deletion has returned the part is not there.
func testRangesDelete(t *testing.T, open Open) {
	b := newBench(t, open)
	for round := range 10 {
		key, content := fmt.Sprintf("d/%d", round), noise(uint64(round), 200_000)
		b.put(key, content)
		for _, err := range together(4, func(i int) error {
			if i == 0 {
				return b.Delete(b.ctx, key)
			}
			body, _, err := b.Open(b.ctx, key, 1000, -1)
			if errors.Is(err, parts.ErrNotFound) {
				return nil
			}
			if err != nil {
				return err
			}
			got, err := io.ReadAll(body)
			if !bytes.HasPrefix(content[1000:], got) || err == nil && len(got) != len(content)-1000 {
				return fmt.Errorf("%d other bytes", len(got))
			}
			return body.Close()
		}) {
			require.NoError(t, err)
		}
		_, _, err := b.Open(b.ctx, key, 0, -1)
		require.ErrorIs(t, err, parts.ErrNotFound)
	}
}

// Many who need more together than there is all come to read, also those who
// need more than all there is.
func testReserve(t *testing.T, open Open) {
	b := newBench(t, open)
	const n = 6
	content := noise(5, 300_000)
	for i := range n {
		b.put(fmt.Sprintf("r/%d", i), content)
	}
	for _, err := range together(n, func(i int) error {
		done, err := b.Reserve(b.ctx, int64(i+1)*int64(len(content)))
		if err != nil {
			return err
		}
		defer done()
		for k := range i + 1 {
			path, release, err := b.Fetch(b.ctx, fmt.Sprintf("r/%d", k), sumOf(content))
			if err != nil {
				return err
			}
			defer release()
			if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, content) {
				return fmt.Errorf("part %d has other bytes: %w", k, err)
			}
		}
		done()
		return nil
	}) {
		require.NoError(t, err)
	}
}

// Readers that look all the time see nothing, then everything.
func testWhole(t *testing.T, open Open) {
	b := newBench(t, open)
	content := noise(9, 3<<20)
	path := b.stage(content)
	put := make(chan struct{})
	errs := together(4, func(i int) error {
		if i == 0 {
			defer close(put)
			_, err := b.Put(b.ctx, "t/whole", path)
			return err
		}
		for after := false; ; {
			got, err := b.fetch("t/whole", "")
			if err == nil && !bytes.Equal(got, content) {
				return fmt.Errorf("a part of the part: %d of %d bytes", len(got), len(content))
			}
			if err == nil {
				return nil
			}
			if after {
				return fmt.Errorf("not there after Put: %w", err)
			}
			select {
			case <-put:
				after = true
			default:
			}
		}
	})
	for _, err := range errs {
		require.NoError(t, err)
	}
}

// What was staged and not put is nowhere to be seen, now or later.
func testLeftovers(t *testing.T, open Open) {
	b := newBench(t, open)
	left := b.stage([]byte("left over"))
	b.put("k", []byte("x"))
	require.Equal(t, []string{"k"}, b.list(""))
	require.NoError(t, b.Close())
	again := newBench(t, open)
	require.NoFileExists(t, left)
	require.Equal(t, []string{"k"}, again.list(""))
	again.has("k", []byte("x"))
}

// Two processes have the store open: each sees the other's parts, and opening
// and closing leaves the other's staged files alone.
func testTwoHandles(t *testing.T, open Open) {
	one := newBench(t, open)
	staged := one.stage([]byte("one"))
	two := newBench(t, open)
	other := two.stage([]byte("two"))
	require.NotEqual(t, staged, other)
	two.put("b", []byte("by two"))
	one.has("b", []byte("by two"))
	require.NoError(t, two.Close())
	require.FileExists(t, staged)
	_, err := one.Put(one.ctx, "a", staged)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, one.list(""))
}

func testCancellation(t *testing.T, open Open) {
	b := newBench(t, open)
	b.put("k", []byte("x"))
	path := b.stage([]byte("y"))
	ended, cancel := context.WithCancel(b.ctx)
	cancel()
	_, err := b.Put(ended, "new", path)
	require.ErrorIs(t, err, context.Canceled)
	_, err = b.Stage(ended)
	require.ErrorIs(t, err, context.Canceled)
	_, _, err = b.Fetch(ended, "k", "")
	require.ErrorIs(t, err, context.Canceled)
	_, _, err = b.Open(ended, "k", 0, -1)
	require.ErrorIs(t, err, context.Canceled)
	_, err = b.Reserve(ended, 1)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, b.Delete(ended, "k"), context.Canceled)
	var last error
	for _, err := range b.List(ended, "", "") {
		last = err
	}
	require.ErrorIs(t, last, context.Canceled)
	b.hasNot("new")
	b.has("k", []byte("x"))
	_, err = b.Put(b.ctx, "new", path) // the file was not lost
	require.NoError(t, err)
}

func testClose(t *testing.T, open Open) {
	b := newBench(t, open)
	b.put("k", nil)
	require.NoError(t, b.Close())
	require.NoError(t, b.Close())
}
