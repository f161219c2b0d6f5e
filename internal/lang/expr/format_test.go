package expr_test

import (
	"database/sql"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/test/effort"
)

// TestScan compares ScanSQL with Go's parsers over random text.
func TestScan(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	g := generator{rand.New(rand.NewPCG(diffSeed(t), 8))}
	for range effort.Of(1, 4, 40) {
		numbers := g.texts(1500, g.number1)
		for _, c := range scanCases() {
			requireScan(t, db, c, numbers)
		}
		for _, layout := range scanLayouts() {
			texts := g.texts(400, func() string { return g.mutate(g.instant().Format(layout)) })
			requireScan(t, db, scanCase{expr.DateTime, layout, func(s string) (any, bool) {
				v, err := time.ParseInLocation(layout, s, time.UTC)
				return v, err == nil // compared by their microseconds
			}}, texts)
		}
	}
}

// number1 is text that is, or nearly is, a number, in more ways than generator.numeral.
func (g generator) number1() string {
	s := g.numeral()
	switch g.IntN(4) {
	case 0:
		return g.mutate(s)
	case 1:
		return pick(g, "+", "-", " ", "$", "ID", "ID ", "+-", "0", ".") + s + pick(g, "", " ", "\t", "e3",
			"E-2", "e+1", "_1", " items", "items", "%", ".", "0000000000000000000000000000000000000001")
	}
	return s
}

func (g generator) texts(n int, one func() string) []string {
	out := []string{"0", "-0", "+0", "1e999", "1e-999", "inf", "-Inf", "+Infinity", "nan", "NaN", "-nan", "ID NaN",
		"$+Inf", "inf items", "na", "infx", "1_000",
		"0x1p-2", "-0X1.8P+4", "0x_1p0", "0x1.fp", "0x.8p1", "0x1p99999", "0x1_0p1_0", "0xp1", "1p3", "-1.5P-2", "1p",
		"1p3.5", "1_0p1", "$0x1p3", "0x1F.8", "0x1p3 items", "1__0", "_1", "1_", "1_.5", ".5", "5.", ".",
		"1e", "1e+", "0x1F", "0b1", "007",
		"9223372036854775807", "9223372036854775808", "-9223372036854775808", "0.005", "-0.005",
		"0.0049999999999999999999999999999999999999999999", "1e-3", "5e-3", "4.9e-3", "5e-4", "123.456e1", "1.5e16",
		"9999999999999999.99", "9999999999999999.994", "9999999999999999.995", "99999999999999999e-5",
		"0e500", "true", " 1", "1 ", "1\n", "1\u00a0"}
	for range n {
		if s := strings.ToValidUTF8(one(), "?"); strings.TrimSpace(s) != "" {
			out = append(out, s)
		}
	}
	return out
}

// mutate changes a character now and then.
func (g generator) mutate(s string) string {
	b := []byte(s)
	for range g.IntN(3) {
		if len(b) == 0 {
			break
		}
		i := g.IntN(len(b))
		switch g.IntN(4) {
		case 0:
			b = append(b[:i], b[i+1:]...)
		case 1:
			b = append(b[:i], append([]byte{"0123456789 -:.T,+Z"[g.IntN(18)]}, b[i:]...)...)
		case 2:
			b[i] = "0123456789 -:.T,+Z"[g.IntN(18)]
		}
	}
	return string(b)
}

type scanCase struct {
	typ    expr.Type
	format string
	want   func(s string) (any, bool)
}

