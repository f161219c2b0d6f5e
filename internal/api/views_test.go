package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app"
	"thalweg/internal/app/access"
	"thalweg/internal/app/view"
	"thalweg/internal/test/effort"
)

// A list of runs is of those that are asked for, page by page.
func TestSelectRuns(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := serve(t)
	begun := time.Now()
	for _, text := range []string{"Prices of May", "", "prices of June", "orders"} {
		_, err := s.app.Run(t.Context(), app.ProcessCaller(), app.RunOptions{Workspace: app.DefaultWorkspace,
			ScriptPath: s.dir + "/script.yaml", Description: text})
		require.NoError(t, err)
	}
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Viewer})
	when := func(at time.Time) string { return url.QueryEscape(at.Format(time.RFC3339Nano)) }
	for query, want := range map[string][]int64{
		"text=PRICES": {3, 1}, "status=complete&text=of": {3, 1}, "status=failed": nil, "script=script.y": {4, 3, 2, 1},
		"text=%25": nil, "since=" + when(begun.Add(-time.Minute)): {4, 3, 2, 1}, "since=" + when(begun.Add(time.Hour)): nil,
		"until=" + when(begun.Add(-time.Minute)): nil, "until=" + when(begun.Add(time.Hour)) + "&text=orders": {4}} {
		var got []int64
		for cursor := ""; ; {
			var page struct {
				Runs []view.ListedRun
				Next string
			}
			c.get(ws+"/runs?limit=1&"+query+cursor).into(http.StatusOK, &page)
			for _, r := range page.Runs {
				got = append(got, r.Run)
			}
			if page.Next == "" {
				break
			}
			cursor = "&cursor=" + page.Next
		}
		require.Equal(t, want, got, query)
	}
	for _, query := range []string{"since=yesterday", "until=0", "text=" + strings.Repeat("x", 300)} {
		c.get(ws + "/runs?" + query).problem(http.StatusUnprocessableEntity)
	}
}

// Who has seen a run as it is gets no second copy of it. Who may see less has another one.
func TestRunAsItWas(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := serve(t)
	s.run()
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Operator})
	viewer := s.as("eve", access.Grant{Workspace: "main", Role: access.Viewer})
	tag := c.get(ws + "/runs/1").header.Get("ETag")
	c.header.Set("If-None-Match", tag)
	got := c.get(ws + "/runs/1")
	require.Equal(t, http.StatusNotModified, got.status)
	require.Empty(t, got.text)
	require.Equal(t, tag, got.header.Get("ETag"))
	viewer.header.Set("If-None-Match", tag)
	require.Equal(t, http.StatusOK, viewer.get(ws+"/runs/1").status)
	for list, status := range map[string]int{"W/" + tag: 304, `"x, y", ` + tag: 304, "*": 304, `W/"a" ,W/` + tag: 304,
		`"x"`: 200, `W/"x"`: 200, strings.Trim(tag, `"`): 200, `"x` + tag: 200} {
		c.header.Set("If-None-Match", list)
		require.Equal(t, status, c.get(ws+"/runs/1").status, list)
	}
	c.header["If-None-Match"] = []string{`"x"`, tag}
	require.Equal(t, http.StatusNotModified, c.get(ws+"/runs/1").status, "of several headers")
	c.header.Del("If-None-Match")
	preview := map[string]any{"kind": "invalidate", "dry_run": true}
	for list, status := range map[string]int{"*": 200, `"9", ` + tag: 200, "W/" + tag: 409, `"9", W/"0"`: 409, "0": 409} {
		c.header.Set("If-Match", list)
		require.Equal(t, status, c.send("POST", ws+"/runs/1/orders", preview).status, list)
	}
	c.header.Set("If-Match", tag)
	order := map[string]any{"kind": "invalidate", "reason": "wrong"}
	require.Equal(t, http.StatusOK, c.send("POST", ws+"/runs/1/orders", order).status, "it is as it was seen")
	c.send("POST", ws+"/runs/1/orders", order).problem(http.StatusConflict)
	got = c.get(ws + "/runs/1")
	require.Equal(t, http.StatusOK, got.status)
	require.NotEqual(t, tag, got.header.Get("ETag"))
}

