package compare_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	duckdb "github.com/duckdb/duckdb-go/v2"
	"github.com/stretchr/testify/require"

	"thalweg/internal/base/budget"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/ops/compare"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/parts"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// paths is a store whose keys are paths.
type paths struct{ parts.Store }

func (paths) Reserve(context.Context, int64) (func(), error) { return func() {}, nil }

func (paths) Fetch(_ context.Context, key, _ string) (string, func(), error) {
	return key, func() {}, nil
}

// values that a column of each type can have, in their order; nil is last.
var values = map[string][]any{
	"int":      {int64(math.MinInt64), int64(-1), int64(0), int64(1), int64(1<<53 + 1), int64(math.MaxInt64), nil},
	"float":    {math.Inf(-1), -1e308, math.Copysign(0, -1), 0.0, 1.0, 1.0000001, 1e308, math.Inf(1), math.NaN(), nil},
	"string":   {"", " ", "A", "NULL", "a", "a\x00", "e\u0301", "é", "\U0001F600", nil},
	"bool":     {false, true, nil},
	"datetime": {time.UnixMilli(-1).UTC(), time.UnixMilli(0).UTC(), time.UnixMilli(1).UTC(), nil},
	"decimal2": {int64(-100), int64(0), int64(1), int64(100), nil}, // in hundredths
}

// literal is a value as SQL.
func literal(typ string, v any) string {
	t, _ := expr.ParseType(typ)
	text := "NULL"
	switch v := v.(type) {
	case int64:
		if text = sqltext.Int(v); typ == "decimal2" {
			text = fmt.Sprintf("CAST(%d.%02d AS DECIMAL(18, 2)) * %d", max(v, -v)/100, max(v, -v)%100,
				cmp.Compare(v, 0)|1)
		}
	case float64:
		text = sqltext.Float(v)
	case string:
		text = sqltext.String(v)
	case bool:
		text = sqltext.Bool(v)
	case time.Time:
		text = fmt.Sprintf("make_timestamp(%d)", v.UnixMicro())
	}
	return "CAST(" + text + " AS " + t.SQL() + ")"
}

// world is two random tables.
type world struct {
	types []string
	rows  [2][][]int // places in values of each column
}

func column(i int) string { return fmt.Sprintf("c%d", i) }

func randomWorld(rng *rand.Rand) world {
	var w world
	all := []string{"int", "float", "string", "bool", "datetime", "decimal2"}
	for range 1 + rng.IntN(4) {
		w.types = append(w.types, all[rng.IntN(len(all))])
	}
	row := func() []int {
		r := make([]int, len(w.types))
		for i, t := range w.types {
			r[i] = rng.IntN(len(values[t]))
		}
		return r
	}
	for range rng.IntN(30) {
		w.rows[0] = append(w.rows[0], row())
	}
	for _, r := range w.rows[0] {
		switch rng.IntN(8) {
		case 0: // gone
		case 1:
			w.rows[1] = append(w.rows[1], row(), r)
		case 2:
			changed := slices.Clone(r)
			changed[rng.IntN(len(r))] = row()[0] % len(values["bool"])
			w.rows[1] = append(w.rows[1], changed)
		default:
			w.rows[1] = append(w.rows[1], r)
		}
	}
	if rng.IntN(4) == 0 {
		rng.Shuffle(len(w.rows[1]), func(i, j int) { w.rows[1][i], w.rows[1][j] = w.rows[1][j], w.rows[1][i] })
	}
	return w
}

// table writes rows in parts of some rows each.
func (w world) table(t *testing.T, in *engine.Instance, dir string, side, partRows int) *plan.Table {
	t.Helper()
	table := &plan.Table{Run: state.RunKey{Run: int64(side)}}
	for i, typ := range w.types {
		table.Layout.Columns = append(table.Layout.Columns, plan.Column{Name: column(i), Type: typ, Nullable: true})
	}
	for from := 0; from < len(w.rows[side]); from += partRows {
		rows := w.rows[side][from:min(from+partRows, len(w.rows[side]))]
		var selects []string
		for n, r := range rows {
			cells := []string{fmt.Sprintf("%d AS n", n)}
			for i, place := range r {
				cells = append(cells, literal(w.types[i], values[w.types[i]][place])+" AS "+column(i))
			}
			selects = append(selects, "SELECT "+strings.Join(cells, ", "))
		}
		path := filepath.Join(dir, fmt.Sprintf("%d-%d.parquet", side, from))
		require.NoError(t, in.Exec(t.Context(),
			fmt.Sprintf("COPY (SELECT * EXCLUDE n FROM (%s) ORDER BY n) TO %s (FORMAT parquet, "+
				"DICTIONARY_SIZE_LIMIT 0)", strings.Join(selects, " UNION ALL "), sqltext.String(path))))
		table.Parts = append(table.Parts, part(t, path, len(rows)))
	}
	return table
}

