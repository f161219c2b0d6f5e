package expr

import (
	"go/token"
	"strings"
	"time"
)

type op uint8

const (
	opConst op = iota
	opRef
	opRaw // SQL text of a value, not from an expression
	opNeg
	opNot
	opArith  // tok: + - * / % of two operands of one numeric type
	opConcat // any number of strings
	opCompare
	opAnd // two or more terms
	opOr
	// args[0] to a wider number type: int or decimal to float, int to decimal; a timestamptz to a datetime, for
	// comparison
	opConvert
	opCall
	opNull // the literal null
)

// node is a type-checked piece of an expression.
type node struct {
	op   op
	typ  Type
	tok  token.Token
	args []*node
	fn   *function
	ref  Ref
	val  any    // of a constant: int64, float64, string, bool, number, time.Time, time.Month, *time.Location
	raw  string // of a string literal: as written, with its quotes
	at   span
	text string // source, for run-time messages

	dec      decimalType    // of a decimal
	bits     int            // of an int that operators computed, see width; 0: of any other int
	zone     *time.Location // of a datetime: its zone; nil when it depends on the row
	layout   string         // of a reference to a datetime with a zone of its own: that of its text
	aux      any            // what the function's check found out for its sql
	note     *Error         // what is probably not meant, but not wrong
	unstored bool           // a reference to a field as a file has it
	raises   bool           // evaluation may raise an error
	null     bool           // may be NULL
	finite   bool           // a float that cannot be NaN
	plain    bool           // a string that cannot contain a double quote
}

func (n *node) isConst() bool { return n.op == opConst }

// constant makes n a constant in place.
func (n *node) constant(v any) *node {
	n.op, n.val, n.args, n.raises, n.null, n.bits = opConst, v, nil, false, false, 0
	switch v := v.(type) {
	case number:
		n.dec, _ = v.shape()
	case time.Time:
		n.zone = v.Location()
	case float64:
		n.finite = v == v
	}
	return n
}

// cheap reports whether evaluating n twice costs less than binding it to a name.
func (n *node) cheap() bool {
	switch n.op {
	case opConst, opRef, opNull:
		return true
	case opRaw:
		return !strings.ContainsAny(n.raw, "( ")
	case opNeg, opNot, opCompare:
		return !n.typ.IsDecimal() && leaves(n.args)
	case opArith:
		return !n.typ.IsDecimal() && n.args[0].typ != Date && n.tok != token.QUO && n.tok != token.REM && leaves(n.args)
	case opConvert:
		return !n.args[0].typ.IsDecimal() && n.args[0].cheap()
	}
	return false
}

func leaves(args []*node) bool {
	for _, a := range args {
		if a.op != opConst && (a.op != opRef || a.typ == String) {
			return false
		}
	}
	return true
}

// typedNull makes n the NULL of type t in place.
func (n *node) typedNull(t Type) *node {
	n.op, n.typ, n.args, n.fn, n.null = opNull, t, nil, nil, true
	n.finite, n.plain, n.zone = true, true, time.UTC
	n.dec = decimalType{}
	if t.exact() {
		n.dec = exactDecimal(t)
	}
	return n
}

// anyNull reports whether one of the values may be NULL.
func anyNull(args []*node) bool {
	for _, a := range args {
		if a.null {
			return true
		}
	}
	return false
}
