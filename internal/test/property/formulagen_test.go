package property

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// gen draws everything from one seed.
type gen struct{ *rand.Rand }

func newGen(seed, stream uint64) gen { return gen{rand.New(rand.NewPCG(seed, stream))} }

func pick[T any](g gen, of ...T) T { return of[g.IntN(len(of))] }

// oneIn is true once in n times.
func (g gen) oneIn(n int) bool { return g.IntN(n) == 0 }

// field is a column of a table.
type field struct {
	name string
	kind kind
	null bool
}

// scope lists the fields that a formula may use.
type scope struct {
	fields []formula // r.x, l.x, p.x or w.x
	// exact: in conditions decimals are not rounded, so products and quotients
	// of them are left out.
	exact bool
}

// fieldsOf lists the fields of a table under an alias.
func fieldsOf(alias string, fields []field) []formula {
	out := make([]formula, len(fields))
	for i, f := range fields {
		out[i] = formula{src: alias + "." + f.name, kind: f.kind, null: f.null, right: alias == "l", alone: f.null ||
			alias == "l", eval: func(e *env) any {
			row := map[string][]any{"r": e.r, "l": e.l, "p": e.p, "w": e.w}[alias]
			if row == nil {
				return nil
			}
			return row[i]
		}}
	}
	return out
}

// made puts a formula together from its parts.
func made(k kind, src string, eval func(*env) any, parts ...formula) formula {
	out := formula{kind: k, src: src, eval: eval, fixed: true}
	for _, p := range parts {
		out.null = out.null || p.null
		out.alone = out.alone || p.alone
		out.fixed = out.fixed && p.fixed
		out.right = out.right || p.right
		out.asksNull = out.asksNull || p.asksNull
	}
	return out
}

// strict makes a formula that is NULL where one of its arguments is.
func strict(k kind, src string, f func(args []any) any, parts ...formula) formula {
	return made(k, src, func(e *env) any {
		args := make([]any, len(parts))
		missing := false
		for i, p := range parts {
			args[i] = p.eval(e)
			missing = missing || args[i] == nil
		}
		if missing {
			return nil
		}
		return f(args)
	}, parts...)
}

func constant(k kind, src string, v any) formula {
	return formula{kind: k, src: src, fixed: true, eval: func(*env) any { return v }}
}

// formula draws one of kind k over sc, at most depth levels deep.
func (g gen) formula(k kind, sc scope, depth int) formula {
	if depth <= 0 || g.oneIn(4) {
		return g.leaf(k, sc)
	}
	switch g.IntN(9) {
	case 0:
		return g.choice(k, sc, depth-1)
	case 1:
		x, y := g.formula(k, sc, depth-1), g.formula(k, sc, depth-1)
		out := made(k, fmt.Sprintf("coalesce(%s, %s)", x.src, y.src), func(e *env) any {
			if v := x.eval(e); v != nil {
				return v
			}
			return y.eval(e)
		}, x, y)
		out.null, out.alone, out.asksNull = x.null && y.null, x.alone && y.alone, true
		return out
	}
	switch k {
	case intKind:
		return g.intFormula(sc, depth-1)
	case floatKind:
		return g.floatFormula(sc, depth-1)
	case decimalKind:
		return g.decimalFormula(sc, depth-1)
	case boolKind:
		return g.condition(sc, depth-1)
	case stringKind:
		return g.textFormula(sc, depth-1)
	}
	return g.leaf(k, sc)
}

func (g gen) leaf(k kind, sc scope) formula {
	var of []formula
	for _, f := range sc.fields {
		if f.kind == k {
			of = append(of, f)
		}
	}
	if len(of) > 0 && !g.oneIn(6) {
		return pick(g, of...)
	}
	return g.literal(k)
}

func (g gen) literal(k kind) formula {
	switch k {
	case intKind:
		n := pick(g, 0, 1, 2, 3, 7, 10, g.IntN(100), 1000)
		return constant(k, strconv.Itoa(n), int64(n))
	case floatKind:
		s := pick(g, "0.5", "1.0", "3.0", "0.1", "7.25", "1e3", "100.0")
		f, _ := strconv.ParseFloat(s, 64)
		return constant(k, s, f)
	case decimalKind:
		c := cents(pick(g, 0, 1, 50, 125, 300, 700, g.IntN(10000)))
		return constant(k, "decimal2(`"+c.fixed()+"`)", c)
	case boolKind:
		b := g.oneIn(2)
		return constant(k, strconv.FormatBool(b), b)
	case timeKind:
		t := time.Date(1990+g.IntN(40), time.Month(1+g.IntN(12)), 1+g.IntN(28), 0, 0, 0, 0, time.UTC)
		return constant(k, "time.Parse(`2006-01-02`, `"+t.Format("2006-01-02")+"`)", t)
	}
	s := pick(g, "", "a", "b", "x y", "é", "1", "zz", "%", ";")
	return constant(k, "`"+s+"`", s)
}

