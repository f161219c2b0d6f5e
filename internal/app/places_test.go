package app_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
)

// relativeInstance makes an App of a directory that is reached by a link, and whose name has characters of patterns.
func relativeInstance(t *testing.T) (dir string, a *app.App) {
	t.Helper()
	above := t.TempDir()
	// a link, from which .. leads to the directory above what it names
	require.NoError(t, os.MkdirAll(filepath.Join(above, "real", "work [1]"), 0o700))
	dir = filepath.Join(above, "linked")
	require.NoError(t, os.Symlink(filepath.Join(above, "real", "work [1]"), dir))
	for name, text := range map[string]string{"script.yaml": localScript, "in.csv": "id\n1\n2\n",
		"more/a.csv": "id\n7\n", "../beside.csv": "id\n8\n"} {
		path := dir + "/" + name
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir, instanceOf(t, dir, map[string]string{"REGION": "north"})
}

// TestRelativeNamesAreSeenFromTheProcessDirectory asks each service about names that are relative, in an App whose
// directory is not the working directory.
func TestRelativeNamesAreSeenFromTheProcessDirectory(t *testing.T) {
	t.Parallel()
	dir, a := relativeInstance(t)
	by := app.Caller{Actor: "tester", Via: app.CLI}
	named := app.NamedScript{Path: "script.yaml"}
	s, diags, err := a.Scripts.Valid(t.Context(), named)
	require.NoError(t, err, diags)
	valid, _, err := a.Scripts.Validate(t.Context(), named, true, "")
	require.NoError(t, err)
	require.True(t, valid.OK, valid)
	found, err := a.Replaces(t.Context(), s, app.RunOptions{})
	require.NoError(t, err)
	require.Empty(t, found)
	sum, err := a.Run(t.Context(), by, app.RunOptions{Workspace: app.DefaultWorkspace, ScriptPath: "script.yaml"})
	require.NoError(t, err)
	require.Equal(t, view.Complete, sum.Status, sum.Failure)
	written, err := os.ReadFile(filepath.Join(dir, "north.csv"))
	require.NoError(t, err)
	require.Equal(t, "id\n1\n2\n", string(written))

	found, err = a.Replaces(t.Context(), s, app.RunOptions{})
	require.NoError(t, err)
	require.Len(t, found, 1)
	use, err := a.Data.UseOf(t.Context(), app.DefaultWorkspace, "north.csv")
	require.NoError(t, err)
	require.Equal(t, "an output of run 1", use)
	tree, err := a.Data.Trace(t.Context(), by, app.TraceOptions{Workspace: app.DefaultWorkspace, Name: "north.csv"})
	require.NoError(t, err)
	require.NotNil(t, tree)
	for _, files := range []string{"in.csv", "more/*.csv", "../beside.csv", "../b*.csv"} {
		p, err := a.Scripts.Infer(t.Context(), []string{files}, app.InferOptions{MemoryBytes: 512 << 20})
		require.NoError(t, err, files)
		require.Equal(t, files, p.File)
	}
}

// TestOutputsAreHeldAgainstInputsThereToo refuses an output that replaces an input, however both are named.
func TestOutputsAreHeldAgainstInputsThereToo(t *testing.T) {
	t.Parallel()
	dir, a := relativeInstance(t)
	real, err := filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	by := app.Caller{Actor: "tester", Via: app.CLI}
	for name, pair := range map[string][2]string{
		"absolute and relative":     {filepath.Join(dir, "in.csv"), "in.csv"},
		"real and relative":         {filepath.Join(real, "in.csv"), "in.csv"},
		"relative and real":         {"./in.csv", filepath.Join(real, "in.csv")},
		"above, and in a link":      {"../beside.csv", filepath.Join(filepath.Dir(real), "beside.csv")},
		"a pattern and one of them": {"more/*.csv", filepath.Join(real, "more", "b.csv")},
	} {
		text := "nodes:\n  load: {type: file_table, r: {urls: ['" + pair[0] + "'], types: {id: int}}, w: ids}\n" +
			"  write: {type: table_file, r: ids, w: '" + pair[1] + "'}\n"
		require.NoError(t, os.WriteFile(filepath.Join(dir, "bad.yaml"), []byte(text), 0o600))
		_, err := a.Run(t.Context(), by, app.RunOptions{Workspace: app.DefaultWorkspace, ScriptPath: "bad.yaml"})
		require.ErrorContains(t, err, "which node load reads", name)
	}
}
