package expr_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/lang/expr"
	"thalweg/internal/test/effort"
)

// verbValues has every class of value of each type.
func verbValues() map[expr.Type][]any {
	cents := func(n int64) *big.Rat { return big.NewRat(n, 100) }
	return map[expr.Type][]any{
		expr.Int: {int64(0), int64(1), int64(-1), int64(42), int64(-1000000), int64(math.MaxInt64),
			int64(math.MinInt64)},
		expr.Float: {0.0, math.Copysign(0, -1), 1.0, -1.5, 0.1, 2.5, 1e6, 1e20, 1e21, -1e21, 123456789.125,
			1e-4, 1e-5, 1e42, math.MaxFloat64, math.SmallestNonzeroFloat64,
			math.NaN(), math.Inf(1), math.Inf(-1), 0.5, 1e100, 999999.5, 100000.0},
		expr.Decimal: {cents(0), cents(1), cents(-1), cents(50), cents(-50), cents(100), cents(2850), cents(-123456),
			cents(999999999999999999), cents(-999999999999999999)},
		expr.String: {"", "a", "abcdef", "naïve", "한국어", "😀x", "a\x00b", `q"q`, "%d", "e\u0301", "tab\t", " "},
		expr.Bool:   {true, false},
		expr.DateTime: {time.Time{}, time.Unix(0, 0).UTC(), time.Date(2024, 2, 29, 23, 59, 59, 123456000, time.UTC),
			time.Date(1969, 12, 31, 23, 59, 59, 999000000, time.UTC),
			time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), time.Date(-44, 3, 15, 1, 2, 3, 0, time.UTC),
			time.Date(12345, 1, 1, 0, 0, 0, 1000, time.UTC)},
	}
}

// verbDiffsMax bounds how many differences are shown.
const verbDiffsMax = 12

// TestChaosVerbs prints every class of value with every verb, flag, width and
// precision, by fmt.Sprintf and as a column of a file, and compares with Go's fmt.
func TestChaosVerbs(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	every := effort.Of(101, 29, 1)
	columns := map[expr.Type]string{expr.Int: "i", expr.Float: "f", expr.Decimal: "d", expr.String: "s", expr.Bool: "b",
		expr.DateTime: "t"}
	values := verbValues()
	rows := make([]map[string]any, len(values[expr.Float]))
	g := generator{rand.New(rand.NewPCG(1, 11))}
	for i := range rows {
		rows[i] = g.row()
		for typ, column := range columns {
			rows[i]["r."+column] = values[typ][i%len(values[typ])]
		}
	}
	fillTable(t, db, rows)
	var formats []string
	for _, flags := range []string{"", "-", "+", "0", " ", "#", "-0", "+0", " 0", "- ", "+-", "#0", "+#"} {
		for _, width := range []string{"", "1", "5", "12", "40"} {
			for _, precision := range []string{"", ".", ".0", ".1", ".3", ".17", ".25"} {
				for _, letter := range "dxXobcqUOfFeEgGstvTpz" {
					formats = append(formats, "%"+flags+width+precision+string(letter))
				}
			}
		}
	}
	n, compared, differ := 0, 0, 0
	for _, typ := range plainTypes() {
		var selects, used []string
		flush := func() {
			got, err := query(db, selects, "ORDER BY id")
			require.NoError(t, err, "%s %q", typ, used)
			for i, row := range rows {
				for j, format := range used {
					v := row["r."+columns[typ]]
					if want := strings.ToValidUTF8(wantPrinted(format, v, j%2 == 1), "\uFFFD"); got[i][j] != want &&
						differ < verbDiffsMax {
						differ++
						t.Errorf("%s %q of %v: got %q, want %q\n%s", typ, format, v, got[i][j], want, selects[j])
					}
					compared++
				}
			}
			selects, used = nil, nil
		}
		for _, format := range formats {
			if n++; n%every != 0 {
				continue
			}
			c := compile(t, fmt.Sprintf("fmt.Sprintf(`<%s>`, r.%s)", format, columns[typ]), genScope(),
				expr.Mode{Round: true})
			selects, used = append(selects, c.SQL(column, "")), append(used, "<"+format+">")
			if typ == expr.DateTime { // a column's format is a layout
				selects, used = append(selects, c.SQL(column, "")), append(used, "<"+format+">")
			} else {
				print, err := expr.PrintSQL(typ, format, "r."+columns[typ])
				require.NoError(t, err, format)
				selects, used = append(selects, print), append(used, format)
			}
			if len(selects) >= diffBatch {
				flush()
			}
		}
		if len(selects) > 0 {
			flush()
		}
	}
	t.Logf("%d texts", compared)
}

// wantPrinted returns the text that Go prints. Decimals and datetimes are handed over as their text, those of
// a file's column with two digits.
func wantPrinted(format string, v any, file bool) string {
	switch d := v.(type) {
	case *big.Rat:
		if v = decText(dec{d, 2}); file {
			v = d.FloatString(2)
		}
	case time.Time:
		v = d.String()
	}
	return fmt.Sprintf(format, v)
}
