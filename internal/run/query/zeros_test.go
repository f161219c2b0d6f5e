package query

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/run/engine"
	"thalweg/internal/test/effort"
)

// zeroRows are rows of orders whose weights are 0, -0, two NaNs and small
// numbers; products of weight and amount have zeros of both signs.
func zeroRows() []string {
	var rows []string
	for i := range 60 {
		weight := []string{"0", "-0", "nan", "-nan", "2", "0", "-0"}[i%7]
		rows = append(rows, fmt.Sprintf("(%d, 'c%d', %d, CAST('%s' AS DOUBLE), %t, TIMESTAMP '2024-01-01')", i%5, i%3,
			1-i%2*2, weight, i%3 == 0))
	}
	return rows
}

// overZeros gives what runs a query over the rows in several orders and on
// several threads, and requires that all give the same. It reports whether the
// query can be bound, and whether it needs one thread: then it is not run.
func overZeros(t *testing.T) func(t *testing.T, query string) (bound, whole bool) {
	t.Helper()
	ctx, describe := context.Background(), open(t)
	var orders []*engine.Instance
	for try := range effort.Of(2, 4, 20) {
		rows := zeroRows()
		orders = append(orders, shuffled(ctx, t, rows, rand.New(rand.NewPCG(5, uint64(try))).
			Perm(len(rows)), 1+3*(try%2)))
	}
	return func(t *testing.T, query string) (bound, whole bool) {
		t.Helper()
		info, problems := describe(t, query)
		if len(problems) > 0 || info.OneThread {
			return len(problems) == 0, len(problems) == 0
		}
		want := ""
		for i, in := range orders {
			got, err := rowsOf(ctx, t, in, info.SQL, info.Sorted)
			if err != nil {
				return false, false // such as a quantile of 2
			}
			if i == 0 {
				want = got
			}
			require.Equal(t, want, got, "%s\n%s", query, info.SQL)
		}
		return true, false
	}
}

// TestZerosAndNaNsOfAggregates tries all aggregates of DuckDB on floats that
// are equal and not the same.
func TestZerosAndNaNsOfAggregates(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	in, err := engine.OpenInstance(ctx, engine.InstanceConfig{Threads: 1,
		SpillDir: filepath.Join(t.TempDir(), "spill")})
	require.NoError(t, err)
	defer func() { require.NoError(t, in.Close()) }()
	list, err := in.Query(ctx,
		"SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type = 'aggregate' ORDER BY 1")
	require.NoError(t, err)
	defer list.Close()
	run := overZeros(t)
	tried := map[string]bool{}
	for list.Next() {
		var name string
		require.NoError(t, list.Scan(&name))
		for _, args := range []string{"%s", "%s, 0.5", "%s, id", "id, %s", "%s, 2", "%s, id, 2", "CAST(%s AS FLOAT)"} {
			for _, float := range []string{"weight", "weight * amount", "weight / weight"} {
				bound, whole := run(t, fmt.Sprintf("SELECT customer, CAST(%s("+args+
					") AS VARCHAR) AS v FROM orders GROUP BY customer", name, float))
				require.False(t, whole, name)
				if !bound {
					break
				}
				tried[name] = true
			}
		}
	}
	require.NoError(t, list.Err())
	for _, name := range []string{"min", "max", "median", "mode", "quantile_disc", "quantile_cont", "approx_quantile",
		"any_value", "arg_min", "arg_max_null", "list", "string_agg", "max_by", "mad", "sum", "product", "count"} {
		require.True(t, tried[name], name)
	}
}

// TestChosenZeros are queries that choose between floats which are equal and
// not the same: the result does not tell which, or no two threads make it.
func TestChosenZeros(t *testing.T) {
	t.Parallel()
	const computed = "(SELECT *, weight * amount AS x FROM orders)"
	run := overZeros(t)
	for _, tt := range []struct {
		query string
		whole bool // it runs on one thread
	}{
		{"SELECT CAST(weight AS VARCHAR) AS v, count(*) AS n FROM orders GROUP BY weight", false},
		{"SELECT CAST(x AS VARCHAR) AS v, count(*) AS n FROM " + computed + " GROUP BY x", true},
		{"SELECT 1 / x AS v FROM (SELECT DISTINCT x FROM " + computed + ")", true},
		{"SELECT 1 / x AS v FROM (SELECT x FROM " + computed + " UNION SELECT weight FROM orders)", true},
		{"SELECT 1 / x AS v FROM (SELECT x FROM " + computed + " INTERSECT SELECT weight FROM orders)", true},
		{"SELECT 1 / weight AS v FROM (SELECT weight FROM orders INTERSECT SELECT weight FROM orders WHERE paid)",
			false},
		{"SELECT 1 / a.x AS v FROM " + computed + " AS a JOIN " + computed + " AS b ON a.x = b.x", true},
		{"SELECT 1 / a.weight AS v FROM orders AS a JOIN orders AS b ON a.weight = b.weight", false},
		{"SELECT 1 / lag(x) OVER (ORDER BY id) AS v FROM " + computed + " AS s", true},
		{"SELECT id, weight / amount AS v, row_number() OVER (PARTITION BY customer ORDER BY weight / amount DESC) " +
			"AS n FROM orders", false},
		{"SELECT 1 / min(x) OVER (PARTITION BY customer) AS v, max(x) OVER (PARTITION BY paid)::VARCHAR AS m FROM " +
			computed, false},
		{"SELECT 1 / x AS v FROM (SELECT x FROM " + computed + " AS s ORDER BY x LIMIT 9)", true},
		{"SELECT x + 0 AS v FROM (SELECT x FROM " + computed + " AS s ORDER BY x LIMIT 9)", false},
		{"SELECT list({'a': x})::VARCHAR AS v FROM " + computed, true},
		{"SELECT customer, sum(weight) / sum(amount) AS v, max(weight * 2) AS m, 1 / min(weight * amount) AS i FROM " +
			"orders GROUP BY customer", false},
		{"SELECT mode() WITHIN GROUP (ORDER BY weight) AS v FROM orders", true},
		{"SELECT max(customer) AS v, max(weight * amount)::VARCHAR AS w, max(amount) AS d FROM orders", false},
		{"WITH s AS MATERIALIZED (SELECT weight * amount AS x FROM orders) SELECT (SELECT 1 / max(x) FROM s) AS v, " +
			"(SELECT 1 / min(x) FROM s) AS w", false},
		{"WITH s AS MATERIALIZED (SELECT weight * amount AS x FROM orders) SELECT 1 / x AS v FROM s GROUP BY x", true},
	} {
		t.Run(tt.query, func(t *testing.T) {
			bound, whole := run(t, tt.query)
			require.True(t, bound)
			require.Equal(t, tt.whole, whole)
		})
	}
}
