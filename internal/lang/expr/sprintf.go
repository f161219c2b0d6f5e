package expr

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"thalweg/internal/base/sqltext"
)

// maxZeroWidth is the width up to which floats can be padded with zeros: the
// largest ones, which are printed on another way, are never shorter.
const maxZeroWidth = 30

// MaxFormatWidth bounds the width and precision of a format verb, in characters.
const MaxFormatWidth = 1000

// verb is one %… of a format.
type verb struct {
	minus, plus, zero, space bool
	width, precision         int // -1: none
	letter                   byte
	text                     string // as written
}

// piece is a run of plain text or a verb.
type piece struct {
	literal string
	verb    *verb
	offset  int // in the format
}

// formatError is a problem at a byte offset of a format.
type formatError struct {
	offset, length int
	message, hint  string
}

// parseFormat splits a Go print format.
func parseFormat(format string) ([]piece, *formatError) {
	var out []piece
	literal := ""
	for i := 0; i < len(format); {
		if format[i] != '%' {
			literal += format[i : i+1]
			i++
			continue
		}
		v, n, bad := parseVerb(format[i:])
		if bad != "" {
			return nil, &formatError{i, n, bad,
				"supported: flags - + 0 and blank, width, .precision, and one of d x X o b f F e E g G s v t"}
		}
		if v.letter == '%' {
			literal += "%"
		} else {
			if literal != "" {
				out = append(out, piece{literal: literal})
				literal = ""
			}
			out = append(out, piece{verb: &v, offset: i})
		}
		i += n
	}
	if literal != "" {
		out = append(out, piece{literal: literal})
	}
	return out, nil
}

// parseVerb reads the verb at the start of s and returns its length in bytes.
func parseVerb(s string) (v verb, n int, bad string) {
	v = verb{width: -1, precision: -1}
	i := 1
flags:
	for ; i < len(s); i++ {
		switch s[i] {
		case '-':
			v.minus = true
		case '+':
			v.plus = true
		case '0':
			v.zero = true
		case ' ':
			v.space = true
		default:
			break flags
		}
	}
	number := func() int {
		start := i
		for i < len(s) && s[i] >= '0' && s[i] <= '9' && i-start < 6 {
			i++
		}
		if i == start {
			return -1
		}
		n, _ := strconv.Atoi(s[start:i])
		return n
	}
	v.width = number()
	if i < len(s) && s[i] == '.' {
		i++
		v.precision = max(number(), 0)
	}
	if i == len(s) {
		return v, i, "the format ends inside a verb"
	}
	_, size := utf8.DecodeRuneInString(s[i:])
	v.letter, v.text = s[i], s[:i+size]
	if v.width > MaxFormatWidth || v.precision > MaxFormatWidth {
		return v, i + size, fmt.Sprintf("%s is wider than %d characters", v.text, MaxFormatWidth)
	}
	if !strings.ContainsRune("dxXobfFeEgGsvt%", rune(s[i])) || size > 1 {
		return v, i + size, fmt.Sprintf("%s is not supported", v.text)
	}
	if v.letter == 'v' {
		v.plus = false // %+v asks for field names in Go, not for a sign
	}
	return v, i + size, ""
}

// bare reports whether v prints a text as it is.
func (v *verb) bare() bool {
	return v.width <= 0 && v.precision < 0 && v.letter != 'x' && v.letter != 'X'
}

