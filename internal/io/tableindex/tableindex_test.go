package tableindex_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"thalweg/internal/io/tableindex"
)

var meta = tableindex.Meta{Key: []string{"id"}, Columns: []string{"name"}, Source: "main/1/load"}

// write writes rows of one value.
func write(t require.TestingT, path string, keys, values []string) error {
	file, err := os.Create(path)
	require.NoError(t, err)
	defer file.Close()
	w, err := tableindex.NewWriter(file, int64(len(keys)), meta)
	require.NoError(t, err)
	for i, key := range keys {
		if err := w.Add([]byte(key), tableindex.Frame(nil, []byte(values[i]))); err != nil {
			return err
		}
	}
	return w.Finish()
}

// both opens a file in both ways.
func both(t require.TestingT, ctx testing.TB, path string) []*tableindex.Table {
	warm, err := tableindex.Open(ctx.Context(), path)
	require.NoError(t, err)
	cold, err := tableindex.OpenCold(ctx.Context(), path)
	require.NoError(t, err)
	return []*tableindex.Table{warm, cold}
}

// Each key has its own row and no other has one, whatever they are.
func TestRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "i")
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.Rune(), 0, 3, -1), rapid.Map(rapid.IntRange(0, 3000),
			func(n int) string { return string(bytes.Repeat([]byte("x"), n)) }))
		keys := rapid.SliceOfNDistinct(text, 0, 300, rapid.ID).Draw(rt, "keys")
		values := rapid.SliceOfN(text, len(keys), len(keys)).Draw(rt, "values")
		require.NoError(rt, write(rt, path, keys, values))
		known := map[string]bool{}
		for _, table := range both(rt, t, path) {
			var buffer, frames []byte
			require.Equal(rt, meta, table.Meta)
			require.EqualValues(rt, len(keys), table.Rows())
			for i, key := range keys {
				known[key] = true
				var found bool
				var err error
				frames, buffer, found, err = table.Lookup([]byte(key), buffer)
				require.NoError(rt, err)
				require.True(rt, found, key)
				require.Equal(rt, fmt.Sprintf("$%d\r\n%s\r\n", len(values[i]), values[i]), string(frames))
			}
			for range 20 {
				key := text.Draw(rt, "another")
				_, _, found, err := table.Lookup([]byte(key), nil)
				require.NoError(rt, err)
				require.Equal(rt, known[key], found)
			}
			require.NoError(rt, table.Close())
		}
	})
}

func TestKeyTwice(t *testing.T) {
	keys, values := []string{}, []string{}
	for i := range 100_000 {
		keys, values = append(keys, fmt.Sprint("key ", i)), append(values, "a value of some bytes")
	}
	for _, first := range []int{0, 99_990} { // it is written, or still in the buffer
		err := write(t, filepath.Join(t.TempDir(), "i"), append(keys[:99_999:99_999], keys[first]), values)
		require.ErrorContains(t, err, fmt.Sprintf("the key %q is in two rows", keys[first]))
	}
	require.NoError(t, write(t, filepath.Join(t.TempDir(), "i"), keys, values))
}

// requireRefused opens a file of some bytes in both ways.
func requireRefused(t *testing.T, path string, content []byte, what string, args ...any) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, content, 0o600))
	for _, cold := range []bool{false, true} {
		_, err := tableindex.OpenWith(t.Context(), path, tableindex.Options{Cold: cold})
		require.ErrorContains(t, err, "open index "+path, fmt.Sprintf(what, args...))
	}
}

// written returns the bytes of a file of so many rows, which it writes to path.
func written(t *testing.T, path string, rows int) []byte {
	t.Helper()
	keys, values := make([]string, rows), make([]string, rows)
	for i := range rows {
		keys[i], values[i] = fmt.Sprint(i), fmt.Sprint("value ", i)
	}
	require.NoError(t, write(t, path, keys, values))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return content
}

// The same rows give the same bytes, and a bit that is not as it was is seen.
func TestBits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "i")
	whole := written(t, path, 40)
	require.Equal(t, whole, written(t, path, 40))
	for at := range whole {
		bit := byte(1) << (at % 8)
		whole[at] ^= bit
		requireRefused(t, path, whole, "bit %d of byte %d", at%8, at)
		whole[at] ^= bit
	}
	for _, n := range []int{0, 1, 4095, 4096, len(whole) - 1} {
		requireRefused(t, path, whole[:n], "%d bytes", n)
	}
	requireRefused(t, path, append(bytes.Clone(whole), 0), "a byte more")
}

