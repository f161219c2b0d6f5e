package engine

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	duckdb "github.com/duckdb/duckdb-go/v2"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
)

// BadTable holds the rows that a task has put aside: columns at_file and
// at_row, by which they are ordered, then those of BadColumns. It exists once
// there is such a row.
const BadTable = "__bad"

// BadColumns are the columns of BadTable that describe a row, with their types.
func BadColumns() [][2]string {
	return [][2]string{{"file", "VARCHAR"}, {"line", "BIGINT"}, {"col", "BIGINT"}, {"record", "BIGINT"},
		{"field", "VARCHAR"},
		{"value", "VARCHAR"}, {"expression", "VARCHAR"}, {"reason", "VARCHAR"}, {"raw", "VARCHAR"},
		{"action", "VARCHAR"}}
}

// What happened to a bad row: column action.
const (
	ActionQuarantined = "quarantined" // it is not in the output
	ActionKept        = "kept"        // it is, with NULL or zero in place of what failed
)

// Quarantine lets a task go on without the rows that fail it. As long as none
// does, it costs nothing.
type Quarantine struct {
	// Retry is called when the task has failed because of its rows. It puts
	// those that fail into bad and returns how the rest of the work is done,
	// usually from tables that it has made, and how many rows there were.
	// Python, if the task has it, has been run.
	Retry func(ctx context.Context, db *Instance, bad *Bad) (task Task, rowsRead int64, err error)
	Sides []SideOutput // written if there are bad rows
	// Judge is as Task.Judge and before it, if there are bad rows.
	Judge func(ctx context.Context, db Querier, res Result) error
}

// Bad takes the rows that a task puts aside.
type Bad struct {
	in    *Instance
	app   *duckdb.Appender
	made  bool
	count int64
}

// Add keeps a row; file and row give its place in the order of all.
func (b *Bad) Add(file, row int64, r fault.BadRow, action string) error {
	if b.app == nil {
		if err := b.open(); err != nil {
			return fmt.Errorf("keep a bad row: %w", err)
		}
	}
	b.count++
	p := r.Place
	err := b.app.AppendRow(file, row, known(p.File), positive(p.Line), positive(int64(p.Column)), positive(p.Record),
		known(p.Field), known(p.Value), known(p.Expr), r.Reason, known(r.Raw), action)
	if err != nil {
		return fmt.Errorf("keep a bad row: %w", err)
	}
	return nil
}

// Omit counts rows that are not kept, because there are too many.
func (b *Bad) Omit(rows int64) { b.count += rows }

// positive is n, or NULL if it is not known.
func positive(n int64) driver.Value {
	if n <= 0 {
		return nil
	}
	return n
}

// known is s, or NULL if there is none.
func known(s string) driver.Value {
	if s == "" {
		return nil
	}
	return s
}

func (b *Bad) open() error {
	if !b.made {
		cols := "at_file BIGINT, at_row BIGINT"
		for _, c := range BadColumns() {
			cols += ", " + sqltext.Ident(c[0]) + " " + c[1]
		}
		if err := b.in.Exec(context.Background(), "CREATE TEMP TABLE "+BadTable+" ("+cols+")"); err != nil {
			return err
		}
		b.made = true
	}
	var err error
	b.app, err = b.in.appender(BadTable)
	return err
}

// flush makes the rows visible to queries.
func (b *Bad) flush() error {
	if b.app == nil {
		return nil
	}
	app := b.app
	b.app = nil
	if err := app.Close(); err != nil {
		return fmt.Errorf("keep the bad rows: %w", err)
	}
	return nil
}

// canRetry reports whether a task that failed may be done without some rows.
func (x *execution) canRetry(ctx context.Context, err error) bool {
	return x.task.Quarantine != nil && !x.judged && ctx.Err() == nil &&
		fault.Of(classify(ctx, err, x.task)).Kind == fault.UserData
}

// retry does the task again without the rows that fail it.
func (x *execution) retry(ctx context.Context) error {
	x.retried = true
	x.discard()
	x.discardSides()
	x.res.RowsOut = 0
	q := x.task.Quarantine
	task, rowsRead, err := q.Retry(ctx, x.in, &x.bad)
	if err != nil {
		return err
	}
	task.Quarantine = &Quarantine{Sides: q.Sides, Judge: q.Judge}
	x.task = task
	x.res.CSVRows, x.res.PartsRead = rowsRead, true
	return x.run(ctx)
}

// badSides lists what is written of the bad rows.
func (x *execution) badSides() ([]SideOutput, error) {
	x.res.BadRows = x.bad.count
	if x.bad.count == 0 {
		return nil, nil
	}
	return x.task.Quarantine.Sides, x.bad.flush()
}

// Tolerantly calls f while failures of expressions inside TRY give NULL. An
// instance that was opened with a locked configuration cannot do that.
//
// DuckDB refuses TRY around error(), which it takes for volatile: a macro of
// that name that fails by itself hides it. Common subexpressions would be
// computed outside of their TRY, and the rewriter computes constant ones.
func (in *Instance) Tolerantly(ctx context.Context, f func() error) (err error) {
	for _, stmt := range []string{
		"SET disabled_optimizers = 'common_subexpressions,expression_rewriter'",
		"CREATE OR REPLACE TEMP MACRO error(message) AS CASE WHEN CAST(message AS BOOLEAN) THEN NULL END",
	} {
		if err := in.Exec(ctx, stmt); err != nil {
			return fmt.Errorf("look for bad rows: %w", err)
		}
	}
	defer func() {
		err = errors.Join(err, in.Exec(ctx, "DROP MACRO IF EXISTS temp.error"),
			in.Exec(ctx, "RESET disabled_optimizers"))
	}()
	return f()
}

// appender opens an appender to a table.
func (in *Instance) appender(table string) (app *duckdb.Appender, err error) {
	err = in.Raw(func(c any) error {
		conn, ok := c.(driver.Conn)
		if !ok {
			return fmt.Errorf("unexpected driver connection %T", c)
		}
		app, err = duckdb.NewAppenderFromConn(conn, "", table)
		return err
	})
	return app, err
}
