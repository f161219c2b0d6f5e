package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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
func startServer(t *testing.T, dir string, args ...string) (address string, ask func(method, path, body string)) {
	t.Helper()
	cmd := thalweg(context.Background(), dir, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
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

// login gets the person a token.
func (s serverUser) login() {
	s.t.Helper()
	login := thalweg(s.t.Context(), s.dir, "login", "--server", s.address, "--user", "ann")
	login.Env = append(os.Environ(), "XDG_CONFIG_HOME="+filepath.Join(s.dir, "config"), "HOME="+s.dir)
	login.Stdin = strings.NewReader("correct horse battery\n")
	said, err := login.CombinedOutput()
	require.NoError(s.t, err, string(said))
}

// requireSame requires commands to print the same here and through the server, with and without --json.
func (s serverUser) requireSame(commands ...[]string) {
	s.t.Helper()
	for _, args := range commands {
		for _, form := range [][]string{args, append(append([]string{}, args...), "--json")} {
			here, code := s.run(false, form...)
			there, codeThere := s.run(true, form...)
			require.Equal(s.t, withoutTimes(here), withoutTimes(there), strings.Join(form, " "))
			require.Equal(s.t, code, codeThere, strings.Join(form, " "))
		}
	}
}

// annsGrants makes ann an admin who decides for sales.
const annsGrants = `{"password":"correct horse battery","grants":[{"workspace":"*","role":"admin","gate_roles":["sales"]}]}`

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
	ask("PUT", "/v1/users/ann", annsGrants)

	out, code := s.run(true, "history")
	require.Equal(t, exitUsers, code)
	require.Contains(t, out, "thalweg login --server "+address)
	wrong := thalweg(t.Context(), dir, "history", "--server", address)
	wrong.Env = append(os.Environ(), "THALWEG_TOKEN=tw_"+strings.Repeat("a", 40))
	refused, err := wrong.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, exitUsers, wrong.ProcessState.ExitCode(), string(refused))
	require.Contains(t, string(refused), "`thalweg login --server "+address+"` makes a token")
	s.login()
	is, err := os.Stat(filepath.Join(dir, "config", "thalweg", "tokens.json"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), is.Mode().Perm())

	s.requireSame([]string{"history"}, []string{"runs"}, []string{"history", "--all", "--limit", "1"}, []string{"show", "1"},
		[]string{"show", "last"}, []string{"show", "1", "load"}, []string{"show", "1", "load", "--batch", "0"},
		[]string{"show", "last~1"}, []string{"why"}, []string{"why", "1"}, []string{"audit"}, []string{"audit", "2"},
		[]string{"batches", "load"}, []string{"batches", "load", "--run", "1"}, []string{"checks"},
		[]string{"checks", "--run", "2"}, []string{"schedules"}, []string{"invalidate", "1", "--dry-run"},
		[]string{"drop", "1", "--dry-run"}, []string{"gc", "--dry-run", "--keep", "1"}, []string{"show", "99"},
		[]string{"show", "1", "lod"}, []string{"batches", "lod"}, []string{"invalidate", "1"}, []string{"show", "nothing"},
		[]string{"nodes"}, []string{"nodes", "--run", "1"}, []string{"attach", "1"},
		[]string{"retry", "1", "--dry-run"}, []string{"retry", "2", "--node", "load", "--dry-run"},
		[]string{"retry", "2", "--batch", "load:9", "--dry-run"}, []string{"diff", "1", "2", "ids"},
		[]string{"diff", "2", "2", "ids", "--by-rows"}, []string{"diff", "1", "2", "idz"},
		[]string{"trace", "run2.ids", "--where", "id = 7"}, []string{"trace", "ids", "--run", "2"},
		[]string{"trace", "ids", "--run", "2", "--where", "idd = 7"}, []string{"trace", "ids", "--run", "2", "--limit", "1"},
		[]string{"sql", "FROM run2.ids"}, []string{"sql", "FROM run2.idz"}, []string{"sql", "SELEC 1"},
		[]string{"sql", "FROM run2.ids ORDER BY id", "--limit", "1"}, []string{"sql", "SELECT id FROM run2.ids", "--format", "csv"},
		[]string{"sql", "SELECT NULL a, 'x' b, 1.5::DOUBLE c, 40.80::DECIMAL(9,2) d, [1, 2] e, {'k': 'v'} f, true g, " +
			"DATE '2026-01-02' h, 12345678901234567890::HUGEINT i, 'NaN'::FLOAT j, 3::DOUBLE k, '<&>' l"})
	here, _ := s.run(false, "events", "2")
	there, _ := s.run(true, "events", "2")
	require.Equal(t, here, there)
	out, code = s.run(true, "attach", "2", "--server", address)
	require.Equal(t, exitWaiting, code, out)
	require.Contains(t, out, "--comment TEXT --answer least=1 --server "+address, "roles are the server's")
	here, _ = s.run(false, "events", "1", "--follow", "--after", "2")
	there, _ = s.run(true, "events", "1", "--follow", "--after", "2")
	require.Equal(t, here, there)

	for _, args := range [][]string{{"run", "script.yaml"}, {"run", "script.yaml", "--memory", "1GB"}, {"worker"}, {"sql"},
		{"sql", "FROM ids", "--limit", "0"}, {"check", "script.yaml"},
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

const workedScript = `
nodes:
  load: {type: file_table, r: {urls: [in.csv], types: {id: int}}, w: {name: ids, having: "w.id < {most}"}}
  write: {type: table_file, r: ids, w: out.csv}
`

// Runs that a server's worker does are started, followed and done again through it, with the exit codes of runs here.
func TestRunThroughAServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "jobs"), 0o700))
	for name, text := range map[string]string{"jobs/work.yaml": workedScript, "jobs/in.csv": "id\n1\n2\n7\n",
		"jobs/gate.yaml": servedScript, "jobs/bad.csv": "id\nx\n", "mine.yaml": workedScript,
		"jobs/bad.yaml": strings.Replace(workedScript, "in.csv", "bad.csv", 1),
		"serve.yaml":    "version: 1\nworkspaces: {main: {scripts: [jobs], parameters: true}}\n"} {
		text = strings.NewReplacer("[in.csv", "["+dir+"/jobs/in.csv", "[bad.csv", "["+dir+"/jobs/bad.csv").Replace(text)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	address, ask := startServer(t, dir, "--worker", "--config", "serve.yaml")
	ask("PUT", "/v1/users/ann", annsGrants)
	s := serverUser{t: t, dir: dir, address: address}
	s.login()

	out, code := s.run(true, "run", "mine.yaml")
	require.Equal(t, exitUsers, code, out)
	require.Contains(t, out, "a server starts only scripts that it has")
	out, code = s.run(true, "run", "wrk.yaml")
	require.Equal(t, exitUsers, code, out)
	require.Contains(t, out, "work.yaml")

	out, code = s.run(true, "run", "work.yaml", "--param", "most=5", "--dry-run")
	require.Equal(t, exitOK, code, out)
	require.Contains(t, out, "the run would compute 2 nodes and would take over 0")
	out, code = s.run(true, "run", "./work.yaml", "--param", "most=5", "--note", "few")
	require.Equal(t, exitOK, code, out)
	require.Contains(t, out, "run 1 in workspace main: complete")
	require.Contains(t, out, "(2 rows,")
	written, err := os.ReadFile(filepath.Join(dir, "jobs", "out.csv"))
	require.NoError(t, err)
	require.Equal(t, "id\n1\n2\n", string(written))

	out, code = s.run(true, "run", "bad.yaml", "--param", "most=5", "--json")
	require.Equal(t, exitUsers, code, out)
	require.Contains(t, out, `"event":"run_finished","status":"failed"`)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "jobs", "bad.csv"), []byte("id\n4\n"), 0o600))
	out, code = s.run(true, "retry", "2")
	require.Equal(t, exitOK, code, out)
	require.Contains(t, out, "run 3 in workspace main: complete")

	out, code = s.run(true, "run", "gate.yaml")
	require.Equal(t, exitWaiting, code, out)
	require.Contains(t, out, "gate ids")
	out, code = s.run(true, "run", "gate.yaml", "--detach", "--fresh")
	require.Equal(t, exitOK, code, out)
	require.Contains(t, out, "run 5 submitted")
	out, code = s.run(true, "stop", "4")
	require.Equal(t, exitOK, code, out)
	out, code = s.run(true, "resume", "4")
	require.Equal(t, exitWaiting, code, out)
	s.requireSame([]string{"attach", "1"}, []string{"attach", "2"}, []string{"nodes", "--run", "3"},
		[]string{"retry", "1", "--node", "load", "--dry-run"})
}