func scanCases() []scanCase {
	plain := regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$`)
	scanned := func(format string) func(s string) (any, bool) {
		return func(s string) (any, bool) {
			var v int64
			_, err := fmt.Sscanf(s, format, &v)
			return v, err == nil
		}
	}
	float := func(format string) func(s string) (any, bool) {
		return func(s string) (any, bool) {
			var v float64
			_, err := fmt.Sscanf(s, format, &v)
			return v, err == nil
		}
	}
	return []scanCase{
		{expr.Int, "", func(s string) (any, bool) { v, err := strconv.ParseInt(s, 10, 64); return v, err == nil }},
		{expr.Float, "", func(s string) (any, bool) {
			v, err := strconv.ParseFloat(s, 64)
			return v, err == nil
		}},
		{expr.Decimal, "", func(s string) (any, bool) {
			r, ok := new(big.Rat).SetString(s)
			if !ok || !plain.MatchString(s) {
				return nil, false
			}
			r = roundTo(r, 2)
			return dec{r, 2}, new(big.Rat).Abs(r).Cmp(new(big.Rat).SetInt(pow(16))) < 0
		}},
		{expr.Bool, "", func(s string) (any, bool) { v, err := strconv.ParseBool(s); return v, err == nil }},
		{expr.Int, "%d", scanned("%d")},
		{expr.Int, "ID%d", scanned("ID%d")},
		{expr.Int, "ID %d items", scanned("ID %d items")},
		{expr.Int, "ID  %d", scanned("ID  %d")},
		{expr.Int, "%d%%", scanned("%d%%")},
		{expr.Int, "%d.00", scanned("%d.00")},
		{expr.Int, "%d-", scanned("%d-")},
		{expr.Int, "%d ", scanned("%d ")},
		{expr.Int, "%3d", scanned("%3d")},
		{expr.Int, "ID%2d-", scanned("ID%2d-")},
		{expr.Float, "%f", float("%f")},
		{expr.Float, "$%f", float("$%f")},
		{expr.Float, "%e", float("%e")},
		{expr.Float, "%g items", float("%g items")},
		{expr.Float, "ID %v", float("ID %v")},
		{expr.Decimal, "%f", func(s string) (any, bool) {
			v, ok := float("%f")(s)
			if !ok || !(math.Abs(v.(float64)) < 1e16) {
				return nil, false
			}
			r, _ := shortest(v.(float64))
			return dec{roundTo(r, 2), 2}, true
		}},
	}
}

func scanLayouts() []string {
	return []string{"2006-01-02", "2006-01-02 15:04:05", "2006-01-02T15:04:05", "01/02/2006", "02.01.2006 15:04",
		"20060102", "20060102150405", "2006-01-02T15:04:05.000-07:00",
		"2006-01-02T15:04:05Z07:00", "Jan 2, 2006 3:04PM", "_2 January 06", "15:04", "2006-01-02 15:04:05.999",
		"Mon, 02 Jan 2006 15:04:05 -0700", "2006 01 02", "1/2/06", "2006-01-02 03:04:05 pm"}
}

// signInField finds a sign where a digit of a time should be.
var signInField = regexp.MustCompile(`(^|[^0-9])[+-][0-9]`)

// requireScan compares the parsing of texts with Go's. Where a decimal is too large SQL may raise instead of giving
// NULL.
func requireScan(t *testing.T, db *sql.DB, c scanCase, texts []string) {
	t.Helper()
	scan, err := expr.ScanSQL(c.typ, c.format, "x")
	require.NoError(t, err)
	var kept, values []string
	for _, s := range texts {
		if c.typ == expr.Decimal && c.format != "" {
			var v float64
			if _, err := fmt.Sscanf(s, c.format, &v); err == nil && math.Abs(v) >= 1e16 && !math.IsInf(v, 0) {
				continue // SQL raises
			}
		}
		kept = append(kept, s)
		values = append(values, "("+strconv.Itoa(len(values))+", "+sqltext.String(s)+")")
	}
	rows, err := db.Query("SELECT " + scan + " FROM (VALUES " + strings.Join(values, ", ") + ") v(id, x) ORDER BY id")
	require.NoError(t, err, "%s %q", c.typ, c.format)
	defer rows.Close()
	for i := 0; rows.Next(); i++ {
		var got any
		require.NoError(t, rows.Scan(&got))
		want, ok := c.want(kept[i])
		if !ok {
			want = nil
		}
		if got == nil && c.typ == expr.DateTime && signInField.MatchString(kept[i]) {
			continue // Go reads "+7" and "-4" as two digits of a year; we refuse
		}
		if !same(got, want) {
			t.Errorf("%s %q of %q: got %v, want %v\n%s", c.typ, c.format, kept[i], got, show(want), scan)
			return
		}
	}
	require.NoError(t, rows.Err())
}

// TestPrint compares PrintSQL with Go's Sprintf and Format.
func TestPrint(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	g := generator{rand.New(rand.NewPCG(diffSeed(t), 9))}
	formats := []struct {
		typ    expr.Type
		column string
		of     []string
	}{
		{expr.Int, "i", []string{"%d", "%05d", "%-8d|", "", "id %d"}},
		{expr.Float, "f", []string{"%f", "%.2f", "%10.3f", "%v", "%e", ""}},
		{expr.Decimal, "d", []string{"%s", "%10s", "%v", ""}},
		{expr.String, "s", []string{"%s", "%10s", "%-5s|", "%.2s", ""}},
		{expr.Bool, "b", []string{"%t", "%v", ""}},
		{expr.DateTime, "t", []string{"2006-01-02", "2006-01-02 15:04:05", "2006-01-02T15:04:05.000", "01/02/2006"}},
	}
	rows := make([]map[string]any, 200)
	for i := range rows {
		rows[i] = g.row()
	}
	fillTable(t, db, rows)
	for _, f := range formats {
		for _, format := range f.of {
			print, err := expr.PrintSQL(f.typ, format, "r."+f.column)
			require.NoError(t, err, format)
			got, err := query(db, []string{print}, "ORDER BY id")
			require.NoError(t, err, print)
			for i, row := range rows {
				require.Equal(t, printed(row["r."+f.column], format), got[i][0], "%q of %v\n%s", format,
					row["r."+f.column], print)
			}
		}
	}
}

func printed(v any, format string) string {
	switch v := v.(type) {
	case time.Time:
		return v.Format(format)
	case *big.Rat:
		if format == "" {
			format = "%s"
		}
		return fmt.Sprintf(format, v.FloatString(2))
	}
	if format == "" {
		format = "%v"
	}
	return fmt.Sprintf(format, v)
}

func TestPrintErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		typ          expr.Type
		format, want string
	}{
		{expr.Int, "%1001d", "%1001d is wider than 1000 characters (supported: flags - + 0 and blank, width, " +
			".precision, and one of d x X o b f F e E g G s v t)"},
		{expr.DateTime, "YYYY-MM-DD",
			`the layout "YYYY-MM-DD" names no part of a time (Go layouts are written with 2006-01-02 15:04:05: this one is 2006-01-02)`},
	} {
		_, err := expr.PrintSQL(c.typ, c.format, "x")
		require.EqualError(t, err, c.want)
	}
	for _, c := range []struct {
		typ          expr.Type
		format, want string
	}{
		{expr.String, "%s", "a string column takes no format"},
		{expr.Bool, "%t", "a bool column takes no format"},
		{expr.DateTime, "", "a datetime column needs a format (a Go layout, such as 2006-01-02 15:04:05)"},
		{expr.Int, "%f", "%f does not read an int (use %d)"},
		{expr.Int, "abc", `the format "abc" reads no value (it needs one verb: %d)`},
		{expr.Int, "%d0", `text after the verb must not start with "0"`},
	} {
		_, err := expr.ScanSQL(c.typ, c.format, "x")
		require.EqualError(t, err, c.want)
	}
}

func TestPrintNotes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		typ          expr.Type
		format, want string
	}{
		{expr.Int, "%s", "%s cannot print an int: it prints %!s(int64=1) (%d prints an int)"},
		{expr.Int, "%d %d", "%d has no value: a column is one value: it prints %!d(MISSING)"},
		{expr.Int, "x", `the format "x" prints no value: it prints %!(EXTRA int64=1) (it needs one verb, such as %s, ` +
			`%d, %f or %t)`},
		{expr.Decimal, "%.2f", "%.2f cannot print a decimal2: it prints %!f(string=x) (%s prints it with two digits " +
			"after the point)"},
		{expr.String, "%q", ""},
		{expr.String, "%s %[1]q", ""},
		{expr.Float, "%+v", ""},
		{expr.String, "", ""},
		{expr.DateTime, "2006", ""},
	} {
		_, err := expr.PrintSQL(c.typ, c.format, "x")
		require.NoError(t, err, c.format)
		note := expr.PrintNote(c.typ, c.format)
		if c.want == "" {
			require.NoError(t, note, c.format)
			continue
		}
		require.EqualError(t, note, c.want)
	}
}

func TestDefault(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	for _, c := range []struct {
		typ                expr.Type
		text, format, want string
	}{
		{expr.String, "", "", ""}, {expr.String, " a'b ", "", " a'b "},
		{expr.Int, "", "", "0"}, {expr.Int, " -5 ", "", "-5"}, {expr.Int, "ID7", "ID%d", "7"},
		{expr.Float, "", "", "0.0"}, {expr.Float, "1.5", "%f", "1.5"},
		{expr.Decimal, "", "", "0.00"}, {expr.Decimal, "999", "", "999.00"}, {expr.Decimal, "1.005", "", "1.01"},
		{expr.Decimal, "-0.015", "", "-0.02"},
		{expr.Bool, "", "", "false"}, {expr.Bool, "T", "", "true"},
		{expr.DateTime, "", "", "0001-01-01 00:00:00"}, {expr.DateTime, "1980-02-03T04:05:06.777+00:00", "",
			"1980-02-03 04:05:06.777"},
		{expr.DateTime, "1980-02-03T04:05:06.777-05:00", "", "1980-02-03 09:05:06.777"},
		{expr.DateTime, "03.02.1980", "02.01.2006", "1980-02-03 00:00:00"},
	} {
		text, err := expr.DefaultSQL(c.typ, c.text, c.format)
		require.NoError(t, err)
		var got string
		require.NoError(t, db.QueryRow("SELECT CAST("+text+" AS VARCHAR)").Scan(&got))
		require.Equal(t, c.want, got, "%s %q", c.typ, c.text)
	}
	_, err := expr.DefaultSQL(expr.Int, "1.5", "")
	require.EqualError(t, err, `"1.5" is not an int (it needs a base-10 integer)`)
	_, err = expr.DefaultSQL(expr.Decimal, "12345678901234567", "")
	require.EqualError(t, err, `"12345678901234567" has more than 16 digits before the point`)
}
