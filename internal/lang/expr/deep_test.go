package expr_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/lang/expr"
)

// TestDeep: the deepest expressions that Parse lets through still run.
func TestDeep(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	_, err := db.Exec("CREATE TABLE r AS SELECT 3::BIGINT AS i, 2.50::DECIMAL(18,2) AS d, 'x' AS s, 1.5::DOUBLE AS " +
		"f, true AS b")
	require.NoError(t, err)
	scope := expr.Scope{"r": {"i": expr.Int, "d": expr.Decimal, "s": expr.String, "f": expr.Float, "b": expr.Bool}}
	for _, c := range []struct{ open, middle, close string }{
		{"int.iif(r.i > 2, 7 / (r.i + ", "1", "), 5)"},
		{"(r.d / (r.d + ", "r.d", "))"},
		{"(r.b && r.i / ", "r.i", " > 0)"},
		{"strings.ReplaceAll(r.s, ", "r.s", ", `y`)"},
		{"math.Sqrt(1 + ", "r.f", ")"},
		{"decimal2(float(", "r.f", ") + 1.5)"},
		{"string(string(", "r.f", ") + `a`)"},
	} {
		compiled := (*expr.Compiled)(nil)
		for n := 200; compiled == nil; n-- { // the deepest that is allowed
			require.Positive(t, n, c.open)
			middle := strings.Repeat(c.open, n) + c.middle + strings.Repeat(c.close, n)
			if strings.Contains(c.open, "r.b &&") {
				middle = strings.Repeat("(r.b && ", n) + "r.i / r.i > 0" + strings.Repeat(")", n)
			}
			e, err := expr.Parse(middle)
			if err != nil {
				require.ErrorContains(t, err, "nested deeper")
				continue
			}
			compiled, err = e.Check(scope, expr.Mode{Round: true})
			require.NoError(t, err)
		}
		sql := compiled.SQL(column, "")
		var got any
		require.NoError(t, db.QueryRow("SELECT "+sql+" FROM r").Scan(&got), "%s: %d bytes of SQL", c.open, len(sql))
	}
}

// TestFilterGuard: in a WHERE, where DuckDB reorders the terms while it runs,
// an error on the guarded side does not fire.
func TestFilterGuard(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	_, err := db.Exec("CREATE TABLE r AS SELECT range AS i, range % 3 AS z, 'x' || range % 7 AS s FROM range(300000)")
	require.NoError(t, err)
	scope := expr.Scope{"r": {"i": expr.Int, "z": expr.Int, "s": expr.String}}
	for src, holds := range map[string]func(i int) bool{
		"r.s == `x1` && r.z != 0 && r.i / r.z >= 0 && re.MatchString(`x`, r.s)": func(i int) bool {
			return i%7 == 1 &&
				i%3 != 0
		},
		"r.z == 0 || r.s == `x1` || r.i % r.z == 0": func(i int) bool {
			return i%3 == 0 ||
				i%7 == 1 || i%(i%3) == 0
		},
		"!(r.z == 0 || 1 / r.z > 100) && r.i >= 0": func(i int) bool { return i%3 != 0 },
		"int.iif(r.z == 0, 1, 6 / r.z) == 3":       func(i int) bool { return i%3 == 2 },
	} {
		want := 0
		for i := range 300000 {
			if holds(i) {
				want++
			}
		}
		c := compile(t, src, scope, expr.Mode{})
		var got int
		require.NoError(t, db.QueryRow("SELECT count(*) FROM r WHERE "+c.SQL(column, "")).Scan(&got), src)
		require.Equal(t, want, got, src)
	}
	c := compile(t, "sum_if(r.i / r.z, r.z != 0)", scope, expr.Mode{Aggregates: true})
	var got int64
	require.NoError(t, db.QueryRow("SELECT "+c.SQL(column, "")+" FROM r").Scan(&got))
	require.Positive(t, got)
}
