package api_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app"
	"thalweg/internal/app/access"
	"thalweg/internal/app/view"
	"thalweg/internal/base/keeper"
	"thalweg/internal/test/effort"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == app.PeekCommand { // a child of the servers of these tests
		err := app.ServePeek(func(json.RawMessage, *slog.Logger) (*app.Remote, error) {
			return app.NewRemote(app.RemoteConfig{}), nil
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if keeper.Called(os.Args) {
		os.Exit(keeper.Main(os.Args, keeper.Cgroups()))
	}
	os.Exit(m.Run())
}

// Rows, profiles, queries and downloads are of the run's table, and the log says who had them.
func TestData(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.file("in.csv", "id,name\n9007199254740993,=1+1\n2,\n3,<script>\n")
	s.run()
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Reader})
	table := ws + "/runs/1/tables/ids"
	var page view.Page
	c.get(table+"/rows").into(http.StatusOK, &page)
	require.Len(t, page.Rows, 3)
	require.Equal(t, "9007199254740993", *page.Rows[0][0], "all digits reach JavaScript")
	c.get(table+"/rows?from=1&limit=1&columns=id").into(http.StatusOK, &page)
	require.Len(t, page.Rows, 1)
	require.Equal(t, "2", *page.Rows[0][0])
	require.EqualValues(t, 2, *page.Next)
	c.get(table+"/rows?sort=-id&where=id%20%3C%205").into(http.StatusOK, &page)
	require.Equal(t, []string{"3", "2"}, []string{*page.Rows[0][0], *page.Rows[1][0]})
	c.get(table+"/rows?columns=name&columns=id&sort=name&sort=-id").into(http.StatusOK, &page)
	require.Len(t, page.Rows[0], 2, "lists have a parameter for each of them: names may have commas")
	require.Equal(t, []string{"<script>", "=1+1"}, []string{*page.Rows[1][0], *page.Rows[2][0]})

	var profile view.Profile
	c.get(table+"/profile").into(http.StatusOK, &profile)
	require.EqualValues(t, 3, profile.Rows)
	require.Contains(t, c.get(table+"/columns/id/distribution").text, `"distinct":3`)

	c.send("POST", ws+"/queries", map[string]any{"sql": "SELECT count(*) AS n FROM ids"}).into(http.StatusOK, &page)
	require.Equal(t, "3", *page.Rows[0][0])
	for _, sql := range []string{"SELECT * FROM read_csv('/etc/passwd')", "COPY ids TO '/tmp/x.csv'", "SELECT 1; SELECT 2",
		"ATTACH '/tmp/x.db'", "SELECT * FROM nothing"} {
		p := c.send("POST", ws+"/queries", map[string]any{"sql": sql}).problem(http.StatusUnprocessableEntity)
		require.NotContains(t, p.Detail, "root:", sql)
	}

	got := c.get(table + "/download")
	require.Equal(t, http.StatusOK, got.status)
	require.Equal(t, "attachment; filename=\"run1-table.csv\"", got.header.Get("Content-Disposition"))
	require.Contains(t, got.text, "9007199254740993,=1+1")
	require.Contains(t, c.get(table+"/download?spreadsheet=true").text, "'=1+1")
	for format, begins := range map[string]string{"ndjson": `{"id":`, "parquet": "PAR1", "xlsx": "PK"} {
		got := c.get(table + "/download?format=" + format)
		require.True(t, strings.HasPrefix(got.text, begins), format)
	}
	c.get(ws + "/runs/1/tables/none/download").problem(http.StatusNotFound)

	var log []access.Entry
	s.as("root", access.Grant{Workspace: "*", Role: access.Manager}).get("/v1/access-log?limit=1000").
		into(http.StatusOK, &log)
	kinds := map[access.EntryKind]int{}
	for _, e := range log {
		if e.Actor == "ann" {
			kinds[e.Kind]++
		}
	}
	require.Equal(t, 5, kinds[access.RowsTaken], "each download")
	require.Greater(t, kinds[access.RowsSeen], 5)
}

