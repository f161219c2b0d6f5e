package tableindex_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

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

// The same rows give the same bytes, and a bit that is not as it was is seen.
func TestBits(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "i")
	keys, values := []string{}, []string{}
	for i := range 40 {
		keys, values = append(keys, fmt.Sprint(i)), append(values, fmt.Sprint("value ", i))
	}
	require.NoError(t, write(t, path, keys, values))
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, write(t, path, keys, values))
	again, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, whole, again)
	refused := func(content []byte, what string, args ...any) {
		require.NoError(t, os.WriteFile(path, content, 0o600))
		for _, open := range []func() (*tableindex.Table, error){
			func() (*tableindex.Table, error) { return tableindex.Open(t.Context(), path) },
			func() (*tableindex.Table, error) { return tableindex.OpenCold(t.Context(), path) },
		} {
			_, err := open()
			require.ErrorContains(t, err, "open index "+path, fmt.Sprintf(what, args...))
		}
	}
	for at := range whole {
		bit := byte(1) << (at % 8)
		whole[at] ^= bit
		refused(whole, "bit %d of byte %d", at%8, at)
		whole[at] ^= bit
	}
	for _, n := range []int{0, 1, 4095, 4096, len(whole) - 1} {
		refused(whole[:n], "%d bytes", n)
	}
	refused(append(bytes.Clone(whole), 0), "a byte more")
}
