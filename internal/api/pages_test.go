package api_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakePages has one file, and a page.
type fakePages struct{}

func (fakePages) ServeFile(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path != "/ui/now/app.js" {
		return false
	}
	_, _ = w.Write([]byte("file"))
	return true
}

func (fakePages) ServePage(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("page")) }

// Browsers get the page at every path that is nothing else; programs are told that there is nothing.
func TestPages(t *testing.T) {
	t.Parallel()
	s := serve(t)
	browser := &client{s, http.Header{"Accept": {"text/html,application/xhtml+xml,*/*;q=0.8"}}}
	for _, path := range []string{"/", "/w/main", "/w/main/runs/7", "/login", "/w/main/tables/t?run=1", "/audit/"} {
		got := browser.get(path)
		require.Equal(t, http.StatusOK, got.status, path)
		require.Equal(t, "page", got.text, path)
		require.Equal(t, http.StatusNotFound, s.nobody().get(path).status, path)
		require.Equal(t, "no-store", got.header.Get("Cache-Control"))
		require.Equal(t, http.StatusNotFound, browser.send("POST", path, nil).status, path)
	}
	for _, path := range []string{"/v1", "/v1/nothing", "/ui", "/start/x", "/oidc/x", "/healthz/x", "/readyz/x", "/metrics/x",
		"/ui/now/other.js", "/ui/before/app.js"} {
		got := browser.get(path)
		require.Equal(t, http.StatusNotFound, got.status, path)
		require.Contains(t, got.header.Get("Content-Type"), "application/problem+json", path)
	}
	for _, path := range []string{"//other.example/x", "/w/../v1"} {
		require.NotEqual(t, "page", browser.get(path).text, path)
	}
	require.Equal(t, "file", s.nobody().get("/ui/now/app.js").text)
	require.Contains(t, s.nobody().get("/ui/before/app.js").text, "load the page again")
}

func TestWaysToLogin(t *testing.T) {
	t.Parallel()
	require.JSONEq(t, `{"ways":["password","start"]}`, serve(t).nobody().get("/v1/login").text)
}
