package plan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/io/files"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
	"thalweg/internal/store/state"
)

// An ephemeral table has no parts: the statement of each batch of its one
// reader has the SELECT of its rows inside. What becomes of rows must not show
// it. So that SELECT has a column keepColumn beside the table's: true for rows
// that are in the table, computed from all values of the row that could fail
// and that the reader would not compute for each row by itself. The reader
// takes rows with it only, and puts its own conditions behind it, within one
// CASE: DuckDB takes conditions apart and tries them in any order.

// keepColumn is true for the rows of an ephemeral table. belowColumn carries
// that of the table below through a node.
const (
	keepColumn  = "__keep"
	belowColumn = `"#keep"`
)

// ephemeralVersion marks plans of ephemeral tables, which earlier versions
// would take for tables without rows.
const ephemeralVersion = 2

// Ephemeral reports whether n's table need not be stored: the script says so,
// or whoever runs it does and it can be computed in its reader.
func (p *Planner) Ephemeral(n *script.Node) bool {
	return n.Ephemeral || p.Fuse && p.Script.NotEphemeral(n) == ""
}

// PlanEphemeral is the plan of a node whose table is computed inside its
// reader: it has no batches of its own.
func (p *Planner) PlanEphemeral(n *script.Node, in Inputs) NodePlan {
	l := layoutOf(n.Table.Fields)
	l.OrderCols = orderColsOf(n, in)
	return NodePlan{Version: ephemeralVersion, Table: n.Table.Name, Layout: l, Sources: SourcesOf(n, in),
		ComputedIn: p.Script.EphemeralReader(n).Name}
}

// ownBatches are the batches that an ephemeral table's node would have had.
type ownBatches struct {
	works []Work
	sizes []size
}

// measured gives the ephemeral tables among a node's inputs the batches that
// their nodes would have had, and parts that say what those may give.
func (p *Planner) measured(ctx context.Context, in Inputs) (Inputs, error) {
	for _, at := range []**Table{&in.Reader, &in.Lookup} {
		if !(*at).Ephemeral() {
			continue
		}
		t := **at
		inner, err := p.measured(ctx, *t.Inner)
		if err != nil {
			return in, err
		}
		t.Inner, t.Parts = &inner, nil
		if t.own.works, t.own.sizes, err = p.works(ctx, t.Node, inner, &NodePlan{}); err != nil {
			return in, ofNode(t.Node, err)
		}
		for _, s := range t.own.sizes {
			var left int64
			switch {
			case inner.Reader != nil:
				left = inner.Reader.Rows() / int64(len(t.own.sizes))
			case s.rows < 0:
				left = s.bytes / max(readerWidth(t.Node.Files), 1)
			}
			if s.rows < 0 {
				s.rows = left
			}
			t.Parts = append(t.Parts, state.Part{Bucket: -1, Rows: s.rows,
				RawBytes: estimateBytes(t.Node, []size{s}, left)})
		}
		*at = &t
	}
	return in, nil
}

// fusedWorks are the batches of a node that computes a table it reads: those
// of that table's node, or one for everything.
func (p *Planner) fusedWorks(ctx context.Context, n *script.Node, in Inputs, plan *NodePlan) ([]Work, []size, error) {
	plan.RowGroup, plan.Wide = p.rowGroupRows(n, in)
	switch {
	case n.Lookup != nil:
		return p.fusedJoin(ctx, n, in, plan)
	case n.Out == nil && n.Type != script.Distinct:
		works, sizes := in.Reader.asWorks()
		return works, sizes, nil
	}
	w, s, err := p.whole(ctx, n, in)
	return []Work{w}, []size{s}, err
}

// asWorks are batches that each compute one batch of an ephemeral table.
func (t *Table) asWorks() ([]Work, []size) {
	works := make([]Work, len(t.own.works))
	for i := range works {
		works[i].Inner = map[string]*Work{t.Node.Table.Name: &t.own.works[i]}
	}
	return works, t.own.sizes
}

