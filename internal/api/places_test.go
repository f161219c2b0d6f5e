package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app"
	"thalweg/internal/app/access"
	"thalweg/internal/app/view"
	"thalweg/internal/test/effort"
)

// anyScript reads and writes what its parameters name.
const anyScript = `
nodes:
  load: {type: file_table, r: {urls: ["{from}"], columns: {id: int}}, w: ids}
  write: {type: table_file, r: ids, w: "{to}"}
`

// placesOf serves anyScript, with an in and an out directory beside things that are nobody's business.
func placesOf(t *testing.T) *served {
	return serveAs(t, "workspaces:\n  main:\n    scripts: jobs\n    parameters: true\n    places:\n"+
		"      read: [in]\n      write: [out]\n"+generous, "jobs", "in/sub", "out/sub", "other")
}

func (s *served) work(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.app.Work(ctx, app.ProcessCaller(), app.WorkOptions{}, nil)
	}()
	return func() { cancel(); <-done }
}

// Runs that are started through the server open only what the workspace's places allow, whoever works on them.
func TestPlaces(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+r.Host+"/secret", http.StatusFound)
	}))
	t.Cleanup(outside.Close)
	s := placesOf(t)
	s.file("jobs/any.yaml", anyScript)
	s.file("jobs/include.yaml", "include: [\"{file}\"]\nnodes: {}\n")
	s.file("jobs/shell.yaml", "notify: [{on: [done], command: [touch, \""+s.dir+"/ran\"]}]\n"+
		strings.NewReplacer("{from}", "../in/a.csv", "{to}", "../out/shell.csv").Replace(anyScript))
	s.file("in/a.csv", "id\n1\n2\n")
	s.file("other/secret.csv", "id\n424242\n")
	require.NoError(t, os.Symlink(filepath.Join(s.dir, "other", "secret.csv"), filepath.Join(s.dir, "in", "link.csv")))
	require.NoError(t, os.Symlink(filepath.Join(s.dir, "other"), filepath.Join(s.dir, "out", "link")))
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Operator},
		access.Grant{Workspace: "main", Role: access.Reader})
	stop := s.work(t.Context())
	defer stop()
	start := func(script string, params map[string]string) answer {
		return c.send("POST", ws+"/runs", map[string]any{"script": script, "params": params})
	}
	ended := func(got answer) runState {
		t.Helper()
		var began struct{ Run int64 }
		got.into(http.StatusCreated, &began)
		var run runState
		require.Eventually(t, func() bool {
			c.get(ws+"/runs/"+strconv.FormatInt(began.Run, 10)).into(http.StatusOK, &run)
			return run.Status == "complete" || run.Status == "failed"
		}, effort.Patience, 20*time.Millisecond)
		return run
	}
	run := ended(start("any.yaml", map[string]string{"from": "../in/a.csv", "to": "../out/b.csv"}))
	require.Equal(t, "complete", run.Status)
	written, err := os.ReadFile(filepath.Join(s.dir, "out", "b.csv"))
	require.NoError(t, err)
	require.Equal(t, "id\n1\n2\n", string(written))

	for name, pair := range map[string][2]string{
		"a file elsewhere":        {"../other/secret.csv", "../out/x.csv"},
		"an absolute one":         {filepath.Join(s.dir, "other", "secret.csv"), "../out/x.csv"},
		"by its URL":              {"file://" + filepath.Join(s.dir, "other", "secret.csv"), "../out/x.csv"},
		"steps up":                {"../in/../other/secret.csv", "../out/x.csv"},
		"a link":                  {"../in/link.csv", "../out/x.csv"},
		"the process's variables": {"/proc/self/environ", "../out/x.csv"},
		"the state":               {"../.thalweg/state.db", "../out/x.csv"},
		"a server":                {outside.URL + "/x.csv", "../out/x.csv"},
		"metadata":                {"http://169.254.169.254/latest/meta-data/x.csv", "../out/x.csv"},
		"a bucket":                {"s3://bucket/x.csv", "../out/x.csv"},
		"to another directory":    {"../in/a.csv", "../other/x.csv"},
		"to an input's directory": {"../in/a.csv", "../in/x.csv"},
		"to a link":               {"../in/a.csv", "../out/link/x.csv"},
		"to a script":             {"../in/a.csv", "any.yaml"},
		"to the state":            {"../in/a.csv", "../.thalweg/x.csv"},
		"to the configuration":    {"../in/a.csv", "../serve.yaml"},
		"to a server's user":      {"../in/a.csv", "sftp://me@host.example/x.csv"},
		"to a database":           {"../in/a.csv", "sqlite://../other/x.db#t"},
	} {
		params := map[string]string{"from": pair[0], "to": pair[1]}
		got := start("any.yaml", params)
		require.True(t, got.status == http.StatusForbidden || got.status == http.StatusUnprocessableEntity, "%s: %d %s", name,
			got.status, got.text)
		require.NotContains(t, got.text, "424242", name)
		got = c.send("POST", ws+"/runs", map[string]any{"script": "any.yaml", "params": params, "dry_run": true})
		require.NotContains(t, got.text, "424242", name)
	}
	got := start("any.yaml", map[string]string{"from": "../*/secret.csv", "to": "../out/x.csv"})
	if got.status == http.StatusCreated { // a pattern is judged by what it stands for
		run := ended(got)
		require.Equal(t, "failed", run.Status)
	}
	include := map[string]any{"script": "include.yaml", "params": map[string]any{"file": "../other/secret.csv"}}
	got = s.as("joe", access.Grant{Workspace: "main", Role: access.Operator},
		access.Grant{Workspace: "main", Role: access.Writer}).send("POST", ws+"/runs", include)
	require.Equal(t, http.StatusForbidden, got.status, got.text)
	got = c.send("POST", ws+"/runs", include)
	require.Contains(t, got.text, "stands in code here")
	start("shell.yaml", map[string]string{}).problem(http.StatusForbidden)
	require.NoFileExists(t, filepath.Join(s.dir, "out", "x.csv"))
	require.NoFileExists(t, filepath.Join(s.dir, "ran"))
}

