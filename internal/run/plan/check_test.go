package plan

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
	"thalweg/internal/store/state"
)

// checkScript has a table to check, a table to compare it with, and a file.
const checkScript = `
nodes:
  other:
    type: file_table
    r: &reader
      urls: [in.csv]
      csv: {hdr_line_idx: 0, first_data_line_idx: 1}
      columns:
        i: {col_type: int, nullable: true, csv: {col_hdr: i}}
        s: {col_type: string, nullable: true, csv: {col_hdr: s}}
        p: {col_type: decimal2, nullable: true, csv: {col_hdr: p}}
        f: {col_type: float, nullable: true, csv: {col_hdr: f}}
        d: {col_type: datetime, nullable: true, csv: {col_hdr: d, col_format: "2006-01-02"}}
        b: {col_type: bool, nullable: true, csv: {col_hdr: b}}
    w:
      name: other
      fields: &fields
        i: {expression: r.i, type: int, nullable: true}
        s: {expression: r.s, type: string, nullable: true}
        p: {expression: r.p, type: decimal2, nullable: true}
        f: {expression: r.f, type: float, nullable: true}
        d: {expression: r.d, type: datetime, nullable: true}
        b: {expression: r.b, type: bool, nullable: true}
  mine:
    type: file_table
    r: *reader
    w:
      name: mine
      fields: *fields
    checks:
    - CHECK
  file:
    type: table_file
    r: {table: mine, expected_batches_total: 2}
    w:
      WRITER
      columns:
        - {name: i, expression: r.i, type: int, nullable: true, csv: {header: i, format: "%d"}}
        - {name: twice, expression: r.p + r.p, type: decimal2, nullable: true, csv: {header: p, format: "%s"}}
    checks:
    - FILE
`

// checkBench executes checks as a batch does, without state.
type checkBench struct {
	dir     string
	planner *Planner
	mine    *Table
	other   *Table
	paths   Paths
	context CheckContext
	results []state.CheckResult
	shares  int    // batches that look at the rows before one judges; 0, 1: one does both
	later   *Table // what is there in place of mine when that one judges; nil: mine
	n       int
}

// newCheckBench loads a script with these checks and tables of these rows:
// each a list of i, s, p, f, d, b, shorter ones filled up with NULL.
func newCheckBench(t *testing.T, check, file string, mine, other []string) *checkBench {
	t.Helper()
	return newFileBench(t, check, file, "url_template: out.csv\n      having: is_null(w.i) || w.i < 100", mine, other)
}

// newFileBench also says how the file is written.
func newFileBench(t *testing.T, check, file, writer string, mine, other []string) *checkBench {
	t.Helper()
	text := strings.NewReplacer("CHECK", check, "FILE", file, "WRITER", writer).Replace(checkScript)
	s, diags := script.Load(context.Background(),
		script.Sources{Path: "s.yaml",
			Read: func(context.Context, string) ([]byte, error) { return []byte(text), nil }})
	require.False(t, diags.HasErrors(), diags.Render())
	b := &checkBench{dir: t.TempDir(), paths: Paths{},
		planner: &Planner{Script: s, Budget: budget.Budget{Slots: 1, SlotEngineBytes: 128 << 20, BatchBytes: 64 << 20,
			SmallBytes: 1 << 20, BroadcastBytes: 16 << 20}}}
	b.context = CheckContext{Run: state.RunKey{Workspace: "main", Run: 7}, Created: time.Date(2024, 6, 30, 12, 0, 0, 0,
		time.UTC), Report: func(found []state.CheckResult) { b.results = found }}
	b.mine, b.other = b.table(t, "mine", mine), b.table(t, "other", other)
	return b
}

