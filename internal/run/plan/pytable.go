package plan

import (
	"encoding/json"
	"fmt"
	"strings"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/python"
)

// A function over groups gets all rows of a group in one call: its batches are
// buckets of the key. A group's rows are in canonical order, groups in the order
// of their first rows. Without groups a call gets some rows that follow one another,
// or all of them.

// pyTableWorks makes batches of buckets, of slices in canonical order, or one of all.
func (p *Planner) pyTableWorks(n *script.Node, in Inputs) ([]Work, []size, error) {
	t := in.Reader
	switch {
	case n.PyTable.GroupBy != nil:
		buckets := 1
		if bytes := t.Bytes(); bytes > p.Budget.SmallBytes {
			buckets = p.bucketsFor(bytes, joinFactor)
		}
		works, sizes := cutWorks(keyed{t, groupOrder(n)}.cuts(buckets), t)
		return works, sizes, nil
	case n.PyTable.Whole, t.Layout.OrderCols > 0:
		// Only sorting gives the rows of a scattered table in canonical order: once.
		works, sizes := cutWorks([]Cut{{Buckets: 1}}, t)
		return works, sizes, nil
	}
	works, sizes := sliceWorks(t, sliceParts(t, p.batchCount(t), rowGroupRowsMin))
	return works, sizes, nil
}

// groupOrder is the key by which groups are put into buckets.
func groupOrder(n *script.Node) expr.Order {
	key := make(expr.Order, len(n.PyTable.GroupBy))
	for i, name := range n.PyTable.GroupBy {
		key[i].Field = name
	}
	return key
}

// groupSlices lists what a batch reads that is not a slice itself.
func groupSlices(n *script.Node, t *Table, w Work) []PartSlice {
	if n.PyTable.GroupBy == nil {
		return wholeTable(t)
	}
	return keyed{t, groupOrder(n)}.slices(w.Cut)
}

// pyTableRelation returns the rows from which the fields behind a function are computed: its rows p, and the
// keys of their groups r.
func pyTableRelation(t *engine.Task, n *script.Node, in Inputs, b Batch) relation {
	s := scan{table: in.Reader, slices: b.Work.Parts, paths: b.Paths}
	if b.Work.Parts == nil {
		s = keyed{in.Reader, groupOrder(n)}.scan(b.Work.Cut, b.Paths)
	}
	s.fields = n.PyTable.Columns
	rel := relation{from: engine.ResultTable + " AS p", aliases: columns{"r": in.Reader.Layout}}
	if n.PyTable.GroupBy == nil {
		t.Python = ungroupedStep(n, s)
		return rel
	}
	t.Python = groupedStep(n, s, b.Work)
	number := sqltext.Ident(engine.GroupColumn)
	rel.from += fmt.Sprintf(" JOIN %s AS r ON r.%s = p.%s", engine.GroupTable, number, number)
	s.order = true
	rel.order, rel.unknown = append(prefixed("r", s.orderCols()), "p."+sqltext.Ident(engine.RowColumn)), true
	return rel
}

// tableProgram returns the Python program of a function that reads a table of this layout.
func tableProgram(t *script.PyTable, layout Layout) *python.Program {
	table := &python.Table{Function: t.Function, Input: python.Input(t.Input), Grouped: t.GroupBy != nil ||
		t.Whole, Arguments: map[string]json.RawMessage{}}
	for _, a := range t.Arguments {
		table.Arguments[a.Name] = a.JSON
	}
	prog := &python.Program{Table: table}
	for _, f := range t.Code {
		prog.Files = append(prog.Files, python.Source{Name: f.URL, Text: f.Text})
	}
	types := layout.types()
	for _, name := range t.Columns {
		c, _ := layout.column(name)
		prog.Inputs = append(prog.Inputs, python.Column{Name: name, Type: types[name], Nullable: c.Nullable})
	}
	for _, f := range t.Returns {
		prog.Fields = append(prog.Fields, python.Field{Name: f.Name, Type: f.Type, Nullable: f.Nullable,
			Round: f.Round})
	}
	return prog
}

// transported renders the columns that a function gets, behind alias r.
func transported(prog *python.Program, layout Layout) []string {
	cols := make([]string, len(prog.Inputs))
	for i, in := range prog.Inputs {
		c, _ := layout.column(in.Name)
		cols[i] = engine.TransportSQL(in.Type, ident("r", c.Stored()))
	}
	return cols
}

