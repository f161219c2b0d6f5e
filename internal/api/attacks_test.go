package api_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app"
	"thalweg/internal/app/access"
	"thalweg/internal/base/allow"
	"thalweg/internal/test/effort"
)

// attacksMin is the least number of attacks that this suite tries.
const attacksMin = 80

// canary is in files that no answer may show.
const canary = "canary-424242"

// attack is a request that somebody hostile sends, and what must come of it.
type attack struct {
	threat, name string
	as           string // role in main; "other": manager of another workspace; "": nobody
	method, path string // "": GET
	body         string
	header       []string // names and values; Content-Type is JSON unless it is here
	want         int      // status
	has          string   // in the answer
}

// lab is a server that is attacked, with who attacks it.
type lab struct {
	*served
	clients map[string]*client
}

func newLab(t *testing.T) *lab {
	t.Helper()
	t.Setenv("AWS_SECRET_ACCESS_KEY", canary)
	s := serve(t)
	s.file("hidden.txt", canary)
	s.file("in.csv", "id,name\n1,<script>alert(1)</script>\n2,=HYPERLINK(\"http://evil\")\n")
	s.file("env.yaml", "nodes: {load: {type: file_table, r: {urls: [\"{env.AWS_SECRET_ACCESS_KEY}.csv\"], "+
		"types: {id: int}}, w: ids}}")
	s.run()
	s.file("own.yaml", strings.ReplaceAll(script, "ids", "mine"))
	_, err := s.app.Run(t.Context(), app.ProcessCaller(), app.RunOptions{Workspace: "own",
		ScriptPath: filepath.Join(s.dir, "own.yaml")})
	require.NoError(t, err)
	l := &lab{s, map[string]*client{"": s.nobody(),
		"other": s.as("mallory", access.Grant{Workspace: "other", Role: access.Manager},
			access.Grant{Workspace: "own", Role: access.Manager})}}
	for _, role := range []access.Role{access.Viewer, access.Reader, access.Operator, access.Manager} {
		l.clients[string(role)] = s.as("a-"+string(role), access.Grant{Workspace: "main", Role: role})
	}
	l.clients["root"] = s.as("root", access.Grant{Workspace: "*", Role: access.Manager})
	return l
}

