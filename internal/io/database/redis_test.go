package database_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/io/database"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/redistest"
)

var redisDay = time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)

func redisTarget(url string, columns ...database.TargetColumn) database.Target {
	return database.Target{URL: url, Table: "go[o]*ds", Mode: database.Replace, Key: []string{"id"}, Columns: columns}
}

var redisColumns = []database.TargetColumn{{Name: "id", Type: "int"}, {Name: "name", Type: "string", Nullable: true},
	{Name: "price", Type: "decimal2", Nullable: true}}

// publication is an attempt of a run, which is the n-th that begins.
type publication struct {
	run     int
	attempt int64
	rows    string
}

func (p publication) stage(ctx context.Context, t *testing.T, to database.Target) (database.Staged, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows")
	require.NoError(t, os.WriteFile(path, []byte(p.rows), 0o600))
	return database.Client{}.Stage(ctx, to, database.Attempt{Run: fmt.Sprint(p.run), Node: "n",
		Attempt: max(1, p.attempt), Digest: p.rows, Rows: rowsIn(p.rows),
		Begun: redisDay.Add(time.Duration(p.run) * time.Second)}, path)
}

func (p publication) write(t *testing.T, to database.Target) {
	t.Helper()
	s, err := p.stage(t.Context(), t, to)
	require.NoError(t, err)
	require.NoError(t, s.Publish(t.Context()))
	require.NoError(t, s.Publish(t.Context()))
	require.NoError(t, s.Discard(t.Context()))
}

// row is what a reader finds under a key: it asks for the pointer, and then for the row.
func row(t *testing.T, s *redistest.Server, command, key string) string {
	t.Helper()
	return s.Do(t, command, s.Do(t, "GET", "go[o]*ds:current")+key)
}

// requireAlone says that nothing is there but one version of so many rows.
func requireAlone(t *testing.T, s *redistest.Server, rows int) {
	t.Helper()
	var keys, lapsing int // those of versions that were replaced a moment ago
	if said := s.Do(t, "INFO", "keyspace"); strings.Contains(said, "db0:") {
		_, err := fmt.Sscanf(said[strings.Index(said, "db0:"):], "db0:keys=%d,expires=%d", &keys, &lapsing)
		require.NoError(t, err)
	}
	require.Equal(t, rows+2, keys-lapsing, "rows, pointer and versions: %s", s.Do(t, "KEYS", "*"))
	require.Equal(t, "1", s.Do(t, "HLEN", "go[o]*ds:versions"))
}

func TestRedisRows(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	to := redisTarget(s.URL, redisColumns...)
	publication{run: 1, rows: "1,\"a\"\"\\,\n\",1.50\n2,,\n3,\"\",0.00\n"}.write(t, to)
	require.Equal(t, "id\n1\nname\na\"\\,\n\nprice\n1.50", row(t, s, "HGETALL", "1"))
	require.Equal(t, "id\n2", row(t, s, "HGETALL", "2"), "NULL has no field")
	require.Equal(t, "id\n3\nname\n\nprice\n0.00", row(t, s, "HGETALL", "3"))
	requireAlone(t, s, 3)
	publication{run: 2, rows: "7,\"x\",-0.01\n"}.write(t, to)
	require.Equal(t, "id\n7\nname\nx\nprice\n-0.01", row(t, s, "HGETALL", "7"))
	requireAlone(t, s, 1)
	publication{run: 3}.write(t, to)
	requireAlone(t, s, 0)

	pair := redisTarget(s.URL, database.TargetColumn{Name: "v", Type: "string"}, redisColumns[0])
	publication{run: 4, rows: "\"x y\n\",5\n\"\",6\n"}.write(t, pair)
	require.Equal(t, "x y\n", row(t, s, "GET", "5"), "one value without NULL is a text")
	require.Equal(t, "string", row(t, s, "TYPE", "6"))
	pair.Columns[0].Nullable = true
	publication{run: 5, rows: ",5\n\"\",6\n"}.write(t, pair)
	require.Equal(t, "id\n5", row(t, s, "HGETALL", "5"), "a row stays one, whatever is NULL")
	require.Equal(t, "v\n\nid\n6", row(t, s, "HGETALL", "6"))
}

