package expr_test

import (
	"database/sql"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"
	"github.com/stretchr/testify/require"

	"thalweg/internal/lang/expr"
	"thalweg/internal/run/engine"
)

// openDB opens an in-memory DuckDB with the macros and the functions written in Go, on one thread.
func openDB(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	require.NoError(t, err)
	db.SetMaxOpenConns(1) // macros are per connection
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	require.NoError(t, engine.RegisterGo(conn))
	require.NoError(t, conn.Close())
	for _, m := range append([]string{"SET threads = 1"}, expr.Macros(expr.TextBytes(0, 1))...) {
		_, err := db.Exec(m)
		require.NoError(t, err, m)
	}
	return db
}

// compile parses and checks src.
func compile(t testing.TB, src string, scope expr.Scope, mode expr.Mode) *expr.Compiled {
	t.Helper()
	e, err := expr.Parse(src)
	require.NoError(t, err, src)
	c, err := e.Check(scope, mode)
	require.NoError(t, err, src)
	return c
}
