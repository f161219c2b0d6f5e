package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/access"
	"thalweg/internal/app/view"
	"thalweg/internal/test/effort"
)

// Whoever may see a script hears when a file changes that it is made of.
func TestStreamOfScript(t *testing.T) {
	t.Parallel()
	s, _, _ := authorOf(t)
	s.file("jobs/a,b.yaml", pythonText("calc.py"))
	c := s.as("vic", access.Grant{Workspace: "main", Role: access.Viewer})
	require.Equal(t, http.StatusNotFound, c.get("/v1/stream?topics=main/script:none.yaml").status)
	require.Equal(t, http.StatusUnprocessableEntity, c.get("/v1/stream?topics=main/script:%25zz").status)
	require.Equal(t, http.StatusForbidden, c.get("/v1/stream?topics=other/script:ids.yaml").status)
	ctx, cancel := context.WithTimeout(t.Context(), effort.Patience)
	defer cancel()
	next := c.listen(ctx, "topics=main/script:a%252Cb.yaml", "")
	for _, change := range []func(){
		func() {}, // the first event says that it is watched
		func() { s.file("jobs/a,b.yaml", pythonText("calc.py")+"\n") },
		func() { s.file("jobs/calc.py", "def twice(x):\n    return 2 * x\n") },
		func() { s.file("jobs/calc.py", "def twice(x):\n    return x + x\n") },
		func() { s.file("jobs/a,b.yaml", "nodes: [") },
		func() { require.NoError(t, os.Remove(filepath.Join(s.dir, "jobs", "a,b.yaml"))) },
	} {
		change()
		e, ok := next()
		require.True(t, ok)
		require.Equal(t, event{"script", "", `{"workspace":"main","script":"a,b.yaml"}`}, e)
	}
}

// The runs of a script are those of its name, or of its path.
func TestRunsOfScript(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.run()
	c := s.as("vic", access.Grant{Workspace: "main", Role: access.Viewer})
	of := func(name string) (out []int64) {
		var runs []view.ListedRun
		c.get(ws+"/scripts/"+name+"/runs").into(http.StatusOK, &runs)
		for _, r := range runs {
			out = append(out, r.Run)
		}
		return out
	}
	require.NoError(t, os.Mkdir(filepath.Join(s.dir, "sub"), 0o700))
	s.file("sub/script.yaml", script)
	require.Equal(t, []int64{1}, of("script.yaml"))
	require.Empty(t, of("sub%2Fscript.yaml"), "it has the same name of its file")
	s.file("script.yaml", "name: ids\n"+script)
	require.Empty(t, of("script.yaml"), "it is another script now")
	s.run()
	s.file("sub/script.yaml", "name: ids\n"+script)
	require.Equal(t, []int64{2}, of("sub%2Fscript.yaml"), "it calls itself the same")
	s.file("script.yaml", "name: ids\nnodes: [")
	require.Equal(t, []int64{2, 1}, of("script.yaml"), "what it is called cannot be read")
	require.Equal(t, http.StatusNotFound, c.get(ws+"/scripts/none.yaml/runs").status)
}

// Authors see what a run was begun with, whatever has become of the files.
func TestTextsOfRun(t *testing.T) {
	t.Parallel()
	s, c, operator := authorOf(t)
	s.file("jobs/calc.py", "def twice(x):\n    return 2 * x\n")
	s.file("jobs/sums.yaml", pythonText("calc.py"))
	var began struct{ Run int64 }
	c.send("POST", ws+"/runs", body{"script": "sums.yaml"}).into(http.StatusCreated, &began)
	s.file("jobs/sums.yaml", "nodes: {}\n")
	s.file("jobs/calc.py", "")
	var texts view.RunTexts
	c.get(ws+"/runs/1/texts").into(http.StatusOK, &texts)
	require.Equal(t, filepath.Join(s.dir, "jobs", "sums.yaml"), texts.Script)
	require.Equal(t, []view.RunText{
		{File: filepath.Join(s.dir, "jobs", "calc.py"), Text: "def twice(x):\n    return 2 * x\n"},
		{File: texts.Script, Text: pythonText("calc.py"), Nodes: map[string]int{"load": 2, "calc": 3}},
	}, texts.Files)
	require.Equal(t, http.StatusForbidden, operator.get(ws+"/runs/1/texts").status)
	require.Equal(t, http.StatusNotFound, c.get(ws+"/runs/2/texts").status)
}

// A workspace of the configuration is there before its first run.
func TestWorkspacesOfConfiguration(t *testing.T) {
	t.Parallel()
	s := serveAs(t, "workspaces:\n  main: {scripts: .}\n  other: {scripts: .}\n"+generous)
	c := s.as("vic", access.Grant{Workspace: "main", Role: access.Viewer})
	list := func() (out []struct{ Workspace string }) {
		require.NoError(t, json.Unmarshal([]byte(c.get("/v1/workspaces").text), &out))
		return out
	}
	require.Equal(t, []struct{ Workspace string }{{"main"}}, list())
	s.run()
	require.Equal(t, []struct{ Workspace string }{{"main"}}, list())
}
