package runner_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/fault"
	"thalweg/internal/store/parts"
	"thalweg/internal/store/state"
	"thalweg/internal/test/durabletest"
	"thalweg/internal/test/effort"
)

// sqliteFiles are the files that SQLite writes: it flushes them itself.
func sqliteFiles(path string) bool {
	dir, name := filepath.Split(path)
	return filepath.Clean(dir) == instance.DefaultDir && (name == "state.db" || name == "state.db-wal" ||
		name == "state.db-sums")
}

// powerScript has tables in parts, a side table, an output file in directories
// that are not there yet, and one for each batch.
const powerScript = `
nodes:
  load:
    type: file_table
    r: {urls: ["{dir}/in.csv"], types: {id: int, name: string}}
    w: rows
    checks:
      - accepted_values: {field: name, values: [a, b]}
        severity: warn
  write:
    type: table_file
    r: rows
    w: "{dir}/out/deep/all.csv"
  each:
    type: table_file
    r: {table: rows, expected_batches_total: 2}
    w: "{dir}/out/each/part_{batch_idx|string}.csv"
`

// powerTree writes the script and its input.
func powerTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "script.yaml"), []byte(powerScript), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in.csv"), []byte("id,name\n1,a\n2,b\n3,c\n4,a\n"), 0o644))
	return dir
}

// powerRun runs or resumes the script on a disk.
func powerRun(t *testing.T, disk *durabletest.Disk, dir string, resume bool,
	started ...func(runner.Started)) (sum runner.Summary, err error) {
	t.Helper()
	home, err := instance.OpenOn(t.Context(), disk.FS(), filepath.Join(dir, instance.DefaultDir), true)
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, home.Close()) }()
	opts := runner.Options{ScriptPath: filepath.Join(dir, "script.yaml"), Params: map[string]string{"dir": dir},
		Workspace: instance.DefaultWorkspace, Process: runtime.Process{MemoryBytes: 512 << 20, Cores: 1,
			Interpreter: "python3"},
		Resume: resume}
	for _, f := range started {
		opts.Started = f
	}
	return runner.Run(t.Context(), home, opts)
}

// powerOutputs reads the files under out/, also hidden ones.
func powerOutputs(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(filepath.Join(dir, "out"), func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		out[rel] = string(text)
		return err
	})
	require.NoError(t, err)
	return out
}

// powerUndisturbed gives the output of a run to which nothing happens, and its steps.
func powerUndisturbed(t *testing.T) (map[string]string, []string) {
	t.Helper()
	dir := powerTree(t)
	disk, err := durabletest.New(dir, durabletest.Plan{}, sqliteFiles)
	require.NoError(t, err)
	sum, err := powerRun(t, disk, dir, false)
	require.NoError(t, err)
	require.Equal(t, state.Complete, sum.Status)
	want := powerOutputs(t, dir)
	require.Len(t, want, 3)
	return want, disk.Steps()
}

// referred checks that all that the state refers to is there and whole: parts,
// and the files of batches that have committed.
func referred(t *testing.T, dir, what string) (runs int) {
	t.Helper()
	home, err := instance.Open(t.Context(), filepath.Join(dir, instance.DefaultDir), true)
	require.NoError(t, err, what)
	defer func() { require.NoError(t, home.Close(), what) }()
	all, err := state.All(t.Context(), home.State.Runs, instance.DefaultWorkspace)
	require.NoError(t, err, what)
	for _, r := range all {
		for _, n := range r.Nodes {
			key := state.NodeKey{RunKey: r.RunKey, Node: n.Name}
			listed, err := state.All(t.Context(), home.State.Parts, key)
			require.NoError(t, err, what)
			for _, p := range listed {
				_, release, err := home.Parts.Fetch(t.Context(), p.Key, p.Checksum)
				require.NoError(t, err, "%s: part %s", what, p.Key)
				release()
			}
			files, err := state.All(t.Context(), home.State.Files, key)
			require.NoError(t, err, what)
			for _, f := range files {
				require.Equal(t, f.Checksum, sumOf(t, f.URL, what), "%s: file %s", what, f.URL)
			}
		}
	}
	return len(all)
}

func sumOf(t *testing.T, path, what string) string {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err, what)
	defer f.Close()
	sum, _, err := parts.Checksum(f)
	require.NoError(t, err, what)
	return sum
}

// whole checks that no file under a final name is anything but what it has to be.
func whole(t *testing.T, dir string, want map[string]string, what string) {
	t.Helper()
	for path, text := range powerOutputs(t, dir) {
		if !strings.HasPrefix(filepath.Base(path), ".") {
			require.Equal(t, want[path], text, "%s: %s is torn", what, path)
		}
	}
}

// resumed checks that the run, or a new one, ends as if nothing had happened.
func resumed(t *testing.T, dir string, want map[string]string, resume bool, what string) {
	t.Helper()
	disk, err := durabletest.New(dir, durabletest.Plan{}, sqliteFiles)
	require.NoError(t, err)
	sum, err := powerRun(t, disk, dir, resume)
	require.NoError(t, err, what)
	require.Equal(t, state.Complete, sum.Status, what)
	require.Equal(t, want, powerOutputs(t, dir), what)
}

