package engine

import (
	"context"
	"errors"
	"strings"

	"thalweg/internal/sqltext"
)

// Copy writes a file and returns the rows in it and, if RETURN_STATS is among
// the options, its size. ordered demands that the rows come in order.
func (in *Instance) Copy(ctx context.Context, c sqltext.Copy, ordered bool) (rowCount, byteCount int64, err error) {
	rowCount, byteCount, err = in.copyOnce(ctx, c.Guarded(), ordered)
	if err != nil && len(c.Floats) > 0 && foundNegativeZero(err) {
		return in.copyOnce(ctx, c.Exact(), ordered)
	}
	return rowCount, byteCount, err
}

// copyOnce runs a COPY.
func (in *Instance) copyOnce(ctx context.Context, stmt string, ordered bool) (rowCount, byteCount int64, err error) {
	if ordered {
		if err := InOrder(ctx, in, stmt); err != nil {
			return 0, 0, err
		}
	}
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
	return rowCount, byteCount, rows.Err()
}
