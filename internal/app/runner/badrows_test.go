package runner_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/inspect"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/run/engine"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// dirtyScript has a bad row of each kind in each node that can put rows aside.
// BAD stands for the value of bad_rows; the columns in front of the unused one are dirty.
const dirtyScript = `
nodes:
  load:
    type: file_table
    bad_rows: BAD
    r:
      urls: [DIR/a.csv, DIR/b.csv]
      csv: { hdr_line_idx: 0, first_data_line_idx: 1 }
      columns:
        id: { csv: { col_hdr: id }, col_type: int }
        price: { csv: { col_hdr: price }, col_type: decimal2 }
        name: { csv: { col_hdr: name }, col_type: string }
        unused: { csv: { col_hdr: unused }, col_type: int }
    w:
      name: items
      having: w.id != 77
      fields:
        id: { expression: r.id, type: int }
        price: { expression: r.price, type: decimal2 }
        name: { expression: r.name, type: string }
        per: { expression: 1000 / (r.id % 50), type: int }
  load_parquet:
    type: file_table
    bad_rows: BAD
    r:
      urls: [DIR/in.parquet]
      columns:
        n: { parquet: { col_name: n }, col_type: int }
        v: { parquet: { col_name: v }, col_type: decimal2 }
    w:
      name: parquet_items
      fields:
        n: { expression: r.n, type: int }
        v: { expression: r.v, type: decimal2 }
  computed:
    type: table_table
    bad_rows: BAD
    r: { table: items }
    w:
      name: computed
      having: 100 / (w.id % 40) > 2
      fields:
        id: { expression: r.id, type: int }
        name: { expression: r.name, type: string }
        at: { expression: 'iif(r.id % 10 == 3, time.Parse("2006-01-02", r.name), time.Parse("2006-01-02", ` +
	`"2024-01-01"))', type: datetime }
  tagged:
    type: table_custom_tfm_table
    custom_proc_type: tag_and_denormalize
    bad_rows: BAD
    r: { table: computed }
    p:
      tag_field_name: tag
      tag_criteria:
        all: r.id > 0
        some: 100 / (r.id % 30) >= 0
        few: r.id % 4 == 1
    w:
      name: tagged
      fields:
        id: { expression: r.id, type: int }
        tag: { expression: p.tag, type: string }
        x: { expression: 'iif(p.tag == "few", 10 / (r.id % 7), 0)', type: int }
  scored:
    type: table_custom_tfm_table
    custom_proc_type: py_calc
    bad_rows: BAD
    r: { table: tagged }
    p:
      python_code_urls: [DIR/f.py]
      calculated_fields:
        score: { expression: "f(r.id)", type: int }
    w:
      name: scored
      fields:
        id: { expression: r.id, type: int }
        tag: { expression: r.tag, type: string }
        score: { expression: p.score, type: int }
        share: { expression: 1000 / (p.score - 25), type: int }
  zeroed:
    type: table_custom_tfm_table
    custom_proc_type: py_calc
    bad_rows: NULL
    r: { table: computed }
    p:
      python_code_urls: [DIR/f.py]
      calculated_fields:
        score: { expression: "f(r.id)", type: int }
        text: { expression: "str(p.score)", type: string, nullable: true }
    w:
      name: zeroed
      fields:
        id: { expression: r.id, type: int }
        score: { expression: p.score, type: int }
        text: { expression: p.text, type: string, nullable: true }
  f_scored:
    type: table_file
    bad_rows: BAD
    r: { table: scored, expected_batches_total: 3 }
    w:
      url_template: "OUT/scored_{batch_idx|string}.csv"
      columns:
        - { csv: { header: id, format: "%d" }, name: id, expression: r.id, type: int }
        - { csv: { header: tag, format: "%s" }, name: tag, expression: r.tag, type: string }
        - { csv: { header: share, format: "%d" }, name: share, expression: 100 / (r.id % 11), type: int }
  f_zeroed:
    type: table_file
    bad_rows: BAD
    r: { table: zeroed }
    w:
      url_template: "OUT/zeroed.csv"
      having: 10 / (w.id % 13) >= 0
      top: { order: "score(desc), id", limit: 150 }
      columns:
        - { csv: { header: id, format: "%d" }, name: id, expression: r.id, type: int }
        - { csv: { header: score, format: "%d" }, name: score, expression: r.score, type: int }
        - { csv: { header: text, format: "%s" }, name: text, expression: r.text, type: string, nullable: true }
  f_items:
    type: table_file
    r: { table: items }
    w:
      url_template: "OUT/items.csv"
      columns:
        - { csv: { header: id, format: "%d" }, name: id, expression: r.id, type: int }
        - { csv: { header: price, format: "%s" }, name: price, expression: r.price, type: decimal2 }
        - { csv: { header: name, format: "%s" }, name: name, expression: r.name, type: string }
  f_parquet:
    type: table_file
    r: { table: parquet_items }
    w:
      url_template: "OUT/parquet.csv"
      columns:
        - { csv: { header: n, format: "%d" }, name: n, expression: r.n, type: int }
        - { csv: { header: v, format: "%s" }, name: v, expression: r.v, type: decimal2 }
`

