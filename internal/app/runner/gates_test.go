package runner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/caller"
	"thalweg/internal/app/control"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/worker"
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/gc"
	"thalweg/internal/run/gate"
	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// gateScript waits behind a table, with an answer, and where a check has failed.
const gateScript = `
nodes:
  read:
    type: file_table
    r: {urls: [orders.csv], columns: {id: int, price: int}}
    w:
      name: orders
      approval:
        by: [sales]
        answers:
          cutoff: {type: int, default: 10, min: 0, max: 100}
  big:
    type: table_table
    r: orders
    w: {name: big, having: "w.price > {cutoff}", fields: [r.id, r.price]}
    checks:
      - range: {field: price, max: 60}
        severity: approval
      - unique: id
        severity: approval
  write:
    type: table_file
    r: big
    w: {url_template: "out/above_{cutoff}.csv"}
`

// gateInputs makes a directory with a script, and rows for it.
func gateInputs(t *testing.T, script string) string {
	t.Helper()
	dir := t.TempDir()
	var rows strings.Builder
	rows.WriteString("id,price\n")
	for i := range 100 {
		fmt.Fprintf(&rows, "%d,%d\n", i, i)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "orders.csv"), []byte(rows.String()), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "script.yaml"),
		[]byte(strings.ReplaceAll(script, "[orders.csv]", "["+filepath.Join(dir, "orders.csv")+"]")), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "out"), 0o700))
	return dir
}

// gated is a run with gates in a directory of its own.
type gated struct {
	dir  string
	home *instance.Instance
	key  state.RunKey
}

// begin runs the script until it waits.
func begin(t *testing.T, script string) gated {
	t.Helper()
	dir := gateInputs(t, strings.ReplaceAll(script, `"out/`, `"`+t.TempDir()+`/`))
	g := gated{dir: dir, home: openHome(t, dir), key: state.RunKey{Workspace: "main", Run: 1}}
	t.Cleanup(func() { require.NoError(t, g.home.Close()) })
	sum := g.work(t, runner.Options{})
	require.Equal(t, state.Waiting, sum.Status)
	return g
}

func (g gated) work(t *testing.T, o runner.Options) runner.Summary {
	t.Helper()
	o.ScriptPath, o.Workspace, o.MemoryBytes, o.Cores = filepath.Join(g.dir, "script.yaml"), "main", 512<<20, 1
	sum, err := runner.Run(t.Context(), g.home, o)
	require.NoError(t, err)
	return sum
}

func (g gated) resume(t *testing.T) runner.Summary {
	t.Helper()
	return g.work(t, runner.Options{Resume: true})
}

// sales is somebody who decides as sales.
func sales() caller.Caller { return caller.OfProcess(caller.CLI, "sales") }

func (g gated) decide(t *testing.T, name string, approve bool) error {
	t.Helper()
	_, err := control.Decide(t.Context(), g.home, control.DecisionRequest{Run: g.key, Gate: name, Approve: approve,
		Comment: "because",
		Process: runtime.Process{Caller: sales()}})
	return err
}

func (g gated) node(t *testing.T, name string) state.Node {
	t.Helper()
	n, err := g.home.State.Node(t.Context(), state.NodeKey{RunKey: g.key, Node: name})
	require.NoError(t, err)
	return n
}

func (g gated) order(t *testing.T, o state.Command) {
	t.Helper()
	o.Token, o.Mark = t.Name()+string(o.Kind), state.Mark{Actor: "boss", Time: time.Now()}
	require.NoError(t, state.Direct(t.Context(), g.home.State, g.key, o))
}

