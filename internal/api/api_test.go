package api_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/api"
	"thalweg/internal/app"
	"thalweg/internal/app/access"
	"thalweg/internal/app/view"
)

const ws = "/v1/workspaces/main"

// served is an API over a state directory with runs.
type served struct {
	t     *testing.T
	dir   string
	app   *app.App
	users *app.Users
	api   *api.Server
	url   string
	start string
}

const script = `
nodes:
  load:
    type: file_table
    r: {urls: [in.csv], types: {id: int, name: string}}
    w: ids
  write: {type: table_file, r: ids, w: out.csv}
`

// serve serves a directory with a script.
func serve(t *testing.T) *served {
	return serveAs(t, "workspaces:\n  main: {scripts: .}\n"+generous)
}

// serveAs serves a directory with a script, in which others are made, as a configuration says.
func serveAs(t *testing.T, configuration string, dirs ...string) *served {
	t.Helper()
	dir := t.TempDir()
	s := &served{t: t, dir: dir}
	for _, name := range dirs {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
	}
	s.file("script.yaml", script)
	s.file("in.csv", "id,name\n1,ann\n2,ben\n")
	program, err := os.Executable()
	require.NoError(t, err)
	s.app, err = app.Open(t.Context(), app.Place{Dir: filepath.Join(dir, ".thalweg"), Create: true,
		Children: &app.Children{Program: program}}, app.Process{Dir: dir, Known: app.NewSecrets(), MemoryBytes: 1 << 30})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.app.Close()) })
	logger := slog.New(slog.DiscardHandler)
	s.users, err = s.app.OpenUsers(t.Context(), logger)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.users.Close()) })
	s.start = s.users.StartSecret("me@here")
	s.file("serve.yaml", "version: 1\n"+configuration)
	serving, err := app.LoadServing(filepath.Join(dir, "serve.yaml"), app.Process{})
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(nil)
	cfg := api.Config{App: s.app, News: s.app.News, Serving: serving, Access: s.users.Service, Known: app.NewSecrets(),
		Logger: logger,
		Build:  view.Build{Version: "v1"}, Hosts: []string{server.Listener.Addr().String()}, Cookie: "thalweg-test",
		Ready: func() error { return nil }, Metrics: app.NewMetrics("v1", nil, nil).Handler(), Pages: fakePages{}}
	provider, err := app.NewProvider(serving)
	require.NoError(t, err)
	if provider != nil {
		cfg.Provider = provider
	}
	handler := api.New(cfg)
	t.Cleanup(handler.Close)
	server.Config.Handler, s.api = handler, handler
	server.Start()
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *served) file(name, text string) {
	s.t.Helper()
	require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600))
}

// run runs the script here.
func (s *served) run() app.Summary {
	s.t.Helper()
	return s.runIn(app.DefaultWorkspace)
}

// runIn is run in a workspace.
func (s *served) runIn(workspace string) app.Summary {
	s.t.Helper()
	sum, err := s.app.Run(s.t.Context(), app.ProcessCaller(), app.RunOptions{Workspace: workspace,
		ScriptPath: filepath.Join(s.dir, "script.yaml")})
	if sum.Key.Run == 0 {
		require.NoError(s.t, err)
	}
	return sum
}

// client sends requests as somebody.
type client struct {
	*served
	header http.Header
}

// as returns a client with a token of a new user with grants.
func (s *served) as(name string, grants ...access.Grant) *client {
	s.t.Helper()
	password := "correct horse battery"
	_, err := s.users.PutUser(s.t.Context(), access.Principal{}, name,
		access.UserChange{Password: &password, Grants: &grants})
	require.NoError(s.t, err)
	session, err := s.users.Login(s.t.Context(), name, password, "::1")
	require.NoError(s.t, err)
	p, err := s.users.Session(s.t.Context(), session)
	require.NoError(s.t, err)
	_, secret, err := s.users.MakeToken(s.t.Context(), p, "test", grants, time.Hour)
	require.NoError(s.t, err)
	return &client{s, http.Header{"Authorization": {"Bearer " + secret}}}
}

