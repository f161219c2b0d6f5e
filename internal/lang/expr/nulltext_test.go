package expr_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/lang/expr"
)

// What is joined with a text that is always NULL is a text, whatever else is
// done with it: DuckDB would say that it is an INTEGER.
func TestTypeOfNullTexts(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	scope := expr.Scope{"r": {"s": expr.String, "i": expr.Int, "t": expr.DateTime}}
	const never = "iif(true, null, `;`)"
	for _, src := range []string{
		"r.s + never", "r.s + never + `x`", "never + r.s + r.s", "strings.ReplaceAll(r.s + never, `a`, r.s)",
		"fmt.Sprintf(`%s-%d`, never, iif(true, null, 1))",
		"time.Format(iif(true, null, time.Parse(`2006`, `2024`)), `in 2006`)",
		"iif(r.i > 0, r.s + never, null)", "(r.s + never) == `a`", "len(r.s + never)",
		"coalesce(r.s + never, `a`) == `a`",
		"r.s + never < r.s", "string(iif(true, null, 1)) + `x`", "strings.HasPrefix(r.s + never, `a`)",
		"int(r.s + never)", "time.Parse(`2006`, r.s + never)",
	} {
		src = strings.ReplaceAll(src, "never", never)
		c := compile(t, src, scope, expr.Mode{Nullable: func(expr.Ref) bool { return true }})
		var got string
		sql := c.SQL(func(ref expr.Ref) string { return "r." + ref.Field }, "")
		require.NoError(t, db.QueryRow("SELECT typeof("+sql+
			") FROM (SELECT 'a' AS s, CAST(1 AS BIGINT) AS i, TIMESTAMP '2024-01-02' AS t) AS r").Scan(&got), src)
		require.Equal(t, c.Type().SQL(), got, src)
	}
}