// attend lets a run pass its gates to its end. Processes die at the point, the
// N-th time that they pass it: whoever works, and whoever decides. died says
// whether one has.
func attend(t *testing.T, dir, at string) (died bool) {
	t.Helper()
	work := func(want string) {
		text, err := victimCmd(t, dir, at, died).CombinedOutput()
		for err != nil {
			requireKilled(t, err, text)
			died = true
			_, begun := lastRun(t, dir)
			require.True(t, begun)
			text, err = victimCmd(t, dir, "run", true).CombinedOutput()
		}
		require.Equal(t, want+"\n", string(text))
	}
	decide := func(name string) {
		cmd := victimCmd(t, dir, "approve", false)
		cmd.Env = append(cmd.Env, "THALWEG_TEST_GATE="+name, "THALWEG_TEST_DECIDE_AT="+at)
		if text, err := cmd.CombinedOutput(); err != nil {
			requireKilled(t, err, text)
			died = true
			cmd = victimCmd(t, dir, "approve", false)
			cmd.Env = append(cmd.Env, "THALWEG_TEST_GATE="+name)
			text, err = cmd.CombinedOutput()
			if strings.HasPrefix(at, string(job.Decided)) {
				require.NoError(t, err, "what was not recorded was not decided: %s", text)
			} else {
				require.Contains(t, string(text), "is approved already", "what was recorded is carried out")
			}
		}
		require.False(t, waitsFor(t, dir, name))
	}
	resume := func(want string) {
		text, err := victimCmd(t, dir, at, true).CombinedOutput()
		for err != nil {
			requireKilled(t, err, text)
			died = true
			text, err = victimCmd(t, dir, "run", true).CombinedOutput()
		}
		require.Equal(t, want+"\n", string(text))
	}
	work("waiting")
	decide("orders")
	resume("waiting")
	decide("big")
	resume("complete")
	return died
}

// waitsFor reports whether a gate of the last run waits, as people see it.
func waitsFor(t *testing.T, dir, name string) bool {
	t.Helper()
	home, err := instance.Open(t.Context(), filepath.Join(dir, instance.DefaultDir), false)
	require.NoError(t, err)
	defer func() { require.NoError(t, home.Close()) }()
	asked, err := gate.Waiting(t.Context(), home.State, "main", time.Now())
	require.NoError(t, err)
	for _, a := range asked {
		if a.Record.Gate == name {
			return true
		}
	}
	return false
}

// A process that dies at any point of a gate changes nothing of what comes
// behind it: it is asked once, decided by those who decide, and passed.
func TestGateCrashPoints(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	undisturbed := gateInputs(t, gateScript)
	require.False(t, attend(t, undisturbed, "run"))
	want := outputs(t, undisturbed)
	require.Equal(t, []string{"id,price\n98,98\n99,99\n"}, []string{want["above_97.csv"]})
	for i, point := range slices.Concat(job.GatePoints(), job.OrderPoints(), []job.CrashPoint{job.Planned}) {
		if i%effort.Of(3, 1, 1) != 0 {
			continue
		}
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			for n := 1; n == 1 || !testing.Short(); n++ {
				dir := gateInputs(t, gateScript)
				died := attend(t, dir, fmt.Sprintf("%s:%d", point, n))
				require.Equal(t, want, outputs(t, dir))
				if !died {
					require.Greater(t, n, 1, "the crash point is never passed")
					return
				}
			}
		})
	}
}

// Of two people who decide at once one does, and the other is told who.
func TestTwoPeopleDecideAtOnce(t *testing.T) {
	t.Parallel()
	g := begin(t, gateScript)
	errs := make([]error, 6)
	var people sync.WaitGroup
	for i := range errs {
		people.Go(func() { errs[i] = g.decide(t, "orders", i%2 == 0) })
	}
	people.Wait()
	stand := 0
	for i, err := range errs {
		if err == nil {
			stand++
			require.Equal(t, i%2 == 0, g.node(t, "approval:orders").Decision.Approved)
			continue
		}
		require.ErrorContains(t, err, "already: by ")
	}
	require.Equal(t, 1, stand)
}

