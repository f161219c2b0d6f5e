package runner_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/caller"
	"thalweg/internal/app/control"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/ops/causes"
	"thalweg/internal/run/sheet"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// explained is the report of run 1 as it is at a moment.
func explained(t *testing.T, home *instance.Instance, now time.Time) causes.Report {
	t.Helper()
	facts, err := causes.Gather(t.Context(), home.State, state.RunKey{Workspace: "main", Run: 1}, now)
	require.NoError(t, err)
	r := causes.Explain(facts)
	_, err = json.Marshal(r) // of nothing that was divided by 0
	require.NoError(t, err)
	return r
}

// requireNoSlotsSaid holds a report to what is known without time sheets.
func requireNoSlotsSaid(t *testing.T, r causes.Report) {
	t.Helper()
	require.Zero(t, r.Slots)
	require.Contains(t, strings.Join(r.Notes, "\n"), "nothing is said of free slots")
	for _, n := range r.Nodes {
		for _, c := range n.Causes {
			if c.Cause == "few_batches" || c.Cause == "handover" || c.Cause == "state" || c.Cause == "collector" {
				require.Equal(t, causes.Unknown, c.Verdict, c.Cause)
			}
		}
	}
}

// A run that nobody has worked on, one that fails at once and one without sheets are explained as far as is known.
func TestRunsOfWhichLittleIsKnownAreExplained(t *testing.T) {
	effort.Unraced(t) // times of processes, which other tests race
	t.Parallel()
	dir := sleepyInputs(t, 0)
	home := openHome(t, dir)
	defer func() { require.NoError(t, home.Close()) }()
	opts := runner.Options{ScriptPath: filepath.Join(dir, "script.yaml"), Dir: dir, Workspace: "main",
		Process: runtime.Process{MemoryBytes: victimBytes, Interpreter: "python3"}}
	_, err := runner.Begin(t.Context(), home, opts)
	require.NoError(t, err)
	r := explained(t, home, time.Now().Add(24*time.Hour))
	require.Empty(t, r.Named)
	require.Equal(t, "no batch has begun", r.Why)
	require.Equal(t, []string{"the run is running: this is of its work so far"}, r.Notes)

	dir = sleepyInputs(t, 0)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in_0.csv"), []byte("id\nnone\n"), 0o600))
	text, err := victimCmd(t, dir, "run", false).CombinedOutput()
	require.NoError(t, err, string(text))
	failed := openHome(t, dir)
	defer func() { require.NoError(t, failed.Close()) }()
	r = explained(t, failed, time.Now())
	require.Equal(t, state.Failed, r.Status)
	require.Contains(t, r.Notes[0], "it is failed: this is of the work that it did")
	require.NoError(t, sheet.Drop(t.Context(), failed.State, state.RunKey{Workspace: "main", Run: 1}))
	r = explained(t, failed, time.Now())
	requireNoSlotsSaid(t, r)
}

// A run whose files have no rows is complete at once.
func TestARunOfNothingIsExplained(t *testing.T) {
	effort.Unraced(t) // times of processes, which other tests race
	t.Parallel()
	dir := sleepyInputs(t, 0)
	for i := 1; i < 64; i++ {
		if i > 0 {
			require.NoError(t, os.Remove(filepath.Join(dir, fmt.Sprintf("in_%d.csv", i))))
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in_0.csv"), []byte("id\n"), 0o600))
	text, err := victimCmd(t, dir, "run", false).CombinedOutput()
	require.NoError(t, err, string(text))
	home := openHome(t, dir)
	defer func() { require.NoError(t, home.Close()) }()
	r := explained(t, home, time.Now())
	require.Equal(t, state.Complete, r.Status, string(text))
	require.Empty(t, r.Notes)
	require.Empty(t, r.Named)
	require.NotEmpty(t, r.Why)
}

// Whoever works on a run counts as long as it has said so: not while its batch is claimed by a process that was killed,
// and not while the run is paused.
func TestARunThatIsNotOverIsExplained(t *testing.T) {
	effort.Unraced(t) // times of processes, which other tests race
	t.Parallel()
	dir := sleepyInputs(t, 2)
	w := victimCmd(t, dir, "run", false)
	require.NoError(t, w.Start())
	t.Cleanup(func() { _ = w.Process.Kill() }) // it has ended, unless the test failed
	home := openHome(t, dir)
	defer func() { require.NoError(t, home.Close()) }()
	key := state.RunKey{Workspace: "main", Run: 1}
	began := time.Now()
	require.Eventually(t, func() bool {
		sheets, err := sheet.Of(t.Context(), home.State, key)
		require.NoError(t, err)
		return len(sheets) == 1 && sheets[0].Batches > 0
	}, effort.Patience, 50*time.Millisecond)
	r := explained(t, home, time.Now())
	require.Equal(t, []string{"the run is running: this is of its work so far"}, r.Notes)
	require.Positive(t, r.Slots)
	require.NoError(t, w.Process.Kill())
	_ = w.Wait() // it was killed
	most := time.Since(began).Seconds() + 1
	later := time.Now().Add(240 * time.Hour)
	r = explained(t, home, later)
	require.Less(t, r.Elapsed, most, "up to its last note")
	for _, n := range r.Nodes {
		require.Less(t, n.Slots, 16*most)
	}
	_, _, err := control.Pause(t.Context(), home, key, caller.OfProcess(caller.CLI).Mark("for now"))
	require.NoError(t, err)
	r = explained(t, home, later)
	require.Equal(t, []string{"the run is paused: this is of its work so far"}, r.Notes)
	require.Less(t, r.Elapsed, most)
}