// table writes rows as two parts.
func (b *checkBench) table(t *testing.T, node string, rows []string) *Table {
	t.Helper()
	n := b.planner.Script.Node(node)
	table := &Table{Node: n, Run: b.context.Run, Layout: layoutOf(n.Table.Fields)}
	in, err := engine.OpenInstance(context.Background(),
		engine.InstanceConfig{Threads: 1, SpillDir: filepath.Join(b.dir, "spill"), Paths: []string{b.dir}})
	require.NoError(t, err)
	defer func() { require.NoError(t, in.Close()) }()
	types := table.Layout.types()
	half := (len(rows) + 1) / 2
	for k, part := range [][]string{rows[:half], rows[half:]} {
		if len(part) == 0 {
			continue
		}
		var values []string
		for _, row := range part {
			cells := strings.Split(row, ",")
			cols := make([]string, len(table.Layout.Columns))
			for c, col := range table.Layout.Columns {
				cell := "NULL"
				if c < len(cells) && strings.TrimSpace(cells[c]) != "" {
					cell = sqltext.String(strings.TrimSpace(cells[c]))
				}
				cols[c] = fmt.Sprintf("CAST(%s AS %s)", cell, types[col.Name].SQL())
			}
			values = append(values, "("+strings.Join(cols, ", ")+")")
		}
		key := fmt.Sprintf("%s-%d", node, k)
		b.paths[key] = filepath.Join(b.dir, key+".parquet")
		require.NoError(t, in.Exec(context.Background(),
			fmt.Sprintf("COPY (FROM (VALUES %s) AS t(%s)) TO %s (FORMAT parquet)",
				strings.Join(values, ", "), strings.Join(allFields(table.Layout), ", "), sqltext.String(b.paths[key]))))
		table.Parts = append(table.Parts, state.Part{Key: key, Rows: int64(len(part)), Bucket: -1})
	}
	return table
}

// check runs the checks of a node and gives the messages of the failed rows.
func (b *checkBench) check(t *testing.T, node string) (messages []string, err error) {
	t.Helper()
	n := b.planner.Script.Node(node)
	in := Inputs{Named: map[string]*Table{"other": b.other, "mine": b.mine}}
	own := b.mine
	if n.Out != nil {
		in.Reader, own = b.mine, nil
	}
	stage := func(context.Context) (string, error) {
		b.n++
		return filepath.Join(b.dir, fmt.Sprintf("side%d.parquet", b.n)), nil
	}
	var found []state.Part
	cfg := engine.InstanceConfig{MemoryBytes: 128 << 20, Threads: 2, SpillDir: filepath.Join(b.dir, "spill")}
	for _, work := range b.planner.checkWorks(max(b.shares, 1), phaseSecond) {
		batch := Batch{Work: work, StageDir: b.dir, Scratch: b.dir, Stage: stage, Checks: b.context}
		if batch.Work.Found = found; b.later != nil && work.Share.judges() {
			own = b.later
		}
		execute := func() (engine.Result, error) { // with what it reads, and nothing else
			batch.Paths = Paths{}
			for _, read := range b.planner.Reads(n, in, batch.Work, own) {
				for _, s := range read.Slices {
					key := read.Table.Parts[s.Part].Key
					batch.Paths[key] = b.paths[key]
				}
			}
			task, err := b.planner.Task(n, in, NodePlan{}, own, batch)
			require.NoError(t, err)
			return engine.Execute(context.Background(), cfg, nil, task)
		}
		var res engine.Result
		if res, err = execute(); errors.Is(err, ErrLookAgain) {
			require.Empty(t, res.Sides)
			batch.Work.Again = true
			res, err = execute()
		}
		for _, w := range res.Sides {
			if w.Side == state.SideFound {
				key := fmt.Sprintf("found-%d", len(found))
				b.paths[key] = w.Path
				found = append(found, state.Part{Key: key, Side: w.Side})
				continue
			}
			messages = append(messages, b.read(t, w.Path)...)
			require.NoError(t, os.Remove(w.Path))
		}
		if err != nil {
			return messages, err
		}
	}
	return messages, err
}

func (b *checkBench) read(t *testing.T, path string) []string {
	t.Helper()
	in, err := engine.OpenInstance(context.Background(),
		engine.InstanceConfig{Threads: 1, SpillDir: filepath.Join(b.dir, "spill"), Paths: []string{b.dir}})
	require.NoError(t, err)
	defer func() { require.NoError(t, in.Close()) }()
	out, err := texts(context.Background(), in,
		fmt.Sprintf("SELECT concat_ws('|', coalesce(CAST(i AS VARCHAR), '-'), __severity, __message) FROM "+
			"read_parquet(%s)", sqltext.String(path)))
	require.NoError(t, err)
	return out
}

