package peek_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/inspect"
	"thalweg/internal/app/peek"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/scripts"
	"thalweg/internal/app/sources"
	"thalweg/internal/ops/lineage"
	"thalweg/internal/store/state"
)

const checked = `
nodes:
  read:
    type: file_table
    r: {urls: [numbers.csv], types: {n: int}}
    w: {name: numbers, fields: {n: {expression: "coalesce(r.n, 0)", type: int}}}
  twice:
    type: table_custom_tfm_table
    custom_proc_type: py_calc
    r: numbers
    p:
      python_code_urls: [twice.py]
      calculated_fields: {v: {expression: "twice(r.n)", type: int}}
    w:
      name: doubled
      fields:
        n: {expression: r.n, type: int}
        v: {expression: p.v, type: int}
        at: {expression: 'time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)', type: datetime}
        f: {expression: 'float(r.n) / 3.0', type: float}
    checks:
      - {name: small, expression: "w.v < 10", severity: warn}
`

// Children that are lent the instance answer what this process would.
func TestChildrenAnswerAsThisProcess(t *testing.T) {
	t.Parallel()
	b := newBench(t, peek.Limits{})
	files := map[string]string{"numbers.csv": csvOf(8), "twice.py": "def twice(n: int) -> int:\n    return 2 * n\n"}
	runs := [2]state.RunKey{b.run(checked, files, nil)}
	files["numbers.csv"] = "n\n1\n2\n3\n99\n"
	runs[1] = b.run(checked, files, nil)
	process := runtime.Process{Interpreter: "python3", Dir: b.dir, Keeper: "", MemoryBytes: 512 << 20}
	here := &inspect.Service{Home: b.home, Process: process}
	there := &inspect.Service{Home: b.home, Process: process, Children: b.pool}
	same := func(ask func(s *inspect.Service) (any, error)) string {
		t.Helper()
		want, err := ask(here)
		require.NoError(t, err)
		got, err := ask(there)
		require.NoError(t, err)
		text, err := json.MarshalIndent(want, "", " ")
		require.NoError(t, err)
		other, err := json.MarshalIndent(got, "", " ")
		require.NoError(t, err)
		require.Equal(t, string(text), string(other))
		return string(text)
	}
	said := same(func(s *inspect.Service) (any, error) {
		found, err := s.Diff(t.Context(), tester, runs, inspect.DiffOptions{Table: "doubled", Key: []string{"n"}, RowsMax: 10,
			MemoryBytes: 512 << 20})
		return found.View(), err
	})
	require.Contains(t, said, "1.3333333333333333")
	require.Contains(t, said, "2024-01-01")
	said = same(func(s *inspect.Service) (any, error) {
		return s.Trace(t.Context(), tester, inspect.TraceOptions{Process: process, Workspace: "main", Name: "doubled",
			Run: runs[1].Run, Trace: lineage.Options{Where: "n = 99", Limit: 1, Sample: 1}})
	})
	require.Contains(t, said, "numbers.csv")
	named := sources.Named{Path: filepath.Join(b.dir, "script.yaml")}
	service := scripts.Service{Dir: b.dir}
	sc, _, err := service.Valid(t.Context(), named)
	require.NoError(t, err)
	run, err := b.home.State.Run(t.Context(), runs[0])
	require.NoError(t, err)
	said = same(func(s *inspect.Service) (any, error) {
		return s.Check(t.Context(), tester, sc, run, inspect.CheckOptions{ScriptPath: named.Path, Named: named, RowsMax: 2,
			Process: process})
	})
	require.Contains(t, said, `"failed": 3`)
	own, err := there.Check(t.Context(), tester, nil, run, inspect.CheckOptions{RowsMax: 1})
	require.NoError(t, err)
	require.Len(t, own, 1, "the run's own script")
	said = same(func(s *inspect.Service) (any, error) {
		return s.Query(t.Context(), tester, inspect.QueryOptions{Process: process, Workspace: "main",
			SQL: "SELECT *, [n, NULL] AS l, 'x' AS s, true AS b, 12.50 AS d FROM doubled ORDER BY n"})
	})
	require.Contains(t, said, `"12.50"`)
	_, err = there.Query(t.Context(), tester, inspect.QueryOptions{Workspace: "main",
		SQL: "SELECT repeat('x', 100000) FROM range(100)"})
	require.ErrorContains(t, err, "more bytes than are answered at once")
	_, err = there.Diff(t.Context(), tester, runs, inspect.DiffOptions{Table: "nope"})
	require.ErrorContains(t, err, "has no table nope")
	_, err = there.Trace(t.Context(), tester, inspect.TraceOptions{Workspace: "main", Name: "doubled",
		Trace: lineage.Options{Where: "n = (SELECT count(*) FROM read_csv('/etc/passwd'))", Limit: 1}})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "root")
}
