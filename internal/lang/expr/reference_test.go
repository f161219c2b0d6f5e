package expr_test

// A plain evaluator of the language in Go: what the compiled SQL is compared
// with. It shares no code with the package.

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// errRaise: the expression has no value for this row; SQL must raise.
var errRaise = errors.New("raises")

// dec is a decimal and the digits after the point that it physically has.
type dec struct {
	rat   *big.Rat
	scale int
}

// evaluator evaluates over one row.
type evaluator struct {
	row   map[string]any // "r.x" → value
	round bool
	risky bool // a limit of the physical decimals came near: SQL may raise
}

// reference evaluates src; mayRaise says that SQL may refuse instead.
func reference(src string, row map[string]any, round bool) (value any, mayRaise bool, err error) {
	root, err := parser.ParseExpr(src)
	if err != nil {
		return nil, false, err
	}
	e := &evaluator{row: row, round: round}
	if call, ok := root.(*ast.CallExpr); ok && round && len(call.Args) == 1 && name(call) == "decimal2" {
		arg, err := e.eval(call.Args[0])
		if f, ok := arg.(float64); ok && err == nil { // rounded once, from the exact shortest decimal
			if d, err := shortest(f); err == nil && math.Abs(f) < 1e14 {
				return dec{roundTo(d, 2), 2}, e.risky, nil
			}
			return nil, false, errRaise
		}
	}
	value, err = e.eval(root)
	if _, large := value.(*big.Int); large {
		return nil, e.risky, errRaise
	}
	if d, ok := value.(dec); ok && round {
		value = e.physical(dec{roundTo(d.rat, 2), 2})
	}
	return value, e.risky, err
}

func name(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.X.(*ast.Ident).Name + "." + f.Sel.Name
	}
	return ""
}

func (e *evaluator) eval(n ast.Expr) (any, error) {
	switch n := n.(type) {
	case *ast.ParenExpr:
		return e.eval(n.X)
	case *ast.BasicLit:
		return e.literal(n), nil
	case *ast.Ident:
		if n.Name == "null" {
			return nil, nil
		}
		return n.Name == "true", nil
	case *ast.SelectorExpr:
		return e.selector(n), nil
	case *ast.UnaryExpr:
		return e.unary(n)
	case *ast.BinaryExpr:
		return e.binary(n)
	case *ast.CallExpr:
		return e.call(n)
	}
	panic(fmt.Sprintf("%T", n))
}

func (e *evaluator) literal(n *ast.BasicLit) any {
	switch n.Kind {
	case token.INT:
		if v, err := strconv.ParseInt(n.Value, 10, 64); err == nil {
			return v
		}
		r, _ := new(big.Rat).SetString(n.Value)
		return dec{r, 0}
	case token.FLOAT:
		v, _ := strconv.ParseFloat(n.Value, 64)
		return v
	}
	if n.Value[0] == '`' {
		return strings.Trim(n.Value, "`")
	}
	return strings.Trim(n.Value, `"`)
}

func (e *evaluator) selector(n *ast.SelectorExpr) any {
	pkg := n.X.(*ast.Ident).Name
	if pkg == "time" {
		if n.Sel.Name == "UTC" {
			return time.UTC
		}
		for m := time.January; m <= time.December; m++ {
			if m.String() == n.Sel.Name {
				return m
			}
		}
	}
	v := e.row[pkg+"."+n.Sel.Name]
	if r, ok := v.(*big.Rat); ok {
		return dec{r, 2}
	}
	return v
}

func (e *evaluator) unary(n *ast.UnaryExpr) (any, error) {
	v, err := e.eval(n.X)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case bool:
		return !v, nil
	case int64:
		return smallest(new(big.Int).Neg(big.NewInt(v))), nil
	case *big.Int:
		return smallest(new(big.Int).Neg(v)), nil
	case float64:
		return -v, nil
	case dec:
		return dec{new(big.Rat).Neg(v.rat), v.scale}, nil
	case nil:
		return nil, nil
	}
	panic("unary")
}

