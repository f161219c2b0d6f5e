package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/test/effort"
)

// zerosQuery has columns i, x, y and name; x is 0 and, in odd rows, first.
func zerosQuery(first string) string {
	return "SELECT i, CASE WHEN i % 2 = 1 THEN CAST('" + first +
		"' AS DOUBLE) ELSE CAST(0 AS DOUBLE) END AS x, CAST(i % 3 AS DOUBLE) AS y," +
		" 'name ' || i % 10 AS name FROM range(6000) AS t(i)"
}

func TestZerosKeepTheirSignAndNaNHasNone(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	floats := []string{"x", "y"}
	tests := map[string]func(f *fixture, query string) Task{
		"part": func(f *fixture, query string) Task { return f.task(query, PartOutput{Floats: floats}) },
		"buckets": func(f *fixture, query string) Task {
			return f.task(query, PartOutput{Floats: floats, BucketSQL: "q.i % 4 // 2",
				SortedBy: []string{BucketColumn}})
		},
		"side": func(f *fixture, query string) Task {
			task := f.task("SELECT 1 AS a WHERE false", PartOutput{})
			task.Sides = []SideOutput{{Side: "failed", Query: query, Floats: floats, Stage: f.stage}}
			return task
		},
		"file": func(f *fixture, query string) Task {
			file := sqltext.Copy{Query: query, Path: filepath.Join(f.dir, "out.parquet"),
				Options: []string{"FORMAT parquet"}, Floats: floats}
			return Task{Name: "test", Paths: []string{f.dir}, Output: Output{File: &FileOutput{Copy: file}}}
		},
	}
	for name, task := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			_, err := Execute(context.Background(), f.cfg, nil, task(f, zerosQuery("-0")))
			require.NoError(t, err)
			from := " FROM " + sqltext.String(filepath.Join(f.dir, "*.parquet"))
			require.Equal(t, [][]any{{int64(6000), true}},
				f.read(t, "SELECT count(*), bool_and(signbit(x) = (i % 2 = 1))"+from))

			for _, nan := range []string{"CAST('nan' AS DOUBLE)", "-CAST('nan' AS DOUBLE)"} {
				// with and without -0 beside it
				for _, zero := range []string{"0", "-0"} {
					f = newFixture(t)
					_, err = Execute(context.Background(), f.cfg, nil,
						task(f, "SELECT * REPLACE (CASE WHEN i % 3 = 0 THEN "+nan+
							" ELSE x END AS x) FROM ("+zerosQuery(zero)+")"))
					require.NoError(t, err)
					require.Equal(t, [][]any{{int64(2000), false}}, f.read(t, "SELECT count(*), bool_or(signbit(x))"+
						" FROM "+sqltext.String(filepath.Join(f.dir, "*.parquet"))+" WHERE isnan(x)"),
						"%s beside %s", nan, zero)
				}
			}

			f = newFixture(t)
			_, err = Execute(context.Background(), f.cfg, nil, task(f, zerosQuery("0")))
			require.NoError(t, err)
			metadata := " FROM parquet_metadata(" + sqltext.String(filepath.Join(f.dir, "*.parquet")) +
				") WHERE path_in_schema = 'name'"
			inDictionary := f.read(t, "SELECT bool_and(encodings LIKE '%DICTIONARY%')"+metadata)
			require.Equal(t, [][]any{{true}}, inDictionary, "no -0: texts are in a dictionary")
		})
	}
}

func TestFailureBehindANegativeZeroIsReported(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	query := "SELECT *, CASE WHEN i = 5999 THEN CAST(CAST(i AS VARCHAR) || '?' AS BIGINT) END AS z FROM (" +
		zerosQuery("-0") + ")"
	_, err := Execute(context.Background(), f.cfg, nil, f.task(query, PartOutput{Floats: []string{"x"}}))
	require.Equal(t, fault.UserData, fault.Of(err).Kind)
	require.ErrorContains(t, err, "5999?")
	require.Empty(t, f.files(t))
}

// joined returns the documented result of string_agg: no separator follows text that is still empty.
func joined(texts []*string, sep string) string {
	var out strings.Builder
	for _, s := range texts {
		if s == nil {
			continue
		}
		if out.Len() > 0 {
			out.WriteString(sep)
		}
		out.WriteString(*s)
	}
	return out.String()
}

