package expr_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/lang/expr"
)

// generator writes random well-typed expressions and rows.
type generator struct{ *rand.Rand }

func pick[T any](g generator, of ...T) T { return of[g.IntN(len(of))] }

// genScope is the scope that generated expressions use.
func genScope() expr.Scope {
	return expr.Scope{"r": {"i": expr.Int, "j": expr.Int, "f": expr.Float, "h": expr.Float, "d": expr.Decimal,
		"e": expr.Decimal,
		"s": expr.String, "n": expr.String, "b": expr.Bool, "t": expr.DateTime, "u": expr.DateTime,
		"ni": expr.Int, "nf": expr.Float, "nd": expr.Decimal, "ns": expr.String, "nb": expr.Bool, "nt": expr.DateTime,
		"z": expr.DateTime}}
}

// genZoned gives the layout of r.z, whose values have zones of their own.
func genZoned(r expr.Ref) string {
	if r.Field == "z" {
		return zonedLayout
	}
	return ""
}

const zonedLayout = "2006-01-02T15:04:05.999999999 -0700 MST"

// zonedInstant is a datetime of r.z: to the microsecond, in some zone.
func (g generator) zonedInstant() time.Time {
	zone := pick(g, time.UTC, time.FixedZone("EST", -18000), time.FixedZone("IST", 19800),
		time.FixedZone("NZDT", 46800), time.FixedZone("AKST", -32400))
	return time.UnixMicro(g.Int64N(4_000_000_000_000_000) - 2_000_000_000_000_000).In(zone)
}

// genNullable says which fields of genScope may be NULL: those with an n and another letter.
func genNullable(r expr.Ref) bool { return len(r.Field) == 2 }

// genColumns lists the columns in the order of the table.
func genColumns() []string {
	return []string{"i", "j", "f", "h", "d", "e", "s", "n", "b", "t", "u", "ni", "nf", "nd", "ns", "nb", "nt", "z"}
}

func (g generator) row() map[string]any {
	return map[string]any{"r.i": g.integer(), "r.j": g.integer(), "r.f": g.float(), "r.h": g.float(),
		"r.d": g.decimal(), "r.e": g.decimal(),
		"r.s": g.str(), "r.n": g.numeral(), "r.b": g.IntN(2) == 0, "r.t": g.instant(), "r.u": g.instant(),
		"r.ni": g.maybe(g.integer()), "r.nf": g.maybe(g.float()), "r.nd": g.maybe(g.decimal()),
		"r.ns": g.maybe(g.str()),
		"r.nb": g.maybe(g.IntN(2) == 0), "r.nt": g.maybe(g.instant()), "r.z": g.zonedInstant()}
}

// maybe is v or NULL.
func (g generator) maybe(v any) any {
	if g.IntN(3) == 0 {
		return nil
	}
	return v
}

func (g generator) integer() int64 {
	switch g.IntN(12) {
	case 0:
		return pick(g, int64(math.MaxInt64), math.MinInt64, math.MaxInt32, math.MinInt32, 1e18, -1e18)
	case 1, 2:
		return 0
	case 3:
		return int64(g.Uint64())
	case 4, 5:
		return g.Int64N(2_000_000) - 1_000_000
	}
	return g.Int64N(41) - 20
}

func (g generator) float() float64 {
	switch g.IntN(14) {
	case 0:
		return pick(g, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64,
			math.Copysign(0, -1))
	case 1:
		return math.Float64frombits(g.Uint64())
	case 2:
		return 0
	case 3:
		return float64(g.IntN(2_000_001) - 1_000_000)
	case 4:
		return float64(g.Int64N(20001)-10000) / 8
	case 5:
		return g.NormFloat64() * math.Pow(10, float64(g.IntN(40)-20))
	case 6:
		return (float64(g.IntN(2000)) + 0.5) / 100
	}
	return float64(g.IntN(2_000_001)-1_000_000) / 100
}

func (g generator) decimal() *big.Rat {
	switch g.IntN(10) {
	case 0:
		return new(big.Rat)
	case 1:
		return big.NewRat(g.Int64N(2_000_000_000_000_001)-1_000_000_000_000_000, 100)
	case 2:
		return big.NewRat(pick(g, int64(999999999999999999), -999999999999999999, 1, -1, 5, 50, -50), 100)
	case 3:
		return big.NewRat(g.Int64N(201)-100, 1)
	}
	return big.NewRat(g.Int64N(2_000_001)-1_000_000, 100)
}

