package bench

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"thalweg/internal/fault"
	"thalweg/internal/script"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Two stand-ins that keep the contracts of the command and of the peer and
// write the same result.
const (
	fakeThalweg = `#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" = --params ] && params=$2; shift; done
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

func fakeConfig(t *testing.T, thalweg, peer string) Config {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the stand-ins are shell scripts, and sampling reads /proc")
	}
	dir := t.TempDir()
	c := Config{
		Thalweg: filepath.Join(dir, "thalweg"), Peer: filepath.Join(dir, "peer.sh"), Script: filepath.Join(dir, "script.yaml"),
		Python: "python3", PeerPython: "/bin/sh", StepsPeer: filepath.Join(dir, "peer.sh"), StepsDir: dir, WorkDir: filepath.Join(dir, "work"),
		Accounts: 1, Repeats: 2, Logger: slog.New(slog.DiscardHandler),
	}
	for path, text := range map[string]string{c.Thalweg: thalweg, c.Peer: peer, c.Script: ""} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
	}
	return c
}

func measureAll(t *testing.T, c Config, names ...string) (map[string]Report, error) {
	t.Helper()
	reports := map[string]Report{}
	err := Measure(t.Context(), c, names, func(r Report) error { reports[r.Case] = r; return nil })
	return reports, err
}

func TestMeasureAllCases(t *testing.T) {
	t.Parallel()
	c := fakeConfig(t, fakeThalweg, fakePeer)
	reports, err := measureAll(t, c, "ark", "scaling", "memory", "portfolio")
	require.NoError(t, err)
	require.Len(t, reports, 4)

	p := reports["portfolio-1"]
	require.False(t, p.Missed())
	require.Len(t, p.Runs, 4)
	require.Equal(t, []string{sideThalweg, sidePeer, sideThalweg, sidePeer}, mapped(p.Runs, func(r Run) string { return r.Side }))
	require.Equal(t, alikeBlanks, p.Checks[0].Note)
	require.Equal(t, "results of run 1 and run 2", p.Checks[1].Name)
	for _, r := range p.Runs {
		require.Positive(t, r.WallMS)
		require.Len(t, r.Outputs, 1)
	}
	require.InDelta(t, 3, p.Runs[0].StepsMS["load_join"], 0)
	require.InDelta(t, 2, p.Runs[1].StepsMS["load_join"], 1e-9)
	require.InDelta(t, 1.5, *p.Checks[2].Value, 1e-9)
	require.Equal(t, NotJudged, p.Checks[2].Status, "one account is not the bar's size")

	require.Contains(t, reports["portfolio-1-memory-1GB"].Runs[0].Command, memoryCaseLimit)
	require.Equal(t, Pass, reports["portfolio-1-memory-1GB"].Checks[0].Status)
	require.Len(t, reports["scaling-1-1"].Runs, 4)
	require.Contains(t, reports["ark"].Skipped, "THALWEG_REAL_DATA")
	require.NoDirExists(t, filepath.Join(c.WorkDir, "runs"))
}

func TestMeasureNumpyAgainstRows(t *testing.T) {
	t.Parallel()
	c := fakeConfig(t, fakeThalweg, fakePeer)
	reports, err := measureAll(t, c, "numpy")
	require.NoError(t, err)
	require.Contains(t, reports["portfolio-1-numpy"].Skipped, "numpy")

	c.NumpyPython, c.NumpyScript = "python-with-numpy", c.Script+".numpy"
	reports, err = measureAll(t, c, "numpy")
	require.NoError(t, err)
	r := reports["portfolio-1-numpy"]
	require.Equal(t, []string{"rows", "numpy", "rows", "numpy"}, mapped(r.Runs, func(r Run) string { return r.Label }))
	require.Contains(t, r.Runs[1].Command, "python-with-numpy")
	require.Equal(t, alikeBytes, r.Checks[0].Note)
	require.Positive(t, *r.Checks[len(r.Checks)-1].Value)
}

func TestStepsCompareWhateverTheOrder(t *testing.T) {
	t.Parallel()
	other := strings.Replace(fakePeer, `header\nFUND,1.00\n`, `FUND,1.00\nheader\n`, 1)
	c := fakeConfig(t, fakeThalweg, other)
	reports, err := measureAll(t, c, "tagging", "sorting", "validate")
	require.NoError(t, err)
	require.Equal(t, alikeRows, reports["tagging"].Checks[0].Note)
	require.Equal(t, NotJudged, reports["tagging"].Checks[2].Status, "a thousandth of the rows is not the bar's size")
	require.NotContains(t, reports["tagging"].Runs[0].Command, memoryCaseLimit)
	for _, run := range reports["sorting"].Runs {
		require.Contains(t, run.Command, memoryCaseLimit, "both sides have the same limit")
	}
	require.Len(t, reports["validate"].Runs, smallRepeats)

	reports, err = measureAll(t, fakeConfig(t, fakeThalweg, fakePeer+"echo 'FUND,2.00' >> \"$out/result.csv\"\n"), "lookup")
	require.NoError(t, err)
	require.True(t, reports["lookup"].Missed())
	require.Equal(t, "result.csv: 2 lines and 3 lines, of different contents", reports["lookup"].Checks[0].Note)
}

// TestWideScriptIsValid keeps validateCase from measuring a refusal.
func TestWideScriptIsValid(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "wide.yaml")
	require.NoError(t, os.WriteFile(path, []byte(wideScript(validateNodes)), 0o600))
	s, diags := script.Load(t.Context(), script.Sources{Path: path})
	require.Empty(t, diags)
	require.Len(t, s.Nodes, validateNodes)
}

func TestDifferentResultsMissTheBarAtAnySize(t *testing.T) {
	t.Parallel()
	other := fakePeer + "echo 'FUND,2.00' >> \"$out/result.csv\"\n"
	reports, err := measureAll(t, fakeConfig(t, fakeThalweg, other), "portfolio")
	require.NoError(t, err)
	require.True(t, reports["portfolio-1"].Missed())
	require.Contains(t, reports["portfolio-1"].Checks[0].Note, "line 3")
}

func TestUnsteadyResultsMissTheBar(t *testing.T) {
	t.Parallel()
	unsteady := fakeThalweg + "echo $$ >> \"$out/result.csv\"\n"
	reports, err := measureAll(t, fakeConfig(t, unsteady, fakePeer), "portfolio")
	require.NoError(t, err)
	var unequal bool
	for _, c := range reports["portfolio-1"].Checks {
		unequal = unequal || (c.Name == "results of run 1 and run 2" && c.Status == Miss)
	}
	require.True(t, unequal)
}

func TestFailingSideIsAnErrorWithEvidence(t *testing.T) {
	t.Parallel()
	_, err := measureAll(t, fakeConfig(t, "#!/bin/sh\necho no such node >&2; exit 3\n", fakePeer), "portfolio")
	require.ErrorContains(t, err, "exit status 3")
	require.Equal(t, "no such node\n", fault.Of(err).Detail)

	_, err = measureAll(t, fakeConfig(t, "#!/bin/sh\nexit 0\n", fakePeer), "portfolio")
	require.ErrorContains(t, err, "end without run_finished")
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
	_, err := measure(ctx, command{args: []string{"/bin/sh", "-c", "sleep 600 & echo up; wait"}, dir: t.TempDir(), stdout: started})
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
	m, err := measure(t.Context(), command{args: []string{"/bin/sh", "-c", "sh -c 'sleep 3; true' & wait"}, dir: t.TempDir()})
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
