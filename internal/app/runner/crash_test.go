package runner_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// crashScript has every way in which a node can leave something behind: tables
// from files, a grouped lookup, Python, a unique index, checks of a table and
// of files, files of one and of several batches.
const crashScript = `
nodes:
  orders:
    type: file_table
    r:
      urls: [orders.csv]
      csv: { hdr_line_idx: 0, first_data_line_idx: 1 }
      columns:
        id: { csv: { col_hdr: id }, col_type: int }
        name: { csv: { col_hdr: name }, col_type: string }
    w:
      name: orders
      fields:
        id: { expression: r.id, type: int }
        name: { expression: r.name, type: string }
  items:
    type: file_table
    r:
      urls: [items_1.csv, items_2.csv]
      csv: { hdr_line_idx: 0, first_data_line_idx: 1 }
      columns:
        order_id: { csv: { col_hdr: order_id }, col_type: int }
        value: { csv: { col_hdr: value }, col_type: decimal2 }
    w:
      name: items
      fields:
        order_id: { expression: r.order_id, type: int }
        value: { expression: r.value, type: decimal2 }
        text: { expression: string(r.value), type: string }
      indexes:
        idx_items: non_unique(order_id)
  totals:
    type: table_lookup_table
    r: { table: orders }
    l: { index_name: idx_items, join_on: r.id, group: true, join_type: left }
    w:
      name: totals
      fields:
        id: { expression: r.id, type: int }
        name: { expression: r.name, type: string }
        total: { expression: sum(l.value), type: decimal2 }
        list: { expression: 'string_agg(l.text, ";")', type: string }
      indexes:
        idx_totals_to_check_uniq: unique(id)
    checks:
      - range: {field: total, min: 0}
      - expression: len(w.list) < 8
        severity: warn
      - references: {fields: id, table: orders}
  scored:
    type: table_custom_tfm_table
    custom_proc_type: py_calc
    r: { table: totals }
    p:
      python_code_urls: [score.py]
      calculated_fields:
        score: { expression: "score(r.name, r.list)", type: int }
    w:
      name: scored
      fields:
        id: { expression: r.id, type: int }
        total: { expression: r.total, type: decimal2 }
        list: { expression: r.list, type: string }
        score: { expression: p.score, type: int }
  one_file:
    type: table_file
    r: { table: scored }
    w:
      url_template: out/all.csv
      top: { order: "score(desc)" }
      columns: &columns
        - { csv: { header: id, format: "%d" }, name: id, expression: r.id, type: int }
        - { csv: { header: total, format: "%s" }, name: total, expression: r.total, type: decimal2 }
        - { csv: { header: score, format: "%d" }, name: score, expression: r.score, type: int }
        - { csv: { header: list, format: "%s" }, name: list, expression: r.list, type: string }
  many_files:
    type: table_file
    r: { table: scored, expected_batches_total: 3 }
    w:
      url_template: "out/part_{batch_idx|string}.csv"
      columns: *columns
    checks:
      - reconcile: {value: sum(w.total), table: items, equals: sum(r.value)}
`

const scoreFormula = `
def score(name: str, items: str) -> int:
    return len(name) * 7 + len(items) % 13
`

// crashInputs writes the script and its inputs into a new directory.
func crashInputs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	write("script.yaml", crashScript)
	write("score.py", scoreFormula)
	rng := rand.New(rand.NewPCG(1, 2))
	var orders, items [2]strings.Builder
	orders[0].WriteString("id,name\n")
	items[0].WriteString("order_id,value\n")
	items[1].WriteString("order_id,value\n")
	for i := range 300 {
		fmt.Fprintf(&orders[0], "%d,name %d\n", i, rng.IntN(1000))
		for range rng.IntN(6) {
			fmt.Fprintf(&items[rng.IntN(2)], "%d,%d.%02d\n", i, rng.IntN(500), rng.IntN(100))
		}
	}
	write("orders.csv", orders[0].String())
	write("items_1.csv", items[0].String())
	write("items_2.csv", items[1].String())
	return dir
}

// victimCmd is the test binary as the process to be killed.
func victimCmd(t *testing.T, dir, at string, resume bool) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), crashAt+"="+at)
	if resume {
		cmd.Env = append(cmd.Env, "THALWEG_TEST_RESUME=1")
	}
	return cmd
}

// outputs reads the files under out/ by name.
func outputs(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(filepath.Join(dir, "out"))
	if errors.Is(err, os.ErrNotExist) {
		return out
	}
	require.NoError(t, err)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, "out", e.Name()))
		require.NoError(t, err)
		out[e.Name()] = string(data)
	}
	return out
}

func undisturbed(t *testing.T) map[string]string {
	t.Helper()
	dir := crashInputs(t)
	text, err := victimCmd(t, dir, "run", false).CombinedOutput()
	require.NoError(t, err, string(text))
	require.Equal(t, "complete\n", string(text))
	want := outputs(t, dir)
	require.Len(t, want, 4)
	return want
}