// nobody returns a client that has not logged in.
func (s *served) nobody() *client { return &client{s, http.Header{}} }

type answer struct {
	t      *testing.T
	status int
	header http.Header
	text   string
}

func (c *client) send(method, path string, body any) answer {
	c.t.Helper()
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		require.NoError(c.t, err)
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, content)
	require.NoError(c.t, err)
	for k, v := range c.header {
		req.Header[k] = v
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(c.t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(c.t, err)
	c.requireDocumented(method, path, res.StatusCode, res.Header.Get("Content-Type"), text)
	return answer{c.t, res.StatusCode, res.Header, string(text)}
}

func (c *client) get(path string) answer {
	c.t.Helper()
	return c.send("GET", path, nil)
}

// into decodes the answer, which has a status.
func (a answer) into(status int, v any) {
	a.t.Helper()
	require.Equal(a.t, status, a.status, a.text)
	require.NoError(a.t, json.Unmarshal([]byte(a.text), v), a.text)
}

func (a answer) problem(status int) (p api.Problem) {
	a.t.Helper()
	a.into(status, &p)
	require.Equal(a.t, "application/problem+json", a.header.Get("Content-Type"))
	require.Equal(a.t, status, p.Status)
	return p
}

func TestLookAtRuns(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.run()
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Reader})

	shown, err := s.app.Runs.Show(t.Context(), view.RunKey{Workspace: "main", Run: 1})
	require.NoError(t, err)
	want, err := view.JSON(shown)
	require.NoError(t, err)
	got := c.get(ws + "/runs/last")
	require.Equal(t, http.StatusOK, got.status, got.text)
	require.Equal(t, string(want)+"\n", got.text, "the bytes of --json")
	require.Regexp(t, `^"0\.[0-9a-f]{16}"$`, got.header.Get("ETag"))

	var page struct {
		Runs []view.ListedRun
		Next string
	}
	s.run()
	s.run()
	c.get(ws+"/runs?limit=2").into(http.StatusOK, &page)
	require.Len(t, page.Runs, 2)
	require.Equal(t, int64(3), page.Runs[0].Run)
	next := page.Next
	page.Next = ""
	c.get(ws+"/runs?limit=2&cursor="+next).into(http.StatusOK, &page)
	require.Len(t, page.Runs, 1)
	require.Empty(t, page.Next)

	for _, path := range []string{"/why", "/causes", "/events", "/audit", "/checks", "/nodes", "/nodes/load",
		"/nodes/load/batches", "/nodes/load/batches/0", "/graph.svg"} {
		got := c.get(ws + "/runs/1" + path)
		require.Equal(t, http.StatusOK, got.status, "%s: %s", path, got.text)
		require.NotEmpty(t, got.text)
	}
	for path, hint := range map[string]string{"/runs/9": "runs", "/runs/1/nodes/lod": "load"} {
		p := c.get(ws + path).problem(http.StatusNotFound)
		require.Contains(t, p.Hint+p.Detail, hint, path)
	}
}

