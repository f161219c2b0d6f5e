package database

import (
	"bufio"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"thalweg/internal/base/fault"
)

// Bounds of one INSERT.
const (
	insertRowsMax   = 500
	insertValuesMax = 30_000    // placeholders
	insertBytesMax  = 512 << 10 // of values; servers take 16 MiB and more
)

// inserter puts rows into a table by INSERTs of many rows.
type inserter struct {
	conn    *sql.Conn
	insert  string   // how a statement begins; "": INSERT
	table   string   // quoted
	names   []string // of columns, quoted
	columns []TargetColumn
	fault   func(error) error
	noNaN   bool // the database has none
	noInf   bool
	instant func(text string) string // a timestamptz of PostgreSQL's form
	rowsMax int

	stmt   *sql.Stmt // of rowsMax rows
	values []any
	bytes  int
	row    int64 // that is read
	kept   int64 // rows that the database says it has put there
}

// load reads rows as Client.Stage describes them, and tells how many the database has put there.
func (in *inserter) load(ctx context.Context, path string) (kept int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, &fault.Error{Kind: fault.Environment, Message: "read the rows to write", Err: err}
	}
	defer f.Close()
	in.rowsMax = max(1, min(insertRowsMax, insertValuesMax/len(in.columns)))
	defer func() {
		if in.stmt != nil {
			err = errors.Join(err, in.stmt.Close())
		}
	}()
	const bufferBytes = 1 << 20
	r := &cells{r: bufio.NewReaderSize(f, bufferBytes)}
	for {
		text, null, last, err := r.next()
		if errors.Is(err, io.EOF) {
			err := in.flush(ctx)
			return in.kept, err
		}
		if err != nil {
			return 0, &fault.Error{Kind: fault.Environment, Message: "read the rows to write", Err: err}
		}
		i := len(in.values) % len(in.columns)
		if i == 0 {
			in.row++
		}
		v, err := in.value(in.columns[i], text, null)
		if err != nil {
			return 0, err
		}
		in.values, in.bytes = append(in.values, v), in.bytes+len(text)
		if last != (i == len(in.columns)-1) {
			return 0, fmt.Errorf("row %d of the rows to write has not %d values", in.row, len(in.columns))
		}
		if last && (len(in.values) == in.rowsMax*len(in.columns) || in.bytes >= insertBytesMax) {
			if err := in.flush(ctx); err != nil {
				return 0, err
			}
		}
	}
}

// value returns the value to bind for a text.
func (in *inserter) value(c TargetColumn, text string, null bool) (any, error) {
	switch {
	case null && c.made:
		return nil, rowFault(in.row, c.Name, "it is NULL, for which the database would make up a value")
	case null:
		return nil, nil
	case c.limit != nil:
		if what := c.limit.refuses(text); what != "" {
			return nil, rowFault(in.row, c.Name, what)
		}
	case c.Type == "timestamptz":
		return in.instant(text), nil
	case c.Type == "int":
		return strconv.ParseInt(text, 10, 64)
	case c.Type == "bool":
		if text == "true" {
			return int64(1), nil
		}
		return int64(0), nil
	case c.Type == "float":
		v, err := strconv.ParseFloat(text, 64)
		if err == nil && (in.noNaN && math.IsNaN(v) || in.noInf && math.IsInf(v, 0)) {
			err = &fault.Error{Kind: fault.UserData,
				Message: fmt.Sprintf("row %d of what is written: column %s: the database has no %s",
					in.row, c.Name, text),
				Hint: "make it NULL before, or leave the row out"}
		}
		return v, err
	}
	return text, nil
}

func (in *inserter) flush(ctx context.Context) (err error) {
	rows := len(in.values) / len(in.columns)
	if rows == 0 {
		return nil
	}
	stmt := in.stmt
	if stmt == nil || rows < in.rowsMax {
		stmt, err = in.conn.PrepareContext(ctx, in.statement(rows))
		if err != nil {
			return in.fault(err)
		}
		if rows == in.rowsMax {
			in.stmt = stmt
		} else {
			defer func() { err = errors.Join(err, stmt.Close()) }()
		}
	}
	done, err := stmt.ExecContext(ctx, in.values...)
	if err != nil {
		err = in.first(ctx, in.fault(err), rows)
	} else {
		var n int64
		n, err = done.RowsAffected()
		in.kept += n
	}
	in.values, in.bytes = in.values[:0], 0
	return err
}

