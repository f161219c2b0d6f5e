package engine

import (
	"context"
	"errors"
	"strings"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
)

// Copy writes a file and returns the rows in it and, if RETURN_STATS is among
// the options, its size. ordered demands that the rows come in order.
func (in *Instance) Copy(ctx context.Context, c sqltext.Copy, ordered bool) (rowCount, byteCount int64, err error) {
	return in.copyAround(ctx, c, ordered, nil)
}

// CopyTo writes rows in order and gives their count. Each try at the COPY is inside of a
// call of around, if that is not nil: who reads what is written begins anew with it.
func (in *Instance) CopyTo(ctx context.Context, c sqltext.Copy,
	around func(ctx context.Context, try func(context.Context) error) error) (rowCount int64, err error) {
	rowCount, _, err = in.copyAround(ctx, c, true, around)
	return rowCount, err
}

// Texts gives the rows of a query whose columns are texts; NULL is nil.
func (in *Instance) Texts(ctx context.Context, query string) (out [][]*string, err error) {
	rows, err := in.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	cols, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		row, into := make([]*string, len(cols)), make([]any, len(cols))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		out = append(out, row)
	}
	return out, rows.Err()
}

// aroundTry is called for each try at a COPY, and calls it; nil: nobody has to be.
type aroundTry func(ctx context.Context, try func(context.Context) error) error

func (in *Instance) copyAround(ctx context.Context, c sqltext.Copy, ordered bool, around aroundTry) (rowCount,
	byteCount int64, err error) {
	if !in.hidesFailures && strings.Contains(c.Query, expr.ScanEnd+"(") {
		in.scansWhole = true
		err := in.defined(ctx, c.Query, expr.ScanWhole(), expr.ScanInPart(), func() (err error) {
			rowCount, byteCount, err = in.copyFloats(ctx, c, ordered, around)
			return err
		})
		in.scansWhole = false
		if err == nil || ctx.Err() != nil {
			return rowCount, byteCount, err
		}
	}
	return in.copyFloats(ctx, c, ordered, around)
}

// defined calls f while a macro of the query is defined in another way than usual.
func (in *Instance) defined(ctx context.Context, query, other, usual string, f func() error) error {
	if err := in.defineMacros(ctx, query); err != nil {
		return err
	}
	if err := in.set(ctx, []string{other}); err != nil {
		return err
	}
	err := f()
	if serr := in.set(context.WithoutCancel(ctx), []string{usual}); serr != nil {
		in.macros.forget()
		return errors.Join(err, serr)
	}
	return err
}

func (in *Instance) copyFloats(ctx context.Context, c sqltext.Copy, ordered bool, around aroundTry) (rowCount,
	byteCount int64, err error) {
	rowCount, byteCount, err = in.copyJoined(ctx, c.Guarded(), ordered, around)
	if err != nil && len(c.Floats) > 0 && foundIn(err, sqltext.NegativeZero) {
		return in.copyJoined(ctx, c.Exact(), ordered, around)
	}
	return rowCount, byteCount, err
}

// copyJoined runs a COPY. Texts that it joins are tried to be joined as they
// come, where a failure of that would be seen, and one thread brings them in order.
func (in *Instance) copyJoined(ctx context.Context, stmt string, ordered bool, around aroundTry) (rowCount,
	byteCount int64, err error) {
	if in.hidesFailures || in.cfg.Threads > 1 || !strings.Contains(stmt, expr.Joined+"(") {
		return in.copyOnce(ctx, stmt, ordered, around)
	}
	err = in.defined(ctx, stmt, expr.JoinedAsCame(), expr.JoinedAnyhow(), func() error {
		rowCount, byteCount, err = in.copyOnce(ctx, stmt, ordered, around)
		return err
	})
	if err != nil && foundIn(err, expr.NotAsCame) {
		return in.copyOnce(ctx, stmt, ordered, around)
	}
	return rowCount, byteCount, err
}

// copyOnce runs a COPY.
func (in *Instance) copyOnce(ctx context.Context, stmt string, ordered bool, around aroundTry) (rowCount,
	byteCount int64, err error) {
	if ordered {
		if err := InOrder(ctx, in, stmt); err != nil {
			return 0, 0, err
		}
	}
	if around == nil {
		return in.copyCounted(ctx, stmt)
	}
	err = around(ctx, func(ctx context.Context) error {
		rowCount, byteCount, err = in.copyCounted(ctx, stmt)
		return err
	})
	return rowCount, byteCount, err
}

func (in *Instance) copyCounted(ctx context.Context, stmt string) (rowCount, byteCount int64, err error) {
	rows, err := in.Query(ctx, stmt)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	cols, err := rows.Columns()
	if err != nil {
		return 0, 0, err
	}
	for rows.Next() {
		cells := make([]any, len(cols))
		for i := range cells {
			cells[i] = new(any)
		}
		if err := rows.Scan(cells...); err != nil {
			return 0, 0, err
		}
		for i, c := range cols {
			v := *cells[i].(*any)
			switch strings.ToLower(c) {
			case "count":
				rowCount += asInt(v)
			case "file_size_bytes":
				byteCount += asInt(v)
			}
		}
	}
	if err := rows.Err(); err != nil {
		return 0, 0, err
	}
	if in.profiled {
		in.csvRows, err = csvRows(in.conn) // of this statement: others follow
	}
	return rowCount, byteCount, err
}
