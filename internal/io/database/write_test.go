package database_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/io/database"
	"thalweg/internal/test/effort"
)

// kinds are the databases, and how a quoted name looks there.
func kinds() []struct {
	name   string
	server func(*testing.T) server
} {
	return []struct {
		name   string
		server func(*testing.T) server
	}{{"PostgreSQL", postgres}, {"MariaDB", mariadb}, {"SQLite", sqlite}}
}

// serverOf is a server of a kind.
func serverOf(t *testing.T, kind string) server {
	t.Helper()
	for _, k := range kinds() {
		if k.name == kind {
			return k.server(t)
		}
	}
	t.Fatalf("there is no database %s", kind)
	return server{}
}

var columns = []database.TargetColumn{{Name: "id", Type: "int"}, {Name: "name", Type: "string", Nullable: true},
	{Name: "price", Type: "decimal2", Nullable: true}}

func target(s server, mode string) database.Target {
	t := database.Target{URL: s.url, Table: "goods", Mode: mode, Columns: columns}
	if mode == database.Merge {
		t.Key = []string{"id"}
	}
	return t
}

// stage begins to write rows.
func stage(t *testing.T, target database.Target, run string, attempt int64, rows string) (database.Staged, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows")
	require.NoError(t, os.WriteFile(path, []byte(rows), 0o600))
	return database.Client{}.Stage(t.Context(), target, database.Attempt{Run: run, Node: "n", Attempt: attempt,
		Digest: rows, Rows: rowsIn(rows)}, path)
}

// rowsIn counts lines; those within quotes are none.
func rowsIn(text string) (n int64) {
	quoted := false
	for _, r := range text {
		switch {
		case r == '"':
			quoted = !quoted
		case r == '\n' && !quoted:
			n++
		}
	}
	return n
}

func write(t *testing.T, target database.Target, run string, attempt int64, rows string) {
	t.Helper()
	s, err := stage(t, target, run, attempt, rows)
	require.NoError(t, err)
	require.NoError(t, s.Publish(t.Context()))
	require.NoError(t, s.Publish(t.Context()))
	require.NoError(t, s.Discard(t.Context()))
}

func goods(t *testing.T, s server) string {
	t.Helper()
	snapshot, err := database.Client{}.Snapshot(t.Context(), s.url)
	require.NoError(t, err)
	defer snapshot.Close()
	text, _ := csvOf(t, snapshot,
		database.Source{URL: s.url, Query: "SELECT id, name, price FROM goods ORDER BY id, name"})
	return text[strings.Index(text, "\n")+1:]
}

func TestModes(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			s := k.server(t)
			write(t, target(s, database.Merge), "1", 1, "1,\"a\"\"\\,\n\",1.50\n2,,\n3,\"\",0.00\n")
			require.Equal(t, "1,\"a\"\"\\,\n\",1.50\n2,,\n3,\"\",0.00\n", goods(t, s))
			write(t, target(s, database.Merge), "2", 1, "2,\"two\",2.00\n4,\"four\",\n")
			require.Equal(t, "1,\"a\"\"\\,\n\",1.50\n2,two,2.00\n3,\"\",0.00\n4,four,\n", goods(t, s))
			write(t, target(s, database.Append), "3", 1, "5,\"five\",5.00\n")
			require.Equal(t, 5, strings.Count(goods(t, s), ".")+1)
			write(t, target(s, database.Replace), "4", 1, "7,\"x\",-0.01\n")
			require.Equal(t, "7,x,-0.01\n", goods(t, s))
			write(t, target(s, database.Replace), "5", 1, "")
			require.Empty(t, goods(t, s))
			write(t, target(s, database.Replace), "6", 1, "8,\"y\",1.00\n")
			require.Equal(t, "8,y,1.00\n", goods(t, s))
			_, err := stage(t, target(s, database.Merge), "7", 1, "9,\"a\",\n9,\"b\",\n")
			require.ErrorContains(t, err, "several rows have the key id = 9")
			require.Equal(t, fault.UserData, fault.Of(err).Kind)
		})
	}
}