// fusedJoin cuts a lookup of which a side is computed by its batches. A right
// side that fits is computed by each; else it is less work to leave both sides
// to DuckDB in one batch than to compute both for each bucket, unless they are
// gathered in lists, which it cannot put aside.
func (p *Planner) fusedJoin(ctx context.Context, n *script.Node, in Inputs, plan *NodePlan) ([]Work, []size, error) {
	plan.Join = &JoinPlan{Buckets: p.joinBuckets(n, in)}
	all, s, err := p.whole(ctx, n, in)
	if err != nil {
		return nil, nil, err
	}
	if plan.Join.Buckets > 0 && !(n.Lookup.Group && joinsText(n)) {
		plan.Join.Buckets = 0
		return []Work{all}, []size{s}, nil
	}
	var works []Work
	var sizes []size
	switch {
	case plan.Join.Buckets > 0:
		works, sizes = plan.Join.works(n, in)
		for i := range sizes {
			works[i].Inner = all.Inner
			if s.rows < 0 {
				sizes[i].rows = -1
			}
		}
		return works, sizes, nil
	case in.Reader.Ephemeral():
		works, sizes = in.Reader.asWorks()
	default:
		works, sizes = p.leftWorks(in.Reader)
	}
	if in.Lookup.Ephemeral() {
		name := in.Lookup.Node.Table.Name
		for i := range works {
			if works[i].Inner == nil {
				works[i].Inner = map[string]*Work{}
			}
			works[i].Inner[name] = all.Inner[name]
		}
	}
	return works, sizes, nil
}

// whole is all work of a node in one batch. Rows are those of its reader.
func (p *Planner) whole(ctx context.Context, n *script.Node, in Inputs) (Work, size, error) {
	var w Work
	var s size
	if n.Files != nil {
		groups, err := files.PlanSlicesBy(ctx, n.Files, in.Places, func(total int64) int64 { return total + 1 }, 1)
		if err != nil || len(groups) == 0 {
			return w, s, err
		}
		w.Files = groups[0]
		s = sizeOf(groups[0])
		return w, s, nil
	}
	for _, t := range []*Table{in.Reader, in.Lookup} {
		if t == nil {
			continue
		}
		rows, bytes := t.Rows(), t.Bytes()
		if t.Ephemeral() {
			inner, of, err := p.whole(ctx, t.Node, *t.Inner)
			if err != nil {
				return w, s, err
			}
			if w.Inner == nil {
				w.Inner = map[string]*Work{}
			}
			w.Inner[t.Node.Table.Name], rows = &inner, of.rows
		} else if t == in.Reader {
			w.Parts = wholeTable(t)
		}
		if t == in.Reader {
			s.rows = rows
		}
		s.bytes += bytes
	}
	return w, s, nil
}

// FileLists lists what a batch reads of files, also inside of ephemeral tables.
func (w *Work) FileLists() [][]files.Slice {
	lists := append([][]files.Slice{w.Files}, w.Scans...)
	for _, name := range slices.Sorted(maps.Keys(w.Inner)) {
		lists = append(lists, w.Inner[name].FileLists()...)
	}
	return lists
}

// inside visits what a batch computes of the ephemeral tables among its inputs.
func (w *Work) inside(in Inputs, visit func(*Work, Inputs)) {
	for _, t := range []*Table{in.Reader, in.Lookup} {
		if t.Ephemeral() && w.Inner[t.Node.Table.Name] != nil {
			visit(w.Inner[t.Node.Table.Name], *t.Inner)
		}
	}
}

// Each visits a batch's own work and that inside of it, each with its node.
func (w *Work) Each(n *script.Node, visit func(*script.Node, *Work)) {
	visit(n, w)
	for _, source := range n.Sources(nil) {
		if inner := w.Inner[source.Table.Name]; inner != nil {
			inner.Each(source, visit)
		}
	}
}

// inlined is the SELECT of an ephemeral table's rows for one batch of its reader.
type inlined struct {
	node   *script.Node
	layout Layout
	query  string                         // of nodes that join or choose rows
	rows   func(positioned bool) relation // of all others: what their fields are computed from
	// fields that are computed for each row, whether the reader needs them or not
	guarded []string
	slices  []files.Slice // what positions are in; nil: rows have none
	explain explanation
}

