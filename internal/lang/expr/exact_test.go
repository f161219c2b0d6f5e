package expr_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/test/effort"
)

// exactColumns are decimals of all shapes; their values are whole multiples of
// 10^-scale within their digits.
func exactColumns() map[string]expr.Type {
	return map[string]expr.Type{
		"a": expr.DecimalOf(9, 2), "b": expr.DecimalOf(10, 4), "c": expr.DecimalOf(18, 6), "d": expr.DecimalOf(20, 0),
		"e": expr.DecimalOf(38, 10), "f": expr.DecimalOf(38, 0), "g": expr.DecimalOf(30, 29), "h": expr.Decimal,
		"i": expr.Int,
	}
}

func (g generator) exactValue(t expr.Type) *big.Rat {
	if t == expr.Int {
		return new(big.Rat).SetInt64(g.integer())
	}
	digits, scale := t.Digits()
	n := 1 + g.IntN(digits)
	if g.IntN(3) > 0 {
		n = min(n, scale+3)
	}
	m := g.bigInt(pow(n))
	switch g.IntN(8) {
	case 0:
		m.Sub(pow(digits), big.NewInt(1))
	case 1:
		m.SetInt64(0)
	}
	if g.IntN(2) == 0 {
		m.Neg(m)
	}
	return new(big.Rat).SetFrac(m, pow(scale))
}

func (g generator) bigInt(below *big.Int) *big.Int {
	b := make([]byte, len(below.Bytes())+8)
	for i := range b {
		b[i] = byte(g.IntN(256))
	}
	return new(big.Int).Mod(new(big.Int).SetBytes(b), below)
}

func (g generator) exactOf(depth int) string {
	if depth <= 0 || g.IntN(5) == 0 {
		return pick(g, "r.a", "r.b", "r.c", "r.d", "r.e", "r.f", "r.g", "r.h", "r.i", "r.a", "r.b", "7", "1.1", "0.001",
			"decimal(`12.5`, 6, 2)")
	}
	x, y := g.exactOf(depth-1), g.exactOf(depth-1)
	switch g.IntN(12) {
	case 0:
		return "-(" + x + ")"
	case 1:
		return fmt.Sprintf("round(%s, %d)", x, g.IntN(6))
	case 2:
		return fmt.Sprintf("coalesce(%s, %s)", x, y)
	case 3:
		return fmt.Sprintf("iif(%s %s %s, %s, %s)", x, pick(g, "==", "!=", "<", "<=", ">", ">="), y, g.exactOf(depth-1),
			g.exactOf(depth-1))
	}
	return fmt.Sprintf("(%s %s %s)", x, pick(g, "+", "-", "*", "+", "-", "*", "/"), y)
}

// exactReference evaluates with rationals; ok is false where something is divided by zero.
func exactReference(n ast.Expr, row map[string]*big.Rat) (v *big.Rat, ok bool) {
	switch n := n.(type) {
	case *ast.ParenExpr:
		return exactReference(n.X, row)
	case *ast.BasicLit:
		v, _ = new(big.Rat).SetString(strings.Trim(n.Value, "`"))
		return v, true
	case *ast.SelectorExpr:
		return row[n.Sel.Name], true
	case *ast.UnaryExpr:
		if v, ok = exactReference(n.X, row); !ok {
			return nil, false
		}
		return new(big.Rat).Neg(v), true
	case *ast.BinaryExpr:
		x, okX := exactReference(n.X, row)
		y, okY := exactReference(n.Y, row)
		if !okX || !okY || n.Op == token.QUO && y.Sign() == 0 {
			return nil, false
		}
		switch n.Op {
		case token.ADD:
			return new(big.Rat).Add(x, y), true
		case token.SUB:
			return new(big.Rat).Sub(x, y), true
		case token.MUL:
			return new(big.Rat).Mul(x, y), true
		}
		return roundTo(new(big.Rat).Quo(x, y), 16), true
	case *ast.CallExpr:
		return exactCall(n, row)
	}
	panic(fmt.Sprintf("%T", n))
}

