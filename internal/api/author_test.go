package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/api"
	"thalweg/internal/app"
	"thalweg/internal/app/access"
	"thalweg/internal/app/view"
	"thalweg/internal/test/effort"
)

const secretRow = "424242"

// authorOf serves placesOf with a registered script, and an author and an operator of it.
func authorOf(t *testing.T) (s *served, author, operator *client) {
	s = placesOf(t)
	s.file("jobs/ids.yaml", textOf("../in/a.csv", "../out/ids.csv"))
	s.file("in/a.csv", "id\n1\n2\n")
	s.file("other/secret.csv", "id\n"+secretRow+"\n")
	s.file("other/secret.yaml", "password-"+secretRow+": [\n")
	return s, s.as("ann", access.Grant{Workspace: "main", Role: access.Writer}),
		s.as("ben", access.Grant{Workspace: "main", Role: access.Operator})
}

func textOf(from, to string) string {
	return strings.NewReplacer("{from}", from, "{to}", to).Replace(anyScript)
}

type body = map[string]any

// jobOf waits for a job to end.
func (c *client) jobOf(a answer) api.Job {
	c.t.Helper()
	var j api.Job
	a.into(http.StatusAccepted, &j)
	require.Eventually(c.t, func() bool {
		c.get("/v1/jobs/"+j.ID).into(http.StatusOK, &j)
		return j.Ended != nil
	}, effort.Patience, 10*time.Millisecond)
	return j
}

func (c *client) statusOf(a answer) string {
	c.t.Helper()
	var began struct{ Run int64 }
	a.into(http.StatusCreated, &began)
	var run runState
	require.Eventually(c.t, func() bool {
		c.get(ws+"/runs/"+strconv.FormatInt(began.Run, 10)).into(http.StatusOK, &run)
		return run.Status == "complete" || run.Status == "failed"
	}, effort.Patience, 20*time.Millisecond)
	return run.Status
}

// Texts are checked and explained without being written, with the files that come with them.
func TestTexts(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s, c, _ := authorOf(t)
	var valid view.Validated
	c.send("POST", ws+"/validations", body{"text": textOf("../in/a.csv", "../out/b.csv")}).into(http.StatusOK, &valid)
	require.True(t, valid.OK, valid)
	c.send("POST", ws+"/validations", body{"text": "nodes:\n  load: {type: file_tabel}\n"}).into(http.StatusOK, &valid)
	require.False(t, valid.OK)
	require.NotEmpty(t, valid.Diagnostics)
	split := body{"name": "sub/main.yaml", "text": "include: [part.yaml]\nnodes:\n" +
		"  write: {type: table_file, r: ids, w: ../../out/b.csv}\n", "files": body{"sub/part.yaml": "nodes:\n" +
		"  load: {type: file_table, r: {urls: [../../in/a.csv], columns: {id: int}}, w: ids}\n"}}
	c.send("POST", ws+"/validations", split).into(http.StatusOK, &valid)
	require.Empty(t, valid.Diagnostics)
	require.Equal(t, 2, valid.Nodes)
	require.NoDirExists(t, filepath.Join(s.dir, "jobs", "sub"))

	var explained view.Explained
	c.send("POST", ws+"/explanations", body{"text": textOf("../in/a.csv", "../out/b.csv")}).into(http.StatusOK, &explained)
	require.Len(t, explained.Nodes, 2)
	require.NotEmpty(t, explained.Nodes[0].SQL)
	require.Empty(t, explained.Nodes[0].Problem)
	require.Positive(t, explained.Nodes[0].BytesIn, "the input is found from the directory of scripts")

	var laid struct{ Text string }
	c.send("POST", ws+"/formats", body{"text": "nodes:   {a:   {type: file_table}}\n"}).into(http.StatusOK, &laid)
	again := c.send("POST", ws+"/formats", body{"text": laid.Text})
	require.NotContains(t, laid.Text, ":   ")
	require.Contains(t, again.text, strconv.Quote(laid.Text))
}

