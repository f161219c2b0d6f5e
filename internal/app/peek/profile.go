package peek

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"thalweg/internal/app/caller"
	"thalweg/internal/app/inspect"
	"thalweg/internal/app/view"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// Profile says what the parts of a table say of its columns: no row is read.
func (p *Pool) Profile(ctx context.Context, by caller.Caller, run state.RunKey, table string) (view.Profile, error) {
	t, columns, err := p.table(ctx, Table{Run: run, Table: table})
	if err != nil {
		return view.Profile{}, err
	}
	out := view.Profile{Rows: t.Rows(), Columns: make([]view.ColumnProfile, len(columns))}
	for i, c := range columns {
		out.Columns[i] = view.ColumnProfile{Name: c.Name, Type: c.Type}
	}
	if len(t.Parts) == 0 || len(columns) == 0 {
		return out, nil
	}
	paths, release, err := pipeline.FetchTables(ctx, p.home.Parts, []*plan.Table{t.Table})
	if err != nil {
		return view.Profile{}, err
	}
	defer release()
	files := slices.Sorted(maps.Values(paths))
	sink := newPage(0)
	if _, err := p.page(ctx, question{by: by.Actor, doing: "the profile"}, inspect.Prepared{Ours: true, Paths: files,
		SQL: footersSQL(files, columns), CellBytes: p.limits.CellBytes}, sink, inspect.QueryOptions{}); err != nil {
		return view.Profile{}, err
	}
	for _, row := range sink.Rows {
		i := slices.IndexFunc(columns, func(c plan.Column) bool { return row[0] != nil && c.Stored() == *row[0] })
		if len(row) != footerColumns || i < 0 {
			continue
		}
		c := &out.Columns[i]
		if c.Min, c.Max = row[2], row[3]; row[1] != nil {
			nulls := int64(0)
			if _, err := fmt.Sscan(*row[1], &nulls); err == nil {
				c.Nulls = &nulls
			}
		}
	}
	return out, nil
}

// footerColumns are the columns of footersSQL: name, nulls, least, greatest.
const footerColumns = 4

// footersSQL reads the statistics of columns. What one row group does not say is not known of the column: of a row
// group with nothing but NULL there is no least value, and none is missing.
func footersSQL(files []string, columns []plan.Column) string {
	globs := make([]string, len(files))
	for i, f := range files {
		globs[i] = sqltext.Glob(f)
	}
	pieces := make([]string, len(columns))
	for i, c := range columns {
		typ, known := expr.ParseType(c.Type)
		value := func(of string) string {
			if !known || typ.Nested() {
				return "NULL"
			}
			return fmt.Sprintf("CASE WHEN bool_and(%[1]s_exact AND %[1]s_value IS NOT NULL OR nulls = num_values) THEN "+
				"CAST(%[2]s(CAST(%[1]s_value AS %[3]s)) AS VARCHAR) END", of, of, typ.SQL())
		}
		pieces[i] = fmt.Sprintf("SELECT %s, CASE WHEN count(*) = count(nulls) THEN CAST(sum(nulls) AS BIGINT) END, %s, %s "+
			"FROM footers WHERE path_in_schema = %[1]s", sqltext.String(c.Stored()), value("min"), value("max"))
	}
	return "WITH footers AS MATERIALIZED (SELECT path_in_schema, num_values, stats_null_count AS nulls, " +
		"stats_min_value AS min_value, stats_max_value AS max_value, coalesce(min_is_exact, true) AS min_exact, " +
		"coalesce(max_is_exact, true) AS max_exact FROM parquet_metadata(" + sqltext.Strings(globs) + ")) " +
		strings.Join(pieces, " UNION ALL ")
}

// Limits of what is said of a column's values.
const (
	topMax       = 20
	topBytes     = 256 // of a value
	histogramMax = 20
	knownMax     = 256 // distributions that are kept, and sums
)

// Distribution says which values a column has, and how often. It reads the column, once: tables do not change.
func (p *Pool) Distribution(ctx context.Context, by caller.Caller, run state.RunKey, table,
	column string) (view.Distribution, error) {
	t, columns, err := p.table(ctx, Table{Run: run, Table: table, Columns: []string{column}})
	if err != nil {
		return view.Distribution{}, err
	}
	key := digestOf(t.Table) + " " + column
	if known, ok := p.known.get(key); ok {
		return known, nil
	}
	paths, release, err := pipeline.FetchTables(ctx, p.home.Parts, []*plan.Table{t.Table})
	if err != nil {
		return view.Distribution{}, err
	}
	defer release()
	prepared := inspect.Prepared{Ours: true, Paths: slices.Sorted(maps.Values(paths)), CellBytes: topBytes,
		Setup: []string{"CREATE VIEW t AS " + t.SelectRows(columns, 0, t.Rows(), paths)}}
	d := distributor{pool: p, by: by.Actor, prepared: prepared, column: columns[0], out: view.Distribution{Column: column,
		Rows: t.Rows(), Top: []view.TopValue{}, Histogram: []view.HistogramBar{}}}
	if err := d.ask(ctx); err != nil {
		return view.Distribution{}, err
	}
	p.known.put(key, d.out)
	return d.out, nil
}

// distributor asks for the distribution of a column.
type distributor struct {
	pool     *Pool
	by       string // who asks
	prepared inspect.Prepared
	column   plan.Column
	out      view.Distribution
}