const passes = "expression: true"

func TestChecksFindTheRowsThatBreakThem(t *testing.T) {
	t.Parallel()
	rows := []string{"1,a,1.5,0.5,2024-01-01,true", "2,b,-3,nan,2024-02-01,false", "2,,0,,,",
		",it's,9,-1,2024-03-01,true", "5,b,9,1,2024-01-01,false"}
	others := []string{"1,a,2.5", "2,b,-3", "9,c,1", ",n,4"}
	for check, want := range map[string]struct {
		checked, failed int64
		messages        []string // of rows: i, severity, message
	}{
		"not_null: i": {5, 1,
			[]string{"-|error|i is NULL"}},
		"not_null: [i, s]": {5, 2,
			[]string{"2|error|s is NULL", "-|error|i is NULL"}},
		"{not_null: s, where: w.i == 1}": {1, 0, nil},
		"{not_null: s, where: w.i == 2, severity: warn}": {2, 1,
			[]string{"2|warn|s is NULL"}},
		"unique: i": {4, 2,
			[]string{"2|error|2 rows have i = 2", "2|error|2 rows have i = 2"}},
		"unique: [i, s]": {3, 0, nil},
		"unique: s": {4, 2,
			[]string{"2|error|2 rows have s = 'b'", "5|error|2 rows have s = 'b'"}},
		"{unique: s, max_rows: 1}": {4, 2,
			[]string{"2|error|2 rows have s = 'b'"}},
		"{unique: s, max_rows: 0}": {4, 2, nil},
		"range: {field: p, min: 0}": {5, 1,
			[]string{"2|error|p = -3.00, below 0"}},
		"range: {field: p, min: -3, max: 8.99}": {5, 2,
			[]string{"-|error|p = 9.00, above 8.99", "5|error|p = 9.00, above 8.99"}},
		"range: {field: f, max: 1}": {5, 1,
			[]string{"2|error|f = nan, above 1"}},
		"range: {field: d, min: 2024-01-01, max: 2024-02-01}": {5, 1,
			[]string{"-|error|d = 2024-03-01 00:00:00, above 2024-02-01"}},
		"range: {field: s, min: b}": {5, 1,
			[]string{"1|error|s = 'a', below b"}},
		`accepted_values: {field: s, values: [a, "it's"]}`: {5, 2,
			[]string{"2|error|s = 'b', not an accepted value", "5|error|s = 'b', not an accepted value"}},
		"accepted_values: {field: i, values: [1, 2, 5]}": {5, 0, nil},
		"accepted_values: {field: b, values: [true]}": {5, 2,
			[]string{"2|error|b = false, not an accepted value", "5|error|b = false, not an accepted value"}},
		"expression: w.p >= decimal2(0) && w.i < 5": {5, 2,
			[]string{"2|error|p = -3.00, i = 2", "5|error|p = 9.00, i = 5"}},
		"{expression: 10 / w.i > 2, where: w.i != 0}": {4, 1, []string{"5|error|i = 5"}},
		"rows: {min: 5, max: 5}":                      {5, 0, nil},
		"rows: {max: 4}":                              {5, 1, nil},
		"{rows: {min: 2}, where: w.i == 1}":           {1, 1, nil},
		"references: {fields: i, table: other}": {4, 1,
			[]string{"5|error|table other has no row with i = 5"}},
		"references: {fields: [i, s], table: other}": {3, 1,
			[]string{"5|error|table other has no row with i = 5, s = 'b'"}},
		"references: {fields: [s], table: mine, to: [s]}":                                {4, 0, nil},
		"{references: {fields: i, table: other}, where: w.i < 5}":                        {3, 0, nil},
		"freshness: {field: d, max_age: 200d}":                                           {5, 0, nil},
		"freshness: {field: d, max_age: 36h}":                                            {5, 1, nil},
		"reconcile: {value: count(), table: other, equals: count()}":                     {1, 1, nil},
		"reconcile: {value: count(), table: other, equals: count(), tolerance: 1}":       {1, 0, nil},
		"reconcile: {value: sum(w.p), table: other, equals: sum(r.p), tolerance: 12}":    {1, 0, nil},
		"reconcile: {value: sum(w.p), table: other, equals: sum(r.p), tolerance: 11.99}": {1, 1, nil},
		"reconcile: {value: sum(w.p), table: other, equals: count()}":                    {1, 1, nil},
		"reconcile: {value: max(w.s), table: other, equals: max(r.s)}":                   {1, 1, nil},
		"reconcile: {value: min(w.s), table: other, equals: min(r.s)}":                   {1, 0, nil},
		"{reconcile: {value: sum(w.p), table: other, equals: sum(r.p)}, where: w.i < 0}": {1, 1, nil},
		"reconcile: {value: sum(w.p), table: other, equals: sum(r.p), by: i, tolerance: 1}": {5, 2, []string{
			"5|error|i = 5: sum(w.p) is 9.00, but sum(r.p) of table other is 0.00",
			"-|error|i = NULL: sum(w.p) is 9.00, but sum(r.p) of table other is 4.00"}},
	} {
		t.Run(check, func(t *testing.T) {
			t.Parallel()
			b := newCheckBench(t, check, passes, rows, others)
			b.shares = 4
			shared, sharedErr := b.check(t, "mine")
			sharedResults := b.results
			b.shares = 1
			messages, err := b.check(t, "mine")
			require.Equal(t, messages, shared)
			require.Equal(t, b.results, sharedResults)
			require.Equal(t, fault.Of(err), fault.Of(sharedErr))
			require.Len(t, b.results, 1)
			r := b.results[0]
			require.Equal(t, []int64{want.checked, want.failed}, []int64{r.Checked, r.Failed}, r.Message)
			require.Equal(t, want.messages, messages)
			require.EqualValues(t, len(messages), r.Kept)
			require.Equal(t, want.failed == 0, r.Passed)
			if r.Passed || r.Severity == "warn" {
				require.NoError(t, err)
				return
			}
			require.Equal(t, fault.UserData, fault.Of(err).Kind)
			require.Contains(t, err.Error(), "check "+r.Name+": "+r.Message)
			require.EqualValues(t, 31, fault.Of(err).Place.Line, "the failure is where the check is")
		})
	}
}

