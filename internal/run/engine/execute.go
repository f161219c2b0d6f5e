package engine

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/run/python"
)

// Execute runs a task in a fresh instance. On failure its output files are
// gone; if it was Judge that failed it, Result.Sides are there. pool may be nil for tasks without Python.
func Execute(ctx context.Context, cfg InstanceConfig, pool *python.Pool, task Task) (Result, error) {
	return execute(ctx, cfg, pool, task, fresh{openDatabase})
}

// lender gives instances to tasks.
type lender interface {
	open(ctx context.Context, cfg InstanceConfig) (*Instance, error)
	// close takes the instance back; clean says that its task has succeeded and
	// that all it has made there is temporary.
	close(in *Instance, clean bool) error
}

// fresh gives each task an instance of its own.
type fresh struct{ database func() (*sql.DB, error) }

func (f fresh) open(ctx context.Context, cfg InstanceConfig) (*Instance, error) {
	db, err := f.database()
	if err != nil {
		return nil, err
	}
	return fenceIn(ctx, db, cfg)
}

func (fresh) close(in *Instance, _ bool) error { return in.Close() }

func execute(ctx context.Context, cfg InstanceConfig, pool *python.Pool, task Task, from lender) (res Result,
	err error) {
	x := &execution{pool: pool, task: task}
	unprepared := x.prepare(ctx)
	if unprepared != nil && !x.canRetry(ctx, unprepared) {
		return Result{}, classify(ctx, unprepared, task)
	}
	cfg.Paths = append(append([]string{}, cfg.Paths...), task.Paths...)
	if task.OneThread {
		cfg.Threads = 1
	}
	cfg.Profile, cfg.Unlocked = task.CSV != nil, task.Quarantine != nil
	start := time.Now()
	in, err := from.open(ctx, cfg)
	if err != nil {
		return Result{}, classify(ctx, err, task)
	}
	x.in, x.bad.in = in, in
	if cfg.Opened != nil {
		cfg.Opened(in.cfg.SpillDir)
	}
	in.hidesFailures = task.Quarantine != nil
	defer func() {
		if err != nil {
			if !x.judged {
				err = x.explain(ctx, err)
				x.discardSides()
			}
			x.discard()
		}
		x.res.PartsRead = x.res.PartsRead || in.partsRead
		if cerr := from.close(in, err == nil && !x.retried); cerr != nil && err == nil {
			x.discard()
			x.discardSides()
			err = classify(ctx, fmt.Errorf("close DuckDB: %w", cerr), task)
		}
		x.res.Engine = time.Since(start) - x.pythonWait
		res = x.res
	}()
	if err = unprepared; err == nil {
		err = x.run(ctx)
	}
	if err != nil && x.canRetry(ctx, err) {
		err = x.retry(ctx)
	}
	return Result{}, err
}

// execution is one task on one instance.
type execution struct {
	in         *Instance
	pool       *python.Pool
	task       Task
	res        Result
	bad        Bad
	judged     bool          // the task's own Judge failed it
	retried    bool          // without the rows that failed it
	pythonWait time.Duration // spent waiting for interpreters, not in DuckDB
}

func (x *execution) prepare(ctx context.Context) error {
	if x.task.Prepare == nil {
		return nil
	}
	return x.task.Prepare(ctx)
}

func (x *execution) run(ctx context.Context) error {
	for _, stmt := range x.task.Setup {
		if err := x.in.Exec(ctx, stmt); err != nil {
			return err
		}
	}
	if x.task.Python != nil {
		if err := x.runPython(ctx); err != nil {
			return err
		}
	}
	if x.task.Numbers && x.task.FreeOrder {
		if err := numberedInOrder(ctx, x.in, x.task.Query); err != nil {
			return err
		}
	}
	var err error
	switch out := x.task.Output; {
	case out.Part != nil:
		err = x.writePart(ctx, out.Part)
	case out.File != nil:
		err = x.writeFile(ctx, out.File)
	case out.Inspect != nil:
		err = out.Inspect(ctx, x.in)
	}
	if err != nil {
		return err
	}
	for _, w := range x.res.Written {
		x.res.RowsOut += w.Rows
	}
	sides, err := x.badSides()
	if err != nil {
		return err
	}
	for _, side := range append(sides, x.task.Sides...) {
		if err := x.writeSide(ctx, side); err != nil {
			return err
		}
	}
	return x.judge(ctx)
}

// judge calls the task's Judge on what was written, after that of the bad rows. It fails
// the batch if one of them does.
func (x *execution) judge(ctx context.Context) error {
	judges := []func(context.Context, Querier, Result) error{x.task.Judge}
	if x.bad.count > 0 {
		judges = []func(context.Context, Querier, Result) error{x.task.Quarantine.Judge, x.task.Judge}
	}
	for _, judge := range judges {
		if judge == nil {
			continue
		}
		if err := judge(ctx, x.in, x.res); err != nil {
			x.judged = true
			return classify(ctx, err, x.task)
		}
	}
	return nil
}

// writeSide writes rows beside the output, or nothing if there are none.
func (x *execution) writeSide(ctx context.Context, side SideOutput) error {
	query := side.Query
	if side.RowsMax > 0 {
		query = fmt.Sprintf("SELECT * FROM (%s) LIMIT %d", query, side.RowsMax)
	}
	main := x.res.Written
	x.res.Written = nil
	w, err := x.copyPart(ctx, &PartOutput{Stage: side.Stage, Floats: side.Floats}, query, true)
	if err == nil {
		err = x.keep(ctx, w)
	}
	for _, w := range x.res.Written {
		w.Side = side.Side
		x.res.Sides = append(x.res.Sides, w)
	}
	x.res.Written = main
	return err
}