func (e *evaluator) binary(n *ast.BinaryExpr) (any, error) {
	a, err := e.eval(n.X)
	if err != nil {
		return nil, err
	}
	if b, ok := a.(bool); ok && (n.Op == token.LAND && !b || n.Op == token.LOR && b) {
		return b, nil
	}
	b, err := e.eval(n.Y)
	if err != nil {
		return nil, err
	}
	if n.Op == token.LAND || n.Op == token.LOR {
		if a == nil && b == (n.Op == token.LAND) {
			return nil, nil // what is not known decides
		}
		return b, nil
	}
	if a == nil || b == nil {
		e.nothing(n.Op, a, b)
		return nil, nil
	}
	a, b = e.pair(a, b)
	switch n.Op {
	case token.ADD, token.SUB, token.MUL, token.QUO, token.REM:
		return e.arithmetic(n.Op, a, b)
	}
	return compareValues(n.Op, a, b), nil
}

// nothing notes how an operation with a NULL, whose type does not show, could
// raise: an int that has to become a decimal, a division by zero.
func (e *evaluator) nothing(op token.Token, a, b any) {
	for _, v := range []any{a, b} {
		if wholeOf(v) != nil {
			e.toDec(v)
		}
	}
	zero := false
	switch b := b.(type) {
	case int64:
		zero = b == 0
	case dec:
		zero = b.rat.Sign() == 0
	}
	if zero && (op == token.QUO || op == token.REM) {
		e.risky = true
	}
}

// pair applies the numeric pair rule.
func (e *evaluator) pair(a, b any) (any, any) {
	if f, ok := a.(float64); ok {
		return f, toFloat(b)
	}
	if f, ok := b.(float64); ok {
		return toFloat(a), f
	}
	if d, ok := a.(dec); ok {
		return d, e.toDec(b)
	}
	if d, ok := b.(dec); ok {
		return e.toDec(a), d
	}
	return a, b
}

func toFloat(v any) float64 {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case *big.Int:
		f, _ := new(big.Rat).SetInt(v).Float64()
		return f
	case float64:
		return v
	case dec:
		f, _ := v.rat.Float64()
		return f
	}
	panic("toFloat")
}

func (e *evaluator) toDec(v any) dec {
	if i := wholeOf(v); i != nil {
		return e.physical(dec{new(big.Rat).SetInt(i), 0})
	}
	return v.(dec)
}

// physical notes values that come near to what SQL can hold.
func (e *evaluator) physical(d dec) dec {
	limit := min(14, 36-d.scale)
	if new(big.Rat).Abs(d.rat).Cmp(new(big.Rat).SetInt(pow(limit))) > 0 {
		e.risky = true
	}
	return d
}

func pow(n int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(n, 0))), nil)
}

// roundTo rounds half away from zero.
func roundTo(r *big.Rat, digits int) *big.Rat {
	scaled := new(big.Rat).Mul(r, new(big.Rat).SetInt(pow(digits)))
	num := new(big.Int).Abs(scaled.Num())
	num.Mul(num, big.NewInt(2)).Add(num, scaled.Denom())
	num.Quo(num, new(big.Int).Mul(scaled.Denom(), big.NewInt(2)))
	if scaled.Sign() < 0 {
		num.Neg(num)
	}
	return new(big.Rat).SetFrac(num, pow(digits))
}

func (e *evaluator) arithmetic(op token.Token, a, b any) (any, error) {
	switch x := a.(type) {
	case string:
		return x + b.(string), nil
	case float64:
		y := b.(float64)
		switch op {
		case token.ADD:
			return x + y, nil
		case token.SUB:
			return x - y, nil
		case token.MUL:
			return x * y, nil
		}
		return x / y, nil
	case int64, *big.Int:
		return e.intOp(op, wholeOf(a), wholeOf(b))
	}
	return e.decOp(op, a.(dec), b.(dec))
}

// wholeOf is an int as operators compute it; nil: v is none.
func wholeOf(v any) *big.Int {
	switch v := v.(type) {
	case int64:
		return big.NewInt(v)
	case *big.Int:
		return v
	}
	return nil
}

// smallest is an int64 where x is one.
func smallest(x *big.Int) any {
	if x.IsInt64() {
		return x.Int64()
	}
	return x
}

func (e *evaluator) intOp(op token.Token, a, b *big.Int) (any, error) {
	x, y := new(big.Int).Set(a), b
	if b.Sign() == 0 && (op == token.QUO || op == token.REM) {
		return nil, errRaise
	}
	switch op {
	case token.ADD:
		x.Add(x, y)
	case token.SUB:
		x.Sub(x, y)
	case token.MUL:
		x.Mul(x, y)
	case token.QUO:
		x.Quo(x, y)
	case token.REM:
		x.Rem(x, y)
	}
	e.risky = e.risky || x.CmpAbs(pow(38)) >= 0
	return smallest(x), nil
}