func exactCall(n *ast.CallExpr, row map[string]*big.Rat) (*big.Rat, bool) {
	switch name(n) {
	case "round":
		x, ok := exactReference(n.Args[0], row)
		if !ok {
			return nil, false
		}
		digits := 0
		_, _ = fmt.Sscan(n.Args[1].(*ast.BasicLit).Value, &digits)
		return roundTo(x, digits), true
	case "iif":
		c := n.Args[0].(*ast.BinaryExpr)
		x, okX := exactReference(c.X, row)
		y, okY := exactReference(c.Y, row)
		if !okX || !okY {
			return nil, false
		}
		if compareValues(c.Op, dec{x, 0}, dec{y, 0}) {
			return exactReference(n.Args[1], row)
		}
		return exactReference(n.Args[2], row)
	}
	return exactReference(n.Args[0], row) // coalesce of what is never NULL, decimal
}

// hasDigits reports whether the type of an expression and of all of its parts
// with two operands is that of a decimal with digits: others follow other rules.
func onlyExact(c *expr.Compiled) bool {
	_, _, exact := c.Type().Exact()
	return exact
}

// TestChaosExactDecimals compares decimals with digits with rationals: a value is the
// exact one, or, if it needs more than 38 digits, an error.
func TestChaosExactDecimals(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	g := generator{rand.New(rand.NewPCG(diffSeed(t), 11))}
	columns := exactColumns()
	compared, refused, overflowed := 0, 0, 0
	for range effort.Of(250, 1_000, 20_000) {
		src := g.exactOf(1 + g.IntN(3))
		tree, err := parser.ParseExpr(src)
		require.NoError(t, err)
		if mixed(tree, columns) {
			continue
		}
		e, err := expr.Parse(src)
		require.NoError(t, err)
		c, err := e.Check(expr.Scope{"r": columns}, expr.Mode{Round: g.IntN(2) == 0})
		if err != nil {
			refused++
			require.Regexp(t, "digits|division by zero|of one type", err.Error(), src)
			continue
		}
		if !onlyExact(c) {
			continue
		}
		row, list := map[string]*big.Rat{}, []string{}
		for name, typ := range columns {
			row[name] = g.exactValue(typ)
			_, scale := typ.Digits()
			list = append(list, "CAST('"+row[name].FloatString(scale)+"' AS "+typ.SQL()+") AS "+name)
		}
		want, ok := exactReference(tree, row)
		stored := expr.StoreSQL(c.Type(), c.SQL(column, ""))
		var got, kind string
		err = db.QueryRow("SELECT CAST(v AS VARCHAR), typeof(v) FROM (SELECT "+stored+" AS v FROM (SELECT "+
			strings.Join(list, ", ")+") AS r)").Scan(&got, &kind)
		_, scale := c.Type().Digits()
		switch {
		case !ok:
			require.Error(t, err, src)
		case err != nil:
			overflowed++
			require.True(t, large(tree, row), "%s for %v: %v", src, row, err)
		default:
			compared++
			require.Equal(t, c.Type().SQL(), kind, src)
			require.Equal(t, want.FloatString(scale), got, "%s for %v", src, row)
		}
	}
	t.Logf("%d compared, %d refused at load, %d beyond 38 digits", compared, refused, overflowed)
	require.Greater(t, compared, overflowed)
}

// mixed reports operations on nothing but decimal2, ints and literals, which
// are not exact ones.
func mixed(n ast.Node, columns map[string]expr.Type) (found bool) {
	exact := func(n ast.Node) (yes bool) {
		ast.Inspect(n, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if ok {
				_, _, is := columns[s.Sel.Name].Exact()
				yes = yes || is
			}
			if call, ok := n.(*ast.CallExpr); ok && name(call) != "iif" && name(call) != "coalesce" {
				yes = true
			}
			return true
		})
		return yes
	}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			found = found || !exact(n)
		case *ast.CallExpr:
			found = found || name(n) == "round" && !exact(n.Args[0])
		}
		return true
	})
	return found
}