func TestChecksOfAFile(t *testing.T) {
	t.Parallel()
	rows := []string{"1,a,1", "2,b,-3", "100,c,-5", ",d,0"}
	for check, want := range map[string][]string{
		passes:                               nil,
		"rows: {max: 3}":                     nil,
		"expression: w.twice >= decimal2(0)": {"2|error|twice = -6.00"},
		"not_null: [i, twice]":               {"-|error|i is NULL"},
		"{unique: i, severity: warn}":        nil,
		"reconcile: {value: sum(w.twice), table: mine, equals: sum(r.p), by: {i: i}}": {"1|error|i = 1: sum(w.twice) is " +
			"2.00, but sum(r.p) of table mine is 1.00",
			"2|error|i = 2: sum(w.twice) is -6.00, but sum(r.p) of table mine is -3.00",
			"100|error|i = 100: sum(w.twice) is 0.00, but sum(r.p) of table mine is -5.00"},
		"references: {fields: i, table: other}": {"2|error|table other has no row " +
			"with i = 2"},
	} {
		t.Run(check, func(t *testing.T) {
			t.Parallel()
			b := newCheckBench(t, passes, check, rows, []string{"1"})
			messages, err := b.check(t, "file")
			require.Equal(t, want, messages)
			require.Equal(t, want != nil, err != nil)
		})
	}
}

