package files

import (
	"fmt"
	"strings"

	"thalweg/internal/io/parquetfile"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
)

// Digits of decimals.
const (
	decimalDigits = 18 // of a decimal2
	columnScale   = 2  // behind its point
	wholeDigits   = decimalDigits - columnScale
	wideDigits    = 38 // that DuckDB computes with

	// finestScale is the most digits behind the point with which wholeDigits
	// still fit before it.
	finestScale = wideDigits - wholeDigits
)

// nativeReads reports whether DuckDB reads all values of a column as they are
// in the file. It does not where it takes the annotation for a promise and
// cuts the bytes to it: decimals and integers that need fewer bytes than they
// have; nor where it computes without a look at the result: INT96.
func nativeReads(c parquetColumn) bool {
	if c.split {
		return false
	}
	switch c.Kind {
	case parquetfile.Nested:
		return nativeLeaves(c)
	case parquetfile.Decimal:
		return nativeDecimal(c)
	case parquetfile.Int:
		return c.Bits == 0 || c.Bits == map[parquetfile.Physical]int{parquetfile.Int32: 32,
			parquetfile.Int64: 64}[c.Physical]
	case parquetfile.TimestampTZ: // which DuckDB cuts to microseconds, toward 1970
		return c.Unit != parquetfile.Nanoseconds
	case parquetfile.Int96, parquetfile.Null:
		return false
	}
	return true
}

// nativeDecimal compares the bytes of a decimal with those in which DuckDB
// keeps as many digits as the file declares.
func nativeDecimal(c parquetColumn) bool {
	bytes := 0
	switch c.Physical {
	case parquetfile.Int32:
		bytes = 4
	case parquetfile.Int64:
		bytes = 8
	case parquetfile.FixedBytes:
		bytes = c.Length
	default: // of any length
		return false
	}
	kept := 16
	switch {
	case c.Precision < 1 || c.Precision > wideDigits || c.Scale > c.Precision:
		return false
	case c.Precision <= 4:
		kept = 2
	case c.Precision <= 9:
		kept = 4
	case c.Precision <= 18:
		kept = 8
	}
	return bytes <= kept
}

// viewColumns are the columns of a view that one of the file is read from.
func viewColumns(c parquetColumn, name string) []parquetfile.ViewColumn {
	switch {
	case c.Kind == parquetfile.Nested:
		one := parquetfile.ViewColumn{Name: name, Column: c.index, Leaves: make([]parquetfile.Form, len(c.leaves))}
		for i, leaf := range c.leaves {
			one.Leaves[i] = leaf.form()
		}
		return []parquetfile.ViewColumn{one}
	case c.kept:
		return []parquetfile.ViewColumn{{Name: name, Column: c.index, As: parquetfile.Kept}}
	case c.Kind == parquetfile.Int96:
		return []parquetfile.ViewColumn{
			{Name: name, Column: c.index, As: parquetfile.OldTimestamp},
			{Name: name + bytesSuffix, Column: c.index, As: parquetfile.WideDecimal}}
	}
	return []parquetfile.ViewColumn{{Name: name, Column: c.index, As: c.changed()}}
}

// changed is the form in which a view has a column whose type it changes.
func (c parquetColumn) changed() parquetfile.Form {
	switch {
	case c.split:
		return parquetfile.AsFloat
	case wideView(c), c.Kind == parquetfile.Int96:
		return parquetfile.WideDecimal
	}
	return parquetfile.Plain
}

// form is the form in which a view has a leaf of a nested column: as it is where
// DuckDB reads it rightly.
func (c parquetColumn) form() parquetfile.Form {
	if nativeReads(c) || c.kept {
		return parquetfile.Kept
	}
	return c.changed()
}

// sameForm reports whether views have two leaves alike.
func sameForm(a, b parquetColumn) bool { return a.Column == b.Column && a.split == b.split }

// leavesOf are the leaves of a nested column.
func leavesOf(f *parquetfile.Footer, column int) (list []parquetColumn) {
	for _, leaf := range f.Nested {
		if leaf.Of == column {
			list = append(list, parquetColumn{Column: leaf.Column, index: column, inside: true})
		}
	}
	return list
}

// findSplit looks for BYTE_STREAM_SPLIT in row groups [from, to).
func (c *parquetColumn) findSplit(f *parquetfile.Footer, from, to int) {
	whole := func(c parquetfile.Column) bool {
		return c.Physical == parquetfile.Int32 || c.Physical == parquetfile.Int64
	}
	if c.Kind != parquetfile.Nested {
		c.split = whole(c.Column) && f.ByteStreamSplit(c.index, from, to)
		return
	}
	for i, split := range f.SplitLeaves(c.index, from, to) {
		c.leaves[i].split = split && whole(c.leaves[i].Column)
	}
}

