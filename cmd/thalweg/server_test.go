package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/access"
	"thalweg/internal/test/effort"
)

const servedScript = `
nodes:
  load:
    type: file_table
    r: {urls: [in.csv], types: {id: int}}
    w: {name: ids, approval: {by: [sales], answers: {least: {type: int, default: 1}}}}
    checks: [{range: {field: id, max: 5}, severity: warn}]
  keep: {type: table_table, r: ids, w: {name: kept, having: "w.id >= {least}", fields: [r.id]}}
  write: {type: table_file, r: kept, w: out.csv}
`

// startServer serves a directory, and returns the address and a function that asks the API as who started it.
func startServer(t *testing.T, dir string, more ...string) (address string, ask func(method, path, body string)) {
	t.Helper()
	cmd := thalweg(context.Background(), dir, append([]string{"serve", "--listen", "127.0.0.1:0"}, more...)...)
	said, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(said)
	signIn := regexp.MustCompile(`to sign in: (http://[^/]+)/start#(\S+)`)
	var start string
	for start == "" && lines.Scan() {
		if m := signIn.FindStringSubmatch(lines.Text()); m != nil {
			address, start = m[1], m[2]
		}
	}
	require.NotEmpty(t, start, "the server has ended")
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		for lines.Scan() {
		}
		require.NoError(t, cmd.Wait(), "it ends by itself when it is told to")
	})
	var cookie *http.Cookie
	ask = func(method, path, body string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, address+path, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		if cookie != nil {
			req.AddCookie(cookie)
		}
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer res.Body.Close()
		require.Equal(t, 2, res.StatusCode/100, "%s %s: %d", method, path, res.StatusCode)
		if len(res.Cookies()) > 0 {
			cookie = res.Cookies()[0]
		}
	}
	ask("POST", "/v1/login", `{"start":"`+start+`"}`)
	return address, ask
}

// A cluster's users are those of all its servers, and what one of them revokes the others refuse.
func TestServersOfACluster(t *testing.T) {
	t.Parallel()
	node := os.Getenv("THALWEG_TEST_CASSANDRA")
	if node == "" {
		t.Skip("THALWEG_TEST_CASSANDRA is not set")
	}
	keyspace, dir := "servers_"+strings.ToLower(rand.Text()[:12]), t.TempDir()
	t.Cleanup(func() { dropKeyspace(node, keyspace, "") })
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cluster.yaml"), fmt.Appendf(nil,
		"version: 1\nstate: { cassandra: { hosts: %q, keyspace: %s, replication: 1 } }\nparts: { cassandra: {} }\n"+
			"worker: { scratch: scratch }\n", node, keyspace), 0o600))
	out, err := thalweg(t.Context(), dir, "cluster", "init", "--cluster", "cluster.yaml").CombinedOutput()
	require.NoError(t, err, string(out))
	_, here := startServer(t, dir, "--cluster", "cluster.yaml")
	there, _ := startServer(t, dir, "--cluster", "cluster.yaml")
	here("PUT", "/v1/users/ann", `{"password":"correct horse battery","grants":[{"workspace":"*","role":"viewer"}]}`)
	var session *http.Cookie
	status := func(method, path, body string) int {
		req, err := http.NewRequestWithContext(t.Context(), method, there+path, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		if session != nil {
			req.AddCookie(session)
		}
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer res.Body.Close()
		if len(res.Cookies()) > 0 {
			session = res.Cookies()[0]
		}
		return res.StatusCode
	}
	require.Equal(t, http.StatusNoContent, status("POST", "/v1/login", `{"name":"ann","password":"correct horse battery"}`))
	require.Equal(t, http.StatusOK, status("GET", "/v1/me", ""))
	here("PUT", "/v1/users/ann", `{"disabled":true}`)
	begun := time.Now()
	require.Eventually(t, func() bool { return status("GET", "/v1/me", "") == http.StatusUnauthorized }, effort.Patience,
		50*time.Millisecond)
	effort.Promised(t, begun, access.RevokedWithin)
}

// serverUser is a person with a token for a server, and one beside them who has the state directory.
type serverUser struct {
	t       *testing.T
	dir     string
	address string
}

