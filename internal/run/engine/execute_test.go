package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/test/effort"
)

// bench of one test: a directory for parts, and an instance's bounds.
type fixture struct {
	dir string
	cfg InstanceConfig
	n   int
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	dir := t.TempDir()
	parts := filepath.Join(dir, "parts")
	require.NoError(t, os.Mkdir(parts, 0o755))
	return &fixture{dir: parts, cfg: InstanceConfig{MemoryBytes: 128 << 20, Threads: 1,
		SpillDir: filepath.Join(dir, "spill")}}
}

func (f *fixture) stage(context.Context) (string, error) {
	f.n++
	return filepath.Join(f.dir, fmt.Sprintf("part%d.parquet", f.n)), nil
}

func (f *fixture) files(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(f.dir, "*"))
	require.NoError(t, err)
	return list
}

func (f *fixture) task(query string, out PartOutput) Task {
	out.Stage = f.stage
	return Task{Name: "test", Paths: []string{f.dir}, Query: query, Output: Output{Part: &out}}
}

func (f *fixture) read(t *testing.T, query string) [][]any {
	t.Helper()
	in, err := OpenInstance(context.Background(), InstanceConfig{Threads: 1, SpillDir: filepath.Join(t.TempDir(), "s"),
		Paths: []string{f.dir}})
	require.NoError(t, err)
	defer func() { require.NoError(t, in.Close()) }()
	rows, err := in.Query(context.Background(), query)
	require.NoError(t, err)
	defer rows.Close()
	var out [][]any
	for rows.Next() {
		row, err := scanRow(rows)
		require.NoError(t, err)
		out = append(out, row)
	}
	require.NoError(t, rows.Err())
	return out
}

func scanRow(rows *sql.Rows) ([]any, error) {
	cols, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	row := make([]any, len(cols))
	ptrs := make([]any, len(cols))
	for i := range row {
		ptrs[i] = &row[i]
	}
	return row, rows.Scan(ptrs...)
}

func TestWritesOnePart(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	res, err := Execute(context.Background(), f.cfg, nil, f.task("SELECT i, 'x' || i AS s FROM range(1000) t(i)",
		PartOutput{}))
	require.NoError(t, err)
	require.EqualValues(t, 1000, res.RowsOut)
	require.Len(t, res.Written, 1)
	w := res.Written[0]
	st, err := os.Stat(w.Path)
	require.NoError(t, err)
	require.Equal(t, st.Size(), w.Bytes)
	require.Greater(t, w.RawBytes, int64(8000))
	_, err = os.Stat(f.cfg.SpillDir)
	require.ErrorIs(t, err, os.ErrNotExist, "the spill directory is gone")
}

func TestWritesNoPartWithoutRows(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, out := range []PartOutput{{}, {BucketSQL: "q.a & 3", SortedBy: []string{BucketColumn}}} {
		res, err := Execute(context.Background(), f.cfg, nil, f.task("SELECT 1 AS a WHERE false", out))
		require.NoError(t, err)
		require.Empty(t, res.Written)
	}
	require.Empty(t, f.files(t))
}

func TestWritesRowsByBucketAndThenInOrder(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	res, err := Execute(context.Background(), f.cfg, nil, f.task("SELECT i FROM range(40000) t(i)",
		PartOutput{BucketSQL: "(q.i * 7) & 3", NumberSQL: "100 + row_number() OVER ()",
			SortedBy: []string{BucketColumn, "__o0"}, RowGroupRows: 2048}))
	require.NoError(t, err)
	require.Len(t, res.Written, 1, "one part, however many buckets")
	require.EqualValues(t, 40000, res.RowsOut)
	part := sqltext.String(res.Written[0].Path)
	got := f.read(t, fmt.Sprintf("SELECT count(*) FILTER ((i * 7) & 3 <> __b), count(*) FILTER (__o0 <> i + 101) FROM "+
		"read_parquet(%s)", part))
	require.Zero(t, got[0][0])
	require.Zero(t, got[0][1], "rows are numbered before they are sorted")
	rows := f.read(t, fmt.Sprintf("SELECT count(*) FROM (SELECT __b, i, lag((__b, i)) OVER (ORDER BY file_row_number) "+
		"AS before FROM read_parquet(%s)) WHERE (__b, i) < before", part))
	require.Zero(t, rows[0][0], "a bucket is one range, in order")
	groups := f.read(t, fmt.Sprintf("SELECT max(row_group_num_rows), count(*) FILTER (stats_min_value IS NULL) FROM "+
		"parquet_metadata(%s) WHERE path_in_schema = '__b'", part))
	require.EqualValues(t, 2048, groups[0][0])
	require.Zero(t, groups[0][1], "each row group says which buckets it has")
}

