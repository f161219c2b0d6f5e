package database_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/io/database"
	"thalweg/internal/test/effort"
)

// valuesOf returns the rows of a query as CSV, without the header.
func valuesOf(t *testing.T, s server, query string) string {
	t.Helper()
	snapshot, err := database.Client{}.Snapshot(t.Context(), s.url)
	require.NoError(t, err)
	defer snapshot.Close()
	text, _ := csvOf(t, snapshot, database.Source{URL: s.url, Query: query})
	return strings.ReplaceAll(text[strings.Index(text, "\n")+1:], ",0\n", "\n")
}

// What a table does not take as it is, is refused with its row, and nothing has changed: no
// server cuts blanks off, takes a text for a place in an enum, or keeps rows that refer to none.
func TestRowsThatAreRefused(t *testing.T) {
	t.Parallel()
	text := []database.TargetColumn{{Name: "v", Type: "string", Nullable: true}}
	number := []database.TargetColumn{{Name: "v", Type: "int", Nullable: true}}
	for _, c := range []struct {
		kind, name, make string
		columns          []database.TargetColumn
		mode             string
		rows, refused    string
	}{
		{"PostgreSQL", "blanks", "CREATE TABLE x (v varchar(5))", text, database.Append, "\"a    \"\n\"abcde   \"\n",
			`row 2 of what is written: column v: a text of 8 characters is too long for character varying(5): "abcde   "`},
		{"PostgreSQL", "blanks to merge", "CREATE TABLE x (v varchar(5) PRIMARY KEY)", text, database.Merge,
			"\"é\"\n\"éééé  \"\n", "row 2"},
		{"PostgreSQL", "a name", "CREATE TABLE x (v name)", text, database.Append, "\"a\"\n", "column v is name there"},
		{"PostgreSQL", "money", "CREATE TABLE x (v money)", text, database.Append, "\"1.005\"\n",
			"column v is money there"},
		{"PostgreSQL", "a reference",
			"CREATE TABLE p (v bigint PRIMARY KEY); INSERT INTO p VALUES (1); CREATE TABLE x (v bigint REFERENCES p)",
			number, database.Append, "1\n2\n", "violates foreign key"},
		{"PostgreSQL", "a late reference",
			"CREATE TABLE p (v bigint PRIMARY KEY); INSERT INTO p VALUES (1); CREATE TABLE x (v bigint REFERENCES p " +
				"DEFERRABLE INITIALLY DEFERRED)", number, database.Append, "1\n2\n", "violates foreign key"},
		{"PostgreSQL", "a late key", "CREATE TABLE x (v bigint UNIQUE DEFERRABLE)", number, database.Merge, "1\n",
			"no unique index on v"},
		{"PostgreSQL", "a cascade",
			"CREATE TABLE x (v bigint PRIMARY KEY); INSERT INTO x VALUES (5); CREATE TABLE other (v bigint " +
				"REFERENCES x ON DELETE CASCADE); INSERT INTO other VALUES (5)", number, database.Replace, "5\n",
			"other refers to them"},
		{"PostgreSQL", "rows that are referred to",
			"CREATE TABLE x (v bigint PRIMARY KEY); INSERT INTO x VALUES (5); CREATE TABLE other (v bigint " +
				"REFERENCES x); INSERT INTO other VALUES (5)", number, database.Replace, "5\n", "violates foreign key"},
		{"MariaDB", "blanks", "CREATE TABLE x (v varchar(5))", text, database.Append, "\"a    \"\n\"abcde   \"\n",
			`row 2 of what is written: column v: a text of 8 characters is too long for varchar(5): "abcde   "`},
		{"MariaDB", "blanks to merge", "CREATE TABLE x (v varchar(5) PRIMARY KEY)", text, database.Merge,
			"\"é\"\n\"éééé  \"\n", "row 2"},
		{"MariaDB", "blanks of a text", "CREATE TABLE x (v tinytext)", text, database.Append,
			"\"a\"\n\"" + strings.Repeat("x", 255) + " \"\n", "row 2"},
		{"MariaDB", "a place in an enum", "CREATE TABLE x (v enum('b','a','3'))", text, database.Append,
			"\"3\"\n\"1\"\n", `row 2 of what is written: column v: "1" is none of the values of enum('b','a','3')`},
		{"MariaDB", "a number far behind", "CREATE TABLE x (v tinyint)", number, database.Append,
			strings.Repeat("1\n", 1233) + "300\n", "row 1234 of what is written: MySQL: Out of range value " +
				"for column 'v'"},
		{"MariaDB", "a key that is there", "CREATE TABLE x (v bigint PRIMARY KEY); INSERT INTO x VALUES (5)", number,
			database.Append, "4\n5\n", "row 2 of what is written: MySQL: Duplicate entry"},
		{"MariaDB", "a reference",
			"CREATE TABLE p (v bigint PRIMARY KEY); INSERT INTO p VALUES (1); CREATE TABLE x (v bigint, FOREIGN KEY " +
				"(v) REFERENCES p (v))", number, database.Append, "1\n2\n", "row 2"},
		{"MariaDB", "a generated column", "CREATE TABLE x (a bigint, v bigint AS (a) STORED)", number,
			database.Append, "1\n", "has been ignored"},
		{"MariaDB", "a cascade",
			"CREATE TABLE x (v bigint PRIMARY KEY); INSERT INTO x VALUES (5); CREATE TABLE other (v " +
				"bigint, FOREIGN KEY (v) REFERENCES x (v) ON DELETE SET NULL); INSERT INTO other VALUES (5)", number,
			database.Replace, "5\n", "other refers to them"},
		{"MariaDB", "a number that is rounded", "CREATE TABLE x (v double(5,2))",
			[]database.TargetColumn{{Name: "v", Type: "float", Nullable: true}}, database.Append, "1.2345\n",
			"column v is double(5,2) there"},
		{"MariaDB", "a view", "CREATE TABLE y (v bigint); CREATE VIEW x AS SELECT v FROM y", number,
			database.Append, "1\n", "x is a view"},
		{"MariaDB", "a number that would be made up", "CREATE TABLE x (v bigint AUTO_INCREMENT PRIMARY KEY)", number,
			database.Append, "7\n\n", "row 2 of what is written: column v: it is NULL"},
		{"SQLite", "a number that would be made up", "CREATE TABLE x (v INTEGER PRIMARY KEY)", number, database.Append,
			"7\n\n", "row 2 of what is written: column v: it is NULL"},
		{"SQLite", "a number that would be made up to replace",
			"CREATE TABLE x (v INTEGER PRIMARY KEY); INSERT INTO x VALUES (5)", number, database.Replace, "7\n\n",
			"row 2 of what is written: column v: it is NULL"},
		{"SQLite", "a check", "CREATE TABLE x (v TEXT CHECK (length(v) < 6))", text, database.Append,
			"\"a\"\n\"abcdef\"\n", "row 2 of what is written: SQLite"},
		{"SQLite", "a check that ends the transaction", "CREATE TABLE x (v TEXT UNIQUE ON CONFLICT ROLLBACK)", text,
			database.Append, "\"a\"\n\"b\"\n\"a\"\n", "UNIQUE constraint failed"},
		{"SQLite", "a reference",
			"CREATE TABLE p (v INTEGER PRIMARY KEY); INSERT INTO p VALUES (1); CREATE TABLE x (v INTEGER REFERENCES p)",
			number, database.Append, "1\n2\n", "FOREIGN KEY"},
		{"SQLite", "a cascade", "CREATE TABLE x (v INTEGER PRIMARY KEY); INSERT INTO x VALUES (5); CREATE TABLE " +
			"other (v INTEGER REFERENCES x ON DELETE CASCADE); INSERT INTO other VALUES (5)", number,
			database.Replace, "5\n", "other refers to them"},
		{"SQLite", "texts that the key takes for equal", "CREATE TABLE x (v TEXT COLLATE NOCASE PRIMARY KEY)", text,
			database.Merge, "\"a\"\n\"A\"\n", "several rows have the key v"},
	} {
		t.Run(c.kind+" "+c.name, func(t *testing.T) {
			t.Parallel()
			s := map[string]func(*testing.T) server{"PostgreSQL": postgres, "MariaDB": mariadb, "SQLite": sqlite}[c.kind](t)
			s.exec(t, c.make)
			before := valuesOf(t, s, "SELECT v FROM x")
			to := database.Target{URL: s.url, Table: "x", Mode: c.mode, Columns: c.columns}
			if c.mode == database.Merge {
				to.Key = []string{"v"}
			}
			staged, err := stage(t, to, "1", 1, c.rows)
			if err == nil {
				err = staged.Publish(t.Context())
				require.NoError(t, staged.Discard(t.Context()))
			}
			require.ErrorContains(t, err, c.refused)
			f := fault.Of(err)
			require.Contains(t, []fault.Kind{fault.UserData, fault.Script}, f.Kind, "it is the user's")
			require.False(t, f.Retryable)
			require.Equal(t, before, valuesOf(t, s, "SELECT v FROM x"))
		})
	}
}