// Of two decisions of one person at the same moment, from two windows, one stands as well:
// what the other was given with counts for nothing, and it is said so.
func TestOneDecidesTwiceAtOnce(t *testing.T) {
	t.Parallel()
	g := begin(t, gateScript)
	key, mark := state.NodeKey{RunKey: g.key, Node: "approval:orders"}, state.Mark{Actor: "boss", Time: time.Now()}
	wish := func(token string) error {
		return gate.Decide(t.Context(), g.home.State, key,
			gate.DecisionRequest{Approve: true, Mark: mark, Digest: g.node(t, key.Node).GateDigest, Token: token})
	}
	require.NoError(t, wish("one"))
	require.ErrorContains(t, wish("two"), "is approved already: by boss")
	require.Equal(t, "one", g.node(t, key.Node).Decision.Token)
}

// A decision about tables that were made again since they were shown is void,
// whether it was given before or after.
func TestADecisionAboutOtherTablesIsVoid(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	g := begin(t, gateScript)
	shown := g.node(t, "approval:orders").GateDigest
	again := []state.CommandNode{{Node: "read", Replan: true}, {Node: "approval:orders", Replan: true}}
	g.order(t, state.Command{Kind: state.CommandRedo, Nodes: again})
	require.ErrorContains(t, g.decide(t, "orders", true), "does not wait yet")

	rows := "id,price\n1,1\n2,99\n"
	require.NoError(t, os.WriteFile(filepath.Join(g.dir, "orders.csv"), []byte(rows), 0o600))
	require.Equal(t, state.Waiting, g.resume(t).Status)
	require.NotEqual(t, shown, g.node(t, "approval:orders").GateDigest)
	late := gate.DecisionRequest{Approve: true, Mark: state.Mark{Actor: "late", Time: time.Now()}, Digest: shown,
		Token: "late"}
	err := gate.Decide(t.Context(), g.home.State, state.NodeKey{RunKey: g.key, Node: "approval:orders"}, late)
	require.ErrorContains(t, err, "is void: what it shows has changed")
	require.Equal(t, state.Waiting, g.node(t, "approval:orders").Status)
	require.NoError(t, g.decide(t, "orders", true))
	require.Equal(t, state.Waiting, g.resume(t).Status)
	require.NoError(t, g.decide(t, "big", true))
	require.Equal(t, state.Complete, g.resume(t).Status)
}

// An approval does not let a gate pass whose tables are made again by an order
// that leaves the gate out.
func TestAnApprovalOfWhatIsGoneLetsNothingPass(t *testing.T) {
	t.Parallel()
	g := begin(t, gateScript)
	require.NoError(t, g.decide(t, "orders", true))
	g.order(t, state.Command{Kind: state.CommandRedo, Nodes: []state.CommandNode{{Node: "read", Replan: true}}})
	require.NoError(t, os.WriteFile(filepath.Join(g.dir, "orders.csv"), []byte("id,price\n1,99\n"), 0o600))
	sum := g.resume(t)
	require.Equal(t, state.Failed, sum.Status)
	require.Contains(t, sum.Failure.Message, "the decision about gate orders is void")
	require.Contains(t, sum.Failure.Hint, "{{do retry run=1}}")
	require.Equal(t, state.Waiting, g.resume(t).Status, "it asks again")
	require.NoError(t, g.decide(t, "orders", true))
	require.Equal(t, "big", g.resume(t).Asked[0].Record.Gate)
}

