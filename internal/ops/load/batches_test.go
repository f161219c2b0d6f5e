package load

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// resultOf has so many reads in each second, of 1 ms each but in one second.
func resultOf(seconds, each, slow int) Result {
	var line timeline
	for i := range seconds {
		s := &inSecond{}
		s.ops[Read] = int64(each)
		s.of[Read] = newSmallHistogram()
		record(s.of[Read], map[bool]time.Duration{true: time.Second, false: time.Millisecond}[i == slow], int64(each))
		line.add(i, s)
	}
	r := Result{Plan: Plan{Keys: 1, Of: Uniform, Reads: 1, Clients: 1, Depth: 1}, Began: time.Unix(0, 0),
		Took: time.Duration(seconds) * time.Second, Seconds: line.end()}
	all := newHistogram()
	for _, b := range line.blocks[Read] {
		all.Merge(b)
	}
	r.Of[Read] = Measured{Ops: int64(seconds * each), Response: all, Service: all, Blocks: line.blocks[Read]}
	return r
}

func TestWindowsAreCutIntoBatches(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[int]struct {
		batches int
		each    float64
	}{1: {}, 2: {2, 1}, 10: {10, 1}, 11: {5, 2}, 59: {9, 6}, 60: {10, 6}, 61: {10, 6}, 125: {7, 16}} {
		got := resultOf(seconds, 5, 0).Batches()
		require.Len(t, got, want.batches, "%d s", seconds)
		for i, b := range got {
			require.Equal(t, want.each, b.Seconds)
			require.Nil(t, b.Of[Write])
			require.EqualValues(t, 5*want.each, b.Of[Read].TotalCount())
			require.Equal(t, i == 0, b.Of[Read].Max() > int64(time.Second/2), "only the first second was slow")
		}
	}
}

// The blocks of generators that ran for 60 and for 61 seconds are of one second and of two.
func TestBlocksOfOtherWidthsAreMerged(t *testing.T) {
	t.Parallel()
	short, long := resultOf(60, 3, 59), resultOf(61, 4, -1)
	require.Len(t, short.Of[Read].Blocks, 60)
	require.Len(t, long.Of[Read].Blocks, 31)
	for _, both := range [][]Result{{short, long}, {long, short}} {
		got, err := Merge(both...)
		require.NoError(t, err)
		require.Len(t, got.Of[Read].Blocks, 31)
		for i, b := range got.Of[Read].Blocks[:30] {
			require.EqualValues(t, 14, b.TotalCount())
			require.Equal(t, i == 29, b.Max() > int64(time.Second/2), "block %d", i)
		}
	}
	require.Len(t, short.Of[Read].Blocks, 60, "what is merged stays")
	require.EqualValues(t, 3, short.Of[Read].Blocks[0].TotalCount())
}
