package expr

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"thalweg/internal/base/sqltext"
)

func conversionFunctions() []*function {
	value := []param{{"x", convertible()}}
	return []*function{
		{name: "string", group: "Conversions", params: []param{{"x", printable()}}, result: String,
			takesNull: true,
			doc: "Text as Go prints it: floats in the shortest form that reads back (1e+06 from a million on), " +
				"decimals without zeros at the end, datetimes and timestamptz as 2006-01-02 15:04:05.999999 +0000 " +
				"UTC, dates as 2006-01-02.", check: ofNull(checkString), sql: sqlString},
		{name: "int", group: "Conversions", params: value, result: Int, raises: true, takesNull: true,
			doc: "A string must be a base-10 integer without blanks; floats and decimals are cut toward zero; true " +
				"is 1. A value that does not fit raises an error.",
			check: ofNull(checkInt), sql: sqlInt},
		{name: "float", group: "Conversions", params: value, result: Float, takesNull: true,
			doc: "A string must be a number without blanks, as Go reads it: digits may be separated by underscores " +
				"(1_000); decimals become the nearest float; true is 1.",
			check: ofNull(checkFloat), sql: sqlFloat},
		{name: "decimal2", group: "Conversions", params: value, result: Decimal, raises: true, takesNull: true,
			doc: "A number that is not yet rounded to 2 digits: a float becomes its shortest decimal, up to 16 " +
				"digits after the point; " +
				"a string must be a number without blanks and underscores, with an exponent or without " +
				"(1e5); true is 1.", check: ofNull(checkDecimal), sql: sqlDecimal},
		{name: "decimal", group: "Conversions", params: []param{{"x", convertible()}, {"digits", anyInt()},
			{"scale", anyInt()}}, resultDoc: "decimal(digits,scale)", raises: true,
			doc: "The same number with so many digits, of which scale are after the point; both must be literals. A " +
				"number with more digits is an error. " +
				"A float has the digits of its shortest text that reads back: round(…) it first. Beyond Capillaries.",
			check: checkToExact, sql: sqlToExact},
		{name: "round", group: "Conversions", params: []param{{"x", numeric()}, {"scale", anyInt()}},
			resultDoc: "decimal(p,scale)", raises: true,
			doc: "A decimal with so many digits after the point, rounded half away from zero; scale is a literal of " +
				"0 to 16. A float is rounded from its shortest decimal that reads back. Beyond Capillaries.",
			check: checkRound, sql: sqlRound},
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
	case day:
		n.constant(v.String())
	}
	return nil
}

