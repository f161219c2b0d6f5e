package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/expr"
	"thalweg/internal/test/effort"
)

// sharing is a fixture whose tasks share instances.
type sharing struct {
	*fixture
	all *Instances
	dir string
}

func newSharing(t *testing.T, spares int) *sharing {
	t.Helper()
	s := &sharing{fixture: newFixture(t), dir: filepath.Join(t.TempDir(), "instances")}
	s.all = NewInstances(s.dir)
	s.all.Prepare(spares)
	t.Cleanup(func() {
		require.NoError(t, s.all.Close())
		left, err := filepath.Glob(filepath.Join(s.dir, "*"))
		require.NoError(t, err)
		require.Empty(t, left, "a spill directory outlives its instance")
	})
	return s
}

func (s *sharing) run(t *testing.T, task Task) error {
	t.Helper()
	_, err := s.all.Execute(t.Context(), s.cfg, nil, task)
	return err
}

// inspect runs f in a task of its own.
func (s *sharing) inspect(t *testing.T, f func(ctx context.Context, db Querier) error) error {
	t.Helper()
	return s.run(t, Task{Name: "inspect", Paths: []string{s.fixture.dir}, Output: Output{Inspect: f}})
}

// value asks an instance for one text.
func value(t *testing.T, db Querier, query string) string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	require.NoError(t, err)
	defer rows.Close()
	require.True(t, rows.Next(), query)
	var v sql.NullString
	require.NoError(t, rows.Scan(&v))
	require.NoError(t, rows.Err())
	return v.String
}

func (s *sharing) ask(t *testing.T, query string) (v string) {
	t.Helper()
	require.NoError(t, s.inspect(t, func(_ context.Context, db Querier) error { v = value(t, db, query); return nil }))
	return v
}

func TestTasksShareAnInstance(t *testing.T) {
	s := newSharing(t, 0)
	for range 5 {
		require.NoError(t, s.run(t, s.task("SELECT i FROM range(10) t(i)", PartOutput{})))
	}
	require.Equal(t, 1, s.all.opened)
	require.Len(t, s.all.idle, 1)
	require.Equal(t, 5, s.all.idle[0].tasks)
}

func TestNothingOfATaskIsLeftToTheNext(t *testing.T) {
	effort.Raced(t)
	leave := []struct{ name, statement, visible string }{
		{"temporary table", "CREATE TEMP TABLE kept AS SELECT 1 AS a", "SELECT count(*) FROM duckdb_tables()"},
		{"temporary view", "CREATE TEMP VIEW kept AS SELECT 1 AS a",
			"SELECT count(*) FROM duckdb_views() WHERE view_name = 'kept'"},
		{"macro", "CREATE TEMP MACRO kept() AS 1",
			"SELECT count(*) FROM duckdb_functions() WHERE function_name = 'kept'"},
		{"our macro", "SELECT thalweg_scan_int('1')",
			"SELECT count(*) FROM duckdb_functions() WHERE function_name = 'thalweg' || '_scan_int'"},
	}
	for _, tc := range leave {
		t.Run(tc.name, func(t *testing.T) {
			s := newSharing(t, 0)
			before := s.ask(t, tc.visible)
			require.NoError(t, s.inspect(t, func(ctx context.Context, db Querier) error {
				rows, err := db.QueryContext(ctx, tc.statement)
				if err != nil {
					return err
				}
				return rows.Close()
			}))
			require.Equal(t, before, s.ask(t, tc.visible))
			require.Equal(t, 1, s.all.opened, "they were to use one instance")
		})
	}
}