func (e *evaluator) decOp(op token.Token, a, b dec) (any, error) {
	out := dec{new(big.Rat), max(a.scale, b.scale)}
	switch op {
	case token.ADD:
		out.rat.Add(a.rat, b.rat)
	case token.SUB:
		out.rat.Sub(a.rat, b.rat)
	case token.MUL:
		out.rat.Mul(a.rat, b.rat)
		out.scale = a.scale + b.scale
		e.physical(out)
	case token.QUO:
		if b.rat.Sign() == 0 {
			return nil, errRaise
		}
		out = dec{roundTo(new(big.Rat).Quo(a.rat, b.rat), 16), 16}
		e.physical(out)
		e.physical(dec{a.rat, max(a.scale, b.scale)})
		e.physical(dec{b.rat, max(a.scale, b.scale)})
		if max(a.scale, b.scale) > 16 { // 32 digits after the point leave little room
			limit := big.NewRat(1000, 1)
			e.risky = e.risky || new(big.Rat).Abs(a.rat).Cmp(limit) > 0 || new(big.Rat).Abs(b.rat).Cmp(limit) > 0
		}
	}
	if e.round {
		out = dec{roundTo(out.rat, 2), 2}
	}
	return e.physical(out), nil
}

func compareValues(op token.Token, a, b any) bool {
	sign := 0
	switch x := a.(type) {
	case bool:
		return (x == b.(bool)) == (op == token.EQL)
	case string:
		x = strings.ReplaceAll(strings.Trim(x, `"`), `\"`, `\`)
		y := strings.ReplaceAll(strings.Trim(b.(string), `"`), `\"`, `"`)
		sign = strings.Compare(x, y)
	case int64, *big.Int:
		sign = wholeOf(a).Cmp(wholeOf(b))
	case dec:
		sign = x.rat.Cmp(b.(dec).rat)
	case time.Time:
		sign = x.Compare(b.(time.Time))
	case float64:
		y := b.(float64)
		switch op {
		case token.EQL:
			return x == y
		case token.NEQ:
			return x != y
		case token.LSS:
			return x < y
		case token.LEQ:
			return x <= y
		case token.GTR:
			return x > y
		}
		return x >= y
	}
	switch op {
	case token.EQL:
		return sign == 0
	case token.NEQ:
		return sign != 0
	case token.LSS:
		return sign < 0
	case token.LEQ:
		return sign <= 0
	case token.GTR:
		return sign > 0
	}
	return sign >= 0
}

// shortest is the exact value of a float's shortest decimal.
func shortest(f float64) (*big.Rat, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, errRaise
	}
	r, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'e', -1, 64))
	return r, nil
}

func decText(d dec) string {
	s := d.rat.FloatString(40)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// isLarge reports ints that only operators, comparisons, conversions and functions of floats take.
func isLarge(v any) bool { _, large := v.(*big.Int); return large }

func goText(v any) string {
	if d, ok := v.(dec); ok {
		return decText(d)
	}
	return fmt.Sprintf("%v", v)
}

func (e *evaluator) call(n *ast.CallExpr) (any, error) {
	fn := name(n)
	if strings.HasSuffix(fn, "iif") {
		return e.choice(n)
	}
	if fn == "coalesce" {
		return e.firstOf(n)
	}
	var args []any
	missing := false
	for _, a := range n.Args {
		v, err := e.eval(a)
		if err != nil {
			return nil, err
		}
		missing = missing || v == nil
		args = append(args, v)
	}
	if fn == "is_null" {
		return missing, nil
	}
	if missing {
		return nil, nil
	}
	if !slices.Contains([]string{"string", "float", "decimal2", "math.Sqrt", "math.Round"}, fn) &&
		slices.ContainsFunc(args, isLarge) {
		return nil, errRaise
	}
	switch fn {
	case "string":
		return goText(args[0]), nil
	case "int":
		return toInt(args[0])
	case "float":
		return toFloatOrRaise(args[0])
	case "decimal2":
		return e.decimal2(args[0])
	case "len":
		return int64(len(args[0].(string))), nil
	case "math.Sqrt":
		return math.Sqrt(toFloat(args[0])), nil
	case "math.Round":
		return math.Round(toFloat(args[0])), nil
	case "fmt.Sprintf":
		return sprintf(args), nil
	case "strings.ReplaceAll":
		return strings.ReplaceAll(args[0].(string), args[1].(string), args[2].(string)), nil
	case "strings.Contains":
		return strings.Contains(args[0].(string), args[1].(string)), nil
	case "strings.HasPrefix":
		return strings.HasPrefix(args[0].(string), args[1].(string)), nil
	case "strings.HasSuffix":
		return strings.HasSuffix(args[0].(string), args[1].(string)), nil
	case "re.MatchString":
		return regexp.MustCompile(args[0].(string)).MatchString(args[1].(string)), nil
	}
	return timeCall(fn, args)
}

// choice evaluates only the branch that is taken.
func (e *evaluator) choice(n *ast.CallExpr) (any, error) {
	c, err := e.eval(n.Args[0])
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, nil
	}
	branch := n.Args[2]
	if c.(bool) {
		branch = n.Args[1]
	}
	v, err := e.eval(branch)
	return e.alternative(v), err
}

// firstOf evaluates up to the first value that is not NULL.
func (e *evaluator) firstOf(n *ast.CallExpr) (any, error) {
	for _, a := range n.Args {
		if v, err := e.eval(a); v != nil || err != nil {
			return e.alternative(v), err
		}
	}
	return nil, nil
}

// alternative is a value of several that there could have been.
func (e *evaluator) alternative(v any) any {
	if d, ok := v.(dec); ok && !e.round { // the other branch may force more digits after the point
		return e.physical(dec{d.rat, max(d.scale, 32)})
	}
	return v
}

func toInt(v any) (any, error) {
	switch v := v.(type) {
	case string:
		i, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return nil, errRaise
		}
		return i, nil
	case bool:
		if v {
			return int64(1), nil
		}
		return int64(0), nil
	case float64:
		if !(v >= math.MinInt64 && v < math.MaxInt64) {
			return nil, errRaise
		}
		return int64(v), nil
	case dec:
		q := new(big.Int).Quo(v.rat.Num(), v.rat.Denom())
		if !q.IsInt64() {
			return nil, errRaise
		}
		return q.Int64(), nil
	}
	return v, nil
}

func toFloatOrRaise(v any) (any, error) {
	switch v := v.(type) {
	case string:
		f, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return nil, errRaise
		}
		return f, nil
	case bool:
		if v {
			return 1.0, nil
		}
		return 0.0, nil
	}
	return toFloat(v), nil
}

func (e *evaluator) decimal2(v any) (any, error) {
	switch v := v.(type) {
	case string:
		if !regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$`).MatchString(v) {
			return nil, errRaise
		}
		r, _ := new(big.Rat).SetString(v)
		return e.physical(dec{roundTo(r, 16), 16}), nil
	case bool:
		if v {
			return dec{big.NewRat(1, 1), 0}, nil
		}
		return dec{new(big.Rat), 0}, nil
	case float64:
		r, err := shortest(v)
		if err != nil {
			return nil, err
		}
		return e.physical(dec{roundTo(r, 16), 16}), nil
	}
	return e.toDec(v), nil
}

