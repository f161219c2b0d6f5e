package database_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"thalweg/internal/base/fault"
	"thalweg/internal/io/database"
	"thalweg/internal/test/effort"
)

// Batches that are committed at the same moment do not wait for each other's records, which
// would be a deadlock, and those remove what is old.
func TestBatchesCommitAtOnce(t *testing.T) {
	t.Parallel()
	for _, k := range kinds()[:2] { // SQLite has one writer at a time
		for _, mode := range []string{database.Append, database.Replace} {
			t.Run(k.name+" "+mode, func(t *testing.T) {
				t.Parallel()
				s := k.server(t)
				write(t, target(s, database.Append), "old", 1, "0,\"\",\n")
				s.exec(t, "UPDATE thalweg_commits SET committed_at = '2001-01-01'")
				const rounds, batches = 10, 4
				for round := range rounds {
					var group errgroup.Group
					for _, one := range stageSome(t, target(s, mode), fmt.Sprint(round), batches) {
						group.Go(func() error { return one.Publish(t.Context()) })
					}
					require.NoError(t, group.Wait())
				}
				require.Equal(t, fmt.Sprintln(rounds*batches),
					valuesOf(t, s, "SELECT count(*) AS n FROM thalweg_commits"))
			})
		}
	}
}

// stageSome begins to write batches of a row each; what is replaced are tables of their own.
func stageSome(t *testing.T, to database.Target, run string, batches int) (all []database.Staged) {
	t.Helper()
	for batch := range batches {
		if to.Mode == database.Replace {
			to.Table = fmt.Sprint("goods", batch)
		}
		path := filepath.Join(t.TempDir(), "rows")
		require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, "%d,\"\",\n", batch), 0o600))
		one, err := database.Client{}.Stage(t.Context(), to, database.Attempt{Run: run, Node: "n",
			Batch: batch, Attempt: 1, Rows: 1}, path)
		require.NoError(t, err)
		t.Cleanup(func() { _ = one.Discard(context.Background()) })
		all = append(all, one)
	}
	return all
}

// No statement waits for ever for a table that somebody has locked.
func TestLocksAreWaitedForInBounds(t *testing.T) {
	t.Parallel()
	for i, ask := range []string{"SELECT current_setting('lock_timeout') AS v", "SELECT @@lock_wait_timeout AS v"} {
		k := kinds()[i]
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, map[string]string{"PostgreSQL": "10min\n", "MariaDB": "600\n"}[k.name],
				valuesOf(t, k.server(t), ask))
		})
	}
}

// A server that says nothing is not waited for longer than connectTimeout.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for as long as a login may take")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	for _, scheme := range []string{"mysql", "postgres"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := database.Client{}.Check(ctx, scheme+"://u@"+l.Addr().String()+"/d")
			require.Equal(t, fault.Environment, fault.Of(err).Kind)
			require.True(t, fault.Of(err).Retryable)
		})
	}
}

// A table that is emptied between the session's moment and its reading is not read as one without rows.
func TestTableEmptiedWhileRead(t *testing.T) {
	t.Parallel()
	s := postgres(t)
	s.exec(t, "CREATE TABLE a (v bigint); CREATE TABLE b (v bigint); INSERT INTO b VALUES (1); CREATE VIEW w AS "+
		"SELECT v FROM b")
	for _, src := range []database.Source{{URL: s.url, Table: "b"}, {URL: s.url, Query: "SELECT v FROM w"}} {
		snapshot, err := database.Client{}.Snapshot(t.Context(), s.url)
		require.NoError(t, err)
		csvOf(t, snapshot, database.Source{URL: s.url, Table: "a"})
		s.exec(t, "TRUNCATE b; INSERT INTO b VALUES (2)")
		_, err = snapshot.Copy(t.Context(), src, &bytes.Buffer{})
		require.ErrorContains(t, err, "table b was emptied")
		require.True(t, fault.Of(err).Retryable)
		snapshot.Close()
		require.Equal(t, "2\n", valuesOf(t, s, "SELECT v FROM b"))
	}
}

// What is appended while rows are replaced is there whole afterwards, or not at all: the
// replacing, which stands still in the middle of the table here, does not take a part of it.
func TestAppendWhileReplaced(t *testing.T) {
	t.Parallel()
	s := mariadb(t)
	s.exec(t, "CREATE TABLE goods (id bigint PRIMARY KEY, name text, price decimal(18,2)); INSERT INTO goods (id) "+
		"VALUES (0), (100)")
	middle, err := stage(t, target(s, database.Append), "1", 1, "500,\"\",\n")
	require.NoError(t, err)
	defer middle.Discard(context.Background()) //nolint:errcheck // the session ends
	// the server renews what it says of transactions only if it is not asked more often
	const tick = 300 * time.Millisecond
	waiting := func(n int) func() bool {
		return func() bool {
			return valuesOf(t, s, "SELECT count(*) AS n FROM information_schema.innodb_trx JOIN "+
				"information_schema.processlist ON id = trx_mysql_thread_id WHERE db = database() AND trx_state = "+
				"'LOCK WAIT'") ==
				fmt.Sprintln(n)
		}
	}
	behind := func(to database.Target, run, rows string) chan error {
		done := make(chan error, 1)
		go func() {
			one, err := stage(t, to, run, 1, rows)
			if err == nil {
				err = one.Publish(t.Context())
			}
			done <- err
		}()
		return done
	}
	replaced := behind(target(s, database.Replace), "2", "7,\"\",\n")
	require.Eventually(t, waiting(1), effort.Patience, tick)
	appended := behind(target(s, database.Append), "3", "50,\"\",\n1000,\"\",\n")
	require.Eventually(t, func() bool { return len(appended) > 0 || waiting(2)() }, effort.Patience, tick)
	require.NoError(t, middle.Publish(t.Context()))
	require.NoError(t, <-replaced)
	require.NoError(t, <-appended)
	require.Equal(t, "7,\"\",\n50,\"\",\n1000,\"\",\n", goods(t, s))
}