// A key is what comes: no server numbers rows by itself where a key is NULL or 0, in a table
// that is made for the rows either.
func TestKeysAreNotMadeUp(t *testing.T) {
	t.Parallel()
	number := []database.TargetColumn{{Name: "v", Type: "int", Nullable: true}}
	for kind, open := range map[string]func(*testing.T) server{"PostgreSQL": postgres, "MariaDB": mariadb,
		"SQLite": sqlite} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			to := database.Target{URL: s.url, Table: "made", Mode: database.Merge, Key: []string{"v"}, Columns: number}
			staged, err := stage(t, to, "1", 1, "2\n\n5\n")
			if err == nil {
				err = staged.Publish(t.Context())
				require.NoError(t, staged.Discard(t.Context()))
			}
			require.Error(t, err)
			require.Equal(t, fault.UserData, fault.Of(err).Kind, err)
			if kind == "MariaDB" {
				s.exec(t, "CREATE TABLE counted (v bigint AUTO_INCREMENT PRIMARY KEY)")
				staged, err := stage(t, database.Target{URL: s.url, Table: "counted", Mode: database.Append,
					Columns: number}, "2",
					1, "0\n7\n")
				require.NoError(t, err)
				require.NoError(t, staged.Publish(t.Context()))
				require.Equal(t, "0\n7\n", valuesOf(t, s, "SELECT v FROM counted ORDER BY v"))
			}
		})
	}
}

