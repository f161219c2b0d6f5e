package engine

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"reflect"
	"unsafe"

	"github.com/duckdb/duckdb-go/v2/mapping"
)

// vectorRows is the rows of a query as DuckDB has them, vector by vector. The
// driver makes a Go value of each cell, which costs more than all that is done
// with it on its way to Python. It does not show the vectors in this version
// (docs/decisions/0030-rows-for-python.md).
//
// It is the Row of each of its rows.
type vectorRows struct {
	in      *Instance
	query   string
	windows []string    // statements before the query, each time that it is still to be executed
	rows    driver.Rows // executes, and closes; nil before
	result  *mapping.Result
	types   []mapping.Type
	chunk   mapping.DataChunk
	vectors []vector
	row     int // of the chunk
	count   int // rows of the chunk
}

// vector is a column of a chunk: its values, and a bit for each that is not NULL; nil: none is.
type vector struct{ data, valid unsafe.Pointer }

// vectorRows reads a query whose columns must have these types once behind each of
// the statements, "" for none.
func (in *Instance) vectorRows(ctx context.Context, query string, types []mapping.Type, before []string) (*vectorRows,
	error) {
	r := &vectorRows{in: in, query: query, types: types, windows: before}
	return r, r.open(ctx)
}

// open begins to read the next window.
func (r *vectorRows) open(ctx context.Context) (err error) {
	if r.rows != nil {
		if err := r.close(); err != nil {
			return err
		}
		releasePages() // or the next window is held beside what is left of this one
	}
	if r.windows[0] != "" {
		if err := r.in.Exec(ctx, r.windows[0]); err != nil {
			return err
		}
	}
	r.windows = r.windows[1:]
	if err := InOrder(ctx, r.in, r.query); err != nil {
		return err
	}
	if r.rows, err = r.in.driverRows(ctx, r.query); err != nil {
		r.rows = nil
		return err
	}
	if err := r.look(); err != nil {
		return errors.Join(err, r.close())
	}
	r.row, r.count = -1, 0
	return nil
}

// look takes the result out of the driver's rows.
func (r *vectorRows) look() error {
	field := reflect.ValueOf(r.rows).Elem().FieldByName("res")
	if !field.IsValid() || field.Type() != reflect.TypeFor[mapping.Result]() {
		return fmt.Errorf("this version of the driver for DuckDB keeps results elsewhere than in %T.res", r.rows)
	}
	r.result = (*mapping.Result)(field.Addr().UnsafePointer())
	if n := int(mapping.ColumnCount(r.result)); n < len(r.types) {
		return fmt.Errorf("%d columns for Python where %d are needed", n, len(r.types))
	}
	for i, want := range r.types {
		if t := mapping.ColumnType(r.result, mapping.IdxT(i)); t != want {
			return fmt.Errorf("column %d for Python is of type %d, not %d", i, t, want)
		}
	}
	return nil
}

// next goes on to the next row; io.EOF: there is none.
func (r *vectorRows) next(ctx context.Context) error {
	err := r.nextOfWindow()
	for errors.Is(err, io.EOF) && len(r.windows) > 0 {
		if err = r.open(ctx); err == nil {
			err = r.nextOfWindow()
		}
	}
	return err
}

func (r *vectorRows) nextOfWindow() error {
	for r.row++; r.row >= r.count; r.row = 0 {
		mapping.DestroyDataChunk(&r.chunk)
		if r.chunk = mapping.FetchChunk(*r.result); r.chunk.Ptr == nil {
			r.count = 0
			if text := mapping.ResultError(r.result); text != "" {
				return fmt.Errorf("read rows for Python: %s", text)
			}
			return io.EOF
		}
		r.count = int(mapping.DataChunkGetSize(r.chunk))
		r.vectors = r.vectors[:0]
		for i := range r.types {
			v := mapping.DataChunkGetVector(r.chunk, mapping.IdxT(i))
			r.vectors = append(r.vectors, vector{mapping.VectorGetData(v), mapping.VectorGetValidity(v)})
		}
	}
	return nil
}

func (r *vectorRows) close() error {
	mapping.DestroyDataChunk(&r.chunk)
	if r.rows == nil {
		return nil
	}
	rows := r.rows
	r.rows = nil
	return rows.Close()
}

// Null implements python.Row.
func (r *vectorRows) Null(i int) bool {
	const bits = 64
	valid := r.vectors[i].valid
	return valid != nil && *(*uint64)(unsafe.Add(valid, r.row/bits*8))&(1<<(r.row%bits)) == 0
}

// Word implements python.Row.
func (r *vectorRows) Word(i int) uint64 {
	data := r.vectors[i].data
	if r.types[i] == mapping.TypeBoolean {
		return uint64(*(*uint8)(unsafe.Add(data, r.row)))
	}
	return *(*uint64)(unsafe.Add(data, r.row*8))
}

// duckText is duckdb_string_t of duckdb.h: a text of up to inlineBytes bytes is
// in it, of others a prefix and where they are.
type duckText struct {
	length uint32
	prefix [4]byte
	at     *byte
}

// inlineBytes is the most bytes of a text that is stored within a duckText.
const inlineBytes = 12

// Text implements python.Row: bytes of DuckDB's.
func (r *vectorRows) Text(i int) []byte {
	t := (*duckText)(unsafe.Add(r.vectors[i].data, r.row*int(unsafe.Sizeof(duckText{}))))
	if t.length <= inlineBytes {
		return unsafe.Slice(&t.prefix[0], t.length)
	}
	return unsafe.Slice(t.at, t.length)
}