// momentary are texts that change from one moment to the next.
var momentary = regexp.MustCompile(`"elapsed_ms":\d+|\d+(\.\d+)? ?(ms|s|min|h)\b( \d+ (ms|s|min))?|for \d+ seconds|\(\d+ m?s\)`)

// withoutTimes also leaves out the blanks by which columns that have them are wider.
func withoutTimes(text string) string {
	return regexp.MustCompile(` +`).ReplaceAllString(momentary.ReplaceAllString(text, "…"), " ")
}

// An environment of the project names a server, unless the command line names a place.
func TestServerOfAnEnvironment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "thalweg.yaml"),
		[]byte("environments: {far: {server: 'http://127.0.0.1:1'}, near: {state: .thalweg}}\n"), 0o600))
	s := serverUser{t: t, dir: dir, address: "http://127.0.0.1:1"}
	for _, args := range [][]string{{"runs", "--env", "far"}, {"runs", "--server", "http://127.0.0.1:1", "--env", "near"}} {
		out, code := s.run(false, args...)
		require.Equal(t, exitUsers, code, out)
		require.Contains(t, out, "there is no token for http://127.0.0.1:1")
	}
	out, code := s.run(false, "worker", "--env", "far")
	require.Equal(t, exitUsers, code, out)
	require.Contains(t, out, "thalweg worker works here, not through a server")
	for _, args := range [][]string{{"runs", "--env", "far", "--state", ".thalweg"}, {"runs", "--state", ".thalweg"},
		{"runs", "--env", "near"}} {
		out, _ := s.run(true, args...)
		require.NotContains(t, out, "127.0.0.1", args)
	}
}

