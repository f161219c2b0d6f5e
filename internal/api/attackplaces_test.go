package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/access"
	"thalweg/internal/test/effort"
)

// What a parameter of a script names is refused, in whatever notation, unless the places of the workspace have it.
func TestAttacksOnPlaces(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := placesOf(t)
	s.file("jobs/any.yaml", anyScript)
	s.file("in/a.csv", "id\n1\n")
	s.file("other/secret.csv", "id\n"+canary+"\n")
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Operator})
	notations := []string{
		"http://169.254.169.254/latest/meta-data/x.csv", "http://2852039166/x.csv", "http://0xa9fea9fe/x.csv",
		"http://0xa9.0xfe.0xa9.0xfe/x.csv", "http://0251.0376.0251.0376/x.csv", "http://169.254.43518/x.csv",
		"http://[::ffff:169.254.169.254]/x.csv", "http://[::ffff:a9fe:a9fe]/x.csv", "http://[fd00:ec2::254]/x.csv",
		"http://169.254.169.254./x.csv", "http://metadata.google.internal/x.csv", "http://100.100.100.200/x.csv",
		"http://localhost/x.csv", "http://127.1/x.csv", "http://[::1]/x.csv", "http://0/x.csv", s.url + "/v1/me.csv",
		"http://good.example@169.254.169.254/x.csv", "https://169.254.169.254#.good.example/x.csv", "sftp://127.0.0.1/x.csv",
		"s3://bucket/x.csv", "s3://bucket/x.csv?endpoint=http://169.254.169.254", "gs://bucket/x.csv",
		"postgres://127.0.0.1/x?table=t", "postgres://good.example,169.254.169.254/x?table=t",
		"postgres:///x?host=/var/run/postgresql", "mysql://root@127.0.0.1/x?allowAllFiles=true",
		"sqlite:///" + filepath.Join(s.dir, ".thalweg", "state.db"), "file:///etc/passwd", "/etc/passwd",
		"/proc/self/environ", "/proc/self/root" + "/etc/passwd", "/proc/self/cwd/other/secret.csv", "/dev/stdin",
		"../in/./../other/secret.csv", "../in//../other/secret.csv", "../other/secret.csv",
		"../in/a.csv\x00/../../other/secret.csv",
	}
	for _, from := range notations {
		t.Run(strings.ReplaceAll(from, s.dir, "DIR"), func(t *testing.T) {
			for _, dry := range []bool{false, true} {
				got := c.send("POST", ws+"/runs", map[string]any{"script": "any.yaml", "dry_run": dry,
					"params": map[string]string{"from": from, "to": "../out/x.csv"}})
				if !dry { // which opens nothing on other machines
					require.GreaterOrEqual(t, got.status, 400, got.text)
				}
				require.Less(t, got.status, 500, got.text)
				require.NotContains(t, got.text, canary)
				require.NotContains(t, got.text, "root:x:0")
			}
		})
	}
}

// A variable that a parameter or a script names is not looked up in the server's environment, and shown nowhere.
func TestAttacksOnVariables(t *testing.T) {
	effort.Unraced(t)
	t.Setenv("AWS_SECRET_ACCESS_KEY", canary)
	s := placesOf(t)
	s.file("jobs/any.yaml", anyScript)
	s.file("jobs/env.yaml", strings.NewReplacer("{from}", "{env.AWS_SECRET_ACCESS_KEY}.csv", "{to}", "../out/x.csv").
		Replace(anyScript))
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Operator})
	stop := s.work(t.Context())
	defer stop()
	for name, request := range map[string]map[string]any{
		"parameter": {"script": "any.yaml", "params": map[string]string{"from": "{env.AWS_SECRET_ACCESS_KEY}",
			"to": "../out/x.csv"}},
		"home":   {"script": "any.yaml", "params": map[string]string{"from": "~/secret.csv", "to": "../out/x.csv"}},
		"script": {"script": "env.yaml"},
	} {
		got := c.send("POST", ws+"/runs", request)
		require.NotContains(t, got.text, canary, name)
		if got.status >= 400 {
			require.Less(t, got.status, 500, name)
			continue
		}
		var began struct{ Run int64 }
		got.into(http.StatusCreated, &began)
		run := fmt.Sprint(ws, "/runs/", began.Run)
		var state runState
		require.Eventually(t, func() bool {
			c.get(run).into(http.StatusOK, &state)
			return state.Status == "failed"
		}, effort.Patience, effort.Patience/1000, name)
		for _, path := range []string{"", "/why", "/causes", "/events", "/audit", "/nodes/load", "/graph.svg"} {
			require.NotContains(t, c.get(run+path).text, canary, name+path)
		}
	}
}

