package bench

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Two stand-ins that keep the contracts of the command and of its peers and
// write the same result.
const (
	fakeThalweg = `#!/bin/sh
while [ $# -gt 0 ]; do
  [ "$1" = --params ] && params=$2
  shift
done
[ -n "$params" ] || exit 0
out=$(sed -n 's/.*"dir_out": "\([^"]*\)".*/\1/p' "$params")
printf 'header\r\nFUND,1.00\n' > "$out/result.csv"
mkdir .thalweg
echo '{"event":"run_started"}'
now=$(date +%s)
echo '{"event":"run_finished","status":"complete","run":1,"elapsed_ms":5,"overhead_ms":2,"nodes":[
  {"node":"1_read","type":"file_table","started_ms":'${now}000',"finished_ms":'${now}003'}]}' | tr -d '\n'
echo
`
	fakePeer = `while [ $# -gt 0 ]; do
  [ "$1" = --out ] && out=$2
  [ "$1" = --json ] && json=$2
  shift
done
printf 'header\nFUND,1.00\n' > "$out/result.csv"
[ -z "$json" ] || echo '{"steps":{"load":0.001,"join":0.001,"python1":1},"total":1.1}' > "$json"
`
)

// fakeConfig has a repository in which every peer is the same shell script,
// and environments in which the interpreter is a shell.
func fakeConfig(t *testing.T, thalweg, peer string) Config {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the stand-ins are shell scripts, and sampling reads /proc")
	}
	dir := t.TempDir()
	c := Config{
		Thalweg: filepath.Join(dir, "thalweg"), Root: dir, Python: "python3",
		Environments: filepath.Join(dir, "environments"),
		WorkDir:      filepath.Join(dir, "work"), Scale: 0.001, Runs: 2, Logger: slog.New(slog.DiscardHandler),
	}
	write := func(path, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
	}
	write(c.Thalweg, thalweg)
	for _, file := range []string{"duckdb/portfolio_duckdb.py", "duckdb/sql.py", "polars/peer.py"} {
		write(filepath.Join(dir, "bench", "peers", file), peer)
	}
	for _, name := range []string{"duckdb", "polars"} {
		const pinned = "peer==1.0\n"
		write(filepath.Join(dir, "bench", "peers", name, requirements), pinned)
		write(filepath.Join(c.Environments, name, requirements), pinned)
		require.NoError(t, os.MkdirAll(filepath.Join(c.Environments, name, "bin"), 0o755))
		require.NoError(t, os.Symlink("/bin/sh", filepath.Join(c.Environments, name, "bin", "python3")))
	}
	return c
}

func caseNamed(t *testing.T, name string) Case {
	t.Helper()
	i := slices.IndexFunc(Cases(), func(c Case) bool { return c.Name == name })
	require.GreaterOrEqual(t, i, 0, name)
	return Cases()[i]
}

func measureAll(t *testing.T, c Config, names ...string) (map[string]Report, error) {
	t.Helper()
	var cases []Case
	for _, name := range names {
		cases = append(cases, caseNamed(t, name))
	}
	reports := map[string]Report{}
	err := Measure(t.Context(), c, cases, func(r Report) error { reports[r.Case] = r; return nil })
	return reports, err
}

func checkNamed(t *testing.T, r Report, name string) Check {
	t.Helper()
	i := slices.IndexFunc(r.Checks, func(c Check) bool { return c.Name == name })
	require.GreaterOrEqual(t, i, 0, "%s is not among %v", name,
		mapped(r.Checks, func(c Check) string { return c.Name }))
	return r.Checks[i]
}

// TestCasesAreWhole: the table of cases names programs, files, sides and figures that there are.
func TestCasesAreWhole(t *testing.T) {
	t.Parallel()
	for _, c := range Cases() {
		sides := map[string]bool{"": true}
		for _, sd := range c.sides {
			require.NotContains(t, sides, sd.name, c.Name)
			sides[sd.name] = true
			require.Contains(t, programs, sd.program, c.Name)
			if sd.file != "" {
				require.FileExists(t, filepath.Join(repoRoot, sd.file))
			}
		}
		for _, k := range c.checks {
			require.True(t, sides[k.side] && sides[k.over] && sides[k.less], "%s: %s", c.Name, k.name)
			require.NotNil(t, figureNamed(k.figure).of, "%s: %s", c.Name, k.name)
		}
		if !slices.Contains([]string{inputPortfolio, inputArk, inputNone}, c.input) {
			require.FileExists(t, filepath.Join(repoRoot, "bench", "steps", c.input, "input.sql"))
		}
	}
}

