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
	t.Helper()
	dir := t.TempDir()
	s := &served{t: t, dir: dir}
	s.file("script.yaml", script)
	s.file("in.csv", "id,name\n1,ann\n2,ben\n")
	var err error
	s.app, err = app.Open(t.Context(), app.Place{Dir: filepath.Join(dir, ".thalweg"), Create: true}, app.Process{Dir: dir,
		Known: app.NewSecrets(), MemoryBytes: 1 << 30})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.app.Close()) })
	logger := slog.New(slog.DiscardHandler)
	s.users, err = s.app.OpenUsers(t.Context(), logger)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.users.Close()) })
	s.start = s.users.StartSecret("me@here")
	server := httptest.NewUnstartedServer(nil)
	handler := api.New(api.Config{App: s.app, News: s.app.Follow(), Access: s.users.Service, Known: app.NewSecrets(), Logger: logger,
		Build: view.Build{Version: "v1"}, Hosts: []string{server.Listener.Addr().String()}, Cookie: "thalweg-test",
		Ready: func() error { return nil }})
	t.Cleanup(func() { require.NoError(t, handler.Close()) })
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
	sum, err := s.app.Run(s.t.Context(), app.ProcessCaller(), app.RunOptions{Workspace: app.DefaultWorkspace,
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

// owner returns a client that came in with the start secret.
func (s *served) owner() *client {
	s.t.Helper()
	c := s.nobody()
	got := c.send("POST", "/v1/login", map[string]string{"start": s.start})
	require.Equal(s.t, http.StatusNoContent, got.status, got.text)
	cookie, _, _ := strings.Cut(got.header.Get("Set-Cookie"), ";")
	c.header.Set("Cookie", cookie)
	return c
}

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
	require.Equal(t, `"0"`, got.header.Get("ETag"))

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

	for _, path := range []string{"/why", "/events", "/audit", "/checks", "/nodes", "/nodes/load", "/nodes/load/batches",
		"/nodes/load/batches/0", "/graph.svg"} {
		got := c.get(ws + "/runs/1" + path)
		require.Equal(t, http.StatusOK, got.status, "%s: %s", path, got.text)
		require.NotEmpty(t, got.text)
	}
	for path, hint := range map[string]string{"/runs/9": "runs", "/runs/x": "last", "/runs/1/nodes/lod": "load"} {
		p := c.get(ws + path).problem(map[bool]int{true: 404, false: 422}[path != "/runs/x"])
		require.Contains(t, p.Hint+p.Detail, hint, path)
	}
}