// What people look at before a run reads it stays: the table of another run that
// a gate shows, until the gate is decided.
func TestWhatAGateShowsStays(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	g := begin(t, gateScript)
	require.NoError(t, g.decide(t, "orders", true))
	require.NoError(t, func() error { g.resume(t); return g.decide(t, "big", true) }())
	require.Equal(t, state.Complete, g.resume(t).Status)
	require.Equal(t, state.Waiting, g.work(t, runner.Options{Start: []string{"big"}}).Status) // 2
	require.Equal(t, state.Complete, g.work(t, runner.Options{Unattended: true}).Status)      // 3
	_, err := control.Drop(t.Context(), g.home, []state.RunKey{g.key},
		control.DropOptions{By: caller.OfProcess(caller.CLI).Mark("old")})
	require.ErrorContains(t, err, "node approval:orders of run 2, which is running, reads node read of run 1")
	done, err := runGC(t.Context(), g.home, gc.Limits{Keep: 1}, false)
	require.NoError(t, err)
	require.Empty(t, done.Drops)

	g.key.Run = 2
	require.NoError(t, g.decide(t, "orders", true))
	_ = g.work(t, runner.Options{Resume: true, ResumeRun: 2})
	require.NoError(t, g.decide(t, "big", true))
	require.Equal(t, state.Complete, g.work(t, runner.Options{Resume: true, ResumeRun: 2}).Status)
	dropped, err := control.Drop(t.Context(), g.home, []state.RunKey{{Workspace: "main", Run: 1}},
		control.DropOptions{By: caller.OfProcess(caller.CLI).Mark("old")})
	require.NoError(t, err)
	for _, d := range dropped {
		for _, made := range d.Made {
			require.NotContains(t, made.Node, "approval:", "a gate makes nothing")
		}
	}
}

// A gate that shows what somebody has declared invalid meanwhile is not decided,
// and says what there is to do.
func TestWhatAGateShowsIsInvalidated(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	g := begin(t, gateScript)
	require.NoError(t, g.decide(t, "orders", true))
	_ = g.resume(t)
	require.Equal(t, state.Waiting, g.work(t, runner.Options{Start: []string{"big"}}).Status) // 2
	_, err := control.Stop(t.Context(), g.home, g.key, caller.OfProcess(caller.CLI).Mark(""))
	require.NoError(t, err)
	_, err = control.Invalidate(t.Context(), g.home, g.key,
		control.InvalidateOptions{By: caller.OfProcess(caller.CLI).Mark("wrong prices")})
	require.NoError(t, err)
	g.key.Run = 2
	err = g.decide(t, "orders", true)
	require.ErrorContains(t, err,
		"table orders, which gate orders shows, cannot be read any more: table orders of run 1 was invalidated by")
	require.Equal(t, state.Waiting, g.node(t, "approval:orders").Status)
}

// A gate may show a table that nothing behind it reads, also of another run.
func TestAGateShowsWhatNobodyReads(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	g := begin(t, `
nodes:
  read:
    type: file_table
    r: {urls: [orders.csv], columns: {id: int, price: int}}
    w: orders
  limits:
    type: file_table
    r: {urls: [orders.csv], columns: {id: int}}
    w: limits
  write:
    type: table_file
    approval: {show: [orders, limits]}
    r: orders
    w: {url_template: "out/all.csv"}
`)
	require.NoError(t, g.decide(t, "write", true))
	require.Equal(t, state.Complete, g.resume(t).Status)
	sum := g.work(t, runner.Options{Start: []string{"write"}})
	require.Equal(t, state.Waiting, sum.Status, "%+v", sum.Failure)
	for _, s := range sum.Asked[0].Record.Shows {
		require.EqualValues(t, 1, s.Run, s.Table)
	}
}

// A decision about what was looked at is none about something else.
func TestADecisionNamesWhatWasLookedAt(t *testing.T) {
	t.Parallel()
	g := begin(t, gateScript)
	decide := func(digest string) error {
		_, err := control.Decide(t.Context(), g.home, control.DecisionRequest{Run: g.key, Gate: "orders", Approve: true,
			Process: runtime.Process{Caller: sales()},
			Digest:  digest})
		return err
	}
	rec, err := gate.Decode(g.node(t, "approval:orders").Gate)
	require.NoError(t, err)
	require.Contains(t, rec.Decide(g.key, "approve").String(), " digest="+rec.Short()+" ")
	g.order(t, state.Command{Kind: state.CommandStop})
	again := []state.CommandNode{{Node: "read", Replan: true}, {Node: "approval:orders", Replan: true}}
	g.order(t, state.Command{Kind: state.CommandRedo, Nodes: again})
	require.NoError(t, os.WriteFile(filepath.Join(g.dir, "orders.csv"), []byte("id,price\n1,99\n"), 0o600))
	require.Equal(t, state.Waiting, g.resume(t).Status)
	require.ErrorContains(t, decide(rec.Short()), "no longer shows what {{set digest}} "+rec.Short())
	require.ErrorContains(t, decide("x"), "is no digest")
	now, err := gate.Decode(g.node(t, "approval:orders").Gate)
	require.NoError(t, err)
	require.NoError(t, decide(now.Short()))
}

