package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"testing"

	"github.com/duckdb/duckdb-go/v2/mapping"
	"github.com/stretchr/testify/require"

	"thalweg/internal/lang/expr"
	"thalweg/internal/run/python"
	"thalweg/internal/test/effort"
)

// Rows for Python are as the driver gives them: of every type, with and without
// NULLs, texts within a vector and beside it, in one chunk and in several.
func TestVectorRowsAreTheDriversRows(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	ctx := context.Background()
	in, err := OpenInstance(ctx, InstanceConfig{Threads: 1, SpillDir: t.TempDir()})
	require.NoError(t, err)
	defer in.Close()
	types := []mapping.Type{mapping.TypeBigInt, mapping.TypeDouble, mapping.TypeBoolean, mapping.TypeVarchar}
	const columns = "i * 1234567890123 - 5e14::BIGINT, CASE WHEN i % 5 = 0 THEN 'nan'::DOUBLE ELSE -i / 7 END, i % 3 " +
		"= 0, repeat('ü', CAST(i % 9 AS INTEGER)) || chr(0)"
	for _, rows := range []int{0, 1, 63, 65, 2_048, 2_049, 5_000} {
		for _, query := range []string{
			fmt.Sprintf("SELECT %s FROM range(%d) AS r(i) ORDER BY i", columns, rows),
			fmt.Sprintf("SELECT CASE WHEN hash(i, 1) %% 3 > 0 THEN a END, CASE WHEN hash(i, 2) %% 3 > 0 THEN b END, "+
				"CASE WHEN hash(i, 3) %% 3 > 0 THEN c END, CASE WHEN hash(i, 4) %% 3 > 0 THEN d END FROM (SELECT i, "+
				"%s FROM range(%d) AS r(i)) AS t(i, a, b, c, d) ORDER BY i", columns, rows),
			fmt.Sprintf("SELECT CAST(7 AS BIGINT), CAST(0.5 AS DOUBLE), true, CAST(NULL AS VARCHAR) FROM range(%d)",
				rows),
		} {
			want, err := in.Query(ctx, query)
			require.NoError(t, err)
			all := []string{}
			for want.Next() {
				var row [4]any
				require.NoError(t, want.Scan(&row[0], &row[1], &row[2], &row[3]))
				all = append(all, fmt.Sprint(row[:]...))
			}
			require.NoError(t, errors.Join(want.Err(), want.Close()))

			got, err := in.vectorRows(ctx, query, types, []string{""})
			require.NoError(t, err)
			n := 0
			for ; ; n++ {
				if err := got.next(ctx); err != nil {
					require.ErrorIs(t, err, io.EOF)
					break
				}
				row := make([]any, len(types))
				for i, kind := range types {
					switch {
					case got.Null(i):
					case kind == mapping.TypeVarchar:
						row[i] = string(got.Text(i))
					case kind == mapping.TypeDouble:
						row[i] = math.Float64frombits(got.Word(i))
					case kind == mapping.TypeBoolean:
						row[i] = got.Word(i) == 1
					default:
						row[i] = int64(got.Word(i))
					}
				}
				require.Equal(t, all[n], fmt.Sprint(row...), "row %d of %s", n, query)
			}
			require.Len(t, all, n)
			require.ErrorIs(t, got.next(ctx), io.EOF)
			require.NoError(t, got.close())
		}
	}
}

func TestVectorRowsOfOtherTypesAreRefused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	in, err := OpenInstance(ctx, InstanceConfig{Threads: 1, SpillDir: t.TempDir()})
	require.NoError(t, err)
	defer in.Close()
	for query, types := range map[string][]mapping.Type{
		"SELECT CAST(1 AS INTEGER)": {mapping.TypeBigInt},
		"SELECT CAST(1 AS BIGINT)":  {mapping.TypeBigInt, mapping.TypeBigInt},
		"SELECT 'text'":             {mapping.TypeDouble},
	} {
		_, err := in.vectorRows(ctx, query, types, []string{""})
		require.ErrorContains(t, err, "for Python", query)
	}
	_, err = in.vectorRows(ctx, "SELECT error('a reason') FROM range(5000)", []mapping.Type{mapping.TypeBigInt},
		[]string{""})
	require.ErrorContains(t, err, "a reason")
	rows, err := in.vectorRows(ctx, "SELECT CAST(1 AS BIGINT)", []mapping.Type{mapping.TypeBigInt}, []string{""})
	require.NoError(t, err, "the connection is good for more")
	require.NoError(t, rows.close())
}

// Whatever the windows, each group comes once, whole, and in order.
func TestWindowsHaveEachGroupOnce(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	ctx := context.Background()
	for _, rows := range []int{0, 1, effort.Of(3_000, 4_000, 20_000)} {
		for _, window := range []int64{0, 1, 700, 1_200, 5_000, 1 << 40} {
			in, err := OpenInstance(ctx, InstanceConfig{Threads: 1, SpillDir: t.TempDir()})
			require.NoError(t, err)
			// Group 0 has half of the rows, others a few or one.
			require.NoError(t, in.Exec(ctx,
				fmt.Sprintf("CREATE TEMP TABLE r AS SELECT i, CASE WHEN i %% 2 = 0 THEN 0 WHEN i %% 7 = 0 THEN i "+
					"ELSE i %% 100 END AS k FROM range(%d) AS r(i)", rows)))
			x := &execution{in: in}
			source, err := x.sourceRows(ctx, &PythonStep{
				Program: &python.Program{Inputs: []python.Column{{Name: "i", Type: expr.Int}}},
				Groups: "SELECT row_number() OVER (ORDER BY first) - 1 AS \"group no\", k, n AS \"group rows\" FROM " +
					"(SELECT k, min(i) AS first, count(*) AS n FROM r GROUP BY k)",
				Source: "SELECT r.i, g.\"group no\" FROM r JOIN " + WindowTable +
					" AS g ON r.k = g.k ORDER BY g.\"group no\", r.i",
				WindowRows: window,
			})
			require.NoError(t, err)
			if rows > 0 && window > 0 && window < int64(rows)/2 {
				require.NotEmpty(t, source.windows, "several windows")
			}
			var got [][2]int64
			for {
				if err := source.next(ctx); err != nil {
					require.ErrorIs(t, err, io.EOF)
					break
				}
				got = append(got, [2]int64{int64(source.Word(1)), int64(source.Word(0))})
			}
			require.NoError(t, source.close())
			require.Len(t, got, rows)
			require.True(t, slices.IsSortedFunc(got, func(a, b [2]int64) int { return slices.Compare(a[:], b[:]) }))
			require.Len(t, slices.Compact(got), rows)
			require.NoError(t, in.Close())
		}
	}
}
