package expr_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/lang/expr"
)

var update = flag.Bool("update", false, "rewrite docs/expressions.md")

// TestReference: docs/expressions.md is what the table of functions says.
func TestReference(t *testing.T) {
	path := filepath.Join("..", "..", "..", "docs", "expressions.md")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(expr.Reference()), 0o644))
	}
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, expr.Reference(), string(page), "run go test ./internal/lang/expr -run TestReference -update")
}