// options are those of a random comparison.
func (w world) options(rng *rand.Rand) (opts compare.Options) {
	order := rng.Perm(len(w.types))
	name := func(places []int) (list []string) {
		for _, i := range places {
			list = append(list, column(i))
		}
		return list
	}
	if rng.IntN(3) > 0 {
		opts.Key = name(order[:1+rng.IntN(len(order))])
		opts.Tolerance = []float64{0, 1e-6, 2}[rng.IntN(3)]
	}
	if rng.IntN(3) == 0 {
		opts.Columns = name(order[rng.IntN(len(order)):])
	}
	opts.Limit = []int{0, 3, 100}[rng.IntN(3)]
	return opts
}

// Tables says what a comparison in plain Go, row by row, says.
func TestChaosTablesAgainstReference(t *testing.T) {
	t.Parallel()
	trials := effort.Of(15, 40, 4000)
	seed := uint64(time.Now().UnixNano())
	dir := t.TempDir()
	writer, err := engine.OpenInstance(t.Context(),
		engine.InstanceConfig{Threads: 1, SpillDir: filepath.Join(dir, "writer"), Paths: []string{dir}})
	require.NoError(t, err)
	defer func() { require.NoError(t, writer.Close()) }()
	memory, err := budget.Split(budget.MemoryBytesMin, 1, 0)
	require.NoError(t, err)
	memory.Cores = 2
	for i := range trials {
		what := fmt.Sprintf("seed %d", seed+uint64(i))
		rng := rand.New(rand.NewPCG(seed+uint64(i), 0))
		w := randomWorld(rng)
		opts := w.options(rng)
		a := w.table(t, writer, dir, 0, 1+rng.IntN(30))
		b := w.table(t, writer, dir, 1, 1+rng.IntN(30))
		opts.A, opts.B, opts.Memory, opts.Parts, opts.SpillDir = a, b, memory, paths{}, filepath.Join(dir, "spill")
		got, err := compare.Tables(t.Context(), opts)
		require.NoError(t, err, what)
		w.reference(opts).check(t, got, what)
	}
	t.Logf("%d trials from seed %d", trials, seed)
}

// reference is a comparison in plain Go.
type reference struct {
	world
	columns   []int // compared, the key first
	keys      int
	opts      compare.Options
	repeated  [2]int64
	left      [2][][]int // rows that are in one table only
	changed   [][2][]int
	changedIn map[string]int64
}

func (w world) reference(opts compare.Options) *reference {
	r := &reference{world: w, opts: opts, changedIn: map[string]int64{}}
	place := func(name string) (i int) { _, _ = fmt.Sscanf(name, "c%d", &i); return i }
	wanted := opts.Columns
	if len(wanted) == 0 {
		for i := range w.types {
			wanted = append(wanted, column(i))
		}
	}
	for _, name := range slices.Concat(opts.Key, wanted) {
		if i := place(name); !slices.Contains(r.columns, i) {
			r.columns = append(r.columns, i)
		}
	}
	slices.Sort(r.columns[len(opts.Key):])
	if len(opts.Columns) > 0 { // they come as they were named
		r.columns = r.columns[:0]
		for _, name := range slices.Concat(opts.Key, opts.Columns) {
			if i := place(name); !slices.Contains(r.columns, i) {
				r.columns = append(r.columns, i)
			}
		}
	}
	r.keys = len(opts.Key)
	counts := map[string]int{}
	keyCounts := [2]map[string]int{{}, {}}
	for side := range 2 {
		for _, row := range w.rows[side] {
			counts[r.text(row, r.columns)] += 1 - 2*side
			keyCounts[side][r.keyText(row)]++
		}
		for _, n := range keyCounts[side] {
			if n > 1 {
				r.repeated[side]++
			}
		}
	}
	byKey := map[string][2][][]int{}
	for side := range 2 {
		for _, row := range w.rows[side] {
			if text := r.text(row, r.columns); counts[text]*(1-2*side) > 0 {
				counts[text] -= 1 - 2*side
				both := byKey[r.keyText(row)]
				both[side] = append(both[side], row)
				byKey[r.keyText(row)] = both
			}
		}
	}
	for _, both := range byKey {
		if r.keys > 0 && len(both[0]) == 1 && len(both[1]) == 1 {
			r.pair(both[0][0], both[1][0])
			continue
		}
		r.left[0], r.left[1] = append(r.left[0], both[0]...), append(r.left[1], both[1]...)
	}
	return r
}

// pair compares two rows of one key.
func (r *reference) pair(a, b []int) {
	differs := false
	for n, i := range r.columns {
		x, y := values[r.types[i]][a[i]], values[r.types[i]][b[i]]
		f, isFloat := x.(float64)
		g, bothFloat := y.(float64)
		near := isFloat && bothFloat && n >= r.keys && r.opts.Tolerance > 0 && !math.IsInf(f, 0) && !math.IsInf(g, 0) &&
			math.Abs(f-g) <= r.opts.Tolerance*max(1, math.Abs(f), math.Abs(g))
		if a[i] != b[i] && !near {
			differs = true
			r.changedIn[column(i)]++
		}
	}
	if differs {
		r.changed = append(r.changed, [2][]int{a, b})
	}
}