// A registered script is explained to whoever sees it, without what it is made of.
func TestExplanationWithoutText(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s, c, _ := authorOf(t)
	viewer := s.as("vic", access.Grant{Workspace: "main", Role: access.Viewer})
	var of, full view.Explained
	viewer.send("POST", ws+"/explanations", body{"script": "ids.yaml"}).into(http.StatusOK, &of)
	c.send("POST", ws+"/explanations", body{"script": "ids.yaml"}).into(http.StatusOK, &full)
	require.NotEmpty(t, full.Nodes[0].SQL)
	require.Len(t, of.Nodes, 2)
	for _, n := range of.Nodes {
		require.Empty(t, n.SQL+n.Python+strings.Join(n.Setup, ""))
	}
}

// pythonText has a formula of a file of Python.
func pythonText(file string) string {
	return "nodes:\n  load: {type: file_table, r: {urls: [../in/a.csv], columns: {id: int}}, w: ids}\n" +
		"  calc:\n    type: table_custom_tfm_table\n    custom_proc_type: py_calc\n    r: {table: ids}\n" +
		"    p: {python_code_urls: [" + file + "], calculated_fields: {n: {expression: twice(r.id), type: int}}}\n" +
		"    w: {name: sums, fields: {n: {expression: p.n, type: int}}}\n"
}

// Code in a text is run by nothing but runs and tests.
func TestTextsRunNoPython(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s, c, _ := authorOf(t)
	mark := filepath.Join(s.dir, "in", "ran")
	text := body{"text": pythonText("code.py"),
		"files": body{"code.py": "open('" + mark + "', 'w').close()\ndef twice(n):\n  return 2 * n\n"}}
	var valid view.Validated
	c.send("POST", ws+"/validations", text).into(http.StatusOK, &valid)
	require.True(t, valid.OK, valid)
	var explained view.Explained
	c.send("POST", ws+"/explanations", text).into(http.StatusOK, &explained)
	require.NotEmpty(t, explained.Nodes[1].Python)
	require.NoFileExists(t, mark)
	defer s.work(t.Context())()
	require.Equal(t, "complete", c.statusOf(c.send("POST", ws+"/runs", text)))
	require.FileExists(t, mark)
}

// Who is no author sends no texts, whatever else they may do.
func TestTextsAreForAuthors(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s, author, operator := authorOf(t)
	text := body{"text": textOf("../in/a.csv", "../out/b.csv")}
	for _, path := range []string{"/validations", "/explanations", "/runs", "/tests", "/formats"} {
		require.Equal(t, http.StatusForbidden, operator.send("POST", ws+path, text).status, path)
	}
	require.Equal(t, http.StatusForbidden, operator.get(ws+"/scripts/ids.yaml").status)
	entries, err := s.users.Entries(t.Context(), "", 100)
	require.NoError(t, err)
	refused := 0
	for _, e := range entries {
		if e.Kind == access.Refused && e.Actor == "ben" {
			refused++
		}
	}
	require.Equal(t, 6, refused)
	for name, b := range map[string]body{"both": {"script": "ids.yaml", "text": "nodes: {}"}, "none": {},
		"files of a script": {"script": "ids.yaml", "files": body{"a.py": ""}}} {
		require.Equal(t, http.StatusUnprocessableEntity, author.send("POST", ws+"/validations", b).status, name)
	}
}