// A registered script is started once for each key, and nothing else is.
func TestStart(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.file("bad.yaml", "nodes: {load: {type: file_tabel}}")
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Operator})
	require.Contains(t, c.get(ws+"/scripts").text, `{"script":"script.yaml"}`)
	require.Contains(t, c.send("POST", ws+"/validations", map[string]any{"script": "bad.yaml"}).text, "file_tabel")

	var plan struct{ Planned view.RunPlanned }
	c.send("POST", ws+"/runs", map[string]any{"script": "script.yaml", "dry_run": true}).into(http.StatusCreated, &plan)
	require.Len(t, plan.Planned.Nodes, 2)
	var runs [3]struct{ Run int64 }
	for i := range runs {
		c.header.Set("Idempotency-Key", []string{"one", "one", "two"}[i])
		c.send("POST", ws+"/runs", map[string]any{"script": "script.yaml", "note": "hi"}).into(http.StatusCreated, &runs[i])
	}
	require.Equal(t, []int64{1, 1, 2}, []int64{runs[0].Run, runs[1].Run, runs[2].Run})
	shown := c.get(ws + "/runs/1").text
	require.Contains(t, shown, `"description":"hi","actor":"ann"`)
	p := c.send("POST", ws+"/runs", map[string]any{"script": "bad.yaml"}).problem(http.StatusUnprocessableEntity)
	require.NotEmpty(t, p.Diags)
	c.send("POST", ws+"/runs", map[string]any{"script": "../script.yaml"}).problem(http.StatusNotFound)
	c.send("POST", ws+"/runs", map[string]any{"script": "script.yaml", "params": map[string]string{"a": "b"}}).
		problem(http.StatusForbidden)
}

// An order with a key is given once, one with an old ETag never, and one with a token as it was shown.
func TestOrders(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.run()
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Operator})
	orders := ws + "/runs/1/orders"
	var preview struct {
		Token       string
		Invalidated view.Invalidated
	}
	c.send("POST", orders, map[string]any{"kind": "invalidate", "dry_run": true}).into(http.StatusOK, &preview)
	require.True(t, preview.Invalidated.DryRun)
	c.send("POST", orders, map[string]any{"kind": "invalidate", "token": preview.Token}).
		problem(http.StatusUnprocessableEntity) // it has no reason
	c.header.Set("If-Match", `"7"`)
	c.send("POST", orders, map[string]any{"kind": "invalidate", "reason": "wrong"}).problem(http.StatusConflict)
	c.header.Set("If-Match", `"0"`)
	c.header.Set("Idempotency-Key", "k")
	for range 2 {
		got := c.send("POST", orders, map[string]any{"kind": "invalidate", "reason": "wrong", "token": preview.Token})
		require.Equal(t, http.StatusOK, got.status, got.text)
		require.Equal(t, `"1"`, got.header.Get("ETag"))
	}
	var audit []view.AuditEntry
	c.get(ws+"/runs/1/audit").into(http.StatusOK, &audit)
	require.Len(t, audit, 2)
	require.Equal(t, "ann", audit[1].Actor)
	require.Equal(t, "token", audit[1].Via)
	require.Equal(t, "wrong", audit[1].Reason)
}

