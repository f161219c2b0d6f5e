package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// saysCommands are the files below the edges that may hold command lines or flags: pages of documentation
// about the command line, other programs' flags, and names of formats that are not shown.
var saysCommands = map[string]string{
	"internal/base/secret/known.go":       "finds secrets in the program's own arguments",
	"internal/io/unpack/compression.go":   "zstd's --long",
	"internal/app/cluster/replication.go": "nodetool's --full",
	"internal/ops/doctor/cassandra.go":    "nodetool's --full",
	"internal/ops/metrics/page.go":        "the page docs/metrics.md",
	"internal/lang/script/definition.go":  "kind of a fingerprint",
	"internal/run/gate/record.go":         "kinds of digests",
	"internal/store/parts/local/store.go": "kind of a directory",
}

var commandLine = regexp.MustCompile("(^|[\\s(`'\"])(--[a-z][a-z-]+|thalweg [a-z]+)")

// TestCommandLinesAreTheEdges: below the edges, what people can do is told as actions and settings, which
// each edge shows in its way.
func TestCommandLinesAreTheEdges(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		name := filepath.ToSlash(strings.Replace(path, "../..", "internal", 1))
		switch {
		case err != nil:
			return err
		case d.IsDir() && name == "internal/test":
			return fs.SkipDir
		case d.IsDir(), !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"):
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			require.NoError(t, err)
			if !commandLine.MatchString(text) {
				return true
			}
			if used[name] = true; saysCommands[name] == "" {
				t.Errorf("%s: %q is of the command line: say an action or a setting (package action)",
					set.Position(lit.Pos()), text)
			}
			return true
		})
		return nil
	})
	require.NoError(t, err)
	for name := range saysCommands {
		require.True(t, used[name], "%s holds no command line any more: take it from saysCommands", name)
	}
}