// A session that was chosen for somebody is not theirs, and one that is over is sent again in vain.
func TestAttacksOnSessions(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := serve(t)
	s.as("ann", access.Grant{Workspace: "main", Role: access.Viewer})
	c := s.nobody()
	const chosen = "thalweg-test=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	c.header.Set("Cookie", chosen)
	login := map[string]string{"name": "ann", "password": "correct horse battery"}
	var cookies []string
	for range 2 {
		got := c.send("POST", "/v1/login", login)
		require.Equal(t, http.StatusNoContent, got.status, got.text)
		cookie, attributes, _ := strings.Cut(got.header.Get("Set-Cookie"), ";")
		require.Contains(t, attributes, "HttpOnly; SameSite=Lax")
		require.NotContains(t, attributes, "Domain")
		cookies = append(cookies, cookie)
	}
	require.NotEqual(t, cookies[0], cookies[1])
	require.NotContains(t, cookies, chosen)
	require.Equal(t, http.StatusUnauthorized, c.get("/v1/me").status, "fixed")
	c.header.Set("Cookie", cookies[0])
	require.Equal(t, http.StatusOK, c.get("/v1/me").status)
	require.Equal(t, http.StatusNoContent, c.send("POST", "/v1/logout", nil).status)
	require.Equal(t, http.StatusUnauthorized, c.get("/v1/me").status, "replayed")
	c.header.Set("Cookie", cookies[1][:len(cookies[1])-1])
	require.Equal(t, http.StatusUnauthorized, c.get("/v1/me").status, "cut")
	c.header.Set("Cookie", cookies[1])
	require.Equal(t, http.StatusOK, c.get("/v1/me").status)
	other := "another horse battery"
	_, err := s.users.PutUser(t.Context(), access.Principal{}, "ann", access.UserChange{Password: &other})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return c.get("/v1/me").status == http.StatusUnauthorized }, effort.Patience,
		effort.Patience/1000, "of the password before")
}

// Whoever tries passwords is held up, whatever address they claim to have, and whatever they call themselves.
func TestAttacksByTryingPasswords(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := serve(t)
	root := s.as("root", access.Grant{Workspace: "*", Role: access.Manager})
	c := s.nobody()
	held, tried := false, 0
	for ; tried < 30 && !held; tried++ {
		c.header.Set("X-Forwarded-For", fmt.Sprintf("203.0.113.%d", tried))
		c.header.Set("Forwarded", fmt.Sprintf("for=203.0.113.%d", tried))
		got := c.send("POST", "/v1/login", map[string]string{"name": "eve\nlevel=INFO msg=login\r\n",
			"password": "guess guess guess"})
		held = got.status == http.StatusTooManyRequests
		require.Contains(t, []int{http.StatusUnauthorized, http.StatusTooManyRequests}, got.status, got.text)
	}
	require.True(t, held, "30 guesses cost nothing")
	text := root.get("/v1/access-log?limit=1000").text
	require.Equal(t, 1, strings.Count(text, "\n"), "a name makes no lines of its own")
	require.NotContains(t, text, "203.0.113.")
	require.NotContains(t, text, "guess guess")
	var entries []access.Entry
	require.NoError(t, json.Unmarshal([]byte(text), &entries))
}

// Browsers that have once been here over TLS never come without it.
func TestAttacksOnTLS(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := serve(t)
	for _, secure := range []bool{false, true} {
		s.api.SetSecure(secure)
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/healthz", nil)
		got := httptest.NewRecorder()
		s.api.ServeHTTP(got, req)
		require.Equal(t, secure, got.Header().Get("Strict-Transport-Security") == "max-age=31536000; includeSubDomains")
	}
}
