package parquetfile

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"
)

// TestHostileFooter checks that claims are not believed: a footer that
// announces billions of elements must cost neither memory nor time.
func TestHostileFooter(t *testing.T) { // not parallel: it measures allocation
	many := "\xff\xff\xff\xff\x07"
	for name, raw := range map[string]string{
		"nothing":                    "",
		"no end":                     "\x15\x02",
		"schema elements":            "\x29\xfc" + many,
		"skipped list":               "\x59\xfc" + many,
		"skipped booleans":           "\x59\xf1" + many,
		"skipped map":                "\x5b" + many + "\x11",
		"skipped text":               "\x58" + many,
		"column name":                "\x29\x1c\x48" + many,
		"deep":                       strings.Repeat("\x5c", 1000),
		"deep lists":                 "\x59" + strings.Repeat("\x19", 1000),
		"wrong type":                 "\x28\x01a\x00",
		"children":                   "\x29\x2c\x48\x01r\x15\x02\x00\x48\x01c\x15\x0a\x00\x16\x00\x19\x0c\x00",
		"rows that no row group has": "\x29\x1c\x48\x01r\x00\x16\x08\x19\x0c\x00",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := decodeFooter([]byte(raw), nil)
		runtime.ReadMemStats(&after)
		require.Error(t, err, name)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20), name)
	}
}

func FuzzFooter(f *testing.F) {
	type row struct {
		N int64
		S *string
		L []int64
	}
	var file bytes.Buffer
	require.NoError(f, parquet.Write(&file, []row{{N: 1, L: []int64{1, 2}}, {N: 2}}))
	raw, err := footerBytes(bytes.NewReader(file.Bytes()), int64(file.Len()))
	require.NoError(f, err)
	f.Add(raw)
	f.Fuzz(func(t *testing.T, content []byte) {
		if foot, err := decodeFooter(content, func(string) bool { return true }); err == nil {
			require.LessOrEqual(t, len(foot.Columns), len(content))
		}
	})
}