// TestStepScriptsAreValid keeps a case from measuring a refusal.
func TestStepScriptsAreValid(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob(filepath.Join(repoRoot, "bench/steps/*/*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, scripts)
	params := filepath.Join(t.TempDir(), "params.json")
	require.NoError(t, os.WriteFile(params,
		[]byte(`{"dir_in": "in", "dir_out": "out", "rows": "shuffled", "batches": 20, "file": "a"}`), 0o600))
	for _, path := range scripts {
		_, diags := script.Load(t.Context(), script.Sources{Path: path, ParamsPath: params})
		require.Empty(t, diags, path)
	}
}

func TestMeasureInTurn(t *testing.T) {
	t.Parallel()
	c := fakeConfig(t, fakeThalweg, fakePeer)
	reports, err := measureAll(t, c, "portfolio", "memory", "ark", "validate")
	require.NoError(t, err)
	require.Len(t, reports, 4)

	p := reports["portfolio"]
	require.False(t, p.Missed(), "%v", p.Checks)
	require.Equal(t, []string{"rows", "duckdb", "numpy", "rows ephemeral", "rows", "duckdb", "numpy", "rows ephemeral"},
		mapped(p.Runs, func(r Run) string { return r.Side }))
	require.Equal(t, alikeBlanks, checkNamed(t, p, "results of duckdb").Note)
	require.Equal(t, alikeBytes, checkNamed(t, p, "results of numpy").Note)
	for _, r := range p.Runs {
		require.Positive(t, r.WallMS)
		require.Len(t, r.Outputs, 1)
		require.NotContains(t, strings.Join(r.Command, " "), c.Root, "places of this machine")
	}
	require.Equal(t, "1.0", p.Versions["duckdb peer"])
	require.Contains(t, p.Runs[2].Command, "{environments}/duckdb/bin/python3")
	loadJoin := checkNamed(t, p, "load and join")
	require.InDelta(t, 0.003, loadJoin.Of.Value, 1e-9)
	require.InDelta(t, 0.002, loadJoin.Over.Value, 1e-9)
	require.InDelta(t, 1.5, *loadJoin.Value, 1e-9)
	require.Equal(t, NotJudged, loadJoin.Status, "one account is not the bar's size")

	require.Contains(t, reports["memory"].Runs[0].Command, "1GB")
	require.EqualValues(t, 10, reports["memory"].Input["accounts"])
	require.Contains(t, reports["ark"].LeftOut[0], "THALWEG_REAL_DATA")
	require.Empty(t, reports["validate"].Runs[0].Outputs)
	require.NoDirExists(t, filepath.Join(c.WorkDir, "runs"))
}

func TestPartsOfTheSizeAndParameters(t *testing.T) {
	t.Parallel()
	c := fakeConfig(t, fakeThalweg, fakePeer)
	c.Size = 20
	reports, err := measureAll(t, c, "size", "batches")
	require.NoError(t, err)
	require.Equal(t, []string{"rows, a tenth", "rows", "numpy, a tenth", "numpy"},
		mapped(reports["size"].Runs[:4], func(r Run) string { return r.Side }))
	require.DirExists(t, filepath.Join(c.WorkDir, "portfolio-2"))
	require.DirExists(t, filepath.Join(c.WorkDir, "portfolio-20"))
	require.Contains(t, checkNamed(t, reports["batches"], "DuckDB's time in a batch").Note, "has not been measured")
	in := input{params: map[string]any{"dir_in": "in", "dir_out": "another's"}}
	require.Equal(t, map[string]any{"dir_in": "in", "dir_out": "out", "batches": 20},
		in.with(map[string]any{"batches": 20}, "out"))
}

func TestPeersMayLeaveTheOrderToChanceWhereThereIsNone(t *testing.T) {
	t.Parallel()
	other := strings.Replace(fakePeer, `header\nFUND,1.00\n`, `FUND,1.00\nheader\n`, 1)
	reports, err := measureAll(t, fakeConfig(t, fakeThalweg, other), "lookup", "sorting")
	require.NoError(t, err)
	require.Equal(t, alikeRows, checkNamed(t, reports["lookup"], "results of duckdb").Note)
	for _, run := range reports["lookup"].Runs {
		require.Contains(t, run.Command, "1GB", "both sides have the same limit")
	}
	require.True(t, reports["sorting"].Missed())
}

func TestDifferentResultsMissTheBarAtAnySize(t *testing.T) {
	t.Parallel()
	other := fakePeer + "echo 'FUND,2.00' >> \"$out/result.csv\"\n"
	reports, err := measureAll(t, fakeConfig(t, fakeThalweg, other), "portfolio", "tagging")
	require.NoError(t, err)
	require.True(t, reports["portfolio"].Missed())
	require.Contains(t, checkNamed(t, reports["portfolio"], "results of duckdb").Note, "line 3")
	require.Contains(t, checkNamed(t, reports["portfolio"], "load and join").Note, "the figures mean nothing")
	require.Nil(t, checkNamed(t, reports["portfolio"], "load and join").Value)
	require.Equal(t, "result.csv: 2 lines and 3 lines, of different contents",
		checkNamed(t, reports["tagging"], "results of duckdb").Note)
}

func TestUnsteadyResultsMissTheBar(t *testing.T) {
	t.Parallel()
	unsteady := fakeThalweg + "echo $$ >> \"$out/result.csv\"\n"
	reports, err := measureAll(t, fakeConfig(t, unsteady, fakePeer), "small")
	require.NoError(t, err)
	require.Equal(t, Miss, checkNamed(t, reports["small"], "results of thalweg").Status)
}

func TestAFailingSideIsInTheReport(t *testing.T) {
	t.Parallel()
	failing := strings.Replace(fakeThalweg, "out=$(", "echo no such node >&2; exit 3; out=$(", 1)
	reports, err := measureAll(t, fakeConfig(t, failing, fakePeer), "lookup", "validate")
	require.NoError(t, err)
	run := checkNamed(t, reports["lookup"], "run of stored")
	require.Equal(t, Miss, run.Status)
	require.Contains(t, run.Note, "exit status 3")
	require.Contains(t, checkNamed(t, reports["lookup"], "results of duckdb").Note, "no results of Thalweg")
	require.False(t, reports["validate"].Missed(), "the other cases are measured")

	silent := strings.Replace(fakeThalweg, "echo '{\"event\":\"run_started\"}'", "exit 0", 1)
	reports, err = measureAll(t, fakeConfig(t, silent, fakePeer), "small")
	require.NoError(t, err)
	require.Contains(t, checkNamed(t, reports["small"], "run of thalweg").Note, "end without run_finished")
}

func TestMissingProgramIsSaidBeforehand(t *testing.T) {
	t.Parallel()
	c := fakeConfig(t, fakeThalweg, fakePeer)
	c.Thalweg += "-not-built"
	_, err := measureAll(t, c, "portfolio")
	require.Equal(t, fault.Environment, fault.Of(err).Kind)
	require.NotEmpty(t, fault.Of(err).Hint)
	require.NoDirExists(t, c.WorkDir)
}

func TestMeasureStopsTheWholeTree(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("sampling reads /proc")
	}
	ctx, cancel := context.WithCancel(t.Context())
	started := &onFirstWrite{do: cancel}
	_, err := measure(ctx, command{args: []string{"/bin/sh", "-c", "sleep 600 & echo up; wait"}, dir: t.TempDir(),
		stdout: started})
	require.Equal(t, fault.Canceled, fault.Of(err).Kind)
}

// onFirstWrite calls do when something is written to it.
type onFirstWrite struct{ do func() }

func (w *onFirstWrite) Write(p []byte) (int, error) {
	w.do()
	return len(p), nil
}

func TestMeasureSeesMemoryAndChildren(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("sampling reads /proc")
	}
	// The child is there until the tree has been looked at many times.
	m, err := measure(t.Context(), command{args: []string{"/bin/sh", "-c", "sh -c 'sleep 3; true' & wait"},
		dir: t.TempDir()})
	require.NoError(t, err)
	require.Positive(t, m.usage.peakRSS)
	require.GreaterOrEqual(t, m.usage.processes, 2)
	require.GreaterOrEqual(t, m.wall.Milliseconds(), int64(3000))
	require.Equal(t, "sh", filepath.Base(m.command[0]))
}

