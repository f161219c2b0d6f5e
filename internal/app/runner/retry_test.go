package runner_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/caller"
	"thalweg/internal/app/control"
	"thalweg/internal/app/runner"
	"thalweg/internal/base/message"
	"thalweg/internal/lang/script"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// plainScript loads a table and writes it.
const plainScript = `
notify:
  - command: ["true"]
    on: [done]
nodes:
  read:
    type: file_table
    r: {urls: [orders.csv], columns: {id: int, price: int}}
    w: orders
  write:
    type: table_file
    approval: {}
    r: orders
    w: {url_template: "out/all.csv", having: w.price > 97}
`

func newPlain(t *testing.T) gated {
	t.Helper()
	dir := gateInputs(t, strings.ReplaceAll(plainScript, `"out/`, `"`+t.TempDir()+`/`))
	g := gated{dir: dir, home: openHome(t, dir), key: state.RunKey{Workspace: "main", Run: 1}}
	t.Cleanup(func() { require.NoError(t, g.home.Close()) })
	return g
}

// A run that is paused is under way to others: they read what it has written,
// and not an earlier run's.
func TestAPausedRunIsNotPassedOver(t *testing.T) {
	t.Parallel()
	g := newPlain(t)
	require.Equal(t, state.Complete, g.work(t, runner.Options{Unattended: true}).Status)
	require.NoError(t, os.WriteFile(filepath.Join(g.dir, "orders.csv"), []byte("id,price\n7,500\n"), 0o600))
	sum := g.work(t, runner.Options{})
	require.Equal(t, state.Waiting, sum.Status)
	_, _, err := control.Pause(t.Context(), g.home, sum.Key, caller.OfProcess(caller.CLI).Mark("not now"))
	require.NoError(t, err)
	sum = g.work(t, runner.Options{Start: []string{"write"}, Unattended: true})
	require.Equal(t, state.Complete, sum.Status, "%+v", sum.Failure)
	require.EqualValues(t, 2, sum.Foreign[0].Source.Run)
}

// The run that takes another one's place after an edit is told of to the same
// hooks: those of the script as it is now, and those beside it.
func TestARetryAfterAnEditKeepsItsHooks(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	g := newPlain(t)
	beside := []script.Hook{{Command: []string{"true"}, On: []message.Kind{message.Failed}}}
	sum := g.work(t, runner.Options{Hooks: beside, Unattended: true})
	require.Equal(t, state.Complete, sum.Status)
	path := filepath.Join(g.dir, "script.yaml")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), "> 97", "> 98", 1)), 0o600))
	r, err := runner.PlanRetry(t.Context(), g.home, sum.Key, runner.RetryOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, r.Changed)
	require.Equal(t, beside, r.Options.Hooks)
}

// The run whose place another one takes goes on no more by itself: it would write
// the same files, as they were before the edit.
func TestARetryAfterAnEditEndsTheRunBefore(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	g := newPlain(t)
	sum := g.work(t, runner.Options{})
	require.Equal(t, state.Waiting, sum.Status)
	path := filepath.Join(g.dir, "script.yaml")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), "> 97", "> 98", 1)), 0o600))
	r, err := runner.PlanRetry(t.Context(), g.home, sum.Key, runner.RetryOptions{})
	require.NoError(t, err)
	before, err := g.home.State.Run(t.Context(), sum.Key)
	require.NoError(t, err)
	require.Equal(t, state.Running, before.Status, "nothing is done yet")
	r.Options.MemoryBytes, r.Options.Cores = 512<<20, 1
	_, err = runner.Run(t.Context(), g.home, r.Options)
	require.NoError(t, err)
	before, err = g.home.State.Run(t.Context(), sum.Key)
	require.NoError(t, err)
	require.Equal(t, state.Stopped, before.Status)
	require.Equal(t, "run 2 takes its place", before.Command.Reason)
	require.ErrorContains(t, g.decide(t, "write", true), "does not wait for a decision: its run was stopped")
}

// A retry after an edit announces what the run that begins then does with each node, whatever
// was edited, and whatever has failed or was invalidated before.
func TestARetryDoesWhatItSays(t *testing.T) {
	t.Parallel()
	swap := func(name, a, b string) func(*testing.T, *reuser) {
		return func(t *testing.T, r *reuser) {
			switch text := r.read(t, name); { // the longer one first: it may have the shorter one in it
			case strings.Contains(text, b):
				r.edit(t, name, b, a)
			case strings.Contains(text, a):
				r.edit(t, name, a, b)
			}
		}
	}
	edits := []func(*testing.T, *reuser){
		swap("score.py", "* 7", "* 8"), swap("script.yaml", "score(r.name, r.list)", "score(r.list, r.name)"),
		swap("script.yaml", "score(desc)", "score(asc)"),
		swap("script.yaml", "min: 0", "min: -1"), swap("items_2.csv", "order_id,value\n", "order_id,value\n17,3.50\n"),
		swap("orders.csv", "\n7,name", "\n7,nome"),
		swap("script.yaml", "nodes:", "# said\nnodes:"), swap("score.py", "* 8", "* 8 // 0"),
		swap("score.py", "* 7", "* 7 // 0"),
		func(t *testing.T, r *reuser) { _ = os.Remove(filepath.Join(r.dir, "out", "all.csv")) },
		func(t *testing.T, r *reuser) {
			_, err := r.run(t, func(o *runner.Options) { o.Start = []string{"orders"} })
			require.NoError(t, err)
		},
	}
	for seed := range uint64(effort.Of(1, 3, 40)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 7))
			r := newReuser(t)
			start := [][]string{nil, {"scored"}, {"one_file"}, {"totals", "one_file"}}[random.IntN(4)]
			r.computed(t, nil)
			latest, err := r.run(t, func(o *runner.Options) { o.Start = start })
			require.NoError(t, err)
			for range 6 {
				for range 1 + random.IntN(3) {
					edits[random.IntN(len(edits))](t, r)
				}
				retry, err := runner.PlanRetry(t.Context(), r.home, latest.Key, runner.RetryOptions{})
				if err != nil || len(retry.Changed) == 0 {
					continue // the run that there is goes on, or there is nothing to do
				}
				opts := retry.Options
				opts.MemoryBytes, opts.Interpreter = 512<<20, "python3"
				planned, err := runner.PlanRun(t.Context(), r.home, opts.Script, opts)
				require.NoError(t, err)
				latest, err = runner.Run(t.Context(), r.home, opts)
				require.NoError(t, err)
				for i, n := range planned {
					did := latest.Nodes[i]
					require.Equal(t, n.Node, did.Name)
					if did.PlanDigest == "" { // the run has failed before it
						continue
					}
					require.Equal(t, n.From, did.ReusedFrom, "node %s of run %d (%s), announced: %q",
						n.Node, latest.Key.Run, did.Status, n.Why)
				}
			}
		})
	}
}