// A server that is not there, or is not trusted, is one error; the token is in none.
func TestServersThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	stranger := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(stranger.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for address, want := range map[string]struct {
		text string
		code int
	}{
		stranger.URL:               {"has a certificate that is not trusted here", exitUsers},
		gone.URL:                   {"the server cannot be reached", exitOurs},
		"http://data.example.com":  {"is not sent to data.example.com without encryption", exitUsers},
		"https://u:p@data.example": {"this is no address of a server", exitUsers},
	} {
		cmd := thalweg(t.Context(), t.TempDir(), "runs", "--server", address)
		cmd.Env = append(os.Environ(), "THALWEG_TOKEN=tw_verysecret")
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.Equal(t, want.code, cmd.ProcessState.ExitCode(), string(out))
		require.Contains(t, string(out), want.text)
		require.Equal(t, 1, strings.Count(string(out), "error:"), string(out))
		require.NotContains(t, string(out), "verysecret")
	}
}

// Each command is in the table of what a server answers, or works here.
func TestServerTableNamesCommands(t *testing.T) {
	t.Parallel()
	k, err := newParser(t.Context(), &console{}, &cli{}, func(int) {})
	require.NoError(t, err)
	here := []string{"validate", "check", "test", "init", "infer", "explain", "graph", "fmt", "schema", "matrix", "lineage",
		"serve", "worker", "slot", "peek", "simulate", "scheduler", "doctor", "completion", "__complete", "version",
		"test", "status", "init"}
	names := map[string]bool{}
	for _, leaf := range k.Model.Leaves(true) {
		names[leaf.Name] = true
		require.NotEqual(t, answered(leaf.Name), slices.Contains(here, leaf.Name), leaf.Name)
	}
	for name := range throughServer {
		require.True(t, names[name], name)
	}
}

// A browser that opens the server's address gets the application that is built in, with its files.
func TestServerHasPages(t *testing.T) {
	t.Parallel()
	address, _ := startServer(t, t.TempDir())
	get := func(path string) (string, http.Header) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+path, nil)
		require.NoError(t, err)
		req.Header.Set("Accept", "text/html,*/*")
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer res.Body.Close()
		require.Equal(t, http.StatusOK, res.StatusCode, path)
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return string(text), res.Header
	}
	page, header := get("/w/main/runs/7?tab=events")
	require.Contains(t, header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-")
	script := regexp.MustCompile(`src="(/ui/[0-9a-f]+/app\.js)"`).FindStringSubmatch(page)
	require.NotNil(t, script, page)
	text, header := get(script[1])
	require.NotEmpty(t, text)
	require.Equal(t, "text/javascript; charset=utf-8", header.Get("Content-Type"))
	require.Contains(t, header.Get("Cache-Control"), "immutable")
	require.Equal(t, "nosniff", header.Get("X-Content-Type-Options"))
}
