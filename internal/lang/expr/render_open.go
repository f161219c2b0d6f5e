package expr

import (
	"fmt"
	"strings"

	"thalweg/internal/base/sqltext"
)

// whole reports ints in the place of a decimal.
func (n *node) whole() bool { return n.op == opConvert && !n.isConst() }

// columnLike reports decimals with at most 16 digits before the point and at
// most 22 behind it: any two of these have a type that holds both. An int is one
// where it must fit a column.
func (n *node) columnLike() bool {
	if v, ok := n.val.(number); ok && n.isConst() {
		return v.scale <= columnScale && v.digits(columnScale) <= narrowDigits
	}
	return n.dec.open || !n.dec.wide && n.dec.scale <= columnScale
}

// ofColumns reports operands of which one at least is open, and both are
// columnLike.
func ofColumns(a, b *node) bool {
	return (a.dec.open || b.dec.open) && a.columnLike() && b.columnLike()
}

// asColumn renders what is columnLike.
func (r *renderer) asColumn(n *node) string {
	if n.dec.open {
		return r.sql(n)
	}
	return r.cast(n, decimalType{scale: columnScale})
}

// factor calls body with an operand of an open one under a short name: in a
// column's type if it fits, which an int must where operations are rounded.
func (r *renderer) factor(n *node, body func(v *node) string) string {
	switch {
	case n.dec.open || !n.columnLike():
		return r.name(n, body)
	case n.whole() && !r.round:
		t := decimalType{wide: true}
		return r.named(t, r.cast(n, t), n.cheap(), body)
	}
	t := decimalType{scale: columnScale}
	return r.named(t, r.cast(n, t), n.cheap(), body)
}

// asStored casts a node of a file's decimal type to that of a column; others stay as they are.
func (n *node) asStored() *node {
	if !n.dec.open {
		return n
	}
	t := decimalType{scale: columnScale}
	return &node{op: opRaw, typ: Decimal, dec: t, raw: "CAST(" + n.raw + " AS " + t.sql() + ")"}
}

// widened renders what factor gave with 38 digits, if it is not open.
func (r *renderer) widened(n *node) string {
	if n.dec.open {
		return n.raw
	}
	return r.cast(n, decimalType{wide: true, scale: n.dec.scale})
}

// whereStored renders an operation on x and y: fast where the file's decimals
// are like a column's, which DuckDB knows when it binds the statement, else
// slow.
func whereStored(x, y *node, fast, slow string) string {
	column := sqltext.String(decimalType{scale: columnScale}.sql())
	var conditions []string
	for _, n := range []*node{x, y} {
		if n.dec.open {
			conditions = append(conditions, "typeof("+n.raw+") = "+column)
		}
	}
	return "CASE WHEN " + strings.Join(conditions, " AND ") + " THEN " + fast + " ELSE " + slow + " END"
}

// addOpen renders + - of which one operand at least is open, and both are
// columnLike, rounded. What DuckDB adds or multiplies of types of 18 digits must
// fit 18 digits with all those after the point, so one operand is made wide.
func (r *renderer) addOpen(n *node) string {
	column, wide := decimalType{scale: columnScale}, decimalType{wide: true, scale: finestScale}
	return r.factor(n.args[0], func(x *node) string {
		return r.factor(n.args[1], func(y *node) string {
			fast := "(" + r.cast(x, column) + " " + n.tok.String() + " " + r.cast(y, column) + ")"
			u, v := r.widened(x), r.widened(y)
			if x.dec.open && y.dec.open {
				u, v = r.cast(x, wide), r.cast(y, wide)
			}
			return whereStored(x, y, fast, fmt.Sprintf("CAST(%s %s %s AS %s)", u, n.tok, v, column.sql()))
		})
	})
}

// multiplyOpen renders a product of which one factor at least is open or fine,
// rounded.
func (r *renderer) multiplyOpen(a, b *node) string {
	column := decimalType{scale: columnScale}
	if b.whole() {
		a, b = b, a
	}
	if a.whole() { // no more digits after the point
		return fmt.Sprintf("CAST(%s * %s AS %s)", r.cast(a, decimalType{wide: true}), r.sql(b), column.sql())
	}
	return r.factor(a, func(x *node) string {
		return r.factor(b, func(y *node) string {
			slow := r.product(x, y, column)
			if !ofColumns(a, b) {
				return slow
			}
			if a.dec.open != b.dec.open { // 22 digits after the point, 2 and 14 before it are 38
				slow = fmt.Sprintf("CASE WHEN %[1]s BETWEEN -9999999 AND 9999999 AND %[2]s BETWEEN -9999999 AND "+
					"9999999 THEN CAST(%[3]s * %[4]s AS %[5]s) ELSE %[6]s END",
					x.raw, y.raw, r.widened(x), r.widened(y), column.sql(), slow)
			}
			return whereStored(x, y, "thalweg_multiply("+r.cast(x, column)+", "+r.cast(y, column)+")", slow)
		})
	})
}

// product renders the product of x and y, which have short names, rounded once to
// t, which has fewer digits after the point than both together. Where they have
// few, DuckDB multiplies them, else their digits are multiplied in halves.
func (r *renderer) product(x, y *node, t decimalType) string {
	exact := r.bind(r.mantissa(x, x.dec.scale), false, func(u string) string {
		return r.bind(r.mantissa(y, y.dec.scale), false, func(v string) string {
			return fmt.Sprintf("thalweg_product(%s, %s, %d)", u, v, x.dec.scale+y.dec.scale-t.scale)
		})
	})
	unit := decimalType{scale: t.scale}
	exact = fmt.Sprintf("CAST(CAST(%s AS DECIMAL(38,0)) * %s AS %s)", exact, decimalLiteral(number{pow10(0), t.scale},
		unit), t.sql())
	if max(x.dec.scale, y.dec.scale) > finestScale {
		return exact
	}
	const few, digits = 8, narrowDigits - columnScale + 8
	return fmt.Sprintf("CASE WHEN TRY_CAST(%[1]s AS DECIMAL(%[3]d,%[4]d)) = %[1]s AND TRY_CAST(%[2]s AS "+
		"DECIMAL(%[3]d,%[4]d)) = %[2]s"+
		" THEN CAST(CAST(%[1]s AS DECIMAL(%[3]d,%[4]d)) * CAST(%[2]s AS DECIMAL(%[3]d,%[4]d)) AS %[5]s) ELSE %[6]s END",
		x.raw, y.raw, digits, few, t.sql(), exact)
}

// divideOpen renders a quotient of which one operand at least is open, and both
// are columnLike.
func (r *renderer) divideOpen(a, b *node, guard func(x, y, quotient string) string) string {
	column := decimalType{scale: columnScale}
	plain := func(_, _, quotient string) string { return quotient }
	return r.factor(a, func(x *node) string {
		return r.factor(b, func(y *node) string {
			slow := r.longDivision(x, y, plain)
			fast := ""
			if r.round {
				slow = "CAST(" + slow + " AS " + column.sql() + ")"
				fast = "thalweg_divide2(" + r.cast(x, column) + ", " + r.cast(y, column) + ")"
			} else {
				fast = r.longDivision(x.asStored(), y.asStored(), plain)
			}
			return guard(x.raw, y.raw, whereStored(x, y, fast, slow))
		})
	})
}
