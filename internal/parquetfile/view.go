package parquetfile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// ViewColumn is a column of a view.
type ViewColumn struct {
	Name   string
	Column int  // index in the file's columns
	As     Form //
}

// Form is what a view says of the type of a column's bytes.
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
)

// WriteView writes to path a Parquet file with columns of row groups
// [from, to): the bytes of their chunks are copied from file. pages finds the
// bytes of a chunk, as VerifyChunk found them.
func (f *Footer) WriteView(ctx context.Context, file *os.File, path string, from, to int, columns []ViewColumn, pages func(group, column int) Pages) (err error) {
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	v := view{f: f, columns: columns, at: magicBytes}
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
	at      int64
	groups  [][]viewChunk // by row group and column
	rows    []int64
}

// viewChunk is a chunk at its new place.
type viewChunk struct {
	Chunk
	bytes int64
}

// copyGroup copies the chunks of a row group, each once.
func (v *view) copyGroup(ctx context.Context, out, file *os.File, group int, pages func(group, column int) Pages) ([]viewChunk, error) {
	copied := map[int]viewChunk{}
	list := make([]viewChunk, len(v.columns))
	for i, col := range v.columns {
		c, ok := copied[col.Column]
		if !ok {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			source, err := v.f.chunk(group, col.Column)
			if err != nil {
				return nil, err
			}
			p := pages(group, col.Column)
			// From file to file the kernel copies by itself.
			if _, err := file.Seek(p.Start, io.SeekStart); err != nil {
				return nil, err
			}
			if _, err := io.CopyN(out, file, p.End-p.Start); err != nil {
				return nil, fmt.Errorf("copy column %q: %w", v.f.Columns[col.Column].Name, err)
			}
			c = viewChunk{source, p.End - p.Start}
			c.dataAt = v.at + p.DataAt - p.Start
			c.dictAt = 0
			if p.DictAt > 0 {
				c.dictAt = v.at + p.DictAt - p.Start
			}
			v.at += c.bytes
			copied[col.Column] = c
		}
		list[i] = c
	}
	return list, nil
}

// chunk finds the chunk of a column.
func (f *Footer) chunk(group, column int) (Chunk, error) {
	for _, c := range f.Groups[group].Chunks {
		if c.Column == column {
			return c, nil
		}
	}
	return Chunk{}, fmt.Errorf("row group %d was read without column %d", group, column)
}

// footer serialises the view's FileMetaData.
func (v *view) footer() []byte {
	w := &thriftWriter{}
	w.structure(func(s *thriftStructWriter) {
		s.integer(1, thriftI32, 1)
		s.list(2, thriftStruct, 1+len(v.columns), func(i int) {
			w.structure(func(s *thriftStructWriter) {
				if i == 0 {
					s.text(4, "view")
					s.integer(5, thriftI32, int64(len(v.columns)))
					return
				}
				v.element(s, v.columns[i-1])
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

// physical is the type that a view gives to a column.
func (col ViewColumn) physical(c Column) (physical Physical, length int) {
	const oldBytes = 12
	switch {
	case c.Physical == Old96 && col.As != OldTimestamp:
		return FixedBytes, oldBytes
	case c.Physical == Int32 && col.As == AsFloat:
		return Float32, 0
	case c.Physical == Int64 && col.As == AsFloat:
		return Float64, 0
	}
	return c.Physical, c.Length
}

// element writes a SchemaElement.
func (v *view) element(s *thriftStructWriter, col ViewColumn) {
	c := v.f.Columns[col.Column]
	physical, length := col.physical(c)
	s.integer(1, thriftI32, int64(physical))
	if physical == FixedBytes {
		s.integer(2, thriftI32, int64(length))
	}
	repetition := int64(repetitionOptional)
	if c.Required {
		repetition = repetitionRequired
	}
	s.integer(3, thriftI32, repetition)
	s.text(4, col.Name)
	if col.As == WideDecimal {
		const digitsMax = 38
		scale := int64(0)
		if c.Physical != Old96 {
			scale = int64(c.Scale)
		}
		s.integer(6, thriftI32, convertedDecimal)
		s.integer(7, thriftI32, scale)
		s.integer(8, thriftI32, digitsMax)
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
				s.structure(3, func(s *thriftStructWriter) { v.chunk(s, chunks[i], v.columns[i]) })
			})
		})
		s.integer(2, thriftI64, total)
		s.integer(3, thriftI64, rows)
	})
}

// chunk writes a ColumnMetaData.
func (v *view) chunk(s *thriftStructWriter, c viewChunk, col ViewColumn) {
	physical, _ := col.physical(v.f.Columns[col.Column])
	var encodings []int64
	for e := range int64(32) {
		if c.encodings&(1<<e) != 0 {
			encodings = append(encodings, e)
		}
	}
	s.integer(1, thriftI32, int64(physical))
	s.list(2, thriftI32, len(encodings), func(i int) { s.w.varint(encodings[i]) })
	s.list(3, thriftBinary, 1, func(int) { s.w.text(col.Name) })
	s.integer(4, thriftI32, int64(c.codec))
	s.integer(5, thriftI64, c.values)
	s.integer(6, thriftI64, c.raw)
	s.integer(7, thriftI64, c.bytes)
	s.integer(9, thriftI64, c.dataAt)
	if c.dictAt > 0 {
		s.integer(11, thriftI64, c.dictAt)
	}
}