// Requests that are no requests of the API are problems, too.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.run()
	c := s.as("ann", access.Grant{Workspace: "*", Role: access.Manager})
	raw := func(method, path, contentType, body string, header ...string) answer {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
		require.NoError(t, err)
		req.Header = c.header.Clone()
		req.Header.Set("Content-Type", contentType)
		for i := 0; i < len(header); i += 2 {
			if req.Header.Set(header[i], header[i+1]); header[i] == "Host" {
				req.Host = header[i+1]
			}
		}
		res, err := http.DefaultTransport.RoundTrip(req)
		require.NoError(t, err)
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return answer{t, res.StatusCode, res.Header, string(text)}
	}
	const order = `{"kind":"stop"}`
	at := ws + "/runs/1/orders"
	for name, tc := range map[string]struct {
		got    answer
		status int
	}{
		"another host":         {raw("GET", ws+"/runs", "", "", "Host", "evil.example"), 421},
		"rebinding, a port":    {raw("GET", ws+"/runs", "", "", "Host", "evil.example:80"), 421},
		"another site":         {raw("POST", at, "application/json", order, "Origin", "http://evil.example"), 403},
		"site by fetch":        {raw("POST", at, "application/json", order, "Sec-Fetch-Site", "cross-site"), 403},
		"a form":               {raw("POST", at, "text/plain", order), 415},
		"urlencoded":           {raw("POST", at, "application/x-www-form-urlencoded", "kind=stop"), 415},
		"no JSON":              {raw("POST", at, "application/json", "{"), 400},
		"unknown members":      {raw("POST", at, "application/json", `{"kind":"stop","x":1}`), 422},
		"an unknown kind":      {raw("POST", at, "application/json", `{"kind":"burn"}`), 422},
		"too large":            {raw("POST", at, "application/json", `{"kind":"stop","reason":"`+strings.Repeat("x", 2<<20)+`"}`), 413},
		"deep":                 {raw("POST", at, "application/json", strings.Repeat(`{"a":`, 20_000)), 400},
		"an unknown path":      {raw("GET", "/v2", "", ""), 404},
		"a method":             {raw("PATCH", ws+"/runs", "", ""), 405},
		"an unknown parameter": {raw("GET", ws+"/runs?limt=3", "", ""), 422},
		"a limit":              {raw("GET", ws+"/runs?limit=1000000", "", ""), 422},
		"a cursor":             {raw("GET", ws+"/runs?cursor=1%27--", "", ""), 422},
		"a number":             {raw("GET", ws+"/runs/99999999999999999999", "", ""), 422},
		"a NUL":                {raw("GET", ws+"/runs/1/nodes/%00", "", ""), 404},
		"a path":               {raw("GET", "/v1/workspaces/..%2f..%2fetc/runs/1", "", ""), 422},
	} {
		p := tc.got.problem(tc.status)
		require.NotEmpty(t, p.Detail, name)
		require.NotContains(t, tc.got.text, s.dir, name)
	}
	require.Equal(t, "complete", func() string {
		run, err := s.app.Runs.Listed(t.Context(), view.RunKey{Workspace: "main", Run: 1})
		require.NoError(t, err)
		return run.Status
	}())
}

// An order to many runs is for those that were shown, and says of each what has become of it.
func TestOrdersToMany(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for range 3 {
		s.run()
	}
	c := s.as("root", access.Grant{Workspace: "*", Role: access.Manager})
	type done struct {
		Token string
		Runs  []struct {
			Run     int64
			Done    bool
			Problem *api.Problem
		}
	}
	var shown, got done
	at, filter := ws+"/orders:bulk", map[string]any{"status": "complete"}
	c.send("POST", at, map[string]any{"kind": "drop", "filter": filter, "dry_run": true}).into(http.StatusOK, &shown)
	require.Len(t, shown.Runs, 3)
	c.send("POST", at, map[string]any{"kind": "drop", "filter": filter, "reason": "old"}).
		problem(http.StatusUnprocessableEntity) // without having looked
	s.run()
	c.send("POST", at, map[string]any{"kind": "drop", "filter": filter, "reason": "old", "token": shown.Token}).
		problem(http.StatusConflict)
	c.send("POST", at, map[string]any{"kind": "drop", "runs": []int64{1, 2}, "reason": "old"}).into(http.StatusOK, &got)
	require.True(t, got.Runs[0].Done && got.Runs[1].Done)
	c.send("POST", at, map[string]any{"kind": "retry", "runs": []int64{1, 3}}).into(http.StatusOK, &got)
	require.False(t, got.Runs[0].Done)
	require.Contains(t, got.Runs[0].Problem.Detail, "dropped")
	operator := s.as("op", access.Grant{Workspace: "main", Role: access.Operator})
	operator.send("POST", at, map[string]any{"kind": "drop", "runs": []int64{3}, "reason": "x"}).problem(http.StatusForbidden)
	c.send("POST", at, map[string]any{"kind": "stop"}).problem(http.StatusUnprocessableEntity)
	c.send("POST", at, map[string]any{"kind": "stop", "runs": []int64{3, 0}}).problem(http.StatusUnprocessableEntity)
	c.send("POST", at, map[string]any{"kind": "stop", "runs": []int64{3, 99}}).problem(http.StatusNotFound)
	c.send("POST", at, map[string]any{"kind": "stop", "runs": []int64{3, 3}}).into(http.StatusOK, &got)
	require.Len(t, got.Runs, 1)
}

