package query

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestProblems has the text that is marked, and what is said of it, for
// queries that a node may not have.
func TestProblems(t *testing.T) {
	t.Parallel()
	describe := open(t)
	for _, tt := range []struct{ query, marked, message, hint string }{
		{"SELECT", "SELECT", "SELECT has no columns", "SELECT *"},
		{"SELECT id\nFROMM orders o x", "FROMM", "not understood", "FROM"},
		{"", "", "one query that only reads", ""},
		{"SELECT 1; SELECT 2", "SELECT", "one query that only reads", ""},
		{"DROP TABLE orders", "DROP", "one query that only reads", "write one SELECT"},
		{"COPY orders TO 'x'", "COPY", "one query that only reads", ""},
		{"ATTACH 'x.db'", "ATTACH", "one query that only reads", ""},
		{"INSTALL httpfs", "INSTALL", "one query that only reads", ""},
		{"PRAGMA database_list", "PRAGMA", "one query", ""},
		{"SET threads = 4", "SET", "one query that only reads", ""},
		{"SELECT idd FROM orders", "idd", `no column "idd"`, `did you mean "id"?`},
		{"SELECT 'é', o.amout FROM orders o", "o", "does not have a column", `did you mean "amount"?`},
		{"SELECT x.id FROM orders o", "x", "FROM names no table", "alias"},
		{"SELECT id FROM order_s", "order_s", `no table "order_s"`, `did you mean "orders"?`},
		{"SELECT id FROM customers", "customers", "no table", "add it to r.tables"},
		{"SELECT id FROM main.orders", "main", "by their names alone", ""},
		{"SELECT * FROM information_schema.tables", "information_schema", "by their names alone", ""},
		{"SELECT * FROM duckdb_settings()", "duckdb_settings", "cannot read from", "scan_file"},
		{"SELECT * FROM read_csv('/etc/passwd')", "read_csv", "cannot read from", "scan_file"},
		{"SELECT * FROM read_text('/etc/passwd')", "read_text", "cannot read from", ""},
		{"SELECT * FROM glob('/etc/*')", "glob", "cannot read from", ""},
		{"SELECT * FROM query('SELECT 1')", "query", "cannot read from", ""},
		{"SELECT * FROM query_table('orders')", "query_table", "cannot read from", ""},
		{"SELECT * FROM '/etc/passwd'", "'/etc/passwd'", "no table", "scan_file('/etc/passwd')"},
		{"SELECT * FROM (DESCRIBE orders)", "orders", "describes nothing", ""},
		{"SELECT getenv('HOME')", "getenv", "no function", ""},
		{"SELECT random()", "random", "something else in each run", "compute it from the row"},
		{"SELECT id, now() FROM orders", "now", "something else in each run", "parameter of the script"},
		{"SELECT current_date", "current_date", "something else in each run", "parameter"},
		{"SELECT CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP", "something else", ""},
		{"SELECT current_setting('threads')", "current_setting", "something else", ""},
		{"SELECT id FROM orders WHERE bought > ago(INTERVAL 1 DAY)", "ago", "something else", "parameter"},
		{"SELECT id, rowid FROM orders", "rowid", `no column "rowid"`, ""},
		{"SELECT sql FROM (WITH duckdb_tables AS (SELECT 1) SELECT 1), duckdb_tables", "duckdb_tables",
			"is DuckDB's own", "another name"},
		{"SELECT age(bought) FROM orders", "age", "something else", ""},
		{"SELECT uuid()", "uuid", "something else", ""},
		{"SELECT nextval('x')", "nextval", "something else", ""},
		{"SELECT max(weight, id) AS m FROM orders", "max", "how many values \"max\" gives", "write a number"},
		{"SELECT min_by(id, weight, id) AS m FROM orders", "min_by", "how many values \"min_by\" gives",
			"write a number"},
		{"SELECT histogram(weight) AS m FROM orders", "histogram", "histogram counts a NaN", "GROUP BY"},
		{"SELECT * FROM orders USING SAMPLE 3", "*", "a sample differs", ""},
		{"SELECT * FROM orders TABLESAMPLE 10%", "orders", "a sample differs", ""},
		{"SELECT id FROM orders WHERE id = $1", "$", "takes no parameters", ""},
		{"SELECT id FROM orders LIMIT 3", "3", "LIMIT without ORDER BY", "add ORDER BY"},
		{"SELECT * FROM (SELECT id FROM orders LIMIT 3)", "3", "LIMIT without ORDER BY", ""},
		{"SELECT DISTINCT ON (customer) * FROM orders", "customer", "DISTINCT ON without ORDER BY", ""},
		{"SELECT first(id) FROM orders", "first", "without ORDER BY takes any row", "ORDER BY"},
		{"SELECT * FROM orders POSITIONAL JOIN items", "POSITIONAL", "depends on the order", ""},
		{"SELECT id, sum(amount) FROM orders", "id", "neither in GROUP BY", "any_value"},
		{"SELECT sum(customer) FROM orders", "sum", "sum does not take a text", "CAST"},
		{"SELECT scan_file('x')", "scan_file", "is a table", "FROM"},
		{"FROM scan_file()", "(", "needs the address", ""},
		{"FROM scan_file('a' || 'b')", "'a'", "known before the query runs", ""},
		{"FROM scan_file('a.csv', separator := 'xx')", "'xx'", "cannot separate", ""},
		{"FROM scan_file('a.csv', format := 'xml')", "'xml'", "no format", "csv or parquet"},
		{"FROM scan_file('a.csv', header := 'x')", "'x'", "no such argument", ""},
		{"FROM scan_file('/nowhere/a.csv')", "'/nowhere/a.csv'", "does not exist", ""},
	} {
		t.Run(tt.query, func(t *testing.T) {
			info, problems := describe(t, tt.query)
			require.Nil(t, info)
			require.NotEmpty(t, problems)
			p := problems[0]
			require.Contains(t, p.Message, tt.message)
			require.Contains(t, p.Hint, tt.hint)
			require.Equal(t, tt.marked, tt.query[p.Start:p.End], "%s", p.Message)
		})
	}
}

