package plan

import (
	"fmt"
	"strings"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/io/files"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
	"thalweg/internal/store/state"
)

// Tracing goes from rows back to the rows that they are made of. It keeps
// nothing for that while a run is at work: a row is known by what says its
// order, which is its place in the parts, or its order columns (scan.order).
// Those of a lookup, a distinct table or a group are made of the order columns
// of what it read, and say it by themselves. Rows of a node that goes row by
// row have a place only: the batch that wrote them is executed once more, with
// the order columns of what it reads beside its rows (TraceTask).

// fileOrder says the order of rows that have files.FileColumn and files.RowColumn, behind alias r.
func fileOrder() []string {
	return []string{fmt.Sprintf("(r.%s * %d + r.%s)", files.FileColumn, int64(orderStride), files.RowColumn)}
}

// FilePlace takes the order of a row of files apart: the ordinal of its file, and its data row in it, from 0.
func FilePlace(order int64) (file int, row int64) {
	return int(order / orderStride), order % orderStride
}

// TraceTask is the task of a batch whose part is not kept: its rows, in the
// order in which the batch writes them, with order columns __o0 … that say which
// rows of what it reads each is made of. A formula that makes a row of each row
// is not computed for that.
func (p *Planner) TraceTask(n *script.Node, in Inputs, plan NodePlan, b Batch) (engine.Task, error) {
	b.Trace = true
	return p.Task(n, in, plan, nil, b)
}

// tracedOutput writes rows as they come.
func tracedOutput(b Batch) *engine.PartOutput {
	return &engine.PartOutput{Stage: b.Stage}
}

// eachRow reports whether a node that goes row by row makes one row of each.
func eachRow(n *script.Node) bool { return n.Having() == nil && n.BadRows == nil && n.Tag == nil }

// positionsQuery is the order columns of a relation's rows.
func positionsQuery(rel relation) string {
	cols := make([]string, len(rel.order))
	for i, o := range rel.order {
		cols[i] = fmt.Sprintf("%s AS __o%d", o, i)
	}
	return fmt.Sprintf("SELECT %s FROM %s", strings.Join(cols, ", "), rel.from)
}

// Members are the tables that are read as one: the table itself, if it is one.
func (t *Table) Members() []*Table {
	var out []*Table
	for _, m := range t.each() {
		out = append(out, m.Table)
	}
	return out
}

// Width counts the columns that say which row of the table a row is: its order
// columns, or one for its place.
func (t *Table) Width() int { return t.width() }

// Own reports whether the order columns of n's rows are made of those of the
// rows that they are made of. Otherwise they are numbers in their batch.
func Own(n *script.Node, in Inputs) bool { return n.Table != nil && orderColsOf(n, in) > 0 }

// Traceable is an ephemeral table as it is once the rows of a batch, with their
// order columns, have been written to parts.
func (t *Table) Traceable(parts ...string) (*Table, Paths) {
	out := &Table{Node: t.Node, Run: t.Run, Writer: t.Writer, Layout: t.Layout}
	out.Layout.OrderCols, out.Layout.Buckets, out.Layout.Hash = t.width(), 0, ""
	paths := Paths{}
	for i, path := range parts {
		out.Parts = append(out.Parts, state.Part{Key: path, Batch: i, Bucket: -1})
		paths[path] = path
	}
	return out, paths
}

// PartColumn is the place of a row's part, beside OrderName.
const PartColumn = `"#part"`

// Select reads rows of a table with what says which they are: the fields, order
// columns as OrderName, and where placed PartColumn. parts are the places of those to read; nil: all.
func (t *Table) Select(paths Paths, parts []int, placed bool) string {
	s := scan{table: t, paths: paths, order: true, slices: wholeTable(t), placed: placed}
	if parts != nil {
		s.slices = nil
		for _, i := range parts {
			s.slices = append(s.slices, PartSlice{Part: i})
		}
	}
	cols := make([]string, 0, len(t.Layout.Columns)+1)
	for _, c := range t.Layout.Columns {
		s.fields = append(s.fields, c.Name)
		cols = append(cols, ident("s", c.Stored())+" AS "+sqltext.Ident(c.Name))
	}
	for i, o := range orderColumns(s.orderCols()) {
		cols = append(cols, "s."+o+" AS "+OrderName(i))
	}
	if placed {
		cols = append(cols, "s."+files.FileColumn+" AS "+PartColumn)
	}
	return fmt.Sprintf("SELECT %s FROM (%s) AS s", strings.Join(cols, ", "), s.sql())
}

