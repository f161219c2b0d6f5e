package expr_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/lang/expr"
)

func errorScope() expr.Scope {
	return expr.Scope{
		"r": {"order_id": expr.String, "qty": expr.Int, "price": expr.Decimal, "ratio": expr.Float, "ok": expr.Bool,
			"ts": expr.DateTime},
		"l": {"seller": expr.String},
	}
}

// TestErrors are the golden messages: the marked range, the text, the hint.
// The range is written as ⟦…⟧ in the source.
func TestErrors(t *testing.T) {
	t.Parallel()
	field, aggregated := expr.Mode{Round: true}, expr.Mode{Round: true, Aggregates: true}
	for _, c := range []struct {
		src, want string
		mode      expr.Mode
	}{
		// Syntax.
		{"⟦⟧", "the expression is empty", field},
		{"⟦  ⟧", "the expression is empty", field},
		{"r.qty > 0 && r.⟦select⟧ > 1",
			"select is a word of the language of expressions: no field can be called that in one (give the column or " +
				"field another name where it is defined; columns taken from a file's header are called select_)",
			field},
		{"sum(l.⟦range⟧)", "range is a word of the language of expressions: no field can be called that in one (give " +
			"the column or field another name where it is defined; columns taken from a file's header are " +
			"called range_)", field},
		{"r.qty +⟦⟧", "expected operand, found the end of the expression (an expression consists of operators, " +
			"literals, fields such as r.name, and function calls)", field},
		{"r.qty > 0 ⟦and⟧ r.ok", "\"and\" is no word of expressions (and is written &&)", field},
		{"r.qty > 0 ⟦OR⟧ r.ok", "\"OR\" is no word of expressions (or is written ||)", field},
		{"r.order_id ⟦is⟧ null", "\"is\" is no word of expressions (NULL is found by is_null(x))", field},
		{"r.price * 10%⟦⟧", "% is no percentage (10 percent of x is written x / 10.0, or x * 0.1; % between two " +
			"whole numbers is the remainder)", field},
		{`⟦r["qty"]⟧ + 1`, "an index [ ] is not supported (the field is written r.qty)", field},
		{`⟦r["a b"]⟧`, "an index [ ] is not supported (a field is written r.name, without quotes and brackets)", field},
		{"⟦r.qty[0]⟧", "an index [ ] is not supported (what is within a list or a struct is a column of its own " +
			"where the file is read: its path is items[0] or address.city)", field},
		{"⟦null⟧", "null has no type here (give it one, as in int(null) or string(null))", expr.Mode{}},
		{"⟦*r.qty⟧", "a pointer * is not supported (an expression consists of operators, literals, fields such as " +
			"r.name, and function calls)", field},
		{"r.qty *⟦* 2⟧", "** is no operator (x to the power of 2 is x * x; other powers are computed in a sql node, " +
			"or in Python with py_calc)", field},
		{"r.qty ⟦=⟧ 0", "expected '==', found '=' (equality is written ==)", field},
		{"r.order_id == ⟦'⟧xy'", "text cannot stand between single quotes (text is written between double quotes or " +
			"back-ticks)", field},
		{"r.qty ⟦&⟧ 1", "operator & is not supported (did you mean &&?)", field},
		{"r.qty ⟦<<⟧ 1", "operator << is not supported", field},
		{"⟦^r.qty⟧", "unary operator ^ is not supported", field},
		{"⟦r.order_id[1:2]⟧", "a slice [ : ] is not supported (an expression consists of operators, literals, fields " +
			"such as r.name, and function calls)", field},
		{"⟦r.a.b⟧", "only one level, alias.field, is supported", field},
		{"r.order_id == ⟦'x'⟧", "'x' is not supported (text is written between double quotes or back-ticks)", field},
		{"⟦0x1F⟧ + 1", "number 0x1F is not supported (only decimal digits are)", field},
		{"⟦r.ts.Unix⟧()", "methods of values cannot be called (functions are name(…) or package.Name(…))", field},
		{`re.MatchString("\⟦d⟧", r.order_id)`,
			"unknown escape sequence (backslashes are not interpreted; write the text between back-ticks)", field},
		// Names.
		{"⟦r.ordr_id⟧", "there is no field r.ordr_id (did you mean r.order_id?)", field},
		{"⟦x.qty⟧", "x.* cannot be used here (did you mean r.qty?)", field},
		{"⟦w.anything⟧", "w.* cannot be used here (allowed: l.*, r.*)", field},
		{"⟦qty⟧ + 1", "unknown name qty (did you mean r.qty?)", field},
		{"⟦True⟧", "unknown name True (did you mean true?)", field},
		{"⟦len⟧ > 1", "len is a function (call it: len(…))", field},
		{"⟦fmt.Sprintff⟧(`%d`, r.qty)", "there is no function fmt.Sprintff (did you mean fmt.Sprintf?)", field},
		{"⟦time.parse⟧(`2006`, r.order_id)", "there is no function time.parse (did you mean time.Parse?)", field},
		{"wfmodel.RunStart == ⟦wfmodel.RunStrat⟧", "there is no wfmodel.RunStrat (did you mean wfmodel.RunStart?)",
			field},
		{"⟦time.January⟧", "a month is not a value (it can only be an argument of time.Date)", field},
		// Types.
		{"r.qty ⟦+⟧ r.order_id", "cannot apply + to int and string (convert one side: int(r.order_id) or " +
			"string(r.qty))", field},
		{"r.ts ⟦-⟧ r.ts", "cannot apply - to datetime and datetime (time.DiffMilli(r.ts, r.ts) gives milliseconds)",
			field},
		{"r.ts ⟦>⟧ `2020-01-01`",
			"cannot apply > to datetime and string (time.Parse(layout, `2020-01-01`) makes a datetime)", field},
		{"r.ok ⟦<⟧ true", "bools can only be compared with == and !=", field},
		{"r.ratio ⟦%⟧ 2", "% needs two ints, not float and int", field},
		{"r.ok && ⟦r.qty⟧", "&& needs bools, but `r.qty` is int (write a comparison, such as r.qty == …)", field},
		{"⟦!r.qty⟧", "! needs a bool, not int", field},
		{"⟦-r.ok⟧", "- needs a number, not bool", field},
		{"len(⟦r.qty⟧)", "argument 1 of len must be string, but `r.qty` is int (len(s string))", field},
		{"int.iif(r.ok, r.qty, ⟦r.ratio⟧)",
			"argument 3 of int.iif must be int, but `r.ratio` is float (int.iif(cond bool, x int, y int))", field},
		{"int.iif(r.ok, r.qty, ⟦len(r.order_id)⟧)",
			"argument 3 of int.iif must be int, but `len(r.order_id)` is go int (int(len(r.order_id)) makes " +
				"an int of it)", field},
		{"⟦iif(r.ok, r.qty, r.ratio)⟧", "iif needs two values of one type, not int and float", field},
		{"⟦math.Sqrt()⟧", "math.Sqrt needs 1 argument, not 0 (math.Sqrt(x number))", field},
		{"⟦fmt.Sprintf(`x`)⟧", "fmt.Sprintf needs at least 2 arguments, not 1 (fmt.Sprintf(format string, a any, …))",
			field},
		// Literals.
		{"re.MatchString(⟦`a(`⟧, r.order_id)", "the pattern is wrong: error parsing regexp: missing closing ): `a(`",
			field},
		{"fmt.Sprintf(`⟦%1001d⟧`, r.qty)",
			"%1001d is wider than 1000 characters (supported: flags - + 0 and blank, width, .precision, and one of d " +
				"x X o b f F e E g G s v t)", field},
		{"time.Format(r.ts, ⟦`YYYY-MM-DD`⟧)",
			"the layout \"YYYY-MM-DD\" names no part of a time (Go layouts are written with 2006-01-02 15:04:05: " +
				"this one is 2006-01-02)", field},
		{"time.Parse(`2006-01-02`, ⟦`2020-13-01`⟧)", "\"2020-13-01\" does not match the layout \"2006-01-02\"", field},
		{"int(⟦`12x`⟧)", "`12x` is not an int", field},
		{"⟦r.qty / 0⟧", "division by zero", field},
		{"⟦9223372036854775807 + 1⟧", "the result is outside the range of int", field},
		{"decimal2(r.ratio) * decimal2(r.ratio) ⟦*⟧ decimal2(r.ratio)",
			"the exact product has 48 digits after the point, at most 38 can be kept (compute with " +
				"float(…))", expr.Mode{}},
		// Aggregates.
		{"⟦sum(r.qty)⟧", "sum is an aggregate: it can only be used in a field of a lookup with group: true (look the " +
			"table up in itself with group: true, or write a sql node with GROUP BY)", field},
		{"⟦sum(r.qty)⟧ + 1", "sum is an aggregate: it must be the whole expression (compute with it in the next node)",
			aggregated},
		{"float(⟦sum(r.qty)⟧)", "sum is an aggregate: it must be the whole expression (compute with it in " +
			"the next node)", aggregated},
		{"max(⟦true⟧)", "argument 1 of max must be number, string, date or time, but `true` is bool (max(x number, " +
			"string, date or time))", aggregated},
		{"string_agg(r.order_id, ⟦l.seller⟧)", "the separator must be a literal", aggregated},
	} {
		t.Run(c.src, func(t *testing.T) {
			src := strings.NewReplacer("⟦", "", "⟧", "").Replace(c.src)
			off := strings.Index(c.src, "⟦")
			length := strings.Index(c.src, "⟧") - off - len("⟦")
			e, err := expr.Parse(src)
			if err == nil {
				_, err = e.Check(errorScope(), c.mode)
			}
			requireError(t, err, off, length, c.want)
		})
	}
}

