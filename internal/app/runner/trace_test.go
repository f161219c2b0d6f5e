package runner_test

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/inspect"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/sources"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/document"
	"thalweg/internal/ops/lineage"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// TestTraceRandomScripts traces rows of random scripts. Each row has the names
// of the rows that it is made of in its fields u and w, put there by the script
// itself, and each input row the name that the test has given it: so the traced
// way is compared, step by step, with what the rows say.
func TestTraceRandomScripts(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	first, last := 1, effort.Of(1, 2, 1500)
	if s := os.Getenv("THALWEG_TRACE_SEED"); s != "" {
		n, err := strconv.Atoi(s)
		require.NoError(t, err)
		first, last = n, n
	}
	for seed := first; seed <= last; seed++ {
		ok := t.Run(fmt.Sprint(seed), func(t *testing.T) {
			traceScript(t, uint64(seed))
		})
		require.True(t, ok, "THALWEG_TRACE_SEED=%d go test ./internal/app/runner -run TestTraceRandomScripts "+
			"runs it again", seed)
	}
}

// traceWorld is a random script with its inputs.
type traceWorld struct {
	*rand.Rand
	t         *testing.T
	dir       string
	nodes     strings.Builder
	tables    []traceTable
	origin    map[string]inputPlace // of input rows, by u
	ephemeral map[string]bool       // nodes whose tables are not stored
}

// traceTable is a table, or an output file, of the script.
type traceTable struct {
	name, kind string
	reads      []string
	key        string // of distinct tables: SQL
	unique     string // the same as an index has it
}

// inputPlace is the place of an input row.
type inputPlace struct {
	file      string
	row, line int64
}

func traceScript(t *testing.T, seed uint64) {
	w := &traceWorld{Rand: rand.New(rand.NewPCG(seed, 8)), t: t, dir: t.TempDir(), origin: map[string]inputPlace{},
		ephemeral: map[string]bool{}}
	w.nodes.WriteString("nodes:\n")
	for i := range 1 + w.IntN(2) {
		w.source(fmt.Sprintf("src%d", i))
	}
	for i := range 2 + w.IntN(5) {
		w.node(fmt.Sprintf("n%d", i))
	}
	for i := range 2 {
		w.output(fmt.Sprintf("out%d", i))
	}
	path := filepath.Join(w.dir, "script.yaml")
	w.write("script.yaml", w.script())
	w.write("code.py", traceCode)
	home, err := instance.Open(t.Context(), filepath.Join(w.dir, "state"), true)
	require.NoError(t, err)
	defer home.Close()
	small, wide := w.IntN(2) == 0, w.IntN(2) == 0
	sum, err := runner.Run(t.Context(), home, runner.Options{ScriptPath: path, Workspace: "main",
		Process: runtime.Process{MemoryBytes: 1 << 30, Cores: 2, Interpreter: "python3", Tune: func(b *budget.Budget) {
			if small { // many batches, and tables in buckets
				b.BatchBytes, b.SmallBytes, b.BroadcastBytes, b.Slots, b.Cores = 400, 0, 0, 2, 2
			}
			if wide {
				b.Slots, b.Cores = 1, 4
			}
		}}, Ephemeral: w.IntN(3) == 0,
	})
	var invalid *sources.InvalidScriptError
	if errors.As(err, &invalid) {
		for _, d := range invalid.Diagnostics {
			if d.Severity == document.Error {
				t.Log(d)
			}
		}
	}
	require.NoError(t, err, w.script())
	require.Equal(t, state.Complete, sum.Status, "%v\n%s", sum.Failure, w.script())
	for node := range sum.ComputedIn {
		w.ephemeral[node] = true
	}
	for i, table := range w.tables {
		if w.ephemeral["make_"+table.name] || w.IntN(2) == 0 && i < len(w.tables)-2 {
			continue
		}
		w.check(home, table)
	}
}

