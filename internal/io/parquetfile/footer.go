package parquetfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

const (
	// maxFooterBytes bounds a footer: more is a damaged file.
	maxFooterBytes = 64 << 20

	// firstFooterReadBytes is read from a file's end at once: most footers fit.
	firstFooterReadBytes = 32 << 10

	magicBytes = 4
	tailBytes  = 8 // length of the footer, magic
)

// Footer is the parsed footer of a Parquet file.
type Footer struct {
	Rows     int64
	RawBytes int64
	Columns  []Column // top level, in the order of the file
	Groups   []Group
	Nested   []NestedLeaf

	leafColumn []int     // for each leaf its column, -1 inside nested ones
	leaves     []Column  // for each leaf itself
	leafOf     []int     // for each leaf its column, the nested one too
	elements   []Element // of Columns
	schema     []schemaElement
	rootOf     []int // for each column its element in the schema
	leafFrom   []int // for each column its first leaf
	dataEnd    int64 // where the footer starts
}

// DataEnd returns the offset at which the footer starts.
func (f *Footer) DataEnd() int64 { return f.dataEnd }

// NestedLeaf is a leaf of a nested or repeated column, as far as it can be
// described by itself.
type NestedLeaf struct {
	Column
	Of   int // index in Columns
	Leaf int // in the column, from 0
}

// Group is a row group.
type Group struct {
	FirstRow, Rows int64
	Bytes          int64 // compressed
	RawBytes       int64 // uncompressed
	From, To       int64 // where all of its pages lie in the file, as it says

	Chunks []Chunk // of the wanted columns, in the order of the file
}

// Chunk is a column of a row group.
type Chunk struct {
	Column int // index in Columns
	leaf   int
	nested bool // it is within a nested column: its rows have any number of values

	codec             Codec
	values            int64
	raw, compressed   int64
	dataAt, dictAt    int64
	encodings         uint32 // a bit for each
	nullCount         int64  // none: not told
	least, greatest   []byte // as the statistics have them; nil: not told
	encrypted, remote bool
	histogram         int // entries of the histogram of definition levels, -1: none
}

// Codec is a compression, as the format numbers them.
type Codec int

// The codecs that are looked into here, and those that DuckDB does not know.
const (
	Uncompressed Codec = 0
	Gzip         Codec = 2
	lzo          Codec = 3
	oldLZ4       Codec = 5 // framed as Hadoop does; LZ4_RAW took its place
)

// Weigh raises the uncompressed sizes, in which dictionaries hide repeated
// values, to what the rows take in memory at least.
func (f *Footer) Weigh(rowBytes int64) {
	f.RawBytes = 0
	for i := range f.Groups {
		g := &f.Groups[i]
		g.RawBytes = max(g.RawBytes, g.Rows*rowBytes)
		f.RawBytes += g.RawBytes
	}
}

// ReadFooter reads a file's footer, which costs one or two reads. The groups
// get the chunks of the columns that are wanted; nil is none.
func ReadFooter(path string, want func(name string) bool) (*Footer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadFooterOf(f, want)
}

// ReadFooterOf is ReadFooter for a file that is open.
func ReadFooterOf(f *os.File, want func(name string) bool) (*Footer, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	raw, err := footerBytes(f, st.Size())
	if err != nil {
		return nil, err
	}
	out, err := decodeFooter(raw, want)
	if err != nil {
		return nil, &DamagedError{What: "its footer cannot be decoded", Err: err}
	}
	out.dataEnd = st.Size() - tailBytes - int64(len(raw))
	return out, nil
}

// DamagedError says in which way a file is not a readable Parquet file.
type DamagedError struct {
	What   string
	Column string // "": the file as a whole
	Err    error
	// Unsupported says that the file may be sound, and is of a kind that is not read.
	Unsupported bool
}

