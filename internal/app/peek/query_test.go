package peek_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/caller"
	"thalweg/internal/app/peek"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
	"thalweg/internal/test/effort"
)

func TestAQueryIsAnsweredInAChild(t *testing.T) {
	t.Parallel()
	b := newBench(t, peek.Limits{})
	b.run(numbers, map[string]string{"numbers.csv": csvOf(2_000)}, nil)
	require.Eventually(t, func() bool { // once the run has given its share of the memory back
		_, err := b.query("SELECT n FROM numbers")
		require.NoError(t, err)
		return b.pool.ChildBytes() == 512<<20
	}, effort.Patience, time.Millisecond)
	page, err := b.query("SELECT n, n + 1 AS next FROM numbers ORDER BY n DESC")
	require.NoError(t, err)
	require.Equal(t, []view.PageColumn{{Name: "n", Type: "BIGINT"}, {Name: "next", Type: "BIGINT"}}, page.Columns)
	require.Len(t, page.Rows, 1_000)
	require.EqualValues(t, 1_000, *page.Next)
	require.Equal(t, []string{"1999", "2000"}, texts(page)[0])
	before := b.children()
	page, err = b.query("SELECT count(*) FROM numbers")
	require.NoError(t, err)
	require.Equal(t, [][]string{{"2000"}}, texts(page))
	require.Nil(t, page.Next)
	require.Equal(t, before, b.children(), "it goes on with the same tables")
	_, err = b.queryAs(t.Context(), caller.Caller{Actor: "other"}, "SELECT 1")
	require.NoError(t, err)
	_, err = b.queryAs(t.Context(), caller.Caller{Actor: "third"}, "SELECT 1")
	require.NoError(t, err)
	require.Len(t, b.children(), 2)
	require.NotSubset(t, b.children(), before, "those that were idle for longest have ended")
	require.NotContains(t, b.log.String(), "level=WARN")
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", b.children()[0]))
	require.NoError(t, err)
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')'):]))
	require.Equal(t, "10", fields[19-2], "it gives way to batches")
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", b.children()[0]))
	require.NoError(t, err)
	require.Empty(t, string(environ))
}

// Cells are texts that hold all of a value.
func TestCells(t *testing.T) {
	t.Parallel()
	b := newBench(t, peek.Limits{CellBytes: 40})
	page, err := b.query(`SELECT 9223372036854775807 AS big, -9223372036854775808 AS small,
		CAST(18446744073709551615 AS UBIGINT) AS u, CAST('170141183460469231731687303715884105727' AS HUGEINT) AS huge,
		CAST(12345678901234567890123456789012345.678 AS DECIMAL(38,3)) AS d, CAST('nan' AS DOUBLE) AS nan,
		CAST('-inf' AS DOUBLE) AS inf, 0.1::DOUBLE AS f, CAST('-0' AS DOUBLE) AS z, 1e300 AS e, NULL AS n, '' AS empty,
		'\xAA\x00a'::BLOB AS bytes, true AS t, DATE '2024-02-29' AS day, TIMESTAMP '2024-02-29 10:11:12.123456' AS at,
		{'a': 1, 'b': [1.5::DOUBLE, NULL]} AS nested, MAP {'k': 9223372036854775807} AS m,
		'äöü' || repeat('ß', 40) AS long, repeat('x', 40) AS fits, repeat('\xFF', 100)::BLOB AS longbytes,
		list_transform(range(100), x -> 'abc') AS longlist, UUID '00000000-0000-0000-0000-00000000000a' AS id,
		INTERVAL 3 DAYS AS i`)
	require.NoError(t, err)
	require.Equal(t, []string{"9223372036854775807", "-9223372036854775808", "18446744073709551615",
		"170141183460469231731687303715884105727", "12345678901234567890123456789012345.678", "NaN", "-Infinity", "0.1",
		"-0", "1e+300", "∅", "", `\xAA\x00a`, "true", "2024-02-29", "2024-02-29 10:11:12.123456",
		`{"a":1,"b":[1.5,null]}`, `{"k":9223372036854775807}`, "äöü" + strings.Repeat("ß", 17), strings.Repeat("x", 40),
		strings.Repeat(`\xFF`, 10), `["abc","abc","abc","abc","abc","abc","ab`, "00000000-0000-0000-0000-00000000000a",
		"3 days"}, texts(page)[0])
	var cut []string
	for _, c := range page.Cut {
		cut = append(cut, page.Columns[c.Column].Name)
	}
	require.Equal(t, []string{"long", "longbytes", "longlist"}, cut)
	require.Equal(t, "DECIMAL(38,3)", page.Columns[4].Type)
	require.False(t, page.Columns[4].Text)
	require.True(t, page.Columns[11].Text)
	twins, err := b.query("SELECT 1 AS a, 2 AS a, 3 AS A")
	require.NoError(t, err)
	require.Equal(t, []string{"1", "2", "3"}, texts(twins)[0])
	require.Equal(t, "a", twins.Columns[1].Name)
	none, err := b.query("SELECT 1 AS a WHERE false")
	require.NoError(t, err)
	require.Empty(t, none.Rows)
	require.Len(t, none.Columns, 1)
}