// first finds the row that the database refuses among those of an INSERT, whose words about
// it name a place among them at best. What it puts in is taken back.
func (in *inserter) first(ctx context.Context, failed error, rows int) error {
	var f *fault.Error
	if !errors.As(failed, &f) || f.Kind != fault.UserData {
		return failed
	}
	const before, after = "SAVEPOINT thalweg_row", "ROLLBACK TO SAVEPOINT thalweg_row"
	if _, err := in.conn.ExecContext(ctx, before); err != nil {
		return failed
	}
	defer func() { _, _ = in.conn.ExecContext(ctx, after) }() // what follows is a rollback in any case
	width := len(in.columns)
	for i := range rows {
		_, err := in.conn.ExecContext(ctx, in.statement(1), in.values[i*width:(i+1)*width]...)
		if err == nil {
			continue
		}
		var one *fault.Error
		if !errors.As(in.fault(err), &one) || one.Kind != fault.UserData {
			return failed
		}
		found := *one
		found.Message = fmt.Sprintf("row %d of what is written: %s", in.row-int64(rows)+int64(i)+1,
			strings.TrimSuffix(one.Message, " at row 1"))
		return &found
	}
	return failed
}

// statement is an INSERT of so many rows.
func (in *inserter) statement(rows int) string {
	one := "(" + strings.TrimSuffix(strings.Repeat("?, ", len(in.columns)), ", ") + ")"
	return cmp.Or(in.insert, "INSERT") + " INTO " + in.table + " (" + strings.Join(in.names, ", ") + ") VALUES " +
		strings.TrimSuffix(strings.Repeat(one+", ", rows), ", ")
}

// Forms of an instant, which comes as 2006-01-02 15:04:05.999999+00.

func mysqlInstant(text string) string { return strings.TrimSuffix(text, "+00") }

func sqliteInstant(text string) string {
	return strings.Replace(strings.TrimSuffix(text, "+00"), " ", "T", 1) + "Z"
}

// cells reads values of CSV in which everything that is no number, time or truth has quotes.
type cells struct {
	r *bufio.Reader
}

// next gives a value, whether it is NULL, and whether it is the last one of its row.
func (c *cells) next() (text string, null, last bool, err error) {
	first, err := c.r.ReadByte()
	if err != nil {
		return "", false, false, err
	}
	if first != '"' {
		b := make([]byte, 0, 24)
		for ; first != ',' && first != '\n'; first, err = c.r.ReadByte() {
			if err != nil {
				return "", false, false, unexpected(err)
			}
			b = append(b, first)
		}
		return string(b), len(b) == 0, first == '\n', nil
	}
	var b []byte
	for {
		piece, err := c.r.ReadSlice('"')
		b = append(b, piece...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return "", false, false, unexpected(err)
		}
		after, err := c.r.ReadByte()
		if err != nil {
			return "", false, false, unexpected(err)
		}
		if after != '"' {
			return string(b[:len(b)-1]), false, after == '\n', nil
		}
	}
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// sqlWriter is the common part of writers that use package database/sql.
type sqlWriter struct{ *sqlSession }

func (w sqlWriter) exec(ctx context.Context, sql string) error {
	defer w.watch(ctx)()
	if _, err := w.conn.ExecContext(ctx, sql); err != nil {
		return w.fault(err)
	}
	return nil
}

func (w sqlWriter) count(ctx context.Context, sql string) (int64, error) {
	defer w.watch(ctx)()
	done, err := w.conn.ExecContext(ctx, sql)
	if err != nil {
		return 0, w.fault(err)
	}
	n, err := done.RowsAffected()
	if err != nil {
		return 0, w.fault(err)
	}
	return n, nil
}

func (w sqlWriter) rows(ctx context.Context, query string, args ...string) (out [][]string, err error) {
	defer w.watch(ctx)()
	bound := make([]any, len(args))
	for i, a := range args {
		bound[i] = a
	}
	rows, err := w.conn.QueryContext(ctx, query, bound...)
	if err != nil {
		return nil, w.fault(err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	names, err := rows.Columns()
	if err != nil {
		return nil, w.fault(err)
	}
	for rows.Next() {
		row := make([]sql.NullString, len(names))
		at := make([]any, len(names))
		for i := range row {
			at[i] = &row[i]
		}
		if err := rows.Scan(at...); err != nil {
			return nil, w.fault(err)
		}
		texts := make([]string, len(names))
		for i, v := range row {
			texts[i] = v.String
		}
		out = append(out, texts)
	}
	if err := rows.Err(); err != nil {
		return nil, w.fault(err)
	}
	return out, nil
}