// run runs a command here, or through the server, and returns what it prints and its exit code.
func (s serverUser) run(through bool, args ...string) (string, int) {
	s.t.Helper()
	cmd := thalweg(s.t.Context(), s.dir, args...)
	cmd.Env = append(os.Environ(), "HOME="+s.dir, "XDG_CONFIG_HOME="+filepath.Join(s.dir, "config"), "TZ=UTC")
	if through {
		cmd.Env = append(cmd.Env, "THALWEG_SERVER="+s.address)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil {
		require.ErrorAs(s.t, err, &exit)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// Commands print the same through a server as here, paths aside.
func TestThroughAServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"script.yaml": servedScript, "in.csv": "id\n1\n2\n7\n", "bad.csv": "id\nx\n",
		"bad.yaml": strings.Replace(servedScript, "in.csv", "bad.csv", 1)} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	s := serverUser{t: t, dir: dir}
	s.run(false, "run", "bad.yaml")
	s.run(false, "run", "script.yaml")
	address, ask := startServer(t, dir)
	s.address = address
	ask("PUT", "/v1/users/ann", `{"password":"correct horse battery","grants":[{"workspace":"*","role":"admin","gate_roles":["sales"]}]}`)

	out, code := s.run(true, "history")
	require.Equal(t, exitUsers, code)
	require.Contains(t, out, "thalweg login --server "+address)
	login := thalweg(t.Context(), dir, "login", "--server", address, "--user", "ann")
	login.Env = append(os.Environ(), "XDG_CONFIG_HOME="+filepath.Join(dir, "config"), "HOME="+dir)
	login.Stdin = strings.NewReader("correct horse battery\n")
	said, err := login.CombinedOutput()
	require.NoError(t, err, string(said))
	is, err := os.Stat(filepath.Join(dir, "config", "thalweg", "tokens.json"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), is.Mode().Perm())

	same := [][]string{{"history"}, {"runs"}, {"history", "--all", "--limit", "1"}, {"show", "1"}, {"show", "last"},
		{"show", "1", "load"}, {"show", "1", "load", "--batch", "0"}, {"show", "last~1"}, {"why"}, {"why", "1"}, {"audit"},
		{"audit", "2"}, {"batches", "load"}, {"batches", "load", "--run", "1"}, {"checks"}, {"checks", "--run", "2"},
		{"schedules"}, {"invalidate", "1", "--dry-run"}, {"drop", "1", "--dry-run"}, {"gc", "--dry-run", "--keep", "1"},
		{"show", "99"}, {"show", "1", "lod"}, {"batches", "lod"}, {"invalidate", "1"}, {"show", "nothing"}}
	for _, args := range same {
		for _, form := range [][]string{args, append(append([]string{}, args...), "--json")} {
			here, code := s.run(false, form...)
			there, codeThere := s.run(true, form...)
			require.Equal(t, withoutTimes(here), withoutTimes(there), strings.Join(form, " "))
			require.Equal(t, code, codeThere, strings.Join(form, " "))
		}
	}
	here, _ := s.run(false, "events", "2")
	there, _ := s.run(true, "events", "2")
	require.Equal(t, here, there)

	for _, args := range [][]string{{"run", "script.yaml"}, {"sql", "FROM ids"}, {"worker"}, {"events", "--follow"},
		{"approve", "2", "ids", "--role", "sales"}} {
		out, code := s.run(true, args...)
		require.Equal(t, exitUsers, code, out)
		require.Contains(t, out, "server", strings.Join(args, " "))
	}
	out, code = s.run(true, "fmt", "--check", "script.yaml")
	require.NotContains(t, out, "server", "%d: a command without state has nothing to do with servers", code)

	out, code = s.run(true, "approvals")
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "gate ids")
	out, code = s.run(true, "approve", "2", "ids", "--answer", "least=2", "--comment", "fine", "--json")
	require.Equal(t, 0, code, out)
	var decided struct {
		Approved bool
		Digest   string
	}
	require.NoError(t, json.Unmarshal([]byte(out), &decided))
	require.True(t, decided.Approved)
	out, _ = s.run(false, "show", "2", "--json")
	require.Contains(t, out, `"role":"sales","role_verified":true`)
	out, code = s.run(true, "stop", "2", "--reason", "enough")
	require.Equal(t, 0, code, out)
	out, code = s.run(true, "invalidate", "1", "--reason", "wrong", "--yes")
	require.Equal(t, 0, code, out)
	here, _ = s.run(false, "audit", "--json")
	there, _ = s.run(true, "audit", "--json")
	require.Equal(t, here, there)
	require.Contains(t, here, `"actor":"ann","via":"token","action":"invalidate"`)
}

// momentary are texts that change from one moment to the next.
var momentary = regexp.MustCompile(`"elapsed_ms":\d+|\d+(\.\d+)? ?(ms|s|min|h)\b( \d+ (ms|s|min))?|for \d+ seconds|\(\d+ m?s\)`)

// withoutTimes also leaves out the blanks by which columns that have them are wider.
func withoutTimes(text string) string {
	return regexp.MustCompile(` +`).ReplaceAllString(momentary.ReplaceAllString(text, "…"), " ")
}

// Each command is in the table of what a server answers, or works here.
func TestServerTableNamesCommands(t *testing.T) {
	t.Parallel()
	k, err := newParser(t.Context(), &console{}, &cli{}, func(int) {})
	require.NoError(t, err)
	names := map[string]bool{}
	for _, leaf := range k.Model.Leaves(true) {
		names[leaf.Name] = true
	}
	for name := range throughServer {
		require.True(t, names[name], name)
	}
}