// What comes by key stays as it comes, if all of it does.
func TestRowsThatComeByKeyAreNotMoved(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	const rows = 60_000
	for name, tc := range map[string]struct {
		key   string
		as    bool // they come
		tries int  // parts that were begun
	}{
		"sorted":            {"i // 100", true, 1},
		"one after another": {"(i // 5000 * 7) % 12", true, 1},
		"falling":           {"-i // 100", true, 1},
		"of many rows each": {"i // 50000", true, 1},
		"shuffled":          {"(i * 7919) % 60000", false, 1},
		"by pages of 1,000": {"i % 1000 * 60 + i // 1000", false, 1}, // each sorted
		"sorted for a while": {fmt.Sprintf("CASE WHEN i < %d THEN i ELSE (i * 7919) %% 60000 END", 2*sampleRows), false,
			2},
		"a failing key": {"CASE WHEN i < 5 THEN error('no key') ELSE i END", false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			tries := 0
			stage := func(ctx context.Context) (string, error) { tries++; return f.stage(ctx) }
			task := f.task(fmt.Sprintf("SELECT i, %s AS k FROM range(%d) AS r(i)", tc.key, rows), PartOutput{})
			var seen []KeyBlock
			task.Output.Part = &PartOutput{Stage: stage, BucketSQL: "q.k & 3", NumberSQL: "row_number() OVER ()",
				SortedBy: []string{BucketColumn, "__o0"}, RowGroupRows: 5000,
				Cluster: &Cluster{ValueSQL: "q.k", Rows: 5000, Keep: func(blocks []KeyBlock) ([]byte, error) {
					seen = blocks
					if overlapping(t, blocks) {
						return nil, nil
					}
					return []byte("{}"), nil
				}}}
			res, err := Execute(context.Background(), f.cfg, nil, task)
			if tc.tries == 0 {
				require.ErrorContains(t, err, "no key")
				require.Empty(t, f.files(t))
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.tries, tries)
			require.Len(t, res.Written, 1)
			require.Len(t, f.files(t), 1)
			require.EqualValues(t, rows, res.RowsOut)
			require.Equal(t, tc.as, res.Written[0].Keys != nil)
			columns := f.read(t, "SELECT count(*) FROM parquet_schema("+sqltext.String(res.Written[0].Path)+
				") WHERE name LIKE '\\_\\_%' ESCAPE '\\'")
			require.Equal(t, tc.as, columns[0][0] == int64(0), "rows that come by key need no hidden columns")
			if tc.as {
				require.Len(t, seen, rows/5000)
			}
		})
	}
}

// overlapping reports whether blocks of numbers have keys between those of more than three others.
func overlapping(t *testing.T, blocks []KeyBlock) bool {
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		require.NoError(t, err)
		return n
	}
	pairs := 0
	for _, a := range blocks {
		for _, b := range blocks {
			if number(a.Min) < number(b.Max) && number(b.Min) < number(a.Max) {
				pairs++
			}
		}
	}
	return pairs > 4*len(blocks)
}

func TestFailureLeavesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, err := Execute(context.Background(), f.cfg, nil,
		f.task("SELECT CASE WHEN i = 300000 THEN "+expr.Raised{Message: "no such thing"}.SQL()+
			" ELSE i END AS i FROM range(400000) t(i)", PartOutput{}))
	require.ErrorContains(t, err, "no such thing")
	require.Equal(t, fault.UserData, fault.Of(err).Kind)
	require.Empty(t, f.files(t))
}

func TestFaults(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	for name, tc := range map[string]struct {
		query string
		kind  fault.Kind
		text  string
	}{
		"conversion": {"SELECT CAST('x' || i AS INTEGER) AS a FROM range(3) t(i)", fault.UserData,
			"Could not convert"},
		"outside paths": {"SELECT * FROM read_csv('/etc/passwd')", fault.Environment, "/etc/passwd"},
		"not SQL":       {"SELECT FROM WHERE", fault.Bug, "syntax"},
		"memory": {"SELECT list(i ORDER BY h) AS l FROM (SELECT i, hash(i) AS h FROM range(40000000) t(i))",
			fault.Environment,
			"more memory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.cfg.SpillBytes = 16 << 20
			_, err := Execute(context.Background(), f.cfg, nil, f.task(tc.query, PartOutput{}))
			require.ErrorContains(t, err, tc.text)
			require.Equal(t, tc.kind, fault.Of(err).Kind, err)
			require.Empty(t, f.files(t))
		})
	}
}

func TestConfigurationIsLocked(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	in, err := OpenInstance(context.Background(), f.cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, in.Close()) }()
	for _, stmt := range []string{"SET memory_limit = '100GB'", "SET enable_external_access = true", "INSTALL httpfs",
		"SET allowed_directories = ['/']"} {
		require.Error(t, in.Exec(context.Background(), stmt), stmt)
	}
}