// A link that is swapped once the run was begun leads nowhere.
func TestPlacesOfALinkThatIsSwapped(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := placesOf(t)
	s.file("jobs/any.yaml", anyScript)
	s.file("in/sub/a.csv", "id\n1\n")
	s.file("other/a.csv", "id\n424242\n")
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Operator})
	var ids []string
	for _, params := range []map[string]string{{"from": "../in/sub/a.csv", "to": "../out/x.csv"},
		{"from": "../in/sub/*.csv", "to": "../out/y.csv"}, {"from": "../other2/a.csv", "to": "../out/z.csv"}} {
		var began struct{ Run int64 }
		got := c.send("POST", ws+"/runs", map[string]any{"script": "any.yaml", "params": params})
		if got.status == http.StatusCreated {
			got.into(http.StatusCreated, &began)
			ids = append(ids, strconv.FormatInt(began.Run, 10))
		}
	}
	require.Len(t, ids, 2)
	require.NoError(t, os.RemoveAll(filepath.Join(s.dir, "in", "sub")))
	require.NoError(t, os.Symlink(filepath.Join(s.dir, "other"), filepath.Join(s.dir, "in", "sub")))
	stop := s.work(t.Context())
	defer stop()
	for _, id := range ids {
		var run runState
		require.Eventually(t, func() bool {
			c.get(ws+"/runs/"+id).into(http.StatusOK, &run)
			return run.Status == "failed" || run.Status == "complete"
		}, effort.Patience, 20*time.Millisecond)
		require.Equal(t, "failed", run.Status)
	}
	for _, name := range []string{"x.csv", "y.csv", "z.csv"} {
		require.NoFileExists(t, filepath.Join(s.dir, "out", name))
	}
}

// runState is what these tests look at of a run.
type runState struct{ Status string }

// Whoever resumes a run beside the state, with its script, is held to what it may open.
func TestPlacesOfARunThatIsResumedWithItsScript(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := placesOf(t)
	s.file("jobs/any.yaml", anyScript)
	s.file("in/sub/a.csv", "id\n1\n")
	s.file("other/a.csv", "id\n424242\n")
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Operator})
	params := map[string]string{"from": "../in/sub/a.csv", "to": "../out/x.csv"}
	var began struct{ Run int64 }
	c.send("POST", ws+"/runs", map[string]any{"script": "any.yaml", "params": params}).into(http.StatusCreated, &began)
	require.NoError(t, os.RemoveAll(filepath.Join(s.dir, "in", "sub")))
	require.NoError(t, os.Symlink(filepath.Join(s.dir, "other"), filepath.Join(s.dir, "in", "sub")))
	sum, err := s.app.Run(t.Context(), app.ProcessCaller(), app.RunOptions{Workspace: app.DefaultWorkspace, Resume: true,
		ResumeRun: began.Run, ScriptPath: filepath.Join(s.dir, "jobs", "any.yaml"), Params: params,
		Dir: filepath.Join(s.dir, "jobs")})
	require.NoError(t, err)
	require.Equal(t, view.FailedRun, sum.Status)
	require.Contains(t, sum.Failure.Message, "may not be read")
	require.NoFileExists(t, filepath.Join(s.dir, "out", "x.csv"))
}

// A database that a link to nothing would make elsewhere is refused, and whether there is something elsewhere is not
// told of an output.
func TestPlacesOfLinksToNothing(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := serveAs(t, "workspaces:\n  main:\n    scripts: jobs\n    places:\n      read: [in]\n      write: [out]\n"+
		"      databases: [\"sqlite://out/x.db\"]\n"+generous, "jobs", "in", "out", "other/dir")
	s.file("in/a.csv", "id\n1\n")
	require.NoError(t, os.Symlink(filepath.Join(s.dir, "other", "new.db"), filepath.Join(s.dir, "out", "x.db")))
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Writer})
	text := strings.NewReplacer("{from}", "../in/a.csv", "\"{to}\"", "{url_template: \"sqlite://../out/x.db\", table: ids, mode: append}").
		Replace(anyScript)
	p := c.send("POST", ws+"/runs", map[string]any{"text": text}).problem(http.StatusForbidden)
	require.Contains(t, p.Detail, "may not be")
	text = strings.NewReplacer("{from}", "../in/a.csv", "{to}", "../other/dir").Replace(anyScript)
	got := c.send("POST", ws+"/validations", map[string]any{"text": text})
	require.Equal(t, http.StatusOK, got.status)
	require.NotContains(t, got.text, "is a directory")
}
