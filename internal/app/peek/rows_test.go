package peek_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/peek"
	"thalweg/internal/app/view"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// shapes has tables of each way in which rows lie: in order, by bucket, with columns that say their order.
const shapes = `
nodes:
  read:
    type: file_table
    r: {urls: ["in*.csv"], types: {k: int, v: string, d: decimal2}}
    w:
      name: plain
      fields:
        k: {expression: "coalesce(r.k, 0)", type: int}
        v: {expression: r.v, type: string, nullable: true}
        d: {expression: r.d, type: decimal2, nullable: true}
        __odd: {expression: "coalesce(r.k, 0) + 1", type: int}
  twin:
    type: file_table
    r: {urls: ["right*.csv"], types: {k: int, w: string}}
    w:
      name: right
      fields: {k: {expression: "coalesce(r.k, 0)", type: int}, w: {expression: 'coalesce(r.w, "")', type: string}}
      indexes: {idx_k: unique(k)}
  join:
    type: table_lookup_table
    r: plain
    l: {index_name: idx_k, join_on: r.k, join_type: left, group: false}
    w:
      name: joined
      fields: {k: {expression: r.k, type: int}, w: {expression: l.w, type: string, nullable: true}}
  keys:
    type: distinct_table
    rerun_policy: fail
    r: plain
    w:
      name: keys
      fields: {k: {expression: r.k, type: int}}
      indexes: {idx_keys: unique(k)}
`

// Pages one behind the other are the table, whatever the sizes of parts and pages; so are they where SQL orders them.
func TestPagesAreTheTable(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	b := newBench(t, peek.Limits{})
	files := map[string]string{}
	rows := 0
	for i := range 4 {
		var in, right strings.Builder
		in.WriteString("k,v,d\n")
		right.WriteString("k,w\n")
		for range 1 + rng.IntN(400) {
			v := fmt.Sprintf("t%d", rng.IntN(50))
			if rng.IntN(5) == 0 {
				v = ""
			}
			fmt.Fprintf(&in, "%d,%s,%d.%02d\n", rng.IntN(200), v, rng.IntN(100), rng.IntN(100))
			rows++
		}
		for k := range 40 {
			fmt.Fprintf(&right, "%d,w%d\n", 40*i+k, rng.IntN(9))
		}
		files[fmt.Sprintf("in%d.csv", i)], files[fmt.Sprintf("right%d.csv", i)] = in.String(), right.String()
	}
	run := b.run(shapes, files, func(budget *budget.Budget) {
		budget.BatchBytes, budget.SmallBytes, budget.BroadcastBytes = 2_000, 0, 0
	})
	for _, table := range []string{"plain", "joined", "keys", "right"} {
		whole := b.whole(peek.Table{Run: run, Table: table}, 1_000)
		require.NotEmpty(t, whole, table)
		if table == "plain" || table == "joined" {
			require.Len(t, whole, rows, table)
		}
		for range effort.Of(10, 25, 400) {
			q, want := peek.Table{Run: run, Table: table}, whole
			if table == "plain" && rng.IntN(2) == 0 {
				q.Columns = []string{"__odd", "k"}
				want = nil
				for _, row := range whole {
					want = append(want, []string{row[3], row[0]})
				}
			}
			q.From, q.Rows = rng.Int64N(int64(len(want))+1), 1+rng.IntN(300)
			page, err := b.pool.Rows(t.Context(), tester, q)
			require.NoError(t, err)
			end := min(q.From+int64(q.Rows), int64(len(want)))
			require.Equal(t, append([][]string{}, want[q.From:end]...), texts(page), "%s: %+v", table, q)
			require.EqualValues(t, len(want), *page.Total)
			if end < int64(len(want)) {
				require.Equal(t, end, *page.Next)
			} else {
				require.Nil(t, page.Next)
			}
		}
	}
}