func (e *DamagedError) Error() string {
	text := e.What
	if e.Column != "" {
		text = fmt.Sprintf("column %q: %s", e.Column, text)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *DamagedError) Unwrap() error { return e.Err }

func damaged(format string, args ...any) *DamagedError {
	return &DamagedError{What: fmt.Sprintf(format, args...)}
}

func unsupported(format string, args ...any) *DamagedError {
	d := damaged(format, args...)
	d.Unsupported = true
	return d
}

// footerBytes finds the serialised metadata at the end of the file.
func footerBytes(f io.ReaderAt, size int64) ([]byte, error) {
	if size == 0 {
		return nil, damaged("the file is empty")
	}
	if size < magicBytes+tailBytes {
		return nil, damaged("%d bytes are too few", size)
	}
	tail := make([]byte, min(size, firstFooterReadBytes))
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil {
		return nil, err
	}
	switch magic := string(tail[len(tail)-magicBytes:]); magic {
	case "PAR1":
	case "PARE":
		return nil, unsupported("it is encrypted, which is not supported yet")
	default:
		return nil, damaged("it ends in %q instead of \"PAR1\" (truncated, or another format)", magic)
	}
	length := int64(binary.LittleEndian.Uint32(tail[len(tail)-tailBytes:]))
	if length > size-magicBytes-tailBytes || length > maxFooterBytes {
		return nil, damaged("it says that its footer has %d bytes, the file has %d", length, size)
	}
	if have := int64(len(tail) - tailBytes); length <= have {
		return tail[have-length : have], nil
	}
	raw := make([]byte, length)
	_, err := f.ReadAt(raw, size-tailBytes-length)
	return raw, err
}

// decodeFooter reads FileMetaData as far as planning and reading need it.
func decodeFooter(raw []byte, want func(name string) bool) (*Footer, error) {
	r := &thriftReader{data: raw}
	out := &Footer{}
	var schema []schemaElement
	var wanted []bool
	seen := r.structure(func(id int64, t thriftType) bool {
		switch id {
		case 2:
			r.list(t, thriftStruct, func() { schema = append(schema, decodeElement(r)) })
			if r.err == nil {
				r.check(out.describe(schema))
			}
			for _, c := range out.Columns {
				wanted = append(wanted, want != nil && want(c.Name))
			}
		case 3:
			out.Rows = r.integer(t)
		case 4:
			r.list(t, thriftStruct, func() { out.addGroup(r, wanted) })
		default:
			return false
		}
		return true
	})
	r.need(seen, fields(1, 2, 3, 4))
	if r.err == nil && len(r.data) > 0 {
		r.fail(errors.New("it ends before its bytes do"))
	}
	if r.err != nil {
		return nil, r.err
	}
	return out, out.finish()
}

// describe makes the columns of the flattened schema.
func (f *Footer) describe(schema []schemaElement) error {
	if len(schema) == 0 || len(f.Columns) > 0 {
		return errors.New("it has no schema, or two")
	}
	if schema[0].children < 0 || schema[0].children > len(schema) {
		return fmt.Errorf("schema element %q has %d children", schema[0].name, schema[0].children)
	}
	f.schema = schema
	at := 1
	for at < len(schema) {
		e := schema[at]
		f.rootOf, f.leafFrom = append(f.rootOf, at), append(f.leafFrom, len(f.leaves))
		if e.repetition < repetitionRequired || e.repetition > repetitionRepeated {
			return fmt.Errorf("schema element %q does not say whether it is required", e.name)
		}
		column := len(f.Columns)
		f.Columns = append(f.Columns, e.describe())
		next, leaves, err := skipElement(schema, at)
		if err != nil {
			return err
		}
		leaf := 0
		for i := at; i < next; i++ {
			if schema[i].leaf() {
				schema[i].leafIndex = leaf
				leaf++
			}
		}
		if f.Columns[column].Kind == Nested {
			for _, inner := range schema[at:next] {
				if inner.leaf() {
					f.Nested = append(f.Nested, NestedLeaf{Column: inner.describeLeaf(), Of: column,
						Leaf: inner.leafIndex})
				}
			}
			column = none
		}
		top := len(f.Columns) - 1
		f.elements = append(f.elements, Element{Column: f.Columns[top]})
		if f.Columns[top].Kind == Nested {
			f.elements[top] = elementOf(schema, at)
			f.Columns[top].Shape = f.elements[top].String()
		}
		for range leaves {
			f.leafColumn = append(f.leafColumn, column)
			f.leafOf = append(f.leafOf, top)
		}
		for _, inner := range schema[at:next] {
			if inner.leaf() {
				f.leaves = append(f.leaves, inner.describeLeaf())
			}
		}
		at = next
	}
	if len(f.Columns) != schema[0].children {
		return fmt.Errorf("the schema has %d columns and says %d", len(f.Columns), schema[0].children)
	}
	return nil
}

// finish checks what must agree.
func (f *Footer) finish() error {
	total := int64(0)
	for i, g := range f.Groups {
		if g.Rows < 0 || g.Bytes < 0 || g.RawBytes < 0 || g.Rows > f.Rows-total {
			return fmt.Errorf("row group %d has %d rows and %d bytes, the file %d rows", i, g.Rows, g.Bytes, f.Rows)
		}
		total += g.Rows
	}
	if total != f.Rows || f.RawBytes < 0 || len(f.Columns) == 0 && f.Rows > 0 {
		return fmt.Errorf("%d rows in row groups, %d in the file, %d columns", total, f.Rows, len(f.Columns))
	}
	return nil
}

// addGroup reads a RowGroup.
func (f *Footer) addGroup(r *thriftReader, wanted []bool) {
	g, columnBytes, leaf := Group{}, int64(0), 0
	if n := len(f.Groups); n > 0 {
		g.FirstRow = f.Groups[n-1].FirstRow + f.Groups[n-1].Rows
	}
	found := r.structure(func(id int64, t thriftType) bool {
		switch id {
		case 1:
			r.list(t, thriftStruct, func() {
				column, within := none, none
				if leaf < len(f.leafColumn) {
					column, within = f.leafColumn[leaf], f.leafOf[leaf]
				}
				c := f.decodeChunk(r, column)
				if c.leaf = leaf; column == none && within != none {
					column, c.Column, c.nested = within, within, true
				}
				leaf++
				columnBytes += c.compressed
				g.spread(c)
				if column != none && wanted[column] {
					g.Chunks = append(g.Chunks, c)
				}
			})
		case 2:
			g.RawBytes = r.integer(t)
			f.RawBytes += g.RawBytes
		case 3:
			g.Rows = r.integer(t)
		case 6:
			g.Bytes = r.integer(t)
		default:
			return false
		}
		return true
	})
	r.need(found, fields(1, 2, 3))
	if r.err == nil && leaf != len(f.leafColumn) {
		r.check(fmt.Errorf("row group %d has %d columns, the schema %d", len(f.Groups), leaf, len(f.leafColumn)))
	}
	if g.Bytes == 0 { // optional in the format
		g.Bytes = columnBytes
	}
	f.Groups = append(f.Groups, g)
}

// spread makes room in a group's extent for a chunk.
func (g *Group) spread(c Chunk) {
	from := c.dataAt
	if c.dictAt > 0 {
		from = min(from, c.dictAt)
	}
	if g.To == 0 {
		g.From = from
	}
	g.From, g.To = min(g.From, from), max(g.To, from+c.compressed)
}

// Whole gives the least and greatest value of a chunk of small whole numbers, as
// its statistics have them; ok is false if they do not tell.
func (c Chunk) Whole() (least, greatest int64, ok bool) {
	if len(c.least) != int32Bytes || len(c.greatest) != int32Bytes {
		return 0, 0, false
	}
	number := func(b []byte) int64 { return int64(int32(binary.LittleEndian.Uint32(b))) }
	return number(c.least), number(c.greatest), true
}

const int32Bytes = 4

// decodeChunk reads the ColumnChunk of a column, or of a leaf inside one.
func (f *Footer) decodeChunk(r *thriftReader, column int) Chunk {
	c := Chunk{Column: column, nullCount: none, histogram: none}
	seen := false
	r.structure(func(id int64, t thriftType) bool {
		switch {
		case id == 1:
			c.remote = true
		case id == 3 && t == thriftStruct:
			seen = true
			r.need(r.structure(func(id int64, t thriftType) bool { return f.decodeChunkData(r, &c, id, t) }),
				fields(1, 2, 3, 4, 5, 6, 7, 9))
			return true
		case id == 8, id == 9:
			c.encrypted = true
		}
		return false
	})
	if !seen && !c.encrypted && r.err == nil {
		r.check(errors.New("a column chunk does not say where it is"))
	}
	return c
}

// decodeChunkData reads a field of ColumnMetaData.
func (f *Footer) decodeChunkData(r *thriftReader, c *Chunk, id int64, t thriftType) bool {
	switch id {
	case 1:
		physical := r.int(t)
		if c.Column != none && r.err == nil && Physical(physical) != f.Columns[c.Column].Physical {
			r.check(fmt.Errorf("column %q has another type in a row group than in the schema",
				f.Columns[c.Column].Name))
		}
	case 2:
		r.list(t, thriftI32, func() {
			if e := r.varint(); e >= 0 && e < 32 {
				c.encodings |= 1 << e
			}
		})
	case 3:
		var path []string
		r.list(t, thriftBinary, func() { path = append(path, r.text(thriftBinary)) })
		if c.Column != none && r.err == nil && (len(path) != 1 || path[0] != f.Columns[c.Column].Name) {
			r.check(fmt.Errorf("column %q is called %q in a row group", f.Columns[c.Column].Name,
				strings.Join(path, ".")))
		}
	case 4:
		c.codec = Codec(r.int(t))
	case 5:
		c.values = r.integer(t)
	case 6:
		c.raw = r.integer(t)
	case 7:
		c.compressed = r.integer(t)
	case 9:
		c.dataAt = r.integer(t)
	case 11:
		c.dictAt = r.integer(t)
	case 12:
		return decodeStatistics(r, c, t)
	case 16:
		return decodeSizes(r, c, t)
	default:
		return false
	}
	return true
}

// decodeStatistics reads of Statistics what a damaged schema contradicts, and the
// extremes of short values.
func decodeStatistics(r *thriftReader, c *Chunk, t thriftType) bool {
	if t != thriftStruct {
		return false
	}
	r.structure(func(id int64, t thriftType) bool {
		switch {
		case id == 3:
			c.nullCount = r.integer(t)
		case id == 5 && t == thriftBinary:
			c.greatest = short(r.text(t))
		case id == 6 && t == thriftBinary:
			c.least = short(r.text(t))
		default:
			return false
		}
		return true
	})
	return true
}

// short keeps a value that may be a number.
func short(text string) []byte {
	const bytesMax = 8
	if len(text) > bytesMax {
		return nil
	}
	return []byte(text)
}

// decodeSizes reads of SizeStatistics what a damaged schema contradicts.
func decodeSizes(r *thriftReader, c *Chunk, t thriftType) bool {
	if t != thriftStruct {
		return false
	}
	r.structure(func(id int64, t thriftType) bool {
		if id != 3 {
			return false
		}
		c.histogram = 0
		r.list(t, thriftI64, func() { r.varint(); c.histogram++ })
		return true
	})
	return true
}

// Find finds a column by its exact name; found counts those that have it.
func (f *Footer) Find(name string) (column, found int) {
	column = none
	for i, c := range f.Columns {
		if c.Name == name {
			if found++; found == 1 {
				column = i
			}
		}
	}
	return column, found
}

// ByteStreamSplit reports whether a column of row groups [from, to) has pages in
// the encoding of that name.
func (f *Footer) ByteStreamSplit(column, from, to int) bool {
	for _, g := range f.Groups[from:to] {
		for _, c := range g.Chunks {
			if c.Column == column && c.encodings&(1<<encodingByteStreamSplit) != 0 {
				return true
			}
		}
	}
	return false
}

// SplitLeaves says of each leaf of a column whether it has pages in the encoding
// BYTE_STREAM_SPLIT in row groups [from, to).
func (f *Footer) SplitLeaves(column, from, to int) []bool {
	var out []bool
	for leaf, of := range f.leafOf {
		if of == column {
			out = append(out, f.splitLeaf(leaf, from, to))
		}
	}
	return out
}

func (f *Footer) splitLeaf(leaf, from, to int) bool {
	for _, g := range f.Groups[from:to] {
		for _, c := range g.Chunks {
			if c.leaf == leaf && c.encodings&(1<<encodingByteStreamSplit) != 0 {
				return true
			}
		}
	}
	return false
}

// Leaf is the leaf of the file that the chunk has values of.
func (c Chunk) Leaf() int { return c.leaf }

// Names lists the columns' names.
func (f *Footer) Names() []string {
	out := make([]string, len(f.Columns))
	for i, c := range f.Columns {
		out[i] = c.Name
	}
	return out
}

// SharedNames reports whether two columns' names differ in case at most.
func (f *Footer) SharedNames() bool {
	seen := make(map[string]bool, len(f.Columns))
	for _, c := range f.Columns {
		low := strings.ToLower(c.Name)
		if seen[low] {
			return true
		}
		seen[low] = true
	}
	return false
}
