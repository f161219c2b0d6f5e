package script

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"thalweg/internal/base/document"
)

// formatCorpus is every script of the tests and examples.
func formatCorpus(t testing.TB) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, pattern := range []string{"testdata/*.txtar", "testdata/*/*.txtar", "../../base/document/testdata/*/*.txtar",
		"../../test/conformance/testdata/*/*.txtar"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			archive, err := txtar.ParseFile(file)
			require.NoError(t, err)
			for _, f := range archive.Files {
				if document.IsYAML(f.Name) || document.IsJSON(f.Name) {
					out[file+" "+f.Name] = string(f.Data)
				}
			}
		}
	}
	files, err := filepath.Glob("../../../examples/*/*.yaml")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		out[file] = string(text)
	}
	return out
}

// Formatting changes no meaning, settles at once, and keeps comments.
func TestFormatKeepsMeaning(t *testing.T) {
	t.Parallel()
	formatted := 0
	for name, text := range formatCorpus(t) {
		got, err := document.Format(name, []byte(text))
		if err != nil {
			continue // not YAML; what has to be accepted is counted below
		}
		formatted++
		checkFormatted(t, name, text, string(got))
	}
	require.Greater(t, formatted, 120)
}

func checkFormatted(t *testing.T, name, text, got string) {
	t.Helper()
	again, err := document.Format(name, []byte(got))
	require.NoError(t, err, "%s\n%s", name, got)
	require.Equal(t, got, string(again), name)
	require.Equal(t, strings.Count(text, "#"), strings.Count(got, "#"), name)
	ext := filepath.Ext(name)
	before, d1 := memory{"script" + ext: text}.load(t)
	after, d2 := memory{"script" + ext: got}.load(t)
	require.Equal(t, len(d1), len(d2), "%s\n%s\n%s", name, d1.Render(), d2.Render())
	if before != nil {
		require.Equal(t, before.Fingerprint, after.Fingerprint, name)
	}
}

func TestFormatExamples(t *testing.T) {
	t.Parallel()
	for name, text := range formatCorpus(t) {
		if strings.HasPrefix(name, "../../../examples") {
			_, err := document.Format(name, []byte(text))
			require.NoError(t, err, name)
		}
	}
}