// Whoever looks first after the time is over rejects, also if somebody has
// tried to approve then.
func TestTimeoutsReject(t *testing.T) {
	t.Parallel()
	timed := strings.Replace(gateScript, "by: [sales]", "by: [sales]\n        timeout: 1s", 1)
	over := func(t *testing.T) gated {
		g := begin(t, timed)
		n := g.node(t, "approval:orders")
		r, err := gate.Decode(n.Gate)
		require.NoError(t, err)
		require.Equal(t, r.Since.Add(time.Second), r.Until)
		require.Eventually(t, func() bool { return r.Over(time.Now()) }, effort.Patience, time.Millisecond)
		return g
	}
	t.Run("whoever works", func(t *testing.T) {
		t.Parallel()
		g := over(t)
		sum := g.resume(t)
		require.Equal(t, state.Failed, sum.Status)
		require.Contains(t, sum.Failure.Message, "nobody has approved gate orders within 1.0 s")
	})
	t.Run("whoever decides", func(t *testing.T) {
		t.Parallel()
		g := over(t)
		require.ErrorContains(t, g.decide(t, "orders", true), "nobody has approved gate orders within 1.0 s")
		require.Equal(t, state.Failed, g.node(t, "approval:orders").Status)
		run, err := g.home.State.Run(t.Context(), g.key)
		require.NoError(t, err)
		require.Equal(t, state.Failed, run.Status)
	})
	t.Run("an order that came too late", func(t *testing.T) {
		t.Parallel()
		g := over(t)
		n := g.node(t, "approval:orders")
		g.order(t, state.Command{Kind: state.CommandApprove,
			Nodes: []state.CommandNode{{Node: n.Name, Digest: n.GateDigest}}})
		require.Equal(t, state.Pending, g.node(t, "approval:orders").Status)
		sum := g.resume(t)
		require.Equal(t, state.Failed, sum.Status)
		require.Contains(t, sum.Failure.Message, "nobody has approved")
	})
}

// attended lets a worker go on with the run to its end.
func (g gated) attended(t *testing.T) state.Run {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var serving sync.WaitGroup
	defer serving.Wait()
	serving.Go(func() {
		_ = worker.Serve(ctx, g.home, worker.WorkerOptions{Process: runtime.Process{MemoryBytes: 512 << 20, Cores: 1}})
	})
	var run state.Run
	require.Eventually(t, func() bool {
		var err error
		run, err = g.home.State.Run(ctx, g.key)
		return err == nil && run.Status.Terminal()
	}, effort.Patience, 10*time.Millisecond)
	cancel()
	return run
}

// A worker goes on with a run by itself when it is decided, with the answers.
func TestAWorkerGoesOnWithTheAnswers(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	g := begin(t, strings.Replace(gateScript, "        severity: approval\n      - unique",
		"        severity: warn\n      - unique", 1))
	_, err := control.Decide(t.Context(), g.home, control.DecisionRequest{Run: g.key, Gate: "orders", Approve: true,
		Process: runtime.Process{Caller: sales()},
		Answers: map[string]string{"cutoff": "97"}})
	require.NoError(t, err)
	require.Equal(t, state.Complete, g.attended(t).Status)
	require.EqualValues(t, 2, g.node(t, "big").RowsOut)
	big, err := gate.Decode(g.node(t, "approval:big").Plan)
	require.NoError(t, err)
	require.Equal(t, "no check that would ask has failed", big.Passed)
}

