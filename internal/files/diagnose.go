package files

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"thalweg/internal/fault"
	"thalweg/internal/script"
	"thalweg/internal/sqltext"
)

// Querier runs queries in the instance whose read failed.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Diagnose looks for the place that made the SQL of ReadSQL fail, or its
// prepare: the first file, line, column and value that cannot be read, as a
// *fault.Error. It reads the slices again, so it costs about as much as the
// failed read. It returns cause itself if cause is classified already or the
// files are all right: then something else failed. scratchDir is that of
// ReadSQL; its contents are replaced.
func Diagnose(ctx context.Context, db Querier, r *script.FileReader, slices []Slice, scratchDir string, cause error) error {
	var known *fault.Error
	if errors.As(cause, &known) {
		return cause
	}
	diagnose := diagnoseCSV
	if r.Parquet {
		diagnose = diagnoseParquet
	}
	found := diagnose(ctx, db, r, slices, scratchDir)
	var f *fault.Error
	if !errors.As(found, &f) {
		return cause // nothing found, or the search itself failed
	}
	return f
}

// queryRow runs a query for at most one row of texts; nil without a row.
func queryRow(ctx context.Context, db Querier, query string) (row []sql.NullString, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	if rows.Next() {
		row = make([]sql.NullString, len(names))
		into := make([]any, len(names))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
	}
	return row, rows.Err()
}

// diagnoseParquet tries the files one by one: first whether their columns can
// be read at all, then for the first value that does not convert.
func diagnoseParquet(ctx context.Context, db Querier, r *script.FileReader, slices []Slice, _ string) error {
	if err := unchangedAll(slices); err != nil {
		return err
	}
	for _, s := range slices {
		f, err := readFooter(s.Path, s.URL)
		if err != nil {
			return err
		}
		if _, err := wantedColumns(r, f, s.URL); err != nil {
			return err
		}
		for _, c := range r.Columns {
			if err := diagnoseColumn(ctx, db, c, f, s); err != nil {
				return err
			}
		}
	}
	return nil
}

func diagnoseColumn(ctx context.Context, db Querier, c *script.InputColumn, f *footer, s Slice) error {
	have, _ := f.column(c.Parquet)
	col := sqltext.Ident(have.name)
	from := parquetFrom(s)
	if _, err := queryRow(ctx, db, "SELECT CAST(max(hash("+col+")) AS VARCHAR)"+from); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		e := damagedFault(s.URL, fmt.Sprintf("column %q cannot be decoded", c.Parquet), err)
		e.Place.Field, e.Hint = c.Parquet, "is the file complete? Write it again"
		return e
	}
	cast, err := castParquet(c, have)
	if err != nil {
		return err
	}
	number := "file_row_number"
	if f.hidesRowNumber() {
		number = "-1"
	}
	query := "SELECT CAST(n AS VARCHAR), left(CAST(" + col + " AS VARCHAR), " + fmtInt(shownValueRunes+1) + ") FROM (SELECT " + col + ", " + number + " AS n" + from + ")" +
		" WHERE " + col + " IS NOT NULL AND TRY(" + cast + ") IS NULL LIMIT 1"
	row, err := queryRow(ctx, db, query)
	if err != nil || row == nil {
		return nil
	}
	n, _ := strconv.ParseInt(row[0].String, 10, 64)
	e := inputFault(fault.UserData, s.URL, "%s", unfit(c, have, row[1].String))
	e.Place.Record, e.Place.Field, e.Place.Value = n+1, c.Parquet, shorten(row[1].String)
	return e
}

func fmtInt(n int64) string { return strconv.FormatInt(n, 10) }
