package query

import (
	"maps"
	"slices"
	"strings"

	"thalweg/internal/lang/script"
)

// What a query's columns are made of is read off DuckDB's logical plan, as it is
// bound and before it is optimised: names are resolved there, and subqueries are
// joins. An operator that is not known makes every column one of all columns.

// sourceSet is the columns of tables and files that a value is made of.
type sourceSet map[script.QuerySource]bool

func (s sourceSet) add(more sourceSet) { maps.Copy(s, more) }

// columner goes over a plan.
type columner struct {
	tables []script.QueryTable
	files  []script.QueryFile
	ctes   map[int][]sourceSet
	delims [][]sourceSet
	beside map[string]sourceSet // by what they decide
	all    sourceSet            // that are read anywhere
	lost   bool                 // an operator was not known
}

// origins says what the columns of a query are made of, and what else decides about its rows.
func origins(plans any, width int, tables []script.QueryTable, files []script.QueryFile) script.QueryOrigins {
	c := &columner{tables: tables, files: files, ctes: map[int][]sourceSet{}, beside: map[string]sourceSet{},
		all: sourceSet{}}
	var made []sourceSet
	if list, _ := plans.([]any); len(list) == 1 {
		made = c.operator(asNode(list[0]))
	}
	out := script.QueryOrigins{Columns: make([][]script.QuerySource, width), Beside: map[string][]script.QuerySource{}}
	out.Lost = c.lost || len(made) != width
	for i := range out.Columns {
		if out.Lost {
			out.Columns[i] = listed(c.all)
		} else {
			out.Columns[i] = listed(made[i])
		}
	}
	for how, set := range c.beside {
		if list := listed(set); len(list) > 0 {
			out.Beside[how] = list
		}
	}
	return out
}

func listed(s sourceSet) []script.QuerySource {
	return slices.SortedFunc(maps.Keys(s), func(a, b script.QuerySource) int {
		return strings.Compare(a.Of+"\x00"+a.Column, b.Of+"\x00"+b.Column)
	})
}

// operator gives what each column of an operator is made of.
func (c *columner) operator(n node) []sourceSet {
	for _, key := range []string{"projection_map", "left_projection_map", "right_projection_map"} {
		if list, _ := n[key].([]any); len(list) > 0 {
			return c.unknown(n)
		}
	}
	switch n.text("type") {
	case "LOGICAL_GET":
		return c.get(n)
	case "LOGICAL_DUMMY_SCAN":
		return []sourceSet{{}}
	case "LOGICAL_EXPRESSION_GET":
		return sets(length(n, "expr_types"))
	case "LOGICAL_PROJECTION":
		return c.values(n.list("expressions"), c.under(n))
	case "LOGICAL_FILTER":
		below := c.under(n)
		c.decide("filter", n.list("expressions"), below)
		return below
	case "LOGICAL_ORDER_BY", "LOGICAL_LIMIT":
		below := c.under(n)
		for _, o := range n.list("orders") {
			c.decide("order", []node{o.child("expression")}, below)
		}
		return below
	case "LOGICAL_UNNEST":
		below := c.under(n)
		return append(slices.Clone(below), c.values(n.list("expressions"), below)...)
	case "LOGICAL_DISTINCT":
		below := c.under(n)
		c.decide("distinct", n.list("distinct_targets"), below)
		return below
	case "LOGICAL_AGGREGATE_AND_GROUP_BY":
		below := c.under(n)
		c.decide("group", n.list("groups"), below)
		grouping, _ := n["grouping_functions"].([]any)
		return slices.Concat(c.values(n.list("groups"), below), c.values(n.list("expressions"), below),
			sets(len(grouping)))
	case "LOGICAL_WINDOW":
		below := c.under(n)
		for _, e := range n.list("expressions") {
			c.decide("window", append(e.list("partitions"), e.list("orders")...), below)
		}
		return append(slices.Clone(below), c.values(n.list("expressions"), below)...)
	case "LOGICAL_UNION", "LOGICAL_EXCEPT", "LOGICAL_INTERSECT":
		return c.set(n)
	case "LOGICAL_CROSS_PRODUCT", "LOGICAL_COMPARISON_JOIN", "LOGICAL_ANY_JOIN", "LOGICAL_DELIM_JOIN",
		"LOGICAL_ASOF_JOIN":
		return c.join(n)
	case "LOGICAL_MATERIALIZED_CTE":
		list := n.list("children")
		if len(list) != 2 {
			return c.unknown(n)
		}
		c.ctes[int(n.number("table_index"))] = c.operator(list[0])
		return c.operator(list[1])
	case "LOGICAL_CTE_REF":
		if made, ok := c.ctes[int(n.number("cte_index"))]; ok {
			return made
		}
	case "LOGICAL_DELIM_GET":
		if len(c.delims) > 0 {
			return c.delims[len(c.delims)-1]
		}
	}
	return c.unknown(n)
}

