package expr

import (
	"fmt"
	"go/token"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/base/sqltext"
)

// SQL renders the expression. column says how a reference is written in SQL;
// order is the ORDER BY list that fixes the order of rows inside a group (""
// when rows arrive in no order that matters), used by aggregates that depend
// on it. The value's SQL type is Type().SQL(), except that decimals may have
// up to 38 digits: see StoreSQL.
func (c *Compiled) SQL(column func(Ref) string, order string) string {
	r := c.renderer(column, order)
	if c.root.typ == Decimal && c.mode.Round && !c.Aggregate() {
		return r.rounded(c.root)
	}
	return r.sql(c.root)
}

func (c *Compiled) renderer(column func(Ref) string, order string) *renderer {
	return &renderer{column: column, order: order, round: c.mode.Round, emptyNull: c.mode.EmptyNull, present: c.present}
}

// Among is c for groups that may hold rows that do not count, like the one of
// a left row without a match: nothing that can fail is computed for a row in
// which the SQL condition present does not hold.
func (c *Compiled) Among(present string) *Compiled {
	among := *c
	among.present = present
	return &among
}

// Finer reports whether the value may be finer than what a table keeps of it:
// an int beyond 64 bits, a decimal with more digits, a datetime with
// microseconds or a zone.
func (c *Compiled) Finer() bool {
	switch n := c.root; n.typ {
	case Int:
		return n.huge()
	case Decimal:
		return n.dec.wide || n.dec.scale > columnScale
	case DateTime:
		return n.op != opRef || n.layout != "" || n.unstored
	}
	return false
}

// Zoned reports whether the value is a datetime whose zone depends on the row.
func (c *Compiled) Zoned() bool { return c.root.typ == DateTime && c.root.zone == nil }

// ComputedSQL renders the value as having sees it: not rounded and not cut for
// the table. A datetime whose zone depends on the row is of ZonedType.
func (c *Compiled) ComputedSQL(column func(Ref) string, order string) string {
	r := c.renderer(column, order)
	if c.Zoned() {
		return ZonedSQL(r.sql(c.root), r.formatTime(c.root, ZonedLayout))
	}
	return r.allDigits(c.root)
}

// StoreSQL wraps a value for storing in a table field: decimals are rounded to
// DECIMAL(18,2) half away from zero (DuckDB raises an error beyond 16 digits
// before the point), datetimes are cut to milliseconds.
func StoreSQL(t Type, sql string) string {
	switch t {
	case Decimal:
		return "CAST(" + sql + " AS " + t.SQL() + ")"
	case DateTime:
		// date_trunc floors before 1970 too, as Go's Unix milliseconds do.
		return "date_trunc('millisecond', " + sql + ")"
	case Int, GoInt:
		return "CAST(" + sql + " AS " + t.SQL() + ")"
	}
	if t.exact() {
		return "CAST(" + sql + " AS " + t.SQL() + ")" // never of more digits behind the point: see Fits
	}
	return sql
}

// renderer holds what rendering one expression needs.
type renderer struct {
	column    func(Ref) string
	order     string
	round     bool
	emptyNull bool   // aggregates over no value are NULL
	present   string // the condition of rows that count, "" if all do
	filter    string // the condition of the _if aggregate that is being rendered
	bound     int    // names given by let
	guard     guard  // how texts that grow are rendered
	limit     string // of a text, where each is looked at
}

func (r *renderer) sql(n *node) string {
	render := r.unguarded
	if r.guard == guardAround && n.grows() {
		render = func(n *node) string { return r.guarded(n, r.unguarded) }
	}
	if n.huge() {
		if (n.op == opNeg || n.op == opArith) && !slices.ContainsFunc(n.args, (*node).huge) {
			return r.intOperation(n, r.sql) // of two ints of 64 bits: what leaves them raises by itself
		}
		return "CAST(" + render(n) + " AS BIGINT)"
	}
	if n.typ == String && n.null && n.op != opRef && n.op != opRaw && n.op != opNull {
		// DuckDB takes a text for an INTEGER that is joined with one of which it
		// sees that it is always NULL; a cast to what it is already costs nothing.
		return "CAST(" + render(n) + " AS VARCHAR)"
	}
	return render(n)
}

func (r *renderer) unguarded(n *node) string {
	switch n.op {
	case opConst:
		return constantSQL(n)
	case opRef:
		if n.layout != "" {
			return zonedInstant(r.column(n.ref))
		}
		return r.column(n.ref)
	case opRaw:
		return n.raw
	case opNull:
		return n.nullSQL()
	case opNeg:
		if n.typ == Int {
			return r.intOperation(n, r.hugeint(n))
		}
		return "(-" + r.sql(n.args[0]) + ")"
	case opNot:
		return "(NOT " + r.sql(n.args[0]) + ")"
	case opArith:
		return r.arithmetic(n)
	case opConcat:
		parts := r.all(n.args)
		if r.guard == guardOn && n.grows() {
			pieces := make([]textPart, len(parts))
			for i, a := range n.args {
				pieces[i] = textPart{sql: parts[i], from: a, bare: true}
			}
			return r.checkedSum(n, pieces, 0, func(parts []string) string { return r.concat(n.args, parts) })
		}
		return r.concat(n.args, parts)
	case opCompare:
		return r.compare(n)
	case opAnd:
		return r.logic(n.args, "AND", "IS NOT FALSE", "false")
	case opOr:
		return r.logic(n.args, "OR", "IS NOT TRUE", "true")
	case opConvert:
		return r.widen(n)
	}
	return n.fn.sql(r, n)
}