// whole reads a table page by page.
func (b *bench) whole(q peek.Table, rows int) (all [][]string) {
	b.t.Helper()
	q.Rows = rows
	for {
		page, err := b.pool.Rows(b.t.Context(), tester, q)
		require.NoError(b.t, err)
		all = append(all, texts(page)...)
		if page.Next == nil {
			return all
		}
		require.Greater(b.t, *page.Next, q.From)
		q.From = *page.Next
	}
}

const values = `
nodes:
  read:
    type: file_table
    r: {urls: [values.csv], types: {n: int, s: string, f: float, d: decimal2, t: string}}
    w:
      name: base
      fields:
        n: {expression: r.n, type: int, nullable: true}
        s: {expression: r.s, type: string, nullable: true}
        f: {expression: r.f, type: float, nullable: true}
        d: {expression: r.d, type: decimal2, nullable: true}
        t: {expression: r.t, type: string, nullable: true}
  lists:
    type: sql
    r: [base]
    query: SELECT n, nullif(s, 'NULL') AS s, f, d, CAST(nullif(t, '') AS TIMESTAMP) AS t, [n, n] AS l FROM base
    w:
      name: vals
      fields:
        n: {type: int, nullable: true}
        s: {type: string, nullable: true}
        f: {type: float, nullable: true}
        d: {type: decimal2, nullable: true}
        t: {type: datetime, nullable: true}
        l: {type: list(int), nullable: true}
`

func valuesCSV() string {
	var b strings.Builder
	b.WriteString("n,s,f,d,t\n9223372036854775807,\"=1+1\",1.5,12345678901234.56,2024-01-02T03:04:05.678\n" +
		"-9223372036854775808,\"+x\",NaN,-0.01,1969-12-31T23:59:59.999\n,NULL,,,\n0,\"\",0,0,2000-01-01T00:00:00\n" +
		"5,\"a \"\"quoted\"\", text\nof two lines\",-2.25,7.10,2000-01-01T00:00:00\n")
	return b.String()
}

func TestFilterAndSort(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	b := newBench(t, peek.Limits{})
	run := b.run(values, map[string]string{"values.csv": valuesCSV()}, nil)
	ask := func(q peek.Table) (view.Page, error) {
		q.Run, q.Table, q.Columns = run, "vals", []string{"n"}
		return b.pool.Rows(t.Context(), tester, q)
	}
	page, err := ask(peek.Table{Where: "n > 0 OR s = '+x'", Sort: []peek.SortBy{{Column: "n"}}})
	require.NoError(t, err)
	require.Equal(t, [][]string{{"-9223372036854775808"}, {"5"}, {"9223372036854775807"}}, texts(page))
	require.Nil(t, page.Total)
	page, err = ask(peek.Table{Sort: []peek.SortBy{{Column: "t", Desc: true}}, Rows: 2, From: 1})
	require.NoError(t, err)
	require.Equal(t, [][]string{{"0"}, {"5"}}, texts(page), "those that are equal come in the table's order")
	require.EqualValues(t, 3, *page.Next)
	require.EqualValues(t, 5, *page.Total)
	page, err = ask(peek.Table{Where: "s IS NULL"})
	require.NoError(t, err)
	require.Equal(t, [][]string{{"∅"}}, texts(page))
	for where, want := range map[string]string{
		"n >": "", "n = 1) UNION SELECT (1": "", "nope = 1": "nope", "n = (SELECT count(*) FROM read_csv('/etc/passwd'))": "",
		"n = 1; DROP TABLE x": "",
	} {
		_, err := ask(peek.Table{Where: where})
		f := fault.Of(err)
		require.Equal(t, fault.Script, f.Kind, "%s: %v", where, err)
		require.Contains(t, f.Message, want)
	}
	_, err = b.pool.Rows(t.Context(), tester, peek.Table{Run: run, Table: "vals", Columns: []string{"N"}})
	require.Equal(t, fault.NotFound, fault.Of(err).Code)
	_, err = b.pool.Rows(t.Context(), tester, peek.Table{Run: run, Table: "val"})
	require.ErrorContains(t, err, "has no table val")
	_, err = b.pool.Rows(t.Context(), tester, peek.Table{Run: state.RunKey{Workspace: "other", Run: run.Run}, Table: "vals"})
	require.Error(t, err)
	page, err = b.pool.Rows(t.Context(), tester, peek.Table{Run: run, Table: "vals", From: 99})
	require.NoError(t, err)
	require.Empty(t, page.Rows)
	require.Nil(t, page.Next)
	require.Equal(t, []string{"n", "s", "f", "d", "t", "l"}, names(page))
}