// A worker in another directory holds the output that an answer names against the run's inputs, as they are seen from
// the directory of the run.
func TestAnAnswerNamesNoInput(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	dir := gateInputs(t, strings.NewReplacer("out/above_{cutoff}", "above_{cutoff}",
		"severity: approval", "severity: warn").Replace(gateScript))
	input := filepath.Join(dir, "above_97.csv")
	require.NoError(t, os.Rename(filepath.Join(dir, "orders.csv"), input))
	script, err := os.ReadFile(filepath.Join(dir, "script.yaml"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "script.yaml"),
		[]byte(strings.ReplaceAll(string(script), "orders.csv", "above_97.csv")), 0o600))
	before, err := os.ReadFile(input)
	require.NoError(t, err)
	g := gated{dir: dir, home: openHome(t, dir), key: state.RunKey{Workspace: "main", Run: 1}}
	t.Cleanup(func() { require.NoError(t, g.home.Close()) })
	require.Equal(t, state.Waiting, g.work(t, runner.Options{Dir: dir}).Status)
	_, err = control.Decide(t.Context(), g.home, control.DecisionRequest{Run: g.key, Gate: "orders", Approve: true,
		Process: runtime.Process{Caller: sales()}, Answers: map[string]string{"cutoff": "97"}})
	if err == nil { // nobody asked the directory before the worker
		run := g.attended(t)
		require.Equal(t, state.Failed, run.Status)
		require.Contains(t, run.Failure.Message, "which node read reads in the same run")
	}
	after, err := os.ReadFile(input)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
}

// A run that is waited for goes on by itself, and holds nothing while it waits.
func TestARunIsWaitedFor(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	g := gated{dir: gateInputs(t, strings.ReplaceAll(gateScript, `"out/`, `"`+t.TempDir()+`/`)),
		key: state.RunKey{Workspace: "main", Run: 1}}
	g.home = openHome(t, g.dir)
	t.Cleanup(func() { require.NoError(t, g.home.Close()) })
	var asked []string
	sum := g.work(t, runner.Options{Wait: true, Waits: func(sum runner.Summary) {
		asked = append(asked, sum.Asked[0].Record.Gate)
		require.False(t, g.home.AtWork(g.key))
		shares, err := os.ReadFile(filepath.Join(g.home.Dir, "shares"))
		require.True(t, err != nil || !strings.Contains(string(shares), fmt.Sprint("process ", os.Getpid())),
			string(shares))
		require.NoError(t, os.WriteFile(filepath.Join(g.dir, "script.yaml"), []byte("nodes: {}"), 0o600),
			"it goes on with what it was begun with")
		require.NoError(t, g.decide(t, sum.Asked[0].Record.Gate, true))
	}})
	require.Equal(t, state.Complete, sum.Status)
	require.Equal(t, []string{"orders", "big"}, asked)
}

// What is rejected is asked again, and what is before the gate is not done again.
func TestARejectedGateAsksAgain(t *testing.T) {
	t.Parallel()
	g := begin(t, gateScript)
	require.NoError(t, g.decide(t, "orders", false))
	run, err := g.home.State.Run(t.Context(), g.key)
	require.NoError(t, err)
	require.Equal(t, state.Failed, run.Status, "although nobody works on it")
	require.Contains(t, run.Failure.Message, "has rejected gate orders: because")
	require.ErrorContains(t, g.decide(t, "orders", true), "because")
	read := g.node(t, "read")
	require.Equal(t, state.Waiting, g.resume(t).Status)
	require.Equal(t, read.Generation, g.node(t, "read").Generation)
	require.NoError(t, g.decide(t, "orders", true))
}

