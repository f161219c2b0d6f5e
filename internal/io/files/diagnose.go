package files

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/io/parquetfile"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
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
func Diagnose(ctx context.Context, db Querier, r *script.FileReader, slices []Slice, scratchDir string,
	cause error) error {
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
	addRecord(ctx, db, r, slices, scratchDir, &f.Place)
	return f
}

// addRecord adds the record to a place that has its number. Without it, the place says enough.
func addRecord(ctx context.Context, db Querier, r *script.FileReader, slices []Slice, scratchDir string,
	p *fault.Place) {
	at := slicesOf(slices, p.File)
	if p.Raw != "" || p.Record == 0 || len(at) == 0 {
		return
	}
	dir := filepath.Join(scratchDir, "record")
	defer func() { _ = os.RemoveAll(dir) }() // it is in the scratch directory of the batch
	raw := ""
	if Locate(ctx, db, r, at, dir, []Place{{File: at[0].File, Row: p.Record - 1}}, func(l Located) error {
		raw = ShownRecord(l.Text)
		return nil
	}) == nil {
		p.Raw = raw
	}
}

// slicesOf lists the slices of a file.
func slicesOf(all []Slice, url string) (out []Slice) {
	for _, s := range all {
		if s.URL == url {
			out = append(out, s)
		}
	}
	return out
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
// be read at all, then for the first value that does not convert. It reads
// them through views, where each value can be looked at by itself.
func diagnoseParquet(ctx context.Context, db Querier, r *script.FileReader, slices []Slice,
	scratchDir string) (err error) {
	dir := filepath.Join(scratchDir, "diagnose")
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for i := range slices {
		plan, err := planParquet(r, slices[i:i+1], dir, true)
		if err != nil {
			return err
		}
		if err := plan.prepare(ctx); err != nil {
			return err
		}
		for c := range r.Columns {
			if err := plan.diagnoseColumn(ctx, db, c); err != nil {
				return err
			}
		}
		if err := plan.diagnoseFooter(ctx, db); err != nil {
			return err
		}
	}
	return nil
}

// diagnoseFooter looks whether DuckDB refuses what we do not read of a footer,
// or where it leads.
func (p *parquetPlan) diagnoseFooter(ctx context.Context, db Querier) error {
	s := p.slices[0]
	if !s.native() {
		return nil
	}
	s.view = ""
	for _, c := range s.inFile() {
		_, err := queryRow(ctx, db, "SELECT CAST(max(hash("+sqltext.Ident(c.Name)+")) AS VARCHAR)"+
			s.scan([]parquetSlice{s}))
		if err != nil && ctx.Err() == nil {
			return s.source().damaged(&parquetfile.DamagedError{Column: c.Name, What: "DuckDB cannot read what its footer says",
				Err: err})
		}
	}
	return ctx.Err()
}

// diagnoseColumn looks for the first value of column i that cannot be read.
func (p *parquetPlan) diagnoseColumn(ctx context.Context, db Querier, i int) error {
	s, c := &p.slices[0], p.r.Columns[i]
	from := s.scan(p.slices)
	if cell := s.columns[i].fixed; cell != nil {
		if c.Type == expr.String || cell.empty {
			return nil
		}
		bad, err := csvBad(c, fixedText(c, cell))
		if err != nil {
			return err
		}
		if row, err := queryRow(ctx, db, "SELECT '1'"+from+" WHERE "+bad+" LIMIT 1"); err != nil || row == nil {
			return err
		}
		return s.source().fixedFault(c, cell)
	}
	if _, err := queryRow(ctx, db, "SELECT CAST(max(hash("+s.viewed(i)+")) AS VARCHAR)"+from); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return s.source().damaged(&parquetfile.DamagedError{Column: c.Parquet, What: "DuckDB cannot read it", Err: err})
	}
	value, err := s.value(p.r, i)
	if err != nil {
		return err
	}
	query := "SELECT CAST(" + s.rowNumber() + " AS VARCHAR), left(" + s.text(p.r, i) + ", " +
		fmtInt(shownValueRunes+1) + ")" + from +
		" WHERE " + s.viewed(i) + " IS NOT NULL AND TRY(" + value + ") IS NULL LIMIT 1"
	row, err := queryRow(ctx, db, query)
	if err != nil || row == nil {
		return nil
	}
	n, _ := strconv.ParseInt(row[0].String, 10, 64)
	text := shownNumber(s.columns[i], row[1].String)
	e := s.source().bad("%s", unfit(c, s.columns[i], text))
	e.Hint = roundHint(p.r, c)
	e.Place.Record, e.Place.Field, e.Place.Value = n+1, c.Parquet, shorten(text)
	return e
}

func fmtInt(n int64) string { return strconv.FormatInt(n, 10) }
