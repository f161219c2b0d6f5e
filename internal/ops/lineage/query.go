package lineage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/io/files"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/plan"
	"thalweg/internal/run/query"
)

// shownKey is the n of a row beside its fields, none of which can be called so.
const shownKey = `"#n"`

// expandQuery finds what rows of a query are made of. The query is executed
// once more, over all of its tables, with lists of the rows that it has put
// together (package query). Its rows have no names of their own: they are found by
// their values, and those that are the same have the same origins. Where that
// cannot be done, or what comes of it is not the query's table, all rows are named.
func (t *tracer) expandQuery(ctx context.Context, n *traced) error {
	why := t.traceQuery(ctx, n)
	if ctx.Err() != nil || why == nil {
		return why
	}
	why = fmt.Errorf("of which rows its query has made it is not known: %w", why)
	if read := n.Node.Query.Info.Files; len(read) > 0 {
		var names []string
		for _, f := range read {
			names = append(names, Files(f.Reader))
		}
		why = fmt.Errorf("%w; it has read %s", why, strings.Join(names, ", "))
	}
	for _, id := range n.ids {
		t.tree.Rows[id].From = nil
		t.tree.Rows[id].Note = why.Error()
	}
	return t.expandWhole(ctx, n)
}

// expandWhole names all rows of all tables.
func (t *tracer) expandWhole(ctx context.Context, n *traced) error {
	for _, table := range n.sources() {
		if err := t.fetch(ctx, table, nil); err != nil {
			return err
		}
		all := make([]string, 0, len(n.ids))
		for _, key := range slices.Sorted(maps.Keys(n.ids)) {
			all = append(all, plan.BatchRows(table, plan.Work{}, key, t.paths))
		}
		if err := t.step(ctx, n, plan.TraceStep{Table: table, Role: plan.RoleAll,
			SQL: strings.Join(all, " UNION ALL ")}); err != nil {
			return err
		}
	}
	return nil
}

// traceQuery is expandQuery where rows can be told apart.
func (t *tracer) traceQuery(ctx context.Context, n *traced) error {
	info := n.Node.Query.Info
	var names, schemas []string
	for _, input := range n.Node.Query.Inputs {
		names = append(names, input.Name)
	}
	shownAs := map[string]string{}
	for _, f := range info.Files {
		schemas = append(schemas, f.Schema)
		shownAs[f.Schema] = Files(f.Reader)
	}
	if len(names)+len(schemas) == 0 {
		return nil // it says its rows itself
	}
	traced, err := query.Trace(ctx, t.in, info.SQL, names, schemas)
	if err != nil {
		return err
	}
	specs, err := t.specs(ctx, n)
	if err != nil {
		return err
	}
	again, err := n.job.TraceQuery(ctx, n.key, specs[0], traced.SQL, t.cfg.Dir)
	if err != nil {
		return err
	}
	if err := t.fetch(ctx, n.table, nil); err != nil {
		return err
	}
	if again.Path == "" {
		return errors.New("it gives no rows now")
	}
	file := "read_parquet(" + sqltext.String(sqltext.Glob(again.Path)) + ")"
	if err := t.compareQuery(ctx, n, file, traced.Sets); err != nil {
		return err
	}
	stored := n.table.Select(t.paths, nil, false)
	shown, err := t.temp(ctx, fmt.Sprintf("SELECT k.n AS "+shownKey+", s.* FROM %s AS k JOIN (%s) AS s ON %s", n.keys,
		stored, sameShown("k", "s", n.table.Width())))
	if err != nil {
		return err
	}
	if err := t.markEqual(ctx, n, shown, stored); err != nil {
		return err
	}
	for i, input := range n.Node.Query.Inputs {
		table := n.In.Named[input.Creator.Table.Name]
		if err := t.fetch(ctx, table, nil); err != nil {
			return err
		}
		sql := fmt.Sprintf("SELECT e.n, %s FROM (SELECT DISTINCT k."+shownKey+
			" AS n, unnest(s.__o%d) AS rid FROM %s AS k JOIN %s AS s ON %s) AS e JOIN (%s) AS r ON r.rid = e.rid",
			strings.Join(orderList("r", table.Width()), ", "), i, shown, file, n.table.SameRow("k", "s"),
			table.Rowids(t.paths))
		if err := t.step(ctx, n, plan.TraceStep{Table: table, Role: plan.RoleQuery, SQL: sql}); err != nil {
			return err
		}
	}
	for i, f := range info.Files {
		if err := t.scanned(ctx, n, f.Reader, again.Scans[i], shown,
			fmt.Sprintf("%s AS s ON %s", file, n.table.SameRow("k", "s")),
			fmt.Sprintf("s.__o%d", len(names)+i)); err != nil {
			return err
		}
	}
	if len(traced.Beside) > 0 {
		beside := make([]string, len(traced.Beside))
		for i, name := range traced.Beside {
			beside[i] = cmp.Or(shownAs[name], name)
		}
		n.note(t, "its query has looked at other rows of "+strings.Join(beside, ", ")+
			" as well: in a subquery, a window, or for whether there are any")
	}
	return nil
}

