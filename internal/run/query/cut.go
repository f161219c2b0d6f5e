package query

import (
	"maps"
	"slices"
	"strings"

	"thalweg/internal/lang/script"
)

// A query may be evaluated piece by piece if each row of its result comes from
// rows of one piece alone, whatever the pieces are. The proof is made on
// DuckDB's own logical plan, in which all names are resolved: for each operator
// it is known which of its columns hold the keys of the rows that a row comes
// from. What is not known to be independent is refused.
//
// By keys, pieces are rows with equal keys (NULL is equal to NULL): joins,
// groups, windows and sets are fine where they meet rows of equal keys only.
// Row by row, pieces are single rows: no operator may see two of them.

// inputSchema has the empty tables that stand for those of a node, so that a
// plan tells them from files.
const inputSchema = "__in"

// columnSet is a set of columns of an operator, by their places.
type columnSet map[int]bool

// flow describes the rows that an operator returns.
type flow struct {
	width int
	// groups has for each set of input tables whose rows meet the columns that
	// hold each of their keys; several: every row of one meets every row of the
	// others, until an equality says otherwise; none: the same rows for all pieces.
	groups [][]columnSet
	// either are columns of which at least one, the first that is not NULL, holds
	// each of the keys: those of a full join.
	either [][2]columnSet
}

func (f flow) fixed() bool { return len(f.groups) == 0 }

// cutter goes over a plan.
type cutter struct {
	ask    script.QueryText
	by     []string     // nil: row by row
	ctes   map[int]flow // by their places in the plan
	delims []flow       // of the subqueries around: the rows for which they are computed

	tables []string // read, in the order in which the query does
}

// dependent says why a query cannot be cut, and what to do about it.
type dependent struct {
	why, hint string
	words     []string // that begin what is at fault; none: all of it
}

func (d *dependent) Error() string { return d.why }

// prove follows a plan from the top. sort is the order of the result's rows by
// its columns, nil if it has none; told is false if its columns do not tell it.
func (c *cutter) prove(plans any) (sort []script.SortKey, told bool, err error) {
	list, _ := plans.([]any)
	if len(list) != 1 {
		return nil, false, &dependent{why: "DuckDB does not write down how it would compute it"}
	}
	top := asNode(list[0])
	order, column := top, func(at int) (int, bool) { return at, true }
	if top.text("type") == "LOGICAL_PROJECTION" {
		order, column = only(top), func(at int) (int, bool) {
			i := slices.IndexFunc(top.list("expressions"), func(e node) bool {
				below, ok := reference(e)
				return ok &&
					below == at
			})
			return i, i >= 0
		}
	}
	told = true
	if order.text("type") == "LOGICAL_ORDER_BY" {
		for _, o := range order.list("orders") {
			at, is := reference(o.child("expression"))
			i, given := column(at)
			told = told && is && given
			sort = append(sort, script.SortKey{Column: max(i, 0), Desc: o.text("type") == "DESCENDING",
				NullsFirst: o.text("null_order") == "NULLS FIRST"})
		}
	}
	f, err := c.flow(top)
	return sort, told, c.independent(f, err)
}

// independent checks what is left at the top.
func (c *cutter) independent(f flow, err error) error {
	switch {
	case err != nil:
		return err
	case f.fixed():
		return &dependent{why: "it reads none of its tables", hint: "leave by out"}
	}
	return c.together(f)
}

// together requires that all rows meet by their keys.
func (c *cutter) together(f flow) error {
	if len(f.groups) <= 1 {
		return nil
	}
	return c.apart()
}

// apart says that rows of different tables meet, and not by their keys.
func (c *cutter) apart() error {
	d := &dependent{why: "its tables are joined", words: []string{"join", "from"}}
	if c.by != nil {
		d.why = "a join does not compare " + c.keys() + " of both sides"
		d.hint = "compare them with = or IS NOT DISTINCT FROM, as plain columns"
	}
	return d
}