func (g generator) str() string {
	switch g.IntN(6) {
	case 0:
		return ""
	case 1:
		return pick(g, `"quoted"`, `a"b`, `\"x\"`, `""`, `a\"b`, `"`, `\`, `\"`, "'", "%d", "{}", "{:d}")
	case 2:
		return pick(g, "é", "한국", "naïve", "😀x", "e\u0301", "ß", " lead", "trail ", "tab\tx", "line\nbreak",
			"ﬁ", "a\x00b", "\x00", "\u2028", "\ufeffx")
	}
	b := make([]byte, g.IntN(6))
	for i := range b {
		b[i] = "abcAB xyz019_"[g.IntN(13)]
	}
	return string(b)
}

// numeral is text that is, or nearly is, a number.
func (g generator) numeral() string {
	switch g.IntN(9) {
	case 8:
		return pick(g, "0x1p-2", "-0X1.8p+4", "0x_1p0", "0x1F", "1p3", "NaN", "-Inf", "+infinity", "1_000",
			"1__0", "1_000.5", "\x00", "1\x00", "٣", "1e3", "1e-400", "0x1p2000")
	case 0:
		return strconv.FormatInt(g.integer(), 10)
	case 1:
		return strconv.FormatFloat(g.float(), pick(g, byte('g'), 'f', 'e'), pick(g, -1, 2, 5), 64)
	case 2:
		return fmt.Sprintf("%0*d", g.IntN(6), g.IntN(1000))
	case 3:
		b := make([]byte, 1+g.IntN(6))
		for i := range b {
			b[i] = "0123456789+-._eE x"[g.IntN(18)]
		}
		return string(b)
	}
	return strconv.FormatInt(g.Int64N(2000)-1000, 10) + pick(g, "", ".5", ".25", ".005", ".")
}

func (g generator) instant() time.Time {
	switch g.IntN(12) {
	case 0:
		return pick(g, time.Time{}, time.Unix(0, 0), time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC),
			time.Date(1, 1, 1, 0, 0, 0, 1e6, time.UTC)).UTC()
	case 1:
		return time.UnixMilli(g.Int64N(600_000_000_000_000) - 300_000_000_000_000).UTC() // years −7500 … 11500
	case 2:
		return time.Unix(g.Int64N(4_000_000_000)-2_000_000_000, 0).UTC()
	case 3:
		return time.Unix((g.Int64N(40_000)-20_000)*86400, 0).UTC()
	}
	return time.UnixMilli(g.Int64N(4_000_000_000_000) - 2_000_000_000_000).UTC()
}

// of writes an expression of type t, at most depth levels deep.
func (g generator) of(t expr.Type, depth int) string {
	if depth <= 0 || g.IntN(6) == 0 {
		return g.leaf(t)
	}
	if g.IntN(8) == 0 {
		prefix := map[expr.Type]string{expr.Int: "int.", expr.Float: "float.", expr.Decimal: "decimal2.",
			expr.String: "string.", expr.DateTime: "time."}[t]
		x, y := g.of(t, depth-1), g.of(t, depth-1)
		switch g.IntN(12) {
		case 0:
			x = "null"
		case 1:
			y = "null"
		}
		return fmt.Sprintf("%siif(%s, %s, %s)", pick(g, prefix, ""), g.of(expr.Bool, depth-1), x, y)
	}
	if g.IntN(10) == 0 {
		var list strings.Builder
		list.WriteString(g.of(t, depth-1))
		for range 1 + g.IntN(3) {
			list.WriteString(", " + pick(g, g.of(t, depth-1), g.of(t, depth-1), g.of(t, depth-1), "null"))
		}
		return "coalesce(" + list.String() + ")"
	}
	switch t {
	case expr.Int:
		return g.intOf(depth - 1)
	case expr.Float:
		return g.floatOf(depth - 1)
	case expr.Decimal:
		return g.decimalOf(depth - 1)
	case expr.String:
		return g.stringOf(depth - 1)
	case expr.Bool:
		return g.boolOf(depth - 1)
	}
	return g.timeOf(depth - 1)
}

func (g generator) leaf(t expr.Type) string {
	if g.IntN(3) == 0 {
		return g.nullLeaf(t)
	}
	switch t {
	case expr.Int:
		return pick(g, "r.i", "r.j", "r.i", "r.j", strconv.Itoa(g.IntN(100)), "0", "123456789")
	case expr.Float:
		return pick(g, "r.f", "r.h", "r.f", "r.h", fmt.Sprintf("%d.%d", g.IntN(50), g.IntN(1000)), "1e3", "0.5",
			"0x1p-2", "1_000.5")
	case expr.Decimal:
		return pick(g, "r.d", "r.e", "r.d", "r.e", "decimal2(1.25)", "decimal2(`0.333`)", "decimal2(7)")
	case expr.String:
		return pick(g, "r.s", "r.n", "r.s", "`"+strings.NewReplacer("`", "", "\x00", "", "\ufeff", "").
			Replace(g.str())+"`", `"abc"`, "`12`")
	case expr.Bool:
		return pick(g, "r.b", "r.b", "true", "false")
	}
	return pick(g, "r.t", "r.u", "r.z", "r.z", "time.Parse(`2006-01-02`, `2020-02-29`)",
		"time.Parse(`2006-01-02T15:04:05.999-07:00`, `1999-12-31T23:59:59.5+02:30`)")
}