func (w *traceWorld) write(name, text string) string {
	path := filepath.Join(w.dir, name)
	require.NoError(w.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// indexes of every table.
func (w *traceWorld) fields(name, u, v, s, more string) string {
	return fmt.Sprintf(`
    w:
      name: %[1]s%[5]s
      fields:
        u: {expression: '%[2]s', type: string}
        k: {expression: 'r.k', type: int, nullable: true}
        s: {expression: '%[4]s', type: string}
        v: {expression: '%[3]s', type: int}
`, name, u, v, s, more)
}

func (w *traceWorld) add(table traceTable, text string) {
	w.tables = append(w.tables, table)
	w.nodes.WriteString(text)
}

var traceTexts = []string{"", "x", "X", "ü", "a,b", `q"q`, "two\nlines", "three\n\nlines", " y", "line\r\nend"}

// source writes the files of a node and the node.
func (w *traceWorld) source(name string) {
	var urls []string
	bad := w.IntN(3) == 0
	skip := w.IntN(2)
	for f := range 1 + w.IntN(3) {
		urls = append(urls, w.csvFile(name, f, skip, bad))
	}
	quarantine := ""
	if bad {
		quarantine = "\n    bad_rows: {action: quarantine, max_rows: 1000, max_percent: 100}"
	}
	having := []string{"", "\n      having: w.v % 7 != 3"}[w.IntN(2)]
	w.add(traceTable{name: name, kind: "file"}, fmt.Sprintf(`  make_%[1]s:
    type: file_table%[2]s
    r:
      urls: [%[3]s]
      csv: {hdr_line_idx: %[4]d, first_data_line_idx: %[5]d}
      columns: {u: string, k: int?, s: string, v: int = 0}%[6]s        w: {expression: '""', type: string}
%[7]s`, name, quarantine, strings.Join(urls, ", "), skip, skip+1, w.fields(name, "r.u", "r.v", "r.s", having),
		traceIndexes(name)))
}

// traceIndexes holds the place of the indexes that lookups use in the end.
func traceIndexes(name string) string { return "@" + name + "@\n" }

// script has the indexes in their places.
func (w *traceWorld) script() string {
	text := w.nodes.String()
	for _, table := range w.tables {
		var list []string
		if table.unique != "" {
			list = append(list, fmt.Sprintf("idx_%s_u: unique(%s)", table.name, table.unique))
		}
		for _, key := range []string{"k", "s"} {
			if index := "idx_" + table.name + "_" + key; strings.Contains(text, "index_name: "+index+",") {
				list = append(list, index+": non_unique("+key+")")
			}
		}
		indexes := ""
		if len(list) > 0 {
			indexes = "      indexes: {" + strings.Join(list, ", ") + "}\n"
		}
		text = strings.Replace(text, "@"+table.name+"@\n", indexes, 1)
	}
	return text
}

// csvFile writes rows in one of the ways in which they may be written.
func (w *traceWorld) csvFile(name string, n, skip int, bad bool) string {
	var b strings.Builder
	end := []string{"\n", "\r\n"}[w.IntN(2)]
	for range skip {
		b.WriteString("made by hand,ä" + strings.Repeat(",", 2) + end)
	}
	b.WriteString("u,k,s,v" + end)
	file := fmt.Sprintf("%s_%d.csv", name, n)
	rows := w.IntN(40)
	for row := range rows {
		for w.IntN(6) == 0 {
			b.WriteString(end)
		}
		u := fmt.Sprintf("%s%c%d", name, 'a'+n, row)
		w.origin[u] = inputPlace{file, int64(row) + 1, int64(strings.Count(b.String(), "\n")) + 1}
		k, v := strconv.Itoa(w.IntN(6)), strconv.Itoa(w.IntN(50))
		if w.IntN(5) == 0 {
			k = ""
		}
		if bad && w.IntN(6) == 0 {
			v = "oops"
		}
		s := traceTexts[w.IntN(len(traceTexts))]
		if strings.ContainsAny(s, ",\"\n") || w.IntN(4) == 0 {
			s = `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
		}
		b.WriteString(strings.Join([]string{u, k, s, v}, ","))
		if row < rows-1 || w.IntN(2) == 0 {
			b.WriteString(end)
		}
	}
	return w.write(file, b.String())
}

// pick names a table.
func (w *traceWorld) pick() string {
	tables := slices.DeleteFunc(slices.Clone(w.tables), func(t traceTable) bool { return t.kind == "same" })
	return tables[w.IntN(len(tables))].name
}

const traceCode = `
def double(v):
    return v * 2

def join_group(rows):
    return [{"x": "+".join(a + "/" + b for a, b in zip(rows["u"], rows["w"]))}]

def backwards(rows):
    return [{"x": u + "/" + w} for u, w in zip(rows["u"], rows["w"])][::-1]
`

// node adds a node of any kind.
func (w *traceWorld) node(name string) {
	a, b := w.pick(), w.pick()
	having := []string{"", "\n      having: w.v % 5 != 1"}[w.IntN(2)]
	passW := "        w: {expression: 'r.w', type: string}\n" + traceIndexes(name)
	bad := ""
	v := "r.v + 1"
	if w.IntN(4) == 0 {
		bad, v = "\n    bad_rows: {action: quarantine, max_rows: 1000, max_percent: 100}", "100 / (r.v % 9)"
	}
	own := fmt.Sprintf(`r.u + ".%s"`, name)
	head := func(kind string) string { return fmt.Sprintf("  make_%s:\n    type: %s%s\n", name, kind, bad) }
	reads, several := []string{a}, "table: "+a
	if more := w.pick(); more != a && w.IntN(2) == 0 { // one behind the other
		reads, several = []string{a, more}, fmt.Sprintf("tables: [%s, %s]", a, more)
	}
	switch kind := w.IntN(14); kind {
	case 0, 1, 2:
		w.add(traceTable{name: name, kind: "each", reads: []string{a}}, head("table_table")+"    r: "+a+
			w.fields(name, own, v,
				"r.s", having)+passW)
	case 3, 4, 5:
		bad = ""
		join, key := []string{"inner", "left"}[w.IntN(2)], []string{"k", "s"}[w.IntN(2)]
		filter := []string{"", ", filter: l.v % 4 != 0", ", nulls: match"}[w.IntN(3)]
		group := w.IntN(2) == 0
		second, kind := `l.u + "/" + l.w`, "lookup"
		if group {
			second, kind = `string_agg(l.u + "/" + l.w, "+")`, "grouped"
		}
		w.add(traceTable{name: name, kind: kind, reads: append(reads, b)},
			head("table_lookup_table")+
				fmt.Sprintf("    r: {%s}\n    l: {index_name: idx_%s_%s, join_on: r.%s, join_type: %s, group: %t%s}",
					several, b, key, key, join, group, filter)+
				w.fields(name, fmt.Sprintf(`r.u + "/" + r.w + ".%s"`, name), "r.v", "r.s",
					having)+fmt.Sprintf("        w: {expression: '%s', type: string}\n%s", second, traceIndexes(name)))
	case 6:
		bad = ""
		unique := [][2]string{{"k", "k"}, {"s(ignore_case)", "lower(s)"}, {"s", "s"}}[w.IntN(3)]
		w.add(traceTable{name: name, kind: "distinct", reads: []string{a}, key: unique[1], unique: unique[0]},
			head("distinct_table")+"    rerun_policy: fail\n    r: {table: "+a+"}"+
				w.fields(name, own, "r.v", "r.s", "")+passW)
	case 7:
		w.add(traceTable{name: name, kind: "each", reads: []string{a}},
			head("table_custom_tfm_table")+
				fmt.Sprintf("    custom_proc_type: tag_and_denormalize\n    r: {table: %s}\n    p:\n      "+
					"tag_field_name: tag\n      tag_criteria: {odd: r.v %% 2 == 1, big: r.v > 20, any: r.v >= 0}", a)+
				w.fields(name, own, v, `r.s + p.tag`, having)+passW)
	case 8:
		w.add(traceTable{name: name, kind: "each", reads: []string{a}},
			head("table_custom_tfm_table")+
				fmt.Sprintf("    custom_proc_type: py_calc\n    r: {table: %s}\n    p:\n      python_code_urls: "+
					"[%s]\n      calculated_fields: {x: {expression: double(r.v), type: int}}", a,
					filepath.Join(w.dir, "code.py"))+
				w.fields(name, own, strings.ReplaceAll(v, "r.v", "p.x"), "r.s", having)+passW)
	case 9:
		group, kind, function, key := "group_by: k, ", "gathered", "join_group", "r.k"
		if w.IntN(2) == 0 {
			group, kind, function, key, reads, several = "", "batch", "backwards", "1", reads[:1], "table: "+a
			if w.IntN(2) == 0 {
				group = "whole: true, "
			}
		}
		text := strings.Replace(w.fields(name, fmt.Sprintf(`p.x + ".%s"`, name), "1", `"g"`, ""),
			"'r.k'", "'"+key+"'", 1)
		bad = ""
		w.add(traceTable{name: name, kind: kind, reads: reads},
			head("py_table")+fmt.Sprintf(
				"    r: {%s}\n    p: {python_code_urls: [%s], function: %s, %scolumns: [u, w], returns: "+
					"{x: string}}", several, filepath.Join(w.dir, "code.py"), function, group)+
				text+"        w: {expression: '\"\"', type: string}\n"+traceIndexes(name))
	default:
		w.query(name, a, b)
	}
}

// traceQueries are queries over a and b, with what their rows are to those they are made of.
var traceQueries = []struct{ kind, sql string }{
	{"each", "SELECT u || '.NODE' AS u, k, s, v, w FROM a WHERE v % 3 <> 1"},
	{"each", "SELECT u || '.NODE' AS u, k, s, v, w FROM a UNION ALL SELECT u || '.NODE', k, s, v, w FROM b " +
		"WHERE v > 10"},
	{"each", "WITH c AS (SELECT * FROM a WHERE v > 2) SELECT u || '.NODE' AS u, k, s, v, w FROM c QUALIFY " +
		"row_number() OVER (PARTITION BY k ORDER BY u, w) <= 2"},
	{"each", "SELECT u || '.NODE' AS u, k, s, v, w FROM (SELECT * FROM a ORDER BY v, u, w LIMIT 7) WHERE k IN " +
		"(SELECT k FROM b)"},
	{"each", "SELECT DISTINCT ON (k, s) u || '.NODE' AS u, k, s, v, w FROM a ORDER BY k, s, v DESC, u, w"},
	{"gathered", "SELECT string_agg(u || '/' || w, '+' ORDER BY u, w) || '.NODE' AS u, k, min(s) AS s, CAST(sum(v) " +
		"AS BIGINT) AS v, '' AS w FROM a GROUP BY k"},
	{"gathered", "SELECT coalesce(string_agg(u || '/' || w, '+' ORDER BY u, w), '') || '.NODE' AS u, CAST(1 AS " +
		"BIGINT) AS k, 's' AS s, count(*) AS v, '' AS w FROM a"},
	{"gathered", "FROM (SELECT string_agg(u || '/' || w, '+' ORDER BY u, w) || '.NODE' AS u, k, lower(s) AS s, " +
		"max(v) AS v, '' AS w FROM (SELECT * FROM a WHERE v < 40) GROUP BY ALL)"},
	{"pair", "SELECT a.u || '/' || a.w || '.NODE' AS u, a.k, a.s, a.v, coalesce(b.u || '/' || b.w, '') AS w FROM a " +
		"LEFT JOIN b ON a.k = b.k AND a.v < b.v"},
	{"pair", "SELECT x.*, coalesce(y.u || '/' || y.w, '') AS w FROM (SELECT u || '/' || w || '.NODE' AS u, k, s, v " +
		"FROM a) AS x JOIN (SELECT * FROM b) AS y USING (k)"},
}

func (w *traceWorld) query(name, a, b string) {
	if a == b {
		b = w.tables[0].name
	}
	q := traceQueries[w.IntN(len(traceQueries))]
	reads := []string{a, b}
	tables := fmt.Sprintf("{a: %s, b: %s}", a, b)
	if a == b && strings.Contains(q.sql, " b") { // rows of a table beside themselves could not be told apart
		q = traceQueries[0]
	}
	if !strings.Contains(q.sql, " b") {
		reads, tables = []string{a}, fmt.Sprintf("{a: %s}", a)
	}
	w.add(traceTable{name: name, kind: q.kind, reads: reads},
		fmt.Sprintf("  make_%[1]s:\n    type: sql\n    r: {tables: %[2]s}\n    query: |\n      %[3]s\n    w:\n      "+
			"name: %[1]s\n      fields: {u: string, k: {type: int, nullable: true}, s: string, v: int, w: "+
			"string}\n%[4]s", name, tables, strings.ReplaceAll(q.sql, "NODE", name), traceIndexes(name)))
}

// output writes a table to a file.
func (w *traceWorld) output(name string) {
	a := w.pick()
	having := []string{"", "having: w.v % 2 == 0, "}[w.IntN(2)]
	top := []string{"", "top: {order: 'v(desc), s'}, ", "top: {order: 's, v', limit: 5}, "}[w.IntN(3)]
	w.add(traceTable{name: filepath.Join(w.dir, name+".csv"), kind: "same", reads: []string{a}},
		fmt.Sprintf("  %s:\n    type: table_file\n    r: {table: %s}\n    w: {url_template: %s, %s%scolumns: [u, "+
			"s, v, w]}\n", name, a, filepath.Join(w.dir, name+".csv"), having, top))
}

// check traces all rows of a table or file, and compares each step.
func (w *traceWorld) check(home *instance.Instance, table traceTable) {
	const all = 100_000
	limit := 1 + w.IntN(30)
	tree, err := inspect.Trace(w.t.Context(), home, inspect.TraceOptions{Workspace: "main", Name: table.name,
		Process: runtime.Process{MemoryBytes: 1 << 30, Interpreter: "python3"},
		Trace:   lineage.Options{Limit: limit, Sample: all}})
	want := w.rows(home, table)
	if len(want) == 0 {
		require.Error(w.t, err)
		return
	}
	require.NoError(w.t, err, "%s\n%s", table.name, w.script())
	require.EqualValues(w.t, len(want), tree.Matches, table.name)
	require.Len(w.t, tree.Roots, min(limit, len(want)), table.name)
	kinds := map[string]traceTable{}
	for _, one := range w.tables {
		kinds[one.name] = one
	}
	var got []string
	for _, id := range tree.Roots {
		got = append(got, idOf(tree.Rows[id]))
	}
	if table.kind == "same" { // a query gives the rows of a table in buckets as they lie
		require.Equal(w.t, want[:len(got)], got, table.name)
	}
	require.Subset(w.t, want, got, table.name)
	for _, row := range tree.Rows {
		if row.Node == "" {
			continue
		}
		name := cmp.Or(row.Table, row.File)
		require.NotContains(w.t, row.Note, "not known", "%s %s\n%s", name, idOf(row), w.script())
		w.step(home, tree, row, kinds[name])
	}
}

// rows are the ids of a table's rows in order, or of a file's as they are read.
func (w *traceWorld) rows(home *instance.Instance, table traceTable) (ids []string) {
	if table.kind == "same" {
		f, err := os.Open(table.name)
		require.NoError(w.t, err)
		defer f.Close()
		records, err := csv.NewReader(f).ReadAll()
		require.NoError(w.t, err)
		for _, r := range records[1:] {
			ids = append(ids, r[0]+"/"+r[3])
		}
		return ids
	}
	return w.ask(home, fmt.Sprintf("SELECT u || '/' || w FROM %s", table.name))
}

func (w *traceWorld) ask(home *instance.Instance, query string) (out []string) {
	res, err := inspect.Query(context.Background(), home, inspect.QueryOptions{Workspace: "main", SQL: query,
		Process: runtime.Process{MemoryBytes: 1 << 30}})
	require.NoError(w.t, err, query)
	for _, r := range res.Rows {
		out = append(out, r[0].(string))
	}
	return out
}

// idOf returns the text that names a row: its u and its w.
func idOf(r *lineage.Row) string {
	values := map[string]string{}
	for _, v := range r.Values {
		if v.Text != nil {
			values[v.Name] = *v.Text
		}
	}
	return values["u"] + "/" + values["w"]
}

// step compares what a row is made of with what it says.
func (w *traceWorld) step(home *instance.Instance, tree *lineage.Tree, row *lineage.Row, table traceTable) {
	by := map[plan.Role][]string{}
	for _, o := range row.From {
		require.EqualValues(w.t, o.Count, len(o.Sample), table.name)
		if o.File != "" {
			continue
		}
		require.Contains(w.t, table.reads, o.Table)
		for _, id := range o.Sample {
			by[o.Role] = append(by[o.Role], idOf(tree.Rows[id]))
		}
	}
	full := idOf(row)
	at := strings.LastIndex(full, "."+table.name+"/")
	own := func() (string, string) { // u without the name of the node, and w
		require.Positive(w.t, at, full)
		return full[:at], full[at+len(table.name)+2:]
	}
	why := fmt.Sprintf("%s row %s: %v\n%s", table.name, full, by, w.script())
	switch table.kind {
	case "file":
		place := w.origin[strings.TrimSuffix(full, "/")]
		require.Len(w.t, row.From, 1, why)
		record := tree.Rows[row.From[0].Sample[0]]
		require.Equal(w.t, place, inputPlace{filepath.Base(record.File), record.Row, record.Line}, why)
		require.True(w.t, strings.HasPrefix(record.Text, strings.TrimSuffix(full, "/")+","), record.Text)
	case "same":
		require.Equal(w.t, map[plan.Role][]string{plan.RoleRow: {full}}, by, why)
	case "each":
		before, w2 := own()
		role := plan.RoleRow
		if by[plan.RoleQuery] != nil {
			role = plan.RoleQuery
		}
		require.Equal(w.t, map[plan.Role][]string{role: {before + "/" + w2}}, by, why)
	case "lookup", "grouped":
		left, right := own()
		require.Equal(w.t, []string{left}, by[plan.RoleLeft], why)
		require.Equal(w.t, right, strings.Join(by[plan.RoleRight], "+"), why)
	case "pair":
		left, right := own()
		got := by[plan.RoleQuery]
		slices.Sort(got)
		want := slices.DeleteFunc([]string{left, right}, func(s string) bool { return s == "" })
		slices.Sort(want)
		require.Equal(w.t, slices.Compact(want), slices.Compact(got), why)
	case "gathered":
		all, _ := own2(full, at)
		got := slices.Concat(by[plan.RoleQuery], by[plan.RoleGroup])
		if len(by[plan.RoleQuery]) > 0 {
			slices.SortFunc(got, byOrder)
		}
		require.Equal(w.t, all, strings.Join(got, "+"), why)
	case "batch":
		before, _ := own()
		require.Contains(w.t, by[plan.RoleBatch], before, why)
	case "distinct":
		before, w2 := own()
		require.Equal(w.t, before+"/"+w2, by[plan.RoleSame][0], why)
		if w.ephemeral["make_"+table.reads[0]] {
			return // nothing else knows its rows
		}
		first := strings.ReplaceAll(before, "'", "''")
		require.ElementsMatch(w.t,
			w.ask(home,
				fmt.Sprintf("SELECT u || '/' || w FROM %[1]s WHERE %[2]s IS NOT DISTINCT FROM (SELECT %[2]s FROM "+
					"%[1]s WHERE u = '%[3]s' AND w = '%[4]s')",
					table.reads[0], table.key, first, strings.ReplaceAll(w2, "'", "''"))), by[plan.RoleSame], why)
	default:
		require.Fail(w.t, "no such kind", "%q", table.kind)
	}
}

func own2(full string, at int) (string, string) {
	if at < 0 {
		return "", full
	}
	return full[:at], ""
}

// byOrder compares ids as ORDER BY u, w of their rows does.
func byOrder(a, b string) int {
	at, bt := strings.LastIndex(a, "/"), strings.LastIndex(b, "/")
	return cmp.Or(strings.Compare(a[:at], b[:bt]), strings.Compare(a[at:], b[bt:]))
}
