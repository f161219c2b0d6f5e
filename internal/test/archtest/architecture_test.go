package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	indexLine = regexp.MustCompile("(?m)^\\| [^|]+ \\| `([^`]+\\.go)` \\| `([^`]+)` \\|$")
	wingLine  = regexp.MustCompile("(?m)^\\| `([a-z]+)` \\| [^|]+ \\| ([^|]+) \\|$")
	someCode  = regexp.MustCompile("`((?:base|lang|io|store|run|ops|app|test|state|queue|parts)/[a-z]+)`")
)

// TestArchitecturePage: what ARCHITECTURE.md says of wings, packages, files and symbols is so.
func TestArchitecturePage(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	data, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	require.NoError(t, err)
	text := string(data)
	require.LessOrEqual(t, strings.Count(text, "\n"), 130, "it is a page, not a book")

	rows := indexLine.FindAllStringSubmatch(text, -1)
	require.GreaterOrEqual(t, len(rows), 30)
	for _, row := range rows {
		code, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(row[1])))
		require.NoError(t, err)
		require.Contains(t, string(code), row[2], "%s has no %s", row[1], row[2])
	}

	seen := []string{"test"}
	for _, row := range wingLine.FindAllStringSubmatch(text, -1) {
		w, ok := wings[row[1]]
		if !ok {
			require.Equal(t, "test", row[1])
			continue
		}
		seen = append(seen, row[1])
		if row[2] != "all above" {
			var may []string
			for _, name := range strings.Split(row[2], ",") {
				may = append(may, strings.Trim(name, " `"))
			}
			of := slices.DeleteFunc(strings.Fields(w.may),
				func(name string) bool { return name == row[1] && len(may) > 0 })
			require.ElementsMatch(t, of, slices.DeleteFunc(may, func(name string) bool { return name == row[1] }),
				row[1])
		}
	}
	require.Len(t, seen, len(wings)+1)

	for _, m := range someCode.FindAllStringSubmatch(text, -1) {
		within, err := filepath.Glob(filepath.Join(root, "internal", m[1]))
		require.NoError(t, err)
		below, err := filepath.Glob(filepath.Join(root, "internal", "*", m[1]))
		require.NoError(t, err)
		require.NotEmpty(t, append(within, below...), "there is no package %s", m[1])
	}
}