// OrderName is an order column where it must not be a field.
func OrderName(i int) string { return sqltext.Ident(fmt.Sprintf("#o%d", i)) }

// PartOf is the part, by its place, that has a row of a table that is not scattered.
func PartOf(order int64) (part int, row int64) { return int(order / orderStride), order % orderStride }

// Numbered is the batch that wrote a row, and its place, from 0, among the
// batch's rows: of a table whose order columns are not made of others (see Own).
func (t *Table) Numbered(order int64) (batch int, row int64) {
	if t.Scattered() {
		return int((order - 1) / orderStride), (order - 1) % orderStride
	}
	part, row := PartOf(order)
	return t.Parts[part].Batch, row + t.rowsBefore(part)
}

// TraceStep finds rows of a table: its SELECT gives n and the table's order columns.
type TraceStep struct {
	Table *Table
	Role  Role
	Scans bool // it reads all of the node's tables
	SQL   string
}

// Role is the part that input rows play for the row that is made of them.
type Role string

// The roles.
const (
	RoleRow   Role = "row"   // it is computed from this one
	RoleLeft  Role = "left"  // of a lookup
	RoleRight Role = "right" // of a lookup
	RoleGroup Role = "group" // all rows of a group, of which it may be made
	RoleSame  Role = "same"  // rows of the same key: the first was kept
	RoleBatch Role = "batch" // rows that a function got together
	RoleQuery Role = "query" // rows that a query has made it of
	RoleAll   Role = "all"   // all rows: which of them cannot be told
)

// TraceSteps finds what rows of n's table are made of: rows is a table of n and
// the order columns of the rows, made of those of what the node reads (see Own).
// Nothing of files and queries.
func TraceSteps(n *script.Node, in Inputs, layout Layout, rows string, paths Paths) []TraceStep {
	switch {
	case in.Reader == nil:
		return nil
	case n.Lookup != nil && !n.Lookup.Group:
		left, right := in.Reader.width(), in.Lookup.width()
		return []TraceStep{
			{Table: in.Reader, Role: RoleLeft, SQL: passOn(rows, 0, left)},
			{Table: in.Lookup, Role: RoleRight,
				SQL: passOn(rows, left, right) + fmt.Sprintf(" WHERE t.__o%d IS NOT NULL",
					left)},
		}
	case n.Lookup != nil:
		return []TraceStep{
			{Table: in.Reader, Role: RoleLeft, SQL: passOn(rows, 0, in.Reader.width())},
			{Table: in.Lookup, Role: RoleRight, Scans: true, SQL: groupedRight(n, in, rows, paths)},
		}
	case n.Type == script.Distinct:
		return []TraceStep{{Table: in.Reader, Role: RoleSame, Scans: true, SQL: sameKey(n, in, layout, rows, paths)}}
	case n.PyTable != nil:
		return []TraceStep{{Table: in.Reader, Role: RoleGroup, Scans: true, SQL: sameGroup(n, in, rows, paths)}}
	}
	return FirstStep(RoleRow, in, rows)
}

// FirstStep goes to the rows of a node's reader whose order columns its rows begin with.
func FirstStep(role Role, in Inputs, rows string) []TraceStep {
	return []TraceStep{{Table: in.Reader, Role: role, SQL: passOn(rows, 0, in.Reader.width())}}
}

// passOn takes some of the order columns.
func passOn(rows string, from, count int) string {
	cols := []string{"t.n"}
	for i := range count {
		cols = append(cols, fmt.Sprintf("t.__o%d AS __o%d", from+i, i))
	}
	return fmt.Sprintf("SELECT %s FROM %s AS t", strings.Join(cols, ", "), rows)
}