// bytesSuffix names the second reading of an INT96 column: its twelve bytes as
// one number.
const bytesSuffix = "_bytes"

// wideView reports whether a view has a decimal as DuckDB's widest type.
func wideView(c parquetColumn) bool {
	return c.Kind == parquetfile.Decimal && c.Physical == parquetfile.FixedBytes && c.Length <= 16
}

// mismatch explains why a column of a file cannot be read as the declared type.
type mismatch string

func (m mismatch) Error() string { return string(m) }

// What a column of floats is read as, other files may have as whole numbers or decimals.
const (
	noWhole mismatch = "only whole numbers can be read as int; declare it as float, which reads the whole numbers of " +
		"other files, too"
	noDecimal mismatch = "a decimal cannot hold every float; declare it as float, which reads the numbers of other " +
		"files, too"
)

// parquetValue converts a column of a file to the declared type where that
// loses nothing; a value that does not fit fails the query. (Timestamps in
// nanoseconds lose those below the microsecond: they are rounded down.) col is
// the column in DuckDB, of the file itself or of its view.
func parquetValue(c *script.InputColumn, have parquetColumn, col string, view bool) (string, error) {
	if !view {
		col = unguessed(col)
	}
	if len(have.steps) > 0 {
		return convertWithin(c, have, col, view)
	}
	if have.Kind == parquetfile.Nested || c.Type.Nested() {
		return convertNested(c, have, col, view)
	}
	return convertParquet(c, have, col, view)
}

// unguessed is a column of a file about which DuckDB knows nothing. It believes
// the statistics of a file: it drops rows, values and checks that cannot be
// there by them. Behind a condition on a column without statistics, which
// always holds, it cannot. (It evaluates the branch alone where all rows take
// it.) The condition must be the innermost: a check around which it stands is
// dropped all the same.
func unguessed(col string) string { return "(CASE WHEN file_row_number >= 0 THEN " + col + " END)" }

func convertParquet(c *script.InputColumn, have parquetColumn, col string, view bool) (string, error) {
	to := "CAST(" + col + " AS " + c.Type.SQL() + ")"
	if have.Kind == parquetfile.Null {
		return "CASE WHEN " + col + " IS NOT NULL THEN CAST('a value in a column without a type' AS " + c.Type.SQL() +
			") END", nil
	}
	switch c.Type {
	case expr.String:
		switch {
		case have.Kind == parquetfile.String && !view:
			return to, nil
		case have.Kind == parquetfile.String, have.Kind == parquetfile.Binary:
			// old writers leave out the annotation; fails if it is no UTF-8
			return "decode(" + col + ")", nil
		case c.Short:
			return plainText(have, col, view)
		}
		return "", mismatch("only text can be read as string")
	case expr.Int:
		switch {
		case have.Kind == parquetfile.Int:
			return "CAST(" + wholeNumber(have, col, view) + " AS BIGINT)", nil
		case have.Kind == parquetfile.Decimal && have.Scale == 0:
			return "CAST(" + exactDecimal(have, col, view) + " AS BIGINT)", nil
		case have.Kind == parquetfile.Decimal:
			return "", mismatch("it has digits after the point; declare it as decimal2")
		}
		if have.Kind == parquetfile.Float {
			return "", noWhole
		}
		return "", mismatch("only whole numbers can be read as int")
	case expr.Float:
		return convertFloat(c, have, col, view)
	case expr.Bool:
		if have.Kind == parquetfile.Bool {
			return to, nil
		}
		return "", mismatch("only booleans can be read as bool")
	case expr.DateTime:
		if c.Exact() {
			return wholeMillis(have, col, view)
		}
		return convertTime(have, col, view)
	case expr.Decimal:
		if c.Exact() {
			return wholeCents(have, col, view)
		}
		return convertDecimal(have, col, view)
	case expr.Date:
		return convertDate(have, col, view)
	case expr.Instant:
		return convertInstant(c, have, col, view)
	}
	if c.Type.IsDecimal() {
		return convertExact(c, have, col, view)
	}
	return "", mismatch("unknown type")
}

// wholeNumber is an integer column; a view has it without its annotation.
func wholeNumber(have parquetColumn, col string, view bool) string {
	switch {
	case !view || !have.Unsigned:
		return col
	case have.Physical == parquetfile.Int32:
		return "(CAST(" + col + " AS BIGINT) & 4294967295)"
	}
	return "(CAST(" + col + " AS HUGEINT) + CASE WHEN " + col + " < 0 THEN 18446744073709551616 ELSE 0 END)"
}

