package expr

import (
	"fmt"
	"go/token"
	"math/big"

	"thalweg/internal/sqltext"
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

// comparable renders both sides with the same digits after the point.
func (r *renderer) comparable(a, b *node) (string, string) {
	t := decimalType{wide: a.dec.wide || b.dec.wide, scale: max(a.dec.scale, b.dec.scale)}
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

// compareOpen compares decimals of which one at least is open. As they are
// where both have at most 16 digits before the point: DuckDB finds the type that
// holds both, 64 bits for what a column could hold.
func (r *renderer) compareOpen(symbol string, a, b *node) string {
	swapped := b.dec.open && !a.dec.open
	if swapped {
		a, b = b, a
	}
	compare := func(x, y string) string {
		if swapped {
			x, y = y, x
		}
		return "(" + x + " " + symbol + " " + y + ")"
	}
	if b.op != opConvert || b.isConst() {
		if b.columnLike() {
			return compare(r.sql(a), r.asColumn(b))
		}
		x, y := r.comparable(a, b)
		return compare(x, y)
	}
	// An int may have more digits than an open decimal: then its sign decides.
	return r.bind(r.sql(b.args[0]), b.args[0].cheap(), func(v string) string {
		limit := pow10(narrowDigits - columnScale).String()
		fine := decimalType{wide: true, scale: finestScale}
		return fmt.Sprintf("CASE WHEN %[1]s >= %[2]s OR %[1]s <= -%[2]s THEN %[3]s ELSE %[4]s END", v, limit,
			compare("CASE WHEN "+r.sql(a)+" IS NOT NULL THEN 0 END", v), compare(r.cast(a, fine), "CAST("+v+" AS "+fine.sql()+")"))
	})
}

// columnLike reports decimals with at most 16 digits before the point and at
// most 22 behind it: any two of these have a type that holds both. An int is one
// where it must fit a column.
func (n *node) columnLike() bool {
	if v, ok := n.val.(number); ok && n.isConst() {
		return v.scale <= columnScale && len(new(big.Int).Abs(v.at(columnScale)).String()) <= narrowDigits
	}
	return n.dec.open || !n.dec.wide && n.dec.scale <= columnScale
}

// asColumn renders what is columnLike.
func (r *renderer) asColumn(n *node) string {
	if n.dec.open {
		return r.sql(n)
	}
	return r.cast(n, decimalType{scale: columnScale})
}

// ofColumns renders an operation on x and y, which are columnLike: fast where
// the file's decimals are like a column's, which DuckDB knows when it binds the
// statement, else slow.
func ofColumns(x, y, fast, slow string) string {
	column := sqltext.String(decimalType{scale: columnScale}.sql())
	return fmt.Sprintf("CASE WHEN typeof(%s) = %s AND typeof(%s) = %s THEN %s ELSE %s END", x, column, y, column, fast, slow)
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
	if (a.dec.open || b.dec.open) && a.columnLike() && b.columnLike() {
		return fmt.Sprintf("CAST(%s %s %s AS %s)", r.asColumn(a), n.tok, r.asColumn(b), column.sql())
	}
	if a.dec.scale <= columnScale && b.dec.scale <= columnScale {
		return "(" + r.cast(a, column) + " " + n.tok.String() + " " + r.cast(b, column) + ")"
	}
	t := decimalType{wide: true, scale: max(a.dec.scale, b.dec.scale)}
	return fmt.Sprintf("CAST(%s %s %s AS %s)", r.cast(a, t), n.tok, r.cast(b, t), column.sql())
}

// exact renders + - * without rounding.
func (r *renderer) exact(n *node) string {
	a, b := n.args[0], n.args[1]
	if n.tok == token.MUL {
		if a.dec.open || b.dec.open {
			return "thalweg_open_multiply(" + r.sql(a) + ", " + r.sql(b) + ")"
		}
		if !n.dec.wide {
			return "(" + r.cast(a, decimalType{wide: false, scale: a.dec.scale}) + " * " + r.cast(b, decimalType{wide: false, scale: b.dec.scale}) + ")"
		}
		return "(" + r.cast(a, decimalType{wide: true, scale: a.dec.scale}) + " * " + r.cast(b, decimalType{wide: true, scale: b.dec.scale}) + ")"
	}
	return "(" + r.cast(a, n.dec) + " " + n.tok.String() + " " + r.cast(b, n.dec) + ")"
}

func (r *renderer) multiplyRounded(a, b *node) string {
	column := decimalType{scale: columnScale}
	scale := a.dec.scale + b.dec.scale
	narrow := !a.dec.wide && !b.dec.wide
	if a.dec.open || b.dec.open {
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

// multiplyOpen renders a product of which one factor at least is open, rounded.
func (r *renderer) multiplyOpen(a, b *node) string {
	column := decimalType{scale: columnScale}.sql()
	if whole := func(n *node) bool { return n.op == opConvert && !n.isConst() }; whole(a) || whole(b) {
		return fmt.Sprintf("CAST(%s * %s AS %s)", r.sql(a), r.sql(b), column) // has no more digits after the point
	}
	return r.bind(r.factor(a), a.cheap(), func(x string) string {
		return r.bind(r.factor(b), b.cheap(), func(y string) string {
			slow := "thalweg_open_multiply2(" + x + ", " + y + ")"
			if !a.columnLike() || !b.columnLike() {
				return slow
			}
			if a.dec.open != b.dec.open { // 22 digits after the point and 2 fit what DuckDB multiplies
				slow = fmt.Sprintf("CAST(%s * %s AS %s)", x, y, column)
			}
			return ofColumns(x, y, fmt.Sprintf("thalweg_multiply(CAST(%s AS %s), CAST(%s AS %s))", x, column, y, column), slow)
		})
	})
}

func (r *renderer) factor(n *node) string {
	if n.columnLike() {
		return r.asColumn(n)
	}
	return r.sql(n)
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
	if r.round && (a.dec.open || b.dec.open) && a.columnLike() && b.columnLike() {
		return r.bind(r.asColumn(a), a.cheap(), func(x string) string {
			return r.bind(r.asColumn(b), b.cheap(), func(y string) string {
				named := func(n *node, name string) *node {
					return &node{op: opRaw, typ: Decimal, dec: n.dec, raw: name}
				}
				fast := fmt.Sprintf("thalweg_divide2(CAST(%s AS %s), CAST(%s AS %s))", x, column.sql(), y, column.sql())
				slow := r.longDivision(named(a, x), named(b, y), func(_, _, quotient string) string { return quotient })
				return guard(x, y, ofColumns(x, y, fast, "CAST("+slow+" AS "+column.sql()+")"))
			})
		})
	}
	quotient := r.longDivision(a, b, guard)
	if r.round {
		return "CAST(" + quotient + " AS " + column.sql() + ")"
	}
	return quotient
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
	if !n.dec.wide || n.dec.scale <= columnScale {
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
// usual case, two remainders decide (53 ns, no more than the cast itself);
// trimming all text costs 250 ns. (Open ones may have more than two digits,
// hence the trimming of the first.)
func (r *renderer) decimalText(n *node) string {
	return r.let(n, func(v string) string {
		switch {
		case n.dec.scale == 0:
			return "CAST(" + v + " AS VARCHAR)"
		case n.dec.scale == columnScale || n.dec.open:
			digits := narrowDigits
			if n.dec.wide && !n.dec.open {
				digits = wideDigits
			}
			return fmt.Sprintf("CASE WHEN %[1]s %% 0.1 <> 0 THEN rtrim(CAST(%[1]s AS VARCHAR), '0') WHEN %[1]s %% 1 <> 0"+
				" THEN CAST(CAST(%[1]s AS DECIMAL(%[2]d,1)) AS VARCHAR) ELSE CAST(CAST(%[1]s AS DECIMAL(%[2]d,0)) AS VARCHAR) END", v, digits)
		}
		return "rtrim(rtrim(CAST(" + v + " AS VARCHAR), '0'), '.')"
	})
}
