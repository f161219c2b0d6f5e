package expr

import (
	"strings"
	"time"
)

func choiceFunctions() []*function {
	out := []*function{}
	for _, c := range []struct {
		name string
		typ  Type
	}{{"int.iif", Int}, {"float.iif", Float}, {"decimal2.iif", Decimal}, {"string.iif", String},
		{"time.iif", DateTime}} {
		out = append(out, &function{name: c.name, group: "Choice", result: c.typ,
			params: []param{{"cond", only(Bool)}, {"x", only(c.typ)}, {"y", only(c.typ)}},
			doc:    "As iif, of this type alone.",
			check:  checkChoice, sql: sqlChoice, takesNull: true})
	}
	return append(out, &function{name: "iif", group: "Choice", resultDoc: "type of x",
		params: []param{{"cond", only(Bool)}, {"x", anyValue()}, {"y", anyValue()}},
		doc: "x where cond holds, else y; both of one type. The branch not taken is not evaluated. NULL where cond is NULL. " +
			"Beyond Capillaries.",
		check: checkChoice, sql: sqlChoice, takesNull: true})
}

func checkChoice(c *checker, n *node) *Error {
	return c.oneOfThem(n, n.args[1:])
}

// oneOfThem gives n what the values have in common of which it will be one. A
// null among them takes their type.
func (c *checker) oneOfThem(n *node, values []*node) *Error {
	if err := unifyExact(n, values); err != nil || n.typ.exact() {
		return err
	}
	var first *node
	for _, v := range values {
		switch {
		case v.typ == Null:
		case first == nil:
			first = v
		case first.typ != v.typ:
			return n.at.errorf("%s needs %s of one type, not %s and %s", n.fn.name,
				map[bool]string{true: "two values", false: "values"}[len(values) == 2], first.typ, v.typ)
		}
	}
	if first == nil && n.typ == Invalid {
		return n.at.errorf("%s of nothing but null has no type", n.fn.name).hint("give one of them a type: int(null)")
	}
	if first != nil {
		n.typ = first.typ
		n.dec, n.zone = first.dec, first.zone
	}
	n.plain, n.finite, n.bits = true, true, widthOfChoice(values)
	for _, v := range values {
		if v.typ == Null {
			v.typedNull(n.typ)
		}
		if v.op == opNull {
			continue
		}
		n.plain, n.finite = n.plain && v.plain, n.finite && v.finite
		n.dec = decimalType{wide: n.dec.wide || v.dec.wide || v.whole() && !c.mode.Round,
			scale: max(n.dec.scale, v.dec.scale), fine: n.dec.ofFiles() || v.dec.ofFiles()}
		if n.zone != nil && (v.zone == nil || n.zone.String() != v.zone.String() ||
			offsetOf(n.zone) != offsetOf(v.zone)) {
			n.zone = nil
		}
	}
	n.dec.wide = n.dec.wide || n.dec.scale > columnScale
	return nil
}

func offsetOf(zone *time.Location) int {
	_, seconds := time.Time{}.In(zone).Zone()
	return seconds
}

// sqlChoice: DuckDB's CASE evaluates a branch for the rows that take it only.
// A NULL condition gives NULL.
func sqlChoice(r *renderer, n *node) string {
	if n.typ.IsDecimal() {
		return r.choice(n, func(a *node) string { return r.cast(a, n.dec) })
	}
	return r.choice(n, r.hugeint(n))
}

func (r *renderer) choice(n *node, render func(*node) string) string {
	x, y := n.args[1], n.args[2]
	left, right := render(x), render(y)
	return r.let(n.args[0], func(c string) string {
		return "CASE WHEN " + c + " THEN " + left + " WHEN NOT " + c + " THEN " + right + " END"
	})
}

func nullFunctions() []*function {
	return []*function{
		{name: "is_null", group: "NULL", params: []param{{"x", anyValue() | setOf(anyNested)}}, result: Bool,
			handlesNull: true,
			doc:         "Whether x is NULL; the result is never NULL. Beyond Capillaries.",
			nullable:    func(*node) bool { return false },
			sql:         func(r *renderer, n *node) string { return "(" + r.allDigits(n.args[0]) + " IS NULL)" }},
		{name: "coalesce", group: "NULL", params: []param{{"x", anyValue()}, {"y", anyValue()}}, variadic: true,
			resultDoc: "type of x",
			takesNull: true, handlesNull: true,
			doc: "The first value that is not NULL; all must have the same type. Values after it are not evaluated. " +
				"The result is never NULL if one of the values cannot be NULL. Beyond Capillaries.",
			check: func(c *checker, n *node) *Error { return c.oneOfThem(n, n.args) },
			nullable: func(n *node) bool {
				for _, a := range n.args {
					if !a.null {
						return false
					}
				}
				return true
			},
			sql: sqlCoalesce},
	}
}

// sqlCoalesce: DuckDB's coalesce evaluates an argument only for the rows in
// which those before it are NULL, but what occurs twice in one argument it
// computes first, for all rows. It does not reach into a CASE.
func sqlCoalesce(r *renderer, n *node) string {
	render := r.hugeint(n)
	if n.typ.IsDecimal() {
		render = func(a *node) string { return r.cast(a, n.dec) }
	}
	risky := false
	for _, a := range n.args[1:] {
		risky = risky || a.raises || n.typ.IsDecimal()
	}
	if risky {
		return r.firstOf(n.args, render)
	}
	parts := make([]string, len(n.args))
	for i, a := range n.args {
		parts[i] = render(a)
	}
	return "coalesce(" + strings.Join(parts, ", ") + ")"
}

func (r *renderer) firstOf(args []*node, render func(*node) string) string {
	if len(args) == 1 {
		return render(args[0])
	}
	return r.bind(render(args[0]), args[0].cheap(), func(v string) string {
		return "CASE WHEN " + v + " IS NOT NULL THEN " + v + " ELSE " + r.firstOf(args[1:], render) + " END"
	})
}