// Texts open nothing beyond the workspace's places, and no message has what is in a file.
func TestPlacesOfTexts(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s, c, _ := authorOf(t)
	require.NoError(t, os.Symlink(filepath.Join(s.dir, "other"), filepath.Join(s.dir, "in", "link")))
	require.NoError(t, os.Symlink(filepath.Join(s.dir, "other", "secret.yaml"), filepath.Join(s.dir, "jobs", "l.yaml")))
	include := func(name string) string { return "include: [" + strconv.Quote(name) + "]\nnodes: {}\n" }
	sql := "nodes:\n  q:\n    type: sql\n    query: SELECT * FROM scan_file('%s')\n" +
		"    w: {name: rows, fields: {id: int}}\n"
	texts := map[string]string{
		"the configuration": include("../serve.yaml"), "further up": include("../../serve.yaml"),
		"the system's": include("/etc/passwd"), "a URL": include("file:///etc/passwd"), "a bucket": include("s3://b/x.yaml"),
		"a server": include("http://169.254.169.254/x.yaml"), "another directory": include("../other/secret.yaml"),
		"a link": include("../in/link/secret.yaml"), "a link here": include("l.yaml"),
		"the process": include("/proc/self/environ"),
		"python":      pythonText("../other/secret.yaml"), "python above": pythonText("/etc/passwd"),
		"a header":  "nodes:\n  load: {type: file_table, r: {urls: [../other/secret.csv]}, w: ids}\n",
		"an input":  textOf("../other/secret.csv", "../out/b.csv"),
		"by a link": textOf("../in/link/secret.csv", "../out/b.csv"),
		"an output": textOf("../in/a.csv", "../other/b.csv"), "over the scripts": textOf("../in/a.csv", "ids.yaml"),
		"sql":    fmt.Sprintf(sql, filepath.Join(s.dir, "other", "secret.csv")),
		"sql up": fmt.Sprintf(sql, "../other/secret.csv"),
	}
	for name, text := range texts {
		for _, path := range []string{"/validations", "/explanations", "/runs"} {
			got := c.send("POST", ws+path, body{"text": text})
			require.NotContains(t, got.text, secretRow, "%s of %s", path, name)
			require.NotContains(t, got.text, "root:", "%s of %s", path, name)
			require.NotContains(t, got.text, "places:", "%s of %s", path, name)
			require.Less(t, got.status, 500, "%s of %s: %s", path, name, got.text)
			if path == "/runs" {
				require.GreaterOrEqual(t, got.status, 400, "%s: %s", name, got.text)
			}
		}
	}
	for _, files := range [][]string{{"../other/secret.csv"}, {"../other/*.csv"}, {"/etc/passwd"},
		{"../in/link/secret.csv"},
		{"../in/*/secret.csv"}, {"../in/*/../../other/secret.csv"}, {"s3://bucket/x.csv"}, {"http://127.0.0.1:1/x.csv"},
		{"../serve.yaml"}, {"sqlite://../other/x.db"}} {
		j := c.jobOf(c.send("POST", ws+"/inferences", body{"files": files}))
		require.NotNil(t, j.Problem, files)
		require.NotContains(t, fmt.Sprint(j), secretRow, files)
		require.Less(t, j.Problem.Status, 500, "%s: %s", files, j.Problem.Detail)
	}
}

// A proposal is made of the files of the places.
func TestInference(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	_, c, _ := authorOf(t)
	j := c.jobOf(c.send("POST", ws+"/inferences", body{"files": []string{"../in/*.csv"}}))
	require.Nil(t, j.Problem, j.Problem)
	text := j.Result.(map[string]any)["text"].(string)
	var valid view.Validated
	c.send("POST", ws+"/validations", body{"text": text}).into(http.StatusOK, &valid)
	require.True(t, valid.OK, valid)
}

const idsTests = `tests:
  - {node: load, given: {load: "id\n7\n"}, expect: {ids: [{id: 7}]}}
  - {name: wrong, node: load, given: {load: "id\n7\n"}, expect: {ids: [{id: 8}]}}
`