func sqlString(r *renderer, n *node) string {
	if a := n.args[0]; a.huge() {
		return "CAST(" + r.allDigits(a) + " AS VARCHAR)"
	}
	return r.text(n.args[0])
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
	switch t := a.typ; {
	case t == Int || t == GoInt:
		return r.sql(a)
	case t == Float || t.IsDecimal():
		return "CAST(trunc(" + r.sql(a) + ") AS BIGINT)"
	case t == String:
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
	switch t := a.typ; {
	case t.IsDecimal():
		n.dec, n.raises = a.dec, a.raises
	case t == Float || t == String:
		n.dec = decimalType{wide: true, scale: quotientScale}
	}
	if !a.isConst() {
		if a.typ == Int || a.typ == GoInt {
			n.op, n.fn = opConvert, nil
		}
		return nil
	}
	out, ok := a.asNumber()
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

// asNumber gives the decimal that a constant stands for.
func (n *node) asNumber() (out number, ok bool) {
	ok = true
	switch v := n.val.(type) {
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
	return out, ok
}

// checkToExact checks decimal(x, digits, scale).
func checkToExact(_ *checker, n *node) *Error {
	a := n.args[0]
	digits, first := n.args[1].val.(int64)
	scale, second := n.args[2].val.(int64)
	if !first || !second {
		return n.at.errorf("the digits of %s must be literals", n.fn.name).hint("decimal(x, 18, 4)")
	}
	name := fmt.Sprintf("decimal(%d,%d)", digits, scale)
	if digits < 0 || scale < 0 {
		return n.at.errorf("there is no type %s", name)
	}
	t, problem := parseDecimalType(name)
	if problem != "" {
		return n.at.errorf("there is no type %s: %s", name, problem)
	}
	a.asWritten()
	n.typ = t
	if n.dec = (decimalType{scale: columnScale}); t.exact() {
		n.dec = exactDecimal(t)
	}
	if !a.isConst() {
		return nil
	}
	v, ok := a.asNumber()
	if ok {
		v = v.trim()
		ok = v.scale <= int(scale) && v.digits(int(scale)) <= int(digits)
	}
	if !ok {
		return a.at.errorf("%s is not a %s", shorten(a.text), t)
	}
	n.constant(v)
	return nil
}

// sqlToExact renders it: a decimal with more digits behind the point, and what has too many before it, is an error.
func sqlToExact(r *renderer, n *node) string {
	a := n.args[0]
	_, scale := n.typ.Digits()
	lost := func(v string) string { return raised(n, "not a "+n.typ.String()+": ").SQL(shown(v)) }
	switch t := a.typ; {
	case t == String:
		return r.let(a, func(v string) string {
			return "coalesce(" + r.exactScan(n.typ, &node{op: opRaw, typ: String, raw: v}, false) + ", CASE WHEN " + v +
				" IS NOT NULL THEN " + lost(v) + " END)"
		})
	case t == Float:
		return r.bind("thalweg_float_plain("+r.sql(a)+")", false, func(v string) string {
			return "coalesce(" + r.exactScan(n.typ, &node{op: opRaw, typ: String, raw: v}, false) + ", CASE WHEN " + v +
				" IS NOT NULL THEN " + lost(v) + " END)"
		})
	case t == Bool:
		return "CAST(CAST(" + r.sql(a) + " AS INTEGER) AS " + n.typ.SQL() + ")"
	case t == Int || t == GoInt || a.behind() <= scale && !a.dec.open:
		return r.bind(r.allDigits(a), a.cheap(), func(v string) string {
			return "coalesce(TRY_CAST(" + v + " AS " + n.typ.SQL() + "), CASE WHEN " + v + " IS NOT NULL THEN " +
				lost(v) + " END)"
		})
	}
	return r.let(a, func(v string) string {
		return "CASE WHEN TRY_CAST(" + v + " AS " + n.typ.SQL() + ") = " + v + " THEN TRY_CAST(" + v +
			" AS " + n.typ.SQL() + ") WHEN " + v +
			" IS NOT NULL THEN " + lost(v) + " END"
	})
}

// checkRound checks round(x, scale).
func checkRound(_ *checker, n *node) *Error {
	a := n.args[0]
	scale, literal := n.args[1].val.(int64)
	if !literal || scale < 0 || scale > quotientScale {
		return n.args[1].at.errorf("the digits behind the point must be a literal of 0 to %d", quotientScale)
	}
	a.asWritten()
	before := 0
	switch t := a.typ; {
	case t == Float:
		before = wideDigits - int(scale)
	case t == Int || t == GoInt:
		before = min(a.digits(), wideDigits-int(scale))
	default:
		before = min(a.before()+1, wideDigits-int(scale)) // 9.99 may become 10.0
	}
	n.typ = exactOf(before+int(scale), int(scale))
	n.dec = exactDecimal(n.typ)
	if !a.isConst() {
		return nil
	}
	v, ok := a.asNumber()
	if ok {
		v = v.round(int(scale))
		_, ok = v.shape()
	}
	if !ok {
		return a.at.errorf("%s is not a decimal of at most %d digits", shorten(a.text), wideDigits)
	}
	n.constant(v)
	return nil
}

func sqlRound(r *renderer, n *node) string {
	a := n.args[0]
	if a.typ != Float {
		return "CAST(" + r.allDigits(a) + " AS " + n.typ.SQL() + ")"
	}
	return r.bind("thalweg_float_plain("+r.sql(a)+")", false, func(v string) string {
		return "coalesce(TRY_CAST(" + v + " AS " + n.typ.SQL() + "), CASE WHEN " + v + " IS NOT NULL THEN " +
			raised(n, "not a decimal: ").SQL(shown(v)) + " END)"
	})
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