func TestRedisKeys(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	text := func(name string) database.TargetColumn { return database.TargetColumn{Name: name, Type: "string"} }
	to := redisTarget(s.URL, text("a"), text("b"), text("id"))
	to.Key = []string{"b", "a"}
	publication{run: 1, rows: "\"x:y\",\"z\",\"1\"\n\"x\",\"z:y\",\"2\"\n\"\",\"\\\",\"3\"\n\":\",\"\",\"4\"\n"}.write(t, to)
	for key, want := range map[string]string{`z:x\:y`: "1", `z\:y:x`: "2", `\\:`: "3", `:\:`: "4"} {
		require.Equal(t, want, row(t, s, "GET", key), key)
	}
	one := redisTarget(s.URL, text("id"), text("v"))
	hostile := []string{"*", "a:b", "\r\n*1\r\n$8\r\nFLUSHALL\r\n", "[x]", `\`, "", "current", strings.Repeat("k", 60_000)}
	var rows strings.Builder
	for _, k := range hostile {
		fmt.Fprintf(&rows, "\"%s\",\"%s\"\n", k, k)
	}
	publication{run: 2, rows: rows.String()}.write(t, one)
	for _, k := range hostile {
		require.Equal(t, k, row(t, s, "GET", k))
	}
	requireAlone(t, s, len(hostile))
	publication{run: 3, rows: "\"a\",\"b\"\n"}.write(t, one)
	requireAlone(t, s, 1)
}

// What cannot be published changes nothing, and leaves nothing.
func TestRedisRefuses(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	to := redisTarget(s.URL, redisColumns...)
	publication{run: 1, rows: "1,\"a\",\n"}.write(t, to)
	pair := redisTarget(s.URL, redisColumns[0], database.TargetColumn{Name: "v", Type: "string"})
	null := redisTarget(s.URL, redisColumns[1], redisColumns[0])
	null.Key = []string{"name"}
	var many strings.Builder
	for i := range 2500 {
		fmt.Fprintf(&many, "%d,\"x\",\n", i)
	}
	for _, c := range []struct {
		to   database.Target
		rows string
		want string
	}{
		{to, "9,\"a\",\n8,,\n9,,1.00\n", `several rows have the key id = "9"`},
		{to, many.String() + "17,,\n", `several rows have the key id = "17"`},
		{pair, "9,\"a\"\n9,\"a\"\n", `several rows have the key id = "9"`},
		{null, "\"a\",1\n,2\n", "row 2 of what is written: column name of the key is NULL"},
		{null, "\"" + strings.Repeat("k", 1<<17) + "\",1\n", "its key has more than 64 KiB"},
	} {
		_, err := publication{run: 2, rows: c.rows}.stage(t.Context(), t, c.to)
		require.ErrorContains(t, err, c.want)
		require.Equal(t, fault.UserData, fault.Of(err).Kind)
		require.Equal(t, "id\n1\nname\na", row(t, s, "HGETALL", "1"))
		requireAlone(t, s, 1)
	}
	s.Do(t, "SET", "mine:current", "7")
	to.Table = "mine"
	_, err := publication{run: 2}.stage(t.Context(), t, to)
	require.ErrorContains(t, err, `the key "mine:current" is in use for something else`)
	require.Equal(t, "7", s.Do(t, "GET", "mine:current"))
	s.Do(t, "SET", "other:versions", "7")
	to.Table = "other"
	_, err = publication{run: 2}.stage(t.Context(), t, to)
	require.ErrorContains(t, err, "WRONGTYPE")
	_, err = database.Client{}.Snapshot(t.Context(), s.URL)
	require.ErrorContains(t, err, "published to Redis, not read from it")
}

// Whatever becomes of an attempt, the version that counts is whole, and one.
func TestRedisOrder(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	to := redisTarget(s.URL, redisColumns...)
	publication{run: 5, rows: "0,,\n"}.write(t, to)
	dropped, err := publication{run: 6, rows: "1,,\n"}.stage(t.Context(), t, to)
	require.NoError(t, err)
	require.Equal(t, "id\n0", row(t, s, "HGETALL", "0"), "nobody sees rows that are not published")
	require.NoError(t, dropped.Discard(t.Context()))
	requireAlone(t, s, 1)

	// of the run's attempts, a later one goes on at once, and the earlier one is no writer any more
	late, err := publication{run: 6, attempt: 1, rows: "1,,\n"}.stage(t.Context(), t, to)
	require.NoError(t, err)
	next, err := publication{run: 6, attempt: 2, rows: "2,,\n"}.stage(t.Context(), t, to)
	require.NoError(t, err)
	err = late.Publish(t.Context())
	require.ErrorContains(t, err, "another attempt has begun to write")
	require.True(t, fault.Of(err).Retryable)
	_, err = publication{run: 6, attempt: 1, rows: "1,,\n"}.stage(t.Context(), t, to)
	require.ErrorContains(t, err, "a later attempt")
	require.NoError(t, next.Publish(t.Context()))
	require.NoError(t, late.Discard(t.Context()))
	require.Equal(t, "id\n2", row(t, s, "HGETALL", "2"))
	requireAlone(t, s, 1)

	before := s.Do(t, "GET", "go[o]*ds:current")
	publication{run: 6, attempt: 3, rows: "2,,\n"}.write(t, to) // of a process that did not see the commit
	require.Equal(t, before, s.Do(t, "GET", "go[o]*ds:current"), "the same rows are not written again")
	requireAlone(t, s, 1)
	_, err = publication{run: 5, attempt: 9, rows: "0,,\n"}.stage(t.Context(), t, to)
	require.ErrorContains(t, err, "was published by a run that began later (6)")
	publication{run: 6, attempt: 4, rows: "3,,\n"}.write(t, to) // done again, with other rows
	require.Equal(t, "id\n3", row(t, s, "HGETALL", "3"))
	requireAlone(t, s, 1)
}

// A run that began earlier and ends later does not replace the newer one's rows.
func TestRedisNewerMeanwhile(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	to := redisTarget(s.URL, redisColumns...)
	old, err := publication{run: 1, rows: "1,,\n"}.stage(t.Context(), t, to)
	require.NoError(t, err)
	s.Do(t, "DEL", "go[o]*ds:writer") // its machine stood still for longer than a lease
	publication{run: 2, rows: "2,,\n"}.write(t, to)
	require.ErrorContains(t, old.Publish(t.Context()), "was published by a run that began later")
	require.NoError(t, old.Discard(t.Context()))
	require.Equal(t, "id\n2", row(t, s, "HGETALL", "2"))
	requireAlone(t, s, 1)
}

// A writer that is alive is waited for; one that is gone, until its lease is over.
func TestRedisWaits(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	to := redisTarget(s.URL, redisColumns...)
	_, err := publication{run: 1, rows: "1,,\n"}.stage(t.Context(), t, to)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
	defer cancel()
	_, err = publication{run: 2, rows: "2,,\n"}.stage(ctx, t, to)
	require.Equal(t, fault.Canceled, fault.Of(err).Kind)
	s.Do(t, "PEXPIRE", "go[o]*ds:writer", "1")
	publication{run: 2, rows: "2,,\n"}.write(t, to)
	require.Equal(t, "id\n2", row(t, s, "HGETALL", "2"))
	requireAlone(t, s, 1) // the rows of the one that is gone are, too
}

// A server that stands still is not waited for when the caller is.
func TestRedisCanceled(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	to := redisTarget(s.URL, redisColumns...)
	staged, err := publication{run: 1, rows: "1,,\n"}.stage(t.Context(), t, to)
	require.NoError(t, err)
	s.Do(t, "CLIENT", "PAUSE", "1000", "ALL")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second/10)
	defer cancel()
	began := time.Now()
	require.Equal(t, fault.Canceled, fault.Of(staged.Publish(ctx)).Kind)
	effort.Promised(t, began, 2*time.Second)
	require.NoError(t, staged.Discard(t.Context()))
	require.Empty(t, s.Do(t, "KEYS", "*"))
}
