package runner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/job"
	"thalweg/internal/run/limit"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

const limitScript = `
nodes:
  items:
    type: file_table
    r:
      urls: [%s]
      csv: { hdr_line_idx: 0, first_data_line_idx: 1 }
      columns:
        a: { csv: { col_hdr: a }, col_type: int }
    w:
      name: items
      fields:
        a: { expression: r.a * 3, type: int }
  parts:
    type: table_file
    r: { table: items, expected_batches_total: 60 }
    w:
      url_template: "out/part_{batch_idx|string}.csv"
      columns:
        - { csv: { header: a, format: "%%d" }, name: a, expression: r.a, type: int }
`

// limitInputs writes a script with many small batches.
func limitInputs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	var names []string
	for i := range 3 {
		names = append(names, fmt.Sprintf("in_%d.csv", i))
		text := "a\n"
		for row := range 200 {
			text += fmt.Sprintln(i*200 + row)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, names[i]), []byte(text), 0o600))
	}
	text := fmt.Sprintf(limitScript, strings.Join(names, ", "))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "script.yaml"), []byte(text), 0o600))
	return dir
}

// batchTakes is what each batch takes at least.
const batchTakes = 30 * time.Millisecond

// work makes batches take a while.
func work(p job.CrashPoint) {
	if p == job.Executed {
		<-time.After(batchTakes)
	}
}

// known is a runner.Limiter of tests.
type known struct {
	prospect runner.Prospect
	rates    runner.Rates
}

func (k known) Prospect(context.Context, *script.Script, runner.Options) (runner.Prospect, error) {
	return k.prospect, nil
}
func (k known) Rates(context.Context) (runner.Rates, error) { return k.rates, nil }

// perSlot makes a thousandth of a second of a slot cost a millionth of a dollar.
var perSlot = known{rates: runner.Rates{PerSlotHour: 3_600_000}}

const limitSlots = 2

func runLimited(t *testing.T, dir string, o runner.Options) (runner.Summary, error) {
	t.Helper()
	home := openHome(t, dir)
	defer func() { require.NoError(t, home.Close()) }()
	o.ScriptPath, o.Workspace, o.Dir = filepath.Join(dir, "script.yaml"), "main", dir
	o.Process = runtime.Process{MemoryBytes: 1 << 30, Cores: limitSlots, Checkpoint: work}
	if o.Limiter == nil {
		o.Limiter = perSlot
	}
	return runner.Run(context.Background(), home, o)
}

// seen is a run as state has it.
type seen struct {
	run      state.Run
	nodes    []state.Node
	used     limit.Used
	attempts []state.Attempt
}

func look(t *testing.T, dir string, number int64) (s seen) {
	t.Helper()
	ctx := context.Background()
	home, err := instance.Open(ctx, filepath.Join(dir, instance.DefaultDir), false)
	require.NoError(t, err)
	defer func() { require.NoError(t, home.Close()) }()
	s.run, err = home.State.Run(ctx, state.RunKey{Workspace: "main", Run: number})
	require.NoError(t, err)
	s.nodes, err = home.State.Nodes(ctx, s.run.RunKey)
	require.NoError(t, err)
	elapsed, err := limit.Elapsed(ctx, home.State, s.run, time.Now())
	require.NoError(t, err)
	l := state.Limit{PerSlotHour: state.Money(perSlot.rates.PerSlotHour)}
	s.used = limit.Of(l, elapsed, s.nodes)
	for _, n := range s.nodes {
		all, err := state.All(ctx, home.State.Attempts, n.NodeKey)
		require.NoError(t, err)
		s.attempts = append(s.attempts, all...)
	}
	return s
}

// Runs with limits of parts of what they take pause at most one round of batches above, and write the same when they go
// on.
func TestLimitsPauseRuns(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	dir := limitInputs(t)
	_, err := runLimited(t, dir, runner.Options{})
	require.NoError(t, err)
	want, batches := outputs(t, dir), len(look(t, dir, 1).attempts)
	require.Len(t, want, 60)
	require.Greater(t, batches, 60)
	least := time.Duration(batches) * batchTakes // of slots, whatever else the machine does
	number := int64(1)
	for i := range effort.Of(4, 6, 20) {
		part := 0.2 + 0.6*float64(i/2)/9
		ask := runner.Ask{Elapsed: time.Duration(part * float64(least) / limitSlots).Round(time.Millisecond).String()}
		if i%2 == 1 {
			ask = runner.Ask{Cost: fmt.Sprintf("%.6f", part*least.Seconds()/1e3)}
		}
		require.NoError(t, os.RemoveAll(filepath.Join(dir, "out")))
		sum, err := runLimited(t, dir, runner.Options{Most: ask})
		require.NoError(t, err)
		require.Equal(t, state.Paused, sum.Status, "%+v", ask)
		number++
		at := look(t, dir, number)
		notAbove(t, at)
		require.Len(t, ordersOf(t, dir, number, state.CommandPause), 1)
		require.LessOrEqual(t, len(ordersOf(t, dir, number, state.CommandForesee)), 1)

		_, err = runLimited(t, dir, runner.Options{Resume: true})
		var refused *fault.Error
		require.ErrorAs(t, err, &refused, "it has no more to take")
		require.Equal(t, fault.Script, refused.Kind)
		_, err = runLimited(t, dir, runner.Options{Resume: true, Most: ask})
		require.ErrorAs(t, err, &refused, "nor with the same limit")
		sum, err = runLimited(t, dir, runner.Options{Resume: true, Most: runner.Ask{Elapsed: "1h", Cost: limit.None}})
		require.NoError(t, err)
		require.Equal(t, state.Complete, sum.Status)
		require.Equal(t, want, outputs(t, dir))
	}
}

