package expr_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/lang/expr"
)

// TestTextLimit looks at texts just below and above the limit of 16 KiB, and
// at what may be longer since it is made of a long text.
func TestTextLimit(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	limit := int(expr.TextBytes(0, 1))
	require.Equal(t, 16<<10, limit)
	scope := expr.Scope{"r": {"s": expr.String, "k": expr.String, "n": expr.String, "i": expr.Int}}
	mode := expr.Mode{Nullable: func(r expr.Ref) bool { return r.Field == "n" }}
	a := func(count int) string { return strings.Repeat("a", count) }
	quotes := strings.Repeat(`{"key": "value"}, `, 300_000)
	for _, c := range []struct {
		src, s, k string
		want      string // "": too long
	}{
		{"strings.ReplaceAll(r.s, `a`, `aaaa`)", a(limit / 4), "", a(limit / 4 * 4)},
		{"strings.ReplaceAll(r.s, `a`, `aaaa`)", a(limit/4 + 1), "", ""},
		{"strings.ReplaceAll(r.s, `a`, `aaa`)", a(limit), "", a(3 * limit)},
		{"strings.ReplaceAll(r.s, `a`, `aaa`)", strings.Repeat("b", limit) + "a", "",
			strings.Repeat("b", limit) + "aaa"},
		{"strings.ReplaceAll(r.s, `\"`, `&quot;`)", quotes, "", strings.ReplaceAll(quotes, `"`, "&quot;")},
		{"strings.ReplaceAll(r.s, `aa`, `a`)", a(2 * limit), "", a(limit)},
		{"strings.ReplaceAll(r.s, `a`, r.k)", a(100), a(limit / 100), a(limit / 100 * 100)},
		{"strings.ReplaceAll(r.s, `a`, r.k)", a(101), a(limit / 100), ""},
		{"strings.ReplaceAll(r.s, r.k, `bb`)", a(limit + 1), "a", strings.Repeat("bb", limit+1)},
		{"strings.ReplaceAll(r.s, ``, `12`)", strings.Repeat("é", limit/4-1), "",
			strings.Repeat("12é", limit/4-1) + "12"},
		{"strings.ReplaceAll(r.s, ``, `12345`)", strings.Repeat("é", limit/4), "", ""},
		{"strings.ReplaceAll(r.s, r.k, `12345`)", strings.Repeat("é", limit/4), "", ""},
		{"r.s + r.s + r.s + r.s + r.s", a(limit / 5), "", a(limit / 5 * 5)},
		{"r.s + r.s + r.s + r.s + r.s", a(limit/5 + 1), "", ""},
		{"r.s + r.s + r.s + r.s + r.n", a(limit / 4), "", "NULL"},
		{"r.s + r.s + r.s + r.s + r.s + coalesce(r.n, r.k)", a(limit / 5), "!", a(limit/5*5) + "!"},
		{"r.s + r.s + r.s + r.s + r.s + iif(r.i == 7, r.k, r.s)", a(limit / 6), a(limit), a(limit/6*5) + a(limit)},
		{"r.s + r.s + r.s + r.s + r.s + strings.ReplaceAll(r.k, `a`, `aa`)", a(limit / 10), a(limit / 4),
			a(limit/10*5) + a(limit/4*2)},
		{"r.s + r.s + r.s + r.s + r.s + strings.ReplaceAll(r.k, `a`, `aa`)", a(limit / 5), a(limit / 10), ""},
		{"fmt.Sprintf(`%s%s%s%s%5s`, r.s, r.s, r.s, r.s, r.s)", a(limit/5 + 1), "", ""},
		{"fmt.Sprintf(`%s%s%s%s%5s`, r.s, r.s, r.s, r.s, r.s)", a(limit / 5), "", a(limit / 5 * 5)},
		{"fmt.Sprintf(`" + strings.Repeat("%1000d", 17) + "`" + strings.Repeat(", r.i", 17) + ")", "", "", ""},
		{"fmt.Sprintf(`" + strings.Repeat("%1000d", 16) + "`" + strings.Repeat(", r.i", 16) + ")", "", "",
			strings.Repeat(fmt.Sprintf("%1000d", 7), 16)},
		{"fmt.Sprintf(`%[1]q%[1]q%[1]q`, r.s)", a(limit), "", ""},
		{"fmt.Sprintf(`%[1]q%[1]q`, r.s)", a(limit/2 - 2), "", `"` + a(limit/2-2) + `""` + a(limit/2-2) + `"`},
		{"fmt.Sprintf(r.s, r.k)", strings.Repeat("%[1]s", 20), a(limit), ""},
		{"fmt.Sprintf(r.s, r.k)", "%s", a(limit), a(limit)},
		{"iif(r.i == 8 && len(strings.ReplaceAll(r.s, `a`, r.s)) > 3, r.k, r.s)", a(limit), "", a(limit)},
	} {
		compiled := compile(t, c.src, scope, mode)
		var got string
		err := db.QueryRow("SELECT coalesce(CAST("+compiled.SQL(column, "")+" AS VARCHAR), 'NULL') "+
			"FROM (SELECT ? AS s, ? AS k, CAST(NULL AS VARCHAR) AS n, 7 AS i) AS r", c.s, c.k).Scan(&got)
		if c.want == "" {
			require.Error(t, err, c.src)
			raised, ok := expr.ParseRaised(err.Error())
			require.True(t, ok, c.src)
			require.Equal(t, expr.RaisedIn, raised.Kind, c.src)
			require.Contains(t, raised.Text(), "are the most that its share of the memory holds", c.src)
			continue
		}
		require.NoError(t, err, c.src)
		require.True(t, c.want == got, "%s: %d bytes, not %d", c.src, len(got), len(c.want))
	}
}

// TestConstantTextLimit: a script of few bytes makes no gigabytes when it is loaded.
func TestConstantTextLimit(t *testing.T) {
	t.Parallel()
	for _, src := range []string{
		strings.Repeat("strings.ReplaceAll(", 50) + "`aaaaaaaa`" + strings.Repeat(", `a`, `aaaaaaaa`)", 50),
		strings.Repeat("strings.ReplaceAll(", 50) + "`a`" + strings.Repeat(", ``, `aaaaaaaa`)", 50),
		"`" + strings.Repeat("a", 500) + "` + " +
			strings.Repeat("strings.ReplaceAll(", 7) + "`aaaaaaaa`" + strings.Repeat(", `a`, `aaaaaaa`)", 7),
	} {
		e, err := expr.Parse(src)
		require.NoError(t, err)
		_, err = e.Check(expr.Scope{}, expr.Mode{})
		require.ErrorContains(t, err, "a constant has at most 1048576")
	}
}
