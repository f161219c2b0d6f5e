package engine_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/run/engine"
	"thalweg/internal/test/effort"
)

// TestPlansThatLoseOrder asks DuckDB itself, so that a release of it that
// plans otherwise is noticed.
func TestPlansThatLoseOrder(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	ctx, dir := context.Background(), t.TempDir()
	in, err := engine.OpenInstance(ctx, engine.InstanceConfig{Threads: 4, SpillDir: filepath.Join(dir, "spill"),
		Paths: []string{dir}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, in.Close()) })
	part := filepath.Join(dir, "part.parquet")
	require.NoError(t, in.Exec(ctx,
		"COPY (SELECT i, 'x' || i % 30 AS t, i % 2 = 0 AS b FROM range(300000) AS r(i)) TO "+sqltext.String(part)))
	scan := "read_parquet(" + sqltext.String(part) + ")"
	bools, err := expr.ScanSQL(expr.Bool, "", "t")
	require.NoError(t, err)
	twenty := make([]string, 20)
	for i := range twenty {
		twenty[i] = "x" + strings.Repeat("y", i)
	}
	for _, tc := range []struct{ name, query, lost string }{
		{"scan", "SELECT * FROM S", ""},
		{"filter", "SELECT * FROM S WHERE i % 3 = 1", ""},
		{"pieces", "SELECT * FROM S WHERE i < 1000 UNION ALL SELECT * FROM S", ""},
		{"four constants", "SELECT *, t IN ('x1', 'x2', 'x3', 'x4') AS k FROM S", ""},
		{"five constants", "SELECT *, t IN ('x1', 'x2', 'x3', 'x4', 'x5') AS k FROM S", "HASH_JOIN"},
		{"one of five texts", "SELECT *, " + sqltext.OneOf("t", twenty[:5]) + " AS k FROM S", ""},
		{"one of twenty texts", "SELECT *, " + sqltext.OneOf("t", twenty) + " AS k FROM S WHERE NOT " +
			sqltext.OneOf("t", twenty[:7]), ""},
		{"bool of a text", "SELECT " + bools + " AS k FROM S", ""},
		{"tags", "SELECT ['a', 'b', 'c', 'd', 'e', 'f'][u + 1] FROM (SELECT *, unnest([0, 5]) AS u FROM S)", ""},
		{"tags in a table", "SELECT * FROM S CROSS JOIN (SELECT ['a', 'b'] AS names)", "CROSS_PRODUCT"},
		{"by position", "SELECT * FROM (SELECT i + 1 AS j FROM S) POSITIONAL JOIN S", ""},
		{"by position of a join", "SELECT * FROM (SELECT a.i FROM S AS a JOIN S AS b ON a.i = b.i) POSITIONAL JOIN S",
			"HASH_JOIN"},
		{"sorted groups", "SELECT t, count(*) FROM S GROUP BY t ORDER BY t", ""},
		{"groups", "SELECT t, count(*) FROM S GROUP BY t", "HASH_GROUP_BY"},
		{"sorted join", "SELECT a.i FROM S AS a JOIN S AS b ON a.i = b.i ORDER BY a.i", ""},
		{"first of each", "SELECT * FROM S QUALIFY row_number() OVER (PARTITION BY t ORDER BY i) = 1", "HASH_GROUP_BY"},
		{"numbered", "SELECT *, row_number() OVER () AS n FROM S", ""},
		{"numbered groups", "SELECT t, row_number() OVER () AS n FROM (SELECT t FROM S GROUP BY t) ORDER BY t",
			"HASH_GROUP_BY"},
		{"cut off", "SELECT * FROM S LIMIT 5", ""},
		{"groups cut off", "SELECT t FROM (SELECT t FROM S GROUP BY t LIMIT 5) ORDER BY t", "HASH_GROUP_BY"},
		{"first five", "SELECT * FROM S ORDER BY i LIMIT 5", ""},
		{"numbered pieces", "SELECT *, row_number() OVER () AS n FROM (SELECT * FROM S UNION ALL SELECT * FROM S)", ""},
		{"numbered pieces of a join",
			"SELECT * FROM (SELECT *, row_number() OVER () AS n FROM (SELECT * FROM S UNION ALL SELECT * FROM S)) AS " +
				"a LEFT JOIN (SELECT 7 AS i) AS b ON a.i = b.i ORDER BY n", "UNION"},
		{"pieces of a join, each numbered",
			"SELECT * FROM (SELECT *, row_number() OVER () AS n FROM S UNION ALL SELECT *, 300000 + row_number() " +
				"OVER () AS n FROM S) AS a LEFT JOIN (SELECT 7 AS i) AS b ON a.i = b.i ORDER BY n", ""},
		{"one row", "SELECT max(i) FROM S", ""},
		{"subquery", "SELECT (SELECT max(b.i) FROM S AS b WHERE b.t = a.t) FROM S AS a", "HASH_JOIN"},
		{"membership", "SELECT * FROM S WHERE i IN (SELECT i FROM S)", "HASH_JOIN"},
		{"list of a table", "SELECT *, t = ANY(['x1', 'x2']) AS k FROM S", "HASH_JOIN"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, form := range []string{"Q", "COPY (Q) TO 'OUT' (FORMAT parquet)", "CREATE TEMP TABLE made AS Q"} {
				statement := strings.NewReplacer("Q", strings.ReplaceAll(tc.query, "FROM S", "FROM "+scan), "OUT",
					filepath.Join(dir, "out")).Replace(form)
				statement = strings.NewReplacer("JOIN S", "JOIN "+scan).Replace(statement)
				err := engine.InOrder(ctx, in, statement)
				if tc.lost == "" {
					require.NoError(t, err, statement)
					continue
				}
				require.Error(t, err, statement)
				f := fault.Of(err)
				require.Equal(t, fault.Bug, f.Kind)
				require.Contains(t, f.Message, tc.lost)
			}
		})
	}
}
