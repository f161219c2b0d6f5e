package files

import (
	"database/sql"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/lang/script"
)

// What whole runs, which this package's own tests cannot start, need of them.

// WriteRoundTable draws a table and writes it to path; null stands for NULL in it.
func WriteRoundTable(t *testing.T, db *sql.Conn, rnd *rand.Rand, path string) (w *script.FileWriter, null string) {
	t.Helper()
	table := drawTable(rnd, path)
	query, err := WriteSQL(table.w, table.sql(), path)
	require.NoError(t, err)
	exec(t, db, query.SQL())
	return table.w, table.null
}

var OpenDB = openDB
