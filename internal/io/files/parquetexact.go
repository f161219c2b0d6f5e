package files

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/io/parquetfile"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
)

// exactly is value where test holds, NULL where col is, and an error elsewhere.
func exactly(col, test, value string, t expr.Type) string {
	return fmt.Sprintf("CASE WHEN %s THEN %s WHEN %s IS NOT NULL THEN %s END", test, value, col, noValue(t))
}

// quiet is a value that is NULL where it would fail. What occurs twice in a query
// DuckDB computes beside the rest, where no TRY catches a failure.
func quiet(value string) string {
	return strings.NewReplacer(noTime, "CAST(NULL AS TIMESTAMP)", tooManyDigits, "CAST(NULL AS HUGEINT)").Replace(value)
}

// noValue fails.
func noValue(t expr.Type) string {
	return "CAST('a value that the type cannot hold' AS " + t.SQL() + ")"
}

// convertExact converts a decimal or a whole number to a decimal with digits.
func convertExact(c *script.InputColumn, have parquetColumn, col string, view bool) (string, error) {
	digits, scale := c.Type.Digits()
	switch have.Kind {
	case parquetfile.Int:
		return "CAST(" + wholeNumber(have, col, view) + " AS " + c.Type.SQL() + ")", nil
	case parquetfile.Float:
		return "", noDecimal
	case parquetfile.Decimal:
	default:
		return "", mismatch("only decimals and whole numbers can be read as a decimal")
	}
	finest := wideDigits - 1
	if wideView(have) { // as DuckDB has it, which needs no product
		finest = wideDigits
	}
	if have.Scale < 0 || have.Scale > finest {
		return "", mismatch(fmt.Sprintf("its %d digits after the point are not between 0 and %d", have.Scale, finest))
	}
	// DuckDB takes for granted that a value has no more digits than the type of
	// its column: so its own text is what is looked at and converted.
	text := "CAST(" + quiet(exactDecimal(have, col, view)) + " AS VARCHAR)"
	if have.Scale <= scale || c.Round {
		if have.Scale <= scale && have.Precision <= digits-scale+have.Scale && nativeReads(have) && !view {
			most := digits - (scale - have.Scale)
			limit := decimalText(strings.Repeat("9", most), have.Scale)
			kept := fmt.Sprintf("CAST('%%s%s' AS DECIMAL(%d,%d))", limit, max(most, have.Precision), have.Scale)
			return exactly(col, fmt.Sprintf("%s BETWEEN "+kept+" AND "+kept, col, "-", ""), "CAST("+col+" AS "+
				c.Type.SQL()+")", c.Type), nil
		}
		return exactly(col, text+" IS NOT NULL", "CAST("+text+" AS "+c.Type.SQL()+")", c.Type), nil
	}
	return exactly(col, zeroEnd(text, have.Scale-scale), "CAST("+text+" AS "+c.Type.SQL()+")", c.Type), nil
}

// zeroEnd is the condition that the last digits of a number's text are zeros.
func zeroEnd(text string, digits int) string {
	return fmt.Sprintf("right(%s, %d) = '%s'", text, digits, strings.Repeat("0", digits))
}

// wholeCents is a decimal2 of a column that has more digits behind the point,
// where they are zeros.
func wholeCents(have parquetColumn, col string, view bool) (string, error) {
	value, err := convertDecimal(have, col, view)
	if err != nil || have.Kind != parquetfile.Decimal || have.Scale <= columnScale {
		return value, err
	}
	return exactly(col, zeroEnd("CAST("+quiet(exactDecimal(have, col, view))+" AS VARCHAR)", have.Scale-columnScale),
		"CAST("+value+" AS "+expr.Decimal.SQL()+")", expr.Decimal), nil
}

// subMicros is the condition that a time has no digits below the microsecond,
// "" if its column has none.
func subMicros(have parquetColumn, col string, view bool) string {
	switch {
	case have.Kind == parquetfile.Int96:
		if !have.inside {
			col = bytesOf(col)
		}
		return "(" + nanosOfDay(col) + ") % 1000 = 0"
	case have.Unit != parquetfile.Nanoseconds:
		return ""
	case view:
		return col + " % 1000 = 0"
	}
	return "epoch_ns(" + col + ") % 1000 = 0"
}

