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

	"github.com/alecthomas/kong"
	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"thalweg/internal/app/access"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
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

// newServer serves a directory, and returns the address and the token that signs in who started it.
func newServer(t *testing.T, dir string, args ...string) (address, start string) {
	t.Helper()
	cmd := thalweg(context.Background(), dir, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	said, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(said)
	signIn := regexp.MustCompile(`to sign in: (http://[^/]+)/start#(\S+)`)
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
	return address, start
}

// startServer serves a directory, and returns the address and a function that asks the API as who started it.
func startServer(t *testing.T, dir string, args ...string) (address string, ask func(method, path, body string)) {
	t.Helper()
	address, start := newServer(t, dir, args...)
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
			bare := func(out string) string { return withoutTimes(strings.ReplaceAll(out, s.dir+"/", "")) }
			require.Equal(s.t, bare(here), bare(there), strings.Join(form, " "))
			require.Equal(s.t, code, codeThere, strings.Join(form, " "))
		}
	}
}

// requireSameFiles requires a query's rows to be the same in files that are written here and through the server.
func (s serverUser) requireSameFiles() {
	s.t.Helper()
	const query = "SELECT range AS n, 'a,b' AS t, 1.50::DECIMAL(9,2) AS d FROM range(5000)"
	s.requireSame([]string{"sql", query, "--format", "csv", "--limit", "0"},
		[]string{"sql", query, "--format", "json", "--limit", "3"})
	for _, name := range []string{"rows.csv", "rows.ndjson", "rows.parquet"} {
		path := filepath.Join(s.dir, name)
		var files [2][]byte
		for i := range files {
			out, code := s.run(i == 1, "sql", query, "-o", name, "--overwrite")
			require.Equal(s.t, exitOK, code, out)
			text, err := os.ReadFile(path)
			require.NoError(s.t, err)
			files[i] = text
		}
		if name == "rows.parquet" { // two that are written apart need not be the same
			file, err := parquet.OpenFile(bytes.NewReader(files[1]), int64(len(files[1])))
			require.NoError(s.t, err)
			require.EqualValues(s.t, 5000, file.NumRows())
			continue
		}
		require.Equal(s.t, string(files[0]), string(files[1]))
		for _, wrong := range []string{"FROM idz", "SELECT error('late') FROM range(100000) WHERE range = 99999"} {
			here, code := s.run(false, "sql", wrong, "-o", name)
			there, codeThere := s.run(true, "sql", wrong, "-o", name)
			require.Equal(s.t, here, there)
			require.Equal(s.t, code, codeThere)
			left, err := os.ReadFile(path)
			require.NoError(s.t, err)
			require.Equal(s.t, string(files[0]), string(left), "nothing is replaced by what failed")
		}
	}
}

// figures differ from one look at a machine to the next.
var figures = regexp.MustCompile(`\d+(\.\d+)?`)

// requireSameDiagnosis requires doctor to look at the same things here and through the server, and to say the same of
// what it finds as good, figures aside.
func (s serverUser) requireSameDiagnosis(hereArgs ...string) {
	s.t.Helper()
	var here, there view.Diagnosis
	out, _ := s.run(false, append([]string{"doctor", "--json"}, hereArgs...)...)
	require.NoError(s.t, json.Unmarshal([]byte(out), &here), out)
	out, _ = s.run(true, "doctor", "--json")
	require.NoError(s.t, json.Unmarshal([]byte(out), &there), out)
	require.Len(s.t, there.Checks, len(here.Checks))
	for i, h := range here.Checks {
		f := there.Checks[i]
		require.Equal(s.t, h.Service+" "+h.Check, f.Service+" "+f.Check)
		if h.Verdict == f.Verdict {
			require.Equal(s.t, figures.ReplaceAllString(withoutTimes(h.Seen+h.Mend), "0"),
				figures.ReplaceAllString(withoutTimes(f.Seen+f.Mend), "0"))
		}
	}
	text, _ := s.run(true, "doctor")
	require.Contains(s.t, text, "it is a state of this program")
}