func TestFreshnessAndChangeCompareWithThePreviousRun(t *testing.T) {
	t.Parallel()
	newest := func(typ, value string) string { return measured{Field: "d", Type: typ, Newest: value}.text() }
	for name, tc := range map[string]struct {
		check, before string
		message       string
		passed        bool
	}{
		"first run": {"freshness: {field: d}", "", firstRun, true},
		"older": {"freshness: {field: d}", newest("datetime", "2024-03-02 00:00:00"),
			"the newest d is 2024-03-01 00:00:00, older than 2024-03-02 00:00:00 in the previous complete run", false},
		"the same": {"freshness: {field: d}", newest("datetime", "2024-03-01 00:00:00"), "", true},
		"the same, not newer": {"freshness: {field: d, newer_than_previous: true}",
			newest("datetime", "2024-03-01 00:00:00"),
			"the newest d is 2024-03-01 00:00:00, not newer than 2024-03-01 00:00:00 in the previous " +
				"complete run", false},
		"newer": {"freshness: {field: d, newer_than_previous: true}",
			newest("datetime", "2024-02-29 23:59:59.999"), "", true},
		"of another type": {"freshness: {field: d}", newest("string", "9"), firstRun, true},
		"no value": {"{freshness: {field: d}, where: w.i > 9}", newest("datetime", "2024-02-29 00:00:00"),
			"there is no value of d", false},
		"first change": {"rows: {change_percent: 10}", "", firstRun, true},
		"small change": {"rows: {change_percent: 50}", measured{Rows: 4}.text(), "", true},
		"large change": {"rows: {change_percent: 49%}", measured{Rows: 4}.text(),
			"there are 2 rows, 4 in the previous complete run: more than 49 % of a change", false},
		"from nothing": {"rows: {change_percent: 1000}", measured{}.text(),
			"there are 2 rows, 0 in the previous complete run: more than 1000 % of a change", false},
		"not what it can read": {"rows: {change_percent: 1}", "{", firstRun, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newCheckBench(t, tc.check, passes, []string{"1,a,1,1,2024-03-01", "2,a,1,1,2024-01-01"}, nil)
			if tc.before != "" {
				b.context.Measured = map[string]string{b.planner.Script.Node("mine").Checks[0].Name: tc.before}
			}
			_, err := b.check(t, "mine")
			require.Equal(t, tc.message, b.results[0].Message)
			require.Equal(t, tc.passed, b.results[0].Passed)
			require.Equal(t, tc.passed, err == nil)
			if tc.passed && !strings.Contains(tc.check, "where") {
				require.NotEmpty(t, b.results[0].Measured, "what the next run compares with")
			}
		})
	}
}

func TestAllChecksAreMadeAndNamed(t *testing.T) {
	t.Parallel()
	b := newCheckBench(t, "unique: i\n    - {name: small, range: {field: i, max: 1}}\n    - {rows: {max: 0}, "+
		"severity: warn}", passes, []string{"1", "1", "7"}, nil)
	messages, err := b.check(t, "mine")
	require.Equal(t, []string{"1|error|2 rows have i = 1", "1|error|2 rows have i = 1", "7|error|i = 7, above 1"},
		messages)
	require.Len(t, b.results, 3)
	require.ErrorContains(t, err, "check unique(i): 2 of 3 rows failed: 2 rows have i = 1")
	require.ErrorContains(t, err, "; failed, too: small")
	require.NotContains(t, err.Error(), "rows:")
	require.Contains(t, fault.Of(err).Hint, "{{do sql query=FROM~20run7.mine__failed}}")
}

func TestCheckThatCannotBeComputedNamesTheRow(t *testing.T) {
	t.Parallel()
	for _, shares := range []int{1, 2} {
		b := newCheckBench(t, "{name: share, expression: 10 / w.i > 2}", passes, []string{"1", "0"}, nil)
		b.shares = shares
		messages, err := b.check(t, "mine")
		require.Empty(t, messages)
		require.Nil(t, b.results)
		require.ErrorContains(t, err, "check share")
		require.EqualValues(t, 2, fault.Of(err).Place.Record)
		require.Contains(t, fault.Of(err).Place.Value, "w.i = 0")
	}
}

