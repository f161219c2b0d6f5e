package runner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/worker"
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/history"
	"thalweg/internal/run/concurrency"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/job"
	"thalweg/internal/run/python"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// spinning works for heavy rows, for so long that nothing else of its run takes
// as much, however fast the machine is.
const spinning = `
import time

def spin(heavy):
    begun, count = time.monotonic(), 0
    while heavy and (count < 10_000_000 or time.monotonic() < begun + 1.2):
        count += 1
    return heavy
`

// spin runs a script whose Python works for the heavy ones of files with a row each.
func spin(t *testing.T, files int, heavy func(file int) bool) history.Facts {
	t.Helper()
	return spinBy(t, files, heavy, func(home *instance.Instance, opts runner.Options) (state.RunKey, error) {
		sum, err := runner.Run(t.Context(), home, opts)
		return sum.Key, err
	})
}

func spinBy(t *testing.T, files int, heavy func(file int) bool,
	run func(*instance.Instance, runner.Options) (state.RunKey,
		error)) history.Facts {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for f := range files {
		row := 0
		if heavy(f) {
			row = 1
		}
		write(fmt.Sprintf("in%d.csv", f), fmt.Sprintf("heavy\n%d\n", row))
	}
	write("spin.py", spinning)
	write("script.yaml", fmt.Sprintf(`nodes:
  load: {type: file_table, r: {urls: ["%[1]s/in*.csv"], types: {heavy: int}}, w: rows}
  work:
    type: table_custom_tfm_table
    custom_proc_type: py_calc
    r: {table: rows}
    p: {python_code_urls: ["%[1]s/spin.py"], calculated_fields: {v: {expression: spin(r.heavy), type: int}}}
    w: {name: spun, fields: {v: {expression: p.v, type: int}}}
`, dir))
	home, err := instance.Open(t.Context(), filepath.Join(dir, "state"), true)
	require.NoError(t, err)
	defer func() { require.NoError(t, home.Close()) }()
	key, err := run(home, runner.Options{ScriptPath: filepath.Join(dir, "script.yaml"),
		Workspace: state.DefaultWorkspace,
		Process:   runtime.Process{MemoryBytes: 1 << 30, Cores: 2, Interpreter: "python3", Tune: cutInto(2, 10)}})
	require.NoError(t, err)
	facts, err := history.Gather(t.Context(), home.State, key, time.Now(), history.ProcessFacts{Slots: 2})
	require.NoError(t, err)
	require.Equal(t, state.Complete, facts.Run.Status)
	return facts
}

// A run whose time goes to Python says so, and where it went adds up.
func TestWhyPython(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	f := spin(t, 4, func(int) bool { return true })
	why := f.Why()[0]
	require.Equal(t, "python", why.Rule, "%v", f.Why())
	require.Regexp(t, `^run 1 spent \d+ % of its .* in node work, and \d+ % of that in Python: .* over 4 batches$`,
		why.Text)
	s := f.Tallies["work"].Stats
	require.Positive(t, s.Read, "parts are compared with their checksums")
	require.Positive(t, s.Write, "parts are made durable")
	require.Positive(t, s.PeakBytes)
	require.LessOrEqual(t, s.Read+s.Engine+s.Write+s.Wait, s.Elapsed)
}

// A worker that has claimed more batches than it has slots for lets them wait for a slot, not for memory.
func TestWhySlots(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	f := spinBy(t, 2, func(int) bool { return true },
		func(home *instance.Instance, opts runner.Options) (state.RunKey, error) {
			key, err := runner.Begin(t.Context(), home, opts)
			if err != nil {
				return key, err
			}
			fixed, err := concurrency.ParseFixed([]string{"2"})
			if err != nil {
				return key, err
			}
			drain := make(chan struct{})
			return key, worker.Serve(t.Context(), home,
				worker.WorkerOptions{Process: runtime.Process{MemoryBytes: 1 << 30, Cores: 1, Interpreter: "python3",
					Observe: func(e job.Event) {
						if e.Kind == job.RunFinished {
							close(drain)
						}
					}}, Concurrency: fixed, Drain: drain,
				})
		})
	s := f.Tallies["work"].Stats
	require.Greater(t, s.Turn, time.Second)
	require.Less(t, s.Wait, s.Turn/10)
	require.Equal(t, "python", f.Why()[0].Rule, "%v", f.Why())
	for _, a := range f.Why() {
		require.NotEqual(t, "wait", a.Rule, a.Text)
	}
}

// A run that waited for one of its batches says for which.
func TestWhySkew(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	f := spin(t, 8, func(file int) bool { return file == 3 })
	why := f.Why()[0]
	require.Equal(t, "skew", why.Rule, "%v", f.Why())
	require.Regexp(t, `^run 1 spent .* in batch 3 of node work: \d+ times as long as the middle one of 8, `+
		`which took \d+`, why.Text)
}

// away fails as a server that is away does.
type away struct{ engine.Executor }

func (away) Execute(context.Context, engine.InstanceConfig, *python.Pool, engine.Task) (engine.Result, error) {
	return engine.Result{}, &fault.Error{Kind: fault.Environment, Retryable: true, Message: "the server is away"}
}

// A run all of whose batches wait to be tried again says until when.
func TestWhyTriedAgain(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in.csv"), []byte("n\n1\n"), 0o600))
	script := filepath.Join(dir, "script.yaml")
	require.NoError(t, os.WriteFile(script, []byte("nodes:\n  load: {type: file_table, r: {urls: [\""+dir+
		"/in.csv\"], types: {n: int}}, w: t}\n"), 0o600))
	home, err := instance.Open(t.Context(), filepath.Join(dir, "state"), true)
	require.NoError(t, err)
	defer func() { require.NoError(t, home.Close()) }()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	started := make(chan state.RunKey, 1)
	go func() {
		_, err := runner.Run(ctx, home, runner.Options{ScriptPath: script, Workspace: state.DefaultWorkspace,
			Process: runtime.Process{MemoryBytes: 1 << 30, Cores: 1,
				Executor: func(e engine.Executor) engine.Executor { return away{e} }},
			Started: func(s runner.Started) { started <- s.Key }})
		ended <- err
	}()
	key := <-started
	var why history.Answer
	require.Eventually(t, func() bool {
		f, err := history.Gather(t.Context(), home.State, key, time.Now(), history.ProcessFacts{Slots: 1})
		require.NoError(t, err)
		why = f.Why()[0]
		return why.Rule == "backoff" || f.Run.Status != state.Running
	}, effort.Patience, 20*time.Millisecond)
	require.Regexp(t, `^run 1 waits until batch 0 of node load is tried again at \d\d:\d\d:\d\d, in .*: \d `+
		`tr(y|ies) failed$`, why.Text)
	batch, err := history.ShowBatch(t.Context(), home.State,
		state.BatchKey{NodeKey: state.NodeKey{RunKey: key, Node: "load"}}, time.Now())
	require.NoError(t, err)
	require.Equal(t, "the server is away", batch.Attempts[0].Failure.Message)
	require.NotNil(t, batch.Attempts[0].Finished)
	cancel()
	<-ended
}
