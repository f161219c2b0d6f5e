package lineage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// follow shows the rows of a node that others are made of, and finds what they
// are made of themselves. All its readers have been followed.
func (t *tracer) follow(ctx context.Context, n *traced) error {
	if len(n.edges) == 0 && len(n.at) == 0 {
		return nil
	}
	keys := ""
	if n.State.Table != "" {
		var err error
		if keys, err = t.keys(ctx, n); err != nil || len(n.ids) == 0 {
			return err
		}
		n.keys = keys
		if err := t.show(ctx, n, keys); err != nil {
			return err
		}
	}
	if n.blocked != "" {
		return nil
	}
	err := t.expand(ctx, n, keys)
	if changed := (*fault.Error)(nil); errors.As(err, &changed) && changed.Kind != fault.Bug &&
		changed.Kind != fault.Canceled && ctx.Err() == nil {
		n.block(t, changed.Error())
		return nil
	}
	return err
}

// block says of a node's rows why they are not followed.
func (n *traced) block(t *tracer, why string) {
	n.blocked = why
	for _, id := range n.ids {
		t.tree.Rows[id].Note = why
	}
}

// keys makes a temporary table of the order columns of all rows of a node that
// others are made of, numbered as n, and ties these to them.
func (t *tracer) keys(ctx context.Context, n *traced) (string, error) {
	width := n.table.Width()
	cols := strings.Join(bare(width), ", ")
	var all []string
	for _, e := range n.edges {
		all = append(all, fmt.Sprintf("SELECT %s FROM %s", cols, e.name))
	}
	name, err := t.temp(ctx,
		fmt.Sprintf("SELECT row_number() OVER (ORDER BY %[1]s) AS n, %[1]s FROM (SELECT DISTINCT * "+
			"FROM (%[2]s)) ORDER BY n LIMIT %[3]d", cols, strings.Join(all, " UNION ALL "), rowsMax+1))
	if err != nil {
		return "", err
	}
	many, err := t.in.Query(ctx, fmt.Sprintf("SELECT 1 FROM %s WHERE n > %d", name, rowsMax))
	if err != nil {
		return "", fmt.Errorf("follow rows: %w", err)
	}
	more := many.Next()
	if err := errors.Join(many.Err(), many.Close()); err != nil {
		return "", fmt.Errorf("follow rows: %w", err)
	}
	if more {
		return "", &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("more than %s rows of %s of run %d would have to be followed", format.Count(rowsMax),
				n.State.Table, n.key.Run),
			Hint: "trace fewer rows, or less of what each is made of: {{set where}}, {{set limit}}, {{set sample}}"}
	}
	for _, e := range n.edges {
		if err := t.tie(ctx, n, e, name, width); err != nil {
			return "", err
		}
	}
	return name, nil
}

