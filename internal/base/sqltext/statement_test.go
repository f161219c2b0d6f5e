package sqltext

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStatement(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d           Dialect
		query, want string
		more        bool
	}{
		{Postgres, "SELECT 1", "SELECT 1", false},
		{Postgres, " SELECT 1 ;; \n", " SELECT 1", false},
		{Postgres, "SELECT 1; -- it is; done", "SELECT 1", false},
		{Postgres, "SELECT 1 -- it's done", "SELECT 1", false},
		{Postgres, "-- a;\nSELECT 1 /* b; /* c; */ d; */ ;", "-- a;\nSELECT 1", false},
		{Postgres, "SELECT ';', \"a;b\", E'a\\';b', $$;$$, $a$;$$;$a$ ; --",
			"SELECT ';', \"a;b\", E'a\\';b', $$;$$, $a$;$$;$a$", false},
		{Postgres, "SELECT 'a\\'; SELECT 2", "SELECT 'a\\'", true},
		{Postgres, "SELECT a$b;", "SELECT a$b", false},
		{Postgres, "SELECT 1; SELECT 2", "SELECT 1", true},
		{Postgres, "SELECT 1;\n-- c\nDROP TABLE x", "SELECT 1", true},
		{Postgres, "SELECT 'open;", "SELECT 'open;", false},
		{Postgres, "SELECT /* open;", "SELECT", false},
		{Postgres, "", "", false},
		{Postgres, "--", "", false},
		{MySQL, "SELECT 'a\\';b', \"c\\\";d\", `e;f` ; # g", "SELECT 'a\\';b', \"c\\\";d\", `e;f`", false},
		{MySQL, "SELECT 1--1; -- x", "SELECT 1--1", false},
		{MySQL, "SELECT 1 /*!, 2 */;", "SELECT 1 /*!, 2 */", false},
		{MySQL, "SELECT /* a /* b */ 1; SELECT 2", "SELECT /* a /* b */ 1", true},
		{SQLite, "SELECT '\\' AS [a;b]; -- x", "SELECT '\\' AS [a;b]", false},
		{SQLite, "SELECT 'it''s;'; SELECT 2", "SELECT 'it''s;'", true},
	} {
		got, more := Statement(c.query, c.d)
		require.Equal(t, c.want, got, c.query)
		require.Equal(t, c.more, more, c.query)
	}
}
