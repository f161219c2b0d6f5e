package query

import (
	"slices"
	"strings"

	"thalweg/internal/base/sqltext"
)

// DuckDB takes -0 for 0, and a NaN for any other, when it compares, groups and
// sorts: which of them stands for all is that which it has seen first. In a sql
// node a zero has no sign and there is one NaN: neither in what the query reads
// nor in what it gives (package plan). What it computes within is seen to here: of the arguments of aggregates the
// signs are taken away, and where anything else may choose between two zeros and their signs show, the query runs on
// one thread.

// choose notes the arguments of a call that may give one of their values.
func (c *checker) choose(n node, name string) {
	if !c.choosers[name] {
		return
	}
	open, end, ok := c.src.call(n.location())
	args, texts := n.list("children"), c.arguments(open, end, ok)
	if !ok || len(texts) != len(args) || c.src.is(end+1, "within") {
		c.unread = true
		return
	}
	for i, a := range args {
		if !constant(a) {
			c.chosen = append(c.chosen, texts[i])
		}
	}
}

// marker begins the text by which an argument is found again in a plan.
const marker = "argument "

// mark puts marks around arguments that leave their values and types.
func mark(args []part) (out []splice) {
	for _, p := range args {
		out = append(out, splice{p.at, "CASE WHEN " + sqltext.String(marker+p.text) + " IS NULL THEN NULL ELSE ("},
			splice{p.end, ") END"})
	}
	return out
}

// marked is the text of an argument that mark has put a mark around.
func marked(e node) (text string, ok bool) {
	for _, check := range e.list("case_checks") {
		each(check.child("when_expr"), func(inner node) {
			if after, found := strings.CutPrefix(inner.child("value").text("value"), marker); found {
				text, ok = after, true
			}
		})
	}
	return text, ok
}

// unsigned takes the signs from the zeros of marked arguments that may have
// some in a plan.
func unsigned(args []part, plans any) (out []splice) {
	list, _ := plans.([]any)
	s := signs{ctes: map[int][]bool{}, marked: map[string]bool{}}
	for _, n := range list {
		s.columns(asNode(n))
	}
	for _, p := range args {
		if s.marked[p.text] {
			out = append(out, splice{p.at, "thalweg_unsigned("}, splice{p.end, ")"})
		}
	}
	return out
}

func isFloat(sqlType node) bool { return inList(sqlType.text("id"), "DOUBLE", "FLOAT") }

// holdsFloats reports whether values of a type are floats or have some within.
func holdsFloats(sqlType any) (found bool) {
	each(sqlType, func(n node) { found = found || isFloat(n) })
	return found
}

// signShows reports whether a plan may choose between -0 and 0 and show which:
// values are followed up to where one is chosen, but not from there.
func signShows(plan any, sorted bool) bool {
	list, _ := plan.([]any)
	if len(list) != 1 {
		return true // of which nothing is known
	}
	shown := false
	each(plan, func(n node) { shown = shown || showsSign(n) })
	if !shown {
		return false
	}
	top := asNode(list[0])
	for inList(top.text("type"), "LOGICAL_PROJECTION", "LOGICAL_LIMIT") && only(top) != nil {
		top = only(top)
	}
	top[topMark] = sorted // rows that the query's own ORDER BY leaves equal are equal in all columns
	s := signs{ctes: map[int][]bool{}, marked: map[string]bool{}}
	s.columns(asNode(list[0]))
	return s.chosen
}

// signs finds out which columns may hold -0.
type signs struct {
	ctes   map[int][]bool
	marked map[string]bool // floats of which an aggregate chooses that may be -0
	chosen bool            // an operator may choose by such a column
}

// columns says of each column of an operator's rows whether it may hold -0; nil:
// each of them.
func (s *signs) columns(n node) []bool {
	var in []bool
	var sides [][]bool
	for i, child := range n.list("children") {
		below := s.columns(child)
		sides = append(sides, below)
		switch cte := n.text("type") == "LOGICAL_MATERIALIZED_CTE"; {
		case cte && i == 0:
			s.ctes[int(n.number("table_index"))] = below
		case i == 0 || cte:
			in = slices.Clone(below)
		case in == nil || below == nil:
			in = nil
		case strings.HasSuffix(n.text("type"), "_JOIN") || n.text("type") == "LOGICAL_CROSS_PRODUCT":
			in = append(in, below...)
		default: // a set
			for at := range in {
				in[at] = in[at] || at >= len(below) || below[at]
			}
		}
	}
	switch n.text("type") {
	case "LOGICAL_GET", "LOGICAL_EXPRESSION_GET", "LOGICAL_DUMMY_SCAN":
		return s.source(n)
	case "LOGICAL_CTE_REF":
		return slices.Clone(s.ctes[int(n.number("cte_index"))])
	case "LOGICAL_PROJECTION":
		return s.each(n.list("expressions"), in)
	case "LOGICAL_AGGREGATE_AND_GROUP_BY":
		s.choose(in, n.list("groups")...)
		return slices.Concat(s.each(n.list("groups"), in), s.each(n.list("expressions"), in))
	case "LOGICAL_WINDOW":
		given := s.each(n.list("expressions"), in)
		if in == nil {
			return nil
		}
		return slices.Concat(in, given)
	case "LOGICAL_DISTINCT":
		s.choose(in, n.list("distinct_targets")...)
		s.order(in, orderKeys(n.child("order_by")))
	case "LOGICAL_INTERSECT", "LOGICAL_EXCEPT":
		s.chosen = s.chosen || slices.Contains(in, true) || in == nil
	case "LOGICAL_ORDER_BY":
		if !n.truth(topMark) {
			s.order(in, orderKeys(n))
		}
	case "LOGICAL_COMPARISON_JOIN": // a column of one side may be given for that of the other
		for _, e := range n.list("conditions") {
			s.choose(sides[0], e.child("left"))
			s.choose(sides[1], e.child("right"))
		}
		if inList(n.text("join_type"), "INNER", "LEFT", "RIGHT", "OUTER") {
			return in
		}
		return nil
	case "LOGICAL_FILTER", "LOGICAL_LIMIT", "LOGICAL_CROSS_PRODUCT", "LOGICAL_UNION", "LOGICAL_MATERIALIZED_CTE":
	default:
		return nil
	}
	return in
}

