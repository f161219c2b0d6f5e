package database_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/io/database"
	"thalweg/internal/test/effort"
)

// server is a database of its own for one test.
type server struct {
	url  string
	exec func(t *testing.T, sql string)
}

// name is one that no other test has.
func name(t *testing.T) string {
	return strings.ToLower(fmt.Sprintf("t%d_%x", os.Getpid(), time.Now().UnixNano()))
}

// postgres makes a database on the server of THALWEG_TEST_POSTGRES.
func postgres(t *testing.T) server {
	t.Helper()
	at := os.Getenv("THALWEG_TEST_POSTGRES")
	if at == "" {
		t.Skip("THALWEG_TEST_POSTGRES names no server: scripts/test starts one")
	}
	run := func(t *testing.T, at, sql string) {
		t.Helper()
		conn, err := pgconn.Connect(context.Background(), at)
		require.NoError(t, err)
		defer conn.Close(context.Background())
		_, err = conn.Exec(context.Background(), sql).ReadAll()
		require.NoError(t, err, sql)
	}
	db := name(t)
	run(t, at, "CREATE DATABASE "+db)
	t.Cleanup(func() { run(t, at, "DROP DATABASE "+db+" WITH (FORCE)") })
	u, err := url.Parse(at)
	require.NoError(t, err)
	u.Path = "/" + db
	return server{url: u.String(), exec: func(t *testing.T, sql string) { t.Helper(); run(t, u.String(), sql) }}
}

// mariadb makes a database on the server of THALWEG_TEST_MYSQL.
func mariadb(t *testing.T) server {
	t.Helper()
	at := os.Getenv("THALWEG_TEST_MYSQL")
	if at == "" {
		t.Skip("THALWEG_TEST_MYSQL names no server: scripts/test starts one")
	}
	u, err := url.Parse(at)
	require.NoError(t, err)
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr, cfg.MultiStatements = u.User.Username(), "tcp", u.Host, true
	cfg.Passwd, _ = u.User.Password()
	run := func(t *testing.T, sql2 string) {
		t.Helper()
		connector, err := mysql.NewConnector(cfg)
		require.NoError(t, err)
		db := sql.OpenDB(connector)
		defer db.Close()
		_, err = db.ExecContext(context.Background(), sql2)
		require.NoError(t, err, sql2)
	}
	db := name(t)
	run(t, "CREATE DATABASE "+db+" CHARACTER SET utf8mb4")
	cfg.DBName = db
	t.Cleanup(func() { run(t, "DROP DATABASE "+db) })
	u.Path = "/" + db
	return server{url: u.String(), exec: func(t *testing.T, sql string) { t.Helper(); run(t, sql) }}
}

func sqlite(t *testing.T) server {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.db")
	return server{url: "sqlite://" + path, exec: func(t *testing.T, text string) {
		t.Helper()
		db, err := sql.Open("sqlite", path)
		require.NoError(t, err)
		defer db.Close()
		_, err = db.Exec(text)
		require.NoError(t, err, text)
	}}
}

func csvOf(t *testing.T, snapshot database.Snapshot, src database.Source) (string, int64) {
	t.Helper()
	var out bytes.Buffer
	rows, err := snapshot.Copy(t.Context(), src, &out)
	require.NoError(t, err)
	return out.String(), rows
}

