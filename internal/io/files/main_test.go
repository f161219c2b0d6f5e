package files

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"thalweg/internal/base/document"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// openDB opens an instance of its own; its one connection serves all queries.
func openDB(t testing.TB, threads int) *sql.Conn {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	require.NoError(t, err)
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()); require.NoError(t, db.Close()) })
	require.NoError(t, engine.RegisterGo(conn))
	settings := []string{fmt.Sprintf("SET threads = %d", threads), "SET TimeZone = 'Asia/Kathmandu'"}
	statements := append(settings, expr.Macros(expr.TextBytes(0, 1))...)
	for _, s := range statements {
		_, err := conn.ExecContext(t.Context(), s)
		require.NoError(t, err)
	}
	return conn
}

// exec runs statements that must succeed.
func exec(t testing.TB, db *sql.Conn, statements ...string) {
	t.Helper()
	for _, s := range statements {
		_, err := db.ExecContext(t.Context(), s)
		require.NoError(t, err, s)
	}
}

// texts runs a query and returns its cells as text, NULL as "NULL".
func texts(ctx context.Context, db *sql.Conn, query string) ([][]string, error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var out [][]string
	for rows.Next() {
		cells := make([]sql.NullString, len(names))
		into := make([]any, len(names))
		for i := range cells {
			into[i] = &cells[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		row := make([]string, len(names))
		for i, c := range cells {
			row[i] = c.String
			if !c.Valid {
				row[i] = "NULL"
			}
		}
		out = append(out, row)
	}
	return out, rows.Err()
}

// writeFile writes a file into dir and returns its path.
func writeFile(t testing.TB, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// urls makes the reader's list of files.
func urls(paths ...string) []script.FileURL {
	out := make([]script.FileURL, len(paths))
	for i, p := range paths {
		out[i] = script.FileURL{URL: p, Pos: document.Pos{File: "s.yaml", Line: 10 + i, Col: 5}}
	}
	return out
}

// csvByHeader reads columns given as "header:type[:format[:default]]".
func csvByHeader(columns string, paths ...string) *script.FileReader {
	r := &script.FileReader{URLs: urls(paths...), CSV: script.CSVReader{Separator: ',', ByHeader: true}}
	for c := range strings.SplitSeq(columns, " ") {
		p := append(strings.Split(c, "|"), "", "", "")
		typ, _ := expr.ParseType(p[1])
		r.Columns = append(r.Columns, &script.InputColumn{Name: "f_" + p[0], Header: p[0], Type: typ, Format: p[2],
			Default: p[3],
			Pos:     document.Pos{File: "s.yaml", Line: 20, Col: 7}})
	}
	return r
}

// csvTexts reads the first n columns as text, without a header.
func csvTexts(n int, paths ...string) *script.FileReader {
	r := &script.FileReader{URLs: urls(paths...), CSV: script.CSVReader{Separator: ',', HeaderRecord: -1}}
	for i := range n {
		r.Columns = append(r.Columns, &script.InputColumn{Name: fmt.Sprintf("f%d", i), Index: i, Type: expr.String})
	}
	return r
}

// readAll plans, prepares and reads all batches one after the other.
func readAll(t testing.TB, db *sql.Conn, r *script.FileReader, targetBytes int64, batches int,
	how Rows) ([][]string, error) {
	t.Helper()
	plan, err := PlanSlices(t.Context(), r, targetBytes, batches)
	if err != nil {
		return nil, err
	}
	var out [][]string
	for _, slices := range plan {
		rows, err := readSlices(t, db, r, slices, how)
		if err != nil {
			return nil, err
		}
		out = append(out, rows...)
	}
	return out, nil
}

// readSlices reads one batch; a failure is the one that Diagnose makes of it.
func readSlices(t testing.TB, db *sql.Conn, r *script.FileReader, slices []Slice, how Rows) ([][]string, error) {
	t.Helper()
	scratch, err := os.MkdirTemp(t.TempDir(), "scratch [*]")
	require.NoError(t, err)
	query, prepare, err := ReadSQL(r, slices, scratch, how)
	if err != nil {
		return nil, err
	}
	if err := prepare(t.Context()); err != nil {
		return nil, err
	}
	rows, err := texts(t.Context(), db, "SELECT CAST(COLUMNS(*) AS VARCHAR) FROM "+query)
	if err != nil {
		return nil, Diagnose(t.Context(), db, r, slices, scratch, err)
	}
	return rows, nil
}
