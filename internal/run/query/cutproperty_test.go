package query

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/run/engine"
	"thalweg/internal/test/effort"
)

// TestPiecesGiveTheWhole makes random queries and, where they are accepted,
// compares what they give for all rows with what they give for the rows of each
// key, or for each row alone.
func TestPiecesGiveTheWhole(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	describe := describeBy(t)
	in, err := engine.OpenInstance(ctx, engine.InstanceConfig{Threads: 1, MemoryBytes: 64 << 20,
		SpillDir: filepath.Join(t.TempDir(), "spill")})
	require.NoError(t, err)
	defer func() { require.NoError(t, in.Close()) }()
	g := &queryMaker{rng: rand.New(rand.NewPCG(7, 24))}
	accepted := map[string]int{}
	var tables []pieceTable
	for i := range effort.Of(60, 200, 4_000) {
		if i%50 == 0 {
			tables = g.fill(ctx, t, in)
		}
		by, depth := [][]string{{"k"}, {"k", "n"}, nil}[i%3], 1+g.rng.IntN(3)
		if by == nil {
			depth = 1
		}
		query := g.query(depth)
		info, problems := describe(t, query, by...)
		if len(problems) > 0 || info.Cut.Whole != "" {
			continue
		}
		want, err := rowsOver(ctx, t, in, tables, info.SQL, func(pieceTable) string { return "true" })
		if err != nil {
			continue // more than one row for one value
		}
		accepted[fmt.Sprint(by)]++
		var got []string
		for _, piece := range g.pieces(tables, by) {
			rows, err := rowsOver(ctx, t, in, tables, info.SQL, piece)
			require.NoError(t, err, query)
			got = append(got, rows...)
		}
		sort.Strings(got)
		require.Equal(t, want, got, "by %v: %s", by, query)
	}
	for by, n := range accepted {
		require.Greater(t, n, 2, by)
	}
	require.Len(t, accepted, 3)
}

// pieceTable is a table with its rows' keys.
type pieceTable struct {
	name string
	rows int
}

// queryMaker makes queries, all with the columns k, n and x.
type queryMaker struct {
	rng   *rand.Rand
	names int
}

func (g *queryMaker) of(list ...string) string { return list[g.rng.IntN(len(list))] }

func (g *queryMaker) name() string {
	g.names++
	return fmt.Sprintf("t%d", g.names)
}

// fill makes tables of a few rows, in which keys meet, are there twice, and are NULL.
func (g *queryMaker) fill(ctx context.Context, t *testing.T, in *engine.Instance) (out []pieceTable) {
	for _, table := range cutTables() {
		rows := g.rng.IntN(9)
		require.NoError(t, in.Exec(ctx,
			fmt.Sprintf("CREATE OR REPLACE TABLE all_%s (k VARCHAR, n BIGINT, %s BIGINT, place BIGINT)", table.Name,
				table.Fields[2].Name)))
		for i := range rows {
			require.NoError(t, in.Exec(ctx, fmt.Sprintf("INSERT INTO all_%s VALUES (%s, %s, %s, %d)", table.Name,
				g.of("'p'", "'q'", "'P'", "NULL"), g.of("1", "2", "NULL"), g.of("1", "2", "3", "NULL"), i)))
		}
		out = append(out, pieceTable{table.Name, rows})
	}
	return out
}

// pieces lists conditions that cut the tables by keys, or into rows.
func (g *queryMaker) pieces(tables []pieceTable, by []string) (out []func(pieceTable) string) {
	if by == nil {
		for _, one := range tables {
			for i := range one.rows {
				out = append(out, func(t pieceTable) string {
					return fmt.Sprintf("%t AND place = %d", t.name == one.name, i)
				})
			}
		}
		return out
	}
	for _, k := range []string{"'p'", "'q'", "'P'", "NULL"} {
		for _, n := range []string{"1", "2", "NULL"} {
			where := "k IS NOT DISTINCT FROM " + k
			if len(by) == 2 {
				where += " AND n IS NOT DISTINCT FROM " + n
			}
			if len(by) == 2 || n == "1" {
				out = append(out, func(pieceTable) string { return where })
			}
		}
	}
	return out
}

// rowsOver gives a query's rows over a piece of the tables, sorted.
func rowsOver(ctx context.Context, t *testing.T, in *engine.Instance, tables []pieceTable, query string,
	where func(pieceTable) string) (out []string, err error) {
	t.Helper()
	for _, table := range tables {
		require.NoError(t, in.Exec(ctx,
			fmt.Sprintf("CREATE OR REPLACE VIEW %[1]s AS SELECT * EXCLUDE (place) FROM all_%[1]s WHERE %[2]s",
				table.name, where(table))))
	}
	rows, err := in.Query(ctx, "SELECT CAST(q AS VARCHAR) FROM ("+query+") AS q ORDER BY 1")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var row string
		require.NoError(t, rows.Scan(&row))
		out = append(out, row)
	}
	return out, rows.Err()
}