func typesOf(t *testing.T, src database.Source) string {
	t.Helper()
	columns, err := database.Client{}.Columns(t.Context(), src)
	require.NoError(t, err)
	var out []string
	for _, c := range columns {
		text := c.Name + " " + c.Type
		if c.Required {
			text += " required"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// NULL is nothing and an empty text "", also where a column is alone; values have the types that hold them.
func TestCopy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind                string
		server              func(*testing.T) server
		make, types, values string
	}{
		{"PostgreSQL", postgres,
			`CREATE TABLE rows (id bigint NOT NULL, name text, n numeric(30,10), f real, b boolean, d date,
				at timestamptz, raw bytea);
			INSERT INTO rows VALUES (1, E'a "q",\n\\N', 0.0000000001, 1.1, true, '0001-01-01',
			'2024-01-01 01:00:00.5+01', '\x00ff'), (2, '', NULL, 'NaN', NULL, NULL, NULL, ''), (3, NULL, -1, NULL,
			false, 'infinity', NULL, NULL)`,
			"id int required, name string, n decimal(30,10), f float, b bool, d date, at datetime, raw string",
			"1,\"a \"\"q\"\",\n\\N\",0.0000000001,1.1,t,0001-01-01,2024-01-01 " +
				"00:00:00.5+00,\\x00ff\n2,\"\",,NaN,,,,\\x\n3,,-1.0000000000,,f,infinity,,\n"},
		{"MariaDB", mariadb, "CREATE TABLE `rows` (id bigint NOT NULL, name text, n decimal(30,10), f float, d date, " +
			"at datetime(3), raw varbinary(9), u bigint unsigned); " +
			"INSERT INTO `rows` VALUES (1, 'a \"q\",\n\\\\N', 0.0000000001, 1.2345678, '1000-01-01', '2024-01-01 " +
			"00:00:00.5', x'00ff', 18446744073709551615), (2, '', NULL, NULL, NULL, NULL, '', NULL), (3, NULL, -1, " +
			"0, NULL, NULL, NULL, NULL)",
			"id int required, name string, n decimal(30,10), f float, d date, at datetime, raw string, u decimal(20,0)",
			"1,\"a \"\"q\"\",\n\\N\",0.0000000001,1.2345678,1000-01-01,2024-01-01 " +
				"00:00:00.500,\\x00ff,18446744073709551615\n2,\"\",,,,,\\x,\n3,,-1.0000000000,0,,,,\n"},
		{"SQLite", sqlite, "CREATE TABLE rows (id INTEGER NOT NULL, name TEXT, f REAL, b BOOLEAN, at DATETIME, raw " +
			"BLOB); INSERT INTO rows VALUES (1, 'a \"q\",\n\\N', 0.1, 1, '2024-01-01 00:00:00', x'00ff'), (2, '', " +
			"9e999, NULL, NULL, ''), (3, NULL, NULL, 0, 5, NULL)",
			"id int, name string, f float, b bool, at string, raw string",
			"1,\"a \"\"q\"\",\n\\N\",0.1,1,2024-01-01 00:00:00,\\x00ff\n2,\"\",Infinity,,,\"\"\n3,,,0,5,\n"},
	} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			s := c.server(t)
			s.exec(t, c.make)
			src := database.Source{URL: s.url, Table: "rows"}
			require.Equal(t, c.types, typesOf(t, src))
			snapshot, err := database.Client{}.Snapshot(t.Context(), s.url)
			require.NoError(t, err)
			defer snapshot.Close()
			text, rows := csvOf(t, snapshot, src)
			require.EqualValues(t, 3, rows)
			require.Equal(t, c.values, text[strings.Index(text, "\n")+1:])
			if c.kind != "SQLite" { // where a writer waits for those who read
				s.exec(t, "DELETE FROM "+map[string]string{"MariaDB": "`rows`", "PostgreSQL": "rows"}[c.kind])
			}
			query := "SELECT name FROM rows ORDER BY id;"
			if c.kind == "MariaDB" {
				query = "SELECT name FROM `rows` ORDER BY id"
			}
			text, _ = csvOf(t, snapshot, database.Source{URL: s.url, Query: query})
			require.Equal(t, "name,__thalweg\n\"a \"\"q\"\",\n\\N\",0\n\"\",0\n,0\n", text,
				"of the same moment, and no line is empty")
		})
	}
}

// A time that no datetime holds is marked, so that it is refused.
func TestFinerThanAMillisecond(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		server func(*testing.T) server
		make   string
	}{
		{"PostgreSQL", postgres, "CREATE TABLE x (a timestamp, b timestamptz)"},
		{"MariaDB", mariadb, "CREATE TABLE x (a datetime(6), b datetime(3))"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := c.server(t)
			s.exec(t, c.make)
			s.exec(t, "INSERT INTO x VALUES ('2024-01-01 00:00:00.123', '2024-01-01 00:00:00'), ('2024-01-01 "+
				"00:00:00.123456', NULL)")
			snapshot, err := database.Client{}.Snapshot(t.Context(), s.url)
			require.NoError(t, err)
			defer snapshot.Close()
			text, _ := csvOf(t, snapshot, database.Source{URL: s.url, Table: "x", Millis: []string{"a", "b"}})
			require.Equal(t, 1, strings.Count(text, "2024-01-01 00:00:00.123456 (finer than a millisecond),"), text)
			require.Equal(t, 1, strings.Count(text, "finer"), text)
			text, _ = csvOf(t, snapshot, database.Source{URL: s.url, Table: "x"})
			require.NotContains(t, text, "finer")
		})
	}
}