// nullSQL renders the literal null. Its type is told: DuckDB would take a bare
// NULL for an INTEGER.
func (n *node) nullSQL() string {
	if n.typ.IsDecimal() {
		return "CAST(NULL AS " + n.dec.sql() + ")"
	}
	return "CAST(NULL AS " + n.typ.SQL() + ")"
}

func (r *renderer) all(args []*node) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = r.sql(a)
	}
	return out
}

func constantSQL(n *node) string {
	switch v := n.val.(type) {
	case int64:
		return sqltext.Int(v)
	case float64:
		return floatLiteral(v)
	case string:
		return sqltext.String(v)
	case bool:
		return sqltext.Bool(v)
	case number:
		return decimalLiteral(v, n.dec)
	case time.Time:
		if n.typ == Instant {
			return "make_timestamptz(" + sqltext.Int(v.UnixMicro()) + ")"
		}
		return timeLiteral(v)
	case day:
		return "DATE " + sqltext.String(v.String())
	}
	return "NULL" // months and locations are folded into their function
}

func floatLiteral(v float64) string {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		text := strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(v, 'g', -1, 64), "+"))
		return "CAST(" + sqltext.String(text) + " AS DOUBLE)"
	}
	return sqltext.Float(v)
}

func decimalLiteral(v number, t decimalType) string {
	return "CAST(" + sqltext.String(v.text(max(v.scale, t.scale))) + " AS " + t.sql() + ")"
}

// width returns the number of digits of the type.
func (t decimalType) width() int {
	switch {
	case t.digits > 0:
		return t.digits
	case t.wide:
		return wideDigits
	}
	return narrowDigits
}

func (t decimalType) sql() string {
	return fmt.Sprintf("DECIMAL(%d,%d)", t.width(), t.scale)
}

// The datetimes that DuckDB tells from infinity and can print, in microseconds:
// those that tables hold.
const (
	FirstMicro = -9_223_372_022_400_000_000 // 290309-12-22 BC
	LastMicro  = 9_223_372_036_854_775_806  // 294247-01-10
)

// OfTable is the condition that a TIMESTAMP is one that tables hold: finite, and
// not before the first that can be printed.
func OfTable(timestamp string) string {
	return fmt.Sprintf("%s BETWEEN make_timestamp(%d) AND make_timestamp(%d)", timestamp, int64(FirstMicro),
		int64(LastMicro))
}

// timeLiteral writes an instant; microseconds count from 1970.
func timeLiteral(v time.Time) string {
	if y := v.UTC().Year(); y >= 1 && y <= 9999 {
		return "TIMESTAMP " + sqltext.String(v.UTC().Format("2006-01-02 15:04:05.999999"))
	}
	return "make_timestamp(" + sqltext.Int(v.UnixMicro()) + ")"
}

// let renders body with the value of n under a short name, so that n is
// evaluated once and nested expressions do not grow exponentially. A one-item
// list_transform is the only way to name a value inside a scalar expression;
// measured, it costs about 20 ns a row, so what is cheap is just repeated.
func (r *renderer) let(n *node, body func(v string) string) string {
	return r.bind(r.sql(n), n.cheap(), body)
}

func (r *renderer) bind(sql string, cheap bool, body func(v string) string) string {
	if cheap {
		return body(sql)
	}
	r.bound++
	v := sqltext.Ident("thalweg:" + strconv.Itoa(r.bound))
	return "list_transform([" + sql + "], lambda " + v + ": " + body(v) + ")[1]"
}

// logic renders a chain of AND or OR. DuckDB evaluates the terms of a filter
// in an order that it adapts while it runs, so as soon as a term can raise an
// error the order is fixed: each further term stands in a CASE that only runs
// where the terms before it left the result open.
func (r *renderer) logic(args []*node, word, open, decided string) string {
	risky := false
	for _, a := range args {
		risky = risky || a.raises
	}
	if !risky || len(args) == 1 {
		return "(" + strings.Join(r.all(args), " "+word+" ") + ")"
	}
	rest := func() string { return r.logic(args[1:], word, open, decided) }
	first := args[0]
	return "(" + r.bind(r.sql(first), first.cheap(), func(v string) string {
		return v + " " + word + " CASE WHEN " + v + " " + open + " THEN " + rest() + " ELSE " + decided + " END"
	}) + ")"
}

