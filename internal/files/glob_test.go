package files

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/document"
	"thalweg/internal/fault"
	"thalweg/internal/script"
)

func TestExpand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a/b.csv", "a/a10.csv", "a/a9.csv", "a/.hidden.csv", "b/a1.csv", "b/x[1].csv", "b/x1.csv", "lit*.csv", "lite.csv", "a/sub.csv/x", "Z.csv"} {
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
		got, err := Expand(context.Background(), Places{}, []script.FileURL{{URL: filepath.Join(dir, "Z.csv")}, {URL: dir + "/" + tt.pattern}})
		require.NoError(t, err, tt.pattern)
		var names []string
		for _, u := range got[1:] {
			names = append(names, strings.TrimPrefix(u.URL, dir+"/"))
		}
		require.Equal(t, tt.want, strings.Join(names, " "), tt.pattern)
	}
	for _, pattern := range []string{"a/*.txt", "none/*.csv", "*/none.csv", "Z.csv/*"} {
		_, err := Expand(context.Background(), Places{}, []script.FileURL{{URL: dir + "/" + pattern, Pos: document.Pos{File: "s.yaml", Line: 3, Col: 7}}})
		require.Error(t, err, pattern)
		require.Equal(t, fault.UserData, fault.Of(err).Kind, pattern)
		require.Equal(t, int64(3), fault.Of(err).Place.Line)
	}
	urls := []script.FileURL{{URL: "https://h/x?y=*"}}
	got, err := Expand(context.Background(), Places{}, urls)
	require.NoError(t, err)
	require.Equal(t, urls, got, "a * in a remote address is its own")
}

func TestExpandInWorkingDirectory(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	require.NoError(t, os.WriteFile("in1.csv", nil, 0o644))
	got, err := Expand(context.Background(), Places{}, []script.FileURL{{URL: "in*.csv"}})
	require.NoError(t, err)
	require.Equal(t, "in1.csv", got[0].URL)
}
