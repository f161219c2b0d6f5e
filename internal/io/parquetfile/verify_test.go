package parquetfile

import (
	"bytes"
	"compress/gzip"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLevelsOfFlatColumns: of a flat column there are no repetition levels, but
// some writers of version 2 pages say so for each value, as those of RLE
// booleans. They are passed over when they say nothing else.
func TestLevelsOfFlatColumns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		repeats, definitions string
		values, nulls        int64
		want                 string // "": sound
	}{
		"none":              {"", "\x10\x01", 8, 0, ""},
		"one run":           {"\x10", "\x10\x01", 8, 0, ""},
		"a run of 68":       {"\x88\x01", "\x88\x01\x01", 68, 0, ""},
		"groups of eight":   {"\x13", "\x90\x01\x01", 72, 0, ""},
		"groups, not full":  {"\x13", "\x88\x01\x01", 68, 0, ""},
		"two runs":          {"\x08\x08", "\x10\x01", 8, 0, ""},
		"with NULLs":        {"\x10", "\x03\x6f", 8, 2, ""},
		"too few":           {"\x0e", "\x10\x01", 8, 0, "its repetition levels are not those of 8 values"},
		"bytes behind them": {"\x10\x00", "\x10\x01", 8, 0, "its repetition levels are not those of 8 values"},
		"half a number":     {"\x88", "\x10\x01", 8, 0, "its repetition levels are not those of 8 values"},
		"other NULLs": {"\x10", "\x03\x6f", 8, 1,
			"its levels are of 8 values and 2 NULLs, its header says 8 and 1"},
		"too long":              {"\x10\x10", "\x01", 8, 0, "its repetition levels are not those of 8 values"},
		"no definitions behind": {"\x10", "", 8, 0, "its levels are of 0 values and 0 NULLs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := c.repeats + c.definitions + "values"
			p := page{kind: pageDataV2, compressed: int64(len(body)), raw: int64(len(body)),
				values: c.values, nulls: c.nulls, rows: c.values, encoding: 3, checked: true,
				crc: crc32.ChecksumIEEE([]byte(body)), repeatBytes: int64(len(c.repeats)),
				levelBytes: int64(len(c.repeats) + len(c.definitions))}
			v := verifier{r: bytes.NewReader([]byte(body))}
			err := v.page(p)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

// gzipPage is a page of numbers that do not repeat but have few digits, and the
// bytes that it is unpacked to.
func gzipPage(t testing.TB, rawBytes int) (packed []byte, raw int64) {
	t.Helper()
	random, text := rand.New(rand.NewPCG(1, 2)), make([]byte, rawBytes)
	for i := range text {
		if i%4 < 2 {
			text[i] = byte(random.Uint32())
		}
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes(), int64(len(text))
}

// TestGzipPages damages pages that are unpacked from memory and from the file.
func TestGzipPages(t *testing.T) {
	t.Parallel()
	const trailerBytes = 8 // checksum and length
	for name, rawBytes := range map[string]int{"short": 1000, "long": 3 * packedBytesMax} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			packed, raw := gzipPage(t, rawBytes)
			require.Equal(t, name == "long", len(packed) > packedBytesMax)
			v := verifier{codec: Gzip} // one for all: what a page leaves in it must not matter to the next
			verify := func(raw int64, body []byte) error {
				v.r = bytes.NewReader(body)
				return v.page(page{kind: pageData, raw: raw, compressed: int64(len(body))})
			}
			require.NoError(t, verify(raw, packed))
			for _, wrong := range []int64{raw - 1, raw + 1} {
				require.ErrorContains(t, verify(wrong, packed), "bytes unpacked, its header says")
			}
			for _, at := range []int{len(packed) - trailerBytes, len(packed) - 1} {
				flipped := bytes.Clone(packed)
				flipped[at] ^= 1
				require.ErrorContains(t, verify(raw, flipped), "it cannot be unpacked")
			}
			flipped := bytes.Clone(packed)
			flipped[0] ^= 1
			require.ErrorContains(t, verify(raw, flipped), "it is not gzip")
			require.ErrorContains(t, verify(raw, packed[:len(packed)-1]), "it cannot be unpacked")
			require.NoError(t, verify(raw, packed))
		})
	}
}

// BenchmarkGzipPage unpacks a page of the usual size for its checksum.
func BenchmarkGzipPage(b *testing.B) {
	packed, raw := gzipPage(b, 1<<20)
	v := verifier{r: bytes.NewReader(packed), codec: Gzip}
	b.SetBytes(raw)
	for b.Loop() {
		require.NoError(b, v.page(page{kind: pageData, raw: raw, compressed: int64(len(packed))}))
	}
}
