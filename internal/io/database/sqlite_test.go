package database_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/io/database"
)

// Times stay what they are in columns that SQLite declares as such.
func TestDeclaredTimesOfSQLite(t *testing.T) {
	t.Parallel()
	s := sqlite(t)
	s.exec(t, "CREATE TABLE goods (d DATE UNIQUE, at DATETIME, i TIMESTAMP, n NUMERIC)")
	to := database.Target{URL: s.url, Table: "goods", Mode: database.Append}
	for name, kind := range map[string]string{"d": "date", "at": "datetime", "i": "timestamptz"} {
		to.Columns = []database.TargetColumn{{Name: name, Type: kind, Nullable: true}}
		rows := map[string]string{"date": "0001-01-01\n2024-02-29\n9999-12-31\n",
			"datetime":    "2024-01-31 10:00:00\n2024-01-31 10:00:00.25\n",
			"timestamptz": "2024-01-01 00:00:00+00\n2024-01-01 00:00:00.123456+00\n"}[kind]
		write(t, to, name, 1, rows)
		if kind == "timestamptz" {
			rows = "2024-01-01T00:00:00Z\n2024-01-01T00:00:00.123456Z\n"
		}
		require.Equal(t, rows, valuesOf(t, s, "SELECT "+name+" FROM goods WHERE "+name+" IS NOT NULL"))
	}
	to.Columns = []database.TargetColumn{{Name: "d", Type: "date"}, {Name: "at", Type: "datetime", Nullable: true}}
	to.Mode, to.Key = database.Merge, []string{"d"}
	write(t, to, "m", 1, "2024-02-29,2024-01-31 00:00:00\n")
	require.Equal(t, "2024-01-31 00:00:00\n", valuesOf(t, s, "SELECT at FROM goods WHERE d = '2024-02-29'"))
	to.Columns, to.Mode, to.Key = []database.TargetColumn{{Name: "n", Type: "date"}}, database.Append, nil
	_, err := stage(t, to, "n", 1, "2024-02-29\n")
	require.ErrorContains(t, err, "column n is NUMERIC there, which does not hold every date; TEXT does")
}