// source has the columns of what is read: package plan takes the signs from the
// floats of tables, but not from those within other values, nor from files.
func (s *signs) source(n node) []bool {
	if n.text("type") != "LOGICAL_GET" {
		return nil
	}
	types, table := n.list("returned_types"), n.child("function_data").text("schema") == inputSchema
	var out []bool
	for _, c := range n.list("column_indexes") {
		at := int(c.number("index"))
		out = append(out, at < 0 || at >= len(types) || holdsFloats(types[at]) && !(table && isFloat(types[at])))
	}
	return out
}

func (s *signs) each(expressions []node, in []bool) []bool {
	out := make([]bool, len(expressions))
	for i, e := range expressions {
		out[i] = s.signed(e, in)
	}
	return out
}

// choose notes that expressions decide which of several rows or values is taken.
func (s *signs) choose(in []bool, by ...node) {
	for _, e := range by {
		s.chosen = s.chosen || s.signed(e, in)
	}
}

// order notes the keys of an ORDER BY by which whole rows are told apart: what
// other keys leave equal they decide.
func (s *signs) order(in []bool, keys []node) {
	s.choose(in, slices.DeleteFunc(keys, func(e node) bool { return isFloat(typeOf(e)) })...)
}

// signed reports whether an expression may be -0 or a NaN of the other sign, as
// computing makes them, or hold one.
func (s *signs) signed(e node, in []bool) bool {
	var within []bool
	for _, inner := range operands(map[string]any(e)) {
		within = append(within, s.signed(inner, in))
	}
	if !holdsFloats(typeOf(e)) {
		return false
	}
	switch e.text("expression_class") {
	case "BOUND_CONSTANT":
		return false
	case "BOUND_REF":
		at, ok := reference(e)
		return !ok || at >= len(in) || in[at]
	case "BOUND_CAST":
		from := e.child("child")
		switch {
		case holdsFloats(typeOf(from)):
		case from.text("expression_class") == "BOUND_CONSTANT":
			return strings.HasPrefix(from.child("value").text("value"), "-")
		case !isNumber(typeOf(from)):
			return true
		}
	case "BOUND_FUNCTION":
		switch name := e.text("name"); {
		case name == "abs":
			return false
		case inList(name, "+", "-") && slices.ContainsFunc(e.list("children"), isConstant),
			inList(name, "struct_pack", "row", "list_value"):
		default:
			return true
		}
	case "BOUND_CASE":
		if text, ok := marked(e); ok && isFloat(typeOf(e)) && slices.Contains(within, true) {
			s.marked[text] = true
			return false
		}
	case "BOUND_AGGREGATE", "BOUND_WINDOW":
		s.order(in, e.list("children"))
		s.order(in, orderKeys(e))
		switch dependenceOf(e.lower("name")) {
		case onFloats, onRounding:
			return true
		}
		if e.text("type") == "BOUND_AGGREGATE" || e.text("type") == "WINDOW_AGGREGATE" {
			return slices.ContainsFunc(e.list("children"), func(arg node) bool {
				t := typeOf(arg)
				return holdsFloats(t) &&
					!isFloat(t) && s.signed(arg, in)
			})
		}
	}
	return slices.Contains(within, true)
}

// isConstant reports whether an expression is a literal.
func isConstant(e node) bool {
	if e.text("expression_class") == "BOUND_CAST" {
		e = e.child("child")
	}
	return e.text("expression_class") == "BOUND_CONSTANT"
}

// operands are the expressions right below one.
func operands(v any) (out []node) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if n := asNode(item); n != nil && n.text("expression_class") != "" {
				out = append(out, n)
			} else {
				out = append(out, operands(item)...)
			}
		}
	case map[string]any:
		for _, key := range sorted(v) {
			out = append(out, operands([]any{v[key]})...)
		}
	}
	return out
}

// showsSign reports whether an expression gives something else of -0 than of 0,
// that is not a zero itself.
func showsSign(n node) bool {
	switch n.text("expression_class") {
	case "BOUND_FUNCTION":
		if inList(n.text("name"), "+", "-", "*", "abs", "round", "floor", "ceil", "ceiling", "trunc",
			"isnan", "isfinite", "isinf", "struct_pack", "row", "list_value", "sqrt") {
			return false
		}
		for _, e := range n.list("children") {
			if holdsFloats(typeOf(e)) {
				return true
			}
		}
	case "BOUND_CAST":
		to := n.child("return_type")
		return holdsFloats(typeOf(n.child("child"))) && !holdsFloats(to) && !isNumber(to)
	}
	return false
}

// orderKeys lists the expressions of an ORDER BY.
func orderKeys(n node) (out []node) {
	for _, o := range n.list("orders") {
		out = append(out, o.child("expression"))
	}
	return out
}

// typeOf is the type of an expression's value.
func typeOf(e node) node {
	if t := e.child("return_type"); t != nil {
		return t
	}
	return e.child("value").child("type")
}

// isNumber reports whether a type is one of numbers without a negative zero.
func isNumber(sqlType node) bool {
	return inList(sqlType.text("id"), "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT",
		"USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT", "DECIMAL", "INTEGER_LITERAL")
}