// large reports whether a value on the way comes near to 38 digits with those
// that its place has behind the point.
func large(n ast.Node, row map[string]*big.Rat) (found bool) {
	limit := new(big.Rat).SetInt(pow(2))
	ast.Inspect(n, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		switch e := e.(type) {
		case *ast.BinaryExpr, *ast.CallExpr:
			if call, is := e.(*ast.CallExpr); is && name(call) == "decimal" {
				return false
			}
			if b, is := e.(*ast.BinaryExpr); is && b.Op != token.ADD && b.Op != token.SUB && b.Op != token.MUL &&
				b.Op != token.QUO {
				return true
			}
			v, ok := exactReference(e, row)
			found = found || !ok || new(big.Rat).Abs(v).Cmp(limit) > 0
		}
		return true
	})
	return found || overWide(row)
}

func overWide(row map[string]*big.Rat) bool {
	limit := new(big.Rat).SetInt(pow(2))
	for _, v := range row {
		if new(big.Rat).Abs(v).Cmp(limit) > 0 {
			return true
		}
	}
	return false
}

// TestDatesAndInstants compares the functions of dates and instants with Go's.
func TestDatesAndInstants(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	g := generator{rand.New(rand.NewPCG(diffSeed(t), 13))}
	scope := expr.Scope{"r": {"d": expr.Date, "e": expr.Date, "n": expr.Int, "w": expr.Instant, "t": expr.DateTime}}
	for range effort.Of(100, 300, 2_000) {
		d, e := g.day(), g.day()
		n := g.Int64N(2_000) - 1_000
		w := time.UnixMicro(g.Int64N(8_000_000_000_000_000) - 4_000_000_000_000_000).UTC()
		at := w.Truncate(time.Millisecond)
		from := fmt.Sprintf("(SELECT DATE '%s' AS d, DATE '%s' AS e, CAST(%d AS BIGINT) AS n, "+
			"CAST(make_timestamp(%d) AS TIMESTAMPTZ) AS w, make_timestamp(%d) AS t) AS r",
			d.Format(time.DateOnly), e.Format(time.DateOnly), n, w.UnixMicro(), at.UnixMicro())
		for src, want := range map[string]string{
			"string(r.d + r.n)":                                 d.AddDate(0, 0, int(n)).Format(time.DateOnly),
			"string(r.d - r.n)":                                 d.AddDate(0, 0, -int(n)).Format(time.DateOnly),
			"string(r.d - r.e)":                                 fmt.Sprint((d.Unix() - e.Unix()) / 86_400),
			"string(r.d < r.e)":                                 fmt.Sprint(d.Before(e)),
			"string(r.d == r.d)":                                "true",
			"string(date(r.w))":                                 w.Format(time.DateOnly),
			"string(date(r.t))":                                 at.Format(time.DateOnly),
			"string(date(string(r.d)) == r.d)":                  "true",
			"time.Format(r.d, `02.01.2006`)":                    d.Format("02.01.2006"),
			"time.Format(datetime(r.d), `2006-01-02 15:04:05`)": d.Format(time.DateTime),
			"string(r.w)":                                       w.String(),
			"string(timestamptz(r.t) == r.w)":                   fmt.Sprint(w.Equal(at)),
			"string(r.t == r.w)":                                fmt.Sprint(w.Equal(at)),
			"string(timestamptz(r.t) <= r.w)":                   "true",
			"string(timestamptz(r.d))":                          d.String(),
			"time.FormatIn(r.w, `2006-01-02 15:04:05.999999 -07:00`, `Europe/Berlin`)": w.In(berlin).
				Format("2006-01-02 15:04:05.999999 -07:00"),
			"string(timestamptz(time.FormatIn(r.w, `2006-01-02T15:04:05.999999Z07:00`, `Etc/GMT-5`)) == r.w)": "true",
			"string(time.UnixMilli(r.w))":               fmt.Sprint(w.UnixMilli()),
			"string(coalesce(r.d, date(`2000-01-01`)))": d.Format(time.DateOnly),
			"string(iif(r.d > r.e, r.w, timestamptz(r.t)))": map[bool]time.Time{true: w,
				false: at}[d.After(e)].String(),
		} {
			c := compile(t, src, scope, expr.Mode{})
			var got string
			require.NoError(t, db.QueryRow("SELECT "+c.SQL(column, "")+" FROM "+from).Scan(&got), src)
			require.Equal(t, want, got, "%s for %s, %s, %d, %s", src, d, e, n, w)
		}
	}
}

