package runner_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/python"
	"thalweg/internal/store/parts/cache"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/partstest"
)

// metamorphicScript has what could depend on how the work is cut: text
// gathered in order, floats summed, ties in a sort, rows multiplied by lookups
// and tags, the winner of a distinct, files without any order of their own.
const metamorphicScript = `
nodes:
  orders:
    type: file_table
    r:
      urls: [DIR/orders.csv]
      csv: { hdr_line_idx: 0, first_data_line_idx: 1 }
      columns:
        id: { csv: { col_hdr: id }, col_type: int }
        name: { csv: { col_hdr: name }, col_type: string }
    w:
      name: orders
      fields:
        id: { expression: r.id, type: int }
        name: { expression: r.name, type: string }
        ratio: { expression: float(r.id) / 7.0, type: float }
        key: { expression: "iif(r.id % 5 == 0, null, r.id % 90)", type: int, nullable: true }
        label: { expression: "iif(r.id % 3 == 0, null, r.name)", type: string, nullable: true }
      indexes:
        idx_orders_name: non_unique(name)
        idx_orders_key: non_unique(key, label)
  items:
    type: file_table
    r:
      urls: [DIR/items_1.csv, DIR/items_2.csv]
      csv: { hdr_line_idx: 0, first_data_line_idx: 1 }
      columns:
        order_id: { csv: { col_hdr: order_id }, col_type: int }
        value: { csv: { col_hdr: value }, col_type: decimal2 }
    w:
      name: items
      having: w.value > decimal2(20)
      fields:
        order_id: { expression: r.order_id, type: int }
        value: { expression: r.value, type: decimal2 }
        text: { expression: string(r.value), type: string }
      indexes:
        idx_items: non_unique(order_id)
  grouped:
    type: table_lookup_table
    r: { table: orders }
    l: { index_name: idx_items, join_on: r.id, group: true, join_type: left }
    w:
      name: grouped
      fields:
        id: { expression: r.id, type: int }
        name: { expression: r.name, type: string }
        total: { expression: sum(l.value), type: decimal2 }
        floats: { expression: 'sum(float(l.value) / 3.0)', type: float }
        list: { expression: 'string_agg(l.text, ";")', type: string, default_value: none }
  mixed:
    type: table_lookup_table
    r: { table: orders }
    l: { index_name: idx_items, join_on: r.id, group: true, join_type: inner, filter: l.value < decimal2(400) }
    w:
      name: mixed
      fields:
        id: { expression: r.id, type: int }
        list: { expression: 'string_agg(r.name + l.text, ";")', type: string }
  namesakes:
    type: table_lookup_table
    r: { table: grouped }
    l: { index_name: idx_orders_name, join_on: r.name, group: false, join_type: inner }
    w:
      name: namesakes
      fields:
        id: { expression: r.id, type: int }
        other: { expression: l.id, type: int }
        name: { expression: r.name, type: string }
        list: { expression: r.list, type: string }
  null_pairs:
    type: table_lookup_table
    r: { table: orders }
    l: { index_name: idx_orders_key, join_on: "r.key, r.label", join_type: left, nulls: match, ` +
	`filter: "is_null(l.key) || l.key > 30" }
    w:
      name: null_pairs
      fields:
        key: { expression: r.key, type: int, nullable: true }
        id: { expression: r.id, type: int }
        other: { expression: l.id, type: int, nullable: true }
      indexes:
        idx_null_pairs: non_unique(key)
  null_groups:
    type: table_lookup_table
    r: { table: orders }
    l: { index_name: idx_null_pairs, join_on: r.key, join_type: left, group: true }
    w:
      name: null_groups
      fields:
        id: { expression: r.id, type: int }
        label: { expression: r.label, type: string, nullable: true }
        rows: { expression: count(), type: int }
        others: { expression: count(l.other), type: int }
        last: { expression: max(l.other), type: int, nullable: true }
  null_labels:
    type: distinct_table
    rerun_policy: fail
    r: { table: null_groups }
    w:
      name: null_labels
      fields:
        label: { expression: r.label, type: string, nullable: true }
        id: { expression: r.id, type: int }
        last: { expression: r.last, type: int, nullable: true }
      indexes:
        idx_null_labels: unique(label)
  f_null_pairs:
    type: table_file
    r: { table: null_pairs }
    w:
      url_template: OUT/null_pairs.csv
      top: { order: "other(desc), key(nulls_first)" }
      columns:
        - { csv: { header: id, format: "%d" }, name: id, expression: r.id, type: int }
        - { csv: { header: key, format: "%d" }, name: key, expression: r.key, type: int, nullable: true }
        - { csv: { header: other, format: "%d" }, name: other, expression: r.other, type: int, nullable: true }
  f_null_labels:
    type: table_file
    r: { table: null_labels }
    w:
      url_template: OUT/null_labels.csv
      columns:
        - { csv: { header: label, format: "%s" }, name: label, expression: r.label, type: string, nullable: true }
        - { csv: { header: id, format: "%d" }, name: id, expression: r.id, type: int }
        - { csv: { header: last, format: "%d" }, name: last, expression: r.last, type: int, nullable: true }
  names:
    type: distinct_table
    rerun_policy: fail
    r: { table: namesakes }
    w:
      name: names
      fields:
        name: { expression: r.name, type: string }
        first: { expression: r.id, type: int }
        other: { expression: r.other, type: int }
      indexes:
        idx_names: unique(name)
  tagged:
    type: table_custom_tfm_table
    custom_proc_type: tag_and_denormalize
    r: { table: namesakes }
    p:
      tag_field_name: tag
      tag_criteria:
        low: r.id < 150
        even: r.id % 2 == 0
        any: r.id >= 0
    w:
      name: tagged
      fields:
        tag: { expression: p.tag, type: string }
        id: { expression: r.id, type: int }
        other: { expression: r.other, type: int }
  scored:
    type: table_custom_tfm_table
    custom_proc_type: py_calc
    r: { table: tagged }
    p:
      python_code_urls: [DIR/score.py]
      calculated_fields:
        score: { expression: "score(r.tag, str(r.other))", type: int }
    w:
      name: scored
      fields:
        tag: { expression: r.tag, type: string }
        id: { expression: r.id, type: int }
        score: { expression: p.score, type: int }
  queried:
    type: sql
    r: { tables: { o: orders, i: items, n: namesakes } }
    query: |
      SELECT o.name, count(*) AS n, sum(i.value / 7) AS floats, string_agg(i.text, ';') AS list,
             arg_max(o.id, o.ratio) AS best, any_value(i.text) AS any_text,
             (SELECT max(k) FROM (SELECT row_number() OVER (PARTITION BY n.name ORDER BY n.name) * n.other AS k ` +
	`FROM n WHERE n.name = o.name)) AS k
      FROM o JOIN i ON i.order_id = o.id GROUP BY o.name
    w:
      name: queried
      fields: { name: string, n: int, floats: float, list: string, best: int, any_text: string, k: int? }
  f_queried:
    type: table_file
    r: { table: queried }
    w:
      url_template: OUT/queried.csv
      columns:
        - { csv: { header: name, format: "%s" }, name: name, expression: r.name, type: string }
        - { csv: { header: floats, format: "%v" }, name: floats, expression: r.floats, type: float }
        - { csv: { header: list, format: "%s" }, name: list, expression: r.list, type: string }
        - { csv: { header: best, format: "%d" }, name: best, expression: r.best, type: int }
        - { csv: { header: any, format: "%s" }, name: any, expression: r.any_text, type: string }
        - { csv: { header: k, format: "%d" }, name: k, expression: "coalesce(r.k, 0)", type: int }
  by_rows:
    type: sql
    r: { tables: { o: orders, i: items, n: namesakes } }
    query: |
      SELECT id, name, ratio * 3 AS ratio, label FROM o WHERE id % 3 > 0
      UNION ALL SELECT order_id, text, -0.0 * (order_id % 2), NULL FROM i WHERE value < 300
      UNION ALL SELECT id, unnest([name, list]), CAST(other AS DOUBLE), v.w FROM n LEFT JOIN (VALUES (1, 'one'), ` +
	`(2, 'two')) AS v(n, w) ON v.n = other % 5
    w: by_rows
  by_key:
    type: sql
    r: { tables: { o: orders, n: null_pairs } }
    by: key
    query: |
      WITH sums AS (SELECT key, sum(id / 7) AS s, string_agg(name, ',') AS names FROM o GROUP BY key)
      SELECT n.key, n.id, s.names, sum(n.other) OVER (PARTITION BY n.key ORDER BY n.id) AS sum, s.s
      FROM n LEFT JOIN sums AS s ON s.key = n.key
      QUALIFY row_number() OVER (PARTITION BY n.key, n.id ORDER BY n.other) < 3
    w: by_key
  by_key_sorted:
    type: sql
    r: [by_key, orders]
    by: [key]
    query: SELECT key, id, sum FROM by_key SEMI JOIN orders USING (key, id) ORDER BY sum DESC NULLS FIRST, id
    w: by_key_sorted
  by_rows_looked_up:
    type: table_lookup_table
    r: orders
    l: { table: by_rows, on: id, join_type: left, group: true }
    w: { name: by_rows_looked_up, fields: [id, { list: 'string_agg(l.name, ";")' }] }
  by_rows_twice:
    type: table_lookup_table
    r: by_rows
    l: { table: by_key, on: id, join_type: left }
    w: { name: by_rows_twice, fields: [r.id, r.name, l.sum] }
  by_rows_first:
    type: distinct_table
    rerun_policy: fail
    r: by_rows_twice
    w: { name: by_rows_first, fields: [id, name, sum], indexes: { idx_by_rows_first: unique(id) } }
  f_by_rows: { type: table_file, r: by_rows, w: OUT/by_rows.csv }
  f_by_key: { type: table_file, r: by_key, w: OUT/by_key.csv }
  f_by_key_sorted: { type: table_file, r: by_key_sorted, w: OUT/by_key_sorted.csv }
  f_by_rows_looked_up: { type: table_file, r: by_rows_looked_up, w: OUT/by_rows_looked_up.csv }
  f_by_rows_first: { type: table_file, r: by_rows_first, w: OUT/by_rows_first.csv }
  py_groups:
    type: py_table
    r: namesakes
    p:
      python_code_urls: [DIR/groups.py]
      function: groups
      group_by: name
      columns: [id, other]
      returns: { ids: string, n: int, last: bool }
    w:
      name: py_groups
      fields: [r.name, p.*]
  py_keys:
    type: py_table
    r: null_pairs
    p: { python_code_urls: [DIR/groups.py], function: keys, group_by: key, returns: { key: { type: int, ` +
	`nullable: true }, n: int } }
    w: py_keys
  py_each:
    type: py_table
    r: orders
    p: { python_code_urls: [DIR/groups.py], function: each, columns: [id, ratio], returns: { id: int, ratio: float } }
    w: py_each
  py_after:
    type: py_table
    r: py_groups
    p: { python_code_urls: [DIR/groups.py], function: after, columns: [name, n], returns: { name: string } }
    w: py_after
  py_whole:
    type: py_table
    r: py_groups
    p: { python_code_urls: [DIR/groups.py], function: whole, batch: table, returns: { text: string } }
    w: py_whole
  named:
    type: table_table
    r: orders
    w: { name: named, fields: [id, name, { label: "iif(r.id % 2 == 0, r.label, null)" }] }
  namesakes_again:
    type: table_table
    r: namesakes
    w: { name: namesakes_again, fields: [{ from: "iif(r.id > 9, r.other, null)" }, name, id] }
  py_several:
    type: py_table
    r: [namesakes_again, named]
    p: { python_code_urls: [DIR/groups.py], function: several, group_by: id, returns: { text: string } }
    w: { name: py_several, fields: [r.id, p.text] }
  several_pairs:
    type: table_lookup_table
    r: [named, namesakes_again]
    l: { table: items, on: id = order_id, join_type: left }
    w: { name: several_pairs, fields: [r.id, r.name, r.from, { text: 'coalesce(l.text, "")' }] }
  f_several_pairs: { type: table_file, r: several_pairs, w: OUT/several_pairs.csv }
  f_py_several: { type: table_file, r: py_several, w: OUT/py_several.csv }
  f_py_groups: { type: table_file, r: py_groups, w: OUT/py_groups.csv }
  f_py_keys: { type: table_file, r: py_keys, w: OUT/py_keys.csv }
  f_py_each: { type: table_file, r: py_each, w: OUT/py_each.csv }
  f_py_after: { type: table_file, r: py_after, w: OUT/py_after.csv }
  f_py_whole: { type: table_file, r: py_whole, w: OUT/py_whole.csv }
  f_grouped:
    type: table_file
    r: { table: grouped }
    w:
      url_template: OUT/grouped.csv
      columns:
        - { csv: { header: id, format: "%d" }, name: id, expression: r.id, type: int }
        - { csv: { header: floats, format: "%v" }, name: floats, expression: r.floats, type: float }
        - { csv: { header: list, format: "%s" }, name: list, expression: r.list, type: string }
  f_mixed:
    type: table_file
    r: { table: mixed }
    w:
      url_template: OUT/mixed.csv
      columns:
        - { csv: { header: id, format: "%d" }, name: id, expression: r.id, type: int }
        - { csv: { header: list, format: "%s" }, name: list, expression: r.list, type: string }
  f_names:
    type: table_file
    r: { table: names }
    w:
      url_template: OUT/names.csv
      columns:
        - { csv: { header: name, format: "%s" }, name: name, expression: r.name, type: string }
        - { csv: { header: first, format: "%d" }, name: first, expression: r.first, type: int }
        - { csv: { header: other, format: "%d" }, name: other, expression: r.other, type: int }
  f_scored:
    type: table_file
    r: { table: scored, expected_batches_total: 3 }
    w:
      url_template: "OUT/scored_{batch_idx|string}.csv"
      columns: &scored
        - { csv: { header: tag, format: "%s" }, name: tag, expression: r.tag, type: string }
        - { csv: { header: id, format: "%d" }, name: id, expression: r.id, type: int }
        - { csv: { header: score, format: "%d" }, name: score, expression: r.score, type: int }
  f_ties:
    type: table_file
    r: { table: scored }
    w:
      url_template: OUT/ties.csv
      top: { order: "score(desc)", limit: 200 }
      columns: *scored
`