// fits reports why the verb cannot print a value of type t; "" if it can.
func (v *verb) fits(t Type) (problem, hint string) {
	letters := map[Type]string{Int: "dxXobv", GoInt: "dxXobv", Float: "fFeEgGv", Bool: "tv", String: "svxX"}[t]
	if letters == "" { // decimals and times are printed as their text
		letters = "sv"
	}
	if !strings.ContainsRune(letters, rune(v.letter)) {
		hint = map[Type]string{
			Int: "%d prints an int", GoInt: "%d prints an int", Float: "%f, %e and %g print a float",
			Bool: "%t prints a bool", String: "%s prints a string", DateTime: "use time.Format(…) and %s",
			Date:    "%s prints it as 2006-01-02; use time.Format(…) and %s for others",
			Instant: "use time.Format(…) and %s",
		}[t]
		if t.IsDecimal() {
			hint = "%s prints a decimal; float(…) makes a float of it"
			if t == Decimal {
				hint = "%s prints a decimal2; float(…) makes a float of it"
			}
		}
		return fmt.Sprintf("%s cannot print %s", v.text, t.phrase()), hint
	}
	switch {
	case (t == Int || t == GoInt) && v.precision >= 0:
		return v.text + ": a precision for an int is not supported", "a width with a leading zero pads with zeros: %05d"
	case t == Float && (v.letter == 'v' || v.letter == 'g' || v.letter == 'G') && v.precision < 0 &&
		(v.plus || v.zero || v.space || v.letter == 'G'):
		return v.text + " is not supported", "give a precision, or use %f"
	case t == Float && v.zero && v.width > maxZeroWidth:
		return v.text + ": zeros to more than 30 characters are not supported", ""
	case t != Int && t != GoInt && t != Float && (v.plus || v.zero || v.space):
		return v.text + ": the flags + 0 and blank are for numbers", ""
	case (v.letter == 'x' || v.letter == 'X') && t == String && v.precision >= 0:
		return v.text + ": a precision is not supported here", ""
	}
	return "", ""
}

// formatted renders the text of n by verb v, which fits its type.
func (r *renderer) formatted(n *node, v *verb) string {
	if n.typ.exact() {
		return r.padded(truncated(r.text(n), v), false, v)
	}
	switch n.typ {
	case Int, GoInt:
		if v.width < 0 && !v.plus && !v.space && (v.letter == 'd' || v.letter == 'v') {
			return "CAST(" + r.sql(n) + " AS VARCHAR)"
		}
		return "format(" + sqltext.String(v.fmtSpec()) + ", " + r.sql(n) + ")"
	case Float:
		return r.formattedFloat(n, v)
	case String:
		return r.padded(truncated(r.sql(n), v), n.cheap() && v.precision < 0 && v.letter != 'x' && v.letter != 'X', v)
	case Decimal, DateTime, Date, Instant: // printed as their text, and so cut like text
		return r.padded(truncated(r.text(n), v), false, v)
	}
	return r.padded(r.text(n), false, v)
}

// fmtSpec writes v for DuckDB's format(), which is C++'s {fmt}.
func (v *verb) fmtSpec() string {
	spec := "{:"
	if v.minus {
		spec += "<"
	}
	switch {
	case v.plus:
		spec += "+"
	case v.space:
		spec += " "
	}
	if v.width >= 0 {
		if v.zero && !v.minus {
			spec += "0"
		}
		spec += strconv.Itoa(v.width)
	}
	if v.precision >= 0 {
		spec += "." + strconv.Itoa(v.precision)
	}
	letter := v.letter
	if letter == 'v' {
		letter = 'd'
	}
	return spec + string(letter) + "}"
}

// formattedFloat: {fmt} rounds from the exact binary value, as Go does.
// Infinities and NaN are spelled by Go itself, now.
func (r *renderer) formattedFloat(n *node, v *verb) string {
	if v.precision < 0 && (v.letter == 'v' || v.letter == 'g') {
		return r.padded(r.text(n), false, v)
	}
	spec := *v
	switch {
	case v.letter == 'v':
		spec.letter = 'g'
	case v.letter == 'F':
		spec.letter = 'f'
	}
	switch {
	case spec.precision < 0:
		spec.precision = 6
	case spec.precision == 0 && (spec.letter == 'g' || spec.letter == 'G'):
		spec.precision = 1 // {fmt} prints all digits then
	}
	return r.let(n, func(x string) string {
		number := "format(" + sqltext.String(spec.fmtSpec()) + ", " + x + ")"
		if spec.letter == 'f' && spec.precision < exactPrecision {
			number = "CASE WHEN abs(" + x + ") < 1e30 THEN " + number + " ELSE " + r.hugeFloat(x, spec) + " END"
		}
		if n.finite && n.op == opConst {
			return number
		}
		special := func(f float64) string { return sqltext.String(fmt.Sprintf(v.text, f)) }
		return "CASE WHEN isfinite(" + x + ") THEN " + number + " WHEN isnan(" + x + ") THEN " + special(math.NaN()) +
			" WHEN " + x + " > 0 THEN " + special(math.Inf(1)) + " WHEN " + x + " < 0 THEN " +
			special(math.Inf(-1)) + " END"
	})
}