func (g generator) day() time.Time {
	if g.IntN(10) == 0 {
		return pick(g, time.Date(1003, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9996, 12, 31, 0, 0, 0, 0, time.UTC),
			time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC))
	}
	return time.Unix((g.Int64N(200_000)-100_000)*86400, 0).UTC()
}

// TestExactRaises has what cannot be computed exactly, or is outside of the years.
func TestExactRaises(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	for _, test := range []struct {
		src, from string
	}{
		{"r.x + r.x", "CAST(repeat('9', 38) AS DECIMAL(38,0)) AS x"},
		{"r.x * 10", "CAST(repeat('9', 38) AS DECIMAL(38,0)) AS x"},
		{"r.x / (r.x - r.x)", "CAST(1 AS DECIMAL(38,0)) AS x"},
		{"decimal(r.x, 5, 0)", "CAST(100000 AS DECIMAL(38,0)) AS x"},
		{"decimal(r.s, 5, 2)", "'1.005' AS s"},
		{"decimal(r.s, 5, 2)", "'1000' AS s"},
		{"decimal(r.s, 5, 2)", "'1 ' AS s"},
		{"decimal(r.g, 5, 2)", "CAST(0.1 AS DOUBLE) + CAST(0.2 AS DOUBLE) AS g"},
		{"decimal(r.g, 5, 2)", "CAST('nan' AS DOUBLE) AS g"},
		{"decimal(r.i, 5, 2)", "CAST(1000 AS BIGINT) AS i"},
		{"r.d + 1", "DATE '9999-12-31' AS d"},
		{"r.d - 1", "DATE '0001-01-01' AS d"},
		{"r.d + r.i", "DATE '2024-01-01' AS d, CAST(9223372036854775807 AS BIGINT) AS i"},
		{"date(r.s)", "'2023-02-29' AS s"},
		{"date(r.s)", "'2023-2-1' AS s"},
		{"date(r.t)", "make_timestamp(9000, 1, 1, 0, 0, 0.0) + INTERVAL 2000 YEAR AS t"},
		{"datetime(r.w)", "CAST(make_timestamp(1) AS TIMESTAMPTZ) AS w"},
		{"timestamptz(r.s)", "'2024-01-01T00:00:00' AS s"},
		{"timestamptz(r.s)", "'2024-01-01T00:00:00.1234567Z' AS s"},
	} {
		c := compile(t, test.src, expr.Scope{"r": {"x": expr.DecimalOf(38, 0), "s": expr.String, "g": expr.Float,
			"i": expr.Int, "d": expr.Date,
			"t": expr.DateTime, "w": expr.Instant}}, expr.Mode{Round: true})
		var got any
		err := db.QueryRow("SELECT " + expr.StoreSQL(c.Type(), c.SQL(column, "")) + " FROM (SELECT " + test.from +
			") AS r").Scan(&got)
		require.Error(t, err, "%s gives %v", test.src, got)
	}
}

