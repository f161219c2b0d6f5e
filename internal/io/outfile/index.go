package outfile

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"thalweg/internal/base/fault"
	"thalweg/internal/io/files"
	"thalweg/internal/io/tableindex"
	"thalweg/internal/lang/script"
)

// indexWriter makes an index of lines: see files.WriteSQL.
type indexWriter struct {
	w     *script.FileWriter
	lines *bufio.Reader
	to    *tableindex.Writer
	row   int64  // that is read, from 1
	own   []byte // a row that is larger than the buffer of lines
}

// indexReadBytes is the size of the buffer of lines.
const indexReadBytes = 1 << 20

// indexMeta is what an index says of itself.
func indexMeta(w *script.FileWriter, source string) tableindex.Meta {
	meta := tableindex.Meta{Source: source}
	for _, c := range w.Index {
		meta.Key = append(meta.Key, w.Shown(c))
	}
	for _, c := range w.Values() {
		meta.Columns = append(meta.Columns, w.Shown(c))
	}
	return meta
}

// IndexSize says how many rows an index of rows has, and how large it is.
func IndexSize(ctx context.Context, db Engine, o Output) (rows, bytes int64, err error) {
	query, err := files.IndexSizeSQL(o.Writer, o.Rows)
	if err != nil {
		return 0, 0, err
	}
	n, err := oneRow(ctx, db, query, 2)
	if err != nil {
		return 0, 0, fmt.Errorf("measure the rows of an index: %w", err)
	}
	bytes, err = tableindex.Size(n[0], n[1], indexMeta(o.Writer, o.Source))
	return n[0], bytes, err
}

// oneRow reads the numbers of the one row that a query has.
func oneRow(ctx context.Context, db Engine, query string, columns int) ([]int64, error) {
	found, err := db.Texts(ctx, query)
	if err != nil {
		return nil, err
	}
	if len(found) != 1 || len(found[0]) != columns {
		return nil, fmt.Errorf("%d rows where one is", len(found))
	}
	return numbers(found[0])
}

// countRows counts the rows of a SELECT.
func countRows(ctx context.Context, db Engine, rows string) (int64, error) {
	n, err := oneRow(ctx, db, "SELECT CAST(count(*) AS VARCHAR) FROM ("+rows+")", 1)
	if err != nil {
		return 0, fmt.Errorf("count the rows of an index: %w", err)
	}
	return n[0], nil
}

// index makes an index of so many lines at path.
func index(o Output, rows int64, path string, lines io.Reader) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	x := &indexWriter{w: o.Writer, lines: bufio.NewReaderSize(lines, indexReadBytes)}
	if x.to, err = tableindex.NewWriter(file, rows, indexMeta(o.Writer, o.Source)); err != nil {
		return x.placed(err)
	}
	for x.row = 1; ; x.row++ {
		switch done, err := x.line(); {
		case err != nil:
			return x.placed(err)
		case done && x.row-1 != rows:
			return fmt.Errorf("write index: %d rows came of %d: %w", x.row-1, rows, io.ErrUnexpectedEOF)
		case done:
			return x.placed(x.to.Finish())
		}
	}
}

// line adds the row of a line, unless there is none.
func (x *indexWriter) line() (done bool, err error) {
	switch first, err := x.lines.Peek(1); {
	case errors.Is(err, io.EOF):
		return true, nil
	case err != nil:
		return false, err
	case first[0] == '!':
		return false, x.null()
	}
	key, err := x.number()
	if err != nil {
		return false, err
	}
	values, err := x.number()
	if err != nil {
		return false, err
	}
	if key > tableindex.MaxKeyBytes || values > tableindex.MaxRowBytes {
		const shown = 100
		begin, err := x.lines.Peek(int(min(key, shown)))
		if err != nil {
			return false, cut(err)
		}
		return false, tableindex.CheckSize(begin, key, values)
	}
	row, err := x.bytes(int(key + values + 1)) // with the end of the line
	if err != nil {
		return false, err
	}
	return false, x.to.Add(row[:key], row[key:key+values])
}

// number reads a number with a colon behind it.
func (x *indexWriter) number() (int64, error) {
	text, err := x.lines.ReadSlice(':')
	if err != nil {
		return 0, cut(err)
	}
	n, err := strconv.ParseInt(string(text[:len(text)-1]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read row %d of an index: %w", x.row, err)
	}
	return n, nil
}

// bytes reads some bytes, which are valid until the next are read.
func (x *indexWriter) bytes(n int) ([]byte, error) {
	if n <= indexReadBytes {
		row, err := x.lines.Peek(n)
		if err != nil {
			return nil, cut(err)
		}
		_, err = x.lines.Discard(n)
		return row, err
	}
	if cap(x.own) < n {
		x.own = make([]byte, n)
	}
	_, err := io.ReadFull(x.lines, x.own[:n])
	return x.own[:n], cut(err)
}

// null refuses a row whose key has a NULL in it.
func (x *indexWriter) null() error {
	line, err := x.lines.ReadString('\n')
	if err != nil {
		return cut(err)
	}
	i, err := strconv.Atoi(line[1 : len(line)-1])
	if err != nil || i >= len(x.w.Index) {
		return fmt.Errorf("read row %d of an index: %q", x.row, line)
	}
	f := fault.New(fault.UserData, "row %d: column %s of the key is NULL", x.row, x.w.Index[i].Name)
	f.Hint = "leave such rows out with having, or give them another key"
	return f
}

// cut is the failure of reading what ends too early, or another one.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// placed says where in the script a failure of its data is from.
func (x *indexWriter) placed(err error) error {
	var f *fault.Error
	if errors.As(err, &f) && f.Place == (fault.Place{}) {
		f.Place = fault.Place{File: x.w.Pos.File, Line: int64(x.w.Pos.Line), Column: x.w.Pos.Col}
	}
	return err
}
