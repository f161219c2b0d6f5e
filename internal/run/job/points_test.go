package job_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/run/job"
)

// Each crash point is in one of the lists, which tests go through that fail at a
// point that is never passed, and the page of guarantees names it.
func TestEveryCrashPointIsListed(t *testing.T) {
	t.Parallel()
	listed := slices.Concat(job.CrashPoints(), job.GatePoints(), job.OrderPoints(), job.ServingPoints(),
		job.CollectPoints(), job.FilePoints())
	page, err := os.ReadFile("../../../docs/guarantees.md")
	require.NoError(t, err)
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	found := 0
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if of, ok := spec.Type.(*ast.Ident); ok && of.Name == "CrashPoint" {
				text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				require.NoError(t, err)
				require.Equal(t, 1, count(listed, job.CrashPoint(text)), "%s is in one list", text)
				require.True(t, strings.Contains(string(page), "`"+text+"`"),
					"docs/guarantees.md says what happens at %s", text)
				found++
			}
			return true
		})
	}
	require.Len(t, listed, found)
}

func count(points []job.CrashPoint, one job.CrashPoint) (n int) {
	for _, p := range points {
		if p == one {
			n++
		}
	}
	return n
}
