package files

import (
	"context"
	"fmt"
	"strings"

	"thalweg/internal/expr"
	"thalweg/internal/fault"
	"thalweg/internal/script"
	"thalweg/internal/sqltext"
)

// decimalDigits is the precision of decimals in tables.
const decimalDigits = 18

// readParquetSQL writes one read_parquet call for each run of files that hold
// the wanted columns in the same types. Positions come from DuckDB's virtual
// columns file_index and file_row_number, which cost nothing that can be
// measured on 1,000 files with 1 and 2 threads; a range of file_row_number
// makes it skip the other row groups.
func readParquetSQL(r *script.FileReader, slices []Slice, withPosition bool) (string, func(context.Context) error, error) {
	prepare := func(context.Context) error { return unchangedAll(slices) }
	feet, err := readFooters(slices)
	if err != nil {
		return "", nil, err
	}
	var selects []string
	for from := 0; from < len(slices); {
		shape, to := "", from
		for ; to < len(slices); to++ {
			cols, err := wantedColumns(r, feet[to], slices[to].URL)
			if err != nil {
				return "", nil, err
			}
			next := shapeOf(cols)
			if to > from && (next != shape || !mergeable(slices[to-1], slices[to])) {
				break
			}
			shape = next
		}
		sel, err := parquetSelect(r, feet[from], slices[from:to], withPosition)
		if err != nil {
			return "", nil, err
		}
		selects = append(selects, sel)
		from = to
	}
	if len(selects) == 0 {
		selects = []string{emptySelect(r, withPosition)}
	}
	return unionAll(selects), prepare, nil
}

// mergeable reports whether one read_parquet call can read b after a: whole
// files with consecutive ordinals.
func mergeable(a, b Slice) bool { return a.Rows < 0 && b.Rows < 0 && b.File == a.File+1 }

func readFooters(slices []Slice) ([]*footer, error) {
	out := make([]*footer, len(slices))
	err := eachInOrder(context.Background(), len(slices), func(_ context.Context, i int) error {
		var err error
		out[i], err = readFooter(slices[i].Path, slices[i].URL)
		return err
	})
	return out, err
}

func unchangedAll(slices []Slice) error {
	for _, s := range slices {
		if err := s.unchanged(); err != nil {
			return err
		}
	}
	return nil
}

// wantedColumns finds the columns of r in a file.
func wantedColumns(r *script.FileReader, f *footer, u string) ([]parquetColumn, error) {
	out := make([]parquetColumn, len(r.Columns))
	for i, c := range r.Columns {
		have, ok := f.column(c.Parquet)
		if !ok {
			names := make([]string, len(f.columns))
			for k, n := range f.columns {
				names[k] = n.name
			}
			e := inputFault(fault.UserData, u, "missing column %q; the file has: %s", c.Parquet, quoteList(names))
			e.Place.Field, e.Hint = c.Parquet, nearHint(c.Parquet, names)
			return nil, e
		}
		if twin, ok := f.twin(c.Parquet); ok {
			e := inputFault(fault.UserData, u, "columns %q and %q differ in case only, which is not supported yet", c.Parquet, twin)
			e.Place.Field = c.Parquet
			return nil, e
		}
		if _, err := castParquet(c, have); err != nil {
			e := inputFault(fault.UserData, u, "column %q is %s in the file, which cannot be read as %s (column %s of the script): %s",
				c.Parquet, have.physical, c.Type, c.Name, err)
			e.Place.Field = c.Parquet
			return nil, e
		}
		out[i] = have
	}
	return out, nil
}

// shapeOf is the same for files that one read_parquet call may read together.
// Columns that nobody reads may differ: DuckDB matches by name.
func shapeOf(cols []parquetColumn) string {
	var b strings.Builder
	for _, c := range cols {
		fmt.Fprintf(&b, "%q %s %d %d %t;", c.name, c.physical, c.prec, c.scale, c.required)
	}
	return b.String()
}

// parquetSelect reads slices of one shape, of which the first file's footer is given.
func parquetSelect(r *script.FileReader, f *footer, slices []Slice, withPosition bool) (string, error) {
	var cols []string
	for _, c := range r.Columns {
		sql, err := parquetValue(c, f)
		if err != nil {
			return "", err
		}
		cols = append(cols, sql+" AS "+sqltext.Ident(c.Name))
	}
	first := slices[0]
	if withPosition || first.Rows >= 0 {
		if f.hidesRowNumber() {
			return "", inputFault(fault.UserData, first.URL, "the file has a column named file_row_number or file_index, which hides row numbers: not supported yet where rows must be numbered")
		}
	}
	if withPosition {
		cols = append(cols,
			"CAST(file_index AS BIGINT) + "+sqltext.Int(int64(first.File))+" AS "+FileColumn,
			"CAST(file_row_number AS BIGINT) AS "+RowColumn)
	}
	paths := make([]string, len(slices))
	for i, s := range slices {
		paths[i] = sqltext.Glob(s.Path)
	}
	sql := "SELECT " + strings.Join(cols, ", ") + " FROM read_parquet(" + sqltext.Strings(paths) + ", hive_partitioning = false, union_by_name = false)"
	if first.Rows >= 0 {
		sql += fmt.Sprintf(" WHERE file_row_number >= %s AND file_row_number < %s", sqltext.Int(first.FirstRow), sqltext.Int(first.FirstRow+first.Rows))
	}
	return sql, nil
}