// inline prepares the ephemeral tables that n reads for one batch of it: what
// they read becomes the task's. need says that n's rows need the order columns of its reader.
func (p *Planner) inline(t *engine.Task, n *script.Node, in Inputs, b Batch, need bool) (Inputs, error) {
	for _, side := range []struct {
		alias string
		at    **Table
	}{{"r", &in.Reader}, {"l", &in.Lookup}} {
		alias, at := side.alias, side.at
		if !(*at).Ephemeral() {
			continue
		}
		table := **at
		work := b.Work.Inner[table.Node.Table.Name]
		if work == nil {
			return in, fmt.Errorf("the batch does not say what it computes of table %s", table.Node.Table.Name)
		}
		sub := b
		sub.Work, sub.Scratch = *work, filepath.Join(b.Scratch, alias)
		var err error
		if table.inlined, err = p.inlineTable(t, &table, sub, need || needsOrder(n)); err != nil {
			return in, err
		}
		table.inlined.guarded = guarded(n, alias, &table)
		*at = &table
	}
	return in, nil
}

// needsOrder reports whether n looks at the order columns of what it reads,
// also where rows come in order.
func needsOrder(n *script.Node) bool {
	return n.Lookup != nil || n.Type == script.Distinct || n.Out != nil && (n.Out.Order != nil || n.Out.LimitRows > 0)
}

func (p *Planner) inlineTable(t *engine.Task, table *Table, b Batch, need bool) (*inlined, error) {
	n := table.Node
	i := &inlined{node: n, layout: table.Layout}
	in, err := p.inline(t, n, *table.Inner, b, need)
	if err != nil {
		return nil, err
	}
	switch {
	case n.Files != nil:
		err = i.readFiles(t, b, need)
	case n.Lookup != nil:
		i.query = joinQuery(n, in, NodePlan{Layout: table.Layout}, b.Work, b.Paths)
		i.explain = func(ctx context.Context, db engine.Querier, cause error) error {
			return blameLookup(ctx, db, n, in, NodePlan{Layout: table.Layout}, b.Work, b.Paths, cause)
		}
	case n.Type == script.Distinct:
		i.query = distinctQuery(n, in, table.Layout, b)
		i.explain = func(ctx context.Context, db engine.Querier, cause error) error {
			return blameRow(ctx, db, n, sourceRelation(n, in.placedRows(), b), in.Reader, cause)
		}
	default:
		placed := in
		placed.placed = in.Reader.places() != nil
		i.slices = in.Reader.places()
		i.rows = func(positioned bool) relation {
			if positioned {
				return rowRelation(n, placed, b, need)
			}
			return rowRelation(n, in, b, need)
		}
		i.explain = func(ctx context.Context, db engine.Querier, cause error) error {
			return blameRow(ctx, db, n, sourceRelation(n, placed, b), in.Reader, cause)
		}
	}
	t.Explain = first(t.Explain, i.blame)
	return i, err
}

// readFiles makes the reading of files part of the task.
func (i *inlined) readFiles(t *engine.Task, b Batch, need bool) error {
	n, work := i.node, b.Work.Files
	how := files.Unnumbered
	switch {
	case n.Files.Parquet: // positions cost nothing
		how = files.Positioned
	case b.Trace:
		how = files.Positioned
	case need:
		how = files.Ordered
	}
	reading, err := files.Read(n.Files, work, b.Scratch, how)
	if err != nil {
		return ofNode(n, err)
	}
	for _, s := range work {
		t.Paths = append(t.Paths, s.Path)
	}
	t.Prepare = both(t.Prepare, func(ctx context.Context) error { return ofNode(n, reading.Prepare(ctx)) })
	countCSV(t, n.Files, reading)
	t.Numbers = t.Numbers || how == files.Ordered
	i.slices = work
	if i.slices == nil {
		i.slices = []files.Slice{}
	}
	i.rows = func(positioned bool) relation {
		rel := relation{from: reading.SQL + " AS r", slices: work}
		if positioned {
			at, again, err := files.ReadSQL(n.Files, work, b.Scratch, files.Positioned)
			if err == nil && again(context.Background()) == nil {
				rel.from, rel.positions = at+" AS r", true
			}
		}
		if rel.positions || how != files.Unnumbered {
			rel.order = fileOrder()
		}
		return rel
	}
	i.explain = func(ctx context.Context, db engine.Querier, cause error) error {
		var found *fault.Error
		if err := files.Diagnose(ctx, db, n.Files, work, b.Scratch, cause); errors.As(err, &found) {
			return err
		}
		if rel := i.rows(true); rel.positions {
			if found := find(ctx, db, rel, allSuspects(n), cause); found != nil {
				return found
			}
		}
		return reading.Prepare(ctx) // who asks next reads the files as the batch did
	}
	return nil
}