func (g gen) choice(k kind, sc scope, depth int) formula {
	c, x, y := g.formula(boolKind, sc, depth), g.formula(k, sc, depth), g.formula(k, sc, depth)
	var nothing bool
	if nothing = g.oneIn(8); nothing {
		x = formula{kind: k, src: "null", null: true, alone: true, asksNull: true, fixed: true,
			eval: func(*env) any { return nil }}
	}
	return made(k, fmt.Sprintf("iif(%s, %s, %s)", c.src, x.src, y.src), func(e *env) any {
		switch c.eval(e) {
		case nil:
			return nil
		case true:
			return x.eval(e)
		}
		return y.eval(e)
	}, c, x, y)
}

func (g gen) number(sc scope, depth int) formula {
	return g.formula(pick(g, intKind, floatKind, decimalKind), sc, depth)
}

func calculated(op string, a, b formula) formula {
	k := together(a.kind, b.kind)
	out := made(k, fmt.Sprintf("(%s %s %s)", a.src, op, b.src),
		func(e *env) any { return arithmetic(op, k, a.eval(e), b.eval(e)) }, a, b)
	if b.fixed {
		out.calculable(b, op)
	}
	return out
}

// calculable refuses what is an error when the script loads: a constant, or a
// division by one, that has no value, wherever it stands.
func (f formula) calculable(divisor formula, op string) {
	v := divisor.eval(&env{})
	if v != nil && f.kind != floatKind && (op == "/" || op == "%") && toFloat(v) == 0 {
		panic(refuse{})
	}
	if f.fixed {
		f.eval(&env{})
	}
}

func convert(name string, k kind, x formula, f func(any) any) formula {
	return strict(k, name+"("+x.src+")", func(args []any) any { return f(args[0]) }, x)
}

func (g gen) intFormula(sc scope, depth int) formula {
	switch g.IntN(8) {
	case 0:
		x := g.formula(stringKind, sc, depth)
		return convert("int(len", intKind, x, toInt).closed()
	case 1:
		return convert("int", intKind, g.formula(pick(g, boolKind, decimalKind, floatKind), sc, depth), toInt)
	case 2:
		return convert("time.UnixMilli", intKind, g.formula(timeKind, sc, depth),
			func(v any) any { return v.(time.Time).UnixMilli() })
	case 3:
		a, b := g.formula(timeKind, sc, depth), g.formula(timeKind, sc, depth)
		return strict(intKind, fmt.Sprintf("time.DiffMilli(%s, %s)", a.src, b.src), func(v []any) any {
			return milliseconds(v[0].(time.Time), v[1].(time.Time))
		}, a, b)
	case 4:
		return convert("-", intKind, g.formula(intKind, sc, depth),
			func(v any) any { return intOperation("-", 0, v.(int64)) })
	}
	return calculated(pick(g, "+", "-", "*", "/", "%"), g.formula(intKind, sc, depth), g.formula(intKind, sc, depth))
}

// closed adds the parenthesis that a name with one of its own left open.
func (f formula) closed() formula {
	f.src += ")"
	return f
}

func (g gen) floatFormula(sc scope, depth int) formula {
	switch g.IntN(6) {
	case 0:
		return convert("float", floatKind, g.formula(pick(g, intKind, decimalKind), sc, depth),
			func(v any) any { return toFloat(v) })
	case 1:
		return convert("math.Round", floatKind, g.number(sc, depth), func(v any) any { return math.Round(toFloat(v)) })
	case 2:
		return convert("math.Sqrt", floatKind, g.number(sc, depth), func(v any) any { return math.Sqrt(toFloat(v)) })
	}
	a, b := g.formula(floatKind, sc, depth), g.number(sc, depth)
	if g.oneIn(2) {
		a, b = b, a
	}
	return calculated(pick(g, "+", "-", "*", "/"), a, b)
}

func (g gen) decimalFormula(sc scope, depth int) formula {
	switch g.IntN(5) {
	case 0:
		return convert("decimal2", decimalKind, g.formula(intKind, sc, depth), func(v any) any { return toDecimal(v) })
	case 1:
		return convert("-", decimalKind, g.formula(decimalKind, sc, depth), func(v any) any { return -v.(cents) })
	}
	a, b := g.formula(decimalKind, sc, depth), g.formula(pick(g, decimalKind, intKind), sc, depth)
	if g.oneIn(2) {
		a, b = b, a
	}
	op := pick(g, "+", "-", "*", "/")
	if sc.exact {
		op = pick(g, "+", "-")
	}
	return calculated(op, a, b)
}