func TestCancelEndsALongQuery(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx, cancel := context.WithCancel(context.Background())
	task := f.task("SELECT count(*) AS n FROM range(1000000000) a(i), range(1000000) b(j) WHERE hash(i) = hash(j)",
		PartOutput{})
	task.Prepare = func(context.Context) error { cancel(); return nil }
	_, err := Execute(ctx, f.cfg, nil, task)
	require.Equal(t, fault.Canceled, fault.Of(err).Kind)
	require.True(t, errors.Is(err, context.Canceled))
	require.Empty(t, f.files(t))
}

func TestExplainReplacesTheFailure(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	task := f.task("SELECT CAST('x' AS INTEGER) AS a", PartOutput{})
	task.Explain = func(ctx context.Context, db Querier, cause error) error {
		rows, err := db.QueryContext(ctx, "SELECT 42")
		require.NoError(t, err)
		require.NoError(t, rows.Close())
		return &fault.Error{Kind: fault.UserData, Place: fault.Place{File: "in.csv", Line: 42}, Message: "bad"}
	}
	_, err := Execute(context.Background(), f.cfg, nil, task)
	require.EqualValues(t, 42, fault.Of(err).Place.Line)
}

// A batch for which memory was too short runs again with more: no row and no
// expression may be called the cause.
func TestMissingMemoryIsNotExplained(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	f := newFixture(t)
	f.cfg.MemoryBytes = 64 << 20
	task := f.task("SELECT repeat('x', 100000000) || i AS a FROM range(3) t(i)", PartOutput{})
	task.Explain = func(context.Context, Querier, error) error {
		return &fault.Error{Kind: fault.UserData, Place: fault.Place{Record: 1}, Message: "change the expression"}
	}
	_, err := Execute(context.Background(), f.cfg, nil, task)
	require.ErrorIs(t, err, ErrOutOfMemory)
	require.Equal(t, fault.Environment, fault.Of(err).Kind)
	require.Zero(t, fault.Of(err).Place)
}

func TestInspectAsksAndLeavesTablesForTheSides(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	inspect := func(ctx context.Context, db Querier) error {
		rows, err := db.QueryContext(ctx, "CREATE TEMP TABLE found AS SELECT 7 AS a")
		if err != nil {
			return err
		}
		return rows.Close()
	}
	side := SideOutput{Side: "failed", Query: "SELECT * FROM found", Stage: f.stage}
	res, err := Execute(context.Background(), f.cfg, nil, Task{Name: "test", Paths: []string{f.dir},
		Output: Output{Inspect: inspect}, Sides: []SideOutput{side}})
	require.NoError(t, err)
	require.Empty(t, res.Written)
	require.Len(t, res.Sides, 1)
	broken := func(context.Context, Querier) error { return fault.New(fault.UserData, "found 7") }
	_, err = Execute(context.Background(), f.cfg, nil, Task{Name: "test", Output: Output{Inspect: broken},
		Sides: []SideOutput{side}})
	require.ErrorContains(t, err, "found 7")
	require.Len(t, f.files(t), 1)
}

func TestSidesStayWhenTheJudgeFails(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		verdict     error
		main, sides int
	}{
		"all is well":      {nil, 1, 1},
		"the judge fails":  {fault.New(fault.UserData, "too many"), 0, 1},
		"the judge breaks": {errors.New("no idea"), 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			task := f.task("SELECT i FROM range(100) t(i)", PartOutput{})
			task.Sides = []SideOutput{
				{Side: "failed", Query: "SELECT i FROM range(50) t(i)", RowsMax: 7, Stage: f.stage},
				{Side: "bad", Query: "SELECT 1 AS a WHERE false", Stage: f.stage},
			}
			task.Judge = func(ctx context.Context, db Querier, res Result) error {
				require.EqualValues(t, 100, res.RowsOut)
				require.Len(t, res.Sides, 1)
				return tc.verdict
			}
			res, err := Execute(context.Background(), f.cfg, nil, task)
			require.ErrorIs(t, err, tc.verdict)
			require.Len(t, res.Written, tc.main)
			require.Len(t, res.Sides, tc.sides)
			require.Len(t, f.files(t), tc.main+tc.sides)
			require.Equal(t, "failed", res.Sides[0].Side)
			require.EqualValues(t, 7, res.Sides[0].Rows)
		})
	}
}

func TestNoSidesWhenTheTaskFails(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	task := f.task("SELECT 1 AS a", PartOutput{})
	task.Sides = []SideOutput{{Side: "failed", Query: "SELECT 1 AS a", Stage: f.stage},
		{Side: "bad", Query: "SELECT CAST('x' AS INTEGER) AS a", Stage: f.stage}}
	res, err := Execute(context.Background(), f.cfg, nil, task)
	require.Error(t, err)
	require.Empty(t, res.Sides)
	require.Empty(t, f.files(t))
}