// Whatever becomes of an attempt, its rows are there once, or not at all.
func TestExactlyOnce(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			s := k.server(t)
			to := target(s, database.Append)
			write(t, to, "0", 1, "0,\"\",\n")
			dropped, err := stage(t, to, "1", 1, "1,\"\",\n")
			require.NoError(t, err)
			require.Equal(t, "0,\"\",\n", goods(t, s), "nobody sees rows that are not committed")
			require.NoError(t, dropped.Discard(t.Context()))
			require.Equal(t, "0,\"\",\n", goods(t, s))
			write(t, to, "1", 2, "1,\"\",\n")
			write(t, to, "1", 3, "1,\"\",\n") // of a process that did not see the commit
			require.Equal(t, "0,\"\",\n1,\"\",\n", goods(t, s))
			write(t, to, "2", 1, "2,\"\",\n") // another run
			require.Equal(t, "0,\"\",\n1,\"\",\n2,\"\",\n", goods(t, s))
			_, err = stage(t, to, "1", 4, "5,\"\",\n")
			require.ErrorContains(t, err, "appended other rows")
			write(t, target(s, database.Replace), "3", 2, "3,\"\",\n")
			_, err = stage(t, target(s, database.Replace), "3", 1, "4,\"\",\n")
			require.ErrorContains(t, err, "a later attempt", "one that was thought dead does not undo it")
			require.Equal(t, "3,\"\",\n", goods(t, s))
		})
	}
}

// Two attempts whose rows lie there at the same time: one of them counts.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	for _, k := range kinds()[:2] { // SQLite has one writer at a time
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			s := k.server(t)
			to := target(s, database.Append)
			write(t, to, "0", 1, "0,\"\",\n")
			first, err := stage(t, to, "1", 1, "1,\"\",\n")
			require.NoError(t, err)
			second, err := stage(t, to, "1", 2, "1,\"\",\n")
			require.NoError(t, err)
			require.NoError(t, second.Publish(t.Context()))
			require.NoError(t, first.Publish(t.Context()), "it finds that it is done")
			require.Equal(t, "0,\"\",\n1,\"\",\n", goods(t, s))
		})
	}
}

// An attempt that commits between another one's look at the records and its commit is not
// forgotten: the other one's rows are taken back.
func TestCommitBehindTheLook(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{database.Append, database.Replace, database.Merge} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := postgres(t)
			write(t, target(s, database.Merge), "0", 1, "0,\"\",\n")
			to := target(s, mode)
			to.Table = "late"
			late, err := stage(t, to, "1", 1, "1,\"\",\n")
			require.NoError(t, err)
			// Lets others look, and makes them wait when they change something.
			ctx := t.Context()
			conn, err := pgconn.Connect(ctx, s.url)
			require.NoError(t, err)
			defer conn.Close(context.Background())
			do := func(sql string) {
				t.Helper()
				_, err := conn.Exec(ctx, sql).ReadAll()
				require.NoError(t, err, sql)
			}
			do("BEGIN; LOCK TABLE thalweg_commits IN SHARE ROW EXCLUSIVE MODE")
			done := make(chan error, 1)
			go func() { done <- late.Publish(ctx) }()
			require.Eventually(t, func() bool {
				got := conn.ExecParams(ctx, "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = "+
					"'thalweg_commits'::regclass", nil, nil, nil, nil).Read()
				return got.Err == nil && len(got.Rows) > 0
			}, effort.Patience, 10*time.Millisecond)
			do("INSERT INTO thalweg_commits (run, node, batch, attempt, rows_written, digest) VALUES ('1', 'n > " +
				"late', 0, 2, 1, '1,\"\",\n'); COMMIT")
			require.Error(t, <-done)
			require.NoError(t, late.Discard(ctx))
			got := conn.ExecParams(ctx, "SELECT attempt, to_regclass('late') IS NULL FROM thalweg_commits "+
				"WHERE run = '1'", nil, nil, nil, nil).Read()
			require.NoError(t, got.Err)
			require.Equal(t, [][][]byte{{[]byte("2"), []byte("t")}}, got.Rows)
		})
	}
}

