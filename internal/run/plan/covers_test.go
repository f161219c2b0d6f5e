package plan

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/io/files"
	"thalweg/internal/store/state"
)

func TestCovers(t *testing.T) {
	t.Parallel()
	secret := "Anna Berg"
	for want, w := range map[string]Work{
		"all rows": {},
		"2.0 KiB of in.csv from line 1,001 on": {Files: []files.Slice{{URL: "in.csv", Offset: 4096, Length: 2048,
			FirstLine: 1001, FileBytes: 9000}}},
		"rows 1 to 500 of in.parquet, b.csv": {Scans: [][]files.Slice{{{URL: "in.parquet", Rows: 500}},
			{{URL: "b.csv", Length: 9, FileBytes: 9}}}},
		"rows 101 to 200 of part 0, part 1, part 2, 2 others": {Parts: []PartSlice{{From: 100, To: 200}, {Part: 1},
			{Part: 2}, {Part: 3}, {Part: 4}}},
		"part 2, a range of keys, bucket 3 of 32": {Parts: []PartSlice{{Part: 2}},
			Cut: Cut{Buckets: 32, Bucket: 3, Range: &KeyRange{From: &secret, To: &secret}}},
		"rows 1 to 10":              {Ranged: true, ToRow: 10},
		"checks, all rows":          {Check: true},
		"part 7 of orders":          {Inner: map[string]*Work{"orders": {Parts: []PartSlice{{Part: 7}}}}},
		"the manifest of the files": {Manifest: true},
		"counts of bad rows":        {BadCaps: true},
	} {
		data, err := json.Marshal(w)
		require.NoError(t, err)
		require.Equal(t, want, CoversOf(state.BatchSpec{Work: data}))
	}
	require.Empty(t, CoversOf(state.BatchSpec{}), "of a list")
	require.Empty(t, CoversOf(state.BatchSpec{Work: []byte("[]")}))
}
