package expr

// Type is the type of a value in a script: the six column types, plus those
// that only live inside an expression.
type Type uint8

// The column types (String to Decimal) and the expression-only types.
const (
	Invalid Type = iota
	String
	Int      // 64-bit signed
	Float    // IEEE 754 double
	Bool     //
	DateTime // UTC instant, milliseconds
	Decimal  // decimal2: two digits after the point when stored in a table

	Month    // time.January …: only as the second argument of time.Date
	Location // time.UTC, time.FixedZone(…): only as the last argument of time.Date
	GoInt    // what len() returns: an integer in comparisons and arithmetic, but not an int field
	Null     // the literal null before it has taken the type of what stands beside it
)

// ParseType returns the column type that a script calls name
// (string, int, float, bool, datetime, decimal2).
func ParseType(name string) (Type, bool) {
	for _, t := range ColumnTypes() {
		if t.String() == name {
			return t, true
		}
	}
	return Invalid, false
}

// ColumnTypes lists the types a column can have, in the order of the reference page.
func ColumnTypes() []Type { return []Type{String, Int, Float, Bool, DateTime, Decimal} }

// String returns the type's name as scripts write it.
func (t Type) String() string {
	switch t {
	case String:
		return "string"
	case Int:
		return "int"
	case Float:
		return "float"
	case Bool:
		return "bool"
	case DateTime:
		return "datetime"
	case Decimal:
		return "decimal2"
	case Month:
		return "month"
	case Location:
		return "location"
	case GoInt:
		return "go int"
	case Null:
		return "null"
	}
	return "invalid"
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
	}
	return ""
}
