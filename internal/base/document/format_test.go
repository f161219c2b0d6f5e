package document

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
)

// golden are texts with what they become.
func golden(t testing.TB) map[string]*txtar.Archive {
	t.Helper()
	out := map[string]*txtar.Archive{}
	files, err := filepath.Glob("testdata/format/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		require.NoError(t, err)
		out[file] = archive
	}
	return out
}

func TestFormat(t *testing.T) {
	t.Parallel()
	for file, archive := range golden(t) {
		in, want := archive.Files[0], archive.Files[1]
		got, err := Format(in.Name, in.Data)
		require.NoError(t, err, file)
		require.Equal(t, string(want.Data), string(got), file)
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
	for _, archive := range golden(f) {
		f.Add(string(archive.Files[0].Data), IsJSON(archive.Files[0].Name))
	}
	f.Fuzz(func(t *testing.T, text string, json bool) {
		name, read := "x.yaml", ReadYAML
		if json {
			name, read = "x.json", ReadJSON
		}
		got, err := Format(name, []byte(text))
		if err != nil {
			return
		}
		again, err := Format(name, got)
		require.NoError(t, err)
		require.Equal(t, string(got), string(again))
		_, before := read(NewSource(name, text))
		_, after := read(NewSource(name, string(got)))
		require.Equal(t, before == nil, after == nil)
		if before == nil {
			require.True(t, sameDocument(name, text, string(got), read))
		}
	})
}