// A node's batches come page by page, of a status, and as a timeline.
func TestBatches(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := serve(t)
	s.file("script.yaml", `
nodes:
  load:
    type: file_table
    r: {urls: [a.csv, b.csv, c.csv], types: {id: int}}
    w: ids
`)
	for _, name := range []string{"a.csv", "c.csv", "b.csv"} {
		s.file(name, "id\n1\n")
	}
	s.run()
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Viewer})
	at := ws + "/runs/1/nodes/load"
	var all, page []view.Batch
	c.get(at+"/batches").into(http.StatusOK, &all)
	require.NotEmpty(t, all)
	var got []view.Batch
	for cursor := ""; ; {
		answer := c.get(at + "/batches?limit=1" + cursor)
		answer.into(http.StatusOK, &page)
		require.Len(t, page, 1)
		got = append(got, page...)
		next := answer.header.Get("Next-Cursor")
		if next == "" {
			break
		}
		cursor = "&cursor=" + next
	}
	require.Equal(t, all, got)
	c.get(at+"/batches?status=succeeded&limit=1000").into(http.StatusOK, &page)
	require.Equal(t, all, page)
	c.get(at+"/batches?status=failed").into(http.StatusOK, &page)
	require.Empty(t, page)
	var line view.Timeline
	c.get(at+"/timeline").into(http.StatusOK, &line)
	require.Equal(t, len(all), line.Summary.Statuses[view.Succeeded])
	require.Len(t, line.Batches.End, len(all))
	require.Positive(t, line.Summary.MeanMS)
	for _, path := range []string{"/batches?status=odd", "/batches?limit=0", "/batches?cursor=-1", "/batches?cursor=9999999999",
		"/timeline?from=-1", "/timeline?to=99999999999", "/timeline?from=1e3"} {
		c.get(at + path).problem(http.StatusUnprocessableEntity)
	}
	c.get(ws + "/runs/1/nodes/laod/timeline").problem(http.StatusNotFound)
	c.get(ws + "/runs/1/nodes/laod/batches?limit=2").problem(http.StatusNotFound)
}

// A matrix has the nodes of all runs of a page, with descriptions of the latest scripts.
func TestMatrixOfRuns(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := serve(t)
	s.run()
	s.file("script.yaml", strings.Replace(script, "  load:\n", "  load:\n    desc: Reads <b>ids</b>\n", 1))
	s.file("in.csv", "id,name\nx,ann\n")
	s.run()
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Viewer})
	var m view.RunMatrix
	c.get(ws+"/matrix").into(http.StatusOK, &m)
	require.Equal(t, []view.MatrixNode{{Node: "load", Type: "file_table", Description: "Reads <b>ids</b>"},
		{Node: "write", Type: "table_file"}}, m.Nodes)
	require.Len(t, m.Runs, 2)
	require.Equal(t, "failed", m.Runs[0].Status)
	require.NotNil(t, m.Runs[0].Failure)
	require.NotContains(t, m.Runs[0].Failure.Place.Value, "x", "a viewer sees no values")
	require.Equal(t, view.FailedRun, m.Runs[0].Cells[0].Status)
	cell := m.Runs[1].Cells[1]
	require.Equal(t, view.Succeeded, cell.Status)
	require.Equal(t, 1, cell.Node)
	require.NotNil(t, cell.Started)
	c.get(ws+"/matrix?limit=1").into(http.StatusOK, &m)
	require.Equal(t, "2", m.Next)
	m = view.RunMatrix{}
	c.get(ws+"/matrix?limit=1&cursor=2").into(http.StatusOK, &m)
	require.Len(t, m.Runs, 1)
	require.EqualValues(t, 1, m.Runs[0].Run.Run)
	require.Empty(t, m.Next)
	m = view.RunMatrix{}
	c.get(ws+"/matrix?status=stopped").into(http.StatusOK, &m)
	require.Empty(t, m.Runs)
	for _, query := range []string{"limit=101", "limit=-1", "cursor=x", "since=x"} {
		c.get(ws + "/matrix?" + query).problem(http.StatusUnprocessableEntity)
	}
}