// try sends an attack, and follows no redirect.
func (l *lab) try(t *testing.T, a attack) answer {
	t.Helper()
	method := a.method
	if method == "" {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(t.Context(), method, l.url+a.path, strings.NewReader(a.body))
	require.NoError(t, err)
	req.Header = l.clients[a.as].header.Clone()
	if a.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(a.header); i += 2 {
		if req.Header.Set(a.header[i], a.header[i+1]); a.header[i] == "Host" {
			req.Host = a.header[i+1]
		}
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return answer{t, res.StatusCode, res.Header, string(text)}
}

// harmless is what each answer of the server must be, whatever was asked.
func (l *lab) harmless(t *testing.T, a answer) {
	t.Helper()
	require.NotContains(t, a.text, canary)
	require.NotContains(t, a.text, "root:x:0")
	require.NotContains(t, a.text, "goroutine ")
	require.Equal(t, "nosniff", a.header.Get("X-Content-Type-Options"))
	require.Contains(t, a.header.Get("Content-Security-Policy"), "default-src 'none'")
	require.NotContains(t, a.header.Get("Content-Type"), "html")
	require.Empty(t, a.header.Get("Access-Control-Allow-Origin"))
	require.NotEqual(t, http.StatusInternalServerError, a.status, a.text)
}

const (
	stopOrder = `{"kind":"stop"}`
	orders    = ws + "/runs/1/orders"
	table     = ws + "/runs/1/tables/ids"
)

// Each attack is answered as its entry says, and harms nobody.
func TestAttacks(t *testing.T) {
	effort.Unraced(t)
	l := newLab(t)
	all := attacksByRequest(l)
	raw := rawAttacks()
	reach := reachAttacks()
	require.GreaterOrEqual(t, len(all)+len(raw)+len(reach), attacksMin)
	seen := map[string]bool{}
	for _, a := range all {
		name := a.threat + ": " + a.name
		require.False(t, seen[name], "%s is there twice", name)
		seen[name] = true
		t.Run(name, func(t *testing.T) {
			got := l.try(t, a)
			require.Equal(t, a.want, got.status, got.text)
			require.Contains(t, got.text, a.has)
			if got.status != http.StatusTemporaryRedirect && got.status != http.StatusMovedPermanently {
				l.harmless(t, got)
			}
		})
	}
	for name, a := range raw {
		t.Run(name, func(t *testing.T) { l.tryRaw(t, a) })
	}
	for name, a := range reach {
		t.Run("SSRF: "+name, func(t *testing.T) {
			p := &allow.Policy{Hosts: []string{"open.example.com"}}
			require.Error(t, p.Reach(a[0], a[1]))
		})
	}
	shown := l.clients["root"].get(ws + "/runs/1")
	require.Contains(t, shown.text, `"status":"complete"`, "no attack has reached the run")
	t.Logf("%d attacks", len(all)+len(raw)+len(reach))
}

func attacksByRequest(l *lab) (all []attack) {
	for _, of := range [][]attack{rebinding(l), crossSite(), otherWorkspaces(), injectedSQL(), badBodies(), badCredentials(),
		badPaths(), secretsAsked(), hostileTexts(),
		decisions()} {
		all = append(all, of...)
	}
	return all
}

func rebinding(l *lab) (all []attack) {
	address := strings.TrimPrefix(l.url, "http://")
	_, port, _ := net.SplitHostPort(address)
	for _, host := range []string{"evil.example", "evil.example:" + port, "127.0.0.1.evil.example:" + port,
		"localhost.evil.example", "0.0.0.0:" + port, "[::1]:" + port, "2130706433:" + port, "0x7f.1:" + port, "127.0.0.1",
		"127.0.0.1:1", "127.0.0.1.:" + port} {
		all = append(all, attack{threat: "rebinding", name: host, as: "reader", path: ws + "/runs",
			header: []string{"Host", host}, want: http.StatusMisdirectedRequest})
	}
	for _, name := range []string{"X-Forwarded-Host", "Forwarded", "X-Original-Host"} {
		all = append(all, attack{threat: "rebinding", name: name + " is not believed", as: "reader", path: ws + "/runs",
			header: []string{"Host", "evil.example", name, address}, want: http.StatusMisdirectedRequest})
	}
	return all
}

func crossSite() (all []attack) {
	for name, header := range map[string][]string{
		"origin":             {"Origin", "http://evil.example"},
		"null origin":        {"Origin", "null"},
		"another port":       {"Origin", "http://127.0.0.1:1"},
		"fetch metadata":     {"Sec-Fetch-Site", "cross-site"},
		"a sibling's page":   {"Sec-Fetch-Site", "same-site"},
		"text/plain of evil": {"Origin", "http://evil.example", "Content-Type", "text/plain"},
	} {
		all = append(all, attack{threat: "cross-site", name: name, as: "operator", method: "POST", path: orders,
			body: stopOrder, header: header, want: http.StatusForbidden})
	}
	for _, kind := range []string{"text/plain", "text/plain;charset=UTF-8", "application/x-www-form-urlencoded",
		"multipart/form-data; boundary=x", "application/xml", "text/plain; application/json", "application/yaml"} {
		all = append(all, attack{threat: "cross-site", name: "form as " + kind, as: "operator", method: "POST", path: orders,
			body: stopOrder, header: []string{"Content-Type", kind}, want: http.StatusUnsupportedMediaType})
	}
	for _, method := range []string{"PUT", "PATCH", "DELETE", "TRACE"} {
		all = append(all, attack{threat: "method", name: method, as: "operator", method: method, path: orders,
			want: http.StatusMethodNotAllowed})
	}
	return append(all,
		attack{threat: "method", name: "override by a header", as: string(access.Viewer), path: ws + "/runs",
			header: []string{"X-HTTP-Method-Override", "POST"}, want: http.StatusOK, has: `"runs"`},
		attack{threat: "method", name: "override by a parameter", as: string(access.Viewer), path: ws + "/runs?_method=DELETE",
			want: http.StatusUnprocessableEntity})
}

func otherWorkspaces() (all []attack) {
	for name, path := range map[string]string{"runs": ws + "/runs", "a run": ws + "/runs/1", "rows": table + "/rows",
		"a download": table + "/download", "the audit": ws + "/audit",
		"an encoded name": "/v1/workspaces/other%2f..%2fmain/runs/1"} {
		all = append(all, attack{threat: "other workspace", name: name, as: "other", path: path,
			want: http.StatusForbidden})
	}
	return append(all,
		attack{threat: "other workspace", name: "topic", as: "other", path: "/v1/stream?topics=main/1",
			want: http.StatusForbidden},
		attack{threat: "other workspace", name: "topic among one's own", as: "other",
			path: "/v1/stream?topics=other,main", want: http.StatusForbidden},
		attack{threat: "other workspace", name: "a run's number in one's own", as: "other",
			path: "/v1/workspaces/other/runs/1", want: http.StatusNotFound},
		attack{threat: "other workspace", name: "rows in one's own", as: "other",
			path: "/v1/workspaces/other/runs/1/tables/ids/rows", want: http.StatusNotFound},
		attack{threat: "other workspace", name: "a query in one's own", as: "other", method: "POST",
			path: "/v1/workspaces/own/queries", body: `{"sql":"SELECT * FROM run1.ids"}`,
			want: http.StatusUnprocessableEntity, has: "ids"},
		attack{threat: "other workspace", name: "a query of one's own is answered", as: "other", method: "POST",
			path: "/v1/workspaces/own/queries", body: `{"sql":"SELECT count(*) AS n FROM run1.mine"}`,
			want: http.StatusOK, has: `"2"`},
		attack{threat: "other workspace", name: "many runs", as: "other", method: "POST", path: ws + "/orders:bulk",
			body: `{"kind":"stop","runs":[1]}`, want: http.StatusForbidden},
		attack{threat: "other workspace", name: "a job", as: "other", path: "/v1/jobs/AAAAAAAAAAAAAAAAAAAAAAAAAA",
			want: http.StatusNotFound},
		attack{threat: "other workspace", name: "a grant of one's own", as: "operator", method: "POST", path: "/v1/tokens",
			body: `{"name":"x","grants":[{"workspace":"*","role":"admin"}],"days":1}`, want: http.StatusForbidden},
		attack{threat: "other workspace", name: "a user with all", as: string(access.Manager), method: "PUT",
			path: "/v1/users/mallory",
			body: `{"grants":[{"workspace":"*","role":"admin"}]}`, want: http.StatusForbidden},
		attack{threat: "other workspace", name: "metrics of all", as: "other", path: "/metrics", want: http.StatusForbidden})
}

func injectedSQL() (all []attack) {
	for name, sql := range map[string]string{
		"COPY out":         "COPY ids TO '/tmp/x.csv'",
		"COPY in":          "COPY ids FROM '/etc/passwd'",
		"ATTACH":           "ATTACH '.thalweg/state.db' AS s (TYPE sqlite)",
		"INSTALL":          "INSTALL httpfs",
		"LOAD":             "LOAD httpfs",
		"second statement": "SELECT 1; COPY ids TO '/tmp/x.csv'",
		"behind a comment": "SELECT 1 -- \n; ATTACH 'x.db'",
		"read_csv":         "SELECT * FROM read_csv('/etc/passwd')",
		"read_text":        "SELECT * FROM read_text('/etc/passwd')",
		"environ":          "SELECT * FROM read_blob('/proc/self/environ')",
		"glob":             "SELECT * FROM glob('/etc/*')",
		"file as a table":  "SELECT * FROM '/etc/passwd'",
		"metadata address": "SELECT * FROM read_json('http://169.254.169.254/latest/')",
		"in a subquery":    "SELECT (SELECT content FROM read_text('/etc/passwd')) FROM ids",
		"in a CTE":         "WITH x AS (SELECT * FROM read_text('/etc/passwd')) SELECT * FROM x",
		"by query()":       "SELECT * FROM query('SELECT * FROM read_text(''/etc/passwd'')')",
		"SET":              "SET memory_limit = '100GB'",
		"unlock":           "SET enable_external_access = true",
		"PRAGMA":           "PRAGMA database_list",
		"CALL":             "CALL pragma_version()",
		"CREATE":           "CREATE TABLE x AS SELECT 1",
		"MACRO":            "CREATE MACRO m() AS 1",
		"INSERT":           "INSERT INTO ids VALUES (3, 'x')",
		"EXPORT":           "EXPORT DATABASE '/tmp/x'",
		"variable":         "SELECT getenv('AWS_SECRET_ACCESS_KEY')",
		"NUL":              "SELECT '\x00' FROM nothing",
		"nesting":          "SELECT " + strings.Repeat("(", 20_000) + "1" + strings.Repeat(")", 20_000),
	} {
		all = append(all, attack{threat: "SQL", name: name, as: "reader", method: "POST", path: ws + "/queries",
			body: jsonOf("sql", sql), want: http.StatusUnprocessableEntity})
	}
	for name, sql := range map[string]string{"memory": "SELECT list(range) FROM range(1000000000)",
		"multiplying joins": "SELECT list(a.range::VARCHAR || b.range) FROM range(100000) a, range(100000) b"} {
		all = append(all, attack{threat: "SQL", name: name, as: "reader", method: "POST", path: ws + "/queries",
			body: jsonOf("sql", sql), want: http.StatusUnprocessableEntity, has: "more memory than it is given"})
	}
	for name, where := range map[string]string{
		"union":            "1=1) UNION ALL SELECT 1, content FROM read_text('/etc/passwd') --",
		"second statement": "1=1; COPY ids TO '/tmp/x.csv'",
		"subquery":         "id = (SELECT 1 FROM read_text('/etc/passwd'))",
	} {
		all = append(all, attack{threat: "SQL", name: name + " in where", as: "reader",
			path: table + "/rows?where=" + url.QueryEscape(where), want: http.StatusUnprocessableEntity})
	}
	return append(all,
		attack{threat: "SQL", name: "column of sort", as: "reader", path: table + "/rows?sort=" +
			url.QueryEscape(`id" DESC; ATTACH 'x`), want: http.StatusNotFound},
		attack{threat: "SQL", name: "name of a column", as: "reader", path: table + "/rows?columns=" +
			url.QueryEscape(`id" FROM read_text('/etc/passwd') --`), want: http.StatusNotFound},
		attack{threat: "SQL", name: "name of a table", as: "reader", path: ws + "/runs/1/tables/" +
			url.PathEscape(`ids" UNION SELECT 1 --`) + "/rows", want: http.StatusNotFound},
		attack{threat: "SQL", name: "by a viewer", as: string(access.Viewer), method: "POST", path: ws + "/queries",
			body: `{"sql":"SELECT 1"}`, want: http.StatusForbidden})
}

// jsonOf is an object with one member.
func jsonOf(name, value string) string {
	text, _ := json.Marshal(map[string]string{name: value})
	return string(text)
}

func badBodies() []attack {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write(bytes.Repeat([]byte(" "), 64<<20))
	_ = z.Close()
	post := func(name, body string, want int, header ...string) attack {
		return attack{threat: "body", name: name, as: "operator", method: "POST", path: orders, body: body, header: header,
			want: want}
	}
	return []attack{
		post("gzip bomb", bomb.String(), http.StatusBadRequest, "Content-Encoding", "gzip"),
		post("too long", `{"kind":"stop","reason":"`+strings.Repeat("x", 2<<20)+`"}`, http.StatusRequestEntityTooLarge),
		post("deep objects", strings.Repeat(`{"a":`, 50_000), http.StatusBadRequest),
		post("deep lists", strings.Repeat(`[`, 500_000), http.StatusBadRequest),
		post("huge number", `{"kind":"stop","runs":1e999999}`, http.StatusBadRequest),
		post("no UTF-8", "{\"kind\":\"st\xffop\"}", http.StatusBadRequest),
		post("kinds twice, the second unknown", `{"kind":"stop","kind":"burn"}`, http.StatusBadRequest),
		post("null", `{"kind":"stop","reason":null}`, http.StatusUnprocessableEntity),
		post("null for a list", `{"kind":"retry","batches":[{"node":null,"from":0,"to":0}]}`, http.StatusUnprocessableEntity),
		post("a name in other letters", `{"kind":"stop","Reason":"x"}`, http.StatusUnprocessableEntity),
		post("a name twice, in other letters", `{"kind":"stop","KIND":"pause"}`, http.StatusUnprocessableEntity),
		post("another type", `{"kind":["stop"]}`, http.StatusUnprocessableEntity),
		post("prototype", `{"kind":"stop","__proto__":{"admin":true}}`, http.StatusUnprocessableEntity),
		post("trailing text", stopOrder+stopOrder, http.StatusBadRequest),
		{threat: "body", name: "number beyond 64 bits", as: "reader", method: "POST", path: ws + "/diffs",
			body: `{"table":"ids","run_a":99999999999999999999,"run_b":1}`, want: http.StatusUnprocessableEntity},
	}
}

func badCredentials() []attack {
	me := func(name string, header ...string) attack {
		return attack{threat: "credentials", name: name, path: "/v1/me", header: header, want: http.StatusUnauthorized}
	}
	return []attack{
		me("none"), me("forged token", "Authorization", "Bearer tw_"+strings.Repeat("A", 43)),
		me("empty token", "Authorization", "Bearer "), me("basic", "Authorization", "Basic cm9vdDpyb290"),
		me("chosen session", "Cookie", "thalweg-test=chosen"), me("empty session", "Cookie", "thalweg-test="),
		me("cookie of another port", "Cookie", "thalweg-8431="+strings.Repeat("A", 43)),
		me("names of a proxy", "X-Forwarded-User", "root", "Remote-User", "root"),
		me("SQL in a token", "Authorization", "Bearer tw_' OR 1=1 --"),
		{threat: "credentials", name: "token in the URL", path: "/v1/me?access_token=tw_x", want: http.StatusUnauthorized},
		{threat: "credentials", name: "empty start", method: "POST", path: "/v1/login", body: `{"start":""}`,
			want: http.StatusUnauthorized},
		{threat: "credentials", name: "a name of lines", as: "root", method: "PUT",
			path: "/v1/users/eve%0alevel=INFO", body: `{"grants":[]}`, want: http.StatusUnprocessableEntity},
		{threat: "credentials", name: "an eternal token", as: "reader", method: "POST", path: "/v1/tokens",
			body: `{"name":"x","grants":[{"workspace":"main","role":"reader"}],"days":100000}`,
			want: http.StatusUnprocessableEntity},
	}
}

func badPaths() (all []attack) {
	for name, c := range map[string]struct {
		path string
		want int
	}{
		"encoded steps in a script":  {ws + "/scripts/..%2f..%2fetc%2fpasswd", http.StatusForbidden},
		"encoded steps in a name":    {"/v1/workspaces/..%2f..%2fetc/runs", http.StatusForbidden},
		"NUL in a node":              {ws + "/runs/1/nodes/%00", http.StatusNotFound},
		"no UTF-8 in a node":         {ws + "/runs/1/nodes/%ff%fe", http.StatusNotFound},
		"run beyond 64 bits":         {ws + "/runs/99999999999999999999", http.StatusUnprocessableEntity},
		"negative run":               {ws + "/runs/-1", http.StatusUnprocessableEntity},
		"SQL in a cursor":            {ws + "/runs?cursor=1%27--", http.StatusUnprocessableEntity},
		"cursor of another shape":    {ws + "/runs?cursor=AAAA", http.StatusUnprocessableEntity},
		"limit beyond":               {ws + "/runs?limit=1000000", http.StatusUnprocessableEntity},
		"empty time":                 {ws + "/runs?until=", http.StatusUnprocessableEntity},
		"empty number":               {ws + "/runs?limit=", http.StatusUnprocessableEntity},
		"empty text":                 {ws + "/runs?text=", http.StatusOK},
		"unknown parameter":          {ws + "/runs?admin=true", http.StatusUnprocessableEntity},
		"file beside the operations": {"/.thalweg/state.db", http.StatusNotFound},
		"debug":                      {"/debug/pprof/", http.StatusNotFound},
	} {
		all = append(all, attack{threat: "path", name: name, as: "operator", path: c.path, want: c.want})
	}
	return all
}

func secretsAsked() []attack {
	start := func(name, script string, want int) attack {
		return attack{threat: "secrets and places", name: name, as: "operator", method: "POST", path: ws + "/runs",
			body: fmt.Sprintf(`{"script":%q,"dry_run":true}`, script), want: want}
	}
	return []attack{
		start("variable in a failure", "env.yaml", http.StatusUnprocessableEntity),
		start("script above", "../script.yaml", http.StatusNotFound),
		start("absolute script", "/etc/passwd", http.StatusNotFound),
		start("state as a script", ".thalweg/state.db", http.StatusNotFound),
		start("configuration as a script", "hidden.txt", http.StatusNotFound),
		{threat: "secrets and places", name: "parameters that are not allowed", as: "operator", method: "POST",
			path: ws + "/runs", body: `{"script":"script.yaml","params":{"a":"/etc/passwd"}}`, want: http.StatusForbidden},
		{threat: "secrets and places", name: "text of a script by an operator", as: "operator", method: "POST",
			path: ws + "/runs", body: `{"text":"nodes: {}"}`, want: http.StatusForbidden},
		{threat: "secrets and places", name: "trace of a file elsewhere", as: string(access.Viewer), method: "POST",
			path: ws + "/traces", body: `{"table":"/etc/passwd"}`, want: http.StatusForbidden},
	}
}

func hostileTexts() []attack {
	get := func(name, path, has string) attack {
		return attack{threat: "hostile text", name: name, as: "reader", path: path, want: http.StatusOK, has: has}
	}
	return []attack{
		get("script in a cell", table+"/rows", "alert(1)"),
		get("formula in a spreadsheet's CSV", table+"/download?spreadsheet=true", `'=HYPERLINK`),
		get("cell in NDJSON", table+"/download?format=ndjson", "alert(1)"),
		get("distribution", table+"/columns/name/distribution", "alert(1)"),
		{threat: "hostile text", name: "huge cell is cut", as: "reader", method: "POST", path: ws + "/queries",
			body: `{"sql":"SELECT repeat('x', 10000000) AS x"}`, want: http.StatusOK, has: "xxx"},
		{threat: "hostile text", name: "script in a problem", as: "reader",
			path: ws + "/runs/1/nodes/" + url.PathEscape("<script>alert(1)<"), want: http.StatusNotFound},
	}
}

func decisions() []attack {
	decide := func(name, as, body string, want int) attack {
		return attack{threat: "approval", name: name, as: as, method: "POST", path: ws + "/runs/1/gates/g/decision",
			body: body, want: want}
	}
	return []attack{
		decide("by an operator", "operator", `{"approve":true,"digest":"abcdef"}`, http.StatusForbidden),
		decide("by who is of another workspace", "other", `{"approve":true,"digest":"abcdef"}`, http.StatusForbidden),
		decide("role by text", "root", `{"approve":true,"digest":"abcdef","role":"sales"}`, http.StatusUnprocessableEntity),
		decide("actor by text", "root", `{"approve":true,"digest":"abcdef","actor":"ann"}`, http.StatusUnprocessableEntity),
		decide("verified by text", "root", `{"approve":true,"digest":"abcdef","verified":true}`,
			http.StatusUnprocessableEntity),
		decide("of what was not seen", "root", `{"approve":true}`, http.StatusUnprocessableEntity),
		decide("of anything", "root", `{"approve":true,"digest":""}`, http.StatusUnprocessableEntity),
	}
}

// rawAttacks are bytes that no client of HTTP sends; {host} is the server. Their status is 4xx, or the connection ends.
func rawAttacks() map[string]string {
	const get = "GET /v1/me HTTP/1.1\r\nHost: {host}\r\n"
	const post = "POST /v1/login HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
	return map[string]string{
		"smuggling: two lengths":           post + "Content-Length: 2\r\nContent-Length: 40\r\n\r\n{}",
		"smuggling: unknown coding":        post + "Transfer-Encoding: xchunked\r\n\r\n{}",
		"smuggling: negative length":       post + "Content-Length: -1\r\n\r\n{}",
		"smuggling: signed length":         post + "Content-Length: +2\r\n\r\n{}",
		"smuggling: space before colon":    post + "Content-Length : 2\r\n\r\n{}",
		"smuggling: bad chunk":             post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
		"a chunk that is cut off":          post + "Transfer-Encoding: chunked\r\n\r\n5\r\n{}\r\n0\r\n\r\n",
		"smuggling: two hosts":             get + "Host: evil.example\r\n\r\n",
		"smuggling: no host":               "GET /v1/me HTTP/1.1\r\n\r\n",
		"smuggling: absolute form of evil": "GET http://evil.example/v1/me HTTP/1.1\r\nHost: {host}\r\n\r\n",
		"smuggling: NUL in a header":       get + "X-A: a\x00b\r\n\r\n",
		"smuggling: HTTP/9":                "GET / HTTP/9.9\r\nHost: {host}\r\n\r\n",
		"flood: a header of 1 MiB":         get + "X-A: " + strings.Repeat("a", 1<<20) + "\r\n\r\n",
		"flood: 20,000 headers":            get + strings.Repeat("X-A: a\r\n", 20_000) + "\r\n",
		"flood: a path of 1 MiB":           "GET /" + strings.Repeat("a", 1<<20) + " HTTP/1.1\r\nHost: {host}\r\n\r\n",
		"slow: a header without end":       get + "X-A: a",
	}
}

// tryRaw sends bytes to the server as it is served to others, with its limits of connections.
func (l *lab) tryRaw(t *testing.T, text string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	end := l.serveOn(t, ln)
	defer end()
	c, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(effort.Patience)))
	_, _ = io.WriteString(c, strings.ReplaceAll(text, "{host}", strings.TrimPrefix(l.url, "http://")))
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil { // cut off, and not because this test has waited long enough
		var timeout net.Error
		require.False(t, errors.As(err, &timeout) && timeout.Timeout(), "the connection is kept")
		return
	}
	defer res.Body.Close()
	require.GreaterOrEqual(t, res.StatusCode, 400, "it is refused")
	require.NotEqual(t, http.StatusInternalServerError, res.StatusCode, "it is none of our failures")
	require.True(t, res.Close || res.StatusCode == http.StatusMisdirectedRequest, "nothing behind it is read as a request")
}

// serveOn serves on a listener until end is called.
func (l *lab) serveOn(t *testing.T, ln net.Listener) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.api.Serve(ctx, ln, time.Second) }()
	return func() {
		cancel()
		require.NoError(t, <-done)
	}
}

// reachAttacks are names that are allowed, or not, and what they are resolved to.
func reachAttacks() map[string][2]string {
	all := map[string][2]string{"no address": {"open.example.com:80", "evil"}}
	for _, ip := range []string{"127.0.0.1", "169.254.169.254", "[::1]", "[::ffff:169.254.169.254]", "[fe80::1%25eth0]",
		"[fd00:ec2::254]", "100.100.100.200", "0.0.0.0", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::]", "224.0.0.1", "[::]"} {
		all["changed DNS to "+ip] = [2]string{"open.example.com:80", ip + ":80"}
	}
	return all
}
