package runner_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/caller"
	"thalweg/internal/app/control"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/lang/matrix"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// sweeper runs a script over two values, over and over.
type sweeper struct{ dir string }

func newSweeper(t *testing.T) sweeper {
	t.Helper()
	s := sweeper{dir: t.TempDir()}
	s.write(t, "in.csv", "v\n1\n2\n")
	s.write(t, "script.yaml", strings.ReplaceAll(`
nodes:
  load:
    type: file_table
    r: {urls: ["DIR/in.csv"], types: {v: int}}
    w: {name: rows, fields: [{v: "r.v * 2"}]}
  write:
    type: table_file
    r: rows
    w: {url_template: "DIR/out_{n}.csv", having: "w.v > {n}"}
`, "DIR", s.dir))
	return s
}

func (s sweeper) write(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600))
}

func (s sweeper) run(t *testing.T) []runner.CellState {
	t.Helper()
	cells, err := runner.RunMatrix(t.Context(), runner.MatrixOptions{Dir: filepath.Join(s.dir, instance.DefaultDir),
		Axes: []matrix.Axis{{Name: "n", Values: []string{"0", "3"}}},
		Options: runner.Options{ScriptPath: filepath.Join(s.dir, "script.yaml"), Workspace: "main",
			Process: runtime.Process{MemoryBytes: 512 << 20, Cores: 1}, Reuse: true}})
	require.NoError(t, err)
	for _, c := range cells {
		require.Equal(t, state.Complete, c.Status, "%+v", c.Failure)
	}
	return cells
}

func (s sweeper) out(t *testing.T, n string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "out_"+n+".csv"))
	require.NoError(t, err)
	return string(text)
}

// A cell's run that was begun and not noted before the process died is gone on
// with by the same script, and by no other.
func TestACellOfAnotherScriptIsAnotherRun(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := newSweeper(t)
	s.run(t)
	home := openHome(t, s.dir)
	defer func() { require.NoError(t, home.Close()) }()
	forget := func() {
		all, err := runner.Matrices(t.Context(), home, "main")
		require.NoError(t, err)
		notes, err := state.AllNotes(t.Context(), home.State, "main", "matrix/"+all[0].ID+"/1")
		require.NoError(t, err)
		require.Len(t, notes, 2)
		for _, n := range notes {
			require.NoError(t, home.State.RemoveNote(t.Context(), "main", n))
		}
	}
	forget()
	require.EqualValues(t, 1, s.run(t)[0].Run, "it is begun once")
	forget()
	text, err := os.ReadFile(filepath.Join(s.dir, "script.yaml"))
	require.NoError(t, err)
	s.write(t, "script.yaml", strings.Replace(string(text), "r.v * 2", "r.v * 5", 1))
	require.EqualValues(t, 3, s.run(t)[0].Run)
	require.Equal(t, "v\n5\n10\n", s.out(t, "0"))
	require.Equal(t, "v\n5\n10\n", s.out(t, "3"))
}

// A cell of which something was declared invalid is not complete: that is made again.
func TestACellWithInvalidRowsIsDoneAgain(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := newSweeper(t)
	cells := s.run(t)
	home := openHome(t, s.dir)
	defer func() { require.NoError(t, home.Close()) }()
	key := state.RunKey{Workspace: "main", Run: cells[1].Run}
	_, err := control.Invalidate(t.Context(), home, key, control.InvalidateOptions{Nodes: []string{"write"},
		By: caller.OfProcess(caller.CLI).Mark("looked wrong")})
	require.NoError(t, err)
	cells = s.run(t)
	require.True(t, cells[0].Kept)
	require.False(t, cells[1].Kept)
	require.Equal(t, key.Run, cells[1].Run)
	n, err := home.State.Node(t.Context(), state.NodeKey{RunKey: key, Node: "write"})
	require.NoError(t, err)
	require.Equal(t, state.Succeeded, n.Status)
}

// A cell's run of a script that has changed since does not go on beside the new one.
func TestACellOfAnotherScriptEndsTheRunBefore(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := newSweeper(t)
	gated := func() []runner.CellState {
		cells, err := runner.RunMatrix(t.Context(), runner.MatrixOptions{Dir: filepath.Join(s.dir, instance.DefaultDir),
			Axes: []matrix.Axis{{Name: "n", Values: []string{"0"}}},
			Options: runner.Options{ScriptPath: filepath.Join(s.dir, "script.yaml"), Workspace: "main",
				Process: runtime.Process{MemoryBytes: 512 << 20, Cores: 1}, Reuse: true}})
		require.NoError(t, err)
		return cells
	}
	text, err := os.ReadFile(filepath.Join(s.dir, "script.yaml"))
	require.NoError(t, err)
	asks := strings.Replace(string(text), "{name: rows,", "{name: rows, approval: {},", 1)
	s.write(t, "script.yaml", asks)
	require.Equal(t, state.Waiting, gated()[0].Status)
	s.write(t, "script.yaml", strings.Replace(asks, "r.v * 2", "r.v * 5", 1))
	require.EqualValues(t, 2, gated()[0].Run)
	home := openHome(t, s.dir)
	defer func() { require.NoError(t, home.Close()) }()
	run, err := home.State.Run(t.Context(), state.RunKey{Workspace: "main", Run: 1})
	require.NoError(t, err)
	require.Equal(t, state.Stopped, run.Status)
}
