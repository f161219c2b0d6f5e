package parquetfile

import (
	"errors"
	"fmt"
)

// Column is a top-level column of a file.
type Column struct {
	Name      string
	Kind      Kind
	Type      string // for people, as the file has it
	Required  bool   // cannot be NULL
	Scale     int    // of decimals
	Precision int
	Physical  Physical
	Length    int  // bytes of FIXED_LEN_BYTE_ARRAY
	Unit      Unit // of timestamps
	Bits      int  // of integers, 0: not annotated
	Unsigned  bool // of integers
	JSON      bool // of texts

	// Contradiction says in which way the file's two descriptions of the column
	// differ; "" if they agree.
	Contradiction string

	Shape string // of nested columns: their Element in words, which tells them apart
}

// Kind is the type of a column's values, as a reader has to know it.
type Kind string

// The kinds of columns.
const (
	String      Kind = "string"
	Binary      Kind = "binary" // BYTE_ARRAY without UTF8
	Int         Kind = "int"
	Float       Kind = "float"
	Bool        Kind = "bool"
	Decimal     Kind = "decimal"
	Timestamp   Kind = "timestamp"
	TimestampTZ Kind = "timestamptz" // adjusted to UTC
	Int96       Kind = "int96"       // the old timestamp: a Julian day and its nanoseconds
	Date        Kind = "date"        //
	Null        Kind = "null"        // of no type: a writer had nothing but nulls
	Time        Kind = "time"        // of a day, in milliseconds or microseconds
	Half        Kind = "float16"     //
	UUID        Kind = "uuid"        //
	Fixed       Kind = "fixed bytes" // FIXED_LEN_BYTE_ARRAY without annotation
	Nested      Kind = "nested"      // or repeated
	Other       Kind = "not readable"
)

// Unit is the unit of a timestamp.
type Unit int

// The units of timestamps, as LogicalType numbers them.
const (
	NoUnit Unit = iota
	Milliseconds
	Microseconds
	Nanoseconds
)

// Physical is a physical type, as the format numbers them.
type Physical int

// The physical types.
const (
	Boolean    Physical = 0
	Int32      Physical = 1
	Int64      Physical = 2
	Old96      Physical = 3
	Float32    Physical = 4
	Float64    Physical = 5
	Bytes      Physical = 6
	FixedBytes Physical = 7
)

// Numbers of the Parquet format: converted types (the older annotation) and
// logical types.
const (
	convertedUTF8            = 0
	convertedMap             = 1
	convertedMapKeyValue     = 2
	convertedList            = 3
	convertedEnum            = 4
	convertedDecimal         = 5
	convertedDate            = 6
	convertedTimestampMillis = 9
	convertedTimestampMicros = 10
	convertedUint8           = 11
	convertedUint64          = 14
	convertedInt8            = 15
	convertedInt64           = 18
	convertedJSON            = 19

	logicalString    = 1
	logicalMap       = 2
	logicalList      = 3
	logicalEnum      = 4
	logicalDecimal   = 5
	logicalDate      = 6
	logicalTime      = 7
	logicalTimestamp = 8
	logicalInteger   = 10
	logicalNull      = 11
	logicalJSON      = 12
	logicalUUID      = 14
	logicalFloat16   = 15

	repetitionRequired = 0
	repetitionOptional = 1
	repetitionRepeated = 2

	none = -1 // an annotation that is not there
)

// schemaElement is a node of the flattened schema.
type schemaElement struct {
	physical, repetition, converted int
	name                            string
	children                        int
	length                          int
	scale, precision                int // of converted types
	logical                         int // id in the union LogicalType
	logicalScale, logicalPrecision  int
	utc                             bool // of timestamps
	unit                            Unit
	bits                            int // of integers
	signed                          bool

	logicalBytes []byte // the whole LogicalType, as the file has it
	leafIndex    int    // of leaves, in the column that they are of
}

// decodeElement reads a SchemaElement.
func decodeElement(r *thriftReader) schemaElement {
	e := schemaElement{physical: none, repetition: none, converted: none, logical: none, scale: none, precision: none}
	seen := r.structure(func(id int64, t thriftType) bool {
		switch id {
		case 1:
			e.physical = r.int(t)
		case 2:
			e.length = r.int(t)
		case 3:
			e.repetition = r.int(t)
		case 4:
			e.name = r.text(t)
		case 5:
			e.children = r.int(t)
		case 6:
			e.converted = r.int(t)
		case 7:
			e.scale = r.int(t)
		case 8:
			e.precision = r.int(t)
		case 9:
			r.int(t)
		case 10:
			if t != thriftStruct {
				r.fail(errThriftType)
				return true
			}
			from := r.data
			r.structure(func(id int64, t thriftType) bool { return e.decodeLogical(r, int(id), t) })
			e.logicalBytes = from[:len(from)-len(r.data)]
		default: // what it says of the values would be lost
			r.fail(errThriftStrange)
		}
		return true
	})
	r.need(seen, fields(4))
	return e
}