// A graph has the boxes of the picture in their places, apart from each other, with what became of the nodes.
func TestGraphOfARun(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := serve(t)
	s.run()
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Viewer})
	var first, again view.Graph
	c.get(ws+"/runs/1/graph").into(http.StatusOK, &first)
	require.Equal(t, "script.yaml", first.Title)
	require.Equal(t, []string{"load"}, first.Roots)
	require.Len(t, first.Vertices, 4)
	for i, v := range first.Vertices {
		require.Equal(t, 1, v.Root, v.ID)
		require.LessOrEqual(t, v.X+v.Width, first.Width)
		require.LessOrEqual(t, v.Y+v.Height, first.Height)
		if v.Kind == "step" {
			require.Equal(t, view.Succeeded, v.Status)
			require.Equal(t, v.Title, v.Node)
		}
		for _, o := range first.Vertices[:i] {
			require.True(t, v.X >= o.X+o.Width || o.X >= v.X+v.Width || v.Y >= o.Y+o.Height || o.Y >= v.Y+v.Height)
		}
	}
	for _, e := range first.Edges {
		from, to := first.Vertices[e.From], first.Vertices[e.To]
		require.Equal(t, "rows", e.Kind)
		require.InDelta(t, from.Y+from.Height, e.Points[0][1], 0.01)
		require.InDelta(t, to.Y, e.Points[len(e.Points)-1][1], 0.01)
	}
	s.run()
	c.get(ws+"/runs/2/graph").into(http.StatusOK, &again)
	require.Equal(t, first, again, "the same script")
	require.Contains(t, c.get(ws+"/runs/1/graph?fields=true").text, "name string")
	require.Contains(t, c.get(ws+"/runs/1/graph.svg?color=root").text, `class="step root1"`)
	require.Contains(t, c.get(ws+"/runs/1/graph.svg").text, `class="step done"`)
	plain := c.get(ws + "/runs/1/graph.svg?color=none").text
	require.Contains(t, plain, `class="step"`)
	require.NotContains(t, plain, "rows in")
	c.get(ws + "/runs/1/graph.svg?color=red").problem(http.StatusUnprocessableEntity)
}

