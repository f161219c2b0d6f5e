package expr_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/lang/expr"
	"thalweg/internal/test/effort"
)

// TestWholes: a value of ints at the ends of 64 bits is exact until it is
// stored, whether its operands are columns or literals.
func TestWholes(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	_, err := db.Exec(
		`CREATE TABLE r AS SELECT 9223372036854775807::BIGINT AS i, 1::BIGINT AS j, (-9223372036854775808)::BIGINT AS k,
		-1::BIGINT AS m, 0::BIGINT AS z, 0.01::DECIMAL(18,2) AS c, 9999999999999999.99::DECIMAL(18,2) AS d, 'abc' AS s`)
	require.NoError(t, err)
	scope := expr.Scope{"r": {"i": expr.Int, "j": expr.Int, "k": expr.Int, "m": expr.Int, "z": expr.Int,
		"c": expr.Decimal, "d": expr.Decimal, "s": expr.String}}
	for _, c := range []struct{ src, want string }{
		{"r.i + 1 > 0", "true"},
		{"r.i + r.j > 0", "true"},
		{"(r.i + 1) - 2", "9223372036854775806"},
		{"r.i + r.j - r.j", "9223372036854775807"},
		{"r.i * r.i / r.i", "9223372036854775807"},
		{"r.k % r.m", "0"},
		{"r.k % -1", "0"},
		{"r.k / r.m > r.i", "true"},
		{"-r.k > r.i", "true"},
		{"-(-9223372036854775808) > r.i", "true"},
		{"-(r.i + r.j)", "-9223372036854775808"},
		{"(r.i + r.i) % 10", "4"},
		{"(r.i + r.i) / 4", "4611686018427387903"},
		{"iif(r.j > 0, r.i + r.j, 0) > 0", "true"},
		{"coalesce(r.i + r.j, 0) > r.i", "true"},
		{"string(r.i + r.j)", "9223372036854775808"},
		{"float(r.i + r.j) == 9223372036854775808.0", "true"},
		{"r.i + r.j > 9223372036854775000.5", "true"},
		{"decimal(r.i + r.j, 20, 0)", "9223372036854775808"},
		{"round(r.i + r.j, 1)", "9223372036854775808.0"},
		{"(r.i + r.j) * decimal(r.c, 4, 2)", "92233720368547758.08"},
		{"r.i + len(r.s) > r.i", "true"},
		{"r.i + 1", ""},
		{"r.i + r.j", ""},
		{"-r.k", ""},
		{"r.k / r.m", ""},
		{"iif(r.j > 0, r.i + r.j, 0)", ""},
		{"time.Date(r.i + r.j, time.May, 1, 0, 0, 0, 0, time.UTC)", ""},
		{"r.i * r.i * r.i > 0", ""},
	} {
		for _, round := range []bool{true, false} {
			compiled := compile(t, c.src, scope, expr.Mode{Round: round})
			sql := expr.StoreSQL(compiled.Type(), compiled.SQL(column, ""))
			var got string
			err := db.QueryRow("SELECT CAST(" + sql + " AS VARCHAR) FROM r").Scan(&got)
			if c.want == "" {
				require.Error(t, err, "%s is %s", c.src, got)
				continue
			}
			require.NoError(t, err, "%s\n%s", c.src, sql)
			require.Equal(t, c.want, got, "%s\n%s", c.src, sql)
		}
	}
}

// TestChaosWholesBesideDecimals compares operations on a decimal2 and an int of
// any digits with exact arithmetic: in fields the result has 16 digits before
// the point, elsewhere 38 in all.
func TestChaosWholesBesideDecimals(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	g := generator{rand.New(rand.NewPCG(diffSeed(t), 13))}
	scope := expr.Scope{"r": {"d": expr.Decimal, "i": expr.Int}}
	sources := []string{"r.d * r.i", "r.i * r.d", "r.d + r.i", "r.i - r.d", "r.d + r.d", "r.d * r.d", "r.d / r.i",
		"r.i / r.d",
		"decimal2(r.i) + decimal2(r.i)", "decimal2(r.i) / decimal2(r.i)", "iif(r.d > 0, decimal2(r.i), r.d) * r.d"}
	computed, refused := 0, 0
	for range effort.Of(60, 200, 5_000) {
		d, i := g.digits(1+g.IntN(18), 2), g.wholeOfDigits()
		row := map[string]any{"r.d": d, "r.i": i}
		from := fmt.Sprintf("(SELECT CAST('%s' AS DECIMAL(18,2)) AS d, CAST('%d' AS BIGINT) AS i) AS r",
			d.FloatString(2), i)
		for _, src := range sources {
			round := g.IntN(2) == 0 && !strings.Contains(src, "iif") // where a value of iif is a decimal2 of 16 digits
			want, _, err := reference(src, row, round)
			if err != nil {
				require.ErrorIs(t, err, errRaise)
				continue
			}
			sql := compile(t, src, scope, expr.Mode{Round: round}).SQL(column, "")
			most := map[bool]int{true: 16, false: 34}[round]
			if strings.Contains(src, "/") {
				most = min(most, 22)
			}
			var text string
			err = db.QueryRow("SELECT CAST(" + sql + " AS VARCHAR) FROM " + from).Scan(&text)
			if new(big.Rat).Abs(want.(dec).rat).Cmp(new(big.Rat).SetInt(pow(most))) >= 0 {
				refused++
				require.Error(t, err, "%s for %v is %s", src, row, text)
				continue
			}
			computed++
			require.NoError(t, err, "%s for %v\n%s", src, row, sql)
			got, _ := new(big.Rat).SetString(text)
			require.Zero(t, got.Cmp(want.(dec).rat), "%s for %v is %s\n%s", src, row, text, sql)
		}
	}
	t.Logf("%d computed, %d refused", computed, refused)
	require.Greater(t, computed, refused)
}

// wholeOfDigits is an int of 1 to 19 digits.
func (g generator) wholeOfDigits() int64 {
	for {
		v := g.digits(1+g.IntN(19), 0).Num()
		if v.IsInt64() {
			return v.Int64()
		}
	}
}