// nullLeaf is a leaf that is, or may be, NULL.
func (g generator) nullLeaf(t expr.Type) string {
	column := map[expr.Type]string{expr.Int: "r.ni", expr.Float: "r.nf", expr.Decimal: "r.nd", expr.String: "r.ns",
		expr.Bool: "r.nb", expr.DateTime: "r.nt"}[t]
	if g.IntN(10) > 0 || t == expr.Bool || t == expr.DateTime {
		return column
	}
	return t.String() + "(null)"
}

func (g generator) number(depth int) string {
	return g.of(pick(g, expr.Int, expr.Float, expr.Decimal), depth)
}

func (g generator) intOf(d int) string {
	switch g.IntN(9) {
	case 0:
		return "len(" + g.of(expr.String, d) + ") + " + g.of(expr.Int, d)
	case 1:
		return "int(" + g.of(pick(g, expr.Int, expr.Float, expr.Decimal, expr.Bool, expr.String), d) + ")"
	case 2:
		return fmt.Sprintf("time.%s(%s)", pick(g, "Unix", "UnixMilli"), g.of(expr.DateTime, d))
	case 3:
		return fmt.Sprintf("time.DiffMilli(%s, %s)", g.of(expr.DateTime, d), g.of(expr.DateTime, d))
	case 4:
		return "-(" + g.of(expr.Int, d) + ")"
	}
	return fmt.Sprintf("(%s %s %s)", g.of(expr.Int, d), pick(g, "+", "-", "*", "/", "%"), g.of(expr.Int, d))
}

func (g generator) floatOf(d int) string {
	switch g.IntN(7) {
	case 0:
		return "float(" + g.of(pick(g, expr.Int, expr.Decimal, expr.Bool, expr.String, expr.Float), d) + ")"
	case 1:
		return fmt.Sprintf("math.%s(%s)", pick(g, "Sqrt", "Round"), g.number(d))
	case 2:
		return "-(" + g.of(expr.Float, d) + ")"
	case 3:
		return fmt.Sprintf("(%s %s %s)", g.of(pick(g, expr.Int, expr.Decimal), d), pick(g, "+", "-", "*", "/"),
			g.of(expr.Float, d))
	}
	return fmt.Sprintf("(%s %s %s)", g.of(expr.Float, d), pick(g, "+", "-", "*", "/"),
		g.of(pick(g, expr.Float, expr.Int, expr.Decimal), d))
}

func (g generator) decimalOf(d int) string {
	switch g.IntN(7) {
	case 0:
		return "decimal2(" + g.of(pick(g, expr.Int, expr.Decimal, expr.Bool, expr.String, expr.Float, expr.Float), d) +
			")"
	case 1:
		return "-(" + g.of(expr.Decimal, d) + ")"
	case 2:
		return fmt.Sprintf("(%s %s %s)", g.of(expr.Int, d), pick(g, "+", "-", "*", "/"), g.of(expr.Decimal, d))
	}
	return fmt.Sprintf("(%s %s %s)", g.of(expr.Decimal, d), pick(g, "+", "-", "*", "/"),
		g.of(pick(g, expr.Decimal, expr.Int), d))
}

func (g generator) stringOf(d int) string {
	switch g.IntN(8) {
	case 0, 1:
		return g.sprintf(d)
	case 2:
		return fmt.Sprintf("strings.ReplaceAll(%s, %s, %s)", g.of(expr.String, d), pick(g, "`a`", "``", "r.s", "`\"`"),
			g.leaf(expr.String))
	case 3, 4:
		return "string(" + g.of(pick(g, expr.Int, expr.Float, expr.Decimal, expr.Bool, expr.DateTime, expr.String), d) +
			")"
	case 5:
		return fmt.Sprintf("time.Format(%s, `%s`)", g.of(expr.DateTime, d), g.layout())
	}
	return g.of(expr.String, d) + " + " + g.of(expr.String, d)
}

func (g generator) layout() string {
	return pick(g, "2006-01-02", "2006-01-02 15:04:05", "2006-01-02T15:04:05.000Z07:00", "Mon Jan _2 3:04:05PM 2006",
		"02/01/06", "15:04", "January 2, 2006 MST",
		"20060102150405", "2006-01-02 15:04:05.999999999 -0700 MST", "Monday 002 __2 3pm", "1/2/2006 03:04:05,00",
		"100% 2006.000000", "15:04 -07:00", "Z0700 MST")
}

