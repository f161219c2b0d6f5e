package plan

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/io/files"
	"thalweg/internal/lang/script"
	"thalweg/internal/store/state"
)

// Groups of slices have the rows of the whole, in order, and about equal shares.
func TestCutSlices(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		table := &Table{}
		for i := range 1 + r.IntN(6) {
			table.Parts = append(table.Parts, state.Part{Key: fmt.Sprint(i), Rows: 1 + r.Int64N(3000), RawBytes: 1000})
		}
		var slices []PartSlice
		for i, p := range table.Parts {
			s := PartSlice{Part: i, Key: p.Key}
			if r.IntN(3) == 0 {
				s.From, s.To = r.Int64N(p.Rows), p.Rows
			}
			slices = append(slices, s)
		}
		groups := cutSlices(table, slices, 4)
		total, _ := sliceRows(table, slices)
		require.LessOrEqual(t, len(groups), 4)
		var got [][2]int64
		for _, g := range groups {
			rows, _ := sliceRows(table, g)
			require.Positive(t, rows)
			if len(groups) > 1 {
				require.GreaterOrEqual(t, rows, total/int64(len(groups))-1)
				require.GreaterOrEqual(t, rows, int64(pieceRowsMin)-1)
			}
			got = append(got, rowsOf(table, g)...)
		}
		require.Equal(t, joined(rowsOf(table, slices)), joined(got))
	}
}

// rowsOf are ranges of rows: parts lie behind one another.
func rowsOf(t *Table, slices []PartSlice) (out [][2]int64) {
	for _, s := range slices {
		to := s.To
		if to == 0 {
			to = t.Parts[s.Part].Rows
		}
		base := int64(s.Part) * orderStride
		out = append(out, [2]int64{base + s.From, base + to})
	}
	return out
}

// joined puts ranges together that continue each other.
func joined(ranges [][2]int64) (out [][2]int64) {
	for _, r := range ranges {
		if last := len(out) - 1; last >= 0 && out[last][1] == r[0] {
			out[last][1] = r[1]
			continue
		}
		out = append(out, r)
	}
	return out
}

func TestCutFiles(t *testing.T) {
	var many []files.Slice
	for i := range 11 {
		many = append(many, files.Slice{File: i, Bytes: int64(i * 100), Count: -1, Length: 5})
	}
	var again []files.Slice
	groups := cutFiles(many, 4)
	require.Greater(t, len(groups), 2)
	for _, g := range groups {
		require.NotEmpty(t, g)
		again = append(again, g...)
	}
	require.Equal(t, many, again)

	at := int64(1000)
	for _, g := range cutFiles([]files.Slice{{FirstRow: at, Rows: 5001, Count: 5001, Bytes: 999}}, 4) {
		require.Len(t, g, 1)
		require.Equal(t, at, g[0].FirstRow)
		require.Equal(t, g[0].Rows, g[0].Count)
		at += g[0].Rows
	}
	require.EqualValues(t, 6001, at)
	require.Len(t, cutFiles([]files.Slice{{Rows: -1, Count: 4000}}, 4), 4, "all rows of a file")
	require.Empty(t, cutFiles([]files.Slice{{Offset: 5, Length: 1 << 20, Count: -1}}, 4),
		"records of CSV are not looked for")
	require.Less(t, len(cutFiles([]files.Slice{{Rows: 10, Count: 10}}, 4)), 2)
}

// The pieces of a bucket are those that its keys' hashes begin with.
func TestCutKeys(t *testing.T) {
	w := Work{Cut: Cut{Buckets: 8, Bucket: 5, Hash: keyHash}}
	pieces := cutKeys(w)
	require.Len(t, pieces, piecesOfWork)
	for i, p := range pieces {
		require.Equal(t, 8*piecesOfWork, p.Buckets)
		require.Equal(t, 5, p.Bucket/piecesOfWork)
		require.Equal(t, i, p.Bucket%piecesOfWork)
		require.Equal(t, keyHash, p.Hash)
	}
}

// How finely keys are cut depends on how they were planned, whatever is known of
// the tables: of those computed on the way nothing is.
func TestKeysAreCutAFewTimes(t *testing.T) {
	n := &script.Node{}
	for _, planned := range []int{1, 8, bucketsMax} {
		w, times := Work{Cut: Cut{Buckets: planned, Hash: keyHash}}, 0
		for ; finer(n, w); times++ {
			w = cutKeys(w)[1]
		}
		require.Equal(t, 4, times)
		require.Equal(t, planned*finerMax, w.Buckets)
	}
	require.False(t, finer(n, Work{Cut: Cut{Buckets: 8}}), "of a version that named no hash")
}
