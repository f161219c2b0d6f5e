package query

import (
	"slices"
	"sort"
	"strings"

	"thalweg/internal/base/sqltext"
)

func ident(name string) string             { return sqltext.Ident(name) }
func quote(name string) string             { return sqltext.Ident(name) }
func inList(s string, list ...string) bool { return slices.Contains(list, s) }

// edit is a change of the query that takes a choice out of the engine's hands.
type edit struct {
	splice
	function string // aggregate that needs it only if its argument is a float; "" for all others
	ties     bool   // among rows that an order leaves equal: done without if it cannot be
}

// What an aggregate's result depends on beside the set of its values.
type dependence uint8

const (
	onNothing  dependence = iota
	onFloats              // rounding, if it adds floats
	onRounding            // rounding
	onOrder               // which value comes first
	onArrival             // the order alone: without ORDER BY it means nothing
	onUnknown             // something that cannot be ordered here
)

// dependenceOf knows DuckDB's aggregates; any other function is onNothing.
func dependenceOf(name string) dependence {
	switch {
	case inList(name, "sum", "avg", "mean", "sum_no_overflow"):
		return onFloats
	case inList(name, "fsum", "kahan_sum", "sumkahan", "favg", "product", "stddev", "stddev_pop", "stddev_samp",
		"variance", "var_pop", "var_samp",
		"sem", "skewness", "kurtosis", "kurtosis_pop", "corr", "covar_pop", "covar_samp", "entropy",
		"regr_avgx", "regr_avgy", "regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy"):
		return onRounding
	case inList(name, "list", "array_agg", "string_agg", "group_concat", "listagg", "any_value", "arbitrary", "mode",
		"approx_quantile", "approx_top_k",
		"arg_max", "arg_max_null", "arg_max_nulls_last", "arg_min", "arg_min_null", "arg_min_nulls_last",
		"argmax", "argmin", "max_by", "min_by"):
		return onOrder
	case inList(name, "first", "last"):
		return onArrival
	case inList(name, "json_group_array", "json_group_object", "json_group_structure", "geomean", "geometric_mean",
		"weighted_avg", "wavg"):
		return onUnknown // macros of aggregates, which take no ORDER BY
	}
	return onNothing
}

// countArgument is the place of the argument of an aggregate that says how many
// values it gives; 0 if it has none.
func countArgument(name string) int {
	switch {
	case inList(name, "min", "max"):
		return 1
	case inList(name, "arg_max", "arg_min", "argmax", "argmin", "max_by", "min_by"):
		return 2
	}
	return 0
}

// aggregate orders the rows that an aggregate sees, by its arguments behind
// its own order: what it gives then depends on its values alone.
func (c *checker) aggregate(n node, name string) {
	kind := dependenceOf(name)
	c.choose(n, name)
	args := n.list("children")
	if count := countArgument(name); count > 0 && len(args) > count && !constant(args[count]) {
		c.problem(n.location(), "write a number", "how many values %s gives would be what any one row says",
			quote(name))
		return
	}
	if kind == onNothing {
		return
	}
	if kind == onUnknown {
		c.oneThread = true
		return
	}
	orders := n.child("order_bys").list("orders")
	if kind == onArrival && len(orders) == 0 {
		c.problem(n.location(), "write "+name+"(… ORDER BY …)", "%s without ORDER BY takes any row", quote(name))
		return
	}
	open, end, ok := c.src.call(n.location())
	texts := c.arguments(open, end, ok)
	if !ok || len(texts) != len(args) || c.src.is(end+1, "within") {
		c.oneThread = c.oneThread || !c.src.is(end+1, "within")
		return
	}
	var keys []string
	for i, a := range args {
		if !constant(a) {
			keys = append(keys, "("+texts[i].text+")")
		}
	}
	if len(keys) == 0 || (len(orders) == 1 && orders[0].child("expression").text("class") == "STAR") {
		return
	}
	if inList(name, "arg_max", "arg_min", "argmax", "argmin", "max_by", "min_by") {
		slices.Reverse(keys) // the value that decides, then the one that is given
	}
	lead := " ORDER BY "
	if len(orders) > 0 {
		lead = ", "
	}
	e := edit{splice: splice{at: c.src.tokens[end-1].End, text: lead + strings.Join(keys, ", ")}}
	if kind == onFloats {
		e.function = name
	}
	c.edits = append(c.edits, e)
}

// part is a piece of the query: its first byte and the one behind it.
type part struct {
	text    string
	at, end int
}

// arguments cuts the text between a call's parentheses at its commas, without
// DISTINCT and ORDER BY.
func (c *checker) arguments(open, end int, ok bool) []part {
	if !ok || open+1 == end {
		return nil
	}
	depth := c.src.tokens[open].Depth + 1
	from := open + 1
	if c.src.is(from, "distinct", "all") {
		from++
	}
	to := end
	if i := c.src.find(from, end, depth, "order"); i > 0 && c.src.is(i+1, "by") {
		to = i
	}
	var out []part
	start := from
	for i := from; i <= to; i++ {
		if i == to || (c.src.tokens[i].Depth == depth && c.src.is(i, ",")) {
			if i == start {
				return nil
			}
			p := part{at: c.src.tokens[start].Start, end: c.src.tokens[i-1].End}
			p.text = c.src.text[p.at:p.end]
			out = append(out, p)
			start = i + 1
		}
	}
	return out
}

