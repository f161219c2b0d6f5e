package engine

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/fault"
	"thalweg/internal/sqltext"
)

// zerosQuery has columns i, x, y and name; x is 0 and, in odd rows, first.
func zerosQuery(first string) string {
	return "SELECT i, CASE WHEN i % 2 = 1 THEN CAST('" + first + "' AS DOUBLE) ELSE CAST(0 AS DOUBLE) END AS x, CAST(i % 3 AS DOUBLE) AS y," +
		" 'name ' || i % 10 AS name FROM range(6000) AS t(i)"
}

func TestZerosKeepTheirSignAndNaNHasNone(t *testing.T) {
	t.Parallel()
	floats := []string{"x", "y"}
	tests := map[string]func(f *fixture, query string) Task{
		"part": func(f *fixture, query string) Task { return f.task(query, PartOutput{Floats: floats}) },
		"buckets": func(f *fixture, query string) Task {
			return f.task(query, PartOutput{Floats: floats, BucketSQL: "q.i % 4 // 2", SortedBy: []string{BucketColumn}})
		},
		"side": func(f *fixture, query string) Task {
			task := f.task("SELECT 1 AS a WHERE false", PartOutput{})
			task.Sides = []SideOutput{{Side: "failed", Query: query, Floats: floats, Stage: f.stage}}
			return task
		},
		"file": func(f *fixture, query string) Task {
			file := sqltext.Copy{Query: query, Path: filepath.Join(f.dir, "out.parquet"), Options: []string{"FORMAT parquet"}, Floats: floats}
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
			require.Equal(t, [][]any{{int64(6000), true}}, f.read(t, "SELECT count(*), bool_and(signbit(x) = (i % 2 = 1))"+from))

			for _, nan := range []string{"CAST('nan' AS DOUBLE)", "-CAST('nan' AS DOUBLE)"} { // with and without -0 beside it
				for _, zero := range []string{"0", "-0"} {
					f = newFixture(t)
					_, err = Execute(context.Background(), f.cfg, nil, task(f, "SELECT * REPLACE (CASE WHEN i % 3 = 0 THEN "+nan+" ELSE x END AS x) FROM ("+zerosQuery(zero)+")"))
					require.NoError(t, err)
					require.Equal(t, [][]any{{int64(2000), false}}, f.read(t, "SELECT count(*), bool_or(signbit(x))"+
						" FROM "+sqltext.String(filepath.Join(f.dir, "*.parquet"))+" WHERE isnan(x)"), "%s beside %s", nan, zero)
				}
			}

			f = newFixture(t)
			_, err = Execute(context.Background(), f.cfg, nil, task(f, zerosQuery("0")))
			require.NoError(t, err)
			metadata := " FROM parquet_metadata(" + sqltext.String(filepath.Join(f.dir, "*.parquet")) + ") WHERE path_in_schema = 'name'"
			inDictionary := f.read(t, "SELECT bool_and(encodings LIKE '%DICTIONARY%')"+metadata)
			require.Equal(t, [][]any{{true}}, inDictionary, "no -0: texts are in a dictionary")
		})
	}
}

func TestFailureBehindANegativeZeroIsReported(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	query := "SELECT *, CASE WHEN i = 5999 THEN CAST(CAST(i AS VARCHAR) || '?' AS BIGINT) END AS z FROM (" + zerosQuery("-0") + ")"
	_, err := Execute(context.Background(), f.cfg, nil, f.task(query, PartOutput{Floats: []string{"x"}}))
	require.Equal(t, fault.UserData, fault.Of(err).Kind)
	require.ErrorContains(t, err, "5999?")
	require.Empty(t, f.files(t))
}
