package files

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

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
	rawBytes       int64 // uncompressed
}

// weigh raises the uncompressed sizes, in which dictionaries hide repeated
// values, to what the rows take in memory at least.
func (f *footer) weigh(rowBytes int64) {
	f.rawBytes = 0
	for i := range f.groups {
		g := &f.groups[i]
		g.rawBytes = max(g.rawBytes, g.rows*rowBytes)
		f.rawBytes += g.rawBytes
	}
}

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
	out, err := decodeFooter(raw)
	if err != nil {
		return nil, damagedFault(u, "its footer cannot be decoded", err)
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

// decodeFooter reads FileMetaData as far as planning and reading need it.
func decodeFooter(raw []byte) (*footer, error) {
	r := &thriftReader{data: raw}
	out := &footer{}
	var schema []schemaElement
	r.structure(func(id int64, t thriftType) bool {
		switch id {
		case 2:
			r.list(t, thriftStruct, func() { schema = append(schema, decodeElement(r)) })
		case 3:
			out.rows = r.integer(t)
		case 4:
			r.list(t, thriftStruct, func() { out.addGroup(r) })
		default:
			return false
		}
		return true
	})
	if r.err != nil {
		return nil, r.err
	}
	return out, out.finish(schema)
}

// finish checks what must agree, and describes the columns.
func (f *footer) finish(schema []schemaElement) error {
	total := int64(0)
	for i, g := range f.groups {
		if g.rows < 0 || g.bytes < 0 || g.rawBytes < 0 || g.rows > f.rows-total {
			return fmt.Errorf("row group %d has %d rows and %d bytes, the file %d rows", i, g.rows, g.bytes, f.rows)
		}
		total += g.rows
	}
	if total != f.rows || f.rawBytes < 0 || len(schema) == 0 {
		return fmt.Errorf("%d rows in row groups, %d in the file, %d schema elements", total, f.rows, len(schema))
	}
	for at := 1; at < len(schema); {
		f.columns = append(f.columns, schema[at].describe())
		next, err := skipElement(schema, at)
		if err != nil {
			return err
		}
		at = next
	}
	return nil
}

// addGroup reads a RowGroup.
func (f *footer) addGroup(r *thriftReader) {
	g, columnBytes := rowGroup{}, int64(0)
	if n := len(f.groups); n > 0 {
		g.firstRow = f.groups[n-1].firstRow + f.groups[n-1].rows
	}
	r.structure(func(id int64, t thriftType) bool {
		switch id {
		case 1:
			r.list(t, thriftStruct, func() { columnBytes += decodeChunkBytes(r) })
		case 2:
			g.rawBytes = r.integer(t)
			f.rawBytes += g.rawBytes
		case 3:
			g.rows = r.integer(t)
		case 6:
			g.bytes = r.integer(t)
		default:
			return false
		}
		return true
	})
	if g.bytes == 0 { // optional in the format
		g.bytes = columnBytes
	}
	f.groups = append(f.groups, g)
}

// decodeChunkBytes reads a ColumnChunk for its compressed size.
func decodeChunkBytes(r *thriftReader) (bytes int64) {
	r.structure(func(id int64, t thriftType) bool {
		if id != 3 || t != thriftStruct {
			return false
		}
		r.structure(func(id int64, t thriftType) bool {
			if id != 7 {
				return false
			}
			bytes = r.integer(t)
			return true
		})
		return true
	})
	return bytes
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