// Statements that need it (joined texts) find it so nearly always: where the few
// last rows of a row group were behind those of later ones, they ran twice.
func TestRowsBehindAJoinComeInOrderInEveryTask(t *testing.T) {
	s := newSharing(t, 0)
	path := filepath.Join(s.fixture.dir, "rows.parquet")
	db, err := sql.Open("duckdb", "")
	require.NoError(t, err)
	defer db.Close()
	_, err = db.ExecContext(t.Context(), `COPY (SELECT i % 7 AS k, i AS o FROM range(41000) AS t(i)) TO '`+path+
		`' (ROW_GROUP_SIZE 4096)`)
	require.NoError(t, err)
	const rows = `SELECT CAST(bool_and(o = list_sort(o)) AS VARCHAR) FROM (SELECT list(l.o) AS o FROM read_parquet('%s') AS l
		SEMI JOIN (SELECT DISTINCT i AS k FROM range(3) AS t(i)) AS r ON r.k = l.k WHERE l.o %% 4096 < 2100 GROUP BY l.k)`
	for range 3 {
		require.NoError(t, s.inspect(t, func(_ context.Context, db Querier) error {
			require.Equal(t, "true", value(t, db, fmt.Sprintf(rows, path)))
			return nil
		}))
	}
	require.Len(t, s.all.idle, 1, "the tasks share an instance")
}

// The same numbers come in each instance, whatever was drawn before.
func TestSeedsEndWithTheirTask(t *testing.T) {
	s := newSharing(t, 0)
	draw := func() (v string) {
		require.NoError(t, s.inspect(t, func(_ context.Context, db Querier) error {
			value(t, db, "SELECT setseed(0.5)")
			v = value(t, db, "SELECT random()")
			return nil
		}))
		return v
	}
	first := draw()
	require.NotEqual(t, first, s.ask(t, "SELECT random()"))
	require.Equal(t, first, draw())
}

// Counting the records of CSV files needs settings of the connection.
func TestCountingIsOverWithItsTask(t *testing.T) {
	s := newSharing(t, 0)
	const settings = "SELECT string_agg(name || '=' || value, ';' ORDER BY name) FROM duckdb_settings()"
	before := s.ask(t, settings)
	path := filepath.Join(s.fixture.dir, "in.csv")
	require.NoError(t, os.WriteFile(path, []byte("a\n1\n2\n"), 0o600))
	task := s.task("SELECT * FROM read_csv('"+path+"', header = true, parallel = false) WHERE a > 1", PartOutput{})
	task.CSV = []CSVSource{records(2)}
	res, err := s.all.Execute(t.Context(), s.cfg, nil, task)
	require.NoError(t, err)
	require.EqualValues(t, 2, res.CSVRows)
	require.Equal(t, before, s.ask(t, settings))
	require.Equal(t, 1, s.all.opened)
}

// Statements follow one that joins texts, and the records it has read are counted.
func TestCountingBehindJoinedTexts(t *testing.T) {
	s := newSharing(t, 0)
	path := filepath.Join(s.fixture.dir, "in.csv")
	require.NoError(t, os.WriteFile(path, []byte("a\n1\n2\n"), 0o600))
	task := s.task("SELECT "+expr.Joined+"(a, o, ',') AS a FROM (SELECT *, row_number() OVER () AS o FROM read_csv('"+
		path+"', header = true, all_varchar = true, parallel = false))", PartOutput{})
	task.CSV, task.FreeOrder = []CSVSource{records(2)}, true
	for range 2 {
		res, err := s.all.Execute(t.Context(), s.cfg, nil, task)
		require.NoError(t, err)
		require.EqualValues(t, 2, res.CSVRows)
	}
}

func TestWhatIsNotTemporaryEndsTheInstance(t *testing.T) {
	for _, statement := range []string{"CREATE TABLE kept (a INT)", "CREATE OR REPLACE VIEW kept AS SELECT 1 AS a",
		"create schema kept",
		"SET VARIABLE kept = 1", "PREPARE kept AS SELECT 1", "BEGIN TRANSACTION", "SET threads = 2",
		"SET SESSION TimeZone = 'Asia/Tokyo'", "PRAGMA enable_profiling = 'no_output'", "  SELECT 1"} {
		s := newSharing(t, 0)
		require.NoError(t, s.inspect(t, func(ctx context.Context, db Querier) error {
			rows, err := db.QueryContext(ctx, statement)
			if err != nil {
				return err
			}
			return rows.Close()
		}))
		require.Empty(t, s.all.idle, statement)
	}
}