// SameOrder joins rows behind two aliases that are the same row.
func SameOrder(a, b string, count int) string {
	var on []string
	for _, o := range orderColumns(count) {
		on = append(on, fmt.Sprintf("%s.%s IS NOT DISTINCT FROM %s.%s", a, o, b, o))
	}
	return strings.Join(on, " AND ")
}

// allOf reads a whole table with its order columns.
func allOf(t *Table, fields []string, paths Paths) scan {
	return scan{table: t, slices: wholeTable(t), fields: fields, paths: paths, order: true}
}

// groupedRight is the right rows of a grouped lookup's rows.
func groupedRight(n *script.Node, in Inputs, rows string, paths Paths) string {
	j := newJoiner(n, in, NodePlan{}, Work{Parts: wholeTable(in.Reader)}, paths)
	return fmt.Sprintf("SELECT t.n, %s FROM %s AS t JOIN (%s) AS r ON %s JOIN (%s) AS l ON %s",
		strings.Join(prefixed("l", j.right.scan.orderCols()), ", "),
		rows, j.left.sql(), SameOrder("t", "r", j.left.scan.orderCols()), j.right.sql(), j.on())
}

// sameKey is the rows of which a distinct table has kept the first.
func sameKey(n *script.Node, in Inputs, layout Layout, rows string, paths Paths) string {
	s := allOf(in.Reader, usedFields(in.Reader.Layout, "r", fieldRefs(n.Table)), paths)
	rel := relation{from: "(" + s.sql() + ") AS r", aliases: columns{"r": in.Reader.Layout},
		order: prefixed("r", s.orderCols())}
	all := tableQuery(n, layout, rel, nil)
	kept, others := layout.keySQL(uniqueKey(n), "d"), layout.keySQL(uniqueKey(n), "e")
	on := make([]string, len(kept))
	for i := range kept {
		on[i] = kept[i] + " IS NOT DISTINCT FROM " + others[i]
	}
	return fmt.Sprintf("SELECT t.n, %s FROM %s AS t JOIN (%s) AS d ON %s JOIN (%s) AS e ON %s",
		strings.Join(prefixed("e", s.orderCols()), ", "),
		rows, all, SameOrder("t", "d", s.orderCols()), all, strings.Join(on, " AND "))
}

// sameGroup is the rows that a function over groups got with the first one.
func sameGroup(n *script.Node, in Inputs, rows string, paths Paths) string {
	s := allOf(in.Reader, n.PyTable.GroupBy, paths)
	var on []string
	for _, name := range n.PyTable.GroupBy {
		c, _ := in.Reader.Layout.column(name)
		on = append(on, ident("d", c.Stored())+" IS NOT DISTINCT FROM "+ident("e", c.Stored()))
	}
	return fmt.Sprintf("SELECT t.n, %s FROM %s AS t JOIN (%s) AS d ON %s JOIN (%s) AS e ON %s",
		strings.Join(prefixed("e", s.orderCols()), ", "),
		rows, s.sql(), SameOrder("t", "d", s.orderCols()), s.sql(), strings.Join(on, " AND "))
}

// MemberSQL is the number of the member that a row is of, over the order columns.
func (t *Table) MemberSQL() string {
	if t.members == nil || t.Scattered() && len(t.members) == 1 {
		return "0"
	}
	if t.Scattered() {
		return "__o0"
	}
	var cases strings.Builder
	for i, m := range t.members[1:] {
		fmt.Fprintf(&cases, " WHEN __o0 < %d THEN %d", int64(m.first)*orderStride, i)
	}
	return fmt.Sprintf("CASE%s ELSE %d END", cases.String(), len(t.members)-1)
}