// A cluster's workers and open runs are listed through a server of it as they are here.
func TestClusterStatusThroughAServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cluster.yaml"),
		[]byte("version: 1\nstate: { directory: runs }\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "work.yaml"), []byte(workedScript), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in.csv"), []byte("id\n1\n"), 0o600))
	s := serverUser{t: t, dir: dir}
	out, code := s.run(false, "cluster", "init", "--cluster", "cluster.yaml")
	require.Equal(t, exitOK, code, out)
	out, code = s.run(false, "run", "work.yaml", "--param", "most=5", "--cluster", "cluster.yaml", "--detach")
	require.Equal(t, exitOK, code, out)
	address, ask := startServer(t, dir, "--cluster", "cluster.yaml", "--worker")
	ask("PUT", "/v1/users/ann", annsGrants)
	s.address = address
	s.login()
	out, code = s.run(true, "attach", "1")
	require.Equal(t, exitOK, code, out)
	// A worker works before it has said that it is there, and all of what it says.
	for _, form := range [][]string{nil, {"--json"}} {
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			here, _ := s.run(false, append([]string{"cluster", "status", "--cluster", "cluster.yaml"}, form...)...)
			there, code := s.run(true, append([]string{"cluster", "status"}, form...)...)
			require.Equal(c, exitOK, code)
			require.Equal(c, figures.ReplaceAllString(withoutTimes(here), "0"),
				figures.ReplaceAllString(withoutTimes(there), "0"))
			require.Regexp(c, `idle|"python"`, there)
		}, time.Minute, 10*time.Millisecond)
	}
	s.requireSameDiagnosis("--cluster", "cluster.yaml")
	out, code = s.run(false, "cluster", "status")
	require.Equal(t, exitUsers, code)
	require.Contains(t, out, "--server URL")
}

// annsGrants makes ann an admin who decides for sales.
const annsGrants = `{"password":"correct horse battery","grants":[{"workspace":"*","role":"admin","gate_roles":["sales"]}]}`