// Rows are replaced where the table cannot be emptied at once.
func TestReplacingOneByOne(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, make string }{
		{"a table that others refer to",
			"CREATE TABLE x (v bigint PRIMARY KEY); INSERT INTO x VALUES (5); CREATE TABLE other (v bigint " +
				"REFERENCES x)"},
		{"rows that others refer to, looked at late",
			"CREATE TABLE x (v bigint PRIMARY KEY); INSERT INTO x VALUES (1); CREATE TABLE other (v bigint " +
				"REFERENCES x DEFERRABLE INITIALLY DEFERRED); INSERT INTO other VALUES (1)"},
		{"a view", "CREATE TABLE y (v bigint); INSERT INTO y VALUES (5); CREATE VIEW x AS SELECT v FROM y"},
		{"an empty view", "CREATE TABLE y (v bigint); CREATE VIEW x AS SELECT v FROM y"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := postgres(t)
			s.exec(t, c.make)
			to := database.Target{URL: s.url, Table: "x", Mode: database.Replace,
				Columns: []database.TargetColumn{{Name: "v", Type: "int"}}}
			write(t, to, "1", 1, "1\n2\n")
			require.Equal(t, "1\n2\n", valuesOf(t, s, "SELECT v FROM x ORDER BY v"))
			to.Mode = database.Append
			write(t, to, "2", 1, "3\n")
			require.Equal(t, "1\n2\n3\n", valuesOf(t, s, "SELECT v FROM x ORDER BY v"))
		})
	}
}

// An attempt that was thought dead commits while the next one has begun: the rows are there once.
func TestTwoReplaceAnEmptyTable(t *testing.T) {
	t.Parallel()
	for _, k := range kinds()[:2] { // SQLite has one writer at a time
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			s := k.server(t)
			s.exec(t, "CREATE TABLE goods (id bigint, name text, price decimal(18,2))")
			to := target(s, database.Replace)
			write(t, target(s, database.Append), "0", 1, "")
			first, err := stage(t, to, "1", 1, "1,\"\",\n")
			require.NoError(t, err)
			done := make(chan error, 1)
			go func() {
				second, err := stage(t, to, "1", 2, "1,\"\",\n")
				if err == nil {
					err = second.Publish(t.Context())
				}
				done <- err
			}()
			waiting := map[string]string{"PostgreSQL": "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = " +
				"current_database() AND wait_event_type = 'Lock'",
				"MariaDB": "SELECT count(*) AS n FROM information_schema.processlist WHERE db = database() AND state " +
					"= 'User lock'"}[k.name]
			require.Eventually(t, func() bool { return len(done) > 0 || valuesOf(t, s, waiting) == "1\n" },
				effort.Patience, time.Millisecond)
			require.NoError(t, first.Publish(t.Context()))
			require.NoError(t, <-done)
			require.Equal(t, "1,\"\",\n", goods(t, s))
		})
	}
}

// Instants are kept to the microsecond, in tables that are made and in those that are there.
func TestInstants(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			s := k.server(t)
			s.exec(t, map[string]string{"PostgreSQL": "CREATE TABLE y (v timestamptz)",
				"MariaDB": "CREATE TABLE y (v timestamp(6) NULL)", "SQLite": "CREATE TABLE y (v TEXT)"}[k.name])
			want := map[string]string{"PostgreSQL": "2024-01-01 00:00:00.123456+00\n\n",
				"MariaDB": "2024-01-01 00:00:00.123456\n\n", "SQLite": "2024-01-01T00:00:00.123456Z\n\n"}[k.name]
			for _, table := range []string{"x", "y"} {
				to := database.Target{URL: s.url, Table: table, Mode: database.Append,
					Columns: []database.TargetColumn{{Name: "v", Type: "timestamptz", Nullable: true}}}
				write(t, to, "1", 1, "2024-01-01 00:00:00.123456+00\n\n")
				require.Equal(t, want, valuesOf(t, s, "SELECT v FROM "+table+" ORDER BY v IS NULL, v"))
			}
		})
	}
}