// TestBitsOfBlocks: so it is in a file of several blocks, whichever of them it is in.
func TestBitsOfBlocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "i")
	whole := written(t, path, 30_000)
	random := rand.New(rand.NewPCG(30, 4))
	for range 200 {
		at, bit := random.IntN(len(whole)), byte(1)<<random.IntN(8)
		whole[at] ^= bit
		requireRefused(t, path, whole, "bit %d of byte %d", bit, at)
		whole[at] ^= bit
	}
	for range 20 {
		n := random.IntN(len(whole))
		requireRefused(t, path, whole[:n], "%d bytes", n)
	}
	a, b := bytes.Clone(whole[4096:][:64<<10]), bytes.Clone(whole[4096+64<<10:][:64<<10])
	copy(whole[4096:], append(b, a...))
	requireRefused(t, path, whole, "two blocks in each other's place")
}

// TestHostileHeader: a header that is right by its own checksum, over a file with holes that is as long as it says,
// costs neither memory nor a crash.
func TestHostileHeader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "i")
	whole := written(t, path, 40)
	const most = 1<<48 - 1
	for name, sizes := range map[string][6]uint64{ // rows, slots, and bytes of rows, slots, meta and checksums
		"all that fits": {most, most, most, most, most, most},
		"overflow":      {1 << 62, 1 << 63, math.MaxUint64, math.MaxUint64, math.MaxUint64, math.MaxUint64},
		"wrong slots":   {40, 1 << 45, 0, 8, 0, 4},
		"more rows":     {1 << 40, 2, 0, 16, 0, 4},
		"large names":   {0, 1, 0, 8, 1 << 40, (1<<40+8+1<<16-1)>>16*4 + 4},
		"many sums":     {0, 1, 1 << 40, 8, 0, (1<<24 + 1) * 4},
	} {
		page := bytes.Clone(whole[:4096])
		size := int64(len(page))
		for i, n := range sizes {
			binary.LittleEndian.PutUint64(page[16+8*i:], n)
			if i > 1 {
				size += int64(n)
			}
		}
		binary.LittleEndian.PutUint32(page[4092:], crc32.Checksum(page[:4092], crc32.MakeTable(crc32.Castagnoli)))
		require.NoError(t, os.WriteFile(path, page, 0o600))
		if os.Truncate(path, min(max(size, 4096), 1<<43)) != nil {
			require.NoError(t, os.Truncate(path, 1<<40))
		}
		for _, cold := range []bool{false, true} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := tableindex.OpenWith(t.Context(), path, tableindex.Options{Cold: cold})
			runtime.ReadMemStats(&after)
			require.ErrorContains(t, err, "open index "+path, name)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20), name)
		}
	}
}

// colliding returns a key of 8 bytes that has a hash: of such keys XXH64 loses nothing, and goes back.
func colliding(hash uint64) []byte {
	const p1, p2, p3, p4, p5 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
		0x27D4EB2F165667C5
	inverse := func(n uint64) uint64 { // modulo 2^64, by Newton
		x := n
		for range 6 {
			x *= 2 - n*x
		}
		return x
	}
	h := hash ^ hash>>32
	h *= inverse(p3)
	h ^= h>>29 ^ h>>58
	h *= inverse(p2)
	h ^= h >> 33
	h = bits.RotateLeft64((h-p4)*inverse(p1), -27) ^ (p5 + 8)
	return binary.LittleEndian.AppendUint64(nil, bits.RotateLeft64(h*inverse(p1), -31)*inverse(p2))
}

// TestEqualTags: more rows than a tag has values, all with the same one, and some with the same hash but for a bit.
func TestEqualTags(t *testing.T) {
	random := rand.New(rand.NewPCG(16, 48))
	var keys, values []string
	for i := range 1<<16 + 100 {
		hash := random.Uint64()<<16 | 0xbeef
		if i < 100 {
			hash = 7<<60 | uint64(i)<<16 | 0xbeef // all begin at the same slot
		}
		key := colliding(hash)
		require.Equal(t, hash, xxhash.Sum64(key))
		keys, values = append(keys, string(key)), append(values, fmt.Sprint(i))
	}
	path := filepath.Join(t.TempDir(), "i")
	require.NoError(t, write(t, path, keys, values))
	for _, table := range both(t, t, path) {
		var frames, buffer []byte
		for i, key := range keys {
			var found bool
			var err error
			frames, buffer, found, err = table.Lookup([]byte(key), buffer)
			require.NoError(t, err)
			require.True(t, found)
			require.Equal(t, string(tableindex.Frame(nil, []byte(values[i]))), string(frames))
		}
		_, _, found, err := table.Lookup(colliding(7<<60|200<<16|0xbeef), nil)
		require.NoError(t, err)
		require.False(t, found)
		require.NoError(t, table.Close())
	}
}
