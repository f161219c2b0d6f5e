package parquetfile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// ViewColumn is a column of a view.
type ViewColumn struct {
	Name   string
	Column int    // index in the file's columns
	As     Form   // of a column that is not nested
	Leaves []Form // of a nested one, for each of its leaves
}

// Form is the type under which a view shows a column's bytes.
type Form int

// The forms.
const (
	// Plain are the bytes of the physical type: INT32 and INT64 signed, all
	// texts and decimals as bytes.
	Plain Form = iota
	// WideDecimal makes a DECIMAL of 38 digits of FIXED_LEN_BYTE_ARRAY of at
	// most 16 bytes, with the scale of the file; of INT96 (twelve bytes) too,
	// with scale 0.
	WideDecimal
	// OldTimestamp keeps INT96 what it is.
	OldTimestamp
	// AsFloat makes a FLOAT of INT32 and a DOUBLE of INT64, whose bits are the
	// number: BYTE_STREAM_SPLIT lays their bytes out alike.
	AsFloat
	// Kept has the type and the annotation of the file.
	Kept
)

// WriteView writes to path a Parquet file with columns of row groups
// [from, to): the bytes of their chunks are copied from file. pages finds the
// bytes of a leaf's chunk, as VerifyChunk found them.
func (f *Footer) WriteView(ctx context.Context, file *os.File, path string, from, to int, columns []ViewColumn,
	pages func(group, leaf int) Pages) (err error) {
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	v := view{f: f, columns: columns, at: magicBytes}
	v.describe()
	if _, err := out.WriteString("PAR1"); err != nil {
		return err
	}
	for group := from; group < to; group++ {
		chunks, err := v.copyGroup(ctx, out, file, group, pages)
		if err != nil {
			return err
		}
		v.groups = append(v.groups, chunks)
		v.rows = append(v.rows, f.Groups[group].Rows)
	}
	foot := v.footer()
	foot = binary.LittleEndian.AppendUint32(foot, uint32(len(foot)))
	_, err = out.Write(append(foot, "PAR1"...))
	return err
}

// view is a view that is being written.
type view struct {
	f       *Footer
	columns []ViewColumn
	schema  []viewElement // of the columns, without the root
	leaves  []viewElement
	at      int64
	groups  [][]viewChunk // by row group and leaf
	rows    []int64
}

// viewElement is an element of the schema of a view.
type viewElement struct {
	schemaElement
	path []string
	leaf int // of the file
	as   Form
}

// describe makes the schema.
func (v *view) describe() {
	for _, col := range v.columns {
		v.subtree(v.f.rootOf[col.Column], []string{col.Name}, col)
	}
}

// subtree adds an element of the file and all below it, and gives the next.
func (v *view) subtree(at int, path []string, col ViewColumn) (next int) {
	e := viewElement{schemaElement: v.f.schema[at], path: path, leaf: none, as: Kept}
	e.name = path[len(path)-1]
	if e.schemaElement.leaf() {
		e.leaf, e.as = v.f.leafFrom[col.Column]+e.leafIndex, col.As
		if col.Leaves != nil {
			e.as = col.Leaves[e.leafIndex]
		}
		v.leaves = append(v.leaves, e)
	}
	v.schema = append(v.schema, e)
	at++
	for range e.children {
		at = v.subtree(at, append(slices.Clone(path), v.f.schema[at].name), col)
	}
	return at
}

// viewChunk is a chunk at its new place.
type viewChunk struct {
	Chunk
	bytes int64
}

// copyGroup copies the chunks of a row group, each once.
func (v *view) copyGroup(ctx context.Context, out, file *os.File, group int,
	pages func(group, leaf int) Pages) ([]viewChunk, error) {
	copied := map[int]viewChunk{}
	list := make([]viewChunk, len(v.leaves))
	for i, e := range v.leaves {
		c, ok := copied[e.leaf]
		if !ok {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			source, err := v.f.chunk(group, e.leaf)
			if err != nil {
				return nil, err
			}
			p := pages(group, e.leaf)
			// From file to file the kernel copies by itself.
			if _, err := file.Seek(p.Start, io.SeekStart); err != nil {
				return nil, err
			}
			if _, err := io.CopyN(out, file, p.End-p.Start); err != nil {
				return nil, fmt.Errorf("copy column %q: %w", v.f.Columns[v.f.leafOf[e.leaf]].Name, err)
			}
			c = viewChunk{source, p.End - p.Start}
			c.dataAt = v.at + p.DataAt - p.Start
			c.dictAt = 0
			if p.DictAt > 0 {
				c.dictAt = v.at + p.DictAt - p.Start
			}
			v.at += c.bytes
			copied[e.leaf] = c
		}
		list[i] = c
	}
	return list, nil
}