// The power is cut before or after each step by which files are made to last.
// What was not flushed is lost, torn, or there. Afterwards all that the state
// refers to is whole, no file under a final name is torn, and the run goes on.
func TestChaosPowerCuts(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	want, steps := powerUndisturbed(t)
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	trials := 0
	for at := 1; at <= len(steps); at++ {
		for _, after := range []bool{false, true} {
			for range effort.Of(1, 1, 3) {
				if rng.IntN(effort.Of(40, 16, 1)) > 0 {
					continue
				}
				trials++
				powerCut(t, want, durabletest.Plan{At: at, After: after, Seed: rng.Uint64()}, steps[at-1])
			}
		}
	}
	t.Logf("%d cuts at %d steps", trials, len(steps))
}

func powerCut(t *testing.T, want map[string]string, plan durabletest.Plan, step string) {
	t.Helper()
	dir := powerTree(t)
	disk, err := durabletest.New(dir, plan, sqliteFiles)
	require.NoError(t, err)
	what := step + map[bool]string{true: ", after it", false: ", before it"}[plan.After]
	known := false // the run, to whoever began it
	sum, err := powerRun(t, disk, dir, false, func(runner.Started) { known = !disk.Cut() })
	if err == nil {
		require.Equal(t, state.Failed, sum.Status, what)
	}
	require.NoError(t, disk.Restore(), what)
	whole(t, dir, want, what)
	runs := referred(t, dir, what)
	require.True(t, runs > 0 || !known, "%s: the run is lost", what)
	resumed(t, dir, want, runs > 0, what)
}

// Each step fails once, for want of space and of a sound disk. The run says
// what, where and what to do, or does without; then it goes on.
func TestChaosEveryStepFails(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	want, steps := powerUndisturbed(t)
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	trials, done := 0, 0
	for at := 1; at <= len(steps); at++ {
		for _, with := range []error{syscall.ENOSPC, syscall.EIO} {
			if rng.IntN(effort.Of(40, 16, 1)) > 0 {
				continue
			}
			trials++
			if stepFails(t, want, durabletest.Plan{At: at, Fail: with}, steps[at-1]) {
				done++
			}
		}
	}
	t.Logf("%d failures of %d steps; %d runs did without the step", trials, len(steps), done)
}

// stepFails reports whether the run has completed without the step.
func stepFails(t *testing.T, want map[string]string, plan durabletest.Plan, step string) bool {
	t.Helper()
	dir := powerTree(t)
	disk, err := durabletest.New(dir, plan, sqliteFiles)
	require.NoError(t, err)
	what := step + ": " + plan.Fail.Error()
	sum, err := powerRun(t, disk, dir, false)
	if err == nil && sum.Status == state.Complete {
		require.Equal(t, want, powerOutputs(t, dir), what)
		return true
	}
	f := fault.Of(err)
	if err == nil {
		require.NotNil(t, sum.Failure, what)
		require.Equal(t, fault.Environment, sum.Failure.Kind, what)
		require.NotEmpty(t, sum.Failure.Hint, what)
		require.Contains(t, sum.Failure.Message, plan.Fail.Error(), what)
	} else {
		require.Equal(t, fault.Environment, f.Kind, "%s: %v", what, err)
		require.NotEmpty(t, f.Hint, what)
		require.ErrorIs(t, err, plan.Fail, what)
	}
	whole(t, dir, want, what)
	runs := referred(t, dir, what)
	resumed(t, dir, want, runs > 0, what)
	return false
}

// No file can be longer than some bytes: SQLite, DuckDB and Thalweg meet that
// wherever a write of theirs comes first beyond it, and get EFBIG. The run says
// so, or ends as it should; it goes on when there is room.
func TestChaosFilesThatCannotGrow(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	want := undisturbed(t)
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	for range effort.Of(1, 3, 60) {
		limit := int(math.Exp(rng.Float64()*math.Log(400))) << 10 // 1 to 400 KiB, each length as likely as its double
		dir := crashInputs(t)
		cmd := victimCmd(t, dir, "run", false)
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", fileBytesMax, limit))
		text, err := cmd.CombinedOutput()
		what := fmt.Sprintf("%d bytes: %s", limit, text)
		if err == nil && string(text) != "complete\n" {
			require.Contains(t, string(text), "failed\nenvironment ", what)
		}
		require.NotContains(t, string(text), "goroutine ", what)
		for name, text := range outputs(t, dir) {
			if !strings.HasPrefix(name, ".") {
				require.Equal(t, want[name], text, what)
			}
		}
		if strings.Contains(string(text), "complete") {
			require.Equal(t, want, outputs(t, dir), what)
			continue
		}
		if referred(t, dir, what) == 0 {
			text, err := victimCmd(t, dir, "run", false).CombinedOutput()
			require.NoError(t, err, "%s%s", what, text)
			require.Equal(t, want, outputs(t, dir), what)
			continue
		}
		finish(t, dir, want)
	}
}
