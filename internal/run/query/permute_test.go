package query

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/run/engine"
	"thalweg/internal/test/effort"
)

// TestResultsDoNotDependOnTheOrderOfRows runs rewritten queries over the same
// rows in several orders, and on several threads.
func TestResultsDoNotDependOnTheOrderOfRows(t *testing.T) {
	t.Parallel()
	describe := open(t)
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(1, 2))
	var rows []string
	for i := range 3000 {
		// Weights of very different sizes: their sums show the order. Few
		// customers and amounts: many ties.
		rows = append(rows, fmt.Sprintf("(%d, 'c%d', %d.25, %g, %t, TIMESTAMP '2024-01-01' + INTERVAL %d DAY)",
			i%700, i%13, i%5, rng.NormFloat64()*1e9/float64(1+i%97*i%89), i%3 == 0, i%40))
	}
	for _, query := range []string{
		"SELECT customer, sum(weight) AS s, avg(weight) AS a, stddev(weight) AS d, product(weight) AS p FROM orders " +
			"GROUP BY customer",
		"SELECT customer, string_agg(id, ',') AS ids, list(amount ORDER BY paid)[1:9]::VARCHAR AS l, " +
			"string_agg(DISTINCT id, ';') AS u FROM orders GROUP BY customer",
		"SELECT customer, arg_max(id, amount) AS x, min_by(weight, amount) AS n, any_value(bought) AS v, " +
			"mode(amount) AS m, first(id ORDER BY amount) AS f FROM orders GROUP BY customer",
		"SELECT id, customer, row_number() OVER (PARTITION BY customer ORDER BY amount) AS n, lag(weight) OVER " +
			"(ORDER BY amount) AS l, ntile(7) OVER () AS t FROM orders",
		"SELECT id, customer, sum(amount) OVER (PARTITION BY customer ORDER BY bought) AS s, avg(id) OVER (PARTITION " +
			"BY paid ORDER BY amount GROUPS 2 PRECEDING) AS a FROM orders",
		"SELECT id, weight FROM orders ORDER BY amount LIMIT 50",
		"SELECT * FROM (SELECT id, weight FROM orders ORDER BY amount DESC LIMIT 50)",
		"SELECT DISTINCT ON (customer) customer, id, weight FROM orders ORDER BY customer, amount",
		"SELECT corr(weight, id) AS c, covar_pop(weight, amount) AS p, regr_slope(weight, id) AS r, sum(weight) " +
			"FILTER (WHERE paid) AS f FROM orders",
	} {
		t.Run(query, func(t *testing.T) {
			info, problems := describe(t, query)
			require.Empty(t, problems)
			require.False(t, info.OneThread)
			want := ""
			for try := range effort.Of(2, 4, 4) {
				order := rand.New(rand.NewPCG(3, uint64(try))).Perm(len(rows))
				got, err := rowsOf(ctx, t, shuffled(ctx, t, rows, order, 1+3*(try%2)), info.SQL, info.Sorted)
				require.NoError(t, err)
				if want == "" {
					want = got
				}
				require.Equal(t, want, got)
			}
		})
	}
}

// shuffled is an instance with rows of the table orders in some order, as
// package plan has them for a query.
func shuffled(ctx context.Context, t *testing.T, rows []string, order []int, threads int) *engine.Instance {
	t.Helper()
	in, err := engine.OpenInstance(ctx, engine.InstanceConfig{Threads: threads, MemoryBytes: 64 << 20,
		SpillDir: filepath.Join(t.TempDir(), "spill")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, in.Close()) })
	inOrder := make([]string, len(rows))
	for i, k := range order {
		inOrder[i] = rows[k]
	}
	require.NoError(t, in.Exec(ctx,
		"CREATE TABLE rows (id BIGINT, customer VARCHAR, amount DECIMAL(18,2), weight DOUBLE, paid BOOLEAN, bought "+
			"TIMESTAMP)"))
	require.NoError(t, in.Exec(ctx, "INSERT INTO rows VALUES "+strings.Join(inOrder, ", ")))
	require.NoError(t, in.Exec(ctx,
		"CREATE VIEW orders AS SELECT * REPLACE (thalweg_unsigned(weight) AS weight) FROM rows"))
	return in
}

// rowsOf gives the rows of a query as text, sorted unless the query does it.
func rowsOf(ctx context.Context, t *testing.T, in *engine.Instance, query string, sorted bool) (string, error) {
	t.Helper()
	if !sorted {
		query = "SELECT * FROM (" + query + ") ORDER BY ALL"
	}
	result, err := in.Query(ctx, query)
	if err != nil {
		return "", err
	}
	defer result.Close()
	columns, err := result.Columns()
	require.NoError(t, err)
	var out strings.Builder
	for result.Next() {
		cells := make([]any, len(columns))
		ptrs := make([]any, len(columns))
		for i := range cells {
			ptrs[i] = &cells[i]
		}
		require.NoError(t, result.Scan(ptrs...))
		fmt.Fprintln(&out, cells...)
	}
	return out.String(), result.Err()
}
