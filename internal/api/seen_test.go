package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/access"
	"thalweg/internal/test/effort"
)

// seen lists what the log says that somebody has seen or taken, the latest first.
func (s *served) seen(name string) (what []string) {
	s.t.Helper()
	log, err := s.users.Entries(s.t.Context(), "", 1_000)
	require.NoError(s.t, err)
	for _, e := range log {
		if e.Actor == name && (e.Kind == access.RowsSeen || e.Kind == access.RowsTaken) {
			require.Equal(s.t, "main", e.Workspace)
			what = append(what, e.What)
		}
	}
	return what
}

// What nobody has seen is not in the log as seen.
func TestNothingSeen(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.run()
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Operator})
	c.send("POST", ws+"/queries", map[string]any{"sql": "SELECT * FROM nothing"}).problem(http.StatusUnprocessableEntity)
	c.send("POST", ws+"/downloads", map[string]any{"sql": "SELECT 1; SELECT 2"}).problem(http.StatusUnprocessableEntity)
	for _, path := range []string{"none/rows", "none/profile", "none/columns/x/distribution", "none/download",
		"ids/columns/none/distribution"} {
		c.get(ws + "/runs/1/tables/" + path).problem(http.StatusNotFound)
	}
	c.get(ws + "/runs/1/tables/ids/rows?where=nothing").problem(http.StatusUnprocessableEntity)
	c.get(ws + "/runs/1/gates/none/since").problem(http.StatusNotFound)
	for path, body := range map[string]map[string]any{"/diffs": {"table": "none", "run_a": 1, "run_b": 1},
		"/traces": {"table": "none"}, "/checks": {"script": "none.yaml"}} {
		if got := c.send("POST", ws+path, body); got.status == http.StatusAccepted {
			require.EqualValues(t, "failed", c.jobOf(got).Status, path)
		}
	}
	require.Empty(t, s.seen("ann"))
	viewer := s.as("eve", access.Grant{Workspace: "main", Role: access.Viewer})
	viewer.get(ws + "/runs/1/tables/ids/rows").problem(http.StatusForbidden)
	require.Empty(t, s.seen("eve"))
	log, err := s.users.Entries(t.Context(), "", 1)
	require.NoError(t, err)
	require.Equal(t, access.Refused, log[0].Kind)
	require.Equal(t, http.StatusOK, c.get(ws+"/runs/1/tables/ids/rows").status)
	require.Equal(t, []string{"table ids of run 1"}, s.seen("ann"))
}

// Who is shown values of failures is in the log once a request, and once a minute for a topic of streams. Where there
// are none, or they are left out, nobody is.
func TestFailuresSeen(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Reader})
	viewer := s.as("eve", access.Grant{Workspace: "main", Role: access.Viewer})
	s.run()
	s.file("in.csv", "id,name\nsecretvalue,ann\nothervalue,eve\n")
	s.run()
	ctx, leave := context.WithTimeout(t.Context(), effort.Patience)
	defer leave()
	paths := []string{"/runs/2", "/runs/2/events", "/runs/2/why", "/runs", "/needs", "/runs/2/summary"}
	for _, path := range append(paths, "/runs/1", "/runs/1/events", "/runs/1/why", "/runs/2/nodes") {
		require.Equal(t, http.StatusOK, c.get(ws+path).status, path)
		require.Equal(t, http.StatusOK, viewer.get(ws+path).status, path)
	}
	require.Equal(t, []string{"failures of run 2: summary", "failures of runs: needs", "failures of runs: list-runs",
		"failures of run 2: why", "failures of run 2: list-events", "failures of run 2: show-run"}, s.seen("ann"))
	c.header.Set("If-None-Match", "*")
	require.Equal(t, http.StatusNotModified, c.get(ws+"/runs/2").status)
	c.header.Del("If-None-Match")
	require.Len(t, s.seen("ann"), len(paths))
	for range 2 {
		for _, who := range []*client{c, viewer} {
			next := who.listen(ctx, "topics=main/2&topics=main/1", "")
			for {
				e, ok := next()
				require.True(t, ok)
				if strings.Contains(e.data, `"failure":`) && strings.Contains(e.id, "main/2:") {
					break
				}
			}
		}
	}
	require.Eventually(t, func() bool { return len(s.seen("ann")) > len(paths) }, effort.Patience, time.Millisecond)
	require.Len(t, s.seen("ann"), len(paths)+1)
	require.Equal(t, "failures of run 2: stream", s.seen("ann")[0])
	require.Empty(t, s.seen("eve"))
}
