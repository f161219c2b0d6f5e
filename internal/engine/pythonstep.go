package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	duckdb "github.com/duckdb/duckdb-go/v2"

	"thalweg/internal/expr"
	"thalweg/internal/python"
	"thalweg/internal/sqltext"
)

// ResultTable holds what Python computed: one row for each row of the step's
// source, in its order.
const ResultTable = "__p"

// resultRaw is the same as transported, before its columns get their types.
const resultRaw = "__p_raw"

// runPython streams the step's source through the pool into table __p.
func (x *execution) runPython(ctx context.Context) (err error) {
	step := x.task.Python
	if x.pool == nil {
		return fmt.Errorf("%s needs Python and no interpreter pool was given", x.task.Name)
	}
	if err := x.in.Exec(ctx, createResultTable(step.Program.Fields)); err != nil {
		return err
	}
	rows, err := x.in.Query(ctx, step.Source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	sink, err := x.openSink(len(step.Program.Fields))
	if err != nil {
		return err
	}
	start := time.Now()
	x.res.Python, err = x.pool.Run(ctx, step.Program, sourceReader(rows, step.Program.Inputs), sink.emit)
	x.pythonWait = time.Since(start)
	if cerr := sink.close(err == nil); err == nil && cerr != nil {
		return fmt.Errorf("keep the results of Python: %w", cerr)
	}
	if err != nil {
		return err
	}
	return x.in.Exec(ctx, typeResultTable(step.Program.Fields))
}

func createResultTable(fields []python.Field) string {
	cols := make([]string, 0, len(fields)+1)
	for i, f := range fields {
		t := f.Type.SQL()
		if f.Type == expr.Decimal || f.Type == expr.DateTime {
			t = "BIGINT" // as transported
		}
		cols = append(cols, fmt.Sprintf("c%d %s", i, t))
	}
	return fmt.Sprintf("CREATE TABLE %s (%s)", resultRaw, strings.Join(cols, ", "))
}

// typeResultTable gives the transported columns their names and types.
func typeResultTable(fields []python.Field) string {
	cols := make([]string, len(fields))
	for i, f := range fields {
		cols[i] = untransportSQL(f.Type, fmt.Sprintf("c%d", i)) + " AS " + sqltext.Ident(f.Name)
	}
	return fmt.Sprintf("CREATE VIEW %s AS SELECT %s FROM %s", ResultTable, strings.Join(cols, ", "), resultRaw)
}

// sourceReader gives the query's rows as Go values of the pool's kinds.
func sourceReader(rows *sql.Rows, inputs []python.Column) func() ([]any, error) {
	ptrs := make([]any, len(inputs))
	return func() ([]any, error) {
		if !rows.Next() {
			if err := rows.Err(); err != nil {
				return nil, err
			}
			return nil, io.EOF
		}
		row := make([]any, len(inputs))
		for i := range row {
			ptrs[i] = &row[i]
		}
		if err := rows.Scan(ptrs...); err != nil {
			return nil, fmt.Errorf("read a row for Python: %w", err)
		}
		for i, in := range inputs {
			n, ok := row[i].(int64)
			switch {
			case !ok:
			case in.Type == expr.Decimal:
				row[i] = python.Cents(n)
			case in.Type == expr.DateTime:
				row[i] = time.UnixMilli(n).UTC()
			}
		}
		return row, nil
	}
}

// sink appends results; it belongs to one goroutine at a time.
type sink struct {
	app *duckdb.Appender
	row []driver.Value
}

func (x *execution) openSink(columns int) (*sink, error) {
	s := &sink{row: make([]driver.Value, columns)}
	err := x.in.Raw(func(c any) error {
		conn, ok := c.(driver.Conn)
		if !ok {
			return fmt.Errorf("unexpected driver connection %T", c)
		}
		var err error
		s.app, err = duckdb.NewAppenderFromConn(conn, "", resultRaw)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open the results of Python: %w", err)
	}
	return s, nil
}

func (s *sink) emit(values []any) error {
	for i, v := range values {
		switch v := v.(type) {
		case python.Cents:
			s.row[i] = int64(v)
		case time.Time:
			s.row[i] = v.UnixMilli()
		default:
			s.row[i] = v
		}
	}
	return s.app.AppendRow(s.row...)
}

// close flushes; a failed step's rows are dropped with the instance, so its
// error is the one that matters then.
func (s *sink) close(keep bool) error {
	err := s.app.Close()
	if !keep {
		return nil
	}
	return err
}