// decodeLogical reads the member of a LogicalType.
func (e *schemaElement) decodeLogical(r *thriftReader, member int, t thriftType) bool {
	e.logical = member
	if t != thriftStruct {
		return false
	}
	r.structure(func(id int64, t thriftType) bool {
		switch {
		case member == logicalDecimal && id == 1:
			e.logicalScale = r.int(t)
		case member == logicalDecimal && id == 2:
			e.logicalPrecision = r.int(t)
		case (member == logicalTimestamp || member == logicalTime) && id == 1:
			e.utc = r.bool(t)
		case (member == logicalTimestamp || member == logicalTime) && id == 2 && t == thriftStruct:
			r.structure(func(id int64, t thriftType) bool {
				e.unit = Unit(min(id, int64(Nanoseconds)+1))
				return false
			})
		case member == logicalInteger && id == 1:
			e.bits = r.small(t)
		case member == logicalInteger && id == 2:
			e.signed = r.bool(t)
		default:
			return false
		}
		return true
	})
	return true
}

// skipElement passes over an element of the flattened tree and all below it,
// and counts the leaves that it passes.
func skipElement(schema []schemaElement, at int) (next, leaves int, err error) {
	for open := 1; open > 0; open-- {
		if at >= len(schema) {
			return 0, 0, errors.New("the schema's tree is not complete")
		}
		n := schema[at].children
		if n < 0 || n > len(schema) {
			return 0, 0, fmt.Errorf("schema element %q has %d children", schema[at].name, n)
		}
		if schema[at].leaf() {
			leaves++
		}
		open += n
		at++
	}
	return at, leaves, nil
}

func (e schemaElement) leaf() bool { return e.physical != none && e.children == 0 }

// settled completes the annotation of a leaf from its older form.
func (e schemaElement) settled() schemaElement {
	if e.logical != none {
		if e.logical == logicalDecimal {
			e.scale, e.precision = e.logicalScale, e.logicalPrecision
		}
		return e
	}
	switch {
	case e.converted == convertedTimestampMillis:
		e.unit = Milliseconds
	case e.converted == convertedTimestampMicros:
		e.unit = Microseconds
	case e.converted >= convertedUint8 && e.converted <= convertedUint64:
		e.bits = 8 << (e.converted - convertedUint8)
	case e.converted >= convertedInt8 && e.converted <= convertedInt64:
		e.bits, e.signed = 8<<(e.converted-convertedInt8), true
	}
	e.scale = max(e.scale, 0) // no scale is scale 0
	return e
}

// contradiction compares the two annotations of a leaf where both are there:
// nothing else in a file tells a damaged one.
func (e schemaElement) contradiction() string {
	if e.logical == none && e.converted == convertedDecimal && e.precision == none {
		return "a decimal without a number of digits"
	}
	if e.converted == none || e.logical == none {
		return ""
	}
	old := e
	old.logical = none
	old = old.settled()
	switch e.logical {
	case logicalDecimal:
		if e.converted != convertedDecimal || old.scale != e.logicalScale || old.precision != e.logicalPrecision {
			return fmt.Sprintf("%s and %s", e.settled(), old)
		}
	case logicalTimestamp:
		if old.unit != e.unit {
			return fmt.Sprintf("%s and %s", e.settled(), old)
		}
	case logicalInteger:
		if old.bits != e.bits || old.signed != e.signed {
			return fmt.Sprintf("%s and %s", e.settled(), old)
		}
	case logicalDate:
		if e.converted != convertedDate {
			return fmt.Sprintf("%s and %s", e.settled(), old)
		}
	}
	return ""
}

const nestedText = "nested or repeated"

// describe classifies a top-level element.
func (e schemaElement) describe() Column {
	if !e.leaf() || e.repetition == repetitionRepeated {
		return Column{Name: e.name, Kind: Nested, Type: nestedText, Required: e.repetition == repetitionRequired}
	}
	return e.describeLeaf()
}

// describeLeaf classifies an element that has values.
func (e schemaElement) describeLeaf() Column {
	s := e.settled()
	c := Column{Name: e.name, Type: s.String(), Required: e.repetition == repetitionRequired}
	c.Scale, c.Precision, c.Physical, c.Length = s.scale, s.precision, Physical(s.physical), s.length
	c.Unit, c.Bits, c.Unsigned = s.unit, s.bits, s.bits > 0 && !s.signed
	c.JSON = e.logical == logicalJSON || e.logical == none && e.converted == convertedJSON
	c.Kind, c.Contradiction = s.kind(), e.contradiction()
	return c
}