func TestTablesThatDoNotFit(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			s := k.server(t)
			s.exec(t, "CREATE TABLE goods (id bigint, price real, more bigint NOT NULL)")
			_, err := stage(t, target(s, database.Append), "1", 1, "1,,\n")
			require.ErrorContains(t, err, "it has no column name")
			require.ErrorContains(t, err, "column price is")
			require.ErrorContains(t, err, "its column more must have a value")
			require.Equal(t, fault.Script, fault.Of(err).Kind)
			s.exec(t, "DROP TABLE goods")
			s.exec(t, map[string]string{"SQLite": "CREATE TABLE goods (id bigint, name text, price text)"}[k.name]+
				map[bool]string{true: "CREATE TABLE goods (id bigint, name varchar(3), price " +
					"decimal(30,4))"}[k.name != "SQLite"])
			_, err = stage(t, target(s, database.Merge), "1", 1, "1,,\n")
			require.ErrorContains(t, err, "no unique index on id")
			index, _, _ := strings.Cut(fault.Of(err).Hint, ", or")
			s.exec(t, index+"; DROP INDEX "+strings.Fields(index)[3]+
				map[bool]string{true: " ON goods"}[k.name == "MariaDB"])
			if k.name != "SQLite" {
				_, err = stage(t, target(s, database.Append), "1", 1, "1,\"long\",\n")
				require.Equal(t, fault.UserData, fault.Of(err).Kind, "%v", err)
			}
			write(t, target(s, database.Append), "1", 1, "1,\"abc\",9.99\n")
		})
	}
}

func TestWritingIsCancelled(t *testing.T) {
	t.Parallel()
	s := sqlite(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := database.Client{}.Stage(ctx, target(s, database.Append), database.Attempt{Run: "1"}, "none")
	require.Equal(t, fault.Canceled, fault.Of(err).Kind)
}

// Names that differ in small and large letters only are the same in SQLite and MySQL: no
// column can be added that is called so.
func TestNamesInOtherLetters(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			s := k.server(t)
			quote := map[bool]string{true: "`", false: `"`}[k.name == "MariaDB"]
			s.exec(t, "CREATE TABLE goods ("+quote+"ID"+quote+" bigint NOT NULL, name varchar(9), price text)")
			to := target(s, database.Append)
			to.Columns = to.Columns[:2]
			_, err := stage(t, to, "1", 1, "1,\n")
			require.ErrorContains(t, err, "column id is called ID there: write columns: [{ID: r.id}]")
			require.NotContains(t, err.Error(), "must have a value")
		})
	}
}

// A text stays what it is: 007 would be 7 in a number, and yes true.
func TestTextsKeepTheirBytes(t *testing.T) {
	t.Parallel()
	s := postgres(t)
	to := database.Target{URL: s.url, Table: "texts", Mode: database.Append,
		Columns: []database.TargetColumn{{Name: "a", Type: "string"}}}
	for kind, ok := range map[string]bool{
		"text": true, "varchar(3)": true, "json": true, "uuid": true, "inet": true, "text[]": true,
		"int": false, "smallint": false, "bigint": false, "numeric": false, "float8": false, "boolean": false,
		"char(3)": false, "bytea": false,
		"date": false, "time": false, "timestamptz": false, "interval": false, "bit(3)": false, "money": false,
	} {
		s.exec(t, "DROP TABLE IF EXISTS texts; CREATE TABLE texts (a "+kind+")")
		staged, err := stage(t, to, kind, 1, "")
		if !ok {
			require.ErrorContains(t, err, "does not hold every string", kind)
			continue
		}
		require.NoError(t, err, kind)
		require.NoError(t, staged.Discard(t.Context()))
	}
}

// Rows are merged by an index of just the key's columns, whatever their names are.
func TestKeysOfTables(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			s := k.server(t)
			quote := map[bool]string{true: "`", false: `"`}[k.name == "MariaDB"]
			to := database.Target{URL: s.url, Table: "keys", Mode: database.Merge, Key: []string{"B", "a", "c,d"}}
			for _, name := range append(to.Key, "x") {
				to.Columns = append(to.Columns, database.TargetColumn{Name: name, Type: "int", Nullable: name == "x"})
			}
			quoted := strings.NewReplacer("'", quote)
			for index, ok := range map[string]bool{"('B', 'a', 'c,d')": true, "('a', 'c,d')": false,
				"('a', 'B', 'c,d', 'x')": false, "('c,d', 'B', 'a')": true} {
				s.exec(t, quoted.Replace("DROP TABLE IF EXISTS 'keys'"))
				s.exec(t, quoted.Replace("CREATE TABLE 'keys' ('B' bigint NOT NULL, 'a' bigint NOT NULL, 'c,d' "+
					"bigint NOT NULL, 'x' bigint)"))
				s.exec(t, quoted.Replace("CREATE UNIQUE INDEX i ON 'keys' "+index))
				staged, err := stage(t, to, index, 1, "1,2,3,4\n")
				if !ok {
					require.ErrorContains(t, err, "no unique index", index)
					continue
				}
				require.NoError(t, err, index)
				require.NoError(t, staged.Publish(t.Context()))
			}
		})
	}
}