// exactPrecision is a precision at which {fmt} takes its exact path for %f.
const exactPrecision = 20

// hugeFloat prints a float from 10^30 on with %f. {fmt} invents digits there
// (from about 10^42 on) at small precisions; such a float is whole, so it is
// printed at a precision that is exact and the zeros are cut off.
func (r *renderer) hugeFloat(x string, v verb) string {
	plain := v
	plain.width, plain.precision, plain.zero, plain.minus = -1, exactPrecision, false, false
	cut := exactPrecision - v.precision
	if v.precision == 0 {
		cut++ // the point
	}
	return r.bind("format("+sqltext.String(plain.fmtSpec())+", "+x+")", false, func(digits string) string {
		return r.padded("left("+digits+", length("+digits+") - "+strconv.Itoa(cut)+")", false, &v)
	})
}

// truncated renders text by v, before it is padded.
func truncated(s string, v *verb) string {
	switch {
	case v.letter == 'x':
		return "lower(hex(" + s + "))"
	case v.letter == 'X':
		return "hex(" + s + ")"
	case v.precision >= 0:
		return "left(" + s + ", " + strconv.Itoa(v.precision) + ")"
	}
	return s
}

// padded pads text with blanks to the width of v, counted in characters.
func (r *renderer) padded(s string, cheap bool, v *verb) string {
	if v.width <= 0 {
		return s
	}
	side := "lpad"
	if v.minus {
		side = "rpad"
	}
	width := strconv.Itoa(v.width)
	return r.bind(s, cheap, func(x string) string {
		return "CASE WHEN length(" + x + ") < " + width + " THEN " + side + "(" + x + ", " + width +
			", ' ') ELSE " + x + " END"
	})
}

// text renders Go's default text of n: string(x), %v.
func (r *renderer) text(n *node) string {
	switch n.typ {
	case String:
		return r.sql(n)
	case Float:
		return r.let(n, func(v string) string { return "thalweg_float_text(" + v + ")" })
	case Decimal:
		return r.decimalText(n)
	case DateTime, Instant:
		return r.formatTime(r.asTime(n), goTime)
	}
	if n.typ.exact() {
		return r.decimalText(n)
	}
	return "CAST(" + r.sql(n) + " AS VARCHAR)"
}

// concat joins the texts parts, which were made of args. concat() is three
// times as fast as a chain of || (65 against 205 ns for nine pieces) but takes
// NULL for empty text, so the columns are tested first, which costs nothing
// measurable. Where NULL can come about otherwise, || it is.
func (r *renderer) concat(args []*node, parts []string) string {
	if len(parts) == 1 {
		return parts[0]
	}
	if len(parts) == 2 {
		return "(" + parts[0] + " || " + parts[1] + ")"
	}
	var columns []string
	seen := map[string]bool{}
	for _, a := range args {
		if !r.nullable(a, &columns, seen) {
			return "(" + strings.Join(parts, " || ") + ")"
		}
	}
	joined := "concat(" + strings.Join(parts, ", ") + ")"
	if len(columns) == 0 {
		return joined
	}
	return "CASE WHEN " + strings.Join(columns, " OR ") + " THEN NULL ELSE " + joined + " END"
}

// nullable collects tests of which one holds exactly when n is NULL; ok is
// false when n can be NULL for other reasons or in spite of a NULL operand.
func (r *renderer) nullable(n *node, tests *[]string, seen map[string]bool) (ok bool) {
	switch n.op {
	case opConst:
		return true
	case opNull:
		return false
	case opRef, opRaw:
		test := r.sql(n) + " IS NULL"
		if !seen[test] {
			seen[test] = true
			*tests = append(*tests, test)
		}
		return true
	case opAnd, opOr:
		return false
	case opCall:
		if n.fn.group == "Choice" || n.fn.nullable != nil {
			return false
		}
	}
	for _, a := range n.args {
		if !r.nullable(a, tests, seen) {
			return false
		}
	}
	return true
}
