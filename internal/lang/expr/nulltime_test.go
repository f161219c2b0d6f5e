package expr_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/lang/expr"
)

// The text of a datetime that is NULL is NULL, also in a layout that shows
// nothing of it: a zone and words around it.
func TestFormatOfNull(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	scope := expr.Scope{"r": {"t": expr.DateTime}}
	for _, layout := range []string{"MST", "Z0700 MST", "-07:00", "in MST, 100%", "2006-01-02", "15:04", "Jan MST"} {
		src := "time.Format(r.t, `" + layout + "`)"
		c := compile(t, src, scope, expr.Mode{Nullable: func(expr.Ref) bool { return true }})
		for value, want := range map[string]bool{"CAST(NULL AS TIMESTAMP)": true,
			"TIMESTAMP '2024-05-06 07:08:09'": false} {
			var null bool
			require.NoError(t, db.QueryRow("SELECT ("+c.SQL(func(expr.Ref) string { return value }, "")+
				") IS NULL").Scan(&null),
				src)
			require.Equal(t, want, null, "%s of %s", src, value)
		}
	}
}