func TestAFailedTaskEndsItsInstance(t *testing.T) {
	s := newSharing(t, 0)
	s.ask(t, "SELECT 1")
	require.Error(t, s.inspect(t, func(context.Context, Querier) error { return errors.New("no") }))
	require.Empty(t, s.all.idle)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.all.Execute(ctx, s.cfg, nil,
		Task{Name: "canceled", Output: Output{Inspect: func(ctx context.Context, db Querier) error {
			cancel()
			_, err := db.QueryContext(ctx, "SELECT count(*) FROM range(1000000000000)")
			return err
		}}})
	require.Error(t, err)
	require.Empty(t, s.all.idle)
	require.Equal(t, "1", s.ask(t, "SELECT 1"))
}

// A task that had to put rows aside changes settings of the whole instance.
func TestATaskWithBadRowsEndsItsInstance(t *testing.T) {
	s := newSharing(t, 0)
	require.NoError(t, s.run(t, s.quarantined(nil)))
	require.Empty(t, s.all.idle)
}

func TestAnInstanceIsReplacedInTime(t *testing.T) {
	s := newSharing(t, 0)
	for range instanceTasksMax + 1 {
		s.ask(t, "SELECT 1")
	}
	require.Equal(t, 2, s.all.opened)
}

func TestInstancesHaveTheBoundsOfTheirTask(t *testing.T) {
	s := newSharing(t, 0)
	for _, threads := range []int{1, 2, 1} {
		s.cfg.Threads, s.cfg.MemoryBytes = threads, int64(threads)<<27
		require.Equal(t, fmt.Sprint(threads), s.ask(t, "SELECT current_setting('threads')"))
		require.Equal(t, fmt.Sprintf("%d.0 MiB", threads<<7), s.ask(t, "SELECT current_setting('memory_limit')"))
	}
	require.Equal(t, 1, s.all.opened)
}

// Shared instances learn new directories; what people wrote may touch what its task names.
func TestFencesOfSharedInstances(t *testing.T) {
	s := newSharing(t, 1)
	other := t.TempDir()
	known, secret := filepath.Join(s.fixture.dir, "known.csv"), filepath.Join(other, "other.csv")
	for _, path := range []string{known, secret} {
		require.NoError(t, os.WriteFile(path, []byte("a\n1\n"), 0o600))
	}
	read := func(path string, secluded bool, paths ...string) error {
		return s.run(t, Task{Name: "read", Paths: paths, Secluded: secluded,
			Output: Output{Inspect: func(ctx context.Context, db Querier) error {
				rows, err := db.QueryContext(ctx, "SELECT count(*) FROM read_csv('"+path+"')")
				if err != nil {
					return err
				}
				return rows.Close()
			}}})
	}
	require.NoError(t, read(known, false, known))
	require.Error(t, read(secret, false, known), "nobody has named it")
	require.NoError(t, read(known, false, known))
	require.NoError(t, read(secret, false, secret), "now a task names it")
	require.NoError(t, read(known, false, known), "its successor may touch both")
	require.Error(t, read(secret, true, known), "it is alone in its instance")
	require.NoError(t, read(known, true, known))
	require.Error(t, read("/etc/passwd", false, known))
	require.Len(t, s.all.idle, 0)
}

// A directory may be named before it is there.
func TestRootsThatAreNotThereYet(t *testing.T) {
	s := newSharing(t, 0)
	later := filepath.Join(t.TempDir(), "a [b]*", "later")
	s.all.Allow(later)
	s.ask(t, "SELECT 1")
	require.NoError(t, os.MkdirAll(later, 0o700))
	task := s.task("SELECT 1 AS a", PartOutput{})
	path := filepath.Join(later, "out.parquet")
	task.Paths, task.Output.Part.Stage = []string{path}, func(context.Context) (string, error) { return path, nil }
	require.NoError(t, s.run(t, task))
	require.Equal(t, 1, s.all.opened)
}