// scanned finds the records of a file that rows of a query were made of.
func (t *tracer) scanned(ctx context.Context, n *traced, r *script.FileReader, read []files.Slice, shown, join,
	list string) error {
	const byFile = "PARTITION BY n, place >> 40"
	rows, err := t.fileRows(ctx, fmt.Sprintf("SELECT n, count(*) OVER (%[1]s), place FROM (SELECT DISTINCT k."+shownKey+
		" AS n, unnest(%[2]s) AS place FROM %[3]s AS k JOIN %[4]s) "+
		"QUALIFY row_number() OVER (%[1]s ORDER BY place) <= %[5]d ORDER BY n, place", byFile, list, shown, join,
		max(t.opts.Sample, 1)))
	if err != nil {
		return err
	}
	lists := fileLists{}
	lists.add(read)
	return t.records(ctx, n, r, plan.RoleQuery, rows, lists)
}

// sameShown joins order columns of keys and of plan.Table.Select.
func sameShown(keys, rows string, count int) string {
	on := make([]string, count)
	for i := range on {
		on[i] = fmt.Sprintf("%s.__o%d IS NOT DISTINCT FROM %s.%s", keys, i, rows, plan.OrderName(i))
	}
	return strings.Join(on, " AND ")
}

// compareQuery refuses rows that are not those of the query's table.
func (t *tracer) compareQuery(ctx context.Context, n *traced, file string, sets bool) error {
	var own, again []string
	for _, c := range n.table.Layout.Columns {
		own, again = append(own, sqltext.Ident(c.Name)), append(again, sqltext.Ident(c.Stored()))
	}
	a := fmt.Sprintf("SELECT %s FROM (%s)", strings.Join(own, ", "), n.table.Select(t.paths, nil, false))
	b := fmt.Sprintf("SELECT %s FROM %s", strings.Join(again, ", "), file)
	except := "EXCEPT ALL"
	if sets {
		except = "EXCEPT"
	}
	var more, fewer int64
	rows, err := t.in.Query(ctx,
		fmt.Sprintf("SELECT (SELECT count(*) FROM (%[1]s %[3]s %[2]s)), (SELECT count(*) FROM (%[2]s %[3]s %[1]s))", a,
			b, except))
	if err != nil {
		return fmt.Errorf("compare the rows of the query: %w", err)
	}
	for rows.Next() {
		if err := rows.Scan(&fewer, &more); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	if more+fewer > 0 {
		f := fault.New(fault.Environment, "the query gives other rows when its parts are computed one by one")
		f.Hint = "trace the tables that it reads: from there on rows can be followed"
		return f
	}
	return nil
}

// markEqual says of rows that the table has several times that they cannot be told apart.
func (t *tracer) markEqual(ctx context.Context, n *traced, shown, stored string) (err error) {
	on := make([]string, len(n.table.Layout.Columns))
	for i, c := range n.table.Layout.Columns {
		on[i] = fmt.Sprintf("k.%[1]s IS NOT DISTINCT FROM s.%[1]s", sqltext.Ident(c.Name))
	}
	rows, err := t.in.Query(ctx,
		fmt.Sprintf("SELECT k."+shownKey+
			", count(*) FROM %s AS k JOIN (%s) AS s ON %s GROUP BY ALL HAVING count(*) > 1",
			shown, stored, strings.Join(on, " AND ")))
	if err != nil {
		return fmt.Errorf("look for equal rows: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var key, equal int64
		if err := rows.Scan(&key, &equal); err != nil {
			return err
		}
		t.tree.Rows[n.ids[key]].note(
			fmt.Sprintf("the table has %d rows like this one: these are the rows that all of them are made of", equal))
	}
	return rows.Err()
}

// note adds to what is said of a row.
func (r *Row) note(text string) {
	if r.Note != "" {
		text = r.Note + "; " + text
	}
	r.Note = text
}

func (n *traced) note(t *tracer, text string) {
	for _, id := range n.ids {
		t.tree.Rows[id].note(text)
	}
}