// Tests run for registered scripts and for texts, and see nothing that runs would not.
func TestTestsOfScripts(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s, c, _ := authorOf(t)
	s.file("jobs/ids.test.yaml", idsTests)
	text := textOf("../in/a.csv", "../out/ids.csv")
	for name, b := range map[string]body{"registered": {"script": "ids.yaml"},
		"a text":     {"text": text, "name": "ids.yaml"},
		"both texts": {"text": text, "tests": "t.yaml", "files": body{"t.yaml": idsTests}}} {
		j := c.jobOf(c.send("POST", ws+"/tests", b))
		require.Nil(t, j.Problem, "%s: %v", name, j.Problem)
		cases := j.Result.([]any)
		require.Len(t, cases, 2, name)
		require.Equal(t, true, cases[0].(map[string]any)["ok"], "%s: %v", name, cases)
		require.Equal(t, false, cases[1].(map[string]any)["ok"], name)
		require.Equal(t, "wrong", cases[1].(map[string]any)["test"], name)
	}
	require.NoFileExists(t, filepath.Join(s.dir, "out", "ids.csv"))
	var told []view.Progress
	_, err := s.app.TestScript(view.HearProgress(t.Context(), func(p view.Progress) { told = append(told, p) }),
		app.ProcessCaller(), app.NamedScript{Dir: filepath.Join(s.dir, "jobs"),
			Path: filepath.Join(s.dir, "jobs", "ids.yaml")},
		"")
	require.NoError(t, err)
	require.Contains(t, told, view.Progress{Phase: "running test wrong", Done: 1, Of: 2, Unit: "tests"})
	given := func(input, expect string) body {
		return body{"t.yaml": "tests: [{node: load, given: {load: " + input + "}, expect: {ids: " + expect + "}}]"}
	}
	for name, b := range map[string]body{
		"given by a file":  {"text": text, "files": given("{file: ../other/secret.csv}", "[{id: 1}]")},
		"an absolute file": {"text": text, "files": given("{file: ../../../../../../etc/passwd}", "[{id: 1}]")},
		"another script": {"text": text, "files": body{
			"t.yaml": "script: ../other/secret.yaml\ntests: [{node: load, expect: {ids: []}}]"}},
		"a name that leads": {"text": "nodes:\n  load: {type: file_table, r: {urls: ['../in/<day>.csv'], " +
			"columns: {id: int, day: {in: name}}}, w: ids}\n", "files": given(`{'../../../x.csv': "id\n1\n"}`, "[{id: 1}]")},
	} {
		b["tests"] = "t.yaml"
		j := c.jobOf(c.send("POST", ws+"/tests", b))
		require.NotNil(t, j.Problem, name)
		require.NotContains(t, fmt.Sprint(*j.Problem), secretRow, name)
		require.NotContains(t, fmt.Sprint(*j.Problem), "root:", name)
		require.Less(t, j.Problem.Status, 500, "%s: %s", name, j.Problem.Detail)
	}
}

// A text is run as a registered script is: pinned, within the places.
func TestRunsOfTexts(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s, c, _ := authorOf(t)
	defer s.work(t.Context())()
	split := body{"text": "include: [part.yaml]\nnodes:\n  write: {type: table_file, r: ids, w: ../out/t.csv}\n",
		"files": body{"part.yaml": "nodes:\n" +
			"  load: {type: file_table, r: {urls: [../in/a.csv], columns: {id: int}}, w: ids}\n"}}
	require.Equal(t, "complete", c.statusOf(c.send("POST", ws+"/runs", split)))
	written, err := os.ReadFile(filepath.Join(s.dir, "out", "t.csv"))
	require.NoError(t, err)
	require.Equal(t, "id\n1\n2\n", string(written))
	entries, err := os.ReadDir(filepath.Join(s.dir, "jobs"))
	require.NoError(t, err)
	require.Len(t, entries, 1, "the text is kept with the run only")

	var planned struct{ Planned *view.RunPlanned }
	split["dry_run"] = true
	c.send("POST", ws+"/runs", split).into(http.StatusOK+1, &planned)
	require.Len(t, planned.Planned.Nodes, 2)
	got := c.send("POST", ws+"/runs", body{"text": textOf("../in/a.csv", "../out/t.csv"), "name": "ids.yaml"})
	require.Equal(t, http.StatusConflict, got.status, got.text)
	got = c.send("POST", ws+"/runs", body{"text": textOf("../in/a.csv", "../out/t.csv"), "name": "none/x.yaml"})
	require.Equal(t, http.StatusNotFound, got.status, got.text)
	require.NoError(t, os.RemoveAll(filepath.Join(s.dir, "in")))
	require.NoError(t, os.Symlink(filepath.Join(s.dir, "other"), filepath.Join(s.dir, "in")))
	s.file("other/a.csv", "id\n"+secretRow+"\n")
	got = c.send("POST", ws+"/runs", body{"text": textOf("../in/a.csv", "../out/u.csv")})
	if got.status == http.StatusCreated {
		require.Equal(t, "failed", c.statusOf(got))
	}
	require.NoFileExists(t, filepath.Join(s.dir, "out", "u.csv"))
}

// put writes a text under a condition.
func (c *client) put(name, text, header, value string) answer {
	c.t.Helper()
	with := c.header.Clone()
	with.Set(header, value)
	return (&client{c.served, with}).send("PUT", ws+"/scripts/"+url.PathEscape(name), body{"text": text})
}