// metamorphicFunctions depend on the order of their rows, and on nothing else.
const metamorphicFunctions = `
def groups(rows):
    ids = ["%d-%d" % pair for pair in zip(rows["id"], rows["other"])]
    return [{"ids": ",".join(ids), "n": len(ids), "last": False}, {"ids": ids[-1], "n": 1, "last": True}]

def several(rows):
    return {"text": [",".join("%s %s %s" % row for row in zip(rows["name"], rows["label"], rows["from"]))]}

def keys(rows):
    return {"key": rows["key"][:1], "n": [sum(rows["id"])]}

def each(rows):
    return {"id": [i for i in rows["id"] for _ in (0, 1)], "ratio": [r * k for r in rows["ratio"] for k in (1, 3)]}

def after(rows):
    return [{"name": name} for name, n in zip(rows["name"], rows["n"]) if n > 1]

def whole(rows):
    return {"text": (";".join(rows["ids"][:100]), str(len(rows["ids"])))}
`

// piecewise begins the names of cases in which batches are cut into pieces.
const piecewise = "pieces "

// shortOfMemory makes tasks run out of memory that write more rows of a table than
// shortRows, unless they have the memory of all slots.
type shortOfMemory struct {
	failed, alone atomic.Int64
}

const shortRows = 150

func (s *shortOfMemory) unless(not bool) func(engine.Executor) engine.Executor {
	return func(e engine.Executor) engine.Executor {
		if not {
			return e
		}
		return shortExecutor{e, s, new(atomic.Int64)}
	}
}

