package database_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/io/database"
)

// pairs is the target of the tests below: a table with the columns k and v.
func pairs(s server, mode string) database.Target {
	t := database.Target{URL: s.url, Table: "x", Mode: mode,
		Columns: []database.TargetColumn{{Name: "k", Type: "int", Nullable: true}, {Name: "v", Type: "int",
			Nullable: true}}}
	if mode == database.Merge {
		t.Key = []string{"k"}
	}
	return t
}

// Rows that a table leaves out without an error fail, and nothing has changed.
func TestRowsThatAreLost(t *testing.T) {
	t.Parallel()
	const (
		table    = "CREATE TABLE x (k int PRIMARY KEY, v int); INSERT INTO x VALUES (1, 0), (9, 9); "
		sqliteNo = " ON x WHEN NEW.k = 2 BEGIN SELECT RAISE(IGNORE); END"
		drop     = "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF NEW.k = 2 THEN RETURN NULL; " +
			"END IF; RETURN NEW; END'; "
		pgNo = " ON x FOR EACH ROW EXECUTE FUNCTION no()"
		two  = "2,5\n3,6\n"
		one  = "table x has kept 1 of the 2 rows that were written to it"
	)
	for _, c := range []struct {
		kind, name, make, mode, rows, refused string
	}{
		{"SQLite", "NULL", "CREATE TABLE x (k INT NOT NULL ON CONFLICT IGNORE, v INT)", database.Append,
			"1,5\n,6\n2,7\n", "row 2 of what is written: SQLite: constraint failed: NOT NULL constraint failed: x.k"},
		{"SQLite", "NULL in place of rows",
			"CREATE TABLE x (k INT NOT NULL ON CONFLICT IGNORE, v INT); INSERT INTO x VALUES (1, 0)", database.Replace,
			"1,5\n,6\n2,7\n", "row 2 of what is written"},
		{"SQLite", "NULL that becomes something",
			"CREATE TABLE x (k INT NOT NULL ON CONFLICT REPLACE DEFAULT 99, v INT)",
			database.Append, "1,5\n,6\n", "row 2 of what is written"},
		{"SQLite", "NULL to merge",
			"CREATE TABLE x (k INT PRIMARY KEY, v INT NOT NULL ON CONFLICT IGNORE); INSERT INTO x VALUES (1, 0)",
			database.Merge, "1,5\n2,\n", "NOT NULL constraint failed: x.v"},
		{"SQLite", "a key that is there",
			"CREATE TABLE x (k INT PRIMARY KEY ON CONFLICT IGNORE, v INT); INSERT INTO x VALUES (1, 0)",
			database.Append,
			"1,5\n", "row 1 of what is written: SQLite: constraint failed: UNIQUE constraint failed: x.k"},
		{"SQLite", "a key that goes",
			"CREATE TABLE x (k INT PRIMARY KEY ON /* */ CONFLICT REPLACE, v INT); INSERT INTO x VALUES (1, 0)",
			database.Append, "1,5\n", "row 1 of what is written"},
		{"SQLite", "another row that goes",
			"CREATE TABLE x (k INT PRIMARY KEY, v INT UNIQUE ON CONFLICT REPLACE); INSERT INTO x VALUES (7, 5)",
			database.Merge, "1,5\n", "UNIQUE constraint failed: x.v"},
		{"SQLite", "a check", "CREATE TABLE x (k INT, v INT, CHECK (v > 0) ON CONFLICT IGNORE)", database.Append,
			"1,5\n2,0\n", "CHECK constraint failed"},
		{"SQLite", "a trigger", table + "CREATE TRIGGER t BEFORE INSERT" + sqliteNo, database.Append, two, one},
		{"SQLite", "a trigger when replacing", table + "CREATE TRIGGER t BEFORE INSERT" + sqliteNo,
			database.Replace, two, one},
		{"SQLite", "a trigger when merging", table + "CREATE TRIGGER t BEFORE INSERT" + sqliteNo,
			database.Merge, two, one},
		{"SQLite", "a trigger of changes", table + "CREATE TRIGGER t BEFORE UPDATE ON x BEGIN SELECT " +
			"RAISE(IGNORE); END", database.Merge, "1,5\n3,6\n", one},
		{"SQLite", "a trigger that keeps rows", table + "CREATE TRIGGER t BEFORE DELETE ON x BEGIN SELECT " +
			"RAISE(IGNORE); END", database.Replace, two, "table x still has rows after all were removed"},
		{"SQLite", "a view", "CREATE TABLE y (k int, v int); CREATE VIEW x AS SELECT * FROM y; CREATE TRIGGER t " +
			"INSTEAD OF INSERT" + " ON x WHEN NEW.k <> 2 BEGIN INSERT INTO y VALUES (NEW.k, NEW.v); END",
			database.Append, two, one},
		{"PostgreSQL", "a trigger", table + drop + "CREATE TRIGGER t BEFORE INSERT" + pgNo, database.Append, two, one},
		{"PostgreSQL", "a trigger when replacing", table + drop + "CREATE TRIGGER t BEFORE INSERT" + pgNo,
			database.Replace, two, one},
		{"PostgreSQL", "a trigger of an empty table", table + drop + "DELETE FROM x; CREATE TRIGGER t BEFORE INSERT" +
			pgNo, database.Replace, two, one},
		{"PostgreSQL", "a trigger when merging", table + drop + "CREATE TRIGGER t BEFORE INSERT" + pgNo,
			database.Merge, two, one},
		{"PostgreSQL", "a trigger of changes", table + "INSERT INTO x VALUES (2, 0); " + drop +
			"CREATE TRIGGER t BEFORE UPDATE" + pgNo, database.Merge, two, one},
		{"PostgreSQL", "a trigger that keeps rows",
			table + "CREATE TABLE other (k int REFERENCES x); CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql " +
				"AS 'BEGIN RETURN NULL; END'; CREATE TRIGGER t BEFORE DELETE" + pgNo, database.Replace, two,
			"table x still has rows after all were removed"},
		{"PostgreSQL", "a rule", table + "CREATE RULE r AS ON INSERT TO x WHERE NEW.k = 2 DO INSTEAD NOTHING",
			database.Replace, two, one},
		{"PostgreSQL", "a view",
			"CREATE TABLE y (k int, v int); CREATE VIEW x AS SELECT * FROM y; CREATE RULE r AS ON " +
				"INSERT TO x DO INSTEAD NOTHING", database.Append, two, "table x has kept 0 of the 2 rows"},
		{"MariaDB", "an engine without transactions",
			"CREATE TABLE y (k int, v int) ENGINE = MyISAM; CREATE TABLE x (k int, v int) ENGINE = MRG_MyISAM " +
				"UNION = (y)", database.Append, two, "has no transactions"},
	} {
		t.Run(c.kind+" "+c.name, func(t *testing.T) {
			t.Parallel()
			s := serverOf(t, c.kind)
			s.exec(t, c.make)
			before := valuesOf(t, s, "SELECT k, v FROM x ORDER BY k")
			_, err := stage(t, pairs(s, c.mode), "1", 1, c.rows)
			require.ErrorContains(t, err, c.refused)
			require.Contains(t, []fault.Kind{fault.UserData, fault.Script}, fault.Of(err).Kind, "it is the user's")
			require.NotEmpty(t, fault.Of(err).Place.File)
			require.Equal(t, before, valuesOf(t, s, "SELECT k, v FROM x ORDER BY k"))
		})
	}
}

