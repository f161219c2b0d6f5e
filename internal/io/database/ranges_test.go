package database_test

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"thalweg/internal/io/database"
	"thalweg/internal/test/effort"
)

// largeTable has more pages than are copied at once, with holes, and rows that were written
// again: they stand behind the others.
const largeTable = `CREATE TABLE large (id int, name text, at timestamp)
	WITH (fillfactor = 10, autovacuum_enabled = off);
	INSERT INTO large SELECT g, CASE g % 3 WHEN 0 THEN 'a "q",' || chr(10) || g WHEN 1 THEN '' END || repeat('x', g % 900),
	timestamp '2024-01-01' + g * interval '1 ms'
		FROM generate_series(1, 14000) AS g;
	DELETE FROM large WHERE id BETWEEN 3000 AND 9000;
	UPDATE large SET id = -id WHERE id % 11 = 0`

// sessions are those that have locked a table.
func sessions(t *testing.T, s server, table string) string {
	t.Helper()
	snapshot, err := database.Client{}.Snapshot(t.Context(), s.url)
	require.NoError(t, err)
	defer snapshot.Close()
	text, _ := csvOf(t, snapshot,
		database.Source{URL: s.url, Query: "SELECT count(DISTINCT pid) FROM pg_locks WHERE granted AND relation = '" +
			table + "'::regclass"})
	return strings.TrimSuffix(strings.Split(text, "\n")[1], ",0")
}

// A large table is copied by two sessions: the same rows of the same moment, in the same
// order, as one copies. Where there can be no second one, one does it.
func TestRangesOfALargeTable(t *testing.T) {
	t.Parallel()
	s := postgres(t)
	s.exec(t, largeTable)
	s.exec(t, "CREATE VIEW seen AS SELECT * FROM large; CREATE TABLE parent (id int) PARTITION BY RANGE (id); CREATE "+
		"TABLE child PARTITION OF parent DEFAULT; INSERT INTO parent SELECT generate_series(1, 9)")
	snapshot, err := database.Client{}.Snapshot(t.Context(), s.url)
	require.NoError(t, err)
	defer snapshot.Close()
	want, _ := csvOf(t, snapshot, database.Source{URL: s.url, Query: "SELECT * FROM large"})
	require.Equal(t, "1", sessions(t, s, "large"), "of a query one session is the copy's")
	s.exec(t, "INSERT INTO large SELECT generate_series(1, 1000); DELETE FROM large WHERE id % 2 = 0")
	got, rows := csvOf(t, snapshot, database.Source{URL: s.url, Table: "large"})
	require.EqualValues(t, 14000-6001, rows)
	require.True(t, want == got, "the rows of one moment, in the order of the table")
	require.Equal(t, "2", sessions(t, s, "large"), "two sessions have copied it")
	marked, _ := csvOf(t, snapshot, database.Source{URL: s.url, Table: "large", Millis: []string{"at"}})
	require.True(t, want == marked)
	seen, _ := csvOf(t, snapshot, database.Source{URL: s.url, Table: "seen"})
	require.True(t, want == seen, "a view has no pages")
	_, rows = csvOf(t, snapshot, database.Source{URL: s.url, Table: "parent"})
	require.EqualValues(t, 9, rows)
}

// alone refuses a second session of a user.
func alone(t *testing.T, s server) server {
	t.Helper()
	role := name(t)
	s.exec(t, "CREATE ROLE "+role+" LOGIN CONNECTION LIMIT 1; GRANT SELECT ON large TO "+role)
	t.Cleanup(func() { s.exec(t, "DROP OWNED BY "+role+"; DROP ROLE "+role) })
	u, err := url.Parse(s.url)
	require.NoError(t, err)
	u.User = url.User(role)
	s.url = u.String()
	return s
}

func TestLargeTableWithoutASecondSession(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		prevent func(t *testing.T, s server) (server, func())
	}{
		{"no more connections", func(t *testing.T, s server) (server, func()) { return alone(t, s), func() {} }},
		// Whoever wants the table or an index alone stands between the sessions: the second
		// would wait for him, and he for the first.
		{"somebody wants the table alone", func(t *testing.T, s server) (server, func()) {
			return s, waitsFor(t, s, "ALTER TABLE large ADD COLUMN more int")
		}},
		{"somebody wants an index alone", func(t *testing.T, s server) (server, func()) {
			s.exec(t, "CREATE INDEX large_index ON large ((1))")
			return s, waitsFor(t, s, "REINDEX INDEX large_index")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := postgres(t)
			s.exec(t, largeTable)
			user, then := c.prevent(t, s)
			snapshot, err := database.Client{}.Snapshot(t.Context(), user.url)
			require.NoError(t, err)
			want, _ := csvOf(t, snapshot, database.Source{URL: user.url, Query: "SELECT * FROM large"})
			then()
			got, rows := csvOf(t, snapshot, database.Source{URL: user.url, Table: "large"})
			snapshot.Close()
			require.EqualValues(t, 14000-6001, rows)
			require.True(t, want == got)
		})
	}
}

// failing cannot be written to after some bytes.
type failing struct{ left int }

func (w *failing) Write(p []byte) (int, error) {
	w.left -= len(p)
	if w.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

// A copy that fails ends both sessions, and says why.
func TestFailingCopyOfALargeTable(t *testing.T) {
	t.Parallel()
	s := postgres(t)
	s.exec(t, largeTable)
	snapshot, err := database.Client{}.Snapshot(t.Context(), s.url)
	require.NoError(t, err)
	_, err = snapshot.Copy(t.Context(), database.Source{URL: s.url, Table: "large"}, &failing{1 << 20})
	require.ErrorContains(t, err, fmt.Sprint(io.ErrShortWrite))
	snapshot.Close()
	require.Eventually(t, func() bool { return sessions(t, s, "large") == "0" }, effort.Patience, 10*time.Millisecond)
}

// waitsFor gives what begins a statement in another session, and returns when it waits for a lock.
func waitsFor(t *testing.T, s server, statement string) func() {
	conn, err := pgconn.Connect(t.Context(), s.url)
	require.NoError(t, err)
	done := make(chan error, 1)
	return func() {
		go func() {
			_, err := conn.Exec(context.WithoutCancel(t.Context()), statement).ReadAll()
			done <- err
		}()
		t.Cleanup(func() {
			require.NoError(t, <-done)
			require.NoError(t, conn.Close(context.Background()))
		})
		waits := func() bool {
			snapshot, err := database.Client{}.Snapshot(t.Context(), s.url)
			require.NoError(t, err)
			defer snapshot.Close()
			text, _ := csvOf(t, snapshot,
				database.Source{URL: s.url,
					Query: "SELECT count(*) FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM " +
						"pg_database WHERE datname = current_database())"})
			return strings.Contains(text, "\n1,")
		}
		require.Eventually(t, waits, effort.Patience, 10*time.Millisecond)
	}
}
