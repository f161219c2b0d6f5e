package expr_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/lang/expr"
)

// TestValues computes constant-free expressions over one row and compares their text.
func TestValues(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	_, err := db.Exec(
		`CREATE TABLE r AS SELECT 7::BIGINT AS i, 0::BIGINT AS zero, -7::BIGINT AS neg, 2.5::DOUBLE AS f, 12345678.9::DOUBLE AS big,
		'text' AS s, '"quoted"' AS q, 28.50::DECIMAL(18,2) AS d, 3.00::DECIMAL(18,2) AS d3, true AS b, TIMESTAMP '2020-12-31 23:59:58.123' AS ts,
		'2021-02-03 04:05:06' AS tstext, '12' AS num, NULL::BIGINT AS nul, NULL::VARCHAR AS nuls, NULL::BOOLEAN AS nulb, 'éàü' AS acc`)
	require.NoError(t, err)
	scope := expr.Scope{"r": {"i": expr.Int, "zero": expr.Int, "neg": expr.Int, "f": expr.Float, "big": expr.Float,
		"s": expr.String, "q": expr.String,
		"d": expr.Decimal, "d3": expr.Decimal, "b": expr.Bool, "ts": expr.DateTime, "tstext": expr.String,
		"num": expr.String, "nul": expr.Int, "nuls": expr.String, "nulb": expr.Bool, "acc": expr.String}}
	for _, c := range valueCases() {
		t.Run(c.src, func(t *testing.T) {
			compiled := compile(t, c.src, scope, expr.Mode{Round: !c.exact})
			sql := compiled.SQL(column, "")
			var got *string
			require.NoError(t, db.QueryRow("SELECT CAST("+sql+" AS VARCHAR) FROM r").Scan(&got), sql)
			if got == nil {
				got = new(string)
				*got = "NULL"
			}
			require.Equal(t, c.want, *got, sql)
		})
	}
}

func column(r expr.Ref) string { return r.Alias + "." + r.Field }

type valueCase struct {
	src, want string
	exact     bool
}

func valueCases() []valueCase {
	return []valueCase{
		{src: "r.i / 2", want: "3"},
		{src: "r.neg / 2", want: "-3"},
		{src: "r.neg % 4", want: "-3"},
		{src: "r.d * r.d", want: "812.25"},
		{src: "r.d / r.d3", want: "9.50"},
		{src: "r.d3 / r.d", want: "0.11"},
		{src: "r.d3 / r.d", want: "0.1052631578947368", exact: true},
		{src: "r.d * r.d", want: "812.2500", exact: true},
		{src: "r.d * r.f", want: "71.25"},
		{src: "r.d + 1", want: "29.50"},
		{src: "r.i / r.d", want: "0.25"},
		{src: "decimal2(r.f) * 3", want: "7.50"},
		{src: "decimal2(float(r.d)*1.1)", want: "31.35"},
		{src: "string(r.d)", want: "28.5"},
		{src: "string(r.d3)", want: "3"},
		{src: "string(r.f)", want: "2.5"},
		{src: "string(r.big)", want: "1.23456789e+07"},
		{src: "string(r.ts)", want: "2020-12-31 23:59:58.123 +0000 UTC"},
		{src: "time.Format(r.ts, `Jan _2, 2006 at 3:04pm (MST)`)", want: "Dec 31, 2020 at 11:59pm (UTC)"},
		{src: "time.Format(r.ts, `2006-01-02`)", want: "2020-12-31"},
		{src: `r.q == "quoted"`, want: "true"},
		{src: `r.s == "text"`, want: "true"},
		{src: "fmt.Sprintf(`\"%s|%s|%d|%s\"`, time.Format(r.ts,\"2006-01-02\"), r.s, r.i, r.d)",
			want: `"2020-12-31|text|7|28.5"`},
		{src: "fmt.Sprintf(`%05d|%8.3f|%-6s|%t`, r.i, r.f, r.s, r.b)", want: `00007|   2.500|text  |true`},
		{src: "int(r.num) + len(r.acc)", want: "18"},
		{src: "time.Parse(`2006-01-02 15:04:05`, r.tstext)", want: "2021-02-03 04:05:06"},
		{src: "time.DiffMilli(r.ts, time.Date(2020, time.December, 31, 23, 59, 58, 0, time.UTC))", want: "123"},
		{src: "time.Format(time.Date(r.i, time.March, 5, 25, 0, 0, 0, time.FixedZone(`X`, 3600)), `2006-01-02 15:04 " +
			"-0700 MST`)", want: "0007-03-06 01:00 +0100 X"},
		{src: "int.iif(r.zero != 0, r.i / r.zero, 5)", want: "5"},
		{src: "r.zero != 0 && r.i / r.zero > 1", want: "false"},
		{src: "r.zero == 0 || r.i / r.zero > 1", want: "true"},
		{src: "r.nul + 1", want: "NULL"},
		{src: "r.i / r.nul", want: "NULL"},
		{src: "r.nuls == `a`", want: "NULL"},
		{src: "fmt.Sprintf(`%s|%d|`, r.nuls, r.nul)", want: "NULL"},
		{src: "int.iif(r.nulb, 1, 2)", want: "NULL"},
		{src: "r.nulb && false", want: "false"},
		{src: "r.nulb || true", want: "true"},
		{src: "!r.nulb", want: "NULL"},
		{src: "is_null(r.nul)", want: "true"},
		{src: "is_null(r.nuls + `x`) && !is_null(r.i)", want: "true"},
		{src: "coalesce(r.nul, int(null), r.i)", want: "7"},
		{src: "coalesce(r.i, r.i / r.zero)", want: "7"},
		{src: "coalesce(r.d3, 9223372036854775808, decimal2(`1.005`))", want: "3.00"},
		{src: "iif(r.b, null, r.i)", want: "NULL"},
		{src: "time.iif(!r.b, null, r.ts)", want: "2020-12-31 23:59:58.123"},
		{src: "r.f < float(r.nul)", want: "NULL"},
		{src: "r.nulb && r.i / 1 > 0", want: "NULL"},
		{src: "re.MatchString(`^t.x`, r.s)", want: "true"},
		{src: "strings.ReplaceAll(r.acc, r.s, `x`)", want: "éàü"},
		{src: "strings.ReplaceAll(r.acc, ``, r.s)", want: "textétextàtextütext"},
		{src: "math.Sqrt(r.neg)", want: "nan"},
		{src: "math.Round(r.f)", want: "3.0"},
		{src: "wfmodel.NodeBatchRunStopReceived + r.i", want: "111"},
		{src: "99999999999999999999", want: "99999999999999999999", exact: true},
	}
}