// within requires that an operator which sees several rows at once sees only
// those of equal keys: each of them is among the columns that make rows meet.
func (c *cutter) within(columns flow, d dependent, clause string) error {
	switch {
	case columns.fixed():
		return nil
	case c.by == nil:
		d.hint = ""
		return &d
	case len(columns.groups) > 1:
		return c.apart()
	}
	var missing []string
	for i, set := range columns.groups[0] {
		if len(set) == 0 {
			missing = append(missing, c.by[i])
		}
	}
	if len(missing) == 0 {
		return nil
	}
	names := strings.Join(missing, ", ")
	d.why += " sees rows of several keys: " + clause + " has no " + names
	d.hint = "add " + names + " to " + clause + ", as plain columns of the tables"
	return &d
}

// keys names the keys.
func (c *cutter) keys() string { return strings.Join(c.by, ", ") }

// flow finds what is known of an operator's rows.
func (c *cutter) flow(n node) (flow, error) {
	for _, key := range []string{"projection_map", "left_projection_map", "right_projection_map"} {
		if list, _ := n[key].([]any); len(list) > 0 {
			return flow{}, unknown(n)
		}
	}
	switch n.text("type") {
	case "LOGICAL_GET":
		return c.get(n)
	case "LOGICAL_DUMMY_SCAN":
		return flow{width: 1}, nil
	case "LOGICAL_EXPRESSION_GET":
		f, err := c.below(n)
		if err == nil && !f.fixed() {
			err = unknown(n)
		}
		return flow{width: length(n, "expr_types")}, err
	case "LOGICAL_PROJECTION":
		f, err := c.below(n)
		return project(f, n.list("expressions")), err
	case "LOGICAL_FILTER":
		f, err := c.below(n)
		return c.equate(f, equalities(n.list("expressions"))), err
	case "LOGICAL_ORDER_BY": // what is above does not see it
		return c.below(n)
	case "LOGICAL_UNNEST":
		f, err := c.below(n)
		f.width += len(n.list("expressions"))
		return f, err
	case "LOGICAL_LIMIT":
		f, err := c.below(n)
		if err == nil && !f.fixed() {
			err = &dependent{why: "LIMIT looks at all rows", words: []string{"limit", "offset", "fetch"},
				hint: "number the rows of each key and filter: QUALIFY row_number() OVER (PARTITION BY " + c.keys() +
					" ORDER BY …) <= …"}
		}
		return f, err
	case "LOGICAL_DISTINCT":
		return c.distinct(n)
	case "LOGICAL_AGGREGATE_AND_GROUP_BY":
		return c.aggregate(n)
	case "LOGICAL_WINDOW":
		return c.window(n)
	case "LOGICAL_UNION", "LOGICAL_EXCEPT", "LOGICAL_INTERSECT":
		return c.set(n)
	case "LOGICAL_CROSS_PRODUCT", "LOGICAL_COMPARISON_JOIN", "LOGICAL_ANY_JOIN", "LOGICAL_DELIM_JOIN":
		return c.join(n)
	case "LOGICAL_MATERIALIZED_CTE":
		return c.cte(n)
	case "LOGICAL_CTE_REF":
		f, ok := c.ctes[int(n.number("cte_index"))]
		if !ok {
			return flow{}, unknown(n)
		}
		return f.copy(), nil
	case "LOGICAL_DELIM_GET":
		if len(c.delims) == 0 {
			return flow{}, unknown(n)
		}
		return c.delims[len(c.delims)-1].copy(), nil
	}
	return flow{}, unknown(n)
}

// unknown refuses an operator of which nothing is proven.
func unknown(n node) error {
	word := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(n.text("type"), "LOGICAL_"), "_", " "))
	switch n.text("type") {
	case "LOGICAL_RECURSIVE_CTE":
		word = "WITH RECURSIVE"
	case "LOGICAL_GET":
		word = "a table function of columns"
	}
	return &dependent{why: word + " may look at all rows",
		hint: "write it as a join, a group or a window with the keys"}
}

func (c *cutter) below(n node) (flow, error) { return c.flow(only(n)) }

// only is an operator's one child; nil if it has others.
func only(n node) node {
	if list := n.list("children"); len(list) == 1 {
		return list[0]
	}
	return nil
}

