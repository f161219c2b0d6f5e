package expr

import (
	"fmt"
	"go/token"
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
		return "CAST(" + r.sql(n.args[0]) + " AS " + t.sql() + ")"
	}
	if n.dec == t {
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

// comparable renders both sides with the same digits after the point.
func (r *renderer) comparable(a, b *node) (string, string) {
	t := decimalType{a.dec.wide || b.dec.wide, max(a.dec.scale, b.dec.scale)}
	// An int column may have 19 digits: it needs the wide type beside decimals.
	if (a.op == opConvert && !a.isConst()) || (b.op == opConvert && !b.isConst()) {
		t.wide = true
	}
	// A constant that does not fit a narrow type of that scale.
	for _, n := range []*node{a, b} {
		if v, ok := n.val.(number); ok && len(v.at(t.scale).String()) > narrowDigits {
			t.wide = true
		}
	}
	if !t.wide && t.scale > columnScale {
		t.wide = true // a column has 16 digits before the point
	}
	return r.cast(a, t), r.cast(b, t)
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
	if a.dec.scale <= columnScale && b.dec.scale <= columnScale {
		return "(" + r.cast(a, column) + " " + n.tok.String() + " " + r.cast(b, column) + ")"
	}
	t := decimalType{true, max(a.dec.scale, b.dec.scale)}
	return fmt.Sprintf("CAST(%s %s %s AS %s)", r.cast(a, t), n.tok, r.cast(b, t), column.sql())
}

// exact renders + - * without rounding.
func (r *renderer) exact(n *node) string {
	a, b := n.args[0], n.args[1]
	if n.tok == token.MUL {
		if !n.dec.wide {
			return "(" + r.cast(a, decimalType{false, a.dec.scale}) + " * " + r.cast(b, decimalType{false, b.dec.scale}) + ")"
		}
		return "(" + r.cast(a, decimalType{true, a.dec.scale}) + " * " + r.cast(b, decimalType{true, b.dec.scale}) + ")"
	}
	return "(" + r.cast(a, n.dec) + " " + n.tok.String() + " " + r.cast(b, n.dec) + ")"
}

func (r *renderer) multiplyRounded(a, b *node) string {
	column := decimalType{scale: columnScale}
	scale := a.dec.scale + b.dec.scale
	narrow := !a.dec.wide && !b.dec.wide
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
	return fmt.Sprintf("CAST(%s * %s AS %s)", r.cast(a, decimalType{true, a.dec.scale}),
		r.cast(b, decimalType{true, b.dec.scale}), column.sql())
}

// divide renders a division: 16 digits after the point, half away from zero,
// then rounded to 2 where the mode says so.
func (r *renderer) divide(n *node) string {
	a, b := n.args[0], n.args[1]
	column := decimalType{scale: columnScale}
	zero := raise("division by zero" + in(n))
	guard := func(x, y, quotient string) string {
		if b.isConst() {
			return quotient
		}
		return "CASE WHEN " + y + " = 0 THEN " + zero + " ELSE " + quotient + " END"
	}
	if r.round && !a.dec.wide && !b.dec.wide && a.dec.scale <= columnScale && b.dec.scale <= columnScale {
		return r.bind(r.cast(a, column), a.cheap(), func(x string) string {
			return r.bind(r.cast(b, column), b.cheap(), func(y string) string {
				return guard(x, y, "thalweg_divide2("+x+", "+y+")")
			})
		})
	}
	scale := max(a.dec.scale, b.dec.scale)
	macro := "thalweg_quotient("
	if scale > quotientScale {
		macro = "thalweg_quotient_fine("
	}
	quotient := r.bind(r.mantissa(a, scale), false, func(x string) string {
		return r.bind(r.mantissa(b, scale), false, func(y string) string {
			return guard(x, y, macro+x+", "+y+")")
		})
	})
	if r.round {
		return "CAST(" + quotient + " AS " + column.sql() + ")"
	}
	return quotient
}

// mantissa renders n × 10^scale as a HUGEINT.
func (r *renderer) mantissa(n *node, scale int) string {
	if n.isConst() {
		return "CAST('" + n.val.(number).at(scale).String() + "' AS HUGEINT)"
	}
	if !n.dec.wide || n.dec.scale <= columnScale {
		t := decimalType{true, n.dec.scale}
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
// usual case, two remainders decide (53 ns, no more than the cast itself);
// trimming all text costs 250 ns. (Columns of Parquet files may have more than
// two digits, hence the trimming of the first.)
func (r *renderer) decimalText(n *node) string {
	return r.let(n, func(v string) string {
		switch n.dec.scale {
		case 0:
			return "CAST(" + v + " AS VARCHAR)"
		case 2:
			digits := narrowDigits
			if n.dec.wide {
				digits = wideDigits
			}
			return fmt.Sprintf("CASE WHEN %[1]s %% 0.1 <> 0 THEN rtrim(CAST(%[1]s AS VARCHAR), '0') WHEN %[1]s %% 1 <> 0"+
				" THEN CAST(CAST(%[1]s AS DECIMAL(%[2]d,1)) AS VARCHAR) ELSE CAST(CAST(%[1]s AS DECIMAL(%[2]d,0)) AS VARCHAR) END", v, digits)
		}
		return "rtrim(rtrim(CAST(" + v + " AS VARCHAR), '0'), '.')"
	})
}