func ungroupedStep(n *script.Node, s scan) *engine.PythonStep {
	prog := tableProgram(n.PyTable, s.table.Layout)
	s.order = s.table.Layout.OrderCols > 0
	source := fmt.Sprintf("SELECT %s FROM (%s) AS r", strings.Join(transported(prog, s.table.Layout), ", "), s.sql())
	if s.order {
		source += " ORDER BY " + strings.Join(prefixed("r", s.orderCols()), ", ")
	}
	return &engine.PythonStep{Program: prog, Source: source}
}

// groupedStep reads a bucket twice: for its groups with their first rows, then
// for the rows, sorted by group. Both see the same rows, so every row has a group.
func groupedStep(n *script.Node, s scan, w Work) *engine.PythonStep {
	layout := s.table.Layout
	prog := tableProgram(n.PyTable, layout)
	s.order = true
	// The groups are those of the bucket, and rows of others find none: they need not be hashed.
	where := func(c Cut) string {
		if f := (keyed{s.table, groupOrder(n)}).filter(c, "r"); f != "" {
			return " WHERE " + f
		}
		return ""
	}
	var keys, joined, names []string
	for _, name := range n.PyTable.GroupBy {
		c, _ := layout.column(name)
		keys = append(keys, ident("r", c.Stored()))
		joined = append(joined, ident("r", c.Stored())+" IS NOT DISTINCT FROM "+ident("g", c.Stored()))
		names = append(names, fmt.Sprintf("%s || coalesce(left(CAST(%s AS VARCHAR), %d), 'NULL')",
			sqltext.String(name+" = "), sqltext.Ident(c.Stored()), shownRunesMax))
	}
	number := sqltext.Ident(engine.GroupColumn)
	order := prefixed("r", s.orderCols())

	rows := s
	rows.fields = union(layout, n.PyTable.GroupBy, n.PyTable.Columns)
	source := fmt.Sprintf("SELECT %s, g.%s FROM (%s) AS r JOIN %s AS g ON %s%s ORDER BY g.%s, %s",
		strings.Join(transported(prog, layout), ", "), number, rows.sql(), engine.WindowTable,
		strings.Join(joined, " AND "), where(Cut{Range: w.Cut.Range}), number, strings.Join(order, ", "))
	s.fields = n.PyTable.GroupBy
	return &engine.PythonStep{Program: prog, Source: source, Groups: groupsSQL(s, keys, where(w.Cut)),
		WindowRows: windowRows(s.table), GroupName: "'(' || " + strings.Join(names, " || ', ' || ") + " || ')'"}
}

// windowBytes is about how much of a bucket is sorted for Python at a time. Each
// time reads all of it: of narrow rows, a tenth of the work.
const windowBytes = 256 << 20

// windowRows returns how many rows of a table make a window.
func windowRows(t *Table) int64 { return max(windowBytes*t.Rows()/max(t.Bytes(), 1), 1) }

// groupsSQL is the SELECT of a bucket's groups: number, keys, and the order
// columns of the first row.
func groupsSQL(s scan, keys []string, where string) string {
	n := s.orderCols()
	order := orderColumns(n)
	first, unpacked := "min(r.__o0)", []string{"__first AS __o0"}
	if n > 1 {
		packed := make([]string, n)
		for i, o := range order {
			packed[i] = o + " := r." + o
			if i == 0 {
				unpacked = nil
			}
			unpacked = append(unpacked, "__first."+o+" AS "+o)
		}
		first = "min(struct_pack(" + strings.Join(packed, ", ") + "))"
	}
	grouped := fmt.Sprintf("SELECT %s, %s AS __first, count(*) AS %s FROM (%s) AS r%s GROUP BY %s",
		strings.Join(keys, ", "), first, sqltext.Ident(engine.GroupRowsColumn), s.sql(), where,
		strings.Join(keys, ", "))
	return fmt.Sprintf("SELECT row_number() OVER (ORDER BY __first) - 1 AS %s, * EXCLUDE (__first), %s FROM (%s)",
		sqltext.Ident(engine.GroupColumn), strings.Join(unpacked, ", "), grouped)
}

// union lists the fields that are in one of the lists, in the order of the table's columns.
func union(layout Layout, lists ...[]string) []string {
	var refs []expr.Ref
	for _, list := range lists {
		for _, name := range list {
			refs = append(refs, expr.Ref{Alias: "r", Field: name})
		}
	}
	return usedFields(layout, "r", refs)
}
