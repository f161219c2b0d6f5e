package engine

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	duckdb "github.com/duckdb/duckdb-go/v2"
	"github.com/duckdb/duckdb-go/v2/mapping"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/run/python"
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
	if err := x.in.Exec(ctx, createResultTable(step)); err != nil {
		return err
	}
	rows, err := x.sourceRows(ctx, step)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.close()) }()
	sink, err := x.openSink(step)
	if err != nil {
		return err
	}
	start := time.Now()
	next := func() (python.Row, error) { return rows, rows.next(ctx) }
	switch {
	case step.Program.Table != nil:
		x.res.Python, err = x.pool.RunTable(ctx, step.Program, rows.groups(ctx, step), sink.emitOf, x.groupName)
	case step.Bad != nil:
		x.res.Python, err = x.pool.RunTolerant(ctx, step.Program, next, sink.emit,
			func(f *fault.Error, reason string) error { return x.putAside(sink, f, reason) })
	default:
		x.res.Python, err = x.pool.Run(ctx, step.Program, next, sink.emit)
	}
	x.pythonWait = time.Since(start)
	if cerr := sink.close(err == nil); err == nil && cerr != nil {
		return fmt.Errorf("keep the results of Python: %w", cerr)
	}
	if err != nil {
		return err
	}
	return x.in.Exec(ctx, typeResultTable(step))
}

