package property

import (
	"fmt"
	"slices"
	"strings"
)

// query is a sql node: a SELECT of columns, or a GROUP BY.
type query struct {
	*creator
	from    string
	columns []queryColumn
	where   *formula // its text is SQL
	group   int      // so many of the columns are grouped by; 0: none
	order   []orderItem
}

// queryColumn is a column, or a function of a group's rows.
type queryColumn struct {
	name string
	sql  string
	of   func(rows [][]any) any
}

func (n *query) id() string      { return "query_" + n.name }
func (n *query) reads() []string { return []string{n.from} }

func (n *query) text() string {
	items := make([]string, len(n.columns))
	for i, c := range n.columns {
		items[i] = c.sql + " AS " + c.name
	}
	out := "SELECT " + strings.Join(items, ", ") + " FROM " + n.from
	if n.where != nil {
		out += " WHERE " + n.where.src
	}
	if n.group > 0 {
		keys := make([]string, n.group)
		for i := range keys {
			keys[i] = n.columns[i].sql
		}
		out += " GROUP BY " + strings.Join(keys, ", ")
	}
	for i, item := range n.order {
		word := map[bool]string{true: ", ", false: " ORDER BY "}[i > 0]
		out += word + n.columns[item.at].name + map[bool]string{true: " DESC", false: ""}[item.desc] +
			map[bool]string{true: " NULLS FIRST", false: ""}[item.nullsFirst]
	}
	return out
}

func (n *query) spec(s *script, _ place) object {
	w := n.creator.spec(s)
	fields := object{}
	for _, f := range n.fields {
		o := object{{"type", f.kind.String()}}
		if f.null {
			o = append(o, entry{"nullable", true})
		}
		fields = append(fields, entry{f.name, o})
	}
	for i := range w {
		if w[i].key == "fields" {
			w[i].value = fields
		}
	}
	return object{{"type", "sql"}, {"r", object{{"tables", []string{n.from}}}}, {"query", n.text()}, {"w", w}}
}

// rows groups, and sorts by what the query says, then by all of its columns.
func (n *query) rows(tables map[string][][]any) [][]any {
	var groups [][][]any
	at := map[string]int{}
	for _, row := range tables[n.from] {
		if !holds(n.where, &env{r: row}) {
			continue
		}
		one := [][]any{row}
		key := make([]any, n.group)
		for i := range key {
			key[i] = n.columns[i].of(one)
		}
		i, known := at[keyOf(key)]
		if n.group == 0 || !known {
			at[keyOf(key)] = len(groups)
			groups = append(groups, one)
			continue
		}
		groups[i] = append(groups[i], row)
	}
	out := make([][]any, len(groups))
	for i, rows := range groups {
		for _, c := range n.columns {
			out[i] = append(out[i], c.of(rows))
		}
		unsigned(out[i])
	}
	order := slices.Clone(n.order)
	for i := range n.columns {
		order = append(order, orderItem{at: i})
	}
	slices.SortStableFunc(out, func(a, b []any) int {
		for _, item := range order {
			if c := compareNulls(a[item.at], b[item.at], item.desc, item.nullsFirst); c != 0 {
				return c
			}
		}
		return 0
	})
	return out
}

// query draws one over a table.
func (b *builder) query(from *creator) node {
	fields := from.columns()
	n := &query{creator: &creator{name: fmt.Sprintf("t%d", len(b.made))}, from: from.name}
	add := func(k kind, null bool, sql string, of func([][]any) any) {
		name := fmt.Sprintf("q%d", len(n.columns))
		n.columns = append(n.columns, queryColumn{name, sql, of})
		n.fields = append(n.fields, outField{field: field{name, k, null}, formula: formula{kind: k}})
	}
	picked := b.Perm(len(fields))[:min(len(fields), 1+b.IntN(3))]
	for _, i := range picked {
		add(fields[i].kind, fields[i].null, fields[i].name, func(rows [][]any) any { return rows[0][i] })
	}
	if b.oneIn(2) {
		n.group = len(picked)
		for range 1 + b.IntN(3) {
			b.groupColumn(fields, add)
		}
	}
	if b.oneIn(3) {
		n.where = b.sqlCondition(fields)
	}
	if b.oneIn(2) {
		for _, i := range b.Perm(len(n.columns))[:1+b.IntN(min(2, len(n.columns)))] {
			n.order = append(n.order, orderItem{at: i, desc: b.oneIn(2), nullsFirst: b.oneIn(3)})
		}
	}
	return n
}

// groupColumn adds an aggregate that SQL and the reference mean alike.
func (b *builder) groupColumn(fields []field, add func(kind, bool, string, func([][]any) any)) {
	i := b.IntN(len(fields))
	f := fields[i]
	over := func(rows [][]any) []any {
		var out []any
		for _, row := range rows {
			if row[i] != nil {
				out = append(out, row[i])
			}
		}
		return out
	}
	switch which := b.IntN(4); {
	case which == 0:
		add(intKind, false, "count(*)", func(rows [][]any) any { return int64(len(rows)) })
	case which == 1:
		add(intKind, false, "count("+f.name+")", func(rows [][]any) any { return int64(len(over(rows))) })
	case which == 2 && (f.kind == intKind || f.kind == decimalKind):
		add(f.kind, true, "sum("+f.name+")", func(rows [][]any) any {
			if values := over(rows); len(values) > 0 {
				return total(values, false)
			}
			return nil
		})
	case f.kind != floatKind:
		largest := b.oneIn(2)
		add(f.kind, true, map[bool]string{true: "max", false: "min"}[largest]+"("+f.name+")", func(rows [][]any) any {
			if values := over(rows); len(values) > 0 {
				return extreme(values, largest)
			}
			return nil
		})
	default:
		add(intKind, false, "count(DISTINCT "+f.name+")", func(rows [][]any) any {
			seen := map[string]bool{}
			for _, v := range over(rows) {
				seen[exactly(v)] = true
			}
			return int64(len(seen))
		})
	}
}

// sqlCondition is a WHERE that needs no formula of ours.
func (b *builder) sqlCondition(fields []field) *formula {
	i := b.IntN(len(fields))
	f := fields[i]
	out := formula{kind: boolKind, src: f.name + " IS NOT NULL", eval: func(e *env) any { return e.r[i] != nil }}
	test := func(src string, holds func(v any) bool) {
		out.src = src
		out.eval = func(e *env) any { return e.r[i] != nil && holds(e.r[i]) }
	}
	switch f.kind {
	case intKind:
		n := int64(b.IntN(20) - 10)
		test(fmt.Sprintf("%s > %d", f.name, n), func(v any) bool { return v.(int64) > n })
	case decimalKind:
		test(f.name+" BETWEEN -5.5 AND 500.25", func(v any) bool { return v.(cents) >= -550 && v.(cents) <= 50025 })
	case boolKind:
		test("NOT "+f.name, func(v any) bool { return !v.(bool) })
	case stringKind:
		test(f.name+" NOT IN ('a', 'Jose', 'José', '', 'b', 'x', 'y')", func(v any) bool {
			return !slices.Contains([]string{"a", "Jose", "José", "", "b", "x", "y"}, v.(string))
		})
	}
	return &out
}
