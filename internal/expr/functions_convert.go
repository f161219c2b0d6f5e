package expr

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"thalweg/internal/sqltext"
)

func conversionFunctions() []*function {
	value := []param{{"x", convertible()}}
	return []*function{
		{name: "string", group: "Conversions", params: []param{{"x", printable()}}, result: String,
			takesNull: true,
			doc:       "Text as Go prints it: floats in the shortest form that reads back (1e+06 from a million on), decimals without zeros at the end, datetimes as 2006-01-02 15:04:05.999999 +0000 UTC.",
			check:     ofNull(checkString), sql: func(r *renderer, n *node) string { return r.text(n.args[0]) }},
		{name: "int", group: "Conversions", params: value, result: Int, raises: true, takesNull: true,
			doc:   "A string must be a base-10 integer without blanks; float and decimal2 are cut toward zero; true is 1. What does not fit raises an error.",
			check: ofNull(checkInt), sql: sqlInt},
		{name: "float", group: "Conversions", params: value, result: Float, takesNull: true,
			doc: "A string must be a number without blanks, as Go reads it: digits may be separated by underscores (1_000); " +
				"decimals become the nearest float; true is 1.",
			check: ofNull(checkFloat), sql: sqlFloat},
		{name: "decimal2", group: "Conversions", params: value, result: Decimal, raises: true, takesNull: true,
			doc: "Not rounded to 2 digits by itself: a float becomes its shortest decimal, up to 16 digits after the point; " +
				"a string must be a number without blanks and underscores, with an exponent or without (1e5); true is 1.",
			check: ofNull(checkDecimal), sql: sqlDecimal},
	}
}

// ofNull makes the conversion of the literal null a NULL of the type.
func ofNull(check func(*checker, *node) *Error) func(*checker, *node) *Error {
	return func(c *checker, n *node) *Error {
		if n.args[0].typ == Null {
			n.typedNull(n.typ)
			return nil
		}
		return check(c, n)
	}
}

func checkString(_ *checker, n *node) *Error {
	a := n.args[0]
	n.plain = a.typ != String || a.plain
	switch v := a.val.(type) {
	case string:
		n.constant(v)
	case int64, float64, bool, time.Month:
		n.constant(fmt.Sprint(v))
	case number:
		n.constant(v.String())
	case time.Time:
		n.constant(v.String())
	}
	return nil
}

func checkInt(_ *checker, n *node) *Error {
	a := n.args[0]
	if a.typ == Int || a.typ == GoInt || a.typ == Bool {
		n.raises = a.raises
	}
	if !a.isConst() {
		return nil
	}
	out := func(v int64, ok bool) *Error {
		if !ok {
			return a.at.errorf("%s is not an int", shorten(a.text))
		}
		n.constant(v)
		return nil
	}
	switch v := a.val.(type) {
	case string:
		i, err := strconv.ParseInt(v, 10, 64)
		return out(i, err == nil)
	case bool:
		return out(map[bool]int64{true: 1}[v], true)
	case int64:
		return out(v, true)
	case float64:
		return out(int64(v), v >= math.MinInt64 && v < math.MaxInt64)
	case number:
		whole := v.at(v.scale)
		whole.Quo(whole, pow10(v.scale))
		return out(whole.Int64(), whole.IsInt64())
	}
	return nil
}

func sqlInt(r *renderer, n *node) string {
	a := n.args[0]
	switch a.typ {
	case Int, GoInt:
		return r.sql(a)
	case Float, Decimal:
		return "CAST(trunc(" + r.sql(a) + ") AS BIGINT)"
	case String:
		return r.scanOrRaise(a, n, "thalweg_scan_int", "not an integer")
	}
	return "CAST(" + r.sql(a) + " AS BIGINT)"
}

// scanOrRaise renders macro(text), and an error where that is NULL.
func (r *renderer) scanOrRaise(a, n *node, macro, problem string) string {
	return r.let(a, func(v string) string {
		return "coalesce(" + macro + "(" + v + "), CASE WHEN " + v + " IS NOT NULL THEN " +
			raised(n, problem+": \"").SQL(shown(v), sqltext.String("\"")) + " END)"
	})
}

func checkFloat(_ *checker, n *node) *Error {
	a := n.args[0]
	n.raises = n.raises || a.typ == String
	n.finite = a.typ != Float && a.typ != String || a.finite
	if !a.isConst() {
		return nil
	}
	switch v := a.val.(type) {
	case string:
		f, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return a.at.errorf("%s is not a float", shorten(a.text))
		}
		n.constant(f)
	case bool:
		n.constant(map[bool]float64{true: 1}[v])
	case int64:
		n.constant(float64(v))
	case float64:
		n.constant(v)
	case number:
		n.constant(v.float())
	}
	return nil
}

func sqlFloat(r *renderer, n *node) string {
	a := n.args[0]
	switch a.typ {
	case String:
		return r.scanOrRaise(a, n, "thalweg_scan_float", "not a number")
	case Bool:
		return "CAST(CAST(" + r.sql(a) + " AS INTEGER) AS DOUBLE)"
	}
	return r.toFloat(a)
}

func checkDecimal(_ *checker, n *node) *Error {
	a := n.args[0]
	switch a.typ {
	case Decimal:
		n.dec, n.raises = a.dec, a.raises
	case Float, String:
		n.dec = decimalType{wide: true, scale: quotientScale}
	}
	if !a.isConst() {
		if a.typ == Int || a.typ == GoInt {
			n.op, n.fn = opConvert, nil
		}
		return nil
	}
	var out number
	ok := true
	switch v := a.val.(type) {
	case string:
		out, ok = parseNumber(v)
	case bool:
		out, _ = parseNumber(map[bool]string{true: "1", false: "0"}[v])
	case int64:
		out, _ = parseNumber(strconv.FormatInt(v, 10))
	case float64:
		out, ok = numberOf(v)
	case number:
		out = v
	}
	if ok {
		out = out.round(wideDigits - 1)
		_, ok = out.shape()
	}
	if !ok {
		return a.at.errorf("%s is not a decimal of at most %d digits", shorten(a.text), wideDigits)
	}
	n.constant(out)
	return nil
}

func sqlDecimal(r *renderer, n *node) string {
	a := n.args[0]
	switch a.typ {
	case Float:
		return r.let(a, func(v string) string { return "thalweg_float_decimal(" + v + ")" })
	case String:
		return r.scanOrRaise(a, n, "thalweg_scan_decimal16", "not a decimal number")
	case Bool:
		return "CAST(CAST(" + r.sql(a) + " AS INTEGER) AS DECIMAL(18,0))"
	}
	return r.sql(a)
}