// run runs a command here, or through the server, and returns what it prints and its exit code.
func (s serverUser) run(through bool, args ...string) (string, int) {
	s.t.Helper()
	cmd := thalweg(s.t.Context(), s.dir, args...)
	cmd.Env = append(os.Environ(), "HOME="+s.dir, "XDG_CONFIG_HOME="+filepath.Join(s.dir, "config"), "TZ=UTC",
		"THALWEG_MACHINE=c7g.large")
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

const checkedScript = `
nodes:
  load:
    type: file_table
    r: {urls: [in.csv], types: {id: int}}
    w: ids
    checks: [{name: few, range: {field: id, max: 1}}, {name: there, not_null: id}, {rows: {min: 2}}]
`

const formulaScript = `
include: [part.yaml]
nodes:
  calc:
    type: table_custom_tfm_table
    custom_proc_type: py_calc
    r: {table: ids}
    p: {python_code_urls: [twice.py], calculated_fields: {n: {expression: twice(r.id), type: int}}}
    w: {name: sums, fields: {n: {expression: p.n, type: int}}}
`

const sweptScript = `
nodes:
  load: {type: file_table, r: {urls: ["{file}.csv"], types: {id: int}}, w: ids}
  more: {type: table_table, r: ids, w: {name: more, fields: {id: r.id, twice: {expression: r.id * 2, type: int}}}}
`

// Commands print the same through a server as here, paths aside.
func TestThroughAServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "jobs"), 0o700))
	for name, text := range map[string]string{"script.yaml": servedScript, "jobs/named.yaml": checkedScript,
		"jobs/in.csv": "id\n1\n", "in.csv": "id\n1\n2\n7\n", "bad.csv": "id\nx\n",
		"bad.yaml": strings.Replace(servedScript, "in.csv", "bad.csv", 1), "sweep.yaml": sweptScript, "checked.yaml": checkedScript,
		"wrong.yaml": strings.Replace(servedScript, "file_table", "file_tabel", 1), "python.yaml": formulaScript,
		"twice.py":   "def twice(n):\n    return n * 2\n",
		"part.yaml":  "nodes:\n  load: {type: file_table, r: {urls: [in.csv], types: {id: int}}, w: ids}\n",
		"serve.yaml": "version: 1\nworkspaces: {main: {scripts: [., jobs], parameters: true}, sweeps: {scripts: [.]}}\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	s := serverUser{t: t, dir: dir}
	s.run(false, "run", "sweep.yaml", "--matrix", "file=in,bad", "--workspace", "sweeps")
	s.run(false, "run", "bad.yaml")
	s.run(false, "run", "script.yaml")
	address, ask := startServer(t, dir, "--config", "serve.yaml")
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

	for _, args := range [][]string{{"cost", "--json"}, {"history", "--json"}, {"show", "1", "--json"}} {
		out, _ = s.run(true, args...)
		require.Contains(t, out, `"usd":0.0`, args)
	}
	s.requireSame([]string{"history"}, []string{"cost"}, []string{"cost", "last", "1"}, []string{"cost", "--by", "node"},
		[]string{"cost", "--by", "workspace", "--since", "2d"}, []string{"runs"},
		[]string{"history", "--all", "--limit", "1"}, []string{"show", "1"},
		[]string{"show", "1", "--workers"}, []string{"show", "1", "--workers", "--json"}, []string{"show", "1", "--json"},
		[]string{"show", "last"}, []string{"show", "1", "load"}, []string{"show", "1", "load", "--batch", "0"},
		[]string{"show", "last~1"}, []string{"why"}, []string{"why", "1"}, []string{"capacity", "explain", "1"},
		[]string{"capacity", "explain", "1", "--json"}, []string{"capacity", "explain", "1", "--svg"},
		[]string{"audit"}, []string{"audit", "2"},
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
	s.requireSame([]string{"matrix", "--workspace", "sweeps"}, []string{"matrix", "last", "--workspace", "sweeps"},
		[]string{"check", "script.yaml"}, []string{"check", "script.yaml", "--run", "1"},
		[]string{"check", "checked.yaml", "--run", "2"}, []string{"check", "checked.yaml", "--run", "2", "--node", "lod"},
		[]string{"check", "checked.yaml", "--run", "2", "--limit", "0"}, []string{"check", "sweep.yaml", "--param", "file=in"},
		[]string{"validate", "script.yaml"}, []string{"validate", "wrong.yaml"}, []string{"validate", "bad.yaml"},
		[]string{"validate", "sweep.yaml", "--param", "file=in"}, []string{"validate", "sweep.yaml"},
		[]string{"explain", "script.yaml"}, []string{"explain", "wrong.yaml"}, []string{"explain", "script.yaml", "--node", "keep"},
		[]string{"explain", "python.yaml"}, []string{"explain", "script.yaml", "--node", "kep"},
		[]string{"explain", "sweep.yaml", "--param", "file=in", "--workspace", "sweeps"},
		[]string{"check", "bad.yaml", "--run", "9"},
		[]string{"matrix", "lost", "--workspace", "sweeps"}, []string{"lineage", "kept.id"}, []string{"lineage", "out.csv.id"},
		[]string{"lineage", "in.csv.id", "--run", "2"}, []string{"lineage", "kept.idd"}, []string{"lineage", "kept"},
		[]string{"lineage", "more.twice", "--run", "1", "--workspace", "sweeps"},
		[]string{"lineage", "more.twice", "--run", "1", "--workspace", "sweeps", "--graph", "dot"})
	s.requireSameDiagnosis("--state", ".thalweg")
	s.requireSameFiles()
	out, code = s.run(true, "cluster", "status")
	require.Equal(t, exitUsers, code, out)
	require.Contains(t, out, "over a state directory, which has no fleet")
	out, code = s.run(true, "check", "nothing.yaml")
	require.Equal(t, exitUsers, code, out)
	require.Contains(t, out, `has no script "nothing.yaml"`)
	here, code := s.run(false, "check", "jobs/named.yaml", "--run", "2")
	there, codeThere := s.run(true, "check", "named.yaml", "--run", "2")
	require.Equal(t, strings.ReplaceAll(here, "jobs/", ""), there, "a script that only the server has")
	require.Equal(t, code, codeThere)
	here, _ = s.run(false, "events", "2")
	there, _ = s.run(true, "events", "2")
	require.Equal(t, here, there)
	out, code = s.run(true, "attach", "2", "--server", address)
	require.Equal(t, exitWaiting, code, out)
	require.Contains(t, out, "--comment TEXT --answer least=1 --server "+address, "roles are the server's")
	here, _ = s.run(false, "events", "1", "--follow", "--after", "2")
	there, _ = s.run(true, "events", "1", "--follow", "--after", "2")
	require.Equal(t, here, there)

	for _, args := range [][]string{{"run", "script.yaml", "--memory", "1GB"}, {"worker"}, {"sql"},
		{"sql", "FROM ids", "--limit", "0"}, {"sql", "FROM ids", "--format", "csv", "--limit", "1001"},
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
var momentary = regexp.MustCompile(`"elapsed_ms":\d+|\d+(\.\d+)? ?(ms|s|min|h)\b( \d+ (ms|s|min))?|for \d+ seconds|\(\d+(\.\d+)? m?s\)`)

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
	here := []string{"test", "init", "infer", "dev", "graph", "fmt", "schema",
		"serve", "serve-table", "worker", "slot", "peek", "simulate", "capacity study", "capacity table",
		"capacity plan", "capacity compare", "bench compare", "bench host", "bench pipeline",
		"bench store", "scheduler", "completion", "__complete", "version"}
	names := map[string]bool{}
	for _, leaf := range k.Model.Leaves(true) {
		name := askedAs(leaf)
		names[name] = true
		require.NotEqual(t, answered(name), slices.Contains(here, name), name)
		if !answered(name) {
			requireRefusal(t, leaf)
		}
	}
	for name := range throughServer {
		require.True(t, names[name], name)
	}
}

// A command that works here says so before it says what else is missing.
func TestServerIsRefusedFirst(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"cluster", "init"}, {"test"}, {"serve", "--nothing"}} {
		a := &console{}
		_, _, _, err := a.parse(t.Context(), append([]string{args[0]}, append(args[1:], "--server=http://127.0.0.1:1")...))
		if args[len(args)-1] == "--nothing" {
			require.ErrorContains(t, err, "no flag --nothing") // what is behind it was not read
			continue
		}
		require.EqualError(t, err, "thalweg "+strings.Join(args, " ")+" works here, not through a server")
	}
}