// A page ends before it has too many bytes, and has one row at least.
func TestBytesOfAPage(t *testing.T) {
	t.Parallel()
	b := newBench(t, peek.Limits{PageBytes: 10_000, CellBytes: 6_000})
	page, err := b.query("SELECT repeat('x', 1000) AS x FROM range(100)")
	require.NoError(t, err)
	require.Len(t, page.Rows, 10)
	require.EqualValues(t, 10, *page.Next)
	page, err = b.query("SELECT repeat('x', 100000) AS x, repeat('y', 100000) AS y, repeat('z', 9) AS z FROM range(2)")
	require.NoError(t, err)
	require.Len(t, page.Rows, 1, "of a row that alone has too many, less is shown")
	require.Len(t, texts(page)[0][0], 3_333)
	require.Len(t, page.Cut, 2)
}

// What reads or writes anything but the tables is refused, by the engine, and where it would not be, by the system.
func TestWhatAQueryMayNot(t *testing.T) {
	t.Parallel()
	b := newBench(t, peek.Limits{})
	b.run(numbers, map[string]string{"numbers.csv": csvOf(10)}, nil)
	secret := b.dir + "/secret.csv"
	require.NoError(t, os.WriteFile(secret, []byte("a\n1\n"), 0o600))
	for _, sql := range []string{
		"COPY (SELECT 1) TO '" + b.dir + "/out.csv'", "ATTACH '" + b.dir + "/x.db'", "INSTALL httpfs", "LOAD httpfs",
		"SELECT 1; SELECT 2", "SELECT * FROM read_csv('/etc/passwd')", "SELECT * FROM '/etc/passwd'",
		"SELECT * FROM read_text('" + secret + "')", "SELECT * FROM read_csv('" + secret + "')",
		"SELECT * FROM read_blob('/proc/self/environ')", "SELECT * FROM glob('/etc/*')",
		"SELECT * FROM read_parquet('http://127.0.0.1:1/x.parquet')", "SELECT getenv('HOME')", "SET memory_limit = '9GB'",
		"PRAGMA database_list", "CREATE TABLE t AS SELECT 1", "EXPORT DATABASE '" + b.dir + "'", "CALL enable_logging()",
		"SELECT * FROM sniff_csv('/etc/passwd')", "SELECT * FROM parquet_metadata('" + b.dir + "/state/parts/*')",
		"SELECT * FROM read_json('/etc/passwd')", "DESCRIBE SELECT 1; SELECT 2", "SELECT 1 AS a; DROP VIEW numbers",
	} {
		f := b.refused(sql)
		require.Equal(t, fault.Script, f.Kind, "%s: %v", sql, f)
	}
	left, err := os.ReadDir(b.dir)
	require.NoError(t, err)
	require.Len(t, left, 4, "the state, the script, and two inputs")
	page, err := b.query("SELECT count(*) FROM numbers")
	require.NoError(t, err)
	require.Equal(t, [][]string{{"10"}}, texts(page))
}

