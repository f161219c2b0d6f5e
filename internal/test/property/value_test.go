package property

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// kind is one of the six types of values.
type kind int

const (
	intKind kind = iota
	floatKind
	decimalKind
	boolKind
	timeKind
	stringKind
)

func kinds() []kind {
	return []kind{intKind, floatKind, decimalKind, boolKind, timeKind, stringKind}
}

// String is the type's name in scripts.
func (k kind) String() string {
	return [...]string{"int", "float", "decimal2", "bool", "datetime", "string"}[k]
}

// cents is a decimal2 as a whole number of hundredths. A value is an int64,
// float64, cents, bool, time.Time (UTC, milliseconds) or string; nil is NULL.
type cents int64

func (c cents) float() float64 { return float64(c) / 100 } // exact operands, so rounded once

// fixed is the decimal with two digits, as it is written to files.
func (c cents) fixed() string {
	sign, n := "", int64(c)
	if n < 0 {
		sign, n = "-", -n
	}
	return fmt.Sprintf("%s%d.%02d", sign, n/100, n%100)
}

// text returns the result of string(x) for a value.
func text(v any) string {
	if c, ok := v.(cents); ok {
		return strings.TrimSuffix(strings.TrimRight(c.fixed(), "0"), ".")
	}
	return fmt.Sprint(v)
}

func zero(k kind) any {
	return [...]any{int64(0), 0.0, cents(0), false, time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), ""}[k]
}

// exactly is a text that two values of a type share if they are equal: the key
// of joins, groups and distinct rows.
func exactly(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case float64:
		if v == 0 {
			v = 0 // -0 is 0
		}
		if math.IsNaN(v) {
			return "nan"
		}
		return strconv.FormatUint(math.Float64bits(v), 16)
	case time.Time:
		return strconv.FormatInt(v.UnixMilli(), 10)
	case string:
		return strconv.Itoa(len(v)) + ":" + v
	}
	return fmt.Sprint(v)
}

// keyOf joins the exact texts of several values.
func keyOf(values []any) string {
	var b strings.Builder
	for _, v := range values {
		b.WriteString(exactly(v))
		b.WriteByte('|')
	}
	return b.String()
}

// compare orders two values of a type: NaN is the largest float, texts go by
// their bytes.
func compare(a, b any) int {
	switch x := a.(type) {
	case int64:
		return cmp.Compare(x, b.(int64))
	case float64:
		y := b.(float64)
		if math.IsNaN(x) || math.IsNaN(y) {
			return truth(math.IsNaN(x)) - truth(math.IsNaN(y))
		}
		return cmp.Compare(x, y)
	case cents:
		return cmp.Compare(x, b.(cents))
	case bool:
		return truth(x) - truth(b.(bool))
	case time.Time:
		return x.Compare(b.(time.Time))
	}
	return strings.Compare(a.(string), b.(string))
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// compareNulls is compare with NULL where it is told: at the end, or in front.
func compareNulls(a, b any, desc, nullsFirst bool) int {
	if a == nil || b == nil {
		order := truth(a == nil) - truth(b == nil)
		if nullsFirst {
			return -order
		}
		return order
	}
	if desc {
		return compare(b, a)
	}
	return compare(a, b)
}

// sameValue says whether a value that was read from a file is the one wanted.
func sameValue(want, got any) bool {
	if want == nil || got == nil {
		return want == got
	}
	if f, ok := want.(float64); ok {
		g, ok := got.(float64)
		return ok && (math.Float64bits(f) == math.Float64bits(g) || math.IsNaN(f) && math.IsNaN(g))
	}
	if t, ok := want.(time.Time); ok {
		g, ok := got.(time.Time)
		return ok && t.Equal(g)
	}
	return want == got
}
