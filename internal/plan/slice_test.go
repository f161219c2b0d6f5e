package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"thalweg/internal/budget"
	"thalweg/internal/engine"
	"thalweg/internal/expr"
	"thalweg/internal/script"
	"thalweg/internal/state"
)

// drawTable draws a table of some parts, with parts of no great size, wide
// ones, and ones of several row groups.
func drawTable(t *rapid.T) *Table {
	table := &Table{Layout: Layout{Columns: []Column{{Name: "a", Type: "int"}, {Name: "s", Type: "string"}}}}
	for i := range rapid.IntRange(0, 12).Draw(t, "parts") {
		rows := rapid.Int64Range(1, 5*engine.PartRowGroupRows).Draw(t, "rows")
		table.Parts = append(table.Parts, state.Part{Key: fmt.Sprint(i), Rows: rows, RawBytes: rows * rapid.Int64Range(1, 1000).Draw(t, "width"), Bucket: -1})
	}
	return table
}

// covered checks that slices hold each row of the table once, in order.
func covered(t require.TestingT, table *Table, slices []PartSlice, from, to int64) {
	at := from
	starts := make([]int64, len(table.Parts)+1)
	for i, p := range table.Parts {
		starts[i+1] = starts[i] + p.Rows
	}
	for _, s := range slices {
		end := s.To
		if end == 0 {
			end = table.Parts[s.Part].Rows
		}
		require.Equal(t, at, starts[s.Part]+s.From)
		require.Greater(t, end, s.From)
		at = starts[s.Part] + end
	}
	require.Equal(t, to, at)
}

func TestSlicePartsCoversEachRowOnceInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t)
		var all []PartSlice
		for _, g := range sliceParts(table, rapid.IntRange(1, 40).Draw(t, "want"), rapid.Int64Range(1, 1<<20).Draw(t, "rows at least")) {
			require.NotEmpty(t, g)
			all = append(all, g...)
		}
		covered(t, table, all, 0, table.Rows())
	})
}

func TestRowRangeIsThatRange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t)
		from := rapid.Int64Range(0, table.Rows()).Draw(t, "from")
		to := rapid.Int64Range(from, table.Rows()).Draw(t, "to")
		covered(t, table, rowRange(table, from, to), from, max(from, to))
		rows, _ := sliceRows(table, rowRange(table, from, to))
		require.Equal(t, to-from, rows)
	})
}

func TestBucketWorksShareOutAllRows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t)
		_, sizes := bucketWorks(1<<rapid.IntRange(0, 10).Draw(t, "bits"), table)
		var rows int64
		for _, s := range sizes {
			rows += s.rows
		}
		require.Equal(t, table.Rows(), rows)
	})
}

func TestBucketSlicesReadEachRowInOneBatch(t *testing.T) {
	t.Parallel()
	// A table in 8 buckets read by a join of 4 or 16: parts are read by the
	// batches whose bucket agrees in the bits that both have.
	table := &Table{Layout: Layout{Buckets: 8, BucketKey: "k"}}
	for b := range 8 {
		table.Parts = append(table.Parts, state.Part{Key: fmt.Sprint(b), Bucket: b})
	}
	for _, buckets := range []int{4, 8, 16} {
		seen := map[int]int{}
		for b := range buckets {
			for _, s := range bucketSlices(table, "k", Work{Buckets: buckets, Bucket: b}) {
				seen[s.Part]++
			}
		}
		for part := range 8 {
			require.Equal(t, max(buckets/8, 1), seen[part], "part %d of %d buckets", part, buckets)
		}
	}
	require.Len(t, bucketSlices(table, "another key", Work{Buckets: 8, Bucket: 1}), 8)
}

func TestStoredNamesAreApart(t *testing.T) {
	t.Parallel()
	w := &script.TableWriter{}
	for _, name := range []string{"a", "A", "__o0", "file_index", "b", "A_1", "x_7", "__x", "x_8"} {
		w.Fields = append(w.Fields, &script.Field{Name: name, Type: expr.Int})
	}
	seen := map[string]bool{}
	for _, c := range layoutOf(w).Columns {
		low := strings.ToLower(c.Stored())
		require.False(t, seen[low], "%s is stored as %s", c.Name, c.Stored())
		require.False(t, strings.HasPrefix(low, "__") || low == "file_index")
		seen[low] = true
	}
}

func TestBucketsFollowMemory(t *testing.T) {
	t.Parallel()
	p := Planner{Budget: budget.Budget{SlotEngineBytes: 100 << 20, Slots: 2}}
	for _, tc := range []struct {
		mib  int64
		want int
	}{{1, 2}, {30, 2}, {34, 4}, {100, 8}, {1000, 64}, {1 << 20, bucketsMax}} {
		require.Equal(t, tc.want, p.bucketsFor(tc.mib<<20), "%d MiB", tc.mib)
	}
}

func TestNodePlanOfAnotherFormatIsRefused(t *testing.T) {
	t.Parallel()
	data, err := NodePlan{Version: formatVersion, Table: "t"}.Encode()
	require.NoError(t, err)
	plan, err := DecodeNodePlan(data)
	require.NoError(t, err)
	require.Equal(t, "t", plan.Table)
	_, err = DecodeNodePlan([]byte(`{"version": 99}`))
	require.ErrorContains(t, err, "format is 99")
	_, err = DecodeNodePlan([]byte(`{`))
	require.Error(t, err)
}
