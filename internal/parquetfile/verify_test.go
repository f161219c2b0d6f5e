package parquetfile

import (
	"bytes"
	"hash/crc32"
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
		"none":                  {"", "\x10\x01", 8, 0, ""},
		"one run":               {"\x10", "\x10\x01", 8, 0, ""},
		"a run of 68":           {"\x88\x01", "\x88\x01\x01", 68, 0, ""},
		"groups of eight":       {"\x13", "\x90\x01\x01", 72, 0, ""},
		"groups, not full":      {"\x13", "\x88\x01\x01", 68, 0, ""},
		"two runs":              {"\x08\x08", "\x10\x01", 8, 0, ""},
		"with NULLs":            {"\x10", "\x03\x6f", 8, 2, ""},
		"too few":               {"\x0e", "\x10\x01", 8, 0, "its repetition levels are not those of 8 values"},
		"bytes behind them":     {"\x10\x00", "\x10\x01", 8, 0, "its repetition levels are not those of 8 values"},
		"half a number":         {"\x88", "\x10\x01", 8, 0, "its repetition levels are not those of 8 values"},
		"other NULLs":           {"\x10", "\x03\x6f", 8, 1, "its levels are of 8 values and 2 NULLs, its header says 8 and 1"},
		"too long":              {"\x10\x10", "\x01", 8, 0, "its repetition levels are not those of 8 values"},
		"no definitions behind": {"\x10", "", 8, 0, "its levels are of 0 values and 0 NULLs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := c.repeats + c.definitions + "values"
			p := page{kind: pageDataV2, compressed: int64(len(body)), raw: int64(len(body)), values: c.values, nulls: c.nulls, rows: c.values, encoding: 3, checked: true,
				crc: crc32.ChecksumIEEE([]byte(body)), repeatBytes: int64(len(c.repeats)), levelBytes: int64(len(c.repeats) + len(c.definitions))}
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