// arithmetic renders + - * / %.
func (r *renderer) arithmetic(n *node) string {
	switch {
	case n.typ == Decimal:
		return r.decimalArithmetic(n)
	case n.typ.exact():
		return r.exactArithmetic(n)
	case n.args[0].typ == Date:
		return r.dateArithmetic(n)
	}
	if n.typ == Float {
		return "(" + r.sql(n.args[0]) + " " + n.tok.String() + " " + r.sql(n.args[1]) + ")"
	}
	return r.intOperation(n, r.hugeint(n))
}

// compare renders == != < <= > >=.
func (r *renderer) compare(n *node) string {
	a, b := n.args[0], n.args[1]
	symbol := map[token.Token]string{token.EQL: "=", token.NEQ: "<>"}[n.tok]
	if symbol == "" {
		symbol = n.tok.String()
	}
	if a.typ.IsDecimal() {
		if a.typ.exact() || b.typ.exact() {
			return r.compareExact(symbol, a, b)
		}
		return r.compareDecimals(symbol, a, b)
	}
	switch a.typ {
	case String:
		return "(" + r.unquoted(a, `\`) + " " + symbol + " " + r.unquoted(b, `"`) + ")"
	case Float:
		return r.compareFloats(n.tok, symbol, a, b)
	case Int, GoInt:
		return "(" + r.allDigits(a) + " " + symbol + " " + r.allDigits(b) + ")"
	}
	return "(" + r.sql(a) + " " + symbol + " " + r.sql(b) + ")"
}

// unquoted renders one side of a comparison of strings: both lose their
// leading and trailing double quotes, and backslash-quote becomes escape.
// Text without a double quote, nearly all, only pays for the search (15 ns).
func (r *renderer) unquoted(n *node, escape string) string {
	if n.isConst() {
		s := strings.ReplaceAll(strings.Trim(n.val.(string), `"`), `\"`, escape)
		return sqltext.String(s)
	}
	if n.plain {
		return r.sql(n)
	}
	return r.let(n, func(v string) string {
		return `CASE WHEN contains(` + v + `, '"') THEN replace(trim(` + v + `, '"'), '\"', ` +
			sqltext.String(escape) + `) ELSE ` + v + ` END`
	})
}

// compareFloats follows IEEE: DuckDB takes NaN as equal to itself and above
// everything else, in Go every comparison with it is false (and != true).
func (r *renderer) compareFloats(tok token.Token, symbol string, a, b *node) string {
	var suspect *node // the side whose NaN would make DuckDB say true
	switch tok {
	case token.GTR, token.GEQ:
		suspect = a
	case token.LSS, token.LEQ:
		suspect = b
	default:
		if a.finite || b.finite {
			break
		}
		suspect = a
	}
	if suspect == nil || suspect.finite {
		return "(" + r.sql(a) + " " + symbol + " " + r.sql(b) + ")"
	}
	other := b
	if suspect == b {
		other = a
	}
	return "(" + r.bind(r.sql(other), !other.null || other.cheap(), func(o string) string {
		return r.let(suspect, func(v string) string {
			left, right := v, o
			if suspect == b {
				left, right = o, v
			}
			// Beside NULL it does not matter whether v is NaN.
			switch {
			case tok == token.NEQ && other.null:
				return left + " " + symbol + " " + right + " OR isnan(" + v + ") AND " + o + " IS NOT NULL"
			case tok == token.NEQ:
				return left + " " + symbol + " " + right + " OR isnan(" + v + ")"
			case other.null:
				return left + " " + symbol + " " + right + " AND (NOT isnan(" + v + ") OR " + o + " IS NULL)"
			}
			return left + " " + symbol + " " + right + " AND NOT isnan(" + v + ")"
		})
	}) + ")"
}

// widen renders the implicit conversions of the numeric pair rule.
func (r *renderer) widen(n *node) string {
	a := n.args[0]
	switch n.typ {
	case Float:
		return r.toFloat(a)
	case DateTime:
		return instantTime(r.sql(a))
	}
	return "CAST(" + r.allDigits(a) + " AS " + decimalType{wide: !r.round}.sql() + ")"
}

func (r *renderer) toFloat(n *node) string {
	switch {
	case n.typ == Float:
		return r.sql(n)
	case n.typ.exact() || n.dec.digits > 0:
		return "CAST(CAST(" + r.sql(n) + " AS VARCHAR) AS DOUBLE)"
	case n.typ == Decimal && n.dec.open:
		return r.let(n, func(v string) string { return "thalweg_open_float(" + v + ")" })
	case n.typ == Decimal && n.dec.scale > columnScale:
		return "CAST(CAST(" + r.sql(n) + " AS VARCHAR) AS DOUBLE)" // correctly rounded only through text
	case n.typ == Decimal:
		return r.let(n, func(v string) string { return "thalweg_decimal_float(" + v + ")" })
	case n.huge():
		return r.bind(r.allDigits(n), false, func(v string) string { return "thalweg_int_float(" + v + ")" })
	}
	return "CAST(" + r.sql(n) + " AS DOUBLE)"
}