// get reads a table of the node, or what is the same for all pieces.
func (c *cutter) get(n node) (flow, error) {
	columns := n.list("column_indexes")
	f := flow{width: len(columns)}
	if len(n.list("children")) > 0 {
		return f, unknown(n)
	}
	data := n.child("function_data")
	if data.text("schema") != inputSchema {
		return f, nil
	}
	table := slices.IndexFunc(c.ask.Tables, func(t script.QueryTable) bool { return t.Name == data.text("table") })
	if table < 0 {
		return f, unknown(n)
	}
	c.tables = append(c.tables, c.ask.Tables[table].Name)
	keys := make([]columnSet, len(c.by))
	for i, key := range c.by {
		keys[i] = columnSet{}
		for at, column := range columns {
			index := int(column.number("index"))
			if fields := c.ask.Tables[table].Fields; index >= 0 && index < len(fields) && fields[index].Name == key {
				keys[i][at] = true
			}
		}
	}
	f.groups = [][]columnSet{keys}
	return f, nil
}

func (f flow) copy() flow {
	return f.moved(func(column int) []int { return []int{column} }, f.width)
}

// moved gives each column its new places.
func (f flow) moved(to func(column int) []int, width int) flow {
	set := func(s columnSet) columnSet {
		out := columnSet{}
		for column := range s {
			for _, at := range to(column) {
				out[at] = true
			}
		}
		return out
	}
	out := flow{width: width}
	for _, g := range f.groups {
		keys := make([]columnSet, len(g))
		for i, s := range g {
			keys[i] = set(s)
		}
		out.groups = append(out.groups, keys)
	}
	for _, pair := range f.either {
		out.either = append(out.either, [2]columnSet{set(pair[0]), set(pair[1])})
	}
	return out
}

// project makes columns of expressions. One that is the first value that is not
// NULL of those that a full join has compared is their key.
func project(f flow, expressions []node) flow {
	to := map[int][]int{}
	for i, e := range expressions {
		if at, ok := reference(e); ok {
			to[at] = append(to[at], i)
		}
	}
	out := f.moved(func(column int) []int { return to[column] }, len(expressions))
	for i, e := range expressions {
		args := e.list("children")
		if e.text("type") != "OPERATOR_COALESCE" || len(args) != 2 {
			continue
		}
		a, isA := reference(args[0])
		b, isB := reference(args[1])
		for k, pair := range f.either {
			if isA && isB && (pair[0][a] && pair[1][b] || pair[0][b] && pair[1][a]) {
				out.groups[0][k][i] = true
			}
		}
	}
	return out
}

// reference is the place of the column that an expression is.
func reference(e node) (column int, ok bool) {
	if e.text("expression_class") != "BOUND_REF" {
		return 0, false
	}
	at, ok := e["index"].(float64)
	return int(at), ok
}

// equalities lists the pairs of columns that some conditions, all of which
// must hold, compare.
func equalities(conditions []node) (out [][2]int) {
	for _, e := range conditions {
		if e.text("type") == "CONJUNCTION_AND" {
			out = append(out, equalities(e.list("children"))...)
			continue
		}
		a, isA := reference(e.child("left"))
		b, isB := reference(e.child("right"))
		if isA && isB && equality(e.text("type")) {
			out = append(out, [2]int{a, b})
		}
	}
	return out
}

func equality(comparison string) bool {
	return comparison == "COMPARE_EQUAL" || comparison == "COMPARE_NOT_DISTINCT_FROM"
}

// equate uses equalities that hold for all rows: a column that is equal to a
// key is one, and groups all of whose keys are equal are one.
func (c *cutter) equate(f flow, equal [][2]int) flow {
	for range len(equal) { // each may make another useful
		for _, pair := range equal {
			for _, g := range f.groups {
				for _, set := range g {
					if set[pair[0]] || set[pair[1]] {
						set[pair[0]], set[pair[1]] = true, true
					}
				}
			}
		}
	}
	if c.by == nil {
		return f
	}
	var merged [][]columnSet
	for _, g := range f.groups {
		for i := 0; i < len(merged); i++ {
			if matching(merged[i], g) {
				for k := range g {
					maps.Copy(g[k], merged[i][k])
				}
				merged = slices.Delete(merged, i, i+1)
				i = -1 // what it is now may meet others
			}
		}
		merged = append(merged, g)
	}
	f.groups = merged
	return f
}

// matching reports whether all keys of two groups are equal.
func matching(a, b []columnSet) bool {
	for i := range a {
		if !meet(a[i], b[i]) {
			return false
		}
	}
	return true
}

func meet(a, b columnSet) bool {
	for column := range a {
		if b[column] {
			return true
		}
	}
	return false
}