// TestAllProblemsAtOnce: what can be found without binding is found together.
func TestAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	describe := open(t)
	_, problems := describe(t, "SELECT random(), now() FROM nope, orders LIMIT 3")
	require.Len(t, problems, 4)
}

// TestAccepted lists what a query may do.
func TestAccepted(t *testing.T) {
	t.Parallel()
	describe := open(t)
	for _, query := range []string{
		"SELECT 1 AS x;",
		"FROM orders -- all of it",
		"VALUES (1, 'a')",
		"WITH orders AS (SELECT * FROM orders WHERE id > 1) SELECT * FROM orders JOIN items ON order_id = id",
		"WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT * FROM t",
		"SELECT user FROM items",
		`SELECT "current_date" FROM (SELECT 1 AS "current_date")`,
		"SELECT o.id, x FROM orders o, unnest([1, 2]) AS u(x), range(3)",
		"SELECT id FROM orders UNION SELECT order_id FROM items ORDER BY 1 LIMIT 3",
		"SELECT DISTINCT ON (customer) * FROM orders ORDER BY customer, amount",
		"SELECT error('x') FROM orders WHERE EXISTS (SELECT 1 FROM items WHERE order_id = id)",
		"SELECT list_transform([1], lambda x: x + 1) AS l FROM orders",
		"SELECT customer, count(*) FROM orders GROUP BY ALL HAVING count(*) > 1 ORDER BY count(*)",
		"PIVOT (SELECT customer, paid, amount FROM orders) ON paid IN (true, false) USING sum(amount)",
		"SELECT * FROM orders ASOF JOIN items ON id >= order_id",
		"SELECT $$now() ' \"$$, 'current_date', e'\\'(' FROM orders /* random( /* nested */ */",
	} {
		t.Run(query, func(t *testing.T) {
			info, problems := describe(t, query)
			require.Empty(t, problems)
			require.NotNil(t, info)
		})
	}
}

// TestScanFile takes the columns off headers and footers.
func TestScanFile(t *testing.T) {
	t.Parallel()
	describe := open(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "it's.csv")
	require.NoError(t, os.WriteFile(path, []byte("\xEF\xBB\xBFid;full name\n1;a\n"), 0o600))
	quoted := strings.ReplaceAll(path, "'", "''")
	info, problems := describe(t, `SELECT scan_file.id, b."full name" FROM scan_file('`+quoted+
		`', separator := ';') JOIN scan_file('`+quoted+`', separator = ';') AS b USING (id) ORDER BY b."full name"`)
	require.Empty(t, problems)
	require.Len(t, info.Files, 2)
	require.Equal(t, byte(';'), info.Files[0].Reader.CSV.Separator)
	require.Equal(t, "full name", info.Files[0].Reader.Columns[1].Header)
	require.Contains(t, info.SQL, "FROM __0.scan_file")
	require.Contains(t, info.SQL, "JOIN __1.scan_file")
	require.NotContains(t, info.SQL, dir)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "twice.csv"), []byte("a,A\n1,2\n"), 0o600))
	_, problems = describe(t, "FROM scan_file('"+dir+"/twice.csv')")
	require.Contains(t, problems[0].Message, "two columns")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "no.parquet"), []byte("PAR1"), 0o600))
	_, problems = describe(t, "FROM scan_file('"+dir+"/no.parquet')")
	require.NotEmpty(t, problems)
}