const dirtyFormulas = `
def f(n):
    if n % 9 == 4:
        raise ValueError("not " + str(n % 10))
    if n % 9 == 5:
        return "text"
    return n % 26
`

// dirtyInputs writes the inputs, dirty and clean: the clean CSV files lack the
// bad records of the dirty ones. It returns how many those are.
func dirtyInputs(t *testing.T) (dirty, clean string, bad int) {
	t.Helper()
	dirty, clean = t.TempDir(), t.TempDir()
	for k, file := range []string{"a.csv", "b.csv"} {
		var all, good strings.Builder
		all.WriteString("id,price,name,unused\n")
		good.WriteString("id,price,name,unused\n")
		for i := range 600 {
			n := k*600 + i
			line, ok := dirtyLine(n)
			all.WriteString(line)
			switch {
			case !ok:
				bad++
			case n != 77: // having leaves it out before anything is wrong with it
				good.WriteString(line)
			}
		}
		require.NoError(t, os.WriteFile(filepath.Join(dirty, file), []byte(all.String()), 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(clean, file), []byte(good.String()), 0o644))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dirty, "f.py"), []byte(dirtyFormulas), 0o644))
	in, err := engine.OpenInstance(context.Background(),
		engine.InstanceConfig{Threads: 1, SpillDir: filepath.Join(clean, "spill"), Paths: []string{dirty}})
	require.NoError(t, err)
	defer func() { require.NoError(t, in.Close()) }()
	require.NoError(t, in.Exec(context.Background(),
		"COPY (SELECT CAST(CASE WHEN i % 700 = 9 THEN 9223372036854775808 + i ELSE i END AS UBIGINT) AS n,"+
			" CAST(CASE WHEN i % 900 = 11 THEN 99999999999999999999 ELSE i END AS DECIMAL(30,2)) AS v FROM "+
			"range(5000) AS t(i)) TO "+
			sqltext.String(filepath.Join(dirty, "in.parquet"))+" (FORMAT parquet, ROW_GROUP_SIZE 2048)"))
	return dirty, clean, bad
}

// dirtyLine writes record n and says whether it can be read and computed.
func dirtyLine(n int) (string, bool) {
	switch {
	case n%37 == 5:
		return fmt.Sprintf("%d,1.50,short\n", n), false
	case n%41 == 6:
		return fmt.Sprintf("%d,1.50,long,1,2\n", n), false
	case n%43 == 7:
		return fmt.Sprintf("%d,1.50,caf\xe9 %d,1\n", n, n), false
	case n%47 == 8:
		return fmt.Sprintf("%d,12x%d,price,1\n", n, n%10), false
	case n%53 == 9:
		return fmt.Sprintf("no%d,1.50,\"quoted\nline\",1\n", n), false
	case n%50 == 0:
		return fmt.Sprintf("%d,1.50,division,1\n", n), false
	case n%59 == 10:
		return fmt.Sprintf("\n%d,%d.25,\"two\nlines, \"\"q\"\" %d\",bad but unused\n", n, n, n), true
	case n%61 == 11:
		return fmt.Sprintf("%d,2.00,odd \"quote\" %d,\xff\r\n", n, n), true
	case n == 77:
		return "77,not a price,left out by having,1\n", true
	case n%10 == 3 && n%3 == 0:
		return fmt.Sprintf("%d,,2024-02-03,1\n", n), true
	}
	return fmt.Sprintf("%d,%d.5,name %d,1\n", n, n, n), true
}