// blame says at which row of what it reads the table's node failed, and names
// the node: the batch is another one's. nil: it did not.
func (i *inlined) blame(ctx context.Context, db engine.Querier, cause error) error {
	var f *fault.Error
	if errors.As(cause, &f) { // it says by itself whose it is
		return nil
	}
	found := ofNode(i.node, i.explain(ctx, db, cause))
	if errors.As(found, &f) && f.Place.Table == "" {
		f.Place.Table = i.node.Table.Name // its rows are no rows of what the batch reads
	}
	return found
}

// ofNode names the node that a failure within another one's batch is of.
func ofNode(n *script.Node, err error) error {
	var f *fault.Error
	if errors.As(err, &f) && f.Place.Node == "" {
		f.Place.Node = n.Name
	}
	return err
}

// blameRow finds the expression and the row at which a node that computes row by row failed.
func blameRow(ctx context.Context, db engine.Querier, n *script.Node, rel relation, reads *Table, cause error) error {
	err := findRow(ctx, db, n, rel, cause)
	var f *fault.Error
	if errors.As(err, &f) && f.Place.File == "" && f.Place.Field != "" {
		f.Place.PutInTable(reads.Name(), 0)
	}
	return err
}

// sql renders the rows: stored columns, order columns, keepColumn.
func (i *inlined) sql(positioned bool) string {
	guards := make([]string, 0, len(i.guarded))
	for _, name := range i.guarded {
		c, _ := i.layout.column(name)
		guards = append(guards, ident("w", c.Stored()))
	}
	if i.query != "" {
		// With all order columns no condition on the rows goes below the join.
		guards = append(guards, prefixed("w", i.layout.OrderCols)...)
		return fmt.Sprintf("SELECT *, %s AS %s FROM (%s) AS w", computedSQL(guards), keepColumn, i.query)
	}
	rel := i.rows(positioned)
	ref := rel.ref
	if i.node.Tag != nil {
		ref = tagRef(i.node.Tag, rel)
	}
	rows, hidden := rowsQuery(i.node, i.layout, rel, func(f *script.Field, v form) string { return v.sql(f, ref, "") })
	keep := computedSQL(guards)
	if i.node.Table.Having != nil {
		keep = fmt.Sprintf("CASE WHEN %s THEN %s ELSE false END", havingCondition(i.node, i.layout), keep)
	}
	if rel.keep != "" && keep != "true" {
		keep = fmt.Sprintf("CASE WHEN w.%s THEN %s ELSE false END", belowColumn, keep)
	}
	return fmt.Sprintf("SELECT *%s, %s AS %s FROM (%s) AS w", excluded(hidden), keep, keepColumn, rows)
}

// computedSQL is true for every row, and computes all of the columns for it.
func computedSQL(columns []string) string {
	if len(columns) == 0 {
		return "true"
	}
	return "hash(" + strings.Join(columns, ", ") + ") IS NOT NULL"
}

// places returns the slices that positions of the table's rows refer to, nil if the rows have no positions.
// For an ephemeral table those are the files, or the stored table, that its rows come from. For a stored
// table they are its own parts.
func (t *Table) places() []files.Slice {
	switch {
	case t.inlined != nil:
		return t.inlined.slices
	case t.Scattered():
		return nil
	}
	out := make([]files.Slice, len(t.Parts))
	for i := range out {
		out[i] = files.Slice{File: i, URL: "table " + t.Name()}
	}
	return out
}

// fileReader is of the files to which the rows of an ephemeral table go back; nil: it goes
// back to a stored one.
func (t *Table) fileReader() *script.FileReader {
	if t == nil || t.inlined == nil {
		return nil
	}
	for t.Ephemeral() {
		if t.Node.Files != nil {
			return t.Node.Files
		}
		t = t.Inner.Reader
	}
	return nil
}

// placed reads an ephemeral table's rows with their positions, if they have any.
func (in Inputs) placedRows() Inputs {
	in.placed = in.Reader.inlined != nil && in.Reader.places() != nil
	return in
}

// placedIn returns the slices that the rows' positions refer to; nil: rows have none.
func (r relation) placedIn() []files.Slice {
	if !r.positions {
		return nil
	}
	return r.slices
}

// keep returns the column that says whether a condition applies to a row of the table; "" for a stored table.
func (t *Table) keep() string {
	if t.inlined == nil {
		return ""
	}
	return "r." + keepColumn
}