// Another run does not read a table whose gate has not let it pass.
func TestATableBehindAGateIsNotReadByOtherRuns(t *testing.T) {
	t.Parallel()
	g := begin(t, gateScript)
	for _, from := range [][]int64{nil, {1}} {
		sum := g.work(t, runner.Options{Start: []string{"big"}, From: from, Unattended: true})
		require.Equal(t, state.Failed, sum.Status)
	}
	require.NoError(t, g.decide(t, "orders", true))
	_ = g.work(t, runner.Options{Resume: true, ResumeRun: 1})
	for _, from := range [][]int64{nil, {1}} {
		require.Equal(t, state.Complete,
			g.work(t, runner.Options{Start: []string{"big"}, From: from, Unattended: true}).Status)
	}
}

// Somebody decides when the last process has left the run because it waits, and
// is not gone: either it goes on, or whoever decides is told that nobody does.
func TestDecidedWhileTheLastOneLeaves(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	for _, approve := range []bool{true, false} {
		t.Run(fmt.Sprint(approve), func(t *testing.T) {
			t.Parallel()
			dir := gateInputs(t, strings.ReplaceAll(gateScript, `"out/`, `"`+t.TempDir()+`/`))
			g := gated{dir: dir, home: openHome(t, dir), key: state.RunKey{Workspace: "main", Run: 1}}
			t.Cleanup(func() { require.NoError(t, g.home.Close()) })
			decided := 0
			leaves := at(job.Left, 1, func() {
				decided++
				require.NoError(t, g.decide(t, "orders", approve))
			})
			var o runner.Options
			leaves(&o)
			sum := g.work(t, o)
			require.Equal(t, 1, decided)
			if !approve {
				require.Equal(t, state.Failed, sum.Status)
				require.Contains(t, sum.Failure.Message, "has rejected gate orders")
				return
			}
			require.Equal(t, state.Waiting, sum.Status)
			require.Len(t, sum.Asked, 1, "%+v", sum)
			require.Equal(t, "approval:big", sum.Asked[0].Node, "it went on to the next gate")
		})
	}
}

// Whoever decides while a process is about to leave, and works still by its
// lock, is not told that nobody works on the run: the process looks once more.
func TestDecidedBeforeTheLastOneLeaves(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	dir := gateInputs(t, strings.ReplaceAll(gateScript, `"out/`, `"`+t.TempDir()+`/`))
	g := gated{dir: dir, home: openHome(t, dir), key: state.RunKey{Workspace: "main", Run: 1}}
	t.Cleanup(func() { require.NoError(t, g.home.Close()) })
	other := openHome(t, dir)
	t.Cleanup(func() { require.NoError(t, other.Close()) })
	g.home.State = &leaving{Store: g.home.State, once: func() {
		out, err := control.Decide(context.Background(), other, control.DecisionRequest{Run: g.key, Gate: "orders",
			Approve: true,
			Comment: "because", Process: runtime.Process{Caller: sales()}})
		require.NoError(t, err)
		require.True(t, out.AtWork)
	}}
	sum := g.work(t, runner.Options{})
	require.Equal(t, state.Waiting, sum.Status)
	require.Len(t, sum.Asked, 1, "%+v", sum)
	require.Equal(t, "approval:big", sum.Asked[0].Node, "it went on to the next gate")
}

// leaving calls once when the role of a coordinator that leaves is given back:
// the run was looked at, and its lock is held.
type leaving struct {
	state.Store
	mu   sync.Mutex
	once func()
}

func (l *leaving) Resign(ctx context.Context, key state.RunKey, role, owner string) error {
	err := l.Store.Resign(ctx, key, role, owner)
	l.mu.Lock()
	defer l.mu.Unlock()
	if do := l.once; do != nil {
		l.once = nil
		do()
	}
	return err
}