// Rows that a server does not count are no lost ones if the table has them.
func TestRowsThatAreThereAlready(t *testing.T) {
	t.Parallel()
	const table = "CREATE TABLE x (k int PRIMARY KEY, v int); INSERT INTO x VALUES (2, 5); "
	for _, c := range []struct{ kind, name, make, mode, rows, want string }{
		{"SQLite", "merged", table, database.Merge, "2,5\n3,\n", "2,5\n3,\n"},
		{"PostgreSQL", "merged", table, database.Merge, "2,5\n3,\n", "2,5\n3,\n"},
		{"MariaDB", "merged", table, database.Merge, "2,5\n3,\n", "2,5\n3,\n"},
		{"SQLite", "a trigger of useless changes",
			table + "CREATE TRIGGER t BEFORE UPDATE ON x WHEN NEW.v IS OLD.v BEGIN SELECT RAISE(IGNORE); END",
			database.Merge, "2,5\n3,\n", "2,5\n3,\n"},
		{"PostgreSQL", "a trigger of useless changes",
			table + "CREATE TRIGGER t BEFORE UPDATE ON x FOR EACH ROW EXECUTE FUNCTION " +
				"suppress_redundant_updates_trigger()", database.Merge, "2,5\n3,\n", "2,5\n3,\n"},
		{"SQLite", "a view", "CREATE TABLE y (k int, v int); CREATE VIEW x AS SELECT * FROM y; CREATE TRIGGER t " +
			"INSTEAD OF INSERT ON x BEGIN INSERT INTO y VALUES (NEW.k, NEW.v); END", database.Append,
			"2,5\n3,\n", "2,5\n3,\n"},
		{"SQLite", "a trigger that overlooks what it has",
			table + "CREATE TABLE seen (k int UNIQUE); CREATE TRIGGER t AFTER INSERT ON x BEGIN INSERT OR IGNORE " +
				"INTO seen VALUES (1); END", database.Append, "3,6\n4,7\n", "2,5\n3,6\n4,7\n"},
		{"PostgreSQL", "partitions",
			"CREATE TABLE x (k int, v int) PARTITION BY RANGE (k); CREATE TABLE a PARTITION OF x FOR VALUES FROM (0) " +
				"TO (3); CREATE TABLE b PARTITION OF x DEFAULT", database.Append, "2,5\n3,\n", "2,5\n3,\n"},
		{"PostgreSQL", "a view", "CREATE TABLE y (k int, v int); CREATE VIEW x AS SELECT * FROM y", database.Replace,
			"2,5\n3,\n", "2,5\n3,\n"},
	} {
		t.Run(c.kind+" "+c.name, func(t *testing.T) {
			t.Parallel()
			s := serverOf(t, c.kind)
			s.exec(t, c.make)
			write(t, pairs(s, c.mode), "1", 1, c.rows)
			require.Equal(t, c.want, valuesOf(t, s, "SELECT k, v FROM x ORDER BY k"))
		})
	}
	// A key alone changes nothing where it is there.
	for _, k := range kinds() {
		t.Run(k.name+" a key alone", func(t *testing.T) {
			t.Parallel()
			s := k.server(t)
			s.exec(t, "CREATE TABLE x (k varchar(9) PRIMARY KEY"+
				map[bool]string{true: " COLLATE NOCASE"}[k.name == "SQLite"]+"); INSERT INTO x VALUES ('A'), ('b')")
			to := database.Target{URL: s.url, Table: "x", Mode: database.Merge, Key: []string{"k"},
				Columns: []database.TargetColumn{{Name: "k", Type: "string"}}}
			write(t, to, "1", 1, "\"A\"\n\"c\"\n")
			require.Equal(t, "A\nb\nc\n", valuesOf(t, s, "SELECT k FROM x ORDER BY k"))
			if k.name == "SQLite" {
				write(t, to, "2", 1, "\"B\"\n\"d\"\n")
				require.Equal(t, "A\nb\nc\nd\n", valuesOf(t, s, "SELECT k FROM x ORDER BY k"))
			}
		})
	}
}