const wideCaps = "{action: quarantine, max_rows: 10000, max_percent: 100}"

// runDirty runs the script and returns its files and its bad rows by table.
func runDirty(t *testing.T, inputs, nodes, badRows string, tune func(*budget.Budget)) (map[string]string,
	map[string][]string, runner.Summary) {
	t.Helper()
	dir := t.TempDir()
	ctx, _ := audited(t)
	null := strings.Replace(badRows, "quarantine", "null", 1)
	text := replaceAll(nodes, "DIR", inputs, "OUT", filepath.Join(dir, "out"), "BAD", badRows, "NULL", null)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "script.yaml"), []byte(text), 0o644))
	home, err := instance.Open(ctx, filepath.Join(dir, "state"), true)
	require.NoError(t, err)
	defer func() { require.NoError(t, home.Close()) }()
	sum, err := runner.Run(ctx, home, runner.Options{ScriptPath: filepath.Join(dir, "script.yaml"), Workspace: "main",
		Process: runtime.Process{MemoryBytes: 1 << 30, Cores: 2, Interpreter: "python3", Tune: tune}})
	require.NoError(t, err)
	bad := map[string][]string{}
	for _, b := range inspect.ListBadRows(sum.Nodes, sum.Stats) {
		query, ok := b.Show.Get("query")
		require.True(t, ok)
		res, err := inspect.Query(ctx, home, inspect.QueryOptions{Workspace: "main",
			Process: runtime.Process{MemoryBytes: 1 << 28},
			SQL:     "SELECT * EXCLUDE (node, batch) " + query})
		require.NoError(t, err)
		require.EqualValues(t, b.Rows, len(res.Rows), b.Node)
		slices.SortStableFunc(res.Rows, func(a, b []any) int { // rows without a record stay as they are
			return cmp.Or(cmp.Compare(fmt.Sprint(a[0]), fmt.Sprint(b[0])), cmp.Compare(recordOf(a), recordOf(b)))
		})
		for _, row := range res.Rows {
			bad[b.Node] = append(bad[b.Node], strings.ReplaceAll(fmt.Sprintf("%q", row), inputs, "DIR"))
		}
	}
	return outputs(t, dir), bad, sum
}

// recordOf is the column record of a bad row, 0 without one.
func recordOf(row []any) int64 {
	n, _ := row[3].(int64)
	return n
}

func cutInto(slots int, batch int64) func(*budget.Budget) {
	return func(b *budget.Budget) {
		b.Slots, b.Cores, b.BatchBytes, b.SmallBytes = slots, slots, batch, batch
	}
}

// TestChaosSameBadRowsHoweverTheWorkIsCut puts the same rows aside and keeps the
// same bytes of the rest whatever the batches.
func TestChaosSameBadRowsHoweverTheWorkIsCut(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	dirty, clean, unreadable := dirtyInputs(t)
	want, wantBad, sum := runDirty(t, dirty, dirtyScript, wideCaps, cutInto(1, 1<<30))
	require.Nil(t, sum.Failure)
	require.Equal(t, state.Complete, sum.Status)
	require.Equal(t, unreadable, len(wantBad["load"]))
	require.Len(t, wantBad["load_parquet"], 8+6)
	for _, node := range []string{"computed", "tagged", "scored", "zeroed", "f_scored", "f_zeroed"} {
		require.Greater(t, len(wantBad[node]), 3, node)
	}
	requireDescribed(t, wantBad)
	for _, b := range wantBad["zeroed"] {
		require.Contains(t, b, engine.ActionKept)
	}
	for _, tc := range []struct {
		name string
		tune func(*budget.Budget)
	}{
		{"a few batches", cutInto(2, effort.Of[int64](32<<10, 16<<10, 16<<10))},
		{"many batches", cutInto(3, effort.Of[int64](0, 12<<10, 2<<10))},
		{"threads", func(b *budget.Budget) { b.Slots, b.Cores = 1, 4 }},
	} {
		if effort.Of(tc.name != "a few batches", tc.name == "a few batches", false) {
			continue
		}
		got, bad, sum := runDirty(t, dirty, dirtyScript, wideCaps, tc.tune)
		require.Nil(t, sum.Failure, tc.name)
		for node := range wantBad {
			require.Equal(t, strings.Join(wantBad[node], "\n"), strings.Join(bad[node], "\n"), "%s: bad rows of %s",
				tc.name, node)
		}
		require.Equal(t, want, got, tc.name)
	}

	// What is left is what a strict run makes of inputs without the bad records.
	load, _, _ := strings.Cut(dirtyScript, "  load_parquet:")
	_, write, _ := strings.Cut(dirtyScript, "  f_items:")
	write, _, _ = strings.Cut(write, "  f_parquet:")
	strict, _, sum := runDirty(t, clean, load+"  f_items:"+write, "fail", cutInto(1, 1<<30))
	require.Nil(t, sum.Failure)
	require.Equal(t, strict["items.csv"], want["items.csv"])
}