// tie gives the rows of an edge their places in the tree.
func (t *tracer) tie(ctx context.Context, n *traced, e edge, keys string, width int) (err error) {
	rows, err := t.in.Query(ctx,
		fmt.Sprintf("SELECT e.n, e.total, k.n FROM %s AS e JOIN %s AS k ON %s ORDER BY e.n, e.nth", e.name, keys,
			plan.SameOrder("e", "k", width)))
	if err != nil {
		return fmt.Errorf("follow rows: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var parent, total, key int64
		if err := rows.Scan(&parent, &total, &key); err != nil {
			return err
		}
		id, ok := n.ids[key]
		if !ok {
			id = t.add(n.row())
			n.ids[key] = id
		}
		if e.reader == nil {
			t.tree.Roots = append(t.tree.Roots, id)
			continue
		}
		t.tree.Rows[e.reader.ids[parent]].put(Origin{Role: e.role, Run: n.key.Run, Table: n.State.Table,
			Count: total}, id)
	}
	return rows.Err()
}

// put adds a row to those of an origin.
func (r *Row) put(o Origin, id int) {
	at := slices.IndexFunc(r.From, func(have Origin) bool {
		return have.Role == o.Role && have.Run == o.Run && have.Table == o.Table && have.File == o.File
	})
	if at < 0 {
		r.From, at = append(r.From, o), len(r.From)
	}
	r.From[at].Sample = append(r.From[at].Sample, id)
}

// show gives the rows their values and numbers.
func (t *tracer) show(ctx context.Context, n *traced, keys string) error {
	names, types := tableColumns(n.table)
	parts, err := n.partsOf(ctx, t, keys)
	if err != nil {
		return err
	}
	if err := t.fetch(ctx, n.table, parts); err != nil {
		return err
	}
	width := n.table.Width()
	on := make([]string, width)
	for i := range on {
		on[i] = fmt.Sprintf("k.__o%d IS NOT DISTINCT FROM s.%s", i, plan.OrderName(i))
	}
	query := fmt.Sprintf("SELECT k.n, %s FROM %s AS k JOIN (%s) AS s ON %s", textsOf("s", names), keys,
		n.table.Select(t.paths, parts, false), strings.Join(on, " AND "))
	if err := t.values(ctx, n, query, names, types); err != nil {
		return err
	}
	for key, id := range n.ids {
		if t.tree.Rows[id].Values == nil && len(names) > 0 {
			return fault.New(fault.Bug, "row %d of those that are followed is not in table %s of run %d", key,
				n.State.Table, n.key.Run)
		}
	}
	return nil
}

// partsOf are the parts that have the rows, by their places; nil: any may. Rows
// that are numbered by their place in the table get that number.
func (n *traced) partsOf(ctx context.Context, t *tracer, keys string) ([]int, error) {
	if n.table.Scattered() {
		return nil, nil
	}
	found := map[int]bool{}
	err := t.each(ctx, keys, func(key, order int64) error {
		part, row := plan.PartOf(order)
		found[part] = true
		for _, before := range n.table.Parts[:part] {
			row += before.Rows
		}
		t.tree.Rows[n.ids[key]].Row = row + 1
		return nil
	})
	return slices.Sorted(maps.Keys(found)), err
}

// each visits n and the first order column of a temporary table.
func (t *tracer) each(ctx context.Context, keys string, visit func(key, order int64) error) (err error) {
	rows, err := t.in.Query(ctx, "SELECT n, __o0 FROM "+keys+" ORDER BY n")
	if err != nil {
		return fmt.Errorf("follow rows: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var key, order int64
		if err := rows.Scan(&key, &order); err != nil {
			return err
		}
		if err := visit(key, order); err != nil {
			return err
		}
	}
	return rows.Err()
}

// expand finds what the rows of a node are made of.
func (t *tracer) expand(ctx context.Context, n *traced, keys string) error {
	if keys != "" && !n.own && n.Node.Query == nil {
		err := t.each(ctx, keys, func(key, order int64) error {
			batch, row := n.table.Numbered(order)
			n.at[key] = place{batch, row}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if t.single && (n.Node.Query != nil || n.callsPython()) {
		return nil
	}
	if err := t.materialize(ctx, n, keys); err != nil {
		return err
	}
	switch {
	case n.Node.Query != nil:
		return t.expandQuery(ctx, n)
	case n.Node.PyTable != nil && n.Node.PyTable.GroupBy == nil:
		return t.expandBatches(ctx, n)
	}
	rows, files := keys, fileLists{}
	files.add(n.files)
	if !n.own {
		var err error
		if rows, files, err = t.again(ctx, n, keys); err != nil {
			return err
		}
	}
	if n.Node.Files != nil {
		of, err := t.fileRows(ctx, "SELECT n, CAST(1 AS BIGINT), __o0 FROM "+rows+" ORDER BY n")
		if err != nil {
			return err
		}
		return t.records(ctx, n, n.Node.Files, plan.RoleRow, of, files)
	}
	of := func() []plan.TraceStep {
		if t.single {
			return n.singly(rows)
		}
		return plan.TraceSteps(n.Node, n.In, n.Plan.Layout, rows, t.paths)
	}
	steps := of()
	for _, table := range n.sources() {
		if slices.ContainsFunc(steps, func(s plan.TraceStep) bool { return s.Scans }) {
			if err := t.fetch(ctx, table, nil); err != nil {
				return err
			}
		}
	}
	for _, step := range of() { // with the paths of what was fetched
		if err := t.step(ctx, n, step); err != nil {
			return err
		}
	}
	return nil
}

// step makes edges of a step's rows, to each of the tables that it is about.
func (t *tracer) step(ctx context.Context, n *traced, step plan.TraceStep) error {
	width := step.Table.Width()
	name, err := t.temp(ctx, fmt.Sprintf("SELECT * FROM (SELECT n, %[1]s, count(*) OVER (PARTITION BY n, %[4]s) AS "+
		"total, row_number() OVER (PARTITION BY n, %[4]s ORDER BY %[1]s) AS nth FROM (%[2]s)) WHERE nth <= %[3]d",
		strings.Join(bare(width), ", "), step.SQL, max(t.opts.Sample, 1), step.Table.MemberSQL()))
	if err != nil {
		return err
	}
	if members := step.Table.Members(); len(members) > 1 && step.Table.Scattered() {
		for _, m := range members {
			if err := t.fetch(ctx, m, nil); err != nil {
				return err
			}
		}
	}
	for _, m := range step.Table.MemberSteps(name, t.paths) {
		to, err := t.of(m.Table)
		if err != nil {
			return err
		}
		edges, err := t.temp(ctx, m.SQL)
		if err != nil {
			return err
		}
		to.edges = append(to.edges, edge{name: edges, reader: n, role: step.Role})
	}
	return nil
}

// specs reads how a node's batches were planned.
func (t *tracer) specs(ctx context.Context, n *traced) (map[int]state.BatchSpec, error) {
	list, err := state.All(ctx, t.cfg.Store.Specs, n.key)
	if err != nil {
		return nil, fmt.Errorf("read the batches of %s: %w", n.key.Node, err)
	}
	out := make(map[int]state.BatchSpec, len(list))
	for _, s := range list {
		out[s.Batch] = s
	}
	return out, nil
}

// again executes the batches once more that have made some rows, for the order
// columns of what they have read. They have to make the same rows.
func (t *tracer) again(ctx context.Context, n *traced, keys string) (string, fileLists, error) {
	specs, err := t.specs(ctx, n)
	if err != nil {
		return "", nil, err
	}
	wrote := map[int]int64{}
	if n.table != nil {
		for _, p := range n.table.Parts {
			wrote[p.Batch] += p.Rows
		}
	}
	byBatch := map[int]map[int64]place{}
	for key, p := range n.at {
		if byBatch[p.batch] == nil {
			byBatch[p.batch] = map[int64]place{}
		}
		byBatch[p.batch][key] = p
	}
	lists := fileLists{}
	var selects []string
	for _, batch := range slices.Sorted(maps.Keys(byBatch)) {
		traced, err := n.job.TraceBatch(ctx, n.key, specs[batch], pipeline.Again{Dir: t.cfg.Dir, Beside: t.cfg.Beside})
		if err != nil {
			return "", nil, err
		}
		if n.table != nil && traced.Rows != wrote[batch] {
			return "", nil, differs(n, fmt.Sprintf("batch %d gives %s and not %d", batch,
				format.Counted(traced.Rows, "row", "rows"), wrote[batch]))
		}
		lists.add(traced.Files)
		from := fmt.Sprintf("%s AS v JOIN read_parquet(%s) AS s ON s.file_row_number = v.at_row",
			placesOf(byBatch[batch]), sqltext.String(sqltext.Glob(traced.Path)))
		if err := t.compare(ctx, n, keys, from); err != nil {
			return "", nil, err
		}
		cols := []string{"v.n"}
		for i := range n.traceWidth() {
			cols = append(cols, fmt.Sprintf("s.__o%d", i))
		}
		selects = append(selects, fmt.Sprintf("SELECT %s FROM %s", strings.Join(cols, ", "), from))
	}
	name, err := t.temp(ctx, strings.Join(selects, " UNION ALL "))
	return name, lists, err
}

// traceWidth counts the order columns of what a node reads beside its rows.
func (n *traced) traceWidth() int {
	switch {
	case n.Node.Files != nil:
		return 1
	case n.Node.Tag != nil:
		return n.In.Reader.Width() + 1
	}
	return n.In.Reader.Width()
}

// compare refuses rows of a batch that are not those that the run has kept.
func (t *tracer) compare(ctx context.Context, n *traced, keys, from string) error {
	if n.table == nil || n.Node.PyCalc != nil && n.Node.Having() == nil && n.Node.BadRows == nil {
		return nil // of a formula that makes one row of each, rows have places only
	}
	var stored []string
	for _, c := range n.table.Layout.Columns {
		stored = append(stored, "CAST(s."+sqltext.Ident(c.Stored())+" AS VARCHAR)")
	}
	names, types := tableColumns(n.table)
	rows, err := t.in.Query(ctx, fmt.Sprintf("SELECT v.n, %s FROM %s", strings.Join(stored, ", "), from))
	if err != nil {
		return fmt.Errorf("compare rows of %s: %w", n.key.Node, err)
	}
	got, err := readTexts(rows, len(names))
	if err != nil {
		return err
	}
	for key, texts := range got {
		for i, v := range t.tree.Rows[n.ids[key]].Values {
			if !sameText(v.Text, texts[i], types[i]) {
				return differs(n, fmt.Sprintf("its field %s is another one", v.Name))
			}
		}
	}
	return nil
}

func differs(n *traced, how string) error {
	f := &fault.Error{Kind: fault.Environment,
		Message: fmt.Sprintf("node %s of run %d makes other rows when it is executed once more: %s", n.key.Node,
			n.key.Run, how)}
	if n.Node.PyCalc != nil || n.Node.PyTable != nil {
		f.Hint = "its formulas do not give the same for the same rows"
	}
	return f
}

// placesOf is a FROM item of places, as n and at_row.
func placesOf(at map[int64]place) string {
	rows := make([]string, 0, len(at))
	for _, key := range slices.Sorted(maps.Keys(at)) {
		rows = append(rows, fmt.Sprintf("(CAST(%d AS BIGINT), CAST(%d AS BIGINT))", key, at[key].row))
	}
	return "(SELECT * FROM (VALUES " + strings.Join(rows, ", ") + ") AS p(n, at_row))"
}

// expandBatches is for functions that get some rows together: any of them may
// be in a row.
func (t *tracer) expandBatches(ctx context.Context, n *traced) error {
	specs, err := t.specs(ctx, n)
	if err != nil {
		return err
	}
	var selects []string
	for _, key := range slices.Sorted(maps.Keys(n.at)) {
		var w plan.Work
		if err := w.Decode(specs[n.at[key].batch]); err != nil {
			return err
		}
		if err := w.Locate(n.In); err != nil {
			return err
		}
		if err := t.fetch(ctx, n.In.Reader, nil); err != nil {
			return err
		}
		selects = append(selects, plan.BatchRows(n.In.Reader, w, key, t.paths))
	}
	return t.step(ctx, n, plan.TraceStep{Table: n.In.Reader, Role: plan.RoleBatch,
		SQL: strings.Join(selects, " UNION ALL ")})
}
