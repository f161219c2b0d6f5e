package files

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"thalweg/internal/fault"
)

// footer is what a Parquet file says about itself.
type footer struct {
	rows     int64
	rawBytes int64
	columns  []parquetColumn // top level, in the order of the file
	groups   []rowGroup
}

type rowGroup struct {
	firstRow, rows int64
	bytes          int64 // compressed
}

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
	kindOther       parquetKind = "not readable" // groups, lists, times, UUIDs …
)

// readFooter reads a Parquet file's footer, which costs one or two reads.
func readFooter(path, u string) (*footer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, openFault(u, err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, openFault(u, err)
	}
	raw, err := footerBytes(f, st.Size())
	if err != nil {
		var damage *damagedError
		if errors.As(err, &damage) {
			return nil, damagedFault(u, damage.what, nil)
		}
		return nil, openFault(u, err)
	}
	meta, err := decodeFooter(raw)
	if err != nil {
		return nil, damagedFault(u, "its footer cannot be decoded", err)
	}
	out, err := describeFooter(meta)
	if err != nil {
		return nil, damagedFault(u, "its footer makes no sense", err)
	}
	return out, nil
}

// damagedError says in which way a file is not a Parquet file.
type damagedError struct{ what string }

func (e *damagedError) Error() string { return e.what }

func damagedFault(u, what string, cause error) *fault.Error {
	f := inputFault(fault.UserData, u, "not a readable Parquet file: %s", what)
	f.Err = cause
	f.Hint = "is the file complete, and Parquet at all?"
	return f
}

// footerBytes finds the serialised metadata at the end of the file.
func footerBytes(f io.ReaderAt, size int64) ([]byte, error) {
	const magicBytes, tailBytes = 4, 8
	if size == 0 {
		return nil, &damagedError{"the file is empty"}
	}
	if size < magicBytes+tailBytes {
		return nil, &damagedError{fmt.Sprintf("%d bytes are too few", size)}
	}
	tail := make([]byte, min(size, firstFooterReadBytes))
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil {
		return nil, err
	}
	switch magic := string(tail[len(tail)-magicBytes:]); magic {
	case "PAR1":
	case "PARE":
		return nil, &damagedError{"it is encrypted, which is not supported yet"}
	default:
		return nil, &damagedError{fmt.Sprintf("it ends in %q instead of \"PAR1\" (truncated, or another format)", magic)}
	}
	length := int64(binary.LittleEndian.Uint32(tail[len(tail)-tailBytes:]))
	if length > size-magicBytes-tailBytes || length > maxFooterBytes {
		return nil, &damagedError{fmt.Sprintf("it says that its footer has %d bytes, the file has %d", length, size)}
	}
	if have := int64(len(tail) - tailBytes); length <= have {
		return tail[have-length : have], nil
	}
	raw := make([]byte, length)
	_, err := f.ReadAt(raw, size-tailBytes-length)
	return raw, err
}

// decodeFooter turns whatever the decoder does with hostile bytes into an error.
func decodeFooter(raw []byte) (meta *format.FileMetaData, err error) {
	defer func() {
		if p := recover(); p != nil {
			meta, err = nil, fmt.Errorf("decoder failed: %v", p)
		}
	}()
	meta = &format.FileMetaData{}
	reader := new(thrift.CompactProtocol).NewReaderFromBytes(raw)
	if err := thrift.NewDecoder(reader).Decode(meta); err != nil {
		return nil, err
	}
	return meta, nil
}

// describeFooter keeps what planning and reading need.
func describeFooter(meta *format.FileMetaData) (*footer, error) {
	out := &footer{rows: meta.NumRows}
	if meta.NumRows < 0 || len(meta.Schema) == 0 {
		return nil, fmt.Errorf("%d rows, %d schema elements", meta.NumRows, len(meta.Schema))
	}
	first := int64(0)
	for i := range meta.RowGroups {
		rg := &meta.RowGroups[i]
		g := rowGroup{firstRow: first, rows: rg.NumRows, bytes: rg.TotalCompressedSize}
		if g.bytes == 0 { // optional in the format
			for k := range rg.Columns {
				g.bytes += rg.Columns[k].MetaData.TotalCompressedSize
			}
		}
		if g.rows < 0 || g.bytes < 0 {
			return nil, fmt.Errorf("row group %d has %d rows and %d bytes", i, g.rows, g.bytes)
		}
		first += g.rows
		out.rawBytes += rg.TotalByteSize
		out.groups = append(out.groups, g)
	}
	if first != out.rows {
		return nil, fmt.Errorf("%d rows in row groups, %d in the file", first, out.rows)
	}
	for at := 1; at < len(meta.Schema); {
		out.columns = append(out.columns, describeColumn(&meta.Schema[at]))
		next, err := skipElement(meta.Schema, at)
		if err != nil {
			return nil, err
		}
		at = next
	}
	return out, nil
}

// skipElement passes over an element of the flattened tree and all below it.
func skipElement(schema []format.SchemaElement, at int) (int, error) {
	for open := 1; open > 0; open-- {
		if at >= len(schema) {
			return 0, errors.New("the schema's tree is not complete")
		}
		if n, ok := schema[at].NumChildren.Get(); ok {
			if n < 0 || int(n) > len(schema) {
				return 0, fmt.Errorf("schema element %q has %d children", schema[at].Name, n)
			}
			open += int(n)
		}
		at++
	}
	return at, nil
}

