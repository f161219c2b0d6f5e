package files

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
)

// planParquet plans to read views, where each value may fail by itself.
func (t *Tolerant) planParquet(scratchDir string) error {
	var err error
	if t.parquet, err = planParquet(t.r, t.slices, filepath.Join(scratchDir, "tolerant"), true); err != nil {
		return err
	}
	var selects []string
	for i := range t.parquet.slices {
		s := &t.parquet.slices[i]
		cols := make([]string, 0, len(t.used)+tolerantPositions)
		for _, n := range t.used {
			value, err := t.parquet.orDefault(s, n)
			if err != nil {
				return err
			}
			cols = append(cols, "TRY(["+value+"]) AS "+TolerantColumn(n))
		}
		cols = append(cols, sqltext.Int(int64(s.File))+" AS "+FileColumn, s.rowNumber()+" AS "+RowColumn,
			"CAST(NULL AS BIGINT) AS "+LineColumn)
		selects = append(selects, "SELECT "+strings.Join(cols, ", ")+s.scan(t.parquet.slices[i:i+1]))
	}
	if len(selects) == 0 {
		selects = []string{"SELECT " + strings.Join((&tolerantCSV{r: t.r, used: t.used}).emptyColumns(), ", ") +
			" WHERE false"}
	}
	t.SQL = unionAll(selects)
	return nil
}

// locateParquet reads rows of a slice again, the columns of the reader as JSON.
func (t *Tolerant) locateParquet(ctx context.Context, db Querier, s Slice, cells []BadCell,
	found func(i int, rec BadRecord) error) error {
	const rowsAtOnce = 1_000
	from := &t.parquet.slices[t.sliceIndex(s)]
	byRow := map[int64]int{}
	var rows []string
	flush := func() error {
		if len(rows) == 0 {
			return nil
		}
		err := t.readRows(ctx, db, from, rows, func(row int64, values []sql.NullString) error {
			i := byRow[row]
			return found(i, t.badParquet(from, cells[i], values))
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
func (t *Tolerant) readRows(ctx context.Context, db Querier, s *parquetSlice, rows []string,
	each func(row int64, values []sql.NullString) error) (err error) {
	var pairs, texts []string
	for i, c := range t.r.Columns {
		text := s.text(t.r, i)
		name := c.Parquet
		if !c.InFile() {
			name = c.Name
		}
		pairs = append(pairs, sqltext.String(name)+": "+text)
		texts = append(texts, text)
	}
	query := "SELECT " + s.rowNumber() + ", CAST(to_json({" + strings.Join(pairs, ", ") + "}) AS VARCHAR), " +
		strings.Join(texts, ", ") +
		s.scan([]parquetSlice{*s}) + " WHERE " + s.rowNumber() + " IN (" + strings.Join(rows, ", ") + ") ORDER BY 1"
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

func (t *Tolerant) badParquet(s *parquetSlice, cell BadCell, values []sql.NullString) BadRecord {
	raw := []byte(values[0].String)
	out := BadRecord{File: s.File, Row: cell.Row,
		BadRow: fault.BadRow{Place: fault.Place{File: s.URL, Record: cell.Row + 1}, Raw: rawText(raw, int64(len(raw)))}}
	if cell.Column >= 0 {
		c := t.r.Columns[cell.Column]
		if fixed := s.columns[cell.Column].fixed; fixed != nil {
			f := s.source().fixedFault(c, fixed)
			out.Place.Field, out.Place.Value, out.Reason = c.Name, f.Place.Value, f.Message
			return out
		}
		value := shownNumber(s.columns[cell.Column], values[1+cell.Column].String)
		out.Place.Field, out.Place.Value = c.Name, shorten(value)
		out.Reason = unfit(c, s.columns[cell.Column], value)
	}
	return out
}
