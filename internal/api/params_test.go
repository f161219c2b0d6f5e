package api_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/access"
	"thalweg/internal/test/effort"
)

// An operator who may give parameters cannot write Python beside the outputs with one run, and run it with another.
func TestParametersOfOperatorsAreNoCode(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := serveAs(t, "workspaces:\n  main:\n    scripts: jobs\n    parameters: true\n"+generous, "jobs", "out")
	s.file("jobs/in.csv", "id,name\n1,\"import os; os.system('touch ran')\"\n")
	out := filepath.Join(s.dir, "out")
	s.file("jobs/report.yaml", `nodes: {
  read: {type: file_table, r: {urls: [in.csv], columns: {id: int, name: string}}, w: t},
  write: {type: table_file, r: t, w: "../out/{month}.csv"}
}
`)
	s.file("jobs/priced.yaml", `nodes:
  read: {type: file_table, r: {urls: [in.csv], columns: {id: int, name: string}}, w: t}
  price:
    type: table_custom_tfm_table
    custom_proc_type: py_calc
    r: t
    p: {python_code_urls: [f.py], calculated_fields: {y: {expression: "f(r.id * {factor})", type: int}}}
    w: {name: u, fields: {y: {expression: p.y, type: int}}}
`)
	s.file("jobs/f.py", "def f(x):\n    return int(x)\n")
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Operator})
	writes := `x.csv"}, w1: {type: table_file, r: t, w: {url_template: "` + out + `/e.py", columns: [{name: n, ` +
		`expression: r.name, type: string, csv: {header: import os}}]}}, w2: {type: table_file, r: t, w: "` + out + `/zz`
	runs := `x.csv"}, w1: {type: table_custom_tfm_table, custom_proc_type: py_calc, r: t, p: {python_code_urls: ["` + out +
		`/e.py"], calculated_fields: {y: {expression: "g(r.id)", type: int}}}, w: {name: u, fields: {y: {expression: p.y, ` +
		`type: int}}}}, w2: {type: table_file, r: t, w: "` + out + `/zz`
	ask := func(script string, params map[string]string) (answers []answer) {
		body := map[string]any{"script": script, "params": params}
		answers = append(answers, c.send("POST", ws+"/runs", body), c.send("POST", ws+"/explanations", body),
			c.send("POST", ws+"/validations", body))
		body["dry_run"] = true
		return append(answers, c.send("POST", ws+"/runs", body))
	}
	for _, bad := range []struct{ script, name, value, says string }{
		{"report.yaml", "month", writes, "would change more of the script"},
		{"report.yaml", "month", runs, "would change more of the script"},
		{"priced.yaml", "factor", "1) + __import__(r.name", "stands in code here"},
	} {
		for i, got := range ask(bad.script, map[string]string{bad.name: bad.value}) {
			require.Contains(t, got.text, bad.says)
			if i != 2 { // what is wrong is what a validation says
				got.problem(http.StatusUnprocessableEntity)
			}
		}
	}
	require.Equal(t, "{\"runs\":[]}\n", c.get(ws+"/runs").text)
	entries, err := os.ReadDir(out)
	require.NoError(t, err)
	require.Empty(t, entries)

	stop := s.work(t.Context())
	defer stop()
	for script, params := range map[string]map[string]string{"report.yaml": {"month": "2026-01 (late)"},
		"priced.yaml": {"factor": "2"}} {
		var began struct{ Run int64 }
		c.send("POST", ws+"/runs", map[string]any{"script": script, "params": params}).into(http.StatusCreated, &began)
		require.Eventually(t, func() bool {
			var run runState
			c.get(ws+"/runs/"+strconv.FormatInt(began.Run, 10)).into(http.StatusOK, &run)
			return run.Status == "complete"
		}, effort.Patience, 20*time.Millisecond, script)
	}
	require.FileExists(t, filepath.Join(out, "2026-01 (late).csv"))

	author := s.as("joe", access.Grant{Workspace: "main", Role: access.Writer})
	author.send("POST", ws+"/runs", map[string]any{"script": "priced.yaml", "params": map[string]string{
		"factor": "(1 + 1)"}}).into(http.StatusCreated, &struct{}{})
}

// A retry that is repeated with its key is one, and says again which run goes on.
func TestRetryIsRepeated(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := serve(t)
	s.run()
	s.run()
	c := s.as("ann", access.Grant{Workspace: "main", Role: access.Operator})
	c.header.Set("Idempotency-Key", "k")
	for _, run := range []int{2, 1} {
		redo := map[string]any{"kind": "retry", "nodes": []string{"write"}}
		if run == 1 { // another run goes on
			s.file("in.csv", "id,name\n1,ann\n")
			delete(redo, "nodes")
		}
		var said [2]struct{ Submitted struct{ Run int64 } }
		for i := range said {
			c.send("POST", ws+"/runs/"+strconv.Itoa(run)+"/orders", redo).into(http.StatusOK, &said[i])
		}
		require.NotZero(t, said[0].Submitted.Run)
		require.Equal(t, said[0], said[1])
	}
}