// A query that spins is told to stop, and its child is killed if it does not.
func TestAQueryThatSpins(t *testing.T) {
	t.Parallel()
	b := newBench(t, peek.Limits{Time: 5 * second}) // for the second query, too: a machine may be busy
	f := b.refused("SELECT count(*) FROM range(1000000000000) a, range(1000000) b WHERE a.range * b.range % 7 = 3")
	require.Equal(t, fault.Script, f.Kind)
	require.Contains(t, f.Message, "the query took longer than 5s, and was ended")
	page, err := b.query("SELECT 1")
	require.NoError(t, err)
	require.Equal(t, [][]string{{"1"}}, texts(page))
}

// A query that eats memory fails for that, or ends its child: the next one is answered.
func TestAQueryThatEatsMemory(t *testing.T) {
	t.Parallel()
	b := newBench(t, peek.Limits{SpillBytes: 64 << 20})
	for _, sql := range []string{
		"SELECT repeat('x', 1000000000)", "SELECT length(repeat('x', 1000000000)) FROM range(3)",
		"SELECT list(a.range * b.range) FROM range(20000) a, range(20000) b",
		"SELECT count(*) FROM (SELECT DISTINCT a.range || 'x' || b.range FROM range(10000) a, range(10000) b)",
		"SELECT string_agg(repeat('y', 1000000)) FROM range(2000)", "SELECT range(500000000)",
	} {
		f := b.refused(sql)
		require.Equal(t, fault.Script, f.Kind, "%s: %v", sql, f)
		require.NotEmpty(t, f.Hint, sql)
		for _, pid := range b.children() {
			require.Less(t, peakOf(t, pid), int64(700<<20), sql)
		}
		page, err := b.query("SELECT 1")
		require.NoError(t, err, sql)
		require.Equal(t, [][]string{{"1"}}, texts(page))
	}
}

// peakOf is the most resident memory that a process has had, 0 if it is gone.
func peakOf(t testing.TB, pid int) (bytes int64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	_, err = fmt.Sscan(rest, &bytes)
	require.NoError(t, err)
	return bytes << 10
}

// A child that is ended by a signal costs its query only.
func TestAChildThatCrashes(t *testing.T) {
	t.Parallel()
	b := newBench(t, peek.Limits{})
	for _, signal := range []syscall.Signal{syscall.SIGSEGV, syscall.SIGKILL, syscall.SIGABRT} {
		failed := make(chan error, 1)
		go func() {
			_, err := b.query("SELECT count(*) FROM range(1000000000000) a, range(1000000) b")
			failed <- err
		}()
		var pids []int
		require.Eventually(t, func() bool { pids = b.busy(); return len(pids) == 1 }, effort.Patience, time.Millisecond)
		require.NoError(t, syscall.Kill(pids[0], signal))
		f := fault.Of(<-failed)
		require.Equal(t, fault.Script, f.Kind, "who asks has to ask for something else")
		require.Contains(t, f.Message, "ended while it was answering the query")
		require.Contains(t, f.Hint, "nothing else has ended with it")
		page, err := b.query("SELECT 1")
		require.NoError(t, err)
		require.Equal(t, [][]string{{"1"}}, texts(page))
	}
}

// busy lists the children that compute.
func (b *bench) busy() (pids []int) {
	for _, pid := range b.children() {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')'):]))
		var ticks int
		_, err = fmt.Sscan(fields[12], &ticks)
		require.NoError(b.t, err)
		if ticks > 30 { // more than it takes to begin
			pids = append(pids, pid)
		}
	}
	return pids
}

// Who asks may leave: what was asked ends.
func TestACallerThatLeaves(t *testing.T) {
	t.Parallel()
	b := newBench(t, peek.Limits{})
	ctx, leave := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := b.queryAs(ctx, tester, "SELECT count(*) FROM range(1000000000000) a, range(1000000) b")
		failed <- err
	}()
	require.Eventually(t, func() bool { return len(b.busy()) == 1 }, effort.Patience, time.Millisecond)
	leave()
	require.Equal(t, fault.Canceled, fault.Of(<-failed).Kind)
	page, err := b.query("SELECT 1")
	require.NoError(t, err)
	require.Equal(t, [][]string{{"1"}}, texts(page))
}

