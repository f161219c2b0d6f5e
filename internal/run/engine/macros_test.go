package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/lang/expr"
	"thalweg/internal/test/effort"
)

// Every macro can be defined alone with what it uses, once, and again after a rollback.
func TestMacrosByName(t *testing.T) {
	effort.Raced(t)
	all := newMacros(expr.TextBytes(0, 1))
	for _, statement := range all.statements {
		name := macroName.FindString(statement)
		t.Run(name, func(t *testing.T) {
			in, err := OpenInstance(t.Context(), InstanceConfig{Threads: 1, SpillDir: t.TempDir()})
			require.NoError(t, err)
			defer func() { require.NoError(t, in.Close()) }()
			require.NoError(t, in.InRollback(t.Context(),
				func() error { return in.Exec(t.Context(), "SELECT '"+name+"'") }))
			require.False(t, has(t, in, name), "the rollback left it behind")
			require.NoError(t, in.Exec(t.Context(), "SELECT '"+name+"'"))
			require.True(t, has(t, in, name))
			require.NoError(t, in.Exec(t.Context(), "DROP MACRO temp."+name))
			require.NoError(t, in.Exec(t.Context(), "SELECT '"+name+"'"))
			require.False(t, has(t, in, name), "it was defined twice")
		})
	}
}

func has(t *testing.T, in *Instance, macro string) bool {
	t.Helper()
	var n int
	rows, err := in.Query(t.Context(), "SELECT count(*) FROM duckdb_functions() WHERE function_name = '"+macro[:7]+
		"' || '"+macro[7:]+"'")
	require.NoError(t, err)
	defer rows.Close()
	require.True(t, rows.Next())
	require.NoError(t, rows.Scan(&n))
	return n > 0
}