// What was found in a table that has been written again since does not count:
// the batch that judges looks at all rows itself.
func TestWhatWasFoundInOtherPartsDoesNotCount(t *testing.T) {
	t.Parallel()
	const checks = "unique: i\n    - range: {field: i, max: 6}"
	after := []string{"1", "7", "1", "8"}
	b := newCheckBench(t, checks, passes, after, nil)
	want, failure := b.check(t, "mine")
	require.Len(t, want, 4)
	results := b.results
	b = newCheckBench(t, checks, passes, []string{"1", "2", "3"}, after)
	b.shares, b.later = 2, b.other
	got, err := b.check(t, "mine")
	require.Equal(t, want, got)
	require.Equal(t, results, b.results)
	require.Equal(t, fault.Of(failure), fault.Of(err))
}

// A row that a check does not look at cannot break it, and cannot stop it either.
func TestWhereGuardsTheCondition(t *testing.T) {
	t.Parallel()
	b := newCheckBench(t, "{expression: 10 / w.i > 2, where: w.i != 0}", passes, []string{"1", "0", ""}, nil)
	_, err := b.check(t, "mine")
	require.NoError(t, err)
	require.EqualValues(t, 1, b.results[0].Checked)
}

// What a file's limit cuts off is not checked; several files are checked together.
func TestFileRowsAreThoseThatAreWritten(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ writer, want string }{
		"all":            {"url_template: out.csv", "1 2 3 4"},
		"top":            {"url_template: out.csv\n      top: {order: i(desc), limit: 2}", "3 4"},
		"a large limit":  {"url_template: out.csv\n      top: {order: i(desc), limit: 4}", "1 2 3 4"},
		"files":          {`url_template: "out{batch_idx|string}.csv"`, "1 2 3 4"},
		"tops of files":  {"url_template: \"out{batch_idx|string}.csv\"\n      top: {order: i(desc), limit: 1}", "2 4"},
		"with condition": {"url_template: out.csv\n      having: w.i > 2", "3 4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFileBench(t, passes, "expression: w.i < 0", tc.writer, []string{"1", "2", "3", "4"}, nil)
			messages, err := b.check(t, "file")
			require.Error(t, err)
			var got []string
			for _, m := range messages {
				i, _, _ := strings.Cut(m, "|")
				got = append(got, i)
			}
			require.Equal(t, strings.Fields(tc.want), got, "in canonical order")
		})
	}
}

// Only checks that grow with a table are shared out, and only those of a large one.
func TestWhichChecksAreSharedOut(t *testing.T) {
	t.Parallel()
	for check, shares := range map[string]int{
		"unique: i":                 8,
		"range: {field: i, max: 1}": 8,
		"reconcile: {value: sum(w.p), table: other, equals: sum(r.p), by: i}": 8,
		"reconcile: {value: sum(w.p), table: other, equals: sum(r.p)}":        1,
		"rows: {max: 4}": 1,
	} {
		b := newCheckBench(t, check, "unique: i", []string{"1"}, []string{"1"})
		n, in := b.planner.Script.Node("mine"),
			Inputs{Reader: b.mine, Named: map[string]*Table{"other": b.other, "mine": b.mine}}
		large := []size{{rows: -1, bytes: b.planner.Budget.SlotEngineBytes}}
		require.Equal(t, shares, b.planner.checkShares(n, in, large), check)
		require.Equal(t, 1, b.planner.checkShares(n, in, []size{{rows: -1, bytes: b.planner.Budget.SmallBytes}}), check)
		require.Equal(t, 1, b.planner.checkShares(b.planner.Script.Node("file"), in, large), "files")
		works := b.planner.checkWorks(shares, phaseSecond)
		last := works[len(works)-1]
		if require.False(t, last.Share.Looks()); shares == 1 {
			require.Equal(t, []Work{{Check: true, Phase: phaseSecond}}, works)
			continue
		}
		require.Len(t, works, shares+1)
		require.Equal(t, &CheckShare{Of: 8, Index: 8, Scans: scansMax}, last.Share)
		require.Equal(t, phaseSecond+1, last.Phase)
	}
}
