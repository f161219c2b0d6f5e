package property

import (
	"math"
	"math/big"
	"strings"
	"time"
)

// formula is an expression of the script's language and what it is worth.
type formula struct {
	src      string
	kind     kind
	null     bool // it may be NULL
	right    bool // it looks at the row of the lookup's table
	alone    bool // it may be NULL where there is no row of that table
	asksNull bool // is_null, coalesce or null are in it
	fixed    bool // no field is in it
	eval     func(*env) any
}

// env holds the rows over which formulas are evaluated, one for each alias. A nil row is one without a match:
// all of its fields are NULL.
type env struct{ r, l, p, w []any }

// refuse is panicked with where a formula has no value, or one that comes near
// to what the product can hold: such formulas are not used.
type refuse struct{}

// refusedBy says whether f met a formula without a value.
func refusedBy(f func()) (refused bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(refuse); !ok {
				panic(r)
			}
			refused = true
		}
	}()
	f()
	return false
}

// holds says whether a condition is true: NULL is not.
func holds(f *formula, e *env) bool {
	if f == nil {
		return true
	}
	v, _ := f.eval(e).(bool)
	return v
}

const (
	maxCents = 1_000_000_000_000_000 // products of two such decimals are refused far below 38 digits
	maxWhole = maxCents / 100        // of an int that becomes a decimal
	maxText  = 2000                  // bytes of a computed text
)

func checkedInt(x *big.Int) any {
	if !x.IsInt64() {
		panic(refuse{})
	}
	return x.Int64()
}

func intOperation(op string, a, b int64) any {
	x, y := big.NewInt(a), big.NewInt(b)
	if (op == "/" || op == "%") && (b == 0 || b == -1 && a == math.MinInt64) {
		panic(refuse{})
	}
	switch op {
	case "+":
		return checkedInt(x.Add(x, y))
	case "-":
		return checkedInt(x.Sub(x, y))
	case "*":
		return checkedInt(x.Mul(x, y))
	case "/":
		return a / b
	}
	return a % b
}

func floatOperation(op string, a, b float64) any {
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	}
	return a / b
}

// half rounds a fraction half away from zero to so many digits, as a whole
// number of the last one.
func half(r *big.Rat, digits int64) *big.Int {
	scaled := new(big.Rat).Mul(r, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(digits), nil)))
	num := new(big.Int).Abs(scaled.Num())
	num.Mul(num, big.NewInt(2)).Add(num, scaled.Denom())
	num.Quo(num, new(big.Int).Mul(scaled.Denom(), big.NewInt(2)))
	if scaled.Sign() < 0 {
		num.Neg(num)
	}
	return num
}

func toCents(n *big.Int) cents {
	if n.CmpAbs(big.NewInt(maxCents)) > 0 {
		panic(refuse{})
	}
	return cents(n.Int64())
}

// decimalOperation computes in hundredths; a quotient has 16 digits before it
// is rounded to two.
func decimalOperation(op string, a, b cents) any {
	x, y := big.NewRat(int64(a), 100), big.NewRat(int64(b), 100)
	switch op {
	case "+":
		return toCents(big.NewInt(int64(a) + int64(b)))
	case "-":
		return toCents(big.NewInt(int64(a) - int64(b)))
	case "*":
		return toCents(half(x.Mul(x, y), 2))
	}
	if b == 0 {
		panic(refuse{})
	}
	fine := new(big.Rat).SetFrac(half(x.Quo(x, y), 16), big.NewInt(1e16))
	return toCents(half(fine, 2))
}

func toFloat(v any) float64 {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case cents:
		return v.float()
	}
	return v.(float64)
}

func toDecimal(v any) cents {
	if i, ok := v.(int64); ok {
		if i > maxWhole || i < -maxWhole {
			panic(refuse{})
		}
		return cents(i * 100)
	}
	return v.(cents)
}

// together is the type that two numbers are computed in.
func together(a, b kind) kind {
	switch {
	case a == floatKind || b == floatKind:
		return floatKind
	case a == decimalKind || b == decimalKind:
		return decimalKind
	}
	return intKind
}

// arithmetic computes with two numbers. The other operand of a NULL must still
// be one that can be computed with: the product may look at it first.
func arithmetic(op string, k kind, a, b any) any {
	if a == nil || b == nil {
		for _, v := range []any{a, b} {
			if v != nil && k == decimalKind {
				toDecimal(v)
			}
		}
		if b != nil && k != floatKind && (op == "/" || op == "%") && toFloat(b) == 0 {
			panic(refuse{})
		}
		return nil
	}
	switch k {
	case floatKind:
		return floatOperation(op, toFloat(a), toFloat(b))
	case decimalKind:
		return decimalOperation(op, toDecimal(a), toDecimal(b))
	}
	return intOperation(op, a.(int64), b.(int64))
}

// compares is a comparison of the language: floats as IEEE has it, texts
// without the quotes at their ends.
func compares(op string, k kind, a, b any) any {
	if a == nil || b == nil {
		for _, v := range []any{a, b} {
			if v != nil && k == decimalKind {
				toDecimal(v)
			}
		}
		return nil
	}
	sign := 0
	switch k {
	case floatKind:
		x, y := toFloat(a), toFloat(b)
		if math.IsNaN(x) || math.IsNaN(y) {
			return op == "!="
		}
		sign = compare(x, y)
	case decimalKind:
		sign = compare(toDecimal(a), toDecimal(b))
	case stringKind:
		x := strings.ReplaceAll(strings.Trim(a.(string), `"`), `\"`, `\`)
		y := strings.ReplaceAll(strings.Trim(b.(string), `"`), `\"`, `"`)
		sign = strings.Compare(x, y)
	default:
		sign = compare(a, b)
	}
	switch op {
	case "==":
		return sign == 0
	case "!=":
		return sign != 0
	case "<":
		return sign < 0
	case "<=":
		return sign <= 0
	case ">":
		return sign > 0
	}
	return sign >= 0
}

func toInt(v any) any {
	switch v := v.(type) {
	case bool:
		return int64(truth(v))
	case cents:
		return int64(v / 100)
	case float64:
		if !(math.Abs(v) < 1e18) {
			panic(refuse{})
		}
		return int64(v)
	case string:
		return int64(len(v))
	}
	return v
}

func short(s string) any {
	if len(s) > maxText {
		panic(refuse{})
	}
	return s
}

func milliseconds(a, b time.Time) any { return a.UnixMilli() - b.UnixMilli() }
