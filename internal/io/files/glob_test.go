package files

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
)

func TestExpand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a/b.csv", "a/a10.csv", "a/a9.csv", "a/.hidden.csv", "b/a1.csv", "b/x[1].csv",
		"b/x1.csv", "lit*.csv", "lite.csv", "a/sub.csv/x", "Z.csv"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
	}
	tests := []struct{ pattern, want string }{
		{"a/*.csv", "a/a10.csv a/a9.csv a/b.csv"},
		{"*/a?.csv", "a/a9.csv b/a1.csv"},
		{"a/.*.csv", "a/.hidden.csv"},
		{"b/x[1].*", "b/x[1].csv"},
		{"lit*.csv", "lit*.csv"},
		{"?.csv", "Z.csv"},
		{"a/*.csv/x", "a/sub.csv/x"},
		{"a//b*.csv", "a/b.csv"},
	}
	for _, tt := range tests {
		got, err := Expand(context.Background(), Places{}, []script.FileURL{{URL: filepath.Join(dir, "Z.csv")},
			{URL: dir + "/" + tt.pattern}})
		require.NoError(t, err, tt.pattern)
		var names []string
		for _, u := range got[1:] {
			names = append(names, strings.TrimPrefix(u.URL, dir+"/"))
		}
		require.Equal(t, tt.want, strings.Join(names, " "), tt.pattern)
	}
	for _, pattern := range []string{"a/*.txt", "none/*.csv", "*/none.csv", "Z.csv/*"} {
		_, err := Expand(context.Background(), Places{},
			[]script.FileURL{{URL: dir + "/" + pattern, Pos: document.Pos{File: "s.yaml", Line: 3, Col: 7}}})
		require.Error(t, err, pattern)
		require.Equal(t, fault.UserData, fault.Of(err).Kind, pattern)
		require.Equal(t, int64(3), fault.Of(err).Place.Line)
	}
	urls := []script.FileURL{{URL: "https://h/x?y=*"}}
	got, err := Expand(context.Background(), Places{}, urls)
	require.NoError(t, err)
	require.Equal(t, urls, got, "a * in a remote address is its own")
}

// ** looks through directories of any depth, but through no hidden one and no link.
func TestExpandThroughDirectories(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"a/x.csv", "a/b/x.csv", "a/b/c/x.csv", "a/b/c/y.txt", "a/.git/x.csv", "a/b/.x.csv",
		"d.csv/x.csv", "x.csv", "e/b/f/b/x.csv"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, nil, 0o644))
	}
	require.NoError(t, os.Symlink("..", "a/b/up"))
	require.NoError(t, os.Symlink("x.csv", "a/link.csv"))
	for pattern, want := range map[string]string{
		"a/**/*.csv":    "a/b/c/x.csv a/b/x.csv a/link.csv a/x.csv",
		"a/**":          "a/b/c/x.csv a/b/c/y.txt a/b/x.csv a/link.csv a/x.csv",
		"**/x.csv":      "a/b/c/x.csv a/b/x.csv a/x.csv d.csv/x.csv e/b/f/b/x.csv x.csv",
		"**/b/**/x.csv": "a/b/c/x.csv a/b/x.csv e/b/f/b/x.csv",
		"**/**/c/*.csv": "a/b/c/x.csv",
		"a/b**/*.csv":   "a/b/x.csv",
		"a/b/up/*.csv":  "a/b/up/link.csv a/b/up/x.csv",
	} {
		got, err := Expand(t.Context(), Places{}, []script.FileURL{{URL: pattern}})
		require.NoError(t, err, pattern)
		var names []string
		for _, u := range got {
			names = append(names, u.URL)
		}
		require.Equal(t, want, strings.Join(names, " "), pattern)
	}
}

func TestExpandInWorkingDirectory(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	require.NoError(t, os.WriteFile("in1.csv", nil, 0o644))
	got, err := Expand(context.Background(), Places{}, []script.FileURL{{URL: "in*.csv"}})
	require.NoError(t, err)
	require.Equal(t, "in1.csv", got[0].URL)
}

// A name is no format: what looks like one stays.
func TestTooManyNamesThePattern(t *testing.T) {
	t.Parallel()
	err := tooMany("in/a%20b-*.csv: more than", "files match")
	require.EqualError(t, err, "in/a%20b-*.csv: more than 100000 files match")
}