func (r *reference) text(row, columns []int) string {
	var b strings.Builder
	for _, i := range columns {
		fmt.Fprint(&b, row[i], " ")
	}
	return b.String()
}

// keyText is the key of a row; -0 and 0 are one key.
func (r *reference) keyText(row []int) string {
	key := slices.Clone(row)
	for _, i := range r.columns[:r.keys] {
		if v, ok := values[r.types[i]][row[i]].(float64); ok && v == 0 {
			key[i] = slices.Index(values["float"], any(0.0))
		}
	}
	return r.text(key, r.columns[:r.keys])
}

// order compares rows by the compared columns; -0 comes before 0 where nothing else decides.
func (r *reference) order(a, b []int) int {
	for _, exact := range []bool{false, true} {
		for _, i := range r.columns {
			x, y := a[i], b[i]
			if f, ok := values[r.types[i]][x].(float64); ok && f == 0 && !exact {
				if g, ok := values[r.types[i]][y].(float64); ok && g == 0 {
					continue
				}
			}
			if c := cmp.Compare(x, y); c != 0 {
				return c
			}
		}
	}
	return 0
}

func (r *reference) check(t *testing.T, got *compare.Result, what string) {
	t.Helper()
	require.Empty(t, got.Schema, what)
	names := make([]string, len(r.columns))
	for n, i := range r.columns {
		names[n] = column(i)
	}
	require.Equal(t, names, got.Columns, what)
	require.Equal(t, []int64{int64(len(r.rows[0])), int64(len(r.rows[1]))}, []int64{got.RowsA, got.RowsB}, what)
	require.Equal(t, []int{len(r.left[0]), len(r.left[1]), len(r.changed)}, []int{int(got.Removed), int(got.Added),
		int(got.Changed)}, what)
	require.Equal(t, len(r.left[0])+len(r.left[1])+len(r.changed) == 0, got.Equal(), what)
	changedIn := map[string]int64{}
	for _, c := range got.ChangedIn {
		changedIn[c.Column] = c.Rows
	}
	require.Equal(t, r.changedIn, changedIn, what)
	if r.keys > 0 && !got.Equal() {
		require.Equal(t, r.repeated, [2]int64{got.RepeatedA, got.RepeatedB}, what)
	}
	for side, sample := range [][]compare.Difference{got.SampleRemoved, got.SampleAdded} {
		r.checkSample(t, r.left[side], sample, side, what)
	}
	slices.SortFunc(r.changed, func(a, b [2][]int) int { return r.order(a[0], b[0]) })
	require.Len(t, got.SampleChanged, min(r.opts.Limit, len(r.changed)), what)
	for n, d := range got.SampleChanged {
		require.Equal(t, r.shown(r.changed[n][0]), shown(d.A), what)
		require.Equal(t, r.shown(r.changed[n][1]), shown(d.B), what)
		require.NotEmpty(t, d.Changed, what)
	}
}

// checkSample compares a sample with the first rows of a side, equal ones together.
func (r *reference) checkSample(t *testing.T, left [][]int, sample []compare.Difference, side int, what string) {
	t.Helper()
	slices.SortFunc(left, r.order)
	var want []string
	for len(left) > 0 && len(want) < r.opts.Limit {
		n := 1
		for n < len(left) && r.order(left[0], left[n]) == 0 {
			n++
		}
		if r.keys > 0 && r.repeated == [2]int64{} {
			n = 1
		}
		want, left = append(want, fmt.Sprint(n, r.shown(left[0]))), left[n:]
	}
	var got []string
	for _, d := range sample {
		got = append(got, fmt.Sprint(d.Times, shown([][]any{d.A, d.B}[side])))
	}
	require.Equal(t, want, got, what)
}

// shown are the compared values of a row.
func (r *reference) shown(row []int) []string {
	var out []string
	for _, i := range r.columns {
		v := values[r.types[i]][row[i]]
		if n, ok := v.(int64); ok && r.types[i] == "decimal2" {
			v = fmt.Sprintf("%.2f", float64(n)/100)
		}
		out = append(out, fmt.Sprintf("%#v", v))
	}
	return out
}

// shown are values as the driver gives them.
func shown(row []any) []string {
	var out []string
	for _, v := range row {
		if d, ok := v.(duckdb.Decimal); ok {
			v = fmt.Sprintf("%.2f", d.Float64())
		}
		if at, ok := v.(time.Time); ok {
			v = at.UTC()
		}
		out = append(out, fmt.Sprintf("%#v", v))
	}
	return out
}
