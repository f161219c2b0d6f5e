package database

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/base/fault"
)

// sqlSession is a session by way of package database/sql.
type sqlSession struct {
	kind     string
	db       *sql.DB
	conn     *sql.Conn
	describe func(t *sql.ColumnType) Column
	fault    func(error) error
	source   func(src Source) string // the query of a source
	plain    func(query string, columns []Column) string
	onCancel func() // ends what the server does for the session; nil: closing it does
}

func (s *sqlSession) Close() {
	_ = s.conn.Close() // what it has read is there, and it has not written
	_ = s.db.Close()
}

// watch ends what the server does when ctx ends. The caller calls stop at last.
func (s *sqlSession) watch(ctx context.Context) (stop func()) {
	if s.onCancel == nil {
		return func() {}
	}
	done := make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() {
		defer close(done)
		s.onCancel()
	})
	return func() {
		if !unwatch() {
			<-done
		}
	}
}

func (s *sqlSession) columns(ctx context.Context, src Source) ([]Column, error) {
	defer s.watch(ctx)()
	if err := one(src, s.kind); err != nil {
		return nil, err
	}
	rows, err := s.conn.QueryContext(ctx, "SELECT * FROM (\n"+s.source(src)+"\n) AS q LIMIT 0")
	if err != nil {
		return nil, s.fault(err)
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, s.fault(err)
	}
	switch {
	case len(types) == 0:
		return nil, fault.New(fault.Script, "the query gives no columns: it has to be a SELECT")
	case len(types) > ColumnsMax:
		return nil, tooWide(len(types))
	}
	out := make([]Column, len(types))
	for i, t := range types {
		out[i] = s.describe(t)
		out[i].Name, out[i].Kind = t.Name(), strings.ToLower(t.DatabaseTypeName())
		if src.Table == "" {
			out[i].Required = false // of a query, a join may make it NULL
		}
	}
	return out, nil
}

// Copy implements Snapshot.
func (s *sqlSession) Copy(ctx context.Context, src Source, to io.Writer) (n int64, err error) {
	columns, err := s.columns(ctx, src)
	if err != nil {
		return 0, err
	}
	defer s.watch(ctx)()
	query := s.source(src)
	if s.plain != nil {
		query = s.plain(query, columns)
	}
	// Prepared, because values come as they are then, not as texts for people.
	stmt, err := s.conn.PrepareContext(ctx, query)
	if err != nil {
		return 0, s.fault(err)
	}
	defer stmt.Close()
	rows, err := stmt.QueryContext(ctx)
	if err != nil {
		return 0, s.fault(err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	const bufferBytes = 1 << 20
	out := bufio.NewWriterSize(to, bufferBytes)
	w := csvRow{alone: len(columns) == 1}
	for _, c := range columns {
		w.text(c.Name)
	}
	if w.alone {
		w.text(padding)
	}
	if _, err := out.Write(w.end()); err != nil {
		return 0, err
	}
	values := make([]any, len(columns))
	at := make([]any, len(columns))
	for i := range values {
		at[i] = &values[i]
	}
	for ; rows.Next(); n++ {
		if err := rows.Scan(at...); err != nil {
			return n, s.fault(err)
		}
		for i, v := range values {
			if text, ok := v.([]byte); ok && columns[i].Layout == layoutTime && slices.Contains(src.Millis,
				columns[i].Name) {
				v = millis(string(text))
			}
			w.value(v, s.kind == SQLite || binary(columns[i].Kind)) // SQLite gives texts as such
		}
		if w.alone {
			w.value(int64(0), false)
		}
		if _, err := out.Write(w.end()); err != nil {
			return n, err
		}
	}
	if err := rows.Err(); err != nil {
		return n, s.fault(err)
	}
	return n, out.Flush()
}

// millis marks a time that is finer than a millisecond.
func millis(text string) string {
	const digitsMax = 3
	if _, fraction, ok := strings.Cut(text, "."); ok && len(strings.TrimRight(fraction, "0")) > digitsMax {
		return text + finer
	}
	return text
}

// binary reports whether the bytes of a column are no text.
func binary(kind string) bool {
	return strings.Contains(kind, "blob") || strings.Contains(kind, "binary") || kind == "bit" || kind == "geometry"
}

// csvRow makes one line of CSV after the other.
type csvRow struct {
	alone bool // there is one column, and padding
	buf   []byte
	some  bool
}

func (w *csvRow) next() {
	if w.some {
		w.buf = append(w.buf, ',')
	}
	w.some = true
}

// end gives the line, until the next one begins.
func (w *csvRow) end() []byte {
	line := append(w.buf, '\n')
	w.buf, w.some = line[:0], false
	return line
}

// text writes a text, with quotes where it needs some: an empty one without is NULL.
func (w *csvRow) text(s string) {
	w.next()
	if s != "" && !strings.ContainsAny(s, "\",\r\n") {
		w.buf = append(w.buf, s...)
		return
	}
	w.buf = append(w.buf, '"')
	for {
		i := strings.IndexByte(s, '"')
		if i < 0 {
			break
		}
		w.buf = append(append(w.buf, s[:i+1]...), '"')
		s = s[i+1:]
	}
	w.buf = append(append(w.buf, s...), '"')
}

func (w *csvRow) value(v any, binary bool) {
	switch v := v.(type) {
	case nil:
		w.next()
	case int64:
		w.next()
		w.buf = strconv.AppendInt(w.buf, v, 10)
	case uint64:
		w.next()
		w.buf = strconv.AppendUint(w.buf, v, 10)
	case float64:
		w.float(v, 64)
	case float32:
		w.float(float64(v), 32)
	case bool:
		w.text(strconv.FormatBool(v))
	case time.Time:
		w.text(v.UTC().Format(layoutTime + ".999999999"))
	case string:
		w.text(v)
	case []byte:
		if binary {
			w.text(`\x` + hex.EncodeToString(v))
		} else {
			w.text(string(v))
		}
	}
}

func (w *csvRow) float(v float64, bits int) {
	w.next()
	switch {
	case math.IsInf(v, 1):
		w.buf = append(w.buf, "Infinity"...)
	case math.IsInf(v, -1):
		w.buf = append(w.buf, "-Infinity"...)
	default:
		w.buf = strconv.AppendFloat(w.buf, v, 'g', -1, bits)
	}
}