// The message says what is wrong, where, and never a password.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind   string
		server func(*testing.T) server
	}{{"PostgreSQL", postgres}, {"MariaDB", mariadb}, {"SQLite", sqlite}} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			s := c.server(t)
			s.exec(t, "CREATE TABLE x (a int)")
			for _, src := range []database.Source{{Table: "nosuch"}, {Query: "SELECT b FROM x"}, {Query: "SELECT"},
				{Query: "DROP TABLE x"}} {
				src.URL = s.url
				_, err := database.Client{}.Columns(t.Context(), src)
				require.Error(t, err)
				require.Equal(t, fault.Script, fault.Of(err).Kind, "%v", err)
				require.NotEmpty(t, fault.Of(err).Place.File)
			}
			_, err := database.Client{}.Columns(t.Context(), database.Source{URL: s.url, Table: "x"})
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err = database.Client{}.Columns(ctx, database.Source{URL: s.url, Table: "x"})
			require.Equal(t, fault.Canceled, fault.Of(err).Kind)
		})
	}
	for _, at := range []string{"postgres://u:verysecret@127.0.0.1:1/d", "mysql://u:verysecret@127.0.0.1:1/d",
		"sqlite:///no/such/file"} {
		err := database.Client{}.Check(t.Context(), at)
		require.Error(t, err)
		require.NotContains(t, err.Error()+fault.Of(err).Hint, "verysecret")
		require.NotEmpty(t, fault.Of(err).Hint)
	}
}

// A server without TLS says so at once, and the hint is what may be written instead.
func TestServersWithoutTLS(t *testing.T) {
	t.Parallel()
	for kind, at := range map[string]string{"PostgreSQL": postgres(t).url + "?sslmode=require",
		"MariaDB": mariadb(t).url + "?ssl-mode=required"} {
		err := database.Client{}.Check(t.Context(), at)
		require.Error(t, err, kind)
		require.Contains(t, fault.Of(err).Hint, "disable", "%s: %v", kind, err)
		require.False(t, fault.Of(err).Retryable, kind)
	}
}

// A query that is cancelled ends at the server as well.
func TestCancel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind, query, running string
		server               func(*testing.T) server
	}{
		{"PostgreSQL", "SELECT pg_sleep(60)",
			"SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)%' AND state = 'active' AND " +
				"datname = current_database() AND pid <> pg_backend_pid()", postgres},
		{"MariaDB", "SELECT sleep(60)",
			"SELECT count(*) FROM information_schema.processlist WHERE info LIKE '%sleep(60)%' AND db = database() " +
				"AND id <> connection_id()", mariadb},
	} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			s := c.server(t)
			running := func() bool {
				snapshot, err := database.Client{}.Snapshot(t.Context(), s.url)
				require.NoError(t, err)
				defer snapshot.Close()
				text, _ := csvOf(t, snapshot, database.Source{URL: s.url, Query: c.running})
				return !strings.Contains(text, "\n0,0\n")
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				snapshot, err := database.Client{}.Snapshot(ctx, s.url)
				if err == nil {
					_, err = snapshot.Copy(ctx, database.Source{URL: s.url, Query: c.query}, &bytes.Buffer{})
					snapshot.Close()
				}
				done <- err
			}()
			require.Eventually(t, running, effort.Patience, 20*time.Millisecond)
			cancel()
			require.Equal(t, fault.Canceled, fault.Of(<-done).Kind)
			require.Eventually(t, func() bool { return !running() }, effort.Patience, 20*time.Millisecond)
		})
	}
}