// TestNotes: what Go prints with marks loads, with a note.
func TestNotes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ src, want string }{
		{"fmt.Sprintf(`id ⟦%d⟧`, r.price)",
			"%d cannot print a decimal2 (`r.price`): it prints %!d(string=x) (%s prints a decimal2; float(…) makes a " +
				"float of it)"},
		{"fmt.Sprintf(`%s ⟦%s⟧`, r.order_id)",
			"%s has no argument: it prints %!s(MISSING) (the format has more verbs than arguments follow)"},
		{"fmt.Sprintf(`%s`, r.order_id, ⟦r.qty⟧)",
			"the format has no verb for this argument: it prints %!(EXTRA int64=1) (one verb for each argument: " +
				"%d, %s, …)"},
		{"fmt.Sprintf(`⟦%s⟧`, len(r.order_id))",
			"%s cannot print a go int (`len(r.order_id)`): it prints %!s(int=1) (%d prints an int)"},
		{"fmt.Sprintf(`%q %U %[1]s %c`, r.order_id, r.qty)", ""},
		{"fmt.Sprintf(r.order_id, r.qty)", ""},
	} {
		src := strings.NewReplacer("⟦", "", "⟧", "").Replace(c.src)
		e, err := expr.Parse(src)
		require.NoError(t, err)
		compiled, err := e.Check(errorScope(), expr.Mode{Round: true})
		require.NoError(t, err, src)
		notes := compiled.Notes()
		if c.want == "" {
			require.Empty(t, notes, src)
			continue
		}
		require.Len(t, notes, 1, src)
		off := strings.Index(c.src, "⟦")
		requireError(t, notes[0], off, strings.Index(c.src, "⟧")-off-len("⟦"), c.want)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	_, err := expr.Parse(strings.Repeat("x", expr.MaxSourceBytes+1))
	require.EqualError(t, err, "the expression has 65537 bytes, at most 65536 are allowed")
	_, err = expr.Parse(strings.Repeat("(", 300) + "1" + strings.Repeat(")", 300))
	require.EqualError(t, err, "nested deeper than 200 levels")
	e, err := expr.Parse("r.ok" + strings.Repeat(" || r.ok", 5000))
	require.NoError(t, err, "a chain is one level")
	_, err = e.Check(errorScope(), expr.Mode{})
	require.NoError(t, err)
}