// Bad rows, and rows that failed a check, are shown to who may read, and to nobody else.
func TestSideRows(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := serve(t)
	s.file("script.yaml", strings.Replace(script, "  load:\n", "  load:\n    bad_rows: {action: quarantine, max_rows: 9, max_percent: 90}\n"+
		"    checks: [{name: small, range: {field: id, max: 3}, severity: warn}]\n", 1))
	s.file("in.csv", "id,name\n1,ann\nx,ben\n2,eve\ny,kim\n7,zoe\n")
	s.run()
	s.file("in.csv", "id,name\n1,ann\n")
	s.run()
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Reader})
	at := ws + "/runs/1/nodes/load"
	var page view.Page
	column := func(name string) (out []string) {
		t.Helper()
		for i, head := range page.Columns {
			if head.Name == name {
				for _, row := range page.Rows {
					out = append(out, *row[i])
				}
			}
		}
		return out
	}
	c.get(at+"/bad-rows").into(http.StatusOK, &page)
	require.Equal(t, []string{"x", "y"}, column("value"))
	require.Equal(t, []string{"x,ben", "y,kim"}, column("raw"))
	require.EqualValues(t, 2, *page.Total)
	c.get(at+"/bad-rows?from=1&limit=1&columns=line").into(http.StatusOK, &page)
	require.Equal(t, []string{"5"}, column("line"))
	c.get(at+"/bad-rows?where=line%20%3C%204").into(http.StatusOK, &page)
	require.Len(t, page.Rows, 1)
	page = view.Page{}
	c.get(at+"/failed-rows").into(http.StatusOK, &page)
	require.Equal(t, []string{"7"}, column("id"))
	for _, path := range []string{"/runs/2/nodes/load/bad-rows", "/runs/2/nodes/load/failed-rows",
		"/runs/1/nodes/write/bad-rows"} {
		page = view.Page{}
		c.get(ws+path).into(http.StatusOK, &page)
		require.Empty(t, page.Rows, path)
		require.NotNil(t, page.Total, path)
	}
	c.get(ws + "/runs/1/nodes/laod/bad-rows").problem(http.StatusNotFound)
	for _, query := range []string{"where=1)%3B%20SELECT%20(1", "where=(SELECT%20count(*)%20FROM%20read_csv('%2Fetc%2Fpasswd'))>0",
		"limit=0", "from=-1", "sort=nothing"} {
		got := c.get(at + "/bad-rows?" + query)
		require.Contains(t, []int{http.StatusUnprocessableEntity, http.StatusNotFound}, got.status, got.text)
	}
	viewer := s.as("eve", access.Grant{Workspace: "main", Role: access.Viewer})
	viewer.get(at + "/bad-rows").problem(http.StatusForbidden)
	viewer.get(at + "/failed-rows").problem(http.StatusForbidden)
	var log []access.Entry
	s.as("root", access.Grant{Workspace: "*", Role: access.Manager}).get("/v1/access-log?limit=1000").
		into(http.StatusOK, &log)
	require.Contains(t, func() (about []string) {
		for _, e := range log {
			about = append(about, e.What)
		}
		return about
	}(), "table ids__bad of run 1")
}

// Columns have names and types, and say what they are made of, as the command line does.
func TestColumns(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := serve(t)
	s.run()
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Reader})
	at := ws + "/runs/1/tables/ids/columns"
	var columns view.TableColumns
	viewer := s.as("eve", access.Grant{Workspace: "main", Role: access.Viewer})
	viewer.get(at).into(http.StatusOK, &columns)
	require.Equal(t, view.TableColumns{Table: "ids", Run: 1, Node: "load",
		Columns: []view.TableColumn{{Name: "id", Type: "int", Nullable: true}, {Name: "name", Type: "string"}}}, columns)
	script, _, err := s.app.Data.ScriptOf(t.Context(), view.RunKey{Workspace: "main", Run: 1})
	require.NoError(t, err)
	of, err := app.LineageOf(script, "ids.id")
	require.NoError(t, err)
	want, err := view.JSON(of)
	require.NoError(t, err)
	got := c.get(at + "/id/lineage")
	require.Equal(t, string(want)+"\n", got.text, "the bytes of --json")
	require.Contains(t, got.text, `"of":"in.csv"`)
	viewer.get(at + "/id/lineage").problem(http.StatusForbidden)
	c.get(at + "/idd/lineage").problem(http.StatusNotFound)
	c.get(ws + "/runs/1/tables/odd/columns").problem(http.StatusNotFound)
	c.get(ws + "/runs/1/tables/" + strings.Repeat("x", 300) + "/columns").problem(http.StatusUnprocessableEntity)
}

// Metrics are for those who may see all workspaces, in the format of Prometheus.
func TestMetrics(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := serve(t)
	c := s.as("prometheus", access.Grant{Workspace: "*", Role: access.Viewer})
	got := c.get("/metrics")
	require.Equal(t, http.StatusOK, got.status, got.text)
	require.Contains(t, got.header.Get("Content-Type"), "text/plain")
	require.Contains(t, got.text, "# TYPE thalweg_")
	require.Contains(t, got.text, `version="v1"`)
	s.as("ann", access.Grant{Workspace: "main", Role: access.Manager}).get("/metrics").problem(http.StatusForbidden)
	s.nobody().get("/metrics").problem(http.StatusUnauthorized)
	require.Contains(t, c.get("/v1/version").text, `"version":"v1"`)
	s.nobody().get("/v1/version").problem(http.StatusUnauthorized)
}
