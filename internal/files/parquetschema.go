package files

import (
	"errors"
	"fmt"
)

// parquetColumn is a top-level column of a file.
type parquetColumn struct {
	name     string
	kind     parquetKind
	physical string // type for people, as the file has it
	required bool   // cannot be NULL
	scale    int    // of decimals
	prec     int
}

// parquetKind is what a column's values are, as far as reading them goes.
type parquetKind string

const (
	kindString      parquetKind = "string"
	kindBinary      parquetKind = "binary"       // BYTE_ARRAY without UTF8
	kindInt         parquetKind = "int"          // signed, up to 64 bits
	kindSmallInt    parquetKind = "small int"    // up to 32 bits: exact in a float
	kindUint64      parquetKind = "uint64"       //
	kindFloat       parquetKind = "float"        //
	kindBool        parquetKind = "bool"         //
	kindDecimal     parquetKind = "decimal"      //
	kindTimestamp   parquetKind = "timestamp"    // DuckDB: TIMESTAMP, _MS, _NS
	kindTimestampTZ parquetKind = "timestamptz"  // adjusted to UTC
	kindDate        parquetKind = "date"         //
	kindNull        parquetKind = "null"         // of no type: a writer had nothing but nulls
	kindOther       parquetKind = "not readable" // groups, lists, times, UUIDs …
)

// Numbers of the Parquet format: physical types, converted types (the older
// annotation, ids as in convertedNames) and logical types.
const (
	physicalBoolean = 0
	physicalInt32   = 1
	physicalInt64   = 2
	physicalInt96   = 3
	physicalFloat   = 4
	physicalDouble  = 5
	physicalBytes   = 6
	physicalFixed   = 7

	convertedUTF8            = 0
	convertedEnum            = 4
	convertedDecimal         = 5
	convertedDate            = 6
	convertedTimestampMillis = 9
	convertedTimestampMicros = 10
	convertedUint8           = 11
	convertedUint16          = 12
	convertedUint32          = 13
	convertedUint64          = 14
	convertedInt8            = 15
	convertedInt16           = 16
	convertedInt32           = 17
	convertedInt64           = 18
	convertedJSON            = 19

	logicalString    = 1
	logicalEnum      = 4
	logicalDecimal   = 5
	logicalDate      = 6
	logicalTimestamp = 8
	logicalInteger   = 10
	logicalNull      = 11
	logicalJSON      = 12

	repetitionRequired = 0
	repetitionRepeated = 2

	none = -1 // an annotation that is not there
)

// schemaElement is a node of the flattened schema.
type schemaElement struct {
	physical, repetition, converted int
	name                            string
	children                        int
	scale, precision                int
	logical                         int  // id in the union LogicalType
	utc                             bool // of timestamps
	bits                            int  // of integers
	signed                          bool
}

// decodeElement reads a SchemaElement.
func decodeElement(r *thriftReader) schemaElement {
	e := schemaElement{physical: none, repetition: none, converted: none, logical: none}
	r.structure(func(id int64, t thriftType) bool {
		switch id {
		case 1:
			e.physical = r.int(t)
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
		case 10:
			if t != thriftStruct {
				return false
			}
			r.structure(func(id int64, t thriftType) bool { return e.decodeLogical(r, int(id), t) })
		default:
			return false
		}
		return true
	})
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
			e.scale = r.int(t)
		case member == logicalDecimal && id == 2:
			e.precision = r.int(t)
		case member == logicalTimestamp && id == 1:
			e.utc = r.bool(t)
		case member == logicalInteger && id == 1:
			e.bits = r.int(t)
		case member == logicalInteger && id == 2:
			e.signed = r.bool(t)
		default:
			return false
		}
		return true
	})
	return true
}

// skipElement passes over an element of the flattened tree and all below it.
func skipElement(schema []schemaElement, at int) (int, error) {
	for open := 1; open > 0; open-- {
		if at >= len(schema) {
			return 0, errors.New("the schema's tree is not complete")
		}
		n := schema[at].children
		if n < 0 || n > len(schema) {
			return 0, fmt.Errorf("schema element %q has %d children", schema[at].name, n)
		}
		open += n
		at++
	}
	return at, nil
}

