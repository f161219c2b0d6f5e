package api_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/access"
	"thalweg/internal/app/view"
)

// All rows of a query come as a file. A query that is refused is a problem, and the log says who took rows.
func TestDownloadsOfQueries(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.run()
	s.file("in.csv", "id,name\n1,ann\n")
	s.run()
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Reader})
	ask := func(b body) answer { return c.send("POST", ws+"/downloads", b) }
	got := ask(body{"sql": "SELECT range AS n, '=1+1' AS t FROM range(2000)", "spreadsheet": true})
	require.Equal(t, http.StatusOK, got.status, got.text)
	require.Equal(t, "text/csv; charset=utf-8", got.header.Get("Content-Type"))
	require.Equal(t, `attachment; filename="query.csv"`, got.header.Get("Content-Disposition"))
	require.Contains(t, got.text, "\n1999,'=1+1\n")
	got = ask(body{"sql": "FROM range(2000)", "format": "ndjson", "limit": 1})
	require.Equal(t, "{\"range\":0}\n", got.text)
	got = ask(body{"sql": "SELECT 1 AS n WHERE n > 1", "format": "ndjson"})
	require.Equal(t, http.StatusOK, got.status, got.text)
	require.Equal(t, "application/x-ndjson", got.header.Get("Content-Type"))
	require.Contains(t, ask(body{"sql": "FROM ids", "format": "parquet"}).text, "PAR1")
	for _, sql := range []string{"FROM idz", "SELECT error('x')", "FROM ids; DROP TABLE ids", "FROM read_csv('/etc/passwd')",
		"COPY ids TO '/tmp/x'"} {
		for _, format := range []string{"csv", "xlsx", "parquet"} {
			ask(body{"sql": sql, "format": format}).problem(http.StatusUnprocessableEntity)
		}
	}
	ask(body{"sql": "FROM ids", "format": "arrow"}).problem(http.StatusUnprocessableEntity)
	s.as("vic", access.Grant{Workspace: "main", Role: access.Viewer}).send("POST", ws+"/downloads", body{"sql": "FROM ids"}).
		problem(http.StatusForbidden)
	root := s.as("root", access.Grant{Workspace: "*", Role: access.Manager})
	root.send("POST", ws+"/runs/1/orders", body{"kind": "invalidate", "reason": "wrong"})
	got = ask(body{"sql": "FROM run1.ids"})
	require.Equal(t, http.StatusOK, got.status, got.text)
	warning, err := url.PathUnescape(got.header.Get("Thalweg-Warning"))
	require.NoError(t, err)
	require.Contains(t, warning, "ids")
	var log []access.Entry
	root.get("/v1/access-log?limit=1000").into(http.StatusOK, &log)
	require.Contains(t, func() (about []string) {
		for _, e := range log {
			about = append(about, string(e.Kind)+" "+e.What)
		}
		return about
	}(), string(access.RowsTaken)+" FROM run1.ids")
}

// A look at the server's machine is for admins of all workspaces, and takes its time as a job.
func TestDiagnosis(t *testing.T) {
	t.Parallel()
	s := serve(t)
	root := s.as("root", access.Grant{Workspace: "*", Role: access.Manager})
	j := root.jobOf(root.send("POST", "/v1/diagnoses", nil))
	require.Nil(t, j.Problem)
	found, is := j.Result.(map[string]any)
	require.True(t, is)
	require.NotEmpty(t, found["checks"])
	s.as("ann", access.Grant{Workspace: "*", Role: access.Viewer}).send("POST", "/v1/diagnoses", nil).
		problem(http.StatusForbidden)
	s.as("vic", access.Grant{Workspace: "*", Role: access.Manager}).get("/v1/fleet").problem(http.StatusNotFound)
}

// What a run would take over is said to who may start it, if they ask.
func TestExplanationOfReuse(t *testing.T) {
	t.Parallel()
	s, author, operator := authorOf(t)
	t.Cleanup(s.work(t.Context()))
	require.Equal(t, "complete", operator.statusOf(operator.send("POST", ws+"/runs", body{"script": "ids.yaml"})))
	reused := func(c *client, b body) bool {
		var of view.Explained
		c.send("POST", ws+"/explanations", b).into(http.StatusOK, &of)
		return of.Nodes[0].ReusedFrom != nil
	}
	require.True(t, reused(author, body{"script": "ids.yaml", "reuse": true}))
	require.True(t, reused(operator, body{"script": "ids.yaml", "reuse": true}))
	require.False(t, reused(operator, body{"script": "ids.yaml"}))
	require.False(t, reused(s.as("vic", access.Grant{Workspace: "main", Role: access.Viewer}),
		body{"script": "ids.yaml", "reuse": true}))
}