// nanosOfDay are those of an INT96's first eight bytes, the least significant
// one first; its twelve bytes are a number with the first one on top.
func nanosOfDay(bytes string) string {
	const ofDay = 6 // bytes that a day's need
	parts := make([]string, ofDay)
	for i := range parts {
		parts[i] = fmt.Sprintf("CAST((CAST(%s AS HUGEINT) >> %d) & 255 AS BIGINT) * %d", bytes, 8*(11-i),
			int64(1)<<(8*i))
	}
	return strings.Join(parts, " + ")
}

// wholeMillis is a datetime of whole milliseconds.
func wholeMillis(have parquetColumn, col string, view bool) (string, error) {
	value, err := convertTime(have, col, view)
	if err != nil || have.Kind == parquetfile.Date || have.Unit == parquetfile.Milliseconds {
		return value, err
	}
	value = quiet(value)
	test := value + " = date_trunc('millisecond', " + value + ")"
	if fine := subMicros(have, col, view); fine != "" {
		test = fine + " AND " + test
	}
	return exactly(col, test, value, expr.DateTime), nil
}

// convertInstant reads timestamps as timestamptz; those that are not adjusted to UTC are taken for UTC.
func convertInstant(c *script.InputColumn, have parquetColumn, col string, view bool) (string, error) {
	if have.Kind == parquetfile.Date {
		return "", mismatch("it has no time of the day; declare it as date, or as datetime, which reads the times of " +
			"other files, too")
	}
	value, err := convertTime(have, col, view)
	if err != nil {
		return "", err
	}
	value = quiet(value)
	test := expr.InstantOfTable(value)
	if fine := subMicros(have, col, view); fine != "" && !c.Round {
		test = fine + " AND " + test
	}
	return exactly(col, test, expr.InstantSQL(value), expr.Instant), nil
}

func convertDate(have parquetColumn, col string, view bool) (string, error) {
	const firstDay, lastDay = -719_162, 2_932_896 // 0001-01-01 and 9999-12-31
	switch {
	case have.Kind != parquetfile.Date && have.Kind != parquetfile.Timestamp && have.Kind != parquetfile.TimestampTZ &&
		have.Kind != parquetfile.Int96:
		return "", mismatch("only dates can be read as date")
	case have.Kind != parquetfile.Date:
		return "", mismatch("it has a time of the day; declare it as datetime or timestamptz")
	case view:
		return exactly(col, fmt.Sprintf("%s BETWEEN %d AND %d", col, firstDay, lastDay),
			"DATE '1970-01-01' + CAST("+col+" AS INTEGER)", expr.Date), nil
	}
	return exactly(col, expr.DayOfTable(col), col, expr.Date), nil
}

// convertFloat reads numbers as floats where these keep all digits.
func convertFloat(c *script.InputColumn, have parquetColumn, col string, view bool) (string, error) {
	const exactBits = 53
	switch have.Kind {
	case parquetfile.Float:
		return "CAST(" + col + " AS " + expr.Float.SQL() + ")", nil
	case parquetfile.Int:
		number := wholeNumber(have, col, view)
		if have.IntBits() < exactBits {
			return "CAST(" + number + " AS DOUBLE)", nil
		}
		value := "CAST(CAST(" + number + " AS VARCHAR) AS DOUBLE)" // the nearest
		if c.Round {
			return value, nil
		}
		return exactly(col, "CAST("+value+" AS HUGEINT) = "+number, value, expr.Float), nil
	case parquetfile.Decimal:
		if have.Scale < 0 || have.Scale >= wideDigits {
			return "", mismatch(fmt.Sprintf("its %d digits after the point are not between 0 and %d",
				have.Scale, wideDigits-1))
		}
		text := "CAST(" + quiet(exactDecimal(have, col, view)) + " AS VARCHAR)"
		value := "CAST(" + text + " AS DOUBLE)"
		if c.Round {
			return exactly(col, text+" IS NOT NULL", value, expr.Float), nil
		}
		return exactly(col, withoutZeros(text)+" = "+withoutZeros("thalweg_float_plain("+value+")"), value, expr.Float),
			nil
	}
	return "", mismatch("only numbers can be read as float")
}

// withoutZeros is a number's text without zeros at the end of its fraction.
func withoutZeros(text string) string {
	return "regexp_replace(" + text + `, '\.0*$|(\.[0-9]*[1-9])0*$', '\1')`
}