// describe classifies a top-level element the way DuckDB reads it.
func (e schemaElement) describe() parquetColumn {
	c := parquetColumn{name: e.name, kind: kindOther, physical: e.String(), required: e.repetition == repetitionRequired}
	if e.children > 0 || e.physical == none || e.repetition == repetitionRepeated {
		c.physical = "nested or repeated"
		return c
	}
	c.scale, c.prec = e.scale, e.precision
	c.kind = e.kind()
	return c
}

func (e schemaElement) kind() parquetKind {
	if e.logical == logicalNull {
		return kindNull
	}
	decimal := e.logical == logicalDecimal || e.logical == none && e.converted == convertedDecimal
	switch e.physical {
	case physicalBoolean:
		return kindBool
	case physicalFloat, physicalDouble:
		return kindFloat
	case physicalInt96:
		return kindTimestamp
	case physicalBytes, physicalFixed:
		if decimal {
			return kindDecimal
		}
		if e.physical == physicalBytes {
			return e.bytesKind()
		}
	case physicalInt32, physicalInt64:
		if decimal {
			return kindDecimal
		}
		return e.intKind()
	}
	return kindOther
}

func (e schemaElement) bytesKind() parquetKind {
	switch e.logical {
	case logicalString, logicalEnum, logicalJSON:
		return kindString
	case none:
		switch e.converted {
		case convertedUTF8, convertedEnum, convertedJSON:
			return kindString
		case none:
			return kindBinary
		}
	}
	return kindOther
}

func (e schemaElement) intKind() parquetKind {
	switch e.logical {
	case logicalDate:
		return kindDate
	case logicalTimestamp:
		if e.utc {
			return kindTimestampTZ
		}
		return kindTimestamp
	case logicalInteger:
		return sizedInt(e.bits, e.signed)
	case none:
	default:
		return kindOther
	}
	switch e.converted {
	case none:
		return sizedInt(map[int]int{physicalInt32: 32, physicalInt64: 64}[e.physical], true)
	case convertedDate:
		return kindDate
	case convertedTimestampMillis, convertedTimestampMicros:
		return kindTimestamp
	case convertedUint8, convertedUint16, convertedInt8, convertedInt16, convertedInt32:
		return kindSmallInt
	case convertedUint32, convertedInt64:
		return kindInt
	case convertedUint64:
		return kindUint64
	}
	return kindOther
}

func sizedInt(bits int, signed bool) parquetKind {
	switch {
	case !signed && bits == 64:
		return kindUint64
	case bits < 32 || bits == 32 && signed:
		return kindSmallInt
	}
	return kindInt
}

// String is the type for people, as the file has it.
func (e schemaElement) String() string {
	name := numbered("physical type", e.physical, "BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
	switch {
	case e.logical == logicalDecimal || e.logical == none && e.converted == convertedDecimal:
		return fmt.Sprintf("%s DECIMAL(%d,%d)", name, e.precision, e.scale)
	case e.logical == logicalTimestamp && e.utc:
		return name + " TIMESTAMP in UTC"
	case e.logical == logicalInteger && e.signed:
		return fmt.Sprintf("%s INT(%d)", name, e.bits)
	case e.logical == logicalInteger:
		return fmt.Sprintf("%s UINT(%d)", name, e.bits)
	case e.logical != none:
		return name + " " + numbered("logical type", e.logical, "", "STRING", "MAP", "LIST", "ENUM", "DECIMAL", "DATE", "TIME", "TIMESTAMP", "",
			"INTEGER", "NULL", "JSON", "BSON", "UUID", "FLOAT16", "VARIANT", "GEOMETRY", "GEOGRAPHY")
	case e.converted != none:
		return name + " " + numbered("converted type", e.converted, "UTF8", "MAP", "MAP_KEY_VALUE", "LIST", "ENUM", "DECIMAL", "DATE", "TIME_MILLIS", "TIME_MICROS",
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
