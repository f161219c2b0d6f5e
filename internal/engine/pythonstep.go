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
	"thalweg/internal/fault"
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
	var extra []string
	if step.Program.Table != nil {
		extra = []string{GroupColumn, RowColumn}
	}
	if err := x.in.Exec(ctx, createResultTable(step.Program.Fields, extra)); err != nil {
		return err
	}
	if step.Groups != "" {
		if err := x.in.Exec(ctx, "CREATE TEMP TABLE "+GroupTable+" AS "+step.Groups); err != nil {
			return err
		}
	}
	rows, err := x.in.Query(ctx, step.Source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	sink, err := x.openSink(len(step.Program.Fields) + len(extra))
	if err != nil {
		return err
	}
	start := time.Now()
	if step.Program.Table != nil {
		x.res.Python, err = x.pool.RunTable(ctx, step.Program, groupReader(rows, step), sink.emitOf, x.groupName)
		var f *fault.Error
		if errors.As(err, &f) && f.Kind != fault.Canceled {
			f.Message = "node " + step.Node + ": " + f.Message
		}
	} else {
		x.res.Python, err = x.pool.Run(ctx, step.Program, sourceReader(rows, step.Program.Inputs), sink.emit)
	}
	x.pythonWait = time.Since(start)
	if cerr := sink.close(err == nil); err == nil && cerr != nil {
		return fmt.Errorf("keep the results of Python: %w", cerr)
	}
	if err != nil {
		return err
	}
	return x.in.Exec(ctx, typeResultTable(step.Program.Fields, extra))
}

// groupName names a group in a failure. Nobody else uses the connection then.
func (x *execution) groupName(group int64) string {
	name := "the whole table"
	if x.task.Python.Groups == "" {
		return name
	}
	name = fmt.Sprintf("group %d", group+1)
	rows, err := x.in.Query(context.Background(), fmt.Sprintf("SELECT %s FROM %s WHERE %s = %d", x.task.Python.GroupName, GroupTable, sqltext.Ident(GroupColumn), group))
	if err != nil {
		return name
	}
	defer rows.Close()
	var text sql.NullString
	if rows.Next() && rows.Scan(&text) == nil && text.Valid {
		return "group " + text.String
	}
	return name
}

func createResultTable(fields []python.Field, extra []string) string {
	cols := make([]string, 0, len(fields)+len(extra))
	for i, f := range fields {
		t := f.Type.SQL()
		if f.Type == expr.Decimal || f.Type == expr.DateTime {
			t = "BIGINT" // as transported
		}
		cols = append(cols, fmt.Sprintf("c%d %s", i, t))
	}
	for _, name := range extra {
		cols = append(cols, sqltext.Ident(name)+" BIGINT")
	}
	return fmt.Sprintf("CREATE TABLE %s (%s)", resultRaw, strings.Join(cols, ", "))
}

// typeResultTable gives the transported columns their names and types.
func typeResultTable(fields []python.Field, extra []string) string {
	cols := make([]string, len(fields), len(fields)+len(extra))
	for i, f := range fields {
		cols[i] = untransportSQL(f.Type, fmt.Sprintf("c%d", i)) + " AS " + sqltext.Ident(f.Name)
	}
	for _, name := range extra {
		cols = append(cols, sqltext.Ident(name))
	}
	return fmt.Sprintf("CREATE VIEW %s AS SELECT %s FROM %s", ResultTable, strings.Join(cols, ", "), resultRaw)
}

// sourceReader gives the query's rows as Go values of the pool's kinds.
func sourceReader(rows *sql.Rows, inputs []python.Column) func() ([]any, error) {
	read := rowReader(rows, len(inputs))
	return func() ([]any, error) {
		row, err := read()
		if err != nil {
			return nil, err
		}
		fromTransport(row, inputs)
		return row, nil
	}
}

// groupReader gives the rows of functions over groups, each with its group's number.
func groupReader(rows *sql.Rows, step *PythonStep) func() ([]any, int64, error) {
	inputs := step.Program.Inputs
	columns := len(inputs)
	if step.Groups != "" {
		columns++
	}
	read := rowReader(rows, columns)
	return func() ([]any, int64, error) {
		row, err := read()
		if err != nil {
			return nil, 0, err
		}
		var group int64
		if step.Groups != "" {
			group, _ = row[len(inputs)].(int64)
		}
		row = row[:len(inputs)]
		fromTransport(row, inputs)
		return row, group, nil
	}
}

// rowReader gives rows as Go values, in a slice that is used again.
func rowReader(rows *sql.Rows, columns int) func() ([]any, error) {
	row, ptrs := make([]any, columns), make([]any, columns)
	for i := range row {
		ptrs[i] = &row[i]
	}
	return func() ([]any, error) {
		if !rows.Next() {
			if err := rows.Err(); err != nil {
				return nil, err
			}
			return nil, io.EOF
		}
		if err := rows.Scan(ptrs...); err != nil {
			return nil, fmt.Errorf("read a row for Python: %w", err)
		}
		return row, nil
	}
}

func fromTransport(row []any, inputs []python.Column) {
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

// emitOf appends a row of a group's result.
func (s *sink) emitOf(group, row int64, values []any) error {
	last := len(s.row) - 2
	s.row[last], s.row[last+1] = group, row
	return s.emit(values)
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