// Processes that are asked to leave a run to others, all at once, do not leave it
// to nobody: the last of them stops it.
func TestAllLeaveAtOnce(t *testing.T) {
	t.Parallel()
	dir := gateInputs(t, `
nodes:
  read: {type: file_table, r: {urls: [orders.csv], columns: {id: int, price: int}}, w: orders}
  more: {type: table_table, r: orders, w: more}
`)
	ctx, leave := context.WithCancelCause(context.Background())
	defer leave(nil)
	joined := make(chan struct{})
	var all, gone sync.WaitGroup
	gone.Add(2)
	work := func(o runner.Options) {
		home, err := instance.Open(context.Background(), filepath.Join(dir, instance.DefaultDir), true)
		require.NoError(t, err)
		home.State = &summing{Store: home.State, sums: sync.OnceFunc(func() {
			gone.Done()
			gone.Wait()
		})}
		o.ScriptPath, o.Workspace, o.MemoryBytes, o.Cores = filepath.Join(dir, "script.yaml"), "main", 2<<30, 1
		_, err = runner.Run(ctx, home, o)
		require.NoError(t, err)
		require.NoError(t, home.Close())
	}
	first := sync.OnceFunc(func() {
		all.Go(func() {
			work(runner.Options{Resume: true, Started: func(runner.Started) { close(joined) }})
		})
		<-joined
		leave(runner.ErrLeave)
	})
	work(runner.Options{Process: runtime.Process{Checkpoint: func(job.CrashPoint) { first() }}})
	all.Wait()
	home := openHome(t, dir)
	run, err := home.State.Run(t.Context(), state.RunKey{Workspace: "main", Run: 1})
	require.NoError(t, err)
	require.NoError(t, home.Close())
	require.Equal(t, state.Stopped, run.Status)
}

// summing calls sums before what a run has measured is summed up for people.
type summing struct {
	state.Store
	sums func()
}

func (s *summing) Tally(ctx context.Context, key state.NodeKey) (state.Tally, error) {
	s.sums()
	return s.Store.Tally(ctx, key)
}

// A decision keeps the way in of who made it, and whether the role was verified.
func TestADecisionSaysWhetherTheRoleIsVerified(t *testing.T) {
	t.Parallel()
	for verified, via := range map[bool]caller.Via{true: caller.Session, false: caller.CLI} {
		g := begin(t, gateScript)
		by := caller.Caller{Actor: "ann", Roles: []string{"finance", "sales"}, Verified: verified, Via: via}
		_, err := control.Decide(t.Context(), g.home, control.DecisionRequest{Process: runtime.Process{Caller: by},
			Run:  g.key,
			Gate: "orders", Approve: true, Answers: map[string]string{"cutoff": "97"}})
		require.NoError(t, err)
		d := g.node(t, gate.Prefix+"orders").Decision
		require.Equal(t, []any{"ann", string(via), "sales", verified}, []any{d.Actor, d.Via, d.Role, d.RoleVerified})
	}
}

// A gate can ask for people whose roles are verified, and for somebody else than who began the run.
func TestGatesThatNotEveryRoleDecides(t *testing.T) {
	t.Parallel()
	me, _, _ := strings.Cut(caller.OfProcess(caller.CLI).Actor, "@")
	for name, tc := range map[string]struct {
		key      string
		actor    string
		verified bool
		want     string
	}{
		"verified":                    {"verified: true", "ann", true, ""},
		"not verified":                {"verified: true", "ann", false, "signed in to a server"},
		"somebody else":               {"four_eyes: true", "ann", false, ""},
		"who began it":                {"four_eyes: true", me + "@elsewhere", false, "who began the run"},
		"who began it, at the server": {"four_eyes: true", strings.ToUpper(me), true, "who began the run"},
	} {
		g := begin(t, strings.Replace(gateScript, "by: ", tc.key+"\n        by: ", 1))
		_, err := control.Decide(t.Context(), g.home, control.DecisionRequest{
			Process: runtime.Process{Caller: caller.Caller{Actor: tc.actor, Roles: []string{"sales"}, Verified: tc.verified}},
			Run:     g.key, Gate: "orders", Approve: true, Answers: map[string]string{"cutoff": "97"}})
		if tc.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, tc.want, name)
		require.Equal(t, fault.Forbidden, fault.CodeOf(err), name)
		require.Equal(t, state.Waiting, g.node(t, gate.Prefix+"orders").Status, name)
	}
}