func (g gen) condition(sc scope, depth int) formula {
	op := pick(g, "==", "!=", "<", "<=", ">", ">=")
	compared := func(a, b formula) formula {
		k := a.kind
		if k != b.kind {
			k = together(a.kind, b.kind)
		}
		return made(boolKind, fmt.Sprintf("(%s %s %s)", a.src, op, b.src),
			func(e *env) any { return compares(op, k, a.eval(e), b.eval(e)) }, a, b)
	}
	switch g.IntN(9) {
	case 0:
		x := g.formula(pick(g, kinds()...), sc, depth)
		out := made(boolKind, "is_null("+x.src+")", func(e *env) any { return x.eval(e) == nil }, x)
		out.null, out.alone, out.asksNull = false, false, true
		return out
	case 1:
		return convert("!", boolKind, g.formula(boolKind, sc, depth), func(v any) any { return !v.(bool) })
	case 2, 3:
		return g.both(sc, depth)
	case 4:
		return compared(g.formula(stringKind, sc, depth), g.formula(stringKind, sc, depth))
	case 5:
		return compared(g.formula(timeKind, sc, depth), g.formula(timeKind, sc, depth))
	case 6:
		return g.textCondition(sc, depth)
	}
	return compared(g.number(sc, depth), g.number(sc, depth))
}

// both is && or ||: what decides alone decides, NULL or not on the other side.
func (g gen) both(sc scope, depth int) formula {
	a, b := g.formula(boolKind, sc, depth), g.formula(boolKind, sc, depth)
	op := pick(g, "&&", "||")
	decides := op == "||"
	return made(boolKind, fmt.Sprintf("(%s %s %s)", a.src, op, b.src), func(e *env) any {
		x := a.eval(e)
		if x == decides {
			return decides
		}
		y := b.eval(e)
		switch {
		case y == decides:
			return decides
		case x == nil || y == nil:
			return nil
		}
		return !decides
	}, a, b)
}

func (g gen) textCondition(sc scope, depth int) formula {
	s := g.formula(stringKind, sc, depth)
	if g.oneIn(3) {
		pattern := pick(g, "^[a-c]+$", `\d`, "(?i)AB", "a.b", "^$", `\pL`, "[^a-z]")
		re := regexp.MustCompile(pattern)
		return strict(boolKind, "re.MatchString(`"+pattern+"`, "+s.src+")",
			func(v []any) any { return re.MatchString(v[0].(string)) }, s)
	}
	part := g.formula(stringKind, sc, 0)
	i := g.IntN(3)
	name := [...]string{"Contains", "HasPrefix", "HasSuffix"}[i]
	f := [...]func(s, t string) bool{strings.Contains, strings.HasPrefix, strings.HasSuffix}[i]
	return strict(boolKind, fmt.Sprintf("strings.%s(%s, %s)", name, s.src, part.src),
		func(v []any) any { return f(v[0].(string), v[1].(string)) }, s, part)
}

func (g gen) textFormula(sc scope, depth int) formula {
	switch g.IntN(6) {
	case 0, 1:
		return convert("string", stringKind, g.formula(pick(g, kinds()...), sc, depth),
			func(v any) any { return short(text(v)) })
	case 2:
		s, old, other := g.formula(stringKind, sc, depth), g.literal(stringKind), g.formula(stringKind, sc, 0)
		return strict(stringKind, fmt.Sprintf("strings.ReplaceAll(%s, %s, %s)", s.src, old.src, other.src),
			func(v []any) any {
				return short(strings.ReplaceAll(v[0].(string), v[1].(string), v[2].(string)))
			}, s, old, other)
	case 3:
		t, layout := g.formula(timeKind, sc, depth), pick(g, "2006-01-02", "2006-01-02 15:04:05.000",
			"Mon Jan _2 3:04PM 2006", "02/01/06")
		return strict(stringKind, "time.Format("+t.src+", `"+layout+"`)",
			func(v []any) any { return v[0].(time.Time).Format(layout) }, t)
	case 4:
		a, b := g.formula(intKind, sc, depth), g.formula(stringKind, sc, depth)
		return strict(stringKind, fmt.Sprintf("fmt.Sprintf(`%%05d|%%s`, %s, %s)", a.src, b.src), func(v []any) any {
			return short(fmt.Sprintf("%05d|%s", v[0], v[1]))
		}, a, b)
	}
	a, b := g.formula(stringKind, sc, depth), g.formula(stringKind, sc, depth)
	return strict(stringKind, "("+a.src+" + "+b.src+")",
		func(v []any) any { return short(v[0].(string) + v[1].(string)) }, a, b)
}

// certain is the formula, or something else where it is NULL.
func (g gen) certain(f formula) formula {
	if !f.null {
		return f
	}
	other := g.literal(f.kind)
	out := made(f.kind, "coalesce("+f.src+", "+other.src+")", func(e *env) any {
		if v := f.eval(e); v != nil {
			return v
		}
		return other.eval(e)
	}, f)
	out.null, out.alone, out.asksNull = false, false, true
	return out
}