// An admin drops a run by an order, which does what its dry run has said.
func TestDropByAnOrder(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.run()
	root := s.as("root", access.Grant{Workspace: "*", Role: access.Manager})
	at, drop := ws+"/runs/1/orders", func(more map[string]any) map[string]any {
		more["kind"] = "drop"
		return more
	}
	s.as("op", access.Grant{Workspace: "main", Role: access.Operator}).
		send("POST", at, drop(map[string]any{"dry_run": true})).problem(http.StatusForbidden)
	var said struct {
		Token   string
		Dropped view.Dropped
	}
	root.send("POST", at, drop(map[string]any{"dry_run": true})).into(http.StatusOK, &said)
	require.Equal(t, []string{"load", "write"}, said.Dropped.Nodes)
	root.send("POST", at, drop(map[string]any{"token": said.Token})).problem(http.StatusUnprocessableEntity) // no reason
	root.send("POST", at, drop(map[string]any{"token": "another", "reason": "old"})).problem(http.StatusConflict)
	root.send("POST", at, drop(map[string]any{"token": said.Token, "reason": "old"})).into(http.StatusOK, &said)
	require.False(t, said.Dropped.DryRun)
	require.Contains(t, root.send("POST", at, map[string]any{"kind": "retry"}).problem(http.StatusConflict).Detail, "dropped")
}

