package expr

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Type is the type of a value in a script, by its canonical name: that of the
// script, which is also what plans, results and messages hold. Types with
// parameters have them in it, so that types are equal if their names are.
// The zero value is no type.
type Type string

// The column types (String to Instant, and decimals with digits: see DecimalOf)
// and the expression-only types.
const (
	Invalid  Type = ""
	String   Type = "string"
	Int      Type = "int"         // 64-bit signed
	Float    Type = "float"       // IEEE 754 double
	Bool     Type = "bool"        //
	DateTime Type = "datetime"    // UTC instant, milliseconds
	Decimal  Type = "decimal2"    // two digits after the point when stored in a table
	Date     Type = "date"        // day of the years 1 to 9999
	Instant  Type = "timestamptz" // instant with microseconds, of the years 1 to 9999

	Month    Type = "month"    // time.January …: only as the second argument of time.Date
	Location Type = "location" // time.UTC, time.FixedZone(…): only as the last argument of time.Date
	GoInt    Type = "go int"   // what len() returns: an integer in comparisons and arithmetic, but not an int field
	Null     Type = "null"     // the literal null before it has taken the type of what stands beside it

	anyExact  Type = "decimal"        // in sets of types: the decimals with digits
	anyNested Type = "list or struct" // likewise
)

// MaxDecimalDigits is the largest number of digits of a decimal.
const MaxDecimalDigits = wideDigits

// DecimalOf is the type of decimals with so many digits, of which scale are
// behind the point: decimal(18,2) is the decimal2. Its operations are exact, while those of a decimal2 are rounded.
func DecimalOf(digits, scale int) Type {
	if digits == narrowDigits && scale == columnScale {
		return Decimal
	}
	return Type("decimal(" + strconv.Itoa(digits) + "," + strconv.Itoa(scale) + ")")
}

// Exact gives the digits of a decimal with digits; ok is false for other types, decimal2 too.
func (t Type) Exact() (digits, scale int, ok bool) {
	inner, isDecimal := strings.CutPrefix(string(t), "decimal(")
	if !isDecimal {
		return 0, 0, false
	}
	first, second, _ := strings.Cut(strings.TrimSuffix(inner, ")"), ",")
	digits, errDigits := strconv.Atoi(first)
	scale, errScale := strconv.Atoi(second)
	return digits, scale, errDigits == nil && errScale == nil
}

func (t Type) exact() bool { return strings.HasPrefix(string(t), "decimal(") }

// IsDecimal reports decimal2 and the decimals with digits.
func (t Type) IsDecimal() bool { return t == Decimal || t.exact() }

// Digits are those of a decimal, decimal2 too.
func (t Type) Digits() (digits, scale int) {
	if t == Decimal {
		return narrowDigits, columnScale
	}
	digits, scale, _ = t.Exact()
	return digits, scale
}

// IsNumber reports the types that are computed with.
func (t Type) IsNumber() bool { return t.numeric() }

// TimeLayout is the Go layout in which a type's text is read and written where
// nothing says another; "" if there is none.
func (t Type) TimeLayout() string {
	switch t {
	case Date:
		return time.DateOnly
	case Instant:
		return InstantLayout
	}
	return ""
}

// InstantLayout is the text of a timestamptz: RFC 3339 with up to six digits of the second.
const InstantLayout = "2006-01-02T15:04:05.999999Z07:00"

// ParseType returns the column type that a script calls name: string, int,
// float, bool, datetime, decimal2, date, timestamptz, decimal(digits,scale),
// list(type), struct(name type, …).
func ParseType(name string) (Type, bool) {
	for _, t := range ColumnTypes() {
		if string(t) == name {
			return t, true
		}
	}
	if t, problem := parseNestedType(name); t != Invalid || problem != "" {
		return t, problem == ""
	}
	t, problem := parseDecimalType(name)
	return t, t != Invalid && problem == ""
}

// TypeProblem says what is wrong with the name of a type that ParseType does
// not know but that looks like one with parameters; "" for others.
func TypeProblem(name string) (problem string) {
	if _, problem = parseNestedType(name); problem == "" {
		_, problem = parseDecimalType(name)
	}
	return problem
}

var decimalName = regexp.MustCompile(`^decimal\s*(?:\(\s*([0-9]{1,9})\s*(?:,\s*([0-9]{1,9})\s*)?\))?$`)

func parseDecimalType(name string) (t Type, problem string) {
	m := decimalName.FindStringSubmatch(name)
	if m == nil {
		return Invalid, ""
	}
	digits, _ := strconv.Atoi(m[1])
	scale, _ := strconv.Atoi(m[2])
	switch {
	case m[1] == "":
		return Invalid, "it needs its digits, and how many of them are behind the point: decimal(18,4)"
	case digits < 1 || digits > wideDigits:
		return Invalid, fmt.Sprintf("a decimal has 1 to %d digits", wideDigits)
	case scale >= digits:
		return Invalid, fmt.Sprintf("one digit at least is before the point: write decimal(%d,%d)",
			min(scale+1, wideDigits), min(scale, wideDigits-1))
	}
	return DecimalOf(digits, scale), ""
}

// ColumnTypes lists the types without parameters that a column can have, in the order of the reference page.
func ColumnTypes() []Type { return []Type{String, Int, Float, Bool, DateTime, Decimal, Date, Instant} }

// IsColumn reports the types that a column can have.
func (t Type) IsColumn() bool {
	_, ok := ParseType(string(t))
	return ok
}

// String returns the type's name as scripts write it.
func (t Type) String() string {
	if t == Invalid {
		return "invalid"
	}
	return string(t)
}

// phrase names the type with its article, for messages.
func (t Type) phrase() string {
	if t == Int || t == Invalid {
		return "an " + t.String()
	}
	return "a " + t.String()
}

// SQL returns the DuckDB type that stores t in a table's parts: the one place
// that fixes the physical schema.
func (t Type) SQL() string {
	switch t {
	case String:
		return "VARCHAR"
	case Int, GoInt:
		return "BIGINT"
	case Float:
		return "DOUBLE"
	case Bool:
		return "BOOLEAN"
	case DateTime:
		return "TIMESTAMP"
	case Decimal:
		return "DECIMAL(18,2)"
	case Date:
		return "DATE"
	case Instant:
		return "TIMESTAMP WITH TIME ZONE"
	}
	switch {
	case t.exact():
		return strings.ToUpper(string(t))
	case t.Nested():
		return t.nestedSQL(Type.SQL)
	}
	return ""
}