// plainText is the text of numbers, truth values and dates, for columns that are text in other files.
func plainText(have parquetColumn, col string, view bool) (string, error) {
	value := ""
	var err error
	switch have.Kind {
	case parquetfile.Int:
		value = wholeNumber(have, col, view)
	case parquetfile.Decimal:
		value = exactDecimal(have, col, view)
	case parquetfile.Float:
		return "regexp_replace(CAST(" + col + ` AS VARCHAR), '\.0$', '')`, nil
	case parquetfile.Bool:
		value = col
	case parquetfile.Date:
		value, err = convertDate(have, col, view)
	default:
		err = mismatch("only text, numbers, truth values and dates can be read as string")
	}
	return "CAST(" + value + " AS VARCHAR)", err
}

// tooFine says what of a CSV cell's value a column's type does not keep, and
// what to do; "" if the value is none of the type at all.
func tooFine(r *script.FileReader, c *script.InputColumn, value string) (problem, hint string) {
	if !c.Exact() {
		return "", ""
	}
	number, rest, formatted := numberIn(c, value)
	if formatted && rest == "" {
		value = number
	}
	switch {
	case c.Type.IsDecimal():
		if _, ok := new(big.Rat).SetString(value); ok && c.Numbers == (script.Numbers{}) &&
			!strings.ContainsAny(value, "/xX_pP") {
			return "needs more digits than " + article(c.Type) + " has", digitsHint(r, c, value)
		}
	case c.Type == expr.DateTime:
		if _, err := time.Parse(c.Format, value); err == nil && c.Format != "" {
			return "has digits below the millisecond, which a datetime does not keep", roundHint(r, c)
		}
	case c.Type == expr.Instant:
		if _, err := time.Parse(cmp.Or(c.Format, time.RFC3339), value); err == nil && subMicroText.MatchString(value) {
			return "has digits below the microsecond, which a timestamptz does not keep", roundHint(r, c)
		}
	case c.Type == expr.Float:
		if v, err := strconv.ParseFloat(value, 64); err == nil && !math.IsInf(v, 0) && formatted == (c.Format != "") &&
			rest == "" && c.Numbers == (script.Numbers{}) && !strings.Contains(value, "_") {
			return "has digits that a float does not keep", roundHint(r, c)
		}
	}
	return "", ""
}

var subMicroText = regexp.MustCompile(`[.,][0-9]{6}[0-9]*[1-9]`)

func article(t expr.Type) string { return "a " + t.String() }

// digitsHint returns the hint for a number with more digits than its decimal has, before its point or behind
// it.
func digitsHint(r *script.FileReader, c *script.InputColumn, value string) string {
	p, s := c.Type.Digits()
	whole, _, _ := strings.Cut(strings.TrimLeft(value, "+-0"), ".")
	if strings.ContainsAny(value, "eE") || len(whole) <= p-s {
		return roundHint(r, c)
	}
	if len(whole)+s > 38 {
		return atColumn(fmt.Sprintf("it has %d digits before the point: declare a type with fewer behind "+
			"it, or a float", len(whole)), r, c)
	}
	return atColumn(fmt.Sprintf("it has %d digits before the point, and the type has room for %d: declare it as "+
		"decimal(%d,%d) or larger", len(whole), p-s, len(whole)+s, s), r, c)
}

// roundHint returns the hint for a value with more digits than its type keeps.
func roundHint(r *script.FileReader, c *script.InputColumn) string {
	switch {
	case !c.Exact():
		return ""
	case c.Type == expr.DateTime:
		return atColumn("declare it as timestamptz, which keeps microseconds, or cut the digits off with {type: "+
			"datetime, round: true}", r, c)
	case c.Type == expr.Instant:
		return atColumn("cut the digits off with {type: timestamptz, round: true}", r, c)
	case c.Type == expr.Int:
		return atColumn("an int has 64 bits, one of them for the sign: declare it as decimal(20,0), or as "+
			"decimal(38,0)", r, c)
	case c.Type == expr.Float:
		return atColumn("declare it as decimal(38,0), which keeps them, or round it with {type: float, round: true}", r,
			c)
	case c.Type.IsDecimal():
		return atColumn(fmt.Sprintf("declare a type with more digits behind the point, as far as decimal(38,37) "+
			"goes, or round it with {type: %q, round: true}", c.Type), r, c)
	}
	return ""
}
