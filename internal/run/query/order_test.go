package query

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSettledChoices shows how a query is rewritten so that its result does not
// depend on the order in which rows arrive, and when that cannot be.
func TestSettledChoices(t *testing.T) {
	t.Parallel()
	describe := open(t)
	for _, tt := range []struct {
		query, want string
		oneThread   bool
	}{
		{"SELECT sum(amount) AS s FROM orders", "SELECT sum(amount) AS s FROM orders", false},
		{"SELECT sum(id) AS s, avg(amount) AS a, min(weight) AS m FROM orders",
			"SELECT sum(id) AS s, avg(amount) AS a, min(weight) AS m FROM orders", false},
		{"SELECT sum(weight) AS s FROM orders", "SELECT sum(weight ORDER BY (weight)) AS s FROM orders", false},
		{"SELECT stddev(amount) AS s FROM orders", "SELECT stddev(amount ORDER BY (amount)) AS s FROM orders", false},
		{"SELECT sum(DISTINCT weight) FILTER (WHERE paid) AS s FROM orders",
			"SELECT sum(DISTINCT weight ORDER BY (weight)) FILTER (WHERE paid) AS s FROM orders", false},
		{"SELECT string_agg(customer, ', ') AS s FROM orders",
			"SELECT string_agg(customer, ', ' ORDER BY (customer)) AS s FROM orders", false},
		{"SELECT string_agg(customer, ',' ORDER BY id DESC) AS s FROM orders",
			"SELECT string_agg(customer, ',' ORDER BY id DESC, (customer)) AS s FROM orders", false},
		{"SELECT arg_max(customer, amount) AS s FROM orders",
			"SELECT arg_max(customer, amount ORDER BY (amount), (customer)) AS s FROM orders", false},
		{"SELECT first(customer ORDER BY id) AS s FROM orders",
			"SELECT first(customer ORDER BY id, (customer)) AS s FROM orders", false},
		{"SELECT id, row_number() OVER (PARTITION BY customer ORDER BY id ROWS UNBOUNDED PRECEDING) AS n FROM " +
			"orders AS o",
			`SELECT id, row_number() OVER (PARTITION BY customer ORDER BY id, "o"  ROWS UNBOUNDED PRECEDING) AS n FROM orders AS o`, false},
		{"SELECT lag(id) OVER () AS n FROM orders JOIN items ON id = order_id",
			`SELECT lag(id) OVER ( ORDER BY "orders", "items" ) AS n FROM orders JOIN items ON id = order_id`, false},
		{"SELECT geomean(weight) AS g, weighted_avg(weight, id) AS w FROM orders",
			"SELECT geomean(weight) AS g, weighted_avg(weight, id) AS w FROM orders", true},
		{"SELECT customer COLLATE NOCASE AS c FROM orders GROUP BY 1",
			"SELECT customer COLLATE NOCASE AS c FROM orders GROUP BY 1", true},
		{"SELECT rank() OVER (ORDER BY amount) AS n FROM orders",
			"SELECT rank() OVER (ORDER BY amount) AS n FROM orders", false},
		{"SELECT id, row_number() OVER w AS n FROM orders WINDOW w AS (ORDER BY amount)",
			"SELECT id, row_number() OVER w AS n FROM orders WINDOW w AS (ORDER BY amount)", true},
		{"SELECT customer, row_number() OVER (ORDER BY sum(amount)) AS n FROM orders GROUP BY customer",
			"SELECT customer, row_number() OVER (ORDER BY sum(amount)) AS n FROM orders GROUP BY customer", true},
		{"SELECT sum(amount) OVER (ORDER BY id) AS n FROM orders",
			"SELECT sum(amount) OVER (ORDER BY id) AS n FROM orders", false},
		{"SELECT sum(amount) OVER (ORDER BY id ROWS 1 PRECEDING) AS n FROM orders",
			"SELECT sum(amount) OVER (ORDER BY id ROWS 1 PRECEDING) AS n FROM orders", true},
		{"SELECT sum(weight) OVER (ORDER BY id) AS n FROM orders",
			"SELECT sum(weight) OVER (ORDER BY id) AS n FROM orders", true},
		{"SELECT id, customer FROM orders ORDER BY amount + 1 DESC LIMIT 3",
			"SELECT id, customer FROM orders ORDER BY amount + 1 DESC, 1, 2 LIMIT 3", false},
		{"(SELECT id, customer FROM orders ORDER BY amount)", "(SELECT id, customer FROM orders ORDER BY amount, 1, 2)",
			false},
		{"SELECT id FROM orders ORDER BY ALL", "SELECT id FROM orders ORDER BY ALL", false},
		{"SELECT id FROM (SELECT * FROM orders o ORDER BY amount LIMIT 3)",
			`SELECT id FROM (SELECT * FROM orders o ORDER BY amount, "o" LIMIT 3)`, false},
		{"SELECT * FROM (SELECT customer FROM orders GROUP BY customer ORDER BY count(*) LIMIT 3)",
			"SELECT * FROM (SELECT customer FROM orders GROUP BY customer ORDER BY count(*) LIMIT 3)", true},
		{"SELECT * FROM (SELECT id FROM orders ORDER BY id)", "SELECT * FROM (SELECT id FROM orders ORDER BY id)",
			false},
	} {
		t.Run(tt.query, func(t *testing.T) {
			info, problems := describe(t, tt.query)
			require.Empty(t, problems)
			require.Equal(t, tt.want, info.SQL)
			require.Equal(t, tt.oneThread, info.OneThread)
		})
	}
}
