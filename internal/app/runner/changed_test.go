package runner

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
)

// changed is a state in which somebody has changed texts.
type changed struct {
	state.Store
	what, into string
}

func (c changed) Blob(ctx context.Context, digest string) ([]byte, error) {
	text, err := c.Store.Blob(ctx, digest)
	return []byte(strings.ReplaceAll(string(text), c.what, c.into)), err
}

// What was changed in the state is not executed, and the message says what it is.
func TestTextsThatWereChangedInTheState(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"a.csv": "x\n1\n", "f.py": "def f(x: int) -> int:\n    return x\n",
		"script.yaml": `
nodes:
  a: { type: file_table, r: { urls: [` + dir + `/a.csv], types: { x: int } }, w: a }
  b:
    type: table_custom_tfm_table
    custom_proc_type: py_calc
    r: a
    p: { python_code_urls: [` + dir + `/f.py], calculated_fields: { y: { expression: f(r.x), type: int } } }
    w: { name: b, fields: [r.*, p.y] }
`} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	home, err := instance.Open(t.Context(), filepath.Join(dir, "state"), true)
	require.NoError(t, err)
	defer func() { require.NoError(t, home.Close()) }()
	sum, err := Run(t.Context(), home, Options{ScriptPath: filepath.Join(dir, "script.yaml"), Workspace: "w",
		Process: runtime.Process{MemoryBytes: 1 << 30, Cores: 1, Interpreter: "python3"}})
	require.NoError(t, err)
	require.Equal(t, state.Complete, sum.Status, "%+v", sum.Failure)
	for what, named := range map[string]string{"return x": "f.py", "file_table": "script.yaml", `"dir"`: "settings"} {
		store := changed{home.State, what, what + " "}
		tools := &runtime.Runtime{Store: store, Process: runtime.Process{Logger: slog.New(slog.DiscardHandler)}}
		_, err := tools.Recall(t.Context(), sum.Key)
		require.Error(t, err, named)
		f := fault.Of(err)
		require.Equal(t, fault.Environment, f.Kind, "%v", err)
		require.Contains(t, f.Message, "was changed in its state: ", what)
		require.Contains(t, f.Message, named)
	}
}
