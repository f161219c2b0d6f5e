package expr

import (
	"go/token"
	"math"
	"math/big"
	"strconv"
)

// foldNegation computes the negation of a constant.
func foldNegation(n *node) *node {
	a := n.args[0]
	if !a.isConst() {
		return n
	}
	switch v := a.val.(type) {
	case int64:
		if v == math.MinInt64 {
			return n
		}
		return n.constant(-v)
	case float64:
		return n.constant(-v)
	case number:
		return n.constant(number{new(big.Int).Neg(v.mantissa), v.scale})
	}
	return n
}

// foldConversion computes the widening of the constant v to n's type.
func foldConversion(n *node, v any) *node {
	switch v := v.(type) {
	case int64:
		if n.typ == Float {
			return n.constant(float64(v))
		}
		return n.constant(number{big.NewInt(v), 0})
	case number:
		return n.constant(v.float())
	}
	return n
}

// float returns the nearest float64.
func (n number) float() float64 {
	f, _ := new(big.Rat).SetFrac(n.mantissa, pow10(n.scale)).Float64()
	return f
}

// foldArithmetic computes an operation on two constants. What would raise at
// run time is an error now.
func foldArithmetic(n *node, round bool) (*node, *Error) {
	a, b := n.args[0], n.args[1]
	if n.tok == token.QUO || n.tok == token.REM {
		if zero := b.isConst() && isZero(b.val); zero && n.typ != Float {
			return nil, n.at.errorf("division by zero")
		}
	}
	if !a.isConst() || !b.isConst() {
		return n, nil
	}
	switch x := a.val.(type) {
	case int64:
		v, ok := intArithmetic(n.tok, x, b.val.(int64))
		if !ok {
			return nil, n.at.errorf("the result is outside the range of int")
		}
		return n.constant(v), nil
	case float64:
		return n.constant(floatArithmetic(n.tok, x, b.val.(float64))), nil
	case number:
		v := decimalConstant(n.tok, x, b.val.(number))
		if round {
			v = v.round(columnScale)
		}
		if _, fits := v.shape(); !fits {
			return nil, n.at.errorf("the result has more than %d digits", wideDigits)
		}
		return n.constant(v), nil
	}
	return n, nil
}

func isZero(v any) bool {
	switch v := v.(type) {
	case int64:
		return v == 0
	case number:
		return v.mantissa.Sign() == 0
	}
	return false
}

func intArithmetic(tok token.Token, a, b int64) (int64, bool) {
	x, y := big.NewInt(a), big.NewInt(b)
	switch tok {
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
	return x.Int64(), x.IsInt64()
}

func floatArithmetic(tok token.Token, a, b float64) float64 {
	switch tok {
	case token.ADD:
		return a + b
	case token.SUB:
		return a - b
	case token.MUL:
		return a * b
	}
	return a / b
}

func decimalConstant(tok token.Token, a, b number) number {
	scale := max(a.scale, b.scale)
	switch tok {
	case token.ADD:
		return number{new(big.Int).Add(a.at(scale), b.at(scale)), scale}.trim()
	case token.SUB:
		return number{new(big.Int).Sub(a.at(scale), b.at(scale)), scale}.trim()
	case token.MUL:
		return number{new(big.Int).Mul(a.mantissa, b.mantissa), a.scale + b.scale}.trim()
	}
	// Division: 16 digits after the point, half away from zero.
	up := new(big.Int).Mul(a.at(scale), pow10(quotientScale))
	down := b.at(scale)
	q, r := new(big.Int).QuoRem(up, down, new(big.Int))
	if r.Abs(r).Lsh(r, 1).CmpAbs(down) >= 0 {
		q.Add(q, big.NewInt(int64(up.Sign()*down.Sign())))
	}
	return number{q, quotientScale}.trim()
}

// numberOf returns the shortest decimal that reads back as f.
func numberOf(f float64) (number, bool) {
	return parseNumber(strconv.FormatFloat(f, 'e', -1, 64))
}