// Scripts are read and written whole, by who knows what they replace.
func TestScripts(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s, c, _ := authorOf(t)
	require.NoError(t, os.Mkdir(filepath.Join(s.dir, "jobs", "sub"), 0o700))
	for _, name := range []string{"new.yaml", "sub/new.yml", "code.py", "new.test.yaml", "p.json"} {
		text := map[string]string{".py": "def f(x):\n  return x\n", "json": `{"a": 1}`}[name[max(0, len(name)-4):]]
		if strings.HasSuffix(name, ".py") {
			text = "def f(x):\n  return x\n"
		} else if text == "" {
			text = textOf("../in/a.csv", "../out/b.csv")
		}
		put := c.put(name, text, "If-None-Match", "*")
		require.Equal(t, http.StatusOK, put.status, "%s: %s", name, put.text)
		var kept struct{ Script, Text string }
		got := c.get(ws + "/scripts/" + url.PathEscape(name))
		got.into(http.StatusOK, &kept)
		require.Equal(t, text, kept.Text)
		require.Equal(t, put.header.Get("ETag"), got.header.Get("ETag"))
		require.Equal(t, http.StatusConflict, c.put(name, text, "If-None-Match", "*").status)
		changed := c.put(name, text+"\n", "If-Match", got.header.Get("ETag"))
		require.Equal(t, http.StatusOK, changed.status, changed.text)
		require.Equal(t, http.StatusConflict, c.put(name, text, "If-Match", got.header.Get("ETag")).status)
	}
	require.Equal(t, http.StatusConflict, c.put("gone.yaml", "a: 1\n", "If-Match", `"00"`).status)
	require.Equal(t, http.StatusConflict, c.put("gone.yaml", "a: 1\n", "If-Match", "*").status)
	tag := c.get(ws + "/scripts/new.yaml").header.Get("ETag")
	require.Equal(t, http.StatusConflict, c.put("new.yaml", "a: 1\n", "If-Match", "W/"+tag).status, "a weak one is none")
	require.Equal(t, http.StatusOK, c.put("new.yaml", "a: 1\n", "If-Match", `"00", `+tag).status)
	require.Equal(t, http.StatusOK, c.put("new.yaml", "a: 2\n", "If-Match", "*").status)
	require.Equal(t, http.StatusUnprocessableEntity, c.put("gone.yaml", "a: 1\n", "X-None", "1").status)
	require.Contains(t, c.get(ws+"/scripts").text, "sub/new.yml")
	entries, err := s.users.Entries(t.Context(), "", 100)
	require.NoError(t, err)
	written := 0
	for _, e := range entries {
		if e.Kind == access.TextWritten {
			require.Equal(t, "ann", e.Actor)
			written++
		}
	}
	require.Equal(t, 12, written)
	left, err := filepath.Glob(filepath.Join(s.dir, "jobs", ".*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// Nothing is written but scripts and what lies beside them, in their directory.
func TestHostileScripts(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s, c, _ := authorOf(t)
	require.NoError(t, os.Symlink(filepath.Join(s.dir, "other"), filepath.Join(s.dir, "jobs", "link")))
	require.NoError(t, os.Symlink(filepath.Join(s.dir, "other", "secret.yaml"), filepath.Join(s.dir, "jobs", "l.yaml")))
	require.NoError(t, os.Mkdir(filepath.Join(s.dir, "jobs", "d.yaml"), 0o700))
	for _, name := range []string{"../x.yaml", "../serve.yaml", "/etc/x.yaml", "a/../../x.yaml", "./x.yaml", "a//x.yaml",
		"x", "x.txt", "x.sh", ".x.yaml", ".thalweg/x.yaml", "a/.b/x.yaml", "x\x00.yaml", "x\n.yaml", "x\u202e.yaml",
		`a\x.yaml`,
		"link/x.yaml", "link/secret.yaml", "l.yaml", "d.yaml", "thalweg.yaml", "none/x.yaml", "..yaml", "{a}.yaml", "*.yaml",
		strings.Repeat("a", 300) + ".yaml", strings.Repeat("a/", 20) + "x.yaml", "file:x.yaml", "x.yaml/", "..%2fx.yaml/.."} {
		got := c.put(name, "a: 1\n", "If-None-Match", "*")
		require.True(t, got.status >= 300 && got.status < 500, "%q: %d %s", name, got.status, got.text)
		got = c.get(ws + "/scripts/" + url.PathEscape(name))
		require.True(t, got.status >= 300 && got.status < 500, "%q: %d %s", name, got.status, got.text)
		require.NotContains(t, got.text, secretRow, name)
	}
	for name, text := range map[string]string{"no YAML": "a: [", "no map": "- 1\n", "bytes": "a: \"\x00\"\n",
		"long": "a: " + strings.Repeat("x", 1<<20), "nothing": ""} {
		got := c.put("x.yaml", text, "If-None-Match", "*")
		require.Equal(t, http.StatusUnprocessableEntity, got.status, "%s: %s", name, got.text)
	}
	big := c.send("POST", ws+"/validations", body{"text": "nodes: {}", "files": body{
		"a.py": strings.Repeat("#", 1<<20), "b.py": strings.Repeat("#", 1<<20), "c.py": strings.Repeat("#", 1<<20),
		"d.py": strings.Repeat("#", 1<<20)}})
	require.Equal(t, http.StatusUnprocessableEntity, big.status)
	require.Equal(t, http.StatusRequestEntityTooLarge,
		c.send("POST", ws+"/validations", body{"text": strings.Repeat("x", 13<<20)}).status)
	for _, dir := range []string{".", "other"} {
		found, err := filepath.Glob(filepath.Join(s.dir, dir, "*x.yaml"))
		require.NoError(t, err)
		require.Empty(t, found)
	}
	kept, err := os.ReadFile(filepath.Join(s.dir, "other", "secret.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(kept), secretRow)
}

// Of those who replace the same text, one does.
func TestOneWrites(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	_, c, _ := authorOf(t)
	tag := c.get(ws + "/scripts/ids.yaml").header.Get("ETag")
	var done atomic.Int64
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if c.put("ids.yaml", fmt.Sprintf("a: %d\n", i), "If-Match", tag).status == http.StatusOK {
				done.Add(1)
			}
		})
	}
	all.Wait()
	require.Equal(t, int64(1), done.Load())
}

// What runs write among the scripts is none.
func TestOutputsAreNoScripts(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := serveAs(t, "workspaces:\n  main:\n    scripts: jobs\n    places: {write: [jobs/out]}\n"+generous, "jobs/out")
	s.file("jobs/out/x.yaml", "a: 1\n")
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Writer})
	require.Equal(t, http.StatusForbidden, c.get(ws+"/scripts/out%2Fx.yaml").status)
	require.Equal(t, http.StatusForbidden, c.put("out/y.yaml", "a: 1\n", "If-None-Match", "*").status)
	require.Equal(t, http.StatusOK, c.put("y.yaml", "a: 1\n", "If-None-Match", "*").status)
}

// The server's configuration is no script, though it lies among them.
func TestConfigurationIsNoScript(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := serve(t)
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Writer})
	require.Equal(t, http.StatusForbidden, c.get(ws+"/scripts/serve.yaml").status)
	require.Equal(t, http.StatusForbidden, c.put("serve.yaml", "version: 1\n", "If-None-Match", "*").status)
	c.get(ws+"/scripts/script.yaml").into(http.StatusOK, &struct{}{})
}

// What names no file is a problem of who asks, and not the server's end.
func TestInferenceOfNoFile(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := serve(t)
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Writer})
	for _, files := range []any{nil, []string{}} {
		c.send("POST", ws+"/inferences", map[string]any{"files": files}).problem(http.StatusUnprocessableEntity)
	}
	var job api.Job
	c.send("POST", ws+"/inferences", map[string]any{"files": []string{""}}).into(http.StatusAccepted, &job)
	require.Eventually(t, func() bool {
		c.get("/v1/jobs/"+job.ID).into(http.StatusOK, &job)
		return job.Ended != nil
	}, effort.Patience, 10*time.Millisecond)
	require.Equal(t, "empty file name", job.Problem.Detail)
}