// requireDescribed looks at bad rows of each kind.
func requireDescribed(t *testing.T, bad map[string][]string) {
	t.Helper()
	for node, rows := range map[string][]string{
		"load": {
			`["DIR/a.csv" '\a' <nil> '\x06' <nil> <nil> <nil> "the record has 3 fields, ` +
				`the first record of the file has 4" "5,1.50,short" "quarantined"]`,
			`["DIR/a.csv" '\b' <nil> '\a' <nil> <nil> <nil> "the record has 5 fields, ` +
				`the first record of the file has 4" "6,1.50,long,1,2" "quarantined"]`,
			`["DIR/a.csv" '\t' '\b' '\b' "name" "caf\\xe9 7" <nil> "column name is not valid UTF-8" ` +
				`"7,1.50,caf\\xe9 7,1" "quarantined"]`,
			`["DIR/a.csv" '\n' '\x03' '\t' "price" "12x8" <nil> "column price: \"12x8\" is not a decimal2" ` +
				`"8,12x8,price,1" "quarantined"]`,
			`["DIR/a.csv" '\v' '\x01' '\n' "id" "no9" <nil> "column id: \"no9\" is not an int" ` +
				`"no9,1.50,\"quoted\nline\",1" "quarantined"]`,
			`["DIR/a.csv" '\x02' <nil> '\x01' "per" "r.id = 0" "1000 / (r.id % 50)" "division by zero in ` +
				"`1000 / (r.id % 50)`" + `" "0,1.50,division,1" "quarantined"]`,
		},
		"load_parquet": {
			`["DIR/in.parquet" <nil> <nil> '\n' "n" "9223372036854775817" <nil> "value \"9223372036854775817\" of ` +
				`column \"n\" (INT64 UINT_64) does not fit int" ` +
				`"{\"n\":\"9223372036854775817\",\"v\":\"9.00\"}" "quarantined"]`,
		},
	} {
		for _, row := range rows {
			require.True(t, slices.Contains(bad[node], row), "%s has no\n%s\nbut\n%s", node, row,
				strings.Join(bad[node][:min(8, len(bad[node]))], "\n"))
		}
	}
	first := func(node string) string { return bad[node][0] }
	require.Contains(t, first("computed"), `"table items"`)
	require.Contains(t, strings.Join(bad["computed"], "\n"), `"having"`)
	require.Contains(t, strings.Join(bad["computed"], "\n"), `"at" "r.id = `)
	require.Contains(t, strings.Join(bad["tagged"], "\n"), `"tag some"`)
	require.Contains(t, strings.Join(bad["tagged"], "\n"), `"x" "p.tag = few, r.id = `)
	require.Contains(t, strings.Join(bad["scored"], "\n"), `ValueError: not `)
	require.Contains(t, strings.Join(bad["scored"], "\n"), `"share" "p.score = 25"`)
	require.Contains(t, first("zeroed"), `{\"id\":`)
	require.Contains(t, first("f_scored"), `"table scored"`)
}

