package expr_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/lang/expr"
)

// TestFound keeps what the differential tests found wrong once, most of it in
// how DuckDB differs from what one would think.
func TestFound(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	_, err := db.Exec(
		`CREATE TABLE r AS SELECT 4.58028396582696e+79::DOUBLE AS huge, 5e-324::DOUBLE AS tiny, 5480.81::DECIMAL(18,2) AS d, 3415.66::DECIMAL(18,2) AS e,
		-7::BIGINT AS i, '+Inf' AS inf, '-006.20e+02x' AS bad, 'NaN' AS nan, 2.50::DECIMAL(18,2) AS c, TIMESTAMP '3227-01-01 (BC) 00:00:00' AS old, true AS b`)
	require.NoError(t, err)
	scope := expr.Scope{"r": {"huge": expr.Float, "tiny": expr.Float, "d": expr.Decimal,
		"e": expr.Decimal, "i": expr.Int, "inf": expr.String, "bad": expr.String,
		"nan": expr.String, "c": expr.Decimal, "old": expr.DateTime, "b": expr.Bool}}
	for _, c := range []struct{ why, src, want string }{
		{"format() invents digits of large floats", "fmt.Sprintf(`%f`, r.huge)",
			"45802839658269598528037146983457428695516771082104269943647106802159313177542656.000000"},
		{"the cast to DECIMAL rounds 5e-324 up", "decimal2(r.tiny)", "0.0000000000000000"},
		{"decimal to float adds two rounded parts", "0.5 - (r.d / r.e)", "-1.1046122857661478"},
		{"a sign before inf", "float(r.inf)", "inf"},
		{"NaN equals itself in DuckDB", "float(r.nan) == float(r.nan)", "false"},
		{"NaN is above everything in DuckDB", "float(r.nan) > r.huge", "false"},
		{"%+v has no sign", "fmt.Sprintf(`%+v`, -r.i)", "7"},
		{"%+d has", "fmt.Sprintf(`%+d`, -r.i)", "+7"},
		{"the year before the era", "time.Format(r.old, `06 2006`)", "26 -3226"},
		{"the precision of a decimal's text", "fmt.Sprintf(`%.3s|%6.2v|%-5.1s|%.0s|%x`, r.d, r.c, r.e, r.d, r.c)",
			"548|    2.|3    ||322e35"},
		{"the precision of a datetime's text",
			"fmt.Sprintf(`%.10s|%12.4v|`, time.Date(2020, time.May, 6, 7, 8, 9, 0, time.UTC), time.Date(2021, " +
				"time.May, 6, 7, 8, 9, 0, time.UTC))", "2020-05-06|        2021|"},
		{"a month is a value with a name", "string(time.May)", "May"},
		{"a month is printed by its name and its number",
			"fmt.Sprintf(`%s %d %v %5.2s|`, time.May, time.May, time.June, time.July)", "May 5 June    Ju|"},
		{"hexadecimal floats", "0x1p-2 + float(`0X1.8p+4`) + 1_000.5", "1024.75"},
		{"digits of a decimal of large scale", "r.c / ((r.d / r.d) * (r.c / r.c))", "2.5000000000000000"},
	} {
		compiled := compile(t, c.src, scope, expr.Mode{})
		var got string
		require.NoError(t, db.QueryRow("SELECT CAST("+compiled.SQL(column, "")+" AS VARCHAR) FROM r").Scan(&got), c.src)
		require.Equal(t, c.want, got, c.why)
	}
	for _, c := range []struct {
		why  string
		typ  expr.Type
		fmt  string
		text string
	}{
		{"no digits before the exponent", expr.Decimal, "", "+e4"},
		{"a second sign", expr.Float, "", "+-1"},
		{"a second exponent", expr.Decimal, "", "1e2e3"},
		{"two blanks make up for a digit", expr.DateTime, "02.01.2006 15:04", "15.06.198  04:00"},
		{"five digits of a year", expr.DateTime, "2006-01-02", "12020-1-02"},
		{"midnight at the end of a day", expr.DateTime, "2006-01-02 15:04:05", "2020-01-01 24:00:00"},
		{"blanks", expr.Int, "", " 7"}, {"blanks", expr.Decimal, "", "7\t"}, {"hexadecimal", expr.Int, "", "0x1F"},
		{"a fraction", expr.Int, "", "1.0"},
	} {
		scan, err := expr.ScanSQL(c.typ, c.fmt, "x")
		require.NoError(t, err)
		var got any
		require.NoError(t, db.QueryRow("SELECT "+scan+" FROM (SELECT ? AS x)", c.text).Scan(&got))
		require.Nil(t, got, "%s: %q", c.why, c.text)
	}
}