func sprintf(args []any) string {
	for i, a := range args {
		if d, ok := a.(dec); ok {
			args[i] = decText(d)
		}
	}
	return fmt.Sprintf(args[0].(string), args[1:]...)
}

func timeCall(fn string, args []any) (any, error) {
	at := func(i int) time.Time { return args[i].(time.Time) }
	num := func(i int) int { return int(args[i].(int64)) }
	switch fn {
	case "time.Parse":
		t, err := time.ParseInLocation(args[0].(string), args[1].(string), time.UTC)
		if err != nil {
			return nil, errRaise
		}
		return t.Truncate(time.Microsecond), nil
	case "time.Format":
		return at(0).Format(args[1].(string)), nil
	case "time.FixedZone":
		return time.FixedZone(args[0].(string), num(1)), nil
	case "time.Date":
		return time.Date(num(0), args[1].(time.Month), num(2), num(3), num(4), num(5), num(6),
			args[7].(*time.Location)).Truncate(time.Microsecond), nil
	case "time.Unix":
		return at(0).Unix(), nil
	case "time.UnixMilli":
		return at(0).UnixMilli(), nil
	case "time.DiffMilli":
		return (at(0).UnixMicro() - at(1).UnixMicro()) / 1000, nil
	case "time.Before":
		return at(0).Before(at(1)), nil
	case "time.After":
		return at(0).After(at(1)), nil
	}
	panic(fn)
}