// query makes a SELECT of k, n and x.
func (g *queryMaker) query(depth int) string {
	if depth == 0 {
		return fmt.Sprintf("SELECT k, n, x FROM %s AS t(k, n, x)%s", g.of("a", "b", "c"),
			g.of("", "", " WHERE x > 1", " WHERE k = 'p'"))
	}
	from := func() string { return "(" + g.query(depth-1) + ")" }
	switch g.rng.IntN(14) {
	case 0, 1:
		return fmt.Sprintf("SELECT %s AS k, %s AS n, %s AS x FROM %s", g.of("k", "k", "k", "lower(k)",
			"coalesce(k, 'p')"),
			g.of("n", "n", "n + 1", "x"), g.of("x", "x * 2", "n"), from())
	case 2, 3:
		keys := g.of("k", "k", "k, n", "n, k", "n", "lower(k), k", "ROLLUP (k)", "GROUPING SETS ((k), (k, n))", "ALL")
		k, n := "k", "min(n)"
		if keys == "n" {
			k, n = "min(k)", "n"
		} else if strings.Contains(keys, "n") || keys == "ALL" {
			n = "n"
		}
		return fmt.Sprintf("SELECT %s AS k, %s AS n, CAST(%s AS BIGINT) AS x FROM %s GROUP BY %s%s", k, n,
			g.of("sum(x)", "count(*)", "max(x)", "count(DISTINCT x)"), from(), keys,
			g.of("", "", " HAVING count(*) > 1"))
	case 4:
		over := "(PARTITION BY " + g.of("k", "k", "k, n", "n", "lower(k)") + g.of("", " ORDER BY n") + ")"
		return fmt.Sprintf("SELECT k, n, CAST(%s OVER %s AS BIGINT) AS x FROM %s%s",
			g.of("sum(x)", "count(*)", "max(x)", "rank()"), over, from(),
			g.of("", "", " QUALIFY count(*) OVER (PARTITION BY "+g.of("k", "n", "k, n")+") > 1"))
	case 5:
		return fmt.Sprintf("SELECT DISTINCT %s FROM %s", g.of("k, n, x", "k, n, 0 AS x", "k, 1 AS n, x",
			"lower(k) AS k, n, x", "k AS k, k = 'p' AS n, x"), from())
	case 6, 7:
		return fmt.Sprintf("%s %s %s", "("+g.query(depth-1)+")", g.of("UNION ALL", "UNION ALL", "UNION", "EXCEPT",
			"EXCEPT ALL", "INTERSECT", "INTERSECT ALL", "UNION ALL BY NAME"), "("+g.query(depth-1)+")")
	case 8, 9:
		return g.join(from(), from())
	case 10:
		return fmt.Sprintf("SELECT l.k, l.n, l.x FROM %s AS l WHERE %s", from(), g.of(
			"EXISTS (SELECT 1 FROM "+from()+" AS r WHERE r.k = l.k)", "NOT EXISTS (SELECT 1 FROM "+from()+
				" AS r WHERE r.k IS NOT DISTINCT FROM l.k AND r.n = l.n)",
			"EXISTS (SELECT 1 FROM "+from()+" AS r WHERE r.n = l.n)", "l.n IN (SELECT n FROM "+from()+
				" AS r WHERE r.k = l.k)", "l.n NOT IN (SELECT n FROM "+from()+" AS r WHERE r.k = l.k)",
			"l.k IN (SELECT k FROM "+from()+")", "l.k NOT IN (SELECT k FROM "+from()+")",
			"l.x > (SELECT min(x) FROM "+from()+" AS r WHERE r.k = l.k AND r.n = l.n)", "l.n IN (VALUES (1), (2))",
			"EXISTS "+from()))
	case 11:
		return fmt.Sprintf("SELECT l.k, l.n, CAST((SELECT %s FROM %s AS r WHERE %s) AS BIGINT) AS x FROM %s AS l",
			g.of("max(r.x)", "count(*)", "sum(r.x + l.x)"), from(),
			g.of("r.k = l.k", "r.k IS NOT DISTINCT FROM l.k", "r.k = l.k AND r.n = l.n",
				"r.k = l.k AND r.n < l.n", "r.n = l.n", "true"), from())
	case 12:
		name := g.name()
		return fmt.Sprintf("WITH %[1]s AS (%[2]s) %[3]s", name, g.query(depth-1), g.join(name, g.of(name, from())))
	}
	return g.of(
		"SELECT k, n, unnest([x, n]) AS x FROM "+from(),
		"SELECT l.k, l.n, v.x FROM "+from()+" AS l "+g.of("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")+
			" (VALUES ('p', 1, 5), ('q', 2, 6)) AS v(k, n, x) ON l."+g.of("k = v.k", "n = v.n"),
		"SELECT k, n, x FROM "+from()+" ORDER BY ALL LIMIT 2",
		"SELECT 'p' AS k, 1 AS n, 2 AS x",
		"(SELECT 'p' AS k, 1 AS n, 2 AS x) UNION ALL ("+g.query(depth-1)+")")
}

// join meets two relations, by their keys or not.
func (g *queryMaker) join(left, right string) string {
	on := g.of("l.k = r.k", "l.k = r.k", "l.k = r.k AND l.n = r.n", "l.k = r.k AND l.n = r.n",
		"r.k IS NOT DISTINCT FROM l.k AND l.n < r.n", "l.k = r.k AND (l.x = 1 OR r.x = 2)", "l.n = r.n",
		"l.k = r.k OR l.n = r.n", "lower(l.k) = r.k")
	kind := g.of("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN")
	k, n := g.of("l.k", "l.k", "r.k", "coalesce(l.k, r.k)", "coalesce(r.k, l.k)"),
		g.of("l.n", "r.n", "coalesce(l.n, r.n)")
	x := "l.x"
	if kind == "SEMI JOIN" || kind == "ANTI JOIN" {
		return fmt.Sprintf("SELECT l.k, l.n, l.x FROM %s AS l %s %s AS r ON %s", left, kind, right, on)
	}
	if g.rng.IntN(4) == 0 {
		return fmt.Sprintf("SELECT %s AS k, %s AS n, %s AS x FROM %s AS l, %s AS r WHERE %s", k, n, x, left, right, on)
	}
	return fmt.Sprintf("SELECT %s AS k, %s AS n, %s AS x FROM %s AS l %s %s AS r ON %s", k, n, x, left, kind, right, on)
}