// Texts are joined as they come where that is right, else through lists. Which
// of the two it was does not show in the result.
func TestTextsAreJoinedInOrder(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	plain := func(texts ...string) (list []*string) {
		for _, s := range texts {
			list = append(list, &s)
		}
		return list
	}
	tests := map[string]struct {
		groups  [][]*string
		sep     string
		shuffle bool
		threads int
		bad     *Quarantine
		lists   bool // are needed, or used to be safe
	}{
		"no empty ones":         {groups: [][]*string{plain("a", "b", "c"), plain("d")}, sep: ","},
		"empty ones in between": {groups: [][]*string{plain("a", "", "", "b", "")}, sep: ","},
		"empty ones first": {groups: [][]*string{plain("", "", "a", "", "b"), plain("", "", "b,", "b,")},
			sep: ","},
		"beginning like separators": {groups: [][]*string{plain("", ",a")}, sep: ",", lists: true},
		"end of a separator": {groups: [][]*string{plain("", " ", "a"), plain("", "", " ,", "a"), plain("", "  ")},
			sep: ", ", lists: true},
		"end of a word": {groups: [][]*string{plain("", "b", "x"), plain("", "", "bb"), plain("", "", "ba")},
			sep: "ab", lists: true},
		"empty ones only":           {groups: [][]*string{plain("", "", ""), plain("")}, sep: ","},
		"separators first":          {groups: [][]*string{plain(",", "a"), plain(",,", "", "b")}, sep: ","},
		"separators behind empties": {groups: [][]*string{plain("a"), plain("", ",", "a")}, sep: ",", lists: true},
		"part of a longer separator": {groups: [][]*string{plain("", "", "ab", "x"), plain("", "aba", "x")}, sep: "aba",
			lists: true},
		"no separator": {groups: [][]*string{plain("", "a", "", "b")}, sep: ""},
		"nulls": {groups: [][]*string{append([]*string{nil}, plain("a", "b")...), {nil, nil},
			append([]*string{nil}, plain("", "é", "é")...)}, sep: "é", lists: true},
		"nulls and empties": {groups: [][]*string{append([]*string{nil}, plain("", "ü", "é")...)}, sep: "é"},
		"not in order": {groups: [][]*string{plain("a", "b", "c"), plain("", "d", "e")}, sep: ",",
			shuffle: true, lists: true},
		"several threads":        {groups: [][]*string{plain("a", "b", "c")}, sep: ",", threads: 2, lists: true},
		"failures may be hidden": {groups: [][]*string{plain("a", "b")}, sep: ",", bad: &Quarantine{}, lists: true},
	}
	random := rand.New(rand.NewPCG(1, 2))
	var groups [][]*string
	for range 300 {
		var texts []*string
		for range 1 + random.IntN(5) {
			texts = append(texts, &[]string{"", "", "x", ",", ",y", "z,", "é"}[random.IntN(7)])
		}
		groups = append(groups, texts)
	}
	everything := tests["no empty ones"]
	everything.groups, everything.lists = groups, true
	tests["everything"] = everything
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			var rows []string
			want := [][]any{}
			for g, texts := range tc.groups {
				for _, s := range texts {
					value := "CAST(NULL AS VARCHAR)"
					if s != nil {
						value = sqltext.String(*s)
					}
					rows = append(rows, fmt.Sprintf("(%d, %s, %d)", g, value, len(rows)))
				}
				want = append(want, []any{joined(texts, tc.sep)})
			}
			if tc.shuffle {
				slices.Reverse(rows)
			}
			f.cfg.Threads, f.cfg.Paths = max(tc.threads, 1), []string{f.dir}
			in, err := OpenInstance(t.Context(), f.cfg)
			require.NoError(t, err)
			defer func() { require.NoError(t, in.Close()) }()
			in.hidesFailures = tc.bad != nil
			path := filepath.Join(f.dir, "out.parquet")
			query := fmt.Sprintf("SELECT g, %s(x, o, %s) AS s FROM (VALUES %s) AS t(g, x, o) GROUP BY g", expr.Joined,
				sqltext.String(tc.sep), strings.Join(rows, ", "))
			var copies int
			ctx := WithTrace(t.Context(), func(*Instance, string) { copies++ })
			for range 2 { // what the first time has left does not change the second
				copies = 0
				_, _, err = in.Copy(ctx, sqltext.Copy{Query: query, Path: path, Options: []string{"FORMAT parquet"}},
					false)
				require.NoError(t, err)
				tried := tc.threads <= 1 && tc.bad == nil
				require.Equal(t, map[bool]int{true: 2, false: 1}[tried && tc.lists], copies)
				require.Equal(t, want, f.read(t, "SELECT s FROM "+sqltext.String(path)+" ORDER BY g"))
			}
		})
	}
}
