package expr

import (
	"go/token"
	"math/big"
)

// Ints that operators and comparisons compute have all of their digits, up to 38:
// DuckDB computes them as HUGEINTs where 64 bits may not hold them. Where such
// a value is stored, or is the argument of a function that wants an int, it must
// fit 64 bits.

const (
	intBits     = 64  // no int has a magnitude of more, that of the smallest included
	lengthBits  = 33  // of a text's length in bytes
	hugeintBits = 127 // what a HUGEINT holds for sure
)

// width returns the most bits that the magnitude of the int n can have.
func (n *node) width() int {
	switch v, constant := n.val.(int64); {
	case constant:
		return big.NewInt(v).BitLen()
	case n.bits > 0:
		return n.bits
	case n.typ == GoInt:
		return lengthBits
	}
	return intBits
}

// huge reports whether n is an int that 64 bits may not hold.
func (n *node) huge() bool { return n.bits >= intBits }

// digits returns the most digits that the int n can have.
func (n *node) digits() int {
	bits := uint(min(n.width(), hugeintBits))
	if !n.huge() {
		bits = min(bits, intBits-1)
	}
	most := new(big.Int).Lsh(big.NewInt(1), bits)
	return min(len(most.String()), wideDigits)
}

// widthOf is the width of the result of an operation on ints.
func widthOf(tok token.Token, a, b *node) int {
	x, y := a.width(), b.width()
	switch tok {
	case token.ADD, token.SUB:
		return max(x, y) + 1
	case token.MUL:
		return x + y
	case token.QUO:
		if b.isConst() && y > 0 {
			return max(x-y+1, 1)
		}
		return x
	}
	if y == intBits {
		y-- // less than the divisor, which is of 64 bits at most in the smallest int
	}
	return min(x, y)
}

// widthOfChoice is the width of one of the values, if one of them is huge.
func widthOfChoice(values []*node) int {
	width, huge := 0, false
	for _, v := range values {
		if v.typ == Int {
			width, huge = max(width, v.width()), huge || v.huge()
		}
	}
	if !huge {
		return 0
	}
	return width
}

// allDigits renders an int that need not fit 64 bits; others as sql does.
func (r *renderer) allDigits(n *node) string {
	if n.huge() {
		return r.unguarded(n)
	}
	return r.sql(n)
}

// hugeint gives how the parts of n are rendered: as HUGEINTs if n is huge.
func (r *renderer) hugeint(n *node) func(*node) string {
	if !n.huge() {
		return r.sql
	}
	return func(a *node) string { return "CAST(" + r.allDigits(a) + " AS HUGEINT)" }
}

// intOperation renders - of an int, or + - * / % of two. // truncates and % has the
// sign of the dividend, as in Go. Of zero DuckDB would make NULL, and the smallest
// int % -1 it takes for an overflow: what is left is 0, as of 1.
func (r *renderer) intOperation(n *node, render func(*node) string) string {
	if n.op == opNeg {
		return "(-" + render(n.args[0]) + ")"
	}
	a, b := n.args[0], n.args[1]
	if !n.huge() && (a.huge() || b.huge()) {
		narrow := *n
		narrow.bits = hugeintBits
		return "CAST(" + r.intOperation(&narrow, r.hugeint(&narrow)) + " AS BIGINT)"
	}
	if n.tok != token.QUO && n.tok != token.REM {
		return "(" + render(a) + " " + n.tok.String() + " " + render(b) + ")"
	}
	left := render(a)
	by := func(v string) string {
		if n.tok == token.QUO {
			return left + " // " + v
		}
		return left + " % CASE WHEN " + v + " = -1 THEN 1 ELSE " + v + " END"
	}
	if b.isConst() {
		return "(" + by(render(b)) + ")"
	}
	return r.bind(render(b), b.cheap(), func(v string) string {
		return "CASE WHEN " + v + " = 0 THEN " + raised(n, "division by zero").SQL() + " ELSE " + by(v) + " END"
	})
}