// requireRefusal requires a command that works here to refuse a server in one sentence.
func requireRefusal(t *testing.T, leaf *kong.Node) {
	t.Helper()
	value := func(v *kong.Value) string {
		if v.Enum != "" {
			return v.EnumSlice()[0]
		}
		return "1"
	}
	args := strings.Fields(leaf.FullPath())[1:]
	for _, group := range leaf.AllFlags(false) {
		for _, f := range group {
			if f.Required {
				args = append(args, "--"+f.Name+"="+value(f.Value))
			}
		}
	}
	for _, p := range leaf.Positional {
		if p.Required {
			args = append(args, value(p))
		}
	}
	a, c := &console{}, &cli{}
	k, err := newParser(t.Context(), a, c, func(int) {})
	require.NoError(t, err)
	kctx, err := k.Parse(append(args, "--server=http://127.0.0.1:1"))
	require.NoError(t, err, leaf.FullPath())
	a.typed = typedFlags(kctx)
	err = c.settleServer(a, kctx)
	require.EqualError(t, err, leaf.FullPath()+" works here, not through a server")
	require.NotEmpty(t, fault.Of(err).Hint)
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

// The first walk of docs/serving.md is run as it is printed, but for what the reader fills in.
func TestFirstWalk(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl here")
	}
	page, err := os.ReadFile("../../docs/serving.md")
	require.NoError(t, err)
	_, walk, is := strings.Cut(string(page), "\n## A first walk\n")
	require.True(t, is)
	walk, _, _ = strings.Cut(walk, "\n## ")
	block := func(language string) string {
		found := regexp.MustCompile("(?ms)^```" + language + "\n(.*?)^```$").FindStringSubmatch(walk)
		require.Len(t, found, 2, "the walk has no block of "+language)
		return found[1]
	}
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(dir, "examples/orders"), os.DirFS("../../examples/orders")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "serve.yaml"), []byte(block("yaml")), 0o600))
	address, start := newServer(t, dir, "--worker", "--config", "serve.yaml")

	steps := block("sh")
	wait := "until curl -H \"$A\" $W/runs/1 | grep -q '\"status\":\"complete\"'; do sleep 0.1; done\n"
	for _, r := range [][2]string{
		{"http://127.0.0.1:8431", address}, {"START", start},
		{"curl -b jar -H \"$J\" $S/v1/tokens", "curl -o token -b jar -H \"$J\" $S/v1/tokens"},
		{"tw_…", `$(sed 's/.*"secret":"\([^"]*\)".*/\1/' token)`},
		{`curl -H "$A" -N -m 5 `, wait + `! curl -H "$A" -N -m 5 `},                          // it has no end
		{`curl -H "$A" -H "$J" $W/runs/1/gates/`, `! curl -H "$A" -H "$J" $W/runs/1/gates/`}, // the script has none
		{"curl ", "curl --fail-with-body -sS "},
	} {
		require.Contains(t, steps, r[0])
		steps = strings.ReplaceAll(steps, r[0], r[1])
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-e")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(steps)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), `{"script":"short.yaml"}`)
	require.Contains(t, string(out), "event: run_completed")
	require.Contains(t, string(out), `["o-1","Anna Berg",`)
	require.Contains(t, string(out), "its script asks for no approval")
	require.FileExists(t, filepath.Join(dir, "demo/orders/orders.csv"))
}