func TestTailKeepsTheEnd(t *testing.T) {
	t.Parallel()
	text := &tail{limit: 5}
	for _, s := range []string{"abc", "defg", ""} {
		n, err := text.Write([]byte(s))
		require.NoError(t, err)
		require.Len(t, s, n)
	}
	require.Equal(t, "cdefg", text.String())
}

// What a bench of a store did first and last are its figures; a load in which something failed has none.
func TestFiguresOfABenchOfAStore(t *testing.T) {
	t.Parallel()
	var r Run
	require.NoError(t, json.Unmarshal([]byte(`{"loads": [{"rows": [{"ops": 10, "mean_us": 1500}]},
		{"rows": [{"ops": 80, "mean_us": 9}]}, {"rows": [{"ops": 10, "mean_us": 2500}]}]}`), &r.Peer))
	for which, want := range map[string]float64{"first": 0.0015, "last": 0.0025} {
		got, ok := figureNamed(loadFigure + which).of(r)
		require.True(t, ok)
		require.InDelta(t, want, got, 1e-12)
	}
	r.Peer.Loads[2].Rows[0].Failed = 1
	_, ok := figureNamed(loadFigure + "last").of(r)
	require.False(t, ok)
	_, ok = figureNamed(loadFigure + "first").of(Run{})
	require.False(t, ok)
}