// MemberSteps tells the rows of tables that are read as one apart: for each
// member, n, total and nth of rows and its own order columns. rows has those of all of them.
func (t *Table) MemberSteps(rows string, paths Paths) []TraceStep {
	var out []TraceStep
	for at, m := range t.each() {
		step := TraceStep{Table: m.Table}
		switch {
		case t.members == nil:
			step.SQL = "SELECT * FROM " + rows
		case !t.Scattered():
			first := int64(m.first) * orderStride
			step.SQL = fmt.Sprintf("SELECT t.n, t.total, t.nth, t.__o0 - %d AS __o0 FROM %s AS t WHERE t.__o0 >= %d "+
				"AND t.__o0 < %d", first, rows, first, first+int64(len(m.Parts))*orderStride)
		default:
			step.Scans = true
			s := allOf(m.Table, nil, paths)
			own := orderColumns(s.orderCols())
			key := fmt.Sprintf("create_sort_key(%s, 'ASC NULLS LAST')",
				strings.Join(prefixed("m", len(own)), ", 'ASC NULLS LAST', "))
			if m.Layout.OrderCols == 0 { // numbered by its place among the parts of all
				key = fmt.Sprintf("create_sort_key(m.__o0 + %d, 'ASC NULLS LAST')", int64(m.first)*orderStride)
			}
			step.SQL = fmt.Sprintf("SELECT t.n, t.total, t.nth, %s FROM %s AS t JOIN (%s) AS m ON t.__o0 = %d AND "+
				"t.__o1 = %s", strings.Join(prefixed("m", len(own)), ", "), rows, s.sql(), at, key)
		}
		out = append(out, step)
	}
	return out
}

// BatchRows is n, the same for all, and the order columns of the rows of a table that a batch has read.
func BatchRows(t *Table, w Work, n int64, paths Paths) string {
	s := allOf(t, nil, paths)
	if w.Parts != nil {
		s.slices = w.Parts
	}
	return fmt.Sprintf("SELECT CAST(%d AS BIGINT) AS n, %s FROM (%s) AS s", n,
		strings.Join(prefixed("s", s.orderCols()),
			", "), s.sql())
}

// RowAt is n, which is 1, and the order columns of a row of a table, counted from 1.
// The table is not scattered. "": it has fewer rows.
func RowAt(t *Table, row int64) string {
	for i, p := range t.Parts {
		if row <= p.Rows {
			return fmt.Sprintf("SELECT CAST(1 AS BIGINT) AS n, CAST(%d AS BIGINT) AS __o0", int64(i)*orderStride+row-1)
		}
		row -= p.Rows
	}
	return ""
}

// BatchRowAt is RowAt for one of the rows that a batch reads of a scattered table: as
// they come or, where sorted, in canonical order. "": it cannot be told.
func BatchRowAt(t *Table, w Work, row int64, sorted bool, paths Paths) string {
	if w.Ranged || len(w.Parts) == 0 {
		return ""
	}
	rows := BatchRows(t, w, 1, paths)
	if sorted {
		return fmt.Sprintf("%s ORDER BY %s LIMIT 1 OFFSET %d", rows, strings.Join(orderColumns(t.width()), ", "), row-1)
	}
	return fmt.Sprintf("SELECT * EXCLUDE (nth) FROM (SELECT *, row_number() OVER () AS nth FROM (%s)) WHERE nth = %d",
		rows, row)
}

// Rowids numbers a table's rows from 0 as a query's table of them does, in
// order: column rid beside the order columns.
func (t *Table) Rowids(paths Paths) string {
	s := allOf(t, nil, paths)
	cols := strings.Join(prefixed("s", s.orderCols()), ", ")
	return fmt.Sprintf("SELECT row_number() OVER (ORDER BY %[1]s) - 1 AS rid, %[1]s FROM (%[2]s) AS s", cols, s.sql())
}

// SameRow joins rows of a table as Select gives them, behind alias a, with rows
// under the names of the parts, behind b, that have the same values.
func (t *Table) SameRow(a, b string) string {
	on := make([]string, len(t.Layout.Columns))
	for i, c := range t.Layout.Columns {
		on[i] = ident(a, c.Name) + " IS NOT DISTINCT FROM " + ident(b, c.Stored())
	}
	return strings.Join(on, " AND ")
}