func convertDecimal(have parquetColumn, col string, view bool) (string, error) {
	switch have.Kind {
	case parquetfile.Int:
		return "CAST(" + wholeNumber(have, col, view) + " AS " + expr.Decimal.SQL() + ")", nil
	case parquetfile.Float:
		return "", noDecimal
	case parquetfile.Decimal:
	default:
		return "", mismatch("only decimals and whole numbers can be read as decimal2")
	}
	if have.Scale < 0 || have.Scale > finestScale {
		return "", mismatch(fmt.Sprintf("its %d digits after the point are not between 0 and %d",
			have.Scale, finestScale))
	}
	digits, scale := decimalShape(have)
	to := fmt.Sprintf("DECIMAL(%d,%d)", digits, scale)
	value := "CAST(" + exactDecimal(have, col, view) + " AS " + to + ")"
	precision := have.Precision
	switch {
	case view && !wideView(have):
		return value, nil // the cast looks at every value
	case view:
		precision = wideDigits
	case precision <= 9: // of at most 32 bits, which fit
		return value, nil
	}
	// DuckDB takes for granted that a value has no more digits than the type
	// of its column, and casts without a look where such values must fit.
	most := digits - (scale - have.Scale)
	limit := decimalText(strings.Repeat("9", most), have.Scale)
	kept := fmt.Sprintf("DECIMAL(%d,%d)", max(most, precision), have.Scale)
	return fmt.Sprintf("CASE WHEN %[1]s BETWEEN CAST('-%[2]s' AS %[3]s) AND CAST('%[2]s' AS %[3]s) THEN %[4]s WHEN "+
		"%[1]s IS NOT NULL THEN CAST('too many digits' AS %[5]s) END",
		col, limit, kept, value, to), nil
}

// decimalText puts the point into digits.
func decimalText(digits string, scale int) string {
	if scale == 0 {
		return digits
	}
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	if len(digits) <= scale {
		digits = strings.Repeat("0", scale+1-len(digits)) + digits
	}
	return sign + digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
}

// decimalShape is the type in which a decimal of a file is read: with all its
// digits after the point, of which two are kept in tables, and as many before
// it as a decimal2 has, if the file's own type does not allow for less. (One
// digit there is at least: without any DuckDB prints zero as a point.)
func decimalShape(have parquetColumn) (digits, scale int) {
	scale = max(have.Scale, columnScale)
	narrow := have.Precision <= decimalDigits &&
		(have.Physical == parquetfile.Int32 || have.Physical == parquetfile.Int64 ||
			have.Physical == parquetfile.FixedBytes && have.Length <= 8)
	if scale == columnScale || narrow && scale < decimalDigits {
		return decimalDigits, scale
	}
	return wholeDigits + scale, scale
}

// unit is 10^-scale.
func unit(scale int) string {
	return fmt.Sprintf("CAST('%s' AS DECIMAL(%d,%d))", decimalText("1", scale), scale+1, scale)
}

// exactDecimal is a decimal with all its digits.
func exactDecimal(have parquetColumn, col string, view bool) string {
	switch {
	case !view || wideView(have):
		return col
	case have.Physical == parquetfile.Int32 || have.Physical == parquetfile.Int64:
		return "(CAST(" + col + " AS DECIMAL(19,0)) * " + unit(have.Scale) + ")"
	}
	return "(CAST(" + bigEndian(col) + " AS DECIMAL(38,0)) * " + unit(have.Scale) + ")"
}

// tooManyDigits fails.
const tooManyDigits = "CAST('too many digits' AS HUGEINT)"

// bigEndian is the number in bytes of any length, the most significant first,
// negative if the first bit is set. DuckDB makes a number of sixteen bytes, so
// fewer are filled up, and more must be nothing but the sign.
func bigEndian(col string) string {
	const bytes = 16
	sign := "CASE WHEN hex(" + col + ") >= '8' THEN 'FF' ELSE '00' END"
	digits := fmt.Sprintf("repeat(%s, %d) || hex(%s)", sign, bytes, col)
	return fmt.Sprintf("CASE WHEN octet_length(%[1]s) BETWEEN 1 AND %[2]d OR octet_length(%[1]s) > %[2]d AND "+
		"replace(left(hex(%[1]s), 2 * (octet_length(%[1]s) - %[2]d)), %[3]s, '') = '' AND (right(hex(%[1]s), 2 * "+
		"%[2]d) >= '8') = (%[3]s = 'FF')"+
		" THEN CAST(CAST(unhex(right(%[4]s, 2 * %[2]d)) AS BIT) AS HUGEINT) WHEN %[1]s IS NOT NULL THEN "+tooManyDigits+
		" END", col, bytes, sign, digits)
}

