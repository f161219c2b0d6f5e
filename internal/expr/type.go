package expr

// Type is the type of a value in a script, by its canonical name: that of the
// script, which is also what plans, results and messages hold. Types with
// parameters have them in it, so that types are equal if their names are.
// The zero value is no type.
type Type string

// The column types (String to Decimal) and the expression-only types.
const (
	Invalid  Type = ""
	String   Type = "string"
	Int      Type = "int"   // 64-bit signed
	Float    Type = "float" // IEEE 754 double
	Bool     Type = "bool"
	DateTime Type = "datetime" // UTC instant, milliseconds
	Decimal  Type = "decimal2" // two digits after the point when stored in a table

	Month    Type = "month"    // time.January …: only as the second argument of time.Date
	Location Type = "location" // time.UTC, time.FixedZone(…): only as the last argument of time.Date
	GoInt    Type = "go int"   // what len() returns: an integer in comparisons and arithmetic, but not an int field
	Null     Type = "null"     // the literal null before it has taken the type of what stands beside it
)

// ParseType returns the column type that a script calls name
// (string, int, float, bool, datetime, decimal2).
func ParseType(name string) (Type, bool) {
	for _, t := range ColumnTypes() {
		if string(t) == name {
			return t, true
		}
	}
	return Invalid, false
}

// ColumnTypes lists the types a column can have, in the order of the reference page.
func ColumnTypes() []Type { return []Type{String, Int, Float, Bool, DateTime, Decimal} }

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
	}
	return ""
}