// parquetValue converts a column of a file to the declared type.
func parquetValue(c *script.InputColumn, f *footer) (string, error) {
	have, _ := f.column(c.Parquet)
	sql, err := castParquet(c, have)
	if err != nil || have.required || c.Nullable {
		return sql, err
	}
	zero, err := zeroSQL(c.Type)
	if err != nil {
		return "", scriptFault(c.Pos, c.Name, "%s", err)
	}
	return "coalesce(" + sql + ", " + zero + ")", nil
}

// unfit says that a value of a column of a file cannot be converted.
func unfit(c *script.InputColumn, have parquetColumn, value string) string {
	return fmt.Sprintf("value %q of column %q (%s) does not fit %s", shorten(value), c.Parquet, have.physical, c.Type)
}

// mismatch is why a column of a file cannot be read as the declared type.
type mismatch string

func (m mismatch) Error() string { return string(m) }

// castParquet converts a column of a file to the declared type where that
// loses nothing; a value that does not fit fails the query. (Timestamps in
// nanoseconds lose those below the microsecond.)
func castParquet(c *script.InputColumn, have parquetColumn) (string, error) {
	col := sqltext.Ident(have.name)
	to := "CAST(" + col + " AS " + c.Type.SQL() + ")"
	if have.kind == kindNull {
		return "CAST(CAST(" + col + " AS VARCHAR) AS " + c.Type.SQL() + ")", nil
	}
	switch c.Type {
	case expr.String:
		switch have.kind {
		case kindString:
			return to, nil
		case kindBinary: // writers of old files leave out the annotation; fails if it is no UTF-8
			return "decode(" + col + ")", nil
		}
		return "", mismatch("only text can be read as string")
	case expr.Int:
		switch {
		case have.kind == kindInt, have.kind == kindSmallInt, have.kind == kindUint64:
			return to, nil
		case have.kind == kindDecimal && have.scale == 0:
			return to, nil
		case have.kind == kindDecimal:
			return "", mismatch("it has digits after the point; declare it as decimal2")
		}
		return "", mismatch("only whole numbers can be read as int")
	case expr.Float:
		switch have.kind {
		case kindFloat, kindSmallInt:
			return to, nil
		case kindInt, kindUint64:
			return "", mismatch("a float cannot hold every 64-bit number; declare it as int")
		case kindDecimal:
			return "", mismatch("a float cannot hold every decimal; declare it as decimal2")
		}
		return "", mismatch("only numbers can be read as float")
	case expr.Bool:
		if have.kind == kindBool {
			return to, nil
		}
		return "", mismatch("only booleans can be read as bool")
	case expr.DateTime:
		return castTimestamp(col, to, have.kind)
	case expr.Decimal:
		return castDecimal(col, to, have)
	}
	return "", mismatch("unknown type")
}

func castTimestamp(col, to string, kind parquetKind) (string, error) {
	switch kind {
	case kindTimestamp, kindDate:
		return to, nil
	case kindTimestampTZ:
		// A plain cast would depend on the session's time zone; AT TIME ZONE
		// is right but ten times slower than this.
		return "make_timestamp(epoch_us(" + col + "))", nil
	case kindInt, kindSmallInt:
		return "", mismatch("its numbers are not marked as time; declare it as int")
	}
	return "", mismatch("only timestamps and dates can be read as datetime")
}

func castDecimal(col, to string, have parquetColumn) (string, error) {
	switch have.kind {
	case kindInt, kindSmallInt, kindUint64:
		return to, nil
	case kindFloat:
		return "", mismatch("a decimal cannot hold every float; declare it as float")
	case kindDecimal:
		if have.scale < 0 || have.scale > decimalDigits {
			return "", mismatch(fmt.Sprintf("scale %d is not between 0 and %d", have.scale, decimalDigits))
		}
		if have.scale > 2 {
			return fmt.Sprintf("CAST(%s AS DECIMAL(%d,%d))", col, decimalDigits, have.scale), nil
		}
		return to, nil
	}
	return "", mismatch("only decimals and whole numbers can be read as decimal2")
}
