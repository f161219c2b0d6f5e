package script

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
)

func TestFormat(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/format/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		require.NoError(t, err)
		in, want := archive.Files[0], archive.Files[1]
		got, err := Format(in.Name, in.Data)
		require.NoError(t, err, file)
		require.Equal(t, string(want.Data), string(got), file)
	}
}

// formatCorpus is every script of the tests and examples.
func formatCorpus(t testing.TB) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, pattern := range []string{"testdata/*.txtar", "testdata/*/*.txtar", "../conformance/testdata/*/*.txtar"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			archive, err := txtar.ParseFile(file)
			require.NoError(t, err)
			for _, f := range archive.Files {
				if isYAML(f.Name) || isJSON(f.Name) {
					out[file+" "+f.Name] = string(f.Data)
				}
			}
		}
	}
	files, err := filepath.Glob("../../examples/*/*.yaml")
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
		got, err := Format(name, []byte(text))
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
	again, err := Format(name, []byte(got))
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
		if strings.HasPrefix(name, "../../examples") {
			_, err := Format(name, []byte(text))
			require.NoError(t, err, name)
		}
	}
}

func TestFormatRefuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"syntax.yaml":  "a: [1\nb: 2\n",
		"complex.yaml": "? [a]\n: b\n",
		"x.txt":        "a",
		"bytes.yaml":   "a: \xff\n",
		"syntax.json":  "{",
	} {
		_, err := Format(name, []byte(text))
		require.Error(t, err, name)
	}
}

// FuzzFormat checks the same of anything that is YAML or JSON.
func FuzzFormat(f *testing.F) {
	for name, text := range formatCorpus(f) {
		f.Add(text, isJSON(name))
	}
	f.Fuzz(func(t *testing.T, text string, json bool) {
		name, read := "x.yaml", readYAML
		if json {
			name, read = "x.json", readJSON
		}
		got, err := Format(name, []byte(text))
		if err != nil {
			return
		}
		again, err := Format(name, got)
		require.NoError(t, err)
		require.Equal(t, string(got), string(again))
		_, before := read(newSource(name, text))
		_, after := read(newSource(name, string(got)))
		require.Equal(t, before == nil, after == nil)
		if before == nil {
			require.True(t, sameDocument(name, text, string(got), read))
		}
	})
}