type shortExecutor struct {
	engine.Executor
	short *shortOfMemory
	slot  *atomic.Int64 // the memory of one
}

func (e shortExecutor) Execute(ctx context.Context, cfg engine.InstanceConfig, pool *python.Pool,
	task engine.Task) (engine.Result, error) {
	e.slot.CompareAndSwap(0, cfg.MemoryBytes) // all have the same but those that run alone, later
	if cfg.MemoryBytes > e.slot.Load() {
		e.short.alone.Add(1)
		return e.Executor.Execute(ctx, cfg, pool, task)
	}
	res, err := e.Executor.Execute(ctx, cfg, pool, task)
	if err != nil || task.Output.Part == nil || res.RowsOut <= shortRows {
		return res, err
	}
	e.short.failed.Add(1)
	for _, w := range res.Written {
		if err := os.Remove(w.Path); err != nil {
			return engine.Result{}, err
		}
	}
	return engine.Result{}, &fault.Error{Kind: fault.Environment, Message: task.Name, Err: engine.ErrOutOfMemory}
}

// withoutPaths keeps a state directory's parts in a store that has no paths, where
// every fourth reading breaks, with room for few copies.
func withoutPaths(t *testing.T, home *instance.Instance) *partstest.Memory {
	t.Helper()
	const limitBytes = 256 << 10
	var readings atomic.Int64
	far := &partstest.Memory{Break: func(_ string, _, length int64) int64 {
		if n := readings.Add(1); n%4 == 0 {
			return n % max(length, 1)
		}
		return -1
	}}
	store, err := cache.New(far, filepath.Join(home.Dir, "copies"), limitBytes)
	require.NoError(t, err)
	require.NoError(t, home.Parts.Close())
	home.Parts = store
	return far
}