// constant reports whether an expression has the same value for all rows.
func constant(n node) bool {
	found := true
	each(map[string]any(n), func(inner node) {
		switch inner.text("class") {
		case "", "CONSTANT", "CAST":
		default:
			found = false
		}
	})
	return found
}

// window orders rows that a window's own order leaves equal by all that they
// have, for the functions that number rows or look at their neighbours.
func (c *checker) window(n node, in selection) {
	name := n.lower("function_name")
	c.choose(n, name)
	if inList(name, "rank", "dense_rank", "rank_dense", "percent_rank", "cume_dist", "count",
		"count_star", "min", "max", "bool_and", "bool_or") {
		return
	}
	if inList(name, "sum", "avg", "mean") && !strings.HasSuffix(n.text("start"), "_ROWS") &&
		!strings.HasSuffix(n.text("end"), "_ROWS") && inList(n.text("exclude_clause"), "", "NO_OTHER") {
		c.sums = true // over all rows that its order leaves equal: exact but for floats
		return
	}
	if !inList(name, "row_number", "ntile", "lag", "lead") || in.grouped || len(in.rows) == 0 {
		c.oneThread = true
		return
	}
	over, ok := c.over(n.location())
	if !ok {
		c.oneThread = true // a window by name
		return
	}
	end := c.src.closing(over)
	depth := c.src.tokens[over].Depth + 1
	at := end
	if i := c.src.find(over+1, end, depth, "rows", "range", "groups"); i > 0 {
		at = i
	}
	lead := " ORDER BY "
	if len(n.list("orders")) > 0 {
		lead = ", "
	}
	c.edits = append(c.edits,
		edit{ties: true, splice: splice{at: c.src.tokens[at-1].End, text: lead + strings.Join(in.rows, ", ") + " "}})
}

// over finds the parenthesis of the window of a call.
func (c *checker) over(offset int) (open int, ok bool) {
	_, end, ok := c.src.call(offset)
	if !ok {
		return 0, false
	}
	for i := end + 1; i < len(c.src.tokens); i++ {
		switch {
		case c.src.is(i, "over"):
			return i + 1, c.src.is(i+1, "(") && !c.namesWindow(i+2)
		case c.src.is(i, "("):
			if i = c.src.closing(i); i < 0 {
				return 0, false
			}
		case !c.src.is(i, "filter", "ignore", "respect", "nulls", "within", "group"):
			return 0, false
		}
	}
	return 0, false
}

// namesWindow reports whether a window begins with the name of another.
func (c *checker) namesWindow(i int) bool {
	return !c.src.is(i, ")", "partition", "order", "rows", "range", "groups")
}

// tieOrder breaks ties of an inner ORDER BY that decides which rows stay.
func (c *checker) tieOrder(orders []node, in selection) {
	at, ok := c.orderEnd(orders)
	if !ok || len(in.rows) == 0 {
		c.oneThread = true
		return
	}
	c.edits = append(c.edits, edit{ties: true, splice: splice{at: at, text: ", " + strings.Join(in.rows, ", ")}})
}

// topOrder notes where the query's own ORDER BY ends; see describer.finish.
func (c *checker) topOrder(orders []node) {
	if len(orders) == 1 && orders[0].child("expression").text("class") == "STAR" {
		return // ORDER BY ALL
	}
	if at, ok := c.orderEnd(orders); ok {
		c.edits = append(c.edits, edit{splice: splice{at: at}})
		return
	}
	c.problem(0, "name columns of the query in it", "the ORDER BY of the query cannot be read")
}

// orderEnd finds the byte behind the last key of an ORDER BY.
func (c *checker) orderEnd(orders []node) (int, bool) {
	i := c.src.at(orders[0].first())
	if i < 0 || orders[0].first() < 0 {
		return 0, false
	}
	for depth := c.src.tokens[i].Depth; i >= 0; i-- {
		if c.src.tokens[i].Depth <= depth && c.src.is(i, "order") && c.src.is(i+1, "by") {
			break
		}
	}
	if i < 0 {
		return 0, false
	}
	depth := c.src.tokens[i].Depth
	for j := i + 2; j < len(c.src.tokens); j++ {
		t := c.src.tokens[j]
		if t.Depth < depth || (t.Depth == depth && c.src.is(j, "limit", "offset", "fetch", "using", "for", ";")) {
			return c.src.tokens[j-1].End, true
		}
	}
	return c.src.tokens[len(c.src.tokens)-1].End, true
}

// apply puts the edits into a text.
func apply(text string, edits []splice) string {
	edits = slices.Clone(edits)
	sort.SliceStable(edits, func(i, j int) bool { return edits[i].at < edits[j].at })
	var b strings.Builder
	last := 0
	for _, e := range edits {
		b.WriteString(text[last:e.at])
		b.WriteString(e.text)
		last = e.at
	}
	b.WriteString(text[last:])
	return b.String()
}
