package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"thalweg/internal/base/budget"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
	"thalweg/internal/store/state"
)

// drawTable draws a table of some parts, with parts of no great size, wide
// ones, and ones of several row groups.
func drawTable(t *rapid.T) *Table {
	table := &Table{Layout: Layout{Columns: []Column{{Name: "a", Type: "int"}, {Name: "s", Type: "string"}}}}
	for i := range rapid.IntRange(0, 12).Draw(t, "parts") {
		rows := rapid.Int64Range(1, 5*engine.PartRowGroupRows).Draw(t, "rows")
		table.Parts = append(table.Parts, state.Part{Key: fmt.Sprint(i), Rows: rows,
			RawBytes: rows * rapid.Int64Range(1, 1000).Draw(t, "width"), Bucket: -1})
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
		for _, g := range sliceParts(table, rapid.IntRange(1, 40).Draw(t, "want"),
			rapid.Int64Range(1, 1<<20).Draw(t, "rows at least")) {
			require.NotEmpty(t, g)
			all = append(all, g...)
		}
		covered(t, table, all, 0, table.Rows())
	})
}

// Five pieces for four places would leave three of them idle behind the fifth.
func TestSlicePartsCutsOnePartIntoNoMoreThanWanted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t)
		table.Parts = table.Parts[:min(1, len(table.Parts))]
		want := rapid.IntRange(1, 40).Draw(t, "want")
		require.LessOrEqual(t, len(sliceParts(table, want, 1)), want)
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
		_, sizes := cutWorks(keyed{table: table}.cuts(1<<rapid.IntRange(0, 10).Draw(t, "bits")), table)
		var rows int64
		for _, s := range sizes {
			rows += s.rows
		}
		require.Equal(t, table.Rows(), rows)
	})
}

func TestStoredNamesAreApart(t *testing.T) {
	t.Parallel()
	w := &script.TableWriter{}
	for _, name := range []string{"a", "A", "__o0", "file_index", "b", "A_1", "x_7", "__x", "x_8"} {
		w.Fields = append(w.Fields, &script.Field{Name: name, Type: expr.Int})
	}
	seen := map[string]bool{}
	for _, c := range layoutOf(w.Fields).Columns {
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
		require.Equal(t, tc.want, p.bucketsFor(tc.mib<<20, joinFactor), "%d MiB", tc.mib)
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
	require.ErrorContains(t, err, "form 99")
	_, err = DecodeNodePlan([]byte(`{`))
	require.Error(t, err)
}

// Work that was stored names its parts: one more before them moves nothing.
func TestStoredWorkReadsTheSameParts(t *testing.T) {
	t.Parallel()
	table := func(keys ...string) Inputs {
		in := Inputs{Reader: &Table{Node: &script.Node{Table: &script.TableWriter{Name: "t"}}}}
		for _, k := range keys {
			in.Reader.Parts = append(in.Reader.Parts, state.Part{Key: k, Rows: 10})
		}
		return in
	}
	stored := func(w Work) state.BatchSpec {
		data, err := json.Marshal(w)
		require.NoError(t, err)
		return state.BatchSpec{Work: data}
	}
	planned := Work{Parts: []PartSlice{{Part: 1, From: 3}, {Part: 2}}}
	planned.name(table("a", "b", "c"))
	old := state.BatchSpec{Work: []byte(`{"parts": [{"part": 1, "from": 3}, {"part": 2}]}`)} // before parts were named
	for name, tc := range map[string]struct {
		spec state.BatchSpec
		now  Inputs
		want []string
		fail string
	}{
		"as it was":      {stored(planned), table("a", "b", "c"), []string{"b", "c"}, ""},
		"one more":       {stored(planned), table("a", "a2", "b", "c"), []string{"b", "c"}, ""},
		"one less":       {stored(planned), table("b", "c"), []string{"b", "c"}, ""},
		"written again":  {stored(planned), table("a", "b2", "c"), nil, "part b of table t"},
		"old":            {old, table("a", "b", "c"), []string{"b", "c"}, ""},
		"old, too short": {old, table("a", "b"), nil, "part 2 of table t"},
	} {
		var w Work
		require.NoError(t, w.Decode(tc.spec))
		err := w.Locate(tc.now)
		if tc.fail != "" {
			require.ErrorContains(t, err, tc.fail, name)
			continue
		}
		require.NoError(t, err, name)
		var got []string
		for _, s := range w.Parts {
			got = append(got, tc.now.Reader.Parts[s.Part].Key)
		}
		require.Equal(t, tc.want, got, name)
		require.EqualValues(t, 3, w.Parts[0].From)
	}
}

// Rows for Python are cut so that each slot has some, also where they are few that
// weigh much and lie in one part.
func TestPythonGroups(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	for name, c := range map[string]struct {
		parts []state.Part
		slots int
		want  int
	}{
		"one part of few wide rows": {[]state.Part{{Rows: 100, RawBytes: 48 * mb}}, 4, 4},
		"no more than are worth it": {[]state.Part{{Rows: 100, RawBytes: 24 * mb}}, 64, 7},
		"one row":                   {[]state.Part{{Rows: 1, RawBytes: 48 * mb}}, 4, 1},
		"little":                    {[]state.Part{{Rows: 100, RawBytes: 8 * mb}}, 4, 1},
		"as many parts as slots": {[]state.Part{{Rows: 100, RawBytes: 48 * mb}, {Rows: 100, RawBytes: 48 * mb}}, 2,
			2},
		"many narrow rows, cut by number": {[]state.Part{{Rows: 100_000, RawBytes: 48 * mb}}, 2, 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Planner{Budget: budget.Budget{Slots: c.slots, BatchBytes: 256 * mb, SmallBytes: 16 * mb}}
			table := &Table{Parts: c.parts}
			groups := p.pythonGroups(table)
			require.Len(t, groups, c.want)
			rows, all := int64(0), int64(0)
			for _, g := range groups {
				n, _ := sliceRows(table, g)
				rows += n
			}
			for _, part := range c.parts {
				all += part.Rows
			}
			require.Equal(t, all, rows)
		})
	}
}