// chunk finds the chunk of a leaf.
func (f *Footer) chunk(group, leaf int) (Chunk, error) {
	for _, c := range f.Groups[group].Chunks {
		if c.leaf == leaf {
			return c, nil
		}
	}
	return Chunk{}, fmt.Errorf("row group %d was read without leaf %d", group, leaf)
}

// footer serialises the view's FileMetaData.
func (v *view) footer() []byte {
	w := &thriftWriter{}
	w.structure(func(s *thriftStructWriter) {
		s.integer(1, thriftI32, 1)
		s.list(2, thriftStruct, 1+len(v.schema), func(i int) {
			w.structure(func(s *thriftStructWriter) {
				if i == 0 {
					s.text(4, "view")
					s.integer(5, thriftI32, int64(len(v.columns)))
					return
				}
				v.schema[i-1].write(s)
			})
		})
		total := int64(0)
		for _, n := range v.rows {
			total += n
		}
		s.integer(3, thriftI64, total)
		s.list(4, thriftStruct, len(v.groups), func(i int) { v.group(w, v.groups[i], v.rows[i]) })
	})
	return w.data
}

// stored is the physical type that a view gives to a leaf.
func (e viewElement) stored() (physical Physical, length int) {
	const oldBytes = 12
	own := Physical(e.physical)
	switch {
	case own == Old96 && e.as != OldTimestamp && e.as != Kept:
		return FixedBytes, oldBytes
	case own == Int32 && e.as == AsFloat:
		return Float32, 0
	case own == Int64 && e.as == AsFloat:
		return Float64, 0
	}
	return own, e.length
}

// write writes a SchemaElement.
func (e viewElement) write(s *thriftStructWriter) {
	if e.leaf != none {
		physical, length := e.stored()
		s.integer(1, thriftI32, int64(physical))
		if physical == FixedBytes {
			s.integer(2, thriftI32, int64(length))
		}
	}
	s.integer(3, thriftI32, int64(e.repetition))
	s.text(4, e.name)
	if e.leaf == none {
		s.integer(5, thriftI32, int64(e.children))
	}
	switch e.as {
	case WideDecimal:
		const digitsMax = 38
		scale := int64(0)
		if Physical(e.physical) != Old96 {
			scale = int64(e.settled().scale)
		}
		s.integer(6, thriftI32, convertedDecimal)
		s.integer(7, thriftI32, scale)
		s.integer(8, thriftI32, digitsMax)
	case Kept:
		e.annotate(s)
	}
}

// annotate writes what the file says of the meaning of an element.
func (e viewElement) annotate(s *thriftStructWriter) {
	for i, value := range []int{e.converted, e.scale, e.precision} {
		if value != none {
			s.integer(6+i, thriftI32, int64(value))
		}
	}
	if e.logical != none {
		s.head(10, thriftStruct)
		s.w.data = append(s.w.data, e.logicalBytes...)
	}
}

// group writes a RowGroup.
func (v *view) group(w *thriftWriter, chunks []viewChunk, rows int64) {
	w.structure(func(s *thriftStructWriter) {
		total := int64(0)
		s.list(1, thriftStruct, len(chunks), func(i int) {
			total += chunks[i].raw
			w.structure(func(s *thriftStructWriter) {
				s.integer(2, thriftI64, 0)
				s.structure(3, func(s *thriftStructWriter) { v.chunk(s, chunks[i], v.leaves[i]) })
			})
		})
		s.integer(2, thriftI64, total)
		s.integer(3, thriftI64, rows)
	})
}

// chunk writes a ColumnMetaData.
func (v *view) chunk(s *thriftStructWriter, c viewChunk, e viewElement) {
	physical, _ := e.stored()
	var encodings []int64
	for e := range int64(32) {
		if c.encodings&(1<<e) != 0 {
			encodings = append(encodings, e)
		}
	}
	s.integer(1, thriftI32, int64(physical))
	s.list(2, thriftI32, len(encodings), func(i int) { s.w.varint(encodings[i]) })
	s.list(3, thriftBinary, len(e.path), func(i int) { s.w.text(e.path[i]) })
	s.integer(4, thriftI32, int64(c.codec))
	s.integer(5, thriftI64, c.values)
	s.integer(6, thriftI64, c.raw)
	s.integer(7, thriftI64, c.bytes)
	s.integer(9, thriftI64, c.dataAt)
	if c.dictAt > 0 {
		s.integer(11, thriftI64, c.dictAt)
	}
}