func (c *columner) under(n node) []sourceSet { return c.operator(only(n)) }

// unknown gives up telling columns apart, and goes on to see what is read.
func (c *columner) unknown(n node) []sourceSet {
	c.lost = true
	for _, child := range n.list("children") {
		c.operator(child)
	}
	return nil
}

func sets(count int) []sourceSet {
	out := make([]sourceSet, count)
	for i := range out {
		out[i] = sourceSet{}
	}
	return out
}

// get reads a table or a file.
func (c *columner) get(n node) []sourceSet {
	data, columns := n.child("function_data"), n.list("column_indexes")
	out := sets(len(columns))
	of, names := data.text("table"), []string{}
	schema := data.text("schema")
	table := slices.IndexFunc(c.tables, func(t script.QueryTable) bool { return schema == inputSchema && t.Name == of })
	file := slices.IndexFunc(c.files, func(f script.QueryFile) bool {
		return f.Schema == schema &&
			len(f.Reader.URLs) > 0
	})
	switch {
	case table >= 0:
		for _, f := range c.tables[table].Fields {
			names = append(names, f.Name)
		}
	case file >= 0:
		of = c.files[file].Reader.URLs[0].URL
		list, _ := n["names"].([]any)
		for _, v := range list {
			name, _ := v.(string)
			names = append(names, name)
		}
	default:
		return out // values of the query's own
	}
	for at, column := range columns {
		if index := int(column.number("index")); index >= 0 && index < len(names) {
			source := script.QuerySource{Of: of, Column: names[index], File: file >= 0}
			out[at][source], c.all[source] = true, true
		}
	}
	return out
}

// values gives what expressions over columns are made of.
func (c *columner) values(expressions []node, below []sourceSet) []sourceSet {
	out := sets(len(expressions))
	for i, e := range expressions {
		each(map[string]any(e), func(inner node) {
			if at, ok := reference(inner); ok && at < len(below) {
				out[i].add(below[at])
			}
		})
	}
	return out
}

// decide notes that expressions decide about rows.
func (c *columner) decide(how string, expressions []node, below []sourceSet) {
	if c.beside[how] == nil {
		c.beside[how] = sourceSet{}
	}
	for _, s := range c.values(expressions, below) {
		c.beside[how].add(s)
	}
}

func (c *columner) set(n node) []sourceSet {
	var out []sourceSet
	for i, child := range n.list("children") {
		made := c.operator(child)
		switch {
		case i == 0:
			out = slices.Clone(made)
			for k := range out {
				out[k] = maps.Clone(out[k])
			}
		case n.text("type") != "LOGICAL_UNION":
			for _, s := range made {
				if c.beside["filter"] == nil {
					c.beside["filter"] = sourceSet{}
				}
				c.beside["filter"].add(s)
			}
		default:
			for k := range min(len(out), len(made)) {
				out[k].add(made[k])
			}
		}
	}
	return out
}

func (c *columner) join(n node) []sourceSet {
	sides := n.list("children")
	if len(sides) != 2 {
		return c.unknown(n)
	}
	left := c.operator(sides[0])
	if n.text("type") == "LOGICAL_DELIM_JOIN" {
		c.delims = append(c.delims, c.values(n.list("duplicate_eliminated_columns"), left))
		defer func() { c.delims = c.delims[:len(c.delims)-1] }()
	}
	right := c.operator(sides[1])
	compared := sourceSet{}
	for _, cond := range n.list("conditions") {
		for _, s := range slices.Concat(c.values([]node{cond.child("left")}, left),
			c.values([]node{cond.child("right")}, right)) {
			compared.add(s)
		}
	}
	both := slices.Concat(left, right)
	if e := n.child("condition"); e != nil {
		compared.add(c.values([]node{e}, both)[0])
	}
	if c.beside["join"] == nil {
		c.beside["join"] = sourceSet{}
	}
	c.beside["join"].add(compared)
	switch n.text("join_type") {
	case "SEMI", "ANTI":
		return left
	case "MARK":
		return append(slices.Clone(left), compared)
	case "RIGHT_SEMI", "RIGHT_ANTI":
		return right
	}
	return both
}