func (c *cutter) distinct(n node) (flow, error) {
	f, err := c.below(n)
	if err != nil {
		return f, err
	}
	word := "DISTINCT"
	if n.text("distinct_type") == "DISTINCT_ON" {
		word = "DISTINCT ON"
	}
	return f, c.within(project(f, n.list("distinct_targets")), dependent{why: word,
		words: []string{"distinct", "union"}},
		"its list of columns")
}

func (c *cutter) aggregate(n node) (flow, error) {
	f, err := c.below(n)
	if err != nil {
		return f, err
	}
	groups := n.list("groups")
	grouping, _ := n["grouping_functions"].([]any)
	width := len(groups) + len(n.list("expressions")) + len(grouping)
	if f.fixed() {
		return flow{width: width}, nil
	}
	d := dependent{why: "GROUP BY", words: []string{"group"}}
	if list := n.list("expressions"); len(list) > 0 {
		name := strings.TrimSuffix(list[0].lower("name"), "_star")
		d = dependent{why: name, words: []string{name}}
		if name == "first" && len(groups) == 0 && len(list) == 2 { // as scalar subqueries are planned
			d = dependent{why: "a subquery for one value"}
		}
	}
	sets := [][]node{groups}
	if lists, _ := n["grouping_sets"].([]any); len(lists) > 0 && len(groups) > 0 {
		sets = make([][]node, len(lists))
		for i, list := range lists {
			indexes, _ := list.([]any)
			for _, v := range indexes {
				if at, ok := v.(float64); ok && int(at) < len(groups) {
					sets[i] = append(sets[i], groups[int(at)])
				}
			}
		}
	}
	for _, set := range sets {
		if err := c.within(project(f, set), d, "GROUP BY"); err != nil {
			return f, err
		}
	}
	out := project(f, groups)
	out.width, out.either = width, nil
	return out, nil
}

func (c *cutter) window(n node) (flow, error) {
	f, err := c.below(n)
	if err != nil {
		return f, err
	}
	for _, e := range n.list("expressions") {
		name := e.lower("name")
		if name == "" {
			name = strings.TrimPrefix(e.lower("type"), "window_")
		}
		if err := c.within(project(f, e.list("partitions")), dependent{why: name + " OVER", words: []string{name}},
			"PARTITION BY"); err != nil {
			return f, err
		}
	}
	f.width += len(n.list("expressions"))
	return f, nil
}

// set combines the rows of queries column by column.
func (c *cutter) set(n node) (flow, error) {
	var out flow
	word := map[string]string{"LOGICAL_UNION": "UNION ALL", "LOGICAL_EXCEPT": "EXCEPT",
		"LOGICAL_INTERSECT": "INTERSECT"}[n.text("type")]
	for i, child := range n.list("children") {
		f, err := c.flow(child)
		if err != nil {
			return out, err
		}
		if err := c.together(f); err != nil {
			return out, err
		}
		f.either = nil
		switch {
		case i == 0:
			out = f
			continue
		case out.fixed() && f.fixed():
		case out.fixed() != f.fixed():
			return out, &dependent{why: "a side of " + word + " reads none of the tables: it would be there once " +
				"for each batch", words: []string{"union", "except", "intersect"},
				hint: "write these rows to a table of their own"}
		default:
			for k := range out.groups[0] {
				maps.DeleteFunc(out.groups[0][k], func(column int, _ bool) bool { return !f.groups[0][k][column] })
			}
		}
	}
	if word == "UNION ALL" { // UNION has a DISTINCT above
		return out, nil
	}
	return out, c.within(out, dependent{why: word, words: []string{strings.ToLower(word)}}, "each of its sides")
}

func (c *cutter) cte(n node) (flow, error) {
	list := n.list("children")
	if len(list) != 2 {
		return flow{}, unknown(n)
	}
	f, err := c.flow(list[0])
	if err != nil {
		return f, err
	}
	at := int(n.number("table_index"))
	c.ctes[at] = f
	defer delete(c.ctes, at)
	return c.flow(list[1])
}

func length(n node, key string) int {
	list, _ := n[key].([]any)
	return len(list)
}

// number reads a number of a plan; -1 if there is none.
func (n node) number(key string) float64 {
	if v, ok := n[key].(float64); ok {
		return v
	}
	return -1
}