// finish resumes what the victim left and checks that it ends as if nothing had happened.
func finish(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	text, err := victimCmd(t, dir, "run", true).CombinedOutput()
	require.NoError(t, err, string(text))
	require.Equal(t, "complete\n", string(text))
	require.Equal(t, want, outputs(t, dir), "no file is missing, partial, doubled or left over")
	left, err := os.ReadDir(filepath.Join(dir, instance.DefaultDir, "tmp"))
	require.NoError(t, err)
	require.Len(t, left, 1, "scratch files of dead processes are gone")
	require.Equal(t, "guard", left[0].Name())
}

// TestCrashPoints kills the process at each crash point each time that it is
// passed, and resumes.
func TestCrashPoints(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	want := undisturbed(t)
	for i, point := range append(job.CrashPoints(), job.FilePoints()...) {
		if i%effort.Of(3, 1, 1) != 0 {
			continue
		}
		step := effort.Of(3, 3, 1)
		if slices.Contains(job.FilePoints(), point) { // each of many files passes them
			step = effort.Of(40, 40, 1)
		}
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			for n := 1; n == 1 || !testing.Short(); n += step { // -short: only the first time
				dir := crashInputs(t)
				text, err := victimCmd(t, dir, fmt.Sprintf("%s:%d", point, n), false).CombinedOutput()
				if err == nil { // passed fewer than n times
					require.Equal(t, "complete\n", string(text))
					require.Greater(t, n, 1, "the crash point is never passed")
					return
				}
				requireKilled(t, err, text)
				if _, begun := lastRun(t, dir); !begun { // a file of the state directory
					text, err = victimCmd(t, dir, "run", false).CombinedOutput()
					require.NoError(t, err, string(text))
					require.Equal(t, want, outputs(t, dir))
					continue
				}
				requireInterrupted(t, dir)
				for name, data := range outputs(t, dir) {
					if !strings.HasPrefix(name, ".") {
						require.Equal(t, want[name], data, "a file under its final name is whole")
					}
				}
				finish(t, dir, want)
			}
		})
	}
}

func requireKilled(t *testing.T, err error, text []byte) {
	t.Helper()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, string(text))
	status, ok := exit.Sys().(syscall.WaitStatus)
	require.True(t, ok && status.Signaled() && status.Signal() == syscall.SIGKILL, "%v: %s", err, text)
}

func requireInterrupted(t *testing.T, dir string) {
	t.Helper()
	ctx := context.Background()
	home, err := instance.Open(ctx, filepath.Join(dir, instance.DefaultDir), false)
	require.NoError(t, err)
	defer func() { require.NoError(t, home.Close()) }()
	run, err := home.State.Run(ctx, state.RunKey{Workspace: "main", Run: 1})
	require.NoError(t, err)
	require.NotEqual(t, state.Complete, run.Status)
	require.True(t, home.Interrupted(run))
}

func lastRun(t *testing.T, dir string) (state.Run, bool) {
	t.Helper()
	ctx := context.Background()
	home, err := instance.Open(ctx, filepath.Join(dir, instance.DefaultDir), true)
	require.NoError(t, err)
	defer func() { require.NoError(t, home.Close()) }()
	runs, err := state.All(ctx, home.State.Runs, "main")
	require.NoError(t, err)
	if len(runs) == 0 {
		return state.Run{}, false
	}
	return runs[0], true // the latest
}

func openHome(t *testing.T, dir string) *instance.Instance {
	t.Helper()
	home, err := instance.Open(context.Background(), filepath.Join(dir, instance.DefaultDir), true)
	require.NoError(t, err)
	return home
}

func replaceAll(text string, pairs ...string) string {
	return strings.NewReplacer(pairs...).Replace(text)
}

// A run that goes on from another directory writes to where it began to.
func TestOutputsLieWhereTheRunBegan(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	dir := crashInputs(t)
	script := filepath.Join(dir, "script.yaml")
	text, err := os.ReadFile(script)
	require.NoError(t, err)
	absolute := strings.NewReplacer("[orders.csv]", "["+dir+"/orders.csv]", "[items_1.csv, items_2.csv]",
		"["+dir+"/items_1.csv, "+dir+"/items_2.csv]").Replace(string(text))
	require.NoError(t, os.WriteFile(script, []byte(absolute), 0o600))
	want := undisturbed(t)
	killed, err := victimCmd(t, dir, "published:2", false).CombinedOutput()
	requireKilled(t, err, killed)
	cmd := victimCmd(t, t.TempDir(), "run", true)
	cmd.Env = append(cmd.Env, "THALWEG_TEST_HOME="+dir)
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, string(said))
	require.Equal(t, want, outputs(t, dir))
	require.Empty(t, outputs(t, cmd.Dir))
	requireNothingAnnounced(t, dir)
}
