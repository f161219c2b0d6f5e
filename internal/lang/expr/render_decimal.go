package expr

import (
	"fmt"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// cast renders the decimal n as type t. Casting to fewer digits after the
// point rounds half away from zero, in DuckDB as in the language.
func (r *renderer) cast(n *node, t decimalType) string {
	if n.isConst() {
		if v := n.val.(number).round(t.scale); v.scale <= t.scale {
			return decimalLiteral(v, t)
		}
	}
	if n.op == opConvert { // int to decimal, straight to the type that is wanted
		return "CAST(" + r.allDigits(n.args[0]) + " AS " + t.sql() + ")"
	}
	if n.dec == t && !t.open {
		return r.sql(n)
	}
	return "CAST(" + r.sql(n) + " AS " + t.sql() + ")"
}

// rounded renders the decimal n as DECIMAL(18,2), rounded once.
func (r *renderer) rounded(n *node) string {
	column := decimalType{scale: columnScale}
	if n.op == opCall && n.fn.name == "decimal2" && n.args[0].typ == Float {
		return r.let(n.args[0], func(v string) string { return "thalweg_float_decimal2(" + v + ")" })
	}
	return r.cast(n, column)
}

// compareDecimals renders a comparison, which is exact: of both sides with the
// same digits after the point, if these leave room for all before it.
func (r *renderer) compareDecimals(symbol string, a, b *node) string {
	compare := func(x, y string) string { return "(" + x + " " + symbol + " " + y + ")" }
	if ofColumns(a, b) && !a.whole() && !b.whole() {
		return compare(r.asColumn(a), r.asColumn(b)) // DuckDB finds the type that holds both
	}
	t := comparable(a, b)
	switch {
	case a.outgrows(t):
		return r.compareOutgrown(a, b, t, compare)
	case b.outgrows(t):
		return r.compareOutgrown(b, a, t, func(x, y string) string { return compare(y, x) })
	}
	return compare(r.cast(a, t), r.cast(b, t))
}

// comparable is the type in which both sides are compared.
func comparable(a, b *node) decimalType {
	t := decimalType{wide: a.dec.wide || b.dec.wide, scale: max(a.dec.scale, b.dec.scale)}
	// An int column may have 19 digits: it needs the wide type beside decimals.
	if a.whole() || b.whole() {
		t.wide = true
	}
	// A constant that does not fit a narrow type of that scale.
	for _, n := range []*node{a, b} {
		if v, ok := n.val.(number); ok && v.digits(t.scale) > narrowDigits {
			t.wide = true
		}
	}
	if !t.wide && t.scale > columnScale {
		t.wide = true // a column has 16 digits before the point
	}
	return t
}

// outgrows reports decimals that may have more digits before the point than the
// wide type t. No other decimal then does: t has its digits after the point.
func (n *node) outgrows(t decimalType) bool {
	room := wideDigits - t.scale
	v, constant := n.val.(number)
	switch {
	case !t.wide:
		return false
	case constant:
		return v.digits(t.scale) > wideDigits
	case n.whole():
		return n.args[0].digits() > room
	case n.dec.open:
		return narrowDigits-columnScale > room
	case n.dec.wide:
		return wideDigits-n.dec.scale > room
	}
	return narrowDigits-n.dec.scale > room
}

// compareOutgrown compares n, which outgrows t, with other: where it does, its
// sign decides.
func (r *renderer) compareOutgrown(n, other *node, t decimalType, compare func(n, other string) string) string {
	zero := func(o *node) string { return "CASE WHEN " + r.sql(o) + " IS NOT NULL THEN 0 END" }
	if v, ok := n.val.(number); ok {
		return compare(strconv.Itoa(v.mantissa.Sign()), zero(other))
	}
	limit := number{pow10(wideDigits - t.scale), 0}
	if n.whole() {
		v := n.args[0]
		return r.bind(r.allDigits(v), v.cheap(), func(v string) string {
			return r.name(other, func(o *node) string {
				return fmt.Sprintf("CASE WHEN %[1]s >= %[2]s OR %[1]s <= -%[2]s THEN %[3]s ELSE %[4]s END", v, limit,
					compare(v, zero(o)), compare("CAST("+v+" AS "+t.sql()+")", r.cast(o, t)))
			})
		})
	}
	return r.name(n, func(v *node) string {
		return r.name(other, func(o *node) string {
			return fmt.Sprintf("CASE WHEN abs(%s) >= %s THEN %s ELSE %s END",
				v.raw, decimalLiteral(limit, decimalType{wide: true, scale: n.dec.scale}),
				compare(v.raw, zero(o)), compare(r.cast(v, t), r.cast(o, t)))
		})
	})
}

// name calls body with the decimal n under a short name.
func (r *renderer) name(n *node, body func(v *node) string) string {
	return r.named(n.dec, r.sql(n), n.cheap(), body)
}

func (r *renderer) named(t decimalType, sql string, cheap bool, body func(v *node) string) string {
	return r.bind(sql, cheap, func(v string) string { return body(&node{op: opRaw, typ: Decimal, dec: t, raw: v}) })
}

// decimalArithmetic renders + - * / of decimals. With rounding every result is
// a DECIMAL(18,2), so a chain stays in 64-bit integers: measured, 4 ns for +,
// 10 ns for *, 60 ns for /, against 0.4–2 µs where 38 digits must be rescaled.
func (r *renderer) decimalArithmetic(n *node) string {
	a, b := n.args[0], n.args[1]
	switch {
	case n.tok == token.QUO:
		return r.divide(n)
	case !r.round:
		return r.exact(n)
	case n.tok == token.MUL:
		return r.multiplyRounded(a, b)
	}
	column := decimalType{scale: columnScale}
	if ofColumns(a, b) {
		return r.addOpen(n)
	}
	if a.dec.scale <= columnScale && b.dec.scale <= columnScale && !a.whole() && !b.whole() {
		return "(" + r.cast(a, column) + " " + n.tok.String() + " " + r.cast(b, column) + ")"
	}
	t := decimalType{wide: true, scale: max(a.dec.scale, b.dec.scale)}
	return fmt.Sprintf("CAST(%s %s %s AS %s)", r.cast(a, t), n.tok, r.cast(b, t), column.sql())
}

// exact renders + - * without rounding.
func (r *renderer) exact(n *node) string {
	a, b := n.args[0], n.args[1]
	if n.tok == token.MUL {
		if a.dec.ofFiles() || b.dec.ofFiles() {
			return r.factor(a, func(x *node) string {
				return r.factor(b, func(y *node) string { return r.product(x, y, n.dec) })
			})
		}
		of := func(x *node) string { return r.cast(x, decimalType{wide: n.dec.wide, scale: x.dec.scale}) }
		return "(" + of(a) + " * " + of(b) + ")"
	}
	return "(" + r.cast(a, n.dec) + " " + n.tok.String() + " " + r.cast(b, n.dec) + ")"
}

func (r *renderer) multiplyRounded(a, b *node) string {
	column := decimalType{scale: columnScale}
	scale := a.dec.scale + b.dec.scale
	narrow := !a.dec.wide && !b.dec.wide && !a.whole() && !b.whole() // an int has up to 19 digits
	if a.dec.ofFiles() || b.dec.ofFiles() {
		return r.multiplyOpen(a, b)
	}
	switch {
	case narrow && scale <= columnScale:
		// What overflows 18 digits here would not fit a column either.
		return fmt.Sprintf("CAST(%s * %s AS %s)", r.cast(a, a.dec), r.cast(b, b.dec), column.sql())
	case narrow && a.dec.scale <= columnScale && b.dec.scale <= columnScale:
		return r.bind(r.cast(a, column), a.cheap(), func(x string) string {
			return r.bind(r.cast(b, column), b.cheap(), func(y string) string {
				return "thalweg_multiply(" + x + ", " + y + ")"
			})
		})
	}
	return fmt.Sprintf("CAST(%s * %s AS %s)", r.cast(a, decimalType{wide: true, scale: a.dec.scale}),
		r.cast(b, decimalType{wide: true, scale: b.dec.scale}), column.sql())
}

// divide renders a division: 16 digits after the point, half away from zero,
// then rounded to 2 where the mode says so.
func (r *renderer) divide(n *node) string {
	a, b := n.args[0], n.args[1]
	column := decimalType{scale: columnScale}
	zero := raised(n, "division by zero").SQL()
	guard := func(x, y, quotient string) string {
		if b.isConst() {
			return quotient
		}
		return "CASE WHEN " + y + " = 0 THEN " + zero + " ELSE " + quotient + " END"
	}
	if r.round && !a.dec.wide && !b.dec.wide && a.dec.scale <= columnScale && b.dec.scale <= columnScale {
		if a.whole() || b.whole() {
			return r.divideWholes(a, b, guard)
		}
		return r.bind(r.cast(a, column), a.cheap(), func(x string) string {
			return r.bind(r.cast(b, column), b.cheap(), func(y string) string {
				return guard(x, y, "thalweg_divide2("+x+", "+y+")")
			})
		})
	}
	if ofColumns(a, b) {
		return r.divideOpen(a, b, guard)
	}
	quotient := r.longDivision(a, b, guard)
	if r.round {
		return "CAST(" + quotient + " AS " + column.sql() + ")"
	}
	return quotient
}

// divideWholes renders a rounded quotient of which one operand at least is an
// int: fast where it has no more digits than a column.
func (r *renderer) divideWholes(a, b *node, guard func(x, y, quotient string) string) string {
	column, most := decimalType{scale: columnScale}, decimalLimit(narrowDigits-columnScale, 0)
	return r.operand(a, func(x *node, u string) string {
		return r.operand(b, func(y *node, v string) string {
			var fits []string
			for n, value := range map[*node]string{x: u, y: v} {
				if n.whole() {
					fits = append(fits, fmt.Sprintf("%[1]s BETWEEN -%[2]s AND %[2]s", value, most))
				}
			}
			slices.Sort(fits)
			plain := func(_, _, quotient string) string { return quotient }
			return guard(u, v, fmt.Sprintf("CASE WHEN %s THEN thalweg_divide2(%s, %s) ELSE CAST(%s AS %s) END",
				strings.Join(fits, " AND "), r.cast(x, column), r.cast(y, column),
				r.longDivision(x, y, plain), column.sql()))
		})
	})
}

// operand calls body with n, an int in the place of a decimal or a decimal, under a short name.
func (r *renderer) operand(n *node, body func(v *node, sql string) string) string {
	if !n.whole() {
		return r.name(n, func(v *node) string { return body(v, v.raw) })
	}
	a := n.args[0]
	return r.bind(r.allDigits(a), a.cheap(), func(v string) string {
		raw := &node{op: opRaw, typ: Int, raw: v, bits: a.bits}
		return body(&node{op: opConvert, typ: Decimal, args: []*node{raw}}, v)
	})
}

// longDivision renders a quotient of 16 digits after the point.
func (r *renderer) longDivision(a, b *node, guard func(x, y, quotient string) string) string {
	scale := max(a.dec.scale, b.dec.scale)
	macro := "thalweg_quotient("
	if scale > quotientScale {
		macro = "thalweg_quotient_fine("
	}
	return r.bind(r.mantissa(a, scale), false, func(x string) string {
		return r.bind(r.mantissa(b, scale), false, func(y string) string {
			return guard(x, y, macro+x+", "+y+")")
		})
	})
}

// mantissa renders n × 10^scale as a HUGEINT.
func (r *renderer) mantissa(n *node, scale int) string {
	if n.isConst() {
		return "CAST('" + n.val.(number).at(scale).String() + "' AS HUGEINT)"
	}
	if n.dec.digits == 0 && (!n.dec.wide || n.dec.scale <= columnScale) {
		t := decimalType{wide: true, scale: n.dec.scale}
		return fmt.Sprintf("(CAST(%s * %s AS HUGEINT) * CAST('%s' AS HUGEINT))",
			r.cast(n, t), pow10(n.dec.scale), pow10(scale-n.dec.scale))
	}
	return fmt.Sprintf("(%s * CAST('%s' AS HUGEINT))", digitsOf(r.cast(n, n.dec)), pow10(scale-n.dec.scale))
}

// digitsOf renders a decimal's digits without the point as a HUGEINT. Through
// text: multiplying it up would need more than 38 digits on the way.
func digitsOf(sql string) string {
	return "CAST(replace(CAST(" + sql + " AS VARCHAR), '.', '') AS HUGEINT)"
}

// decimalText renders a decimal without zeros at the end. For two digits, the
// usual case, remainders decide (53 ns, no more than the cast itself); trimming
// all text costs 250 ns. Open ones may have more than two digits: they alone are
// trimmed, and only where they have.
func (r *renderer) decimalText(n *node) string {
	return r.let(n, func(v string) string {
		switch {
		case n.dec.scale == 0:
			return "CAST(" + v + " AS VARCHAR)"
		case n.dec.scale == columnScale || n.dec.open:
			digits, finer := narrowDigits, ""
			if n.dec.open {
				finer = fmt.Sprintf("WHEN %[1]s %% 0.01 <> 0 THEN rtrim(CAST(%[1]s AS VARCHAR), '0') ", v)
			} else if n.dec.wide {
				digits = wideDigits
			}
			return fmt.Sprintf("CASE %[3]sWHEN %[1]s %% 0.1 <> 0 THEN CAST(CAST(%[1]s AS DECIMAL(%[2]d,%[4]d)) AS "+
				"VARCHAR) WHEN %[1]s %% 1 <> 0"+
				" THEN CAST(CAST(%[1]s AS DECIMAL(%[2]d,1)) AS VARCHAR) ELSE CAST(CAST(%[1]s AS DECIMAL(%[2]d,0)) AS "+
				"VARCHAR) END", v, digits, finer, columnScale)
		}
		return "rtrim(rtrim(CAST(" + v + " AS VARCHAR), '0'), '.')"
	})
}
