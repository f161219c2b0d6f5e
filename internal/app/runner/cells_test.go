package runner_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/control"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/matrix"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// celled is a matrix of a script with a gate that asks for a value.
func celled(t *testing.T) (g gated, opts runner.MatrixOptions) {
	t.Helper()
	script := strings.ReplaceAll(gateScript, "severity: approval", "severity: warn")
	g = gated{dir: gateInputs(t, strings.ReplaceAll(script, `"out/`, `"`+t.TempDir()+`/{cell}_`)),
		key: state.RunKey{Workspace: "main", Run: 1}}
	g.home = openHome(t, g.dir)
	t.Cleanup(func() { require.NoError(t, g.home.Close()) })
	opts = runner.MatrixOptions{Dir: filepath.Join(g.dir, instance.DefaultDir),
		Axes: []matrix.Axis{{Name: "cell", Values: []string{"a"}}},
		Options: runner.Options{ScriptPath: filepath.Join(g.dir, "script.yaml"), Workspace: "main",
			Process: runtime.Process{MemoryBytes: 1 << 30, Cores: 1}}}
	return g, opts
}

func (g gated) cell(t *testing.T, opts runner.MatrixOptions) runner.CellState {
	t.Helper()
	cells, err := runner.RunMatrix(t.Context(), opts)
	require.NoError(t, err)
	require.Len(t, cells, 1)
	return cells[0]
}

// A cell goes on with what was answered at its gate.
func TestACellIsAnswered(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	g, opts := celled(t)
	require.Equal(t, state.Waiting, g.cell(t, opts).Status)
	_, err := control.Decide(t.Context(), g.home, control.DecisionRequest{Run: g.key, Gate: "orders", Approve: true,
		Process: runtime.Process{Caller: sales()},
		Answers: map[string]string{"cutoff": "97"}})
	require.NoError(t, err)
	c := g.cell(t, opts)
	require.Equal(t, state.Complete, c.Status, "%+v", c.Failure)
	files, err := state.All(t.Context(), g.home.State.Files, g.node(t, "write").NodeKey)
	require.NoError(t, err)
	text, err := os.ReadFile(files[0].URL)
	require.NoError(t, err)
	require.Equal(t, "id,price\n98,98\n99,99\n", string(text))
}

// Somebody else, a worker say, ends a run in the moment in which it is resumed:
// who resumes is told so, and a cell is not begun again.
func TestARunEndsWhileItIsResumed(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	ends := func(t *testing.T, g gated) func(*budget.Budget) {
		require.NoError(t, g.decide(t, "orders", true))
		var once sync.Once
		return func(*budget.Budget) {
			once.Do(func() {
				other := runner.Options{Resume: true, ResumeRun: 1, Pinned: true}
				require.Equal(t, state.Complete, g.work(t, other).Status)
			})
		}
	}
	t.Run("resume", func(t *testing.T) {
		t.Parallel()
		g, opts := celled(t)
		require.Equal(t, state.Waiting, g.cell(t, opts).Status)
		opts.Tune, opts.Resume, opts.ResumeRun, opts.Pinned = ends(t, g), true, 1, true
		_, err := runner.Run(t.Context(), g.home, opts.Options)
		require.ErrorContains(t, err, "run 1 is complete: there is nothing to resume")
		require.Equal(t, fault.Script, fault.Of(err).Kind)
	})
	t.Run("matrix", func(t *testing.T) {
		t.Parallel()
		g, opts := celled(t)
		require.Equal(t, state.Waiting, g.cell(t, opts).Status)
		opts.Tune = ends(t, g)
		c := g.cell(t, opts)
		require.Equal(t, state.Complete, c.Status)
		require.EqualValues(t, 1, c.Run)
	})
}