// A secluded task finds a locked configuration and leaves nothing to be shared.
func TestSecludedTasksAreAlone(t *testing.T) {
	s := newSharing(t, 0)
	s.ask(t, "SELECT 1")
	err := s.run(t, Task{Name: "secluded", Secluded: true,
		Output: Output{Inspect: func(ctx context.Context, db Querier) error {
			_, err := db.QueryContext(ctx, "SET threads = 4")
			return err
		}}})
	require.ErrorContains(t, err, "locked")
	require.Equal(t, 1, s.all.idle[0].tasks)
}

// Memory and spill files of a task are gone before the next one.
func TestASharedInstanceGivesMemoryBack(t *testing.T) {
	effort.Raced(t)
	s := newSharing(t, 0)
	s.cfg.MemoryBytes = 64 << 20
	require.NoError(t, s.run(t, s.task("SELECT i, repeat('x', 200) AS x FROM range(400000) t(i) ORDER BY hash(i)",
		PartOutput{})))
	require.Len(t, s.all.idle, 1, "what is left of it ends the instance")
	left, err := os.ReadDir(s.all.idle[0].cfg.SpillDir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestInstancesOfManyTasksAtOnce(t *testing.T) {
	s := newSharing(t, 2)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5 {
				_, err := s.all.Execute(t.Context(), s.cfg, nil, Task{Name: "one of many",
					Paths: []string{s.fixture.dir}, Output: Output{Inspect: func(_ context.Context, db Querier) error {
						return nil
					}}})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, s.all.opened, 4)
}

// A task that ends after Close takes its instance along.
func TestCloseDuringATask(t *testing.T) {
	s := newSharing(t, 0)
	require.NoError(t, s.inspect(t, func(context.Context, Querier) error { return s.all.Close() }))
	require.Empty(t, s.all.idle)
}

// What was prepared is used, and closed if nobody needs it.
func TestPreparedInstances(t *testing.T) {
	s := newSharing(t, 3)
	s.all.Prepare(2)
	require.Len(t, s.all.spares, 3)
	s.ask(t, "SELECT 1")
	require.Len(t, s.all.spares, 2)
	s.all.Prepare(3)
	require.Len(t, s.all.spares, 2)
}

// What a task has held is the system's again, not the allocator's.
func TestMemoryIsGivenBack(t *testing.T) {
	effort.Raced(t)
	s := newSharing(t, 0)
	s.cfg.MemoryBytes = 1 << 30
	var during int64
	require.NoError(t, s.inspect(t, func(ctx context.Context, db Querier) error {
		rows, err := db.QueryContext(ctx,
			"CREATE TEMP TABLE big AS SELECT list(i) AS l FROM range(20000000) t(i) GROUP BY i % 1000")
		if err != nil {
			return err
		}
		during = residentBytes()
		return rows.Close()
	}))
	require.Less(t, residentBytes(), during-100<<20)
}

// records is a source of so many records; counted again, it says so.
type records int64

func (r records) CSVRecords() int64 { return int64(r) }

func (r records) Recount(context.Context, Querier) error {
	return fault.New(fault.Bug, "%d records", int64(r))
}

// Rows that a CSV reader does not deliver fail the task.
func TestLostRowsFailTheTask(t *testing.T) {
	s := newSharing(t, 0)
	path := filepath.Join(s.fixture.dir, "in.csv")
	require.NoError(t, os.WriteFile(path, []byte("a\n1\n2\n"), 0o600))
	for name, test := range map[string]struct {
		sources []CSVSource
		fails   string
	}{
		"all":      {[]CSVSource{records(2)}, ""},
		"together": {[]CSVSource{records(1), records(1)}, ""},
		"lost":     {[]CSVSource{records(3)}, "3 records"},
		"more":     {[]CSVSource{records(1)}, "1 records"},
	} {
		t.Run(name, func(t *testing.T) {
			task := s.task("SELECT * FROM read_csv('"+path+"', header = true)", PartOutput{})
			task.CSV = test.sources
			_, err := s.all.Execute(t.Context(), s.cfg, nil, task)
			if test.fails == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.fails)
		})
	}
}