func names(p view.Page) (out []string) {
	for _, c := range p.Columns {
		out = append(out, c.Name)
	}
	return out
}

// What footers say is what the rows say.
func TestProfiles(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	b := newBench(t, peek.Limits{})
	run := b.run(values, map[string]string{"values.csv": valuesCSV()}, nil)
	got, err := b.pool.Profile(t.Context(), tester, run, "vals")
	require.NoError(t, err)
	require.EqualValues(t, 5, got.Rows)
	said := map[string]string{}
	for _, c := range got.Columns {
		text := func(p *string) string {
			if p == nil {
				return "?"
			}
			return *p
		}
		nulls := "?"
		if c.Nulls != nil {
			nulls = fmt.Sprint(*c.Nulls)
		}
		said[c.Name] = strings.Join([]string{c.Type, nulls, text(c.Min), text(c.Max)}, " | ")
	}
	require.Equal(t, map[string]string{
		"n": "int | 1 | -9223372036854775808 | 9223372036854775807",
		"s": "string | 1 |  | a \"quoted\", text\nof two lines",
		"f": "float | 1 | ? | ?", // there is a NaN, of which statistics say nothing
		"d": "decimal2 | 1 | -0.01 | 12345678901234.56",
		"t": "datetime | 1 | 1969-12-31 23:59:59.999 | 2024-01-02 03:04:05.678",
		"l": "list(int) | ? | ? | ?",
	}, said)

	d, err := b.pool.Distribution(t.Context(), tester, run, "vals", "t")
	require.NoError(t, err)
	require.EqualValues(t, 1, d.Nulls)
	require.EqualValues(t, 3, d.Distinct)
	require.Equal(t, view.TopValue{Value: "2000-01-01 00:00:00", Rows: 2}, d.Top[0])
	require.Equal(t, "1969-12-31 23:59:59", d.Histogram[0].From)
	total := int64(0)
	for _, bar := range d.Histogram {
		total += bar.Rows
	}
	require.EqualValues(t, 4, total)
	before := b.children()
	again, err := b.pool.Distribution(t.Context(), tester, run, "vals", "t")
	require.NoError(t, err)
	require.Equal(t, d, again)
	require.Equal(t, before, b.children())
	d, err = b.pool.Distribution(t.Context(), tester, run, "vals", "f")
	require.NoError(t, err)
	require.EqualValues(t, 4, d.Distinct)
	require.Len(t, d.Histogram, 3)
	d, err = b.pool.Distribution(t.Context(), tester, run, "vals", "s")
	require.NoError(t, err)
	require.Empty(t, d.Histogram)
	require.Len(t, d.Top, 4)
	_, err = b.pool.Distribution(t.Context(), tester, run, "vals", "nope")
	require.Equal(t, fault.NotFound, fault.Of(err).Code)
}

// A part that is damaged is said to be, also where few of its rows are read.
func TestADamagedPart(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	b := newBench(t, peek.Limits{})
	run := b.run(numbers, map[string]string{"numbers.csv": csvOf(10)}, func(*budget.Budget) {})
	b.damage(peek.Limits{})
	_, err := b.pool.Rows(t.Context(), tester, peek.Table{Run: run, Table: "numbers", Rows: 1})
	require.ErrorContains(t, err, "is damaged")
}