// TestExactAggregates sums and averages decimals, and finds the first and last of times.
func TestExactAggregates(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	scope := expr.Scope{"l": {"x": expr.DecimalOf(38, 4), "y": expr.DecimalOf(10, 4), "d": expr.Date, "w": expr.Instant,
		"t": expr.DateTime}}
	rows := "(SELECT * FROM (VALUES (CAST('9999999999999999999999999999999999.9999' AS DECIMAL(38,4)), CAST('1.0001' " +
		"AS DECIMAL(10,4)), DATE '2024-01-31', " +
		"TIMESTAMPTZ '2024-01-31 10:00:00.000001+00', TIMESTAMP '2024-01-31 10:00:00'), (-1, 2, DATE '2024-02-29', " +
		"TIMESTAMPTZ '2023-01-31 10:00:00+00', TIMESTAMP '1969-01-31 10:00:00')) v(x, y, d, w, t)) AS l"
	for src, want := range map[string]string{
		"sum(l.x)": "9999999999999999999999999999999998.9999", "sum(l.y)": "3.0001", "avg(l.y)": "1.5000500000000000",
		"min(l.y)": "1.0001", "max(l.x)": "9999999999999999999999999999999999.9999",
		"max(l.d)": "2024-02-29", "min(l.d)": "2024-01-31", "max(l.w)": "2024-01-31 10:00:00.000001+00",
		"min(l.t)": "1969-01-31 10:00:00", "max_if(l.d, l.y > 5)": "0001-01-01",
		"sum_if(l.y, l.y > 5)": "0.0000", "min_if(l.t, l.y > 5)": "0001-01-01 00:00:00",
	} {
		c := compile(t, src, scope, expr.Mode{Round: true, Aggregates: true})
		var got, kind string
		require.NoError(t, db.QueryRow("SELECT CAST(v AS VARCHAR), typeof(v) FROM (SELECT "+expr.StoreSQL(c.Type(),
			c.SQL(column, ""))+" AS v FROM "+rows+")").Scan(&got, &kind), src)
		require.Equal(t, want, got, src)
		require.Equal(t, c.Type().SQL(), kind, src)
	}
	c := compile(t, "sum(l.x)", scope, expr.Mode{Round: true, Aggregates: true})
	var got any
	err := db.QueryRow("SELECT " + c.SQL(column, "") +
		" FROM (SELECT CAST('6000000000000000000000000000000000.0000' AS DECIMAL(38,4)) AS x FROM " +
		"range(2)) AS l").Scan(&got)
	require.ErrorContains(t, err, "38 digits", "DuckDB's own sum has 39")
}

// TestParseType has the names of types with parameters.
func TestParseType(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]expr.Type{"decimal(10,4)": expr.DecimalOf(10, 4),
		"decimal( 10 , 4 )": expr.DecimalOf(10, 4), "decimal(20)": expr.DecimalOf(20, 0),
		"decimal(18,2)": expr.Decimal, "decimal2": expr.Decimal, "date": expr.Date, "timestamptz": expr.Instant} {
		got, ok := expr.ParseType(name)
		require.True(t, ok, name)
		require.Equal(t, want, got)
		again, ok := expr.ParseType(got.String())
		require.True(t, ok)
		require.Equal(t, got, again)
	}
	for _, name := range []string{"decimal", "decimal(0)", "decimal(39,2)", "decimal(4,4)",
		"decimal(4,5)", "decimal(a)"} {
		_, ok := expr.ParseType(name)
		require.False(t, ok, name)
	}
	require.Contains(t, expr.TypeProblem("decimal(4,4)"), "decimal(5,4)")
}