func convertTime(have parquetColumn, col string, view bool) (string, error) {
	switch have.Kind {
	case parquetfile.Timestamp, parquetfile.TimestampTZ, parquetfile.Date:
		if view {
			return countedTime(have, col), nil
		}
		return nativeTime(have, col), nil
	case parquetfile.Int96:
		// Only in views. The last of the twelve bytes is the highest of the
		// day, those 16 bits before the day's are the highest of its
		// nanoseconds: if they are 0, nothing leaves 64 bits on the way.
		if have.inside {
			return oldTime(col), nil
		}
		bytes := "CAST(" + bytesOf(col) + " AS HUGEINT)"
		return "CASE WHEN (" + bytes + " & 255) + ((" + bytes + " >> 32) & 65535) = 0 OR " + col +
			" IS NULL THEN " + col + " ELSE " + noTime + " END", nil
	case parquetfile.Int:
		return "", mismatch("its numbers are not marked as time; declare it as int")
	}
	return "", mismatch("only timestamps and dates can be read as datetime")
}

// oldTime is the time of an INT96 of which there are but the bytes, as one number.
func oldTime(number string) string {
	const epoch = 2_440_588 // the Julian day of 1970-01-01
	bytes := "CAST(" + number + " AS HUGEINT)"
	days := fmt.Sprintf("(((%[1]s >> 24) & 255) + ((%[1]s >> 16) & 255) * 256 + ((%[1]s >> 8) & 255) * 65536 - %[2]d)",
		bytes, epoch)
	micros := fmt.Sprintf("(%s * 86400000000 + (%s) // 1000)", days, nanosOfDay(number))
	return fmt.Sprintf("CASE WHEN (%[1]s & 255) + ((%[1]s >> 32) & 65535) = 0 AND %[2]s BETWEEN %[3]d AND %[4]d THEN "+
		"make_timestamp(CAST(%[2]s AS BIGINT)) WHEN %[1]s IS NOT NULL THEN %[5]s END",
		bytes, micros, int64(expr.FirstMicro), int64(expr.LastMicro), noTime)
}

// bytesOf is the second reading of an INT96 column.
func bytesOf(col string) string { return col[:len(col)-1] + bytesSuffix + `"` }

// noTime fails.
const noTime = "CAST('out of range' AS TIMESTAMP)"

// nativeTime reads DuckDB's own datetimes, of which the largest and smallest
// stand for infinity.
func nativeTime(have parquetColumn, col string) string {
	value := "CAST(" + col + " AS TIMESTAMP)"
	switch {
	case have.Unit == parquetfile.Nanoseconds:
		n := "epoch_ns(" + col + ")"
		return "CASE WHEN isfinite(" + col + ") THEN " + floorMicros(n) +
			" WHEN " + col + " > CAST('1970-01-01' AS TIMESTAMP_NS) THEN make_timestamp(9223372036854775)" +
			" WHEN " + col + " IS NOT NULL THEN make_timestamp(-9223372036854776) END"
	case have.Kind == parquetfile.TimestampTZ:
		// A plain cast would depend on the session's time zone; AT TIME ZONE
		// is right but ten times slower than this.
		value = "make_timestamp(epoch_us(" + col + "))"
	}
	return fmt.Sprintf("CASE WHEN %s THEN %s WHEN %s IS NOT NULL THEN %s END", expr.OfTable(value), value, col, noTime)
}

// floorMicros makes a datetime of nanoseconds, rounded down.
func floorMicros(n string) string {
	return "make_timestamp(" + n + " // 1000 - CAST(" + n + " % 1000 < 0 AS BIGINT))"
}

// countedTime reads a datetime off the number that a view has.
func countedTime(have parquetColumn, col string) string {
	factor := int64(1)
	switch {
	case have.Kind == parquetfile.Date:
		factor = 86_400_000_000
	case have.Unit == parquetfile.Milliseconds:
		factor = 1_000
	case have.Unit == parquetfile.Nanoseconds:
		return floorMicros(col)
	}
	return fmt.Sprintf("CASE WHEN %[1]s BETWEEN %[2]d AND %[3]d THEN make_timestamp(CAST(%[1]s AS BIGINT) * %[4]d) "+
		"WHEN %[1]s IS NOT NULL THEN %[5]s END",
		col, int64(expr.FirstMicro)/factor, int64(expr.LastMicro)/factor, factor, noTime)
}