// Two are answered at once; the third waits, and not without end.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, peek.Limits{Wait: second})
	ctx, leave := context.WithCancel(t.Context())
	var two sync.WaitGroup
	for i := range 2 {
		two.Go(func() {
			_, err := b.queryAs(ctx, caller.Caller{Actor: fmt.Sprint(i)},
				"SELECT count(*) FROM range(1000000000000) a, range(1000000) b")
			if fault.Of(err).Kind != fault.Canceled {
				t.Errorf("a query ended: %v", err)
			}
		})
	}
	require.Eventually(t, func() bool { return len(b.busy()) == 2 }, effort.Patience, time.Millisecond)
	f := b.refused("SELECT 1")
	require.Equal(t, fault.TooMany, f.Code)
	require.True(t, f.Retryable)
	require.Len(t, b.children(), 2)
	waits := make(chan error, 1)
	go func() {
		_, err := b.query("SELECT 1")
		waits <- err
	}()
	leave()
	two.Wait()
	require.NoError(t, <-waits)
}

// Children end that nobody asks, and their places are there again.
func TestIdleChildrenEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t, peek.Limits{Idle: 100 * time.Millisecond})
	for range 2 {
		_, err := b.query("SELECT 1")
		require.NoError(t, err)
		require.Eventually(t, func() bool { return len(b.children()) == 0 }, effort.Patience, time.Millisecond)
	}
}

const spins = "SELECT count(*) FROM range(1000000000000) a, range(1000000) b"

// One who asks much at once leaves others a child, for rows and for SQL.
func TestOneCallerLeavesOthersAChild(t *testing.T) {
	t.Parallel()
	b := newBench(t, peek.Limits{})
	key := b.run(numbers, map[string]string{"numbers.csv": csvOf(10)}, nil)
	ctx, leave := context.WithCancel(t.Context())
	var four sync.WaitGroup
	for range 4 {
		four.Go(func() {
			if _, err := b.queryAs(ctx, tester, spins); fault.Of(err).Kind != fault.Canceled {
				t.Errorf("a query ended: %v", err)
			}
		})
	}
	require.Eventually(t, func() bool { return len(b.busy()) == 1 }, effort.Patience, time.Millisecond)
	other := caller.Caller{Actor: "other", Via: caller.Session}
	page, err := b.pool.Rows(t.Context(), other, peek.Table{Run: key, Table: "numbers"})
	require.NoError(t, err)
	require.Len(t, page.Rows, 10)
	page, err = b.queryAs(t.Context(), other, "SELECT 1")
	require.NoError(t, err)
	require.Equal(t, [][]string{{"1"}}, texts(page))
	page, err = b.pool.Rows(t.Context(), tester, peek.Table{Run: key, Table: "numbers"})
	require.NoError(t, err, "nor does one block the pages of one's own")
	require.Len(t, page.Rows, 10)
	require.LessOrEqual(t, len(b.busy()), 1)
	leave()
	four.Wait()
}

// A run that waits for memory gets that of the children, busy or not: what was asked ends.
func TestChildrenGiveWayToRuns(t *testing.T) {
	t.Parallel()
	b := newBench(t, peek.Limits{Time: effort.Patience})
	_, err := b.query("SELECT 1")
	require.NoError(t, err)
	b.run(numbers, map[string]string{"numbers.csv": csvOf(10)}, nil) // beside one that is idle
	require.Eventually(t, func() bool {                              // it has all of it again
		_, err := b.query("SELECT 1")
		return err == nil && b.pool.ChildBytes() == 512<<20
	}, effort.Patience, time.Millisecond)
	failed := make(chan error, 1)
	go func() {
		_, err := b.query(spins)
		failed <- err
	}()
	require.Eventually(t, func() bool { return len(b.busy()) == 1 }, effort.Patience, time.Millisecond)
	b.run(numbers, map[string]string{"numbers.csv": csvOf(11)}, nil)
	f := fault.Of(<-failed)
	require.Equal(t, fault.TooMany, f.Code)
	require.True(t, f.Retryable)
	require.Contains(t, f.Message, "a run needs the memory: the query was ended")
	page, err := b.query("SELECT count(*) FROM numbers")
	require.NoError(t, err)
	require.Equal(t, [][]string{{"11"}}, texts(page))
}