func (g generator) sprintf(d int) string {
	format, args := "", ""
	for range 1 + g.IntN(4) {
		format += pick(g, "", "|", "x ", `"`, "%%", "{", "é")
		t := pick(g, expr.Int, expr.Float, expr.Decimal, expr.String, expr.Bool, expr.DateTime)
		letter := map[expr.Type][]string{expr.Int: {"d", "v", "x", "X", "o", "b", "d"},
			expr.Float:   {"f", "e", "g", "v", "E", "F"},
			expr.Decimal: {"s", "v"}, expr.String: {"s", "v", "x", "X"}, expr.Bool: {"t", "v"},
			expr.DateTime: {"s", "v"}}[t]
		v := pick(g, letter...)
		width := pick(g, "", "", "", "8", "-9", "3", "12")
		precision := ""
		switch {
		case t == expr.Int:
			width = pick(g, "", "", "+", " ", "0", "-") + width
			if strings.HasSuffix(width, "0") && len(width) < 2 {
				width = ""
			}
		case t == expr.Float && v != "v" && v != "g":
			precision = pick(g, "", "", ".2", ".0", ".10")
			width = pick(g, "", "", "+", " ", "0") + strings.TrimPrefix(width, "-")
		case t == expr.Float:
			precision = pick(g, "", "", ".3", ".15")
		case t != expr.Bool && (v == "s" || v == "v"):
			precision = pick(g, "", "", ".2", ".0", ".17")
		}
		format += "%" + width + precision + v
		args += ", " + g.of(t, d)
	}
	return "fmt.Sprintf(`" + format + "`" + args + ")"
}

func (g generator) boolOf(d int) string {
	compare := pick(g, "==", "!=", "<", "<=", ">", ">=")
	switch g.IntN(10) {
	case 9:
		return "is_null(" + g.of(pick(g, plainTypes()...), d) + ")"
	case 0:
		return "!(" + g.of(expr.Bool, d) + ")"
	case 1, 2:
		return fmt.Sprintf("(%s %s %s)", g.of(expr.Bool, d), pick(g, "&&", "||"), g.of(expr.Bool, d))
	case 3:
		return fmt.Sprintf("(%s %s %s)", g.of(expr.String, d), compare, g.of(expr.String, d))
	case 4:
		return fmt.Sprintf("(%s %s %s)", g.of(expr.DateTime, d), compare, g.of(expr.DateTime, d))
	case 5:
		return fmt.Sprintf("re.MatchString(`%s`, %s)", pick(g, `^[a-c]+$`, `\d`, `(?i)AB`, `a.b`, `^$`,
			`\pL`, `(?<n>x|y)z?`, `[^\x00-\x7f]`), g.of(expr.String, d))
	case 6:
		return fmt.Sprintf("time.%s(%s, %s)", pick(g, "Before", "After"), g.of(expr.DateTime, d),
			g.of(expr.DateTime, d))
	case 7:
		return fmt.Sprintf("strings.%s(%s, %s)", pick(g, "Contains", "HasPrefix", "HasSuffix"), g.of(expr.String, d),
			g.of(expr.String, d))
	}
	return fmt.Sprintf("(%s %s %s)", g.number(d), compare, g.number(d))
}

func (g generator) timeOf(d int) string {
	if g.IntN(6) == 0 {
		return fmt.Sprintf("time.Parse(`%[1]s`, time.Format(%[2]s, `%[1]s`))", pick(g, "2006-01-02T15:04:05.000-07:00",
			"2006-01-02 15:04:05 -0700"), g.of(expr.DateTime, d))
	}
	if g.IntN(3) == 0 {
		return fmt.Sprintf("time.Parse(`%s`, time.Format(%s, `%s`))", "2006-01-02 15:04:05", g.of(expr.DateTime, d),
			pick(g, "2006-01-02 15:04:05", "2006-01-02 15:04:05.000", "2006-01-02"))
	}
	return fmt.Sprintf("time.Date(%d, time.%s, %s, %d, %d, int(len(r.s)), %d, %s)", g.IntN(3000),
		time.Month(1+g.IntN(12)), pick(g, "1", "31", "45", "int(len(r.n))", "0"),
		g.IntN(30), g.IntN(70), g.IntN(1000)*1000, pick(g, "time.UTC", "time.UTC", "time.FixedZone(`X`, -3600)",
			"time.FixedZone(`IST`, 19800)"))
}

// plainTypes are the types of generated expressions; exact_test.go has the others.
func plainTypes() []expr.Type {
	return []expr.Type{expr.String, expr.Int, expr.Float, expr.Bool, expr.DateTime, expr.Decimal}
}