// describeColumn classifies a top-level element the way DuckDB reads it.
func describeColumn(e *format.SchemaElement) parquetColumn {
	rep, _ := e.RepetitionType.Get()
	c := parquetColumn{name: e.Name, kind: kindOther, required: rep == format.Required}
	t, leaf := e.Type.Get()
	if !leaf || rep == format.Repeated {
		c.physical = "nested or repeated group"
		return c
	}
	c.physical = t.String()
	logical := e.LogicalType.Value
	converted, hasConverted := e.ConvertedType.Get()
	if logical != nil {
		c.physical += " " + logical.String()
	} else if hasConverted {
		c.physical += " " + convertedName(converted)
	}
	if s, ok := e.Scale.Get(); ok {
		c.scale = int(s)
	}
	if p, ok := e.Precision.Get(); ok {
		c.prec = int(p)
	}
	if d, ok := logical.(*format.DecimalType); ok {
		c.scale, c.prec = int(d.Scale), int(d.Precision)
	}
	c.kind = classify(t, logical, converted, hasConverted)
	return c
}

func classify(t format.Type, logical format.LogicalTypeValue, converted deprecated.ConvertedType, hasConverted bool) parquetKind {
	_, logicalDecimal := logical.(*format.DecimalType)
	decimal := logicalDecimal || hasConverted && converted == deprecated.Decimal
	plain := logical == nil && !hasConverted
	switch t {
	case format.Boolean:
		return kindBool
	case format.Float, format.Double:
		return kindFloat
	case format.Int96:
		return kindTimestamp
	case format.ByteArray:
		return classifyBytes(logical, converted, hasConverted, decimal)
	case format.FixedLenByteArray:
		if decimal {
			return kindDecimal
		}
		return kindOther
	case format.Int32, format.Int64:
		if decimal {
			return kindDecimal
		}
		if plain {
			return intKind(t == format.Int32, 64, true)
		}
		return classifyInt(t, logical, converted)
	}
	return kindOther
}

func classifyBytes(logical format.LogicalTypeValue, converted deprecated.ConvertedType, hasConverted, decimal bool) parquetKind {
	switch logical.(type) {
	case *format.StringType, *format.EnumType, *format.JsonType:
		return kindString
	case nil:
	default:
		if !decimal {
			return kindOther
		}
	}
	switch {
	case decimal:
		return kindDecimal
	case !hasConverted:
		return kindBinary
	case converted == deprecated.UTF8 || converted == deprecated.Enum || converted == deprecated.Json:
		return kindString
	}
	return kindOther
}

func classifyInt(t format.Type, logical format.LogicalTypeValue, converted deprecated.ConvertedType) parquetKind {
	switch l := logical.(type) {
	case *format.DateType:
		return kindDate
	case *format.TimestampType:
		if l.IsAdjustedToUTC {
			return kindTimestampTZ
		}
		return kindTimestamp
	case *format.IntType:
		return intKind(t == format.Int32, int(l.BitWidth), l.IsSigned)
	case nil:
	default:
		return kindOther
	}
	switch converted {
	case deprecated.Date:
		return kindDate
	case deprecated.TimestampMillis, deprecated.TimestampMicros:
		return kindTimestamp // DuckDB reads those without a logical type as local: they are UTC
	case deprecated.Int8, deprecated.Int16, deprecated.Int32, deprecated.Uint8, deprecated.Uint16:
		return kindSmallInt
	case deprecated.Int64, deprecated.Uint32:
		return kindInt
	case deprecated.Uint64:
		return kindUint64
	}
	return kindOther
}

func intKind(int32Storage bool, bits int, signed bool) parquetKind {
	switch {
	case !signed && bits == 64 && !int32Storage:
		return kindUint64
	case !signed && bits == 32:
		return kindInt
	case int32Storage || bits <= 32:
		return kindSmallInt
	}
	return kindInt
}

// column finds a column by its exact name.
func (f *footer) column(name string) (parquetColumn, bool) {
	for _, c := range f.columns {
		if c.name == name {
			return c, true
		}
	}
	return parquetColumn{}, false
}

// twin finds another column whose name differs from name in case only: DuckDB
// cannot tell them apart.
func (f *footer) twin(name string) (string, bool) {
	for _, c := range f.columns {
		if c.name != name && strings.EqualFold(c.name, name) {
			return c.name, true
		}
	}
	return "", false
}

// hidesRowNumber reports whether a column of the file has the name under
// which DuckDB numbers rows, which makes the numbers unreachable.
func (f *footer) hidesRowNumber() bool {
	for _, c := range f.columns {
		if strings.EqualFold(c.name, "file_row_number") || strings.EqualFold(c.name, "file_index") {
			return true
		}
	}
	return false
}

// convertedName is the name of a type of the older annotation.
func convertedName(t deprecated.ConvertedType) string {
	names := []string{"UTF8", "MAP", "MAP_KEY_VALUE", "LIST", "ENUM", "DECIMAL", "DATE", "TIME_MILLIS", "TIME_MICROS",
		"TIMESTAMP_MILLIS", "TIMESTAMP_MICROS", "UINT_8", "UINT_16", "UINT_32", "UINT_64",
		"INT_8", "INT_16", "INT_32", "INT_64", "JSON", "BSON", "INTERVAL"}
	if t < 0 || int(t) >= len(names) {
		return fmt.Sprintf("converted type %d", t)
	}
	return names[t]
}
