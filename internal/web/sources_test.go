package web

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sources are what the pages are made of, from the top of the repository, beside ui/src. ui/vite.config.ts has the
// same list.
var sources = []string{"docs/openapi.json", "ui/index.html", "ui/package.json", "ui/package-lock.json",
	"ui/svelte.config.js", "ui/tsconfig.json", "ui/vite.config.ts"}

// noSource reports whether a file of ui/src is none: types that are made of docs/openapi.json, and tests.
func noSource(name string) bool {
	return name == "ui/src/api/schema.d.ts" || strings.HasSuffix(name, ".test.ts")
}

// dist is what the sources in the tree were built into.
func TestBuiltFromTheseSources(t *testing.T) {
	const root = "../.."
	all := slices.Clone(sources)
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "ui/src"), func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		if err != nil || d.IsDir() || noSource(filepath.ToSlash(name)) {
			return err
		}
		all = append(all, filepath.ToSlash(name))
		return nil
	}))
	slices.Sort(all)
	list := sha256.New()
	for _, name := range all {
		data, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		fmt.Fprintf(list, "%x  %s\n", sha256.Sum256(data), name)
	}
	kept, err := dist.ReadFile("dist/sources.sha256")
	require.NoError(t, err)
	require.Equal(t, strings.TrimSpace(string(kept)), hex.EncodeToString(list.Sum(nil)),
		"internal/web/dist was built from other sources: `make ui` builds it again (Node 20 or later), and it is committed with them")
}