// TestBadRowCaps fails the node when there are more bad rows than it may have,
// whether one batch has them or all together, and the rows can be looked at.
func TestBadRowCaps(t *testing.T) {
	t.Parallel()
	dirty, _, unreadable := dirtyInputs(t)
	for _, tc := range []struct {
		name, caps string
		tune       func(*budget.Budget)
		fails      string
	}{
		{"rows, one batch", fmt.Sprintf("{action: quarantine, max_rows: %d, max_percent: 100}", unreadable-1),
			cutInto(1, 1<<30), fmt.Sprintf("%d of 1200 rows are bad, more than max_rows: %d",
				unreadable, unreadable-1)},
		{"rows, together", fmt.Sprintf("{action: quarantine, max_rows: %d, max_percent: 100}", unreadable-1),
			cutInto(2, 4<<10), fmt.Sprintf("%d of 1200 rows are bad, more than max_rows: %d",
				unreadable, unreadable-1)},
		{"rows, one of many batches", "{action: quarantine, max_rows: 2, max_percent: 100}", cutInto(1, 16<<10),
			"rows of one batch are bad, more than max_rows: 2"},
		{"none", "{action: quarantine, max_rows: 0}", cutInto(2, 4<<10), "more than max_rows: 0"},
		{"percent", "{action: quarantine, max_rows: 10000, max_percent: 13.05}", cutInto(2, 4<<10),
			"more than max_percent: 13.05"},
		{"percent, one batch", "{action: quarantine, max_rows: 10000, max_percent: 13.05}", cutInto(1, 1<<30),
			"more than max_percent: 13.05"},
		{"just enough", fmt.Sprintf("{action: quarantine, max_rows: %d, max_percent: 13.1}", unreadable),
			cutInto(2, 4<<10), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			ctx, dir := context.Background(), t.TempDir()
			load, _, _ := strings.Cut(dirtyScript, "  load_parquet:")
			text := replaceAll(load, "DIR", dirty, "BAD", tc.caps)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "script.yaml"), []byte(text), 0o644))
			home, err := instance.Open(ctx, filepath.Join(dir, "state"), true)
			require.NoError(t, err)
			defer func() { require.NoError(t, home.Close()) }()
			sum, err := runner.Run(ctx, home, runner.Options{ScriptPath: filepath.Join(dir, "script.yaml"),
				Workspace: "main",
				Process:   runtime.Process{MemoryBytes: 1 << 30, Cores: 2, Interpreter: "python3", Tune: tc.tune}})
			require.NoError(t, err)
			if tc.fails == "" {
				require.Equal(t, state.Complete, sum.Status, "the caps are not passed")
				return
			}
			require.Equal(t, state.Failed, sum.Status)
			require.Equal(t, "load", sum.Failure.Node)
			require.Contains(t, sum.Failure.Message, tc.fails)
			require.Contains(t, sum.Failure.Hint, "{{do sql query=FROM~20run1.items__bad}}")
			require.Contains(t, sum.Failure.Place.File, ".csv")
			require.NotZero(t, sum.Failure.Place.Line)
			res, err := inspect.Query(ctx, home,
				inspect.QueryOptions{Workspace: "main", Process: runtime.Process{MemoryBytes: 1 << 28},
					SQL: "SELECT count(*) FROM run1.items__bad"})
			require.NoError(t, err)
			require.Positive(t, res.Rows[0][0])
		})
	}
}

// TestBadRowsSurviveACrash kills the process while rows are put aside, resumes,
// and finds each of them once.
func TestBadRowsSurviveACrash(t *testing.T) {
	t.Parallel()
	dirty, _, unreadable := dirtyInputs(t)
	load, _, _ := strings.Cut(dirtyScript, "  load_parquet:")
	_, write, _ := strings.Cut(dirtyScript, "  f_items:")
	write, _, _ = strings.Cut(write, "  f_parquet:")
	for _, point := range []string{"executed:1", "committed:1", "executed:2"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			ctx, dir := context.Background(), t.TempDir()
			text := replaceAll(load+"  f_items:"+write, "DIR", dirty, "OUT", "out", "BAD", wideCaps)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "script.yaml"), []byte(text), 0o644))
			output, err := victimCmd(t, dir, point, false).CombinedOutput()
			requireKilled(t, err, output)
			output, err = victimCmd(t, dir, "run", true).CombinedOutput()
			require.NoError(t, err, string(output))
			require.Equal(t, "complete\n", string(output))
			home, err := instance.Open(ctx, filepath.Join(dir, instance.DefaultDir), false)
			require.NoError(t, err)
			defer func() { require.NoError(t, home.Close()) }()
			res, err := inspect.Query(ctx, home,
				inspect.QueryOptions{Workspace: "main", Process: runtime.Process{MemoryBytes: 1 << 28},
					SQL: "SELECT count(*), count(DISTINCT (file, record)) FROM items__bad"})
			require.NoError(t, err)
			require.Equal(t, [][]any{{int64(unreadable), int64(unreadable)}}, res.Rows)
		})
	}
}