// notStored is a SELECT that says, when it is run, why the table has no rows to show.
func (t *Table) notStored() string {
	types := t.Layout.types()
	cols := make([]string, len(t.Layout.Columns))
	for i, c := range t.Layout.Columns {
		cols[i] = fmt.Sprintf("CAST(NULL AS %s) AS %s", types[c.Name].SQL(), sqltext.Ident(c.Name))
	}
	why := fmt.Sprintf("the table of node %s is not stored in run %d: it was ephemeral, computed inside node %s",
		t.Writer, t.Run.Run, t.ComputedIn)
	return fmt.Sprintf("SELECT %s WHERE error(%s) IS NULL", strings.Join(cols, ", "), sqltext.String(why))
}

// width counts the order columns that reading an ephemeral table gives.
func (t *Table) width() int {
	n := t.Node
	switch {
	case t.Layout.OrderCols > 0 || !t.Ephemeral():
		return max(t.Layout.OrderCols, 1)
	case n.Files != nil:
		return 1
	case n.Tag != nil:
		return t.Inner.Reader.width() + 1
	}
	return t.Inner.Reader.width()
}

// guarded lists the fields of table that could fail and that n, which reads it
// as alias, would not compute for each row by itself: where n leaves rows out,
// any of them.
func guarded(n *script.Node, alias string, table *Table) []string {
	used := map[string]bool{}
	if !leavesOut(n) {
		for _, name := range usedFields(table.Layout, alias, readRefs(n)) {
			used[name] = true
		}
	}
	var out []string
	for _, f := range table.Node.Table.Fields {
		if !used[f.Name] && canFail(table, f.Name) {
			out = append(out, f.Name)
		}
	}
	return out
}

// leavesOut reports whether n may not look at each row that it reads.
func leavesOut(n *script.Node) bool {
	l := n.Lookup
	return n.Having() != nil || n.Out != nil && n.Out.LimitRows > 0 || l != nil &&
		(l.Group || !l.Left || l.Filter != nil)
}

// readRefs are all references of what n computes.
func readRefs(n *script.Node) []expr.Ref {
	var refs []expr.Ref
	for _, v := range n.Written() {
		refs = append(refs, v.Expr.Refs()...)
	}
	if n.Lookup != nil {
		refs = append(refs, joinRefs(n)...)
	}
	if n.Tag != nil {
		for _, c := range n.Tag.Criteria {
			refs = append(refs, c.Expr.Refs()...)
		}
	}
	return refs
}

// canFail reports whether a field of an ephemeral table may have no value for
// some row. Stored columns have one always, and so have those of Parquet files
// that need no conversion, whose pages have been looked at.
func canFail(t *Table, field string) bool {
	if !t.Ephemeral() {
		return false
	}
	n := t.Node
	f := n.Table.Field(field)
	refs := f.Expr.Refs()
	if len(refs) != 1 || f.Expr.Source() != refs[0].Alias+"."+refs[0].Field {
		return true
	}
	switch ref := refs[0]; {
	case n.Files != nil:
		for _, c := range n.Files.Columns {
			if c.Name == ref.Field {
				plain := c.Type == expr.Int || c.Type == expr.Float || c.Type == expr.Bool
				return c.Type != f.Type || !plain || !n.Files.Parquet
			}
		}
		return true
	case ref.Alias == "r":
		return canFail(t.Inner.Reader, ref.Field)
	case ref.Alias == "l" && !n.Lookup.Group:
		return canFail(t.Inner.Lookup, ref.Field)
	case ref.Alias == "p" && n.Tag != nil:
		return false
	}
	return true
}

// lazily makes an explanation when it is asked for: its relation may be read from files.
func lazily(build func() explanation) explanation {
	return func(ctx context.Context, db engine.Querier, cause error) error { return build()(ctx, db, cause) }
}

// first asks one explanation after the other.
func first(ask, then explanation) explanation {
	switch {
	case ask == nil:
		return then
	case then == nil:
		return ask
	}
	return func(ctx context.Context, db engine.Querier, cause error) error {
		if found := ask(ctx, db, cause); found != nil {
			return found
		}
		return then(ctx, db, cause)
	}
}

// both runs one preparation after the other.
func both(first, then func(context.Context) error) func(context.Context) error {
	if first == nil {
		return then
	}
	return func(ctx context.Context) error {
		if err := first(ctx); err != nil {
			return err
		}
		return then(ctx)
	}
}
