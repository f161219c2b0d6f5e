package query

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/io/files"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
)

// cutTables of the tests meet on k, or on k and n: a(k, n, x), b(k, n, y), c(k, n, z).
func cutTables() []script.QueryTable {
	table := func(name, third string) script.QueryTable {
		return script.QueryTable{Name: name, Fields: []*script.Field{{Name: "k", Type: expr.String},
			{Name: "n", Type: expr.Int}, {Name: third, Type: expr.Int}}}
	}
	return []script.QueryTable{table("a", "x"), table("b", "y"), table("c", "z")}
}

// describeBy describes queries over cutTables by keys, nil: row by row.
func describeBy(t *testing.T) func(t *testing.T, text string, by ...string) (*script.QueryInfo, []script.QueryProblem) {
	t.Helper()
	d, err := Open(context.Background(), files.Look{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return func(t *testing.T, text string, by ...string) (*script.QueryInfo, []script.QueryProblem) {
		t.Helper()
		info, problems, err := d.Describe(context.Background(), script.QueryText{Text: text,
			Tables: cutTables(), By: by})
		require.NoError(t, err)
		return info, problems
	}
}

// TestDependentQueries are those whose result for all rows is not what they
// give for the rows of each key together, or is not known to be.
func TestDependentQueries(t *testing.T) {
	t.Parallel()
	describe := describeBy(t)
	for _, tt := range []struct{ query, marked, message, hint string }{
		{"SELECT sum(x) AS s FROM a", "sum", "sum sees rows of several keys: GROUP BY has no k", "add k to GROUP BY"},
		{"SELECT n, count(*) AS c FROM a GROUP BY n", "count", "GROUP BY has no k", "add k"},
		{"SELECT lower(k) AS k, sum(x) AS s FROM a GROUP BY lower(k)", "sum", "GROUP BY has no k", "plain columns"},
		{"SELECT lower(k) AS k, sum(x) AS s FROM a GROUP BY 1", "sum", "GROUP BY has no k", ""},
		{"SELECT k, n, sum(x) AS s FROM a GROUP BY ROLLUP (k, n)", "sum", "GROUP BY has no k", ""},
		{"SELECT k, n, sum(x) AS s FROM a GROUP BY GROUPING SETS ((k), (n))", "sum", "GROUP BY has no k", ""},
		{"SELECT k, row_number() OVER (ORDER BY x) AS r FROM a", "row_number",
			"row_number OVER sees rows of several keys: PARTITION BY has no k", "add k"},
		{"SELECT k, sum(x) OVER () AS r FROM a", "sum", "PARTITION BY has no k", ""},
		{"SELECT k, sum(x) OVER (PARTITION BY k) AS r, max(x) OVER (PARTITION BY n) AS m FROM a", "max",
			"max OVER sees", ""},
		{"SELECT k, x FROM a QUALIFY row_number() OVER (PARTITION BY n ORDER BY x) = 1", "row_number",
			"PARTITION BY has no k", ""},
		{"SELECT DISTINCT n, x FROM a", "DISTINCT", "DISTINCT sees rows of several keys", "add k"},
		{"SELECT DISTINCT ON (n) k, n FROM a ORDER BY n, x", "DISTINCT", "DISTINCT ON sees", ""},
		{"SELECT n FROM a UNION SELECT n FROM b", "UNION", "DISTINCT sees", ""},
		{"SELECT k FROM a UNION SELECT CAST(n AS VARCHAR) FROM b", "UNION", "DISTINCT sees", ""},
		{"SELECT k, n FROM a EXCEPT SELECT CAST(n AS VARCHAR), n FROM b", "EXCEPT", "EXCEPT sees", ""},
		{"SELECT n, x FROM a INTERSECT SELECT n, y FROM b", "INTERSECT", "INTERSECT sees", ""},
		{"SELECT a.k FROM a JOIN b ON a.n = b.n", "JOIN", "a join does not compare k of both sides",
			"with = or IS NOT DISTINCT FROM"},
		{"SELECT a.k FROM a, b", "FROM", "does not compare k", ""},
		{"SELECT a.k FROM a JOIN b ON a.k = b.k OR a.n = b.n", "JOIN", "does not compare k", ""},
		{"SELECT a.k FROM a JOIN b ON lower(a.k) = lower(b.k)", "JOIN", "does not compare k", ""},
		{"SELECT a.k FROM a JOIN b ON a.k <= b.k", "JOIN", "does not compare k", ""},
		{"SELECT a.k FROM a LEFT JOIN b ON a.n = b.n WHERE a.k = b.k", "JOIN", "does not compare k", ""},
		{"SELECT a.k FROM a LEFT JOIN b ON a.k = b.k JOIN c ON b.k = c.k", "JOIN", "does not compare k", ""},
		{"SELECT c.k FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON b.k = c.k", "JOIN", "does not compare k", ""},
		{"SELECT a.k FROM a FULL JOIN b ON a.n = b.n", "JOIN", "does not compare k", ""},
		{"SELECT k, sum(x) AS s FROM (SELECT b.k, a.x FROM a LEFT JOIN b ON a.k = b.k) GROUP BY k", "sum",
			"GROUP BY has no k", ""},
		{"SELECT k, sum(x) AS s FROM (SELECT a.k, a.x FROM a FULL JOIN b ON a.k = b.k) GROUP BY k", "sum",
			"GROUP BY has no k", ""},
		{"SELECT k, x FROM a ORDER BY x LIMIT 3", "LIMIT", "LIMIT looks at all rows", "QUALIFY row_number()"},
		{"SELECT * FROM (SELECT k, x FROM a ORDER BY x LIMIT 3)", "LIMIT", "LIMIT looks", ""},
		{"SELECT k, (SELECT max(y) FROM b) AS m FROM a", "max", "GROUP BY has no k", ""},
		{"SELECT k, (SELECT y FROM b) AS m FROM a", "SELECT", "a subquery for one value sees rows of several keys", ""},
		{"SELECT k FROM a WHERE n IN (SELECT n FROM b)", "IN", "IN looks at the rows of all keys", ""},
		{"SELECT k FROM a WHERE k IN (SELECT k FROM b)", "IN", "IN looks at the rows of all keys", "SEMI JOIN"},
		{"SELECT k FROM a WHERE k NOT IN (SELECT k FROM b)", "IN", "IN looks at the rows of all keys", "ANTI JOIN"},
		{"SELECT k FROM a WHERE x > ALL (SELECT y FROM b)", "ALL", "", ""},
		{"SELECT a.k, u.i FROM a, unnest(range(a.x)) AS u(i)", "unnest", "a list or a table function of columns",
			"select list"},
		{"SELECT a.k, u.i FROM a, range(a.x) AS u(i)", "range", "a list or a table function of columns", "select list"},
		{"SELECT k FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.n = a.n)", "SELECT", "a subquery for each row", ""},
		{"SELECT k FROM a WHERE EXISTS (FROM b)", "SELECT", "", ""},
		{"SELECT k FROM a UNION ALL SELECT 'x'", "UNION", "reads none of the tables", "a table of their own"},
		{"SELECT 'x' AS k UNION ALL SELECT k FROM a", "UNION", "reads none of the tables", ""},
		{"SELECT v.k, a.x FROM (VALUES ('p'), ('q')) AS v(k) LEFT JOIN a ON a.k = v.k", "LEFT", "once for each batch",
			"the other way round"},
		{"SELECT v.k, a.x FROM a FULL JOIN (VALUES ('p'), ('q')) AS v(k) ON a.k = v.k", "FULL",
			"once for each batch", ""},
		{"SELECT 1 AS one", "SELECT", "reads none of its tables", ""},
		{"WITH RECURSIVE r AS (SELECT k, n FROM a UNION SELECT k, n - 1 FROM r WHERE n > 0) SELECT * FROM r", "WITH",
			"WITH RECURSIVE may look at all rows", ""},
		{"SELECT k, x FROM a ORDER BY x + 1", "ORDER", "more than its columns", "select what it sorts by"},
		{"SELECT k, first_value(x) OVER (PARTITION BY k ORDER BY n) AS f FROM a", "SELECT",
			"the order in which rows arrive", "add keys"},
	} {
		t.Run(tt.query, func(t *testing.T) {
			_, problems := describe(t, tt.query, "k")
			require.Len(t, problems, 1)
			p := problems[0]
			require.Contains(t, p.Message, "cannot be evaluated by k: ")
			require.Contains(t, p.Message, tt.message)
			require.Contains(t, p.Hint, tt.hint)
			require.Equal(t, tt.marked, tt.query[p.Start:p.End])
		})
	}
}

// TestIndependentQueries are those that are evaluated by keys.
func TestIndependentQueries(t *testing.T) {
	t.Parallel()
	describe := describeBy(t)
	for _, tt := range []struct {
		query string
		by    []string
		sort  []script.SortKey
	}{
		{query: "SELECT K, sum(x) AS s FROM a GROUP BY ALL"},
		{query: "SELECT sum(x) AS s FROM a GROUP BY k, n"},
		{query: "SELECT sum(x) AS s FROM a GROUP BY k, n", by: []string{"n", "k"}},
		{query: "SELECT k, n, sum(x) AS s FROM a GROUP BY GROUPING SETS ((k), (k, n))"},
		{query: "SELECT k, count(*) AS c FROM (SELECT k FROM a UNION ALL SELECT k FROM b) GROUP BY k HAVING " +
			"count(*) > 1"},
		{query: "SELECT k, sum(x) OVER (PARTITION BY k, n ORDER BY x) AS s, row_number() OVER (PARTITION BY k ORDER " +
			"BY x) AS r FROM a"},
		{query: "SELECT a.k, b.y, c.z FROM a JOIN b ON a.k = b.k LEFT JOIN c ON c.k IS NOT DISTINCT FROM b.k"},
		{query: "SELECT a.k, b.y, c.z FROM a, c, b WHERE a.k = b.k AND c.n < 3 AND b.k = c.k"},
		{query: "SELECT a.k, b.y FROM a, b WHERE a.k = b.k AND a.n = b.n", by: []string{"k", "n"}},
		{query: "SELECT k, sum(x) AS s, sum(y) AS r FROM a FULL JOIN b USING (k) GROUP BY k"},
		{query: "SELECT * FROM a NATURAL JOIN b"},
		{query: "SELECT k FROM a EXCEPT ALL SELECT k FROM b"},
		{query: "SELECT k, n FROM a UNION SELECT k, n FROM b"},
		{query: "SELECT DISTINCT ON (k) k, x FROM a ORDER BY k, x", sort: []script.SortKey{{Column: 0}, {Column: 1}}},
		{query: "SELECT a.k FROM a SEMI JOIN b ON a.k = b.k AND a.n < b.n"},
		{query: "SELECT k FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.n < a.n)"},
		{query: "SELECT k, (SELECT max(y) FROM b WHERE b.k = a.k) AS m FROM a"},
		{query: "SELECT k, x FROM a WHERE n IN (SELECT n FROM b WHERE b.k = a.k)"},
		{query: "SELECT k, x FROM a WHERE n IN (VALUES (1), (3))"},
		{query: "SELECT a.k, v.w FROM a LEFT JOIN (VALUES (1, 'one')) AS v(n, w) ON v.n = a.n"},
		{query: "WITH s AS (SELECT k, sum(x) AS s FROM a GROUP BY k) SELECT a.k, a.x / s.s AS part FROM a JOIN " +
			"s USING (k)"},
		{query: "SELECT n AS k, s FROM (SELECT k AS n, sum(x) AS s FROM a GROUP BY 1)"},
		{query: "SELECT k AS key, n, x FROM a ORDER BY x DESC NULLS FIRST, key",
			sort: []script.SortKey{{Column: 2, Desc: true, NullsFirst: true}, {Column: 0}, {Column: 0}, {Column: 1},
				{Column: 2}}},
	} {
		t.Run(tt.query, func(t *testing.T) {
			if tt.by == nil {
				tt.by = []string{"k"}
			}
			info, problems := describe(t, tt.query, tt.by...)
			require.Empty(t, problems)
			if tt.sort != nil {
				require.Equal(t, tt.sort, info.Cut.Sort[:len(tt.sort)])
			}
		})
	}
}

// TestRowByRow tells queries that look at one row at a time from all others.
func TestRowByRow(t *testing.T) {
	t.Parallel()
	describe := describeBy(t)
	for _, tt := range []struct {
		query, whole string
		tables       []string
	}{
		{query: "SELECT k, x + 1 AS y FROM a WHERE n > 3", tables: []string{"a"}},
		{query: "SELECT k, x FROM b AS a(k, n, x) UNION ALL SELECT k, y FROM a AS b(k, n, y) UNION ALL SELECT * FROM " +
			"(SELECT k, 0 FROM c)", tables: []string{"b", "a", "c"}},
		{query: "SELECT k, unnest([n, x]) AS v FROM a", tables: []string{"a"}},
		{query: "SELECT k, x FROM a UNION ALL SELECT k, n FROM a", tables: []string{"a", "a"}},
		{query: "SELECT a.k, v.w FROM a LEFT JOIN (VALUES (1, 'one')) AS v(n, w) ON v.n = a.n", tables: []string{"a"}},
		{query: "SELECT k FROM a WHERE n IN (VALUES (1), (3))", tables: []string{"a"}},
		{query: "WITH s AS (SELECT k FROM a) SELECT k FROM s UNION ALL SELECT k FROM s", tables: []string{"a"}},
		{query: "SELECT k, x FROM a ORDER BY x", tables: []string{"a"}},
		{query: "SELECT sum(x) AS s FROM a", whole: "sum"},
		{query: "SELECT k FROM a GROUP BY k", whole: "GROUP BY"},
		{query: "SELECT DISTINCT k FROM a", whole: "DISTINCT"},
		{query: "SELECT k, rank() OVER (PARTITION BY k ORDER BY x) AS r FROM a", whole: "rank OVER"},
		{query: "SELECT k FROM a JOIN b USING (k)", whole: "its tables are joined"},
		{query: "SELECT k FROM a ORDER BY x LIMIT 1", whole: "LIMIT looks at all rows"},
		{query: "SELECT k FROM a ORDER BY x", whole: "its ORDER BY has more than its columns"},
		{query: "SELECT k FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)", whole: "a subquery for each row"},
		{query: "SELECT k FROM a UNION SELECT k FROM b", whole: "DISTINCT"},
		{query: "SELECT k FROM a EXCEPT ALL SELECT k FROM b", whole: "EXCEPT"},
		{query: "SELECT k FROM a UNION ALL SELECT 'x'",
			whole: "a side of UNION ALL reads none of the tables: it would be there once for each batch"},
		{query: "SELECT 1 AS one", whole: "it reads none of its tables"},
		{query: "SELECT k COLLATE NOCASE AS k FROM a", whole: "its result may show the order in which rows arrive"},
	} {
		t.Run(tt.query, func(t *testing.T) {
			info, problems := describe(t, tt.query)
			require.Empty(t, problems)
			require.Equal(t, tt.whole, info.Cut.Whole)
			if tt.whole == "" {
				require.Equal(t, tt.tables, info.Cut.Tables)
			}
		})
	}
}