func TestRefs(t *testing.T) {
	t.Parallel()
	e, err := expr.Parse("r.b > 1 && l.a == time.Format(r.c, `2006`) && r.b < wfmodel.RunStop || p.z && time.January " +
		"== time.May")
	require.NoError(t, err)
	require.Equal(t, []expr.Ref{{Alias: "r", Field: "b"}, {Alias: "l", Field: "a"}, {Alias: "r", Field: "c"},
		{Alias: "p", Field: "z"}}, e.Refs())
}

// TestRuntimeErrors: what SQL raises carries its source.
func TestRuntimeErrors(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	for src, want := range map[string]string{
		"1 / (r.a - r.a)":                "division by zero in `1 / (r.a - r.a)`",
		"r.a % (r.a - r.a)":              "division by zero in `r.a % (r.a - r.a)`",
		"r.d / (r.d - r.d)":              "division by zero in `r.d / (r.d - r.d)`",
		"int(r.s)":                       "not an integer: \"4x\" in `int(r.s)`",
		"float(r.s)":                     "not a number: \"4x\" in `float(r.s)`",
		"decimal2(r.s)":                  "not a decimal number: \"4x\" in `decimal2(r.s)`",
		"time.Parse(`2006-01-02`, r.s)":  "\"4x\" does not match the layout in `time.Parse(`2006-01-02`, r.s)`",
		"r.a + 9223372036854775807":      "Overflow in addition of INT64",
		"r.d * 999999999999999999":       "Overflow in multiplication of DECIMAL",
		"int(float(r.a) * 1e300)":        "out of range",
		"decimal2(float(r.a) * 1e300)":   "Could not convert",
		"re.MatchString(r.s + `(`, `x`)": "missing ): 4x(",
	} {
		c := compile(t, src, expr.Scope{"r": {"a": expr.Int, "s": expr.String, "d": expr.Decimal}},
			expr.Mode{Round: true})
		var got any
		err := db.QueryRow("SELECT " + c.SQL(column, "") +
			" FROM (SELECT 5::BIGINT AS a, '4x' AS s, 2.50::DECIMAL(18,2) AS d) r").Scan(&got)
		require.Error(t, err, src)
		if raised, ok := expr.ParseRaised(err.Error()); ok {
			require.Equal(t, expr.RaisedIn, raised.Kind)
			require.Equal(t, src, raised.Subject)
			require.Equal(t, want, raised.Text())
			continue
		}
		require.ErrorContains(t, err, want, src)
	}
}