// Long work is a job of whoever has asked for it, and of nobody else.
func TestJobs(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.run()
	s.file("in.csv", "id,name\n1,ann\n3,eve\n")
	s.run()
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Reader})
	wait := func(got answer, into any) {
		t.Helper()
		require.Equal(t, http.StatusAccepted, got.status, got.text)
		at := got.header.Get("Location")
		require.Equal(t, http.StatusNotFound,
			s.as("eve", access.Grant{Workspace: "*", Role: access.Manager}).get(at).status, "it is not hers")
		var job struct {
			Status  string
			Result  json.RawMessage
			Problem json.RawMessage
		}
		for job.Status == "" || job.Status == "waiting" || job.Status == "running" {
			c.get(at).into(http.StatusOK, &job)
		}
		require.Equal(t, "done", job.Status, string(job.Problem))
		require.NoError(t, json.Unmarshal(job.Result, into))
	}
	var diff view.Diff
	wait(c.send("POST", ws+"/diffs", map[string]any{"table": "ids", "run_a": 1, "run_b": 2, "key": []string{"id"}}), &diff)
	require.EqualValues(t, 1, diff.Removed)
	require.EqualValues(t, 1, diff.Added)
	var tree view.Tree
	wait(c.send("POST", ws+"/traces", map[string]any{"run": "2", "table": "ids", "where": "id = 3"}), &tree)
	require.EqualValues(t, 1, tree.Matches)
	wait(c.send("POST", ws+"/traces", map[string]any{"table": "ids", "limit": 1}), &tree)
	require.EqualValues(t, 2, tree.Matches)
	require.Len(t, tree.Roots, 1)

	var page view.Page
	wait(c.send("POST", ws+"/query-jobs", map[string]any{"sql": "SELECT count(*) AS n FROM run2.ids"}), &page)
	require.Equal(t, "2", *page.Rows[0][0])
	var made struct{ Name, File string }
	wait(c.send("POST", ws+"/download-jobs", map[string]any{"sql": "FROM run2.ids ORDER BY id"}), &made)
	file := c.get(made.File)
	require.Equal(t, "id,name\n1,ann\n3,eve\n", strings.ReplaceAll(file.text, "\r", ""))
	require.Contains(t, file.header.Get("Content-Disposition"), made.Name)
	s.as("eve", access.Grant{Workspace: "*", Role: access.Manager}).get(made.File).problem(http.StatusNotFound)
	long := c.send("POST", ws+"/query-jobs", map[string]any{"sql": "SELECT count(*) FROM range(1000000000000)"})
	at := long.header.Get("Location")
	require.Eventually(t, func() bool {
		return strings.Contains(c.get(at).text, `"progress":{"phase":"at work on the query"}`)
	}, effort.Patience, time.Millisecond)
	c.send("DELETE", at, nil)
	require.Eventually(t, func() bool { return strings.Contains(c.get(at).text, `"canceled"`) }, effort.Patience,
		time.Millisecond)

	begun := c.send("POST", ws+"/download-jobs", map[string]any{"sql": "FROM run2.ids"}).header.Get("Location")
	none := []access.Grant{}
	_, err := s.users.PutUser(t.Context(), access.Principal{}, "ann", access.UserChange{Grants: &none})
	require.NoError(t, err)
	c.get(begun).problem(http.StatusNotFound) // who may not read any more has no results of reading, either
	c.get(begun + "/file").problem(http.StatusNotFound)
	_, err = s.users.PutUser(t.Context(), access.Principal{}, "ann",
		access.UserChange{Grants: &[]access.Grant{{Workspace: "main", Role: access.Reader}}})
	require.NoError(t, err)

	var sql view.BatchSQL
	wait(c.send("POST", ws+"/runs/2/nodes/load/batches/0/plans", nil), &sql)
	require.Contains(t, sql.SQL, "id")
	require.NotContains(t, strings.Join(append(sql.Setup, sql.SQL), " "), s.dir+"/.thalweg", "no directory of ours")
	require.NotEmpty(t, sql.Plan)
	require.Zero(t, sql.Plan[0].Depth)
	require.Contains(t, fmt.Sprint(sql.Plan), "READ_CSV")
	var lineage view.NodeLineage
	c.get(ws+"/runs/2/nodes/load/lineage").into(http.StatusOK, &lineage)
	require.Equal(t, "id", lineage.Columns[0].Column)
	require.Contains(t, lineage.Columns[0].From[0].From.Of, "in.csv")
	c.get(ws + "/runs/2/nodes/none/lineage").problem(http.StatusNotFound)
	got := c.get(ws + "/runs/2/nodes/load/attempts?limit=1")
	var tries []view.ListedTry
	got.into(http.StatusOK, &tries)
	require.Len(t, tries, 1)
	require.EqualValues(t, 2, tries[0].RowsOut)
	require.Equal(t, view.Succeeded, tries[0].Status)
}

// An answer may take longer than a request's body.
func TestSlowAnswer(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.file("in.csv", "id,name\n1,a\n")
	s.run()
	s.api.SetBodyTimeout(50 * time.Millisecond)
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Reader})
	var page view.Page
	c.send("POST", ws+"/queries", map[string]any{"sql": "SELECT sum(range % 7) > 0 AS more FROM range(60000000)"}).
		into(http.StatusOK, &page)
	require.Equal(t, "true", *page.Rows[0][0])
}