// TestScanExactly reads text as Thalweg's own forms do: what a type cannot hold is no value of it.
func TestScanExactly(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	for _, test := range []struct {
		typ          expr.Type
		format, text string
		how          expr.Exactly
		want         string // "": no value
	}{
		{typ: expr.Decimal, text: "1.08754321"},
		{typ: expr.Decimal, text: "1.08754321", how: expr.Exactly{Round: true}, want: "1.09"},
		{typ: expr.Decimal, text: "1.5000", want: "1.50"},
		{typ: expr.Decimal, text: "1e-3"},
		{typ: expr.Decimal, text: "15e-1", want: "1.50"},
		{typ: expr.DecimalOf(38, 30), text: "12345678.000000000000000000000000000001",
			want: "12345678.000000000000000000000000000001"},
		{typ: expr.DecimalOf(20, 0), text: "18446744073709551615", want: "18446744073709551615"},
		{typ: expr.DecimalOf(20, 0), text: "1.0", want: "1"},
		{typ: expr.DecimalOf(20, 0), text: "100000000000000000000"},
		{typ: expr.DecimalOf(5, 2), text: "1_0"},
		{typ: expr.DateTime, format: "2006-01-02 15:04:05", text: "2024-01-31 10:00:00.1234"},
		{typ: expr.DateTime, format: "2006-01-02 15:04:05", text: "2024-01-31 10:00:00.1230000000",
			want: "2024-01-31 10:00:00.123"},
		{typ: expr.DateTime, format: "2006-01-02 15:04:05", text: "2024-01-31 10:00:00.1230000001"},
		{typ: expr.DateTime, format: "2006-01-02 15:04:05", text: "2024-01-31 10:00:00.1239",
			how: expr.Exactly{Round: true}, want: "2024-01-31 10:00:00.1239"},
		{typ: expr.Date, text: "2024-01-31", want: "2024-01-31"},
		{typ: expr.Date, text: "2023-02-29"},
		{typ: expr.Date, format: "02.01.2006", text: "29.02.2024", want: "2024-02-29"},
		{typ: expr.Instant, text: "2024-01-31T10:00:00.123456+05:30", want: "2024-01-31 04:30:00.123456+00"},
		{typ: expr.Instant, text: "2024-01-31T10:00:00.1234567Z"},
		{typ: expr.Instant, text: "2024-01-31T10:00:00"},
		{typ: expr.Instant, format: "2006-01-02 15:04", text: "2024-07-31 10:00",
			how: expr.Exactly{Zone: "Europe/Berlin"}, want: "2024-07-31 08:00:00+00"},
		// no clock shows it
		{typ: expr.Instant, format: "2006-01-02 15:04", text: "2024-03-31 02:30",
			how: expr.Exactly{Zone: "Europe/Berlin"}},
		// they show it twice
		{typ: expr.Instant, format: "2006-01-02 15:04", text: "2024-10-27 02:30",
			how: expr.Exactly{Zone: "Europe/Berlin"}},
		{typ: expr.Instant, format: "2006-01-02 15:04", text: "2024-10-27 03:00",
			how: expr.Exactly{Zone: "Europe/Berlin"}, want: "2024-10-27 02:00:00+00"},
	} {
		sql, err := expr.ScanExactSQL(test.typ, test.format, "x", test.how)
		require.NoError(t, err)
		var got *string
		require.NoError(t, db.QueryRow("SELECT CAST("+sql+" AS VARCHAR) FROM (SELECT "+sqltext.String(test.text)+
			" AS x)").Scan(&got), test.text)
		if test.want == "" {
			require.Nil(t, got, "%s as %s", test.text, test.typ)
			continue
		}
		require.NotNil(t, got, "%s as %s", test.text, test.typ)
		require.Equal(t, test.want, *got)
	}
}

// TestLiteralsBesideExact: a literal counts as it is written, with whatever signs and
// parentheses around it: a float beside a decimal would make a float of both.
func TestLiteralsBesideExact(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]expr.Type{
		"1.1 - r.c": expr.DecimalOf(19, 6), "-1.1 - r.c": expr.DecimalOf(19, 6), "(1.1) - r.c": expr.DecimalOf(19, 6),
		"-(1.1) - r.c":   expr.DecimalOf(19, 6),
		"(-(1.1)) - r.c": expr.DecimalOf(19, 6), "- ( -1.1 ) - r.c": expr.DecimalOf(19, 6),
		"r.c - -(1.1)": expr.DecimalOf(19, 6), "r.c * (2.5e-3)": expr.DecimalOf(23, 10),
		"float(1) - r.c": expr.Float,
	} {
		e, err := expr.Parse(src)
		require.NoError(t, err, src)
		c, err := e.Check(expr.Scope{"r": exactColumns()}, expr.Mode{})
		require.NoError(t, err, src)
		require.Equal(t, want, c.Type(), src)
	}
	db := openDB(t)
	e, err := expr.Parse("-(-(1.5)) * r.c + -(0.25)")
	require.NoError(t, err)
	c, err := e.Check(expr.Scope{"r": exactColumns()}, expr.Mode{})
	require.NoError(t, err)
	var got string
	require.NoError(t, db.QueryRow("SELECT CAST("+c.SQL(column, "")+
		" AS VARCHAR) FROM (SELECT CAST(2 AS DECIMAL(18,6)) AS c) AS r").Scan(&got))
	require.Equal(t, "2.7500000", got)
}