// notAbove checks that a paused run has taken what it may, and at most one round of batches more.
func notAbove(t *testing.T, s seen) {
	t.Helper()
	command, l := s.run.Command, s.run.Limit
	require.Equal(t, state.CommandPause, command.Kind)
	require.True(t, command.OfLimit())
	var longest time.Duration
	late := 0 // attempts that began behind the limit
	for _, a := range s.attempts {
		longest = max(longest, a.Finished.Sub(a.Started))
		if l.Elapsed > 0 && a.Started.After(s.run.Created.Add(l.Elapsed)) {
			late++
		}
	}
	if l.Elapsed > 0 {
		require.Equal(t, limit.MaxElapsed, command.Actor)
		require.GreaterOrEqual(t, s.used.Elapsed, l.Elapsed)
		require.LessOrEqual(t, late, limitSlots)
		return
	}
	require.Equal(t, limit.MaxCost, command.Actor)
	require.GreaterOrEqual(t, s.used.Cost, l.Cost)
	above := s.used.Cost - l.Cost
	require.LessOrEqual(t, above, l.PerSlotHour.For(2*limitSlots*longest),
		"the round that reached it, and what was at work")
}

func ordersOf(t *testing.T, dir string, number int64, kind state.CommandKind) (out []state.Command) {
	t.Helper()
	ctx := context.Background()
	home, err := instance.Open(ctx, filepath.Join(dir, instance.DefaultDir), false)
	require.NoError(t, err)
	defer func() { require.NoError(t, home.Close()) }()
	events, err := home.State.Events(ctx, state.NodeKey{RunKey: state.RunKey{Workspace: "main", Run: number}}, 0, 100)
	require.NoError(t, err)
	for _, e := range events {
		if e.Kind == state.OrderBegun && e.Command.Kind == kind {
			out = append(out, *e.Command)
		}
	}
	return out
}

// A run whose limit is below what is expected at least is not begun.
func TestExpectedLimitsAreRefused(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	dir := limitInputs(t)
	k := known{prospect: runner.Prospect{Low: limit.Used{Elapsed: time.Hour, Slots: time.Hour}, Of: 3},
		rates: runner.Rates{PerHour: 1_000_000, PerSlotHour: 500_000}}
	for _, ask := range []runner.Ask{{Elapsed: "59m"}, {Cost: "1.49"}, {Elapsed: "2h", Cost: "1.499999"}} {
		sum, err := runLimited(t, dir, runner.Options{Most: ask, Limiter: k})
		var refused *fault.Error
		require.ErrorAs(t, err, &refused)
		require.Contains(t, refused.Message, "nothing was begun")
		require.Contains(t, refused.Message, "3 earlier runs")
		require.Zero(t, sum.Key.Run)
	}
	for text, ask := range map[string]runner.Ask{"no time": {Elapsed: "soon"}, "may cost": {Cost: "-1"},
		"not known": {Cost: "1"}} {
		_, err := runLimited(t, dir, runner.Options{Most: ask,
			Limiter: known{rates: runner.Rates{Unpriced: "the type is not known"}}})
		require.ErrorContains(t, err, text)
	}
	_, begun := lastRun(t, dir)
	require.False(t, begun)
	sum, err := runLimited(t, dir, runner.Options{Most: runner.Ask{Elapsed: "1h", Cost: "1.50"}, Limiter: k})
	require.NoError(t, err)
	require.Equal(t, state.Complete, sum.Status)
}

// A limit outlives the process: time in which nobody works on the run does not count.
func TestLimitsOutliveProcesses(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	dir := limitInputs(t)
	_, err := runLimited(t, dir, runner.Options{})
	require.NoError(t, err)
	want, batches := outputs(t, dir), len(look(t, dir, 1).attempts)
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "out")))
	cmd := victimCmd(t, dir, string(job.Executed)+":6", false)
	cmd.Env = append(cmd.Env, limitOf+"="+fmt.Sprintf("%.6f", 0.9*float64(batches)*batchTakes.Seconds()/1e3))
	text, err := cmd.CombinedOutput()
	requireKilled(t, err, text)
	killed := look(t, dir, 2)
	require.Equal(t, state.Running, killed.run.Status)
	require.False(t, killed.run.Limit.None())

	sum, err := runLimited(t, dir, runner.Options{Resume: true})
	require.NoError(t, err)
	require.Equal(t, state.Paused, sum.Status)
	at := look(t, dir, 2)
	notAbove(t, at)
	reopened := ordersOf(t, dir, 2, state.CommandReopen)
	require.Len(t, reopened, 1)
	require.NotNil(t, reopened[0].Left)
	sum, err = runLimited(t, dir, runner.Options{Resume: true, Most: runner.Ask{Cost: limit.None}})
	require.NoError(t, err)
	require.Equal(t, state.Complete, sum.Status)
	require.Equal(t, want, outputs(t, dir))
	require.Nil(t, look(t, dir, 2).run.Limit)
}