// auditedCuts have every shape of plan among them.
var auditedCuts = []string{"threads", "small batches, two buckets"}

// rareCuts are left to `make chaos`: each of their features is in another one.
var rareCuts = []string{"small batches, right side whole", "one batch, many buckets",
	"many parts, read by four threads", "buckets for large tables only", piecewise + "of one batch"}

// TestChaosSameBytesHoweverTheWorkIsCut runs one script under many budgets: batches
// of a few kilobytes, tables in buckets or read whole, one slot or several.
func TestChaosSameBytesHoweverTheWorkIsCut(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	inputs := crashInputs(t)
	require.NoError(t, os.WriteFile(filepath.Join(inputs, "groups.py"), []byte(metamorphicFunctions), 0o644))
	cut := func(slots, threads int, batch, small int64, engine int64) func(*budget.Budget) {
		return func(b *budget.Budget) {
			b.Slots, b.Cores, b.BatchBytes, b.SmallBytes, b.BroadcastBytes = slots, max(slots, threads),
				batch, small, small
			if engine > 0 {
				b.SlotEngineBytes = engine
			}
		}
	}
	auditing, audit := audited(t)
	var want map[string]string
	short := &shortOfMemory{}
	var cases, opened int
	for _, tc := range []struct {
		name string
		tune func(*budget.Budget)
	}{
		{"one batch each", cut(1, 1, 1<<30, 1<<30, 0)},
		{"threads", cut(1, 4, 1<<30, 1<<30, 0)},
		{"small batches, right side whole", cut(3, 3, 1<<10, 1<<30, 0)},
		{"small batches, two buckets", cut(2, 2, effort.Of[int64](16<<10, 8<<10, 2<<10), 0, 0)},
		{"tiny batches, many buckets", cut(4, 4, effort.Of[int64](0, 16<<10, 1<<10), 0, 64<<10)},
		{"one batch, many buckets", cut(1, 2, 1<<30, 0, 32<<10)},
		{"many parts, read by four threads", cut(1, 4, effort.Of[int64](0, 4<<10, 1<<10), 0, 64<<10)},
		{"buckets for large tables only", cut(2, 2, 4<<10, 8<<10, 64<<10)},
		{piecewise + "of one batch", cut(2, 2, 1<<30, 1<<30, 0)},
		{piecewise + "of buckets", cut(2, 2, 16<<10, 0, 0)},
	} {
		if effort.Of(want != nil && !slices.Contains(auditedCuts, tc.name) && !strings.HasPrefix(tc.name, piecewise),
			slices.Contains(rareCuts, tc.name), false) {
			continue
		}
		dir := t.TempDir()
		text := replaceAll(metamorphicScript, "DIR", inputs, "OUT", filepath.Join(dir, "out"))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "script.yaml"), []byte(text), 0o644))
		home, err := instance.Open(context.Background(), filepath.Join(dir, "state"), true)
		require.NoError(t, err)
		ctx := context.Background()
		if slices.Contains(auditedCuts, tc.name) {
			ctx = auditing
		}
		var far *partstest.Memory
		if want != nil && tc.name != "threads" {
			far = withoutPaths(t, home)
		}
		sum, err := runner.Run(ctx, home, runner.Options{ScriptPath: filepath.Join(dir, "script.yaml"),
			Workspace: "main",
			Process: runtime.Process{MemoryBytes: 1 << 30, Cores: 2, Interpreter: "python3", Tune: tc.tune,
				Executor: short.unless(!strings.HasPrefix(tc.name, piecewise))}})
		require.NoError(t, err, tc.name)
		require.Nil(t, sum.Failure, tc.name)
		require.Equal(t, state.Complete, sum.Status, tc.name)
		require.NoError(t, home.Close())
		if far != nil { // how many depends on what still lies in the cache
			cases, opened = cases+1, opened+far.Opens()
		}
		if want != nil && tc.name == "small batches, two buckets" {
			for _, node := range sum.Nodes {
				if slices.Contains([]string{"by_rows", "by_key", "by_key_sorted", "py_several"}, node.Name) {
					require.Greater(t, node.BatchesTotal, 1, node.Name)
				}
			}
		}
		got := outputs(t, dir)
		require.Len(t, got, 22, tc.name)
		if want == nil {
			want = got
			require.Greater(t, len(got["ties.csv"]), 1000)
			require.Greater(t, len(got["null_pairs.csv"]), 4000) // 400 pairs at least have no key and no label
			for _, name := range []string{"py_groups.csv", "py_keys.csv", "py_each.csv", "py_after.csv", "py_whole.csv",
				"py_several.csv", "several_pairs.csv", "by_rows.csv", "by_key.csv", "by_key_sorted.csv",
				"by_rows_looked_up.csv", "by_rows_first.csv"} {
				require.NotEmpty(t, got[name])
				require.Greater(t, strings.Count(got[name], "\n"), 2)
			}
			require.Contains(t, got["null_labels.csv"], "\n,0,")
			continue
		}
		for name := range want {
			require.Equal(t, want[name], got[name], "%s: %s", tc.name, name)
		}
	}
	require.True(t, cases == 0 || opened > 20, "parts were read from the store without paths")
	require.Greater(t, short.failed.Load(), int64(20))
	require.Positive(t, short.alone.Load())
	require.Greater(t, audit.statements, 100)
	require.Greater(t, audit.sorted, 10)
	require.Greater(t, audit.free, 10)
}