// writePart writes the query's rows as one part, or none if there are no rows.
func (x *execution) writePart(ctx context.Context, out *PartOutput) error {
	if out.Cluster != nil {
		if ok, err := x.writeClustered(ctx, out); ok || err != nil {
			return err
		}
	}
	return x.writeRows(ctx, out, out.query(x.task.Query))
}

func (x *execution) writeRows(ctx context.Context, out *PartOutput, query string) error {
	w, err := x.copyPart(ctx, out, query, !x.task.FreeOrder)
	if err != nil {
		return err
	}
	if err := x.countCSV(ctx); err != nil {
		return err
	}
	return x.keep(ctx, w)
}

// query is the SELECT of the rows as they will lie.
func (out *PartOutput) query(rows string) string {
	var hidden strings.Builder
	if out.BucketSQL != "" {
		fmt.Fprintf(&hidden, ", CAST(%s AS USMALLINT) AS %s", out.BucketSQL, BucketColumn)
	}
	if out.NumberSQL != "" {
		fmt.Fprintf(&hidden, ", %s AS __o0", out.NumberSQL)
	}
	if hidden.Len() > 0 {
		rows = fmt.Sprintf("SELECT *%s FROM (%s) AS q", hidden.String(), rows)
	}
	if len(out.SortedBy) > 0 {
		rows += " ORDER BY " + strings.Join(out.SortedBy, ", ")
	}
	return rows
}

func (x *execution) copyPart(ctx context.Context, out *PartOutput, query string, ordered bool) (Written, error) {
	path, err := out.Stage(ctx)
	if err != nil {
		return Written{}, fmt.Errorf("stage a part: %w", err)
	}
	w := Written{Path: path}
	group, codec := cmp.Or(out.RowGroupRows, PartRowGroupRows), partCodec
	if out.Wide {
		codec = partWideCodec
	}
	x.res.Written = append(x.res.Written, w) // known from here on, so that a failure removes it
	w.Rows, w.Bytes, err = x.in.Copy(ctx, sqltext.Copy{Query: query, Path: path, Floats: out.Floats,
		Options: []string{"FORMAT parquet", "COMPRESSION " + codec, fmt.Sprintf("ROW_GROUP_SIZE %d", group),
			"RETURN_STATS"}},
		ordered)
	return w, err
}

// keep completes the last file of the result, or drops it when it has no rows.
func (x *execution) keep(ctx context.Context, w Written) error {
	last := len(x.res.Written) - 1
	if w.Rows == 0 {
		x.res.Written = x.res.Written[:last]
		return os.Remove(w.Path)
	}
	raw, err := x.ints(ctx, "SELECT CAST(sum(total_uncompressed_size) AS BIGINT) FROM parquet_metadata("+
		sqltext.String(w.Path)+")")
	if err != nil {
		return fmt.Errorf("read back the footer of a part: %w", err)
	}
	w.RawBytes = raw[0]
	x.res.Written[last] = w
	return nil
}

func (x *execution) writeFile(ctx context.Context, out *FileOutput) (err error) {
	// known from here on, so that a failure removes it
	x.res.Written = append(x.res.Written, Written{Path: out.Copy.Path})
	if out.Write != nil {
		written, err := out.Write(ctx, x.in)
		if err != nil {
			return err
		}
		x.res.Written = written
	} else if x.res.Written[0].Rows, _, err = x.in.Copy(ctx, out.Copy, true); err != nil {
		return err
	}
	if err := x.countCSV(ctx); err != nil {
		return err
	}
	for i := range x.res.Written {
		w := &x.res.Written[i]
		st, err := os.Stat(w.Path)
		if err != nil {
			return fmt.Errorf("look at the written file: %w", err)
		}
		w.Bytes, w.RawBytes = st.Size(), st.Size()
	}
	return nil
}

// countCSV takes what the CSV readers of the last COPY delivered into the result. Rows that
// they have not read, or twice, fail the task, unless its statement is the reason.
func (x *execution) countCSV(ctx context.Context) error {
	if x.task.CSV == nil {
		return nil
	}
	x.res.CSVRows = x.in.csvRows
	x.res.Records = 0
	for _, source := range x.task.CSV {
		x.res.Records += source.CSVRecords()
	}
	if x.res.Records == x.res.CSVRows {
		return nil
	}
	for _, source := range x.task.CSV {
		if err := source.Recount(ctx, x.in); err != nil {
			return err
		}
	}
	return nil
}

func (x *execution) ints(ctx context.Context, query string) (out []int64, err error) {
	rows, err := x.in.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var v sql.NullInt64
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		out = append(out, v.Int64)
	}
	return out, rows.Err()
}

func asInt(v any) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case uint64:
		return int64(n)
	case int32:
		return int64(n)
	}
	return 0
}

// explain gives the task's own diagnosis a chance, then classifies what is left.
func (x *execution) explain(ctx context.Context, cause error) error {
	classified := classify(ctx, cause, x.task)
	if x.task.Explain == nil || ctx.Err() != nil || !explainable(classified, cause) {
		return classified
	}
	if better := x.task.Explain(ctx, x.in, cause); better != nil {
		return classify(ctx, better, x.task)
	}
	return classified
}

// discard removes what a failed task wrote as its output.
func (x *execution) discard() {
	removeAll(x.res.Written)
	x.res.Written = nil
}

// discardSides removes what it wrote beside its output.
func (x *execution) discardSides() {
	removeAll(x.res.Sides)
	x.res.Sides = nil
}

func removeAll(written []Written) {
	for _, w := range written {
		_ = os.Remove(w.Path) // best effort: the part store sweeps what stays
	}
}