// scatteredScript puts rows aside of a table whose rows lie in another order
// each time: several threads wrote the pairs of a lookup.
const scatteredScript = `
nodes:
  load:
    type: file_table
    r: { urls: ["DIR/in_*.csv"], types: { id: int, key: int } }
    w: { name: items, fields: [r.id, r.key], indexes: { idx_items_key: non_unique(key) } }
  pair:
    type: table_lookup_table
    r: items
    l: { table: items, on: key, join_type: inner }
    w: { name: pairs, fields: [r.id, {other: l.id}] }
  computed:
    type: table_table
    bad_rows: BAD
    r: pairs
    w: { name: computed, fields: [{share: 100 / ((r.id + r.other) % 7)}] }
  tagged:
    type: table_custom_tfm_table
    custom_proc_type: tag_and_denormalize
    bad_rows: BAD
    r: pairs
    p: { tag_field_name: tag, tag_criteria: { all: r.id >= 0, some: 100 / (r.other % 11) >= 0 } }
    w: { name: tagged, fields: [p.tag, {x: 100 / (r.id % 13)}] }
  scored:
    type: table_custom_tfm_table
    custom_proc_type: py_calc
    bad_rows: BAD
    r: pairs
    p: { python_code_urls: [DIR/f.py], calculated_fields: { score: { expression: "f(r.id, r.other)", type: int } } }
    w: { name: scored, fields: [r.id, {y: 100 / (p.score % 17)}] }
  f_pairs:
    type: table_file
    bad_rows: BAD
    r: pairs
    w: { url_template: OUT/pairs.csv, columns: [id, other, {z: 100 / (r.other % 19)}] }
  f_scored: { type: table_file, r: scored, w: OUT/scored.csv }
  f_tagged: { type: table_file, r: tagged, w: OUT/tagged.csv }
`

// TestChaosBadRowsOfScatteredRows gives the same bad rows in the same order each
// time, and no numbers to rows whose numbers would change.
func TestChaosBadRowsOfScatteredRows(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	dir := t.TempDir()
	for f := range 12 {
		text := "id,key\n"
		for i := range 40 {
			text += fmt.Sprintf("%d,%d\n", f*40+i, (f*40+i)%97)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("in_%02d.csv", f)), []byte(text), 0o644))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "f.py"),
		[]byte("def f(a, b):\n    if (a + b) % 23 == 0:\n        raise ValueError('not ' + str(a))\n    "+
			"return a + b\n"),
		0o644))
	tune := func(b *budget.Budget) {
		b.Slots, b.Cores, b.BatchBytes, b.SmallBytes, b.BroadcastBytes = 1, 4, 1<<30, 1<<30, 0
	}
	var want map[string]string
	var wantBad map[string][]string
	for range effort.Of(1, 2, 10) {
		got, bad, sum := runDirty(t, dir, scatteredScript, wideCaps, tune)
		require.Nil(t, sum.Failure)
		for _, node := range []string{"computed", "tagged", "scored", "f_pairs"} {
			require.Greater(t, len(bad[node]), 20, node)
			for _, row := range bad[node] { // file, line, col, record …
				require.True(t, strings.HasPrefix(row, `["table pairs" <nil> <nil> <nil> `), row)
			}
		}
		if want == nil {
			want, wantBad = got, bad
			continue
		}
		require.Equal(t, want, got)
		for node := range wantBad {
			require.Equal(t, strings.Join(wantBad[node], "\n"), strings.Join(bad[node], "\n"), node)
		}
	}
}