func (d *distributor) ask(ctx context.Context) error {
	c := sqltext.Ident(d.column.Stored())
	if err := d.query(ctx, fmt.Sprintf("SELECT count(*) - count(%[1]s), count(DISTINCT %[1]s) FROM t", c),
		func(row []any) error {
			d.out.Nulls, d.out.Distinct = numberOf(row[0]), numberOf(row[1])
			return nil
		}, 2); err != nil {
		return err
	}
	if err := d.query(ctx, fmt.Sprintf("SELECT %[1]s, count(*) AS n FROM t WHERE %[1]s IS NOT NULL GROUP BY %[1]s "+
		"ORDER BY n DESC, %[1]s LIMIT %[2]d", c, topMax), func(row []any) error {
		_, cut := row[0].(inspect.CutText)
		d.out.Top = append(d.out.Top, view.TopValue{Value: inspect.Text(row[0]), Cut: cut, Rows: numberOf(row[1])})
		return nil
	}, 2); err != nil {
		return err
	}
	sql := histogramSQL(d.column)
	if sql == "" {
		return nil
	}
	return d.query(ctx, sql, func(row []any) error {
		d.out.Histogram = append(d.out.Histogram, view.HistogramBar{From: inspect.Text(row[0]), To: inspect.Text(row[1]),
			Rows: numberOf(row[2])})
		return nil
	}, 3)
}

// query asks for rows of so many columns.
func (d *distributor) query(ctx context.Context, sql string, each func([]any) error, columns int) error {
	d.prepared.SQL = sql
	sink := eachRow{columns, each}
	answer, err := d.pool.rows(ctx, question{by: d.by, heavy: true, doing: "the profile",
		limit: d.pool.limits.LongTime}, queryArgs{Prepared: d.prepared}, sink)
	if err == nil && answer.Refused != nil {
		err = d.pool.refusal(ctx, answer.Refused, inspect.QueryOptions{})
	}
	return err
}

// eachRow is an inspect.RowSink that takes rows of so many columns, none of them NULL.
type eachRow struct {
	columns int
	each    func([]any) error
}

// Begin implements inspect.RowSink.
func (e eachRow) Begin(head inspect.QueryResult) error {
	if len(head.Columns) != e.columns {
		return errGarbled
	}
	return nil
}

// Row implements inspect.RowSink.
func (e eachRow) Row(cells []any) error {
	if slices.Contains(cells, nil) {
		return errGarbled
	}
	return e.each(cells)
}

func numberOf(cell any) int64 {
	n, _ := cell.(int64)
	return n
}

// histogramSQL counts the rows of ranges of a column's values, of equal width; "" where it has no numbers and no times.
func histogramSQL(c plan.Column) string {
	column := sqltext.Ident(c.Stored())
	typ, _ := expr.ParseType(c.Type)
	number, back := "CAST("+column+" AS DOUBLE)", "%s"
	switch {
	case typ == expr.Date, typ == expr.DateTime, typ == expr.Instant:
		number, back = "epoch("+column+")", "strftime(make_timestamp(CAST(round(%s * 1000) AS BIGINT) * 1000), '%%Y-%%m-%%d %%H:%%M:%%S')"
	case !typ.IsNumber():
		return ""
	}
	at := func(i string) string {
		return fmt.Sprintf(back, fmt.Sprintf("(lo + (hi - lo) * (%s) / %d)", i, histogramMax))
	}
	return fmt.Sprintf("WITH v AS (SELECT x FROM (SELECT %s AS x FROM t) AS q WHERE isfinite(x)), "+
		"ends AS (SELECT min(x) AS lo, max(x) AS hi FROM v), "+
		"bars AS (SELECT CASE WHEN hi = lo THEN 0 ELSE least(CAST(floor((x - lo) / (hi - lo) * %[2]d) AS BIGINT), %[2]d - 1) END "+
		"AS i, count(*) AS n FROM v, ends GROUP BY i) "+
		"SELECT %[3]s, %[4]s, n FROM bars, ends ORDER BY i", number, histogramMax, at("i"), at("i + 1"))
}

// digestOf tells the rows of a table from those of all others.
func digestOf(t *plan.Table) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %d %s %s\n", t.Run.Workspace, t.Run.Run, t.Writer, t.Identity)
	for _, part := range t.Parts {
		fmt.Fprintf(h, "%s %s %d\n", part.Key, part.Checksum, part.Rows)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// latest keeps what was found last, by what it was found for.
type latest[V any] struct {
	mu    sync.Mutex
	by    map[string]*list.Element
	order list.List // of known, the latest first
}

type known[V any] struct {
	key string
	is  V
}

func (d *latest[V]) get(key string) (is V, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e, ok := d.by[key]
	if !ok {
		return is, false
	}
	d.order.MoveToFront(e)
	return e.Value.(known[V]).is, true //nolint:forcetypeassert // there is nothing else in it
}

func (d *latest[V]) put(key string, is V) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.by == nil {
		d.by = map[string]*list.Element{}
	}
	if _, ok := d.by[key]; ok {
		return
	}
	d.by[key] = d.order.PushFront(known[V]{key, is})
	if d.order.Len() > knownMax {
		last := d.order.Back()
		delete(d.by, d.order.Remove(last).(known[V]).key) //nolint:forcetypeassert // likewise
	}
}