func (e schemaElement) decimal() bool {
	return e.logical == logicalDecimal || e.logical == none && e.converted == convertedDecimal
}

func (e schemaElement) kind() Kind {
	if e.logical == logicalNull {
		return Null
	}
	switch Physical(e.physical) {
	case Boolean:
		return Bool
	case Float32, Float64:
		return Float
	case Old96:
		return Int96
	case Bytes:
		if e.decimal() {
			return Decimal
		}
		return e.bytesKind()
	case FixedBytes:
		return e.fixedKind()
	case Int32, Int64:
		if e.decimal() {
			return Decimal
		}
		return e.intKind()
	}
	return Other
}

func (e schemaElement) bytesKind() Kind {
	switch e.logical {
	case logicalString, logicalEnum, logicalJSON:
		return String
	case none:
		switch e.converted {
		case convertedUTF8, convertedEnum, convertedJSON:
			return String
		case none:
			return Binary
		}
	}
	return Other
}

func (e schemaElement) fixedKind() Kind {
	const halfBytes, uuidBytes = 2, 16
	switch {
	case e.decimal() && e.length > 0:
		return Decimal
	case e.logical == logicalFloat16 && e.length == halfBytes:
		return Half
	case e.logical == logicalUUID && e.length == uuidBytes:
		return UUID
	case e.logical == none && e.converted == none && e.length > 0:
		return Fixed
	}
	return Other
}

func (e schemaElement) intKind() Kind {
	switch {
	case e.logical == logicalTime && e.unit == Milliseconds && Physical(e.physical) == Int32,
		e.logical == logicalTime && e.unit == Microseconds && Physical(e.physical) == Int64:
		return Time
	case e.logical == logicalDate, e.logical == none && e.converted == convertedDate:
		return Date
	case e.logical == logicalTimestamp, e.logical == none && e.unit != NoUnit:
		switch {
		case Physical(e.physical) != Int64 || e.unit < Milliseconds || e.unit > Nanoseconds:
			return Other
		case e.utc:
			return TimestampTZ
		}
		return Timestamp
	case e.logical == none && e.converted == none:
		return Int
	case e.logical == logicalInteger, e.logical == none && e.bits > 0:
		switch e.bits {
		case 8, 16, 32, 64:
			return Int
		}
	}
	return Other
}

// IntBits returns the number of bits of an integer column's values: those of its physical type, even if fewer
// are declared.
func (col Column) IntBits() int {
	bits := 64
	if col.Physical == Int32 {
		bits = 32
	}
	if col.Unsigned {
		bits++
	}
	return bits
}

// String is the type for people, as the file has it.
func (e schemaElement) String() string {
	name := numbered("physical type", e.physical, "BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY",
		"FIXED_LEN_BYTE_ARRAY")
	if Physical(e.physical) == FixedBytes {
		name += fmt.Sprintf("(%d)", e.length)
	}
	switch {
	case e.decimal():
		return fmt.Sprintf("%s DECIMAL(%d,%d)", name, e.precision, e.scale)
	case e.logical == logicalTimestamp:
		name += " TIMESTAMP(" + numbered("unit", int(e.unit), "", "MILLIS", "MICROS", "NANOS") + ")"
		if e.utc {
			name += " in UTC"
		}
		return name
	case e.logical == logicalInteger && e.signed:
		return fmt.Sprintf("%s INT(%d)", name, e.bits)
	case e.logical == logicalInteger:
		return fmt.Sprintf("%s UINT(%d)", name, e.bits)
	case e.logical != none:
		return name + " " + numbered("logical type", e.logical, "", "STRING", "MAP", "LIST", "ENUM", "DECIMAL", "DATE",
			"TIME", "TIMESTAMP", "",
			"INTEGER", "NULL", "JSON", "BSON", "UUID", "FLOAT16", "VARIANT", "GEOMETRY", "GEOGRAPHY")
	case e.converted != none:
		return name + " " + numbered("converted type", e.converted, "UTF8", "MAP", "MAP_KEY_VALUE", "LIST",
			"ENUM", "DECIMAL", "DATE", "TIME_MILLIS", "TIME_MICROS",
			"TIMESTAMP_MILLIS", "TIMESTAMP_MICROS", "UINT_8", "UINT_16", "UINT_32", "UINT_64",
			"INT_8", "INT_16", "INT_32", "INT_64", "JSON", "BSON", "INTERVAL")
	}
	return name
}

// numbered names the n-th of names, or says what n is.
func numbered(what string, n int, names ...string) string {
	if n < 0 || n >= len(names) || names[n] == "" {
		return fmt.Sprintf("%s %d", what, n)
	}
	return names[n]
}
