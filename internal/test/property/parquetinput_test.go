package property

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"slices"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
)

// parquetForm is the layout of a source in Parquet.
type parquetForm struct {
	g       gen
	options []parquet.WriterOption
	columns []parquetColumn // in the order of the file, which is that of their names
}

type parquetColumn struct {
	column
	at       int
	node     parquet.Node
	optional bool
	value    func(v any) parquet.Value
}

func (g gen) parquetForm(s *source) *parquetForm {
	f := &parquetForm{g: g, options: []parquet.WriterOption{
		parquet.MaxRowsPerRowGroup(pick(g, int64(1), 3, 50, 1000, 1_000_000)), parquet.DataPageVersion(pick(g, 1, 2)),
		parquet.PageBufferSize(pick(g, 64, 1024, 1<<20)),
		parquet.Compression(pick[compress.Codec](g, (&parquet.Uncompressed), &parquet.Snappy, &parquet.Gzip,
			&parquet.Zstd))}}
	if len(s.rows) > 500 {
		f.options[0] = parquet.MaxRowsPerRowGroup(pick(g, int64(500), 5000, 1_000_000))
	}
	for i, c := range s.columns {
		f.columns = append(f.columns, g.parquetColumn(c, i, s.rows))
	}
	slices.SortFunc(f.columns, func(a, b parquetColumn) int {
		return bytes.Compare([]byte(a.header), []byte(b.header))
	})
	return f
}

func (g gen) parquetColumn(c column, at int, rows [][]any) parquetColumn {
	out := parquetColumn{column: c, at: at, optional: c.null || g.oneIn(2)}
	var values []any
	for _, row := range rows {
		if row[at] != nil {
			values = append(values, row[at])
		}
	}
	out.node, out.value = g.physical(c.kind, values)
	if g.oneIn(3) && c.kind != boolKind {
		out.node = parquet.Encoded(out.node, &parquet.RLEDictionary)
	}
	if out.optional {
		out.node = parquet.Optional(out.node)
	}
	return out
}

func all[T any](values []any, holds func(T) bool) bool {
	return !slices.ContainsFunc(values, func(v any) bool { return !holds(v.(T)) })
}

// physical chooses a type that holds all of the values, the narrow ones where
// they fit.
func (g gen) physical(k kind, values []any) (parquet.Node, func(any) parquet.Value) {
	switch k {
	case intKind:
		if all(values, func(v int64) bool { return v == int64(int32(v)) }) && g.oneIn(2) {
			return parquet.Int(32), func(v any) parquet.Value { return parquet.Int32Value(int32(v.(int64))) }
		}
		return pick(g, parquet.Int(64), parquet.Leaf(parquet.Int64Type)),
			func(v any) parquet.Value { return parquet.Int64Value(v.(int64)) }
	case floatKind:
		if all(values, func(v float64) bool { return v == float64(float32(v)) }) && g.oneIn(2) {
			return parquet.Leaf(parquet.FloatType),
				func(v any) parquet.Value { return parquet.FloatValue(float32(v.(float64))) }
		}
		return parquet.Leaf(parquet.DoubleType), func(v any) parquet.Value { return parquet.DoubleValue(v.(float64)) }
	case decimalKind:
		return g.decimalColumn(values)
	case boolKind:
		return parquet.Leaf(parquet.BooleanType), func(v any) parquet.Value { return parquet.BooleanValue(v.(bool)) }
	case timeKind:
		return g.timeColumn(values)
	}
	return parquet.String(), func(v any) parquet.Value { return parquet.ByteArrayValue([]byte(v.(string))) }
}

// decimalColumn has two digits behind the point, or three with a zero at the end.
func (g gen) decimalColumn(values []any) (parquet.Node, func(any) parquet.Value) {
	scale := pick(g, 2, 2, 3)
	shift := int64(math.Pow10(scale - 2))
	if all(values, func(v cents) bool { return v > -1e6 && v < 1e6 }) && g.oneIn(2) {
		return parquet.Decimal(scale, 9, parquet.Int32Type),
			func(v any) parquet.Value { return parquet.Int32Value(int32(int64(v.(cents)) * shift)) }
	}
	if g.oneIn(2) {
		return parquet.Decimal(scale, 18, parquet.Int64Type),
			func(v any) parquet.Value { return parquet.Int64Value(int64(v.(cents)) * shift) }
	}
	size := pick(g, 9, 12, 16)
	return parquet.Decimal(scale, 18, parquet.FixedLenByteArrayType(size)), func(v any) parquet.Value {
		n := int64(v.(cents)) * shift
		fixed := make([]byte, size)
		if n < 0 { // two's complement, sign extended
			for i := range fixed {
				fixed[i] = 0xFF
			}
		}
		binary.BigEndian.PutUint64(fixed[size-8:], uint64(n))
		return parquet.FixedLenByteArrayValue(fixed)
	}
}

func (g gen) timeColumn(values []any) (parquet.Node, func(any) parquet.Value) {
	if all(values, func(t time.Time) bool { return t.Unix()%86400 == 0 && t.Nanosecond() == 0 }) && g.oneIn(2) {
		return parquet.Date(), func(v any) parquet.Value {
			return parquet.Int32Value(int32(v.(time.Time).Unix() / 86400))
		}
	}
	adjusted := g.oneIn(2)
	if all(values, func(t time.Time) bool { return t.Year() > 1700 && t.Year() < 2250 }) && g.oneIn(3) {
		return parquet.TimestampAdjusted(parquet.Nanosecond, adjusted),
			func(v any) parquet.Value { return parquet.Int64Value(v.(time.Time).UnixNano()) }
	}
	if g.oneIn(2) {
		return parquet.TimestampAdjusted(parquet.Microsecond, adjusted),
			func(v any) parquet.Value { return parquet.Int64Value(v.(time.Time).UnixMicro()) }
	}
	return parquet.TimestampAdjusted(parquet.Millisecond, adjusted),
		func(v any) parquet.Value { return parquet.Int64Value(v.(time.Time).UnixMilli()) }
}

// reader is the script's description of the file.
func (f *parquetForm) reader() object {
	var columns object
	for _, c := range f.columns {
		spec := object{{"col_type", c.kind.String()}, {"parquet", object{{"col_name", c.header}}}}
		if c.null {
			spec = append(spec, entry{"nullable", true})
		}
		columns = append(columns, entry{c.name, spec})
	}
	return columns
}

func (f *parquetForm) file(rows [][]any) (string, error) {
	group := parquet.Group{}
	for _, c := range f.columns {
		group[c.header] = c.node
	}
	var b bytes.Buffer
	w := parquet.NewWriter(&b, append([]parquet.WriterOption{parquet.NewSchema("rows", group)}, f.options...)...)
	for _, row := range rows {
		out := make(parquet.Row, 0, len(f.columns))
		for i, c := range f.columns {
			switch v := row[c.at]; {
			case v == nil:
				out = append(out, parquet.NullValue().Level(0, 0, i))
			case c.optional:
				out = append(out, c.value(v).Level(0, 1, i))
			default:
				out = append(out, c.value(v).Level(0, 0, i))
			}
		}
		if _, err := w.WriteRows([]parquet.Row{out}); err != nil {
			return "", fmt.Errorf("write a row: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return "", fmt.Errorf("close: %w", err)
	}
	return b.String(), nil
}

// fixedDecimal reads the two's complement of a decimal in bytes.
func fixedDecimal(b []byte) *big.Int {
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(len(b))*8))
	}
	return n
}