// groupName names a group in a failure. Nobody else uses the connection then.
func (x *execution) groupName(group int64) string {
	name := "the whole table"
	if x.task.Python.Groups == "" {
		return name
	}
	name = fmt.Sprintf("group %d", group+1)
	rows, err := x.in.Query(context.Background(), fmt.Sprintf("SELECT %s FROM %s WHERE %s = %d",
		x.task.Python.GroupName, GroupTable, sqltext.Ident(GroupColumn), group))
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

// putAside keeps the place of a row whose formulas failed, so that results
// still meet their rows by position.
func (x *execution) putAside(s *sink, f *fault.Error, reason string) error {
	row, action := x.task.Python.Bad(f, reason)
	if err := s.fail(action == ActionQuarantined); err != nil {
		return err
	}
	return x.bad.Add(0, f.Place.Record-1, row, action)
}

// extra lists the columns of the results behind the fields, with their types.
func (s *PythonStep) extra() [][2]string {
	switch {
	case s.Program.Table != nil:
		return [][2]string{{GroupColumn, "BIGINT"}, {RowColumn, "BIGINT"}}
	case s.Bad != nil:
		return [][2]string{{BadFlag, "BOOLEAN"}}
	}
	return nil
}

// zoned lists the fields whose datetimes keep the zone in which Python writes
// them: those of formulas, which are texts.
func (s *PythonStep) zoned() []int {
	var out []int
	for i, f := range s.Program.Fields {
		if f.Type == expr.DateTime && s.Program.Table == nil {
			out = append(out, i)
		}
	}
	return out
}

func zoneColumn(field int) string { return fmt.Sprintf("z%d", field) }

func createResultTable(step *PythonStep) string {
	fields := step.Program.Fields
	cols := make([]string, 0, len(fields)+2)
	for i, f := range fields {
		cols = append(cols, fmt.Sprintf("c%d %s", i, transportType(f.Type)))
	}
	for _, c := range step.extra() {
		cols = append(cols, sqltext.Ident(c[0])+" "+c[1])
	}
	for _, i := range step.zoned() {
		cols = append(cols, zoneColumn(i)+" VARCHAR")
	}
	return fmt.Sprintf("CREATE TEMP TABLE %s (%s)", resultRaw, strings.Join(cols, ", "))
}

// typeResultTable gives the transported columns their names and types.
func typeResultTable(step *PythonStep) string {
	fields := step.Program.Fields
	cols := make([]string, len(fields), len(fields)+2)
	for i, f := range fields {
		cols[i] = untransportSQL(f.Type, fmt.Sprintf("c%d", i)) + " AS " + sqltext.Ident(f.Name)
	}
	for _, i := range step.zoned() {
		cols[i] = expr.ZonedSQL(untransportSQL(expr.DateTime, fmt.Sprintf("c%d", i)), zoneColumn(i)) + " AS " +
			sqltext.Ident(fields[i].Name)
	}
	for _, c := range step.extra() {
		cols = append(cols, sqltext.Ident(c[0]))
	}
	return fmt.Sprintf("CREATE TEMP VIEW %s AS SELECT %s FROM %s", ResultTable, strings.Join(cols, ", "), resultRaw)
}

// sourceRows begins to read the step's source, window by window.
func (x *execution) sourceRows(ctx context.Context, step *PythonStep) (*vectorRows, error) {
	windows := []string{""}
	if step.Groups != "" {
		if err := x.in.Exec(ctx, "CREATE TEMP TABLE "+GroupTable+" AS "+step.Groups); err != nil {
			return nil, err
		}
		lasts, err := x.ints(ctx,
			fmt.Sprintf("SELECT max(%[1]s) FROM (SELECT %[1]s, sum(%[2]s) OVER (ORDER BY %[1]s) - %[2]s AS before "+
				"FROM %[3]s) GROUP BY before // %[4]d ORDER BY 1",
				sqltext.Ident(GroupColumn), sqltext.Ident(GroupRowsColumn), GroupTable, max(step.WindowRows, 1)))
		if err != nil {
			return nil, fmt.Errorf("share out groups: %w", err)
		}
		if len(lasts) == 0 {
			lasts = []int64{0} // no rows are read once, too
		}
		windows = nil
		first := int64(0)
		for _, last := range lasts {
			windows = append(windows,
				fmt.Sprintf("CREATE OR REPLACE TEMP TABLE %s AS SELECT * FROM %s WHERE %s BETWEEN %d AND %d",
					WindowTable, GroupTable, sqltext.Ident(GroupColumn), first, last))
			first = last + 1
		}
	}
	return x.in.vectorRows(ctx, step.Source, step.sourceTypes(), windows)
}

// sourceTypes are the types of Source's columns.
func (s *PythonStep) sourceTypes() []mapping.Type {
	kinds := map[expr.Type]mapping.Type{expr.String: mapping.TypeVarchar, expr.Float: mapping.TypeDouble,
		expr.Bool: mapping.TypeBoolean}
	var types []mapping.Type
	for _, in := range s.Program.Inputs {
		t := cmp.Or(kinds[in.Type], mapping.TypeBigInt)
		if transportType(in.Type) == "VARCHAR" {
			t = mapping.TypeVarchar
		}
		types = append(types, t)
	}
	if s.Groups != "" {
		types = append(types, mapping.TypeBigInt)
	}
	return types
}

// groups gives the rows of a function over groups, each with its group's number.
func (r *vectorRows) groups(ctx context.Context, step *PythonStep) func() (python.Row, int64, error) {
	return func() (row python.Row, group int64, err error) {
		if err = r.next(ctx); err == nil && step.Groups != "" {
			group = int64(r.Word(len(r.types) - 1))
		}
		return r, group, err
	}
}

// driverRows runs a query and gives its rows as the driver does.
func (in *Instance) driverRows(ctx context.Context, query string) (rows driver.Rows, err error) {
	if err := in.prepare(ctx, query); err != nil {
		return nil, err
	}
	rawErr := in.conn.Raw(func(c any) error {
		conn, ok := c.(driver.QueryerContext)
		if !ok {
			return fmt.Errorf("unexpected driver connection %T", c)
		}
		rows, err = conn.QueryContext(ctx, query, nil)
		return nil // err must not make database/sql give the connection up
	})
	return rows, errors.Join(rawErr, err)
}

// sink appends results; it belongs to one goroutine at a time.
type sink struct {
	app    *duckdb.Appender
	row    []driver.Value
	fields []python.Field
	extra  int         // columns behind the fields
	zones  map[int]int // field -> column of its text with the zone
}

func (x *execution) openSink(step *PythonStep) (*sink, error) {
	app, err := x.in.appender(resultRaw)
	if err != nil {
		return nil, fmt.Errorf("open the results of Python: %w", err)
	}
	s := &sink{app: app, fields: step.Program.Fields, extra: len(step.extra()), zones: map[int]int{}}
	s.row = make([]driver.Value, len(s.fields)+s.extra+len(step.zoned()))
	for k, i := range step.zoned() {
		s.zones[i] = len(s.fields) + s.extra + k
		s.row[s.zones[i]] = ""
	}
	if step.Bad != nil {
		s.row[len(s.fields)] = false
	}
	return s, nil
}

// fail appends a row without results: NULL where a field may be that, zero
// elsewhere, which nobody sees if the row is out.
func (s *sink) fail(out bool) error {
	for i, f := range s.fields {
		s.row[i] = zeroOf(f)
	}
	s.row[len(s.fields)] = out
	err := s.app.AppendRow(s.row...)
	s.row[len(s.fields)] = false
	return err
}

const secondsOfDay = 24 * 60 * 60

func zeroOf(f python.Field) driver.Value {
	switch {
	case f.Nullable:
		return nil
	case f.Type == expr.String:
		return ""
	case f.Type == expr.Float:
		return float64(0)
	case f.Type == expr.Bool:
		return false
	case f.Type == expr.DateTime:
		return time.Time{}.UnixMilli()
	case f.Type == expr.Date:
		return time.Time{}.Unix() / secondsOfDay
	case f.Type == expr.Instant:
		return time.Time{}.UnixMicro()
	case f.Type.Nested():
		return nil
	case transportType(f.Type) == "VARCHAR":
		return "0"
	}
	return int64(0)
}

func (s *sink) emit(values []any) error {
	for i, v := range values {
		switch v := v.(type) {
		case python.Cents:
			s.row[i] = int64(v)
		case time.Time:
			s.row[i] = v.UnixMilli()
			if at, zoned := s.zones[i]; zoned {
				s.row[at] = zoneText(v)
			}
		default:
			s.row[i] = v
		}
	}
	return s.app.AppendRow(s.row...)
}

// zoneText returns the text of a datetime in another zone than UTC; "" for UTC.
func zoneText(t time.Time) string {
	if _, seconds := t.Zone(); seconds == 0 {
		return ""
	}
	return t.Format(expr.ZonedLayout)
}

// emitOf appends a row of a group's result.
func (s *sink) emitOf(group, row int64, values []any) error {
	last := len(s.fields) + s.extra - 2
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
