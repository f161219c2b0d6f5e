package files

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"thalweg/internal/fault"
	"thalweg/internal/sqltext"
)

// planParquet is readParquetSQL with values that may fail.
func (t *Tolerant) planParquet() error {
	var err error
	if t.feet, err = readFooters(t.slices); err != nil {
		return err
	}
	var selects []string
	for i, s := range t.slices {
		f := t.feet[i]
		if _, err := wantedColumns(t.r, f, s.URL); err != nil {
			return err
		}
		if f.hidesRowNumber() {
			return inputFault(fault.UserData, s.URL, "the file has a column named file_row_number or file_index, which hides row numbers: its bad rows cannot be told apart")
		}
		cols := make([]string, 0, len(t.used)+tolerantPositions)
		for _, n := range t.used {
			value, err := parquetValue(t.r.Columns[n], f)
			if err != nil {
				return err
			}
			cols = append(cols, "TRY(["+value+"]) AS "+TolerantColumn(n))
		}
		cols = append(cols, sqltext.Int(int64(s.File))+" AS "+FileColumn, "CAST(file_row_number AS BIGINT) AS "+RowColumn, "CAST(NULL AS BIGINT) AS "+LineColumn)
		selects = append(selects, "SELECT "+strings.Join(cols, ", ")+parquetFrom(s))
	}
	if len(selects) == 0 {
		selects = []string{"SELECT " + strings.Join((&tolerantCSV{r: t.r, used: t.used}).emptyColumns(), ", ") + " WHERE false"}
	}
	t.SQL = unionAll(selects)
	return nil
}

// parquetFrom reads a slice's rows.
func parquetFrom(s Slice) string {
	from := " FROM read_parquet([" + sqltext.String(sqltext.Glob(s.Path)) + "], hive_partitioning = false)"
	if s.Rows >= 0 {
		from += " WHERE file_row_number >= " + fmtInt(s.FirstRow) + " AND file_row_number < " + fmtInt(s.FirstRow+s.Rows)
	}
	return from
}

// locateParquet reads rows of a slice again, the columns of the reader as JSON.
func (t *Tolerant) locateParquet(ctx context.Context, db Querier, s Slice, cells []BadCell, found func(i int, rec BadRecord) error) error {
	const rowsAtOnce = 1_000
	f := t.feet[t.sliceIndex(s)]
	byRow := map[int64]int{}
	var rows []string
	flush := func() error {
		if len(rows) == 0 {
			return nil
		}
		err := t.readRows(ctx, db, s, f, rows, func(row int64, values []sql.NullString) error {
			i := byRow[row]
			return found(i, t.badParquet(s, f, cells[i], values))
		})
		rows = rows[:0]
		clear(byRow)
		return err
	}
	for i, c := range cells {
		if s.Rows >= 0 && (c.Row < s.FirstRow || c.Row >= s.FirstRow+s.Rows) {
			continue // of another slice of the file
		}
		byRow[c.Row] = i
		if rows = append(rows, fmtInt(c.Row)); len(rows) == rowsAtOnce {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// readRows gives rows of a file in order: all columns of the reader as one
// JSON text, then each as text.
func (t *Tolerant) readRows(ctx context.Context, db Querier, s Slice, f *footer, rows []string, each func(row int64, values []sql.NullString) error) (err error) {
	var pairs, texts []string
	for _, c := range t.r.Columns {
		have, _ := f.column(c.Parquet)
		pairs = append(pairs, sqltext.String(c.Parquet)+": CAST("+sqltext.Ident(have.name)+" AS VARCHAR)")
		texts = append(texts, "CAST("+sqltext.Ident(have.name)+" AS VARCHAR)")
	}
	query := "SELECT file_row_number, CAST(to_json({" + strings.Join(pairs, ", ") + "}) AS VARCHAR), " + strings.Join(texts, ", ") +
		" FROM (SELECT *, file_row_number" + parquetFrom(Slice{Path: s.Path, Rows: -1}) + " WHERE file_row_number IN (" + strings.Join(rows, ", ") + ")) ORDER BY 1"
	result, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, result.Close()) }()
	for result.Next() {
		var row int64
		values := make([]sql.NullString, 1+len(t.r.Columns))
		into := []any{&row}
		for i := range values {
			into = append(into, &values[i])
		}
		if err := result.Scan(into...); err != nil {
			return err
		}
		if err := each(row, values); err != nil {
			return err
		}
	}
	return result.Err()
}

func (t *Tolerant) badParquet(s Slice, f *footer, cell BadCell, values []sql.NullString) BadRecord {
	raw := []byte(values[0].String)
	out := BadRecord{File: s.File, Row: cell.Row, BadRow: fault.BadRow{Place: fault.Place{File: s.URL, Record: cell.Row + 1}, Raw: rawText(raw, int64(len(raw)))}}
	if cell.Column >= 0 {
		c := t.r.Columns[cell.Column]
		have, _ := f.column(c.Parquet)
		value := values[1+cell.Column].String
		out.Place.Field, out.Place.Value = c.Name, shorten(value)
		out.Reason = unfit(c, have, value)
	}
	return out
}