// A dry run of an order to many says of each run what would be done, and what it would touch; the order does that, or
// nothing, to each of them.
func TestOrdersToManyAreShown(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.run()
	s.file("in.csv", badInput)
	s.run()
	s.run()
	c := s.as("root", access.Grant{Workspace: "*", Role: access.Manager})
	type done struct {
		Runs []struct {
			Run    int64
			Done   bool
			GoesOn int64 `json:"goes_on"`
			Would  *struct {
				Token       string
				Planned     *view.RetryPlanned
				Invalidated *view.Invalidated
				Dropped     *view.Dropped
				Would       *view.Outlook
			}
			Problem *api.Problem
		}
	}
	at := ws + "/orders:bulk"
	ask := func(order map[string]any) (out done) {
		c.send("POST", at, order).into(http.StatusOK, &out)
		return out
	}
	all := []int64{1, 2, 3}
	shown := ask(map[string]any{"kind": "retry", "dry_run": true, "runs": all})
	require.True(t, shown.Runs[0].Would.Planned.NewRun, "its input has changed")
	require.Len(t, shown.Runs[1].Would.Planned.Tasks, 2)
	require.NotNil(t, ask(map[string]any{"kind": "resume", "dry_run": true, "runs": all}).Runs[0].Problem, "it is complete")
	failed := map[string]any{"status": "failed", "since": time.Now().Add(-time.Hour), "until": time.Now().Add(time.Hour)}
	shown = ask(map[string]any{"kind": "retry", "dry_run": true, "filter": failed})
	require.Len(t, shown.Runs, 2)
	require.Empty(t, ask(map[string]any{"kind": "retry", "dry_run": true, "filter": map[string]any{"text": "none"}}).Runs)
	require.Empty(t, ask(map[string]any{"kind": "retry", "dry_run": true,
		"filter": map[string]any{"until": time.Now().Add(-time.Hour)}}).Runs)

	// What it would do to one of them has changed since: that one is left, the other one goes on.
	got := ask(map[string]any{"kind": "retry", "runs": []int64{2, 3}, "tokens": map[string]string{
		"2": shown.Runs[1].Would.Token, "3": "another"}})
	require.True(t, got.Runs[0].Done, "%+v", got.Runs[0].Problem)
	require.Equal(t, int64(2), got.Runs[0].GoesOn)
	require.Contains(t, got.Runs[1].Problem.Detail, "has changed since it was shown")

	require.Equal(t, "stopped", string(ask(map[string]any{"kind": "stop", "dry_run": true,
		"runs": []int64{2}}).Runs[0].Would.Would.Status))
	shown = ask(map[string]any{"kind": "invalidate", "dry_run": true, "runs": []int64{1}})
	require.Len(t, shown.Runs[0].Would.Invalidated.Nodes, 2)
	for _, kind := range []string{"invalidate", "drop"} { // nothing is tried: no run would take it
		p := c.send("POST", at, map[string]any{"kind": kind, "runs": []int64{1}}).problem(http.StatusUnprocessableEntity)
		require.Contains(t, p.Detail, "needs a reason")
		dry := map[string]any{"kind": kind, "dry_run": true, "runs": []int64{1}}
		for path, b := range map[string]map[string]any{at: dry, ws + "/runs/1/orders": {"kind": kind, "dry_run": true}} {
			require.Contains(t, c.send("POST", path, b).text, `"needs_reason":true`)
			b["reason"] = "wrong"
			require.NotContains(t, c.send("POST", path, b).text, `"needs_reason"`)
		}
	}
	require.True(t, ask(map[string]any{"kind": "invalidate", "runs": []int64{1}, "reason": "wrong",
		"tokens": map[string]string{"1": shown.Runs[0].Would.Token}}).Runs[0].Done)
	shown = ask(map[string]any{"kind": "drop", "dry_run": true, "runs": []int64{1}})
	require.Equal(t, []string{"load", "write"}, shown.Runs[0].Would.Dropped.Nodes)

	// What is done to one changes what would be done to another, which was shown with it.
	s.file("in.csv", "id,name\n1,ann\n")
	reused := func() int64 {
		sum, err := s.app.Run(t.Context(), app.ProcessCaller(), app.RunOptions{Workspace: app.DefaultWorkspace,
			ScriptPath: filepath.Join(s.dir, "script.yaml"), Reuse: true})
		require.NoError(t, err)
		return sum.Key.Run
	}
	first, second := reused(), reused()
	both := []int64{second, first}
	shown = ask(map[string]any{"kind": "invalidate", "dry_run": true, "runs": both})
	require.NotEmpty(t, shown.Runs[1].Would.Invalidated.Made, "the second has taken over what the first has made")
	got = ask(map[string]any{"kind": "invalidate", "runs": both, "reason": "wrong", "tokens": map[string]string{
		strconv.FormatInt(second, 10): shown.Runs[0].Would.Token, strconv.FormatInt(first, 10): shown.Runs[1].Would.Token}})
	require.True(t, got.Runs[0].Done && got.Runs[1].Done, "%+v", got.Runs[1].Problem)
}

// The start secret begins a session in a cookie that no script reads, for whoever may do everything.
func TestStartSession(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.nobody()
	require.Equal(t, http.StatusUnauthorized, c.send("POST", "/v1/login", map[string]string{"start": "x"}).status)
	got := c.send("POST", "/v1/login", map[string]string{"start": s.start})
	require.Equal(t, http.StatusNoContent, got.status, got.text)
	cookie := got.header.Get("Set-Cookie")
	require.Contains(t, cookie, "HttpOnly; SameSite=Lax")
	cookie, _, _ = strings.Cut(cookie, ";")
	c.header.Set("Cookie", cookie)
	require.Equal(t, http.StatusOK, c.get("/v1/users").status)
	c.get("/v1/fleet").problem(http.StatusNotFound)
	require.Contains(t, c.get("/v1/me").text, `"name":"me@here","via":"session"`)
	require.Equal(t, http.StatusNoContent, c.send("POST", "/v1/logout", nil).status)
	require.Equal(t, http.StatusUnauthorized, c.get("/v1/me").status, "a cookie that is sent again lets nobody in")
	page := s.nobody().get("/start")
	require.Contains(t, page.header.Get("Content-Security-Policy"), "script-src 'sha256-")
	require.NotContains(t, page.text, s.start)
}
