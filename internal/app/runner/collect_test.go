package runner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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
	"thalweg/internal/app/view"
	"thalweg/internal/io/remote"
	"thalweg/internal/ops/gc"
	"thalweg/internal/run/job"
	"thalweg/internal/run/orders"
	"thalweg/internal/store/parts"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/jobtest"
)

// requireWhole reads every part that a run names which is not dropped: of its
// own nodes, and of those whose rows they have.
func requireWhole(t *testing.T, home *instance.Instance) {
	t.Helper()
	ctx := context.Background()
	runs, err := state.All(ctx, home.State.Runs, "main")
	require.NoError(t, err)
	for _, run := range runs {
		nodes, err := home.State.Nodes(ctx, run.RunKey)
		require.NoError(t, err)
		for _, n := range nodes {
			if run.Dropped != nil {
				continue
			}
			key := n.NodeKey
			if n.ReusedFrom != nil {
				key = *n.ReusedFrom
			}
			all, err := state.All(ctx, home.State.Parts, key)
			require.NoError(t, err)
			for _, p := range all {
				body, _, err := home.Parts.Open(ctx, p.Key, 0, -1)
				require.NoError(t, err, "run %d node %s", run.Run, n.Name)
				sum, bytes, err := parts.Checksum(body)
				require.NoError(t, err)
				require.NoError(t, body.Close())
				require.Equal(t, []any{p.Checksum, p.Bytes}, []any{sum, bytes}, p.Key)
			}
			if n.ReusedFrom != nil && n.Status == state.Succeeded {
				origin, err := home.State.Node(ctx, key)
				require.NoError(t, err)
				require.False(t, origin.Dropped, "run %d has rows of run %d, which is dropped", run.Run, key.Run)
			}
		}
	}
}

// stored are the keys of all parts, with their number of bytes.
func stored(t *testing.T, home *instance.Instance) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	for info, err := range home.Parts.List(context.Background(), "", "") {
		require.NoError(t, err)
		out[info.Key] = info.Bytes
	}
	return out
}

func runGC(ctx context.Context, home *instance.Instance, limits gc.Limits, dry bool) (view.Collection, error) {
	client := remote.New(remote.Config{})
	defer client.Close()
	return control.Collect(ctx, home, control.CollectOptions{Workspace: "main", Limits: limits, DryRun: dry,
		By:      caller.OfProcess(caller.CLI).Mark("old"),
		Process: runtime.Process{Remote: client}})
}

// requireCollected collects, and holds what was said before to what is done, and
// that to the parts that are gone. A second time there is nothing to do.
func requireCollected(t *testing.T, home *instance.Instance, limits gc.Limits) view.Collection {
	t.Helper()
	before := stored(t, home)
	said, err := runGC(t.Context(), home, limits, true)
	require.NoError(t, err)
	require.Equal(t, before, stored(t, home), "a dry run removes nothing")
	done, err := runGC(t.Context(), home, limits, false)
	require.NoError(t, err)
	require.Equal(t, said, done)
	after := stored(t, home)
	gone := gc.Amount{}
	for key, bytes := range before {
		if _, ok := after[key]; !ok {
			gone.Count, gone.Bytes = gone.Count+1, gone.Bytes+bytes
		}
	}
	require.Equal(t, gone, gc.Amount{Count: done.Dead.Count + done.Withdrawn.Count + done.Dropped.Count,
		Bytes: done.Dead.Bytes + done.Withdrawn.Bytes + done.Dropped.Bytes})
	requireWhole(t, home)
	again, err := runGC(t.Context(), home, limits, false)
	require.NoError(t, err)
	nothing := gc.Report{Drops: []int64{}, Runs: again.Runs, Held: done.Held, Unknown: done.Unknown}
	require.Equal(t, view.Collection{Report: nothing, OnDisk: true}, again)
	return done
}

// The latest good run of a script stays: one of which something is invalid is none.
func TestAnInvalidRunIsNotTheLatestGoodOne(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	r := newReuser(t)
	fresh := func(o *runner.Options) { o.Reuse = false }
	r.computed(t, fresh) // 1
	r.computed(t, fresh) // 2
	_, err := control.Invalidate(t.Context(), r.home, state.RunKey{Workspace: "main", Run: 2},
		control.InvalidateOptions{Nodes: []string{"items"}, By: caller.OfProcess(caller.CLI).Mark("wrong")})
	require.NoError(t, err)
	require.Empty(t, requireCollected(t, r.home, gc.Limits{Keep: 1}).Drops)
}

// What was done again, and what dropped runs have written, goes; what others
// have taken over stays, and so does the latest good run.
func TestCollect(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	r := newReuser(t)
	sum, err := r.run(t, nil) // 1
	require.NoError(t, err)
	require.Equal(t, state.Complete, sum.Status)
	want := outputs(t, r.dir)
	done := requireCollected(t, r.home, gc.Limits{})
	require.Equal(t, view.Collection{Report: gc.Report{Drops: []int64{}}, OnDisk: true}, done,
		"all of a good run is needed")

	retry, err := runner.PlanRetry(t.Context(), r.home, sum.Key,
		runner.RetryOptions{Again: orders.RedoSelection{Nodes: []string{"items"}}})
	require.NoError(t, err)
	opts := retry.Options
	opts.MemoryBytes, opts.Interpreter = 512<<20, "python3"
	_, err = runner.Run(t.Context(), r.home, opts)
	require.NoError(t, err)
	done = requireCollected(t, r.home, gc.Limits{})
	require.Positive(t, done.Withdrawn.Count, "%+v", done)
	require.Zero(t, done.Dropped)

	r.edit(t, "score.py", "* 7", "* 8")
	require.NotEmpty(t, r.computed(t, nil))                    // 2: has rows of 1
	r.computed(t, func(o *runner.Options) { o.Reuse = false }) // 3
	r.edit(t, "score.py", "* 8", "* 9")
	r.computed(t, func(o *runner.Options) { o.Reuse = false }) // 4
	done = requireCollected(t, r.home, gc.Limits{OlderThan: time.Hour})
	require.Empty(t, done.Drops, "none is that old")
	done = requireCollected(t, r.home, gc.Limits{Keep: 3})
	require.Empty(t, done.Drops, "run 2 has rows of run 1")
	done = requireCollected(t, r.home, gc.Limits{Keep: 1})
	require.Equal(t, []int64{3, 2, 1}, done.Drops)
	require.Positive(t, done.Dropped.Count)
	require.Positive(t, done.Purged)
	for key := range stored(t, r.home) {
		require.True(t, strings.HasPrefix(key, "main/00004/"), key)
	}
	r.edit(t, "score.py", "* 9", "* 7")
	r.computed(t, nil) // 5
	require.Equal(t, want, outputs(t, r.dir))
	requireWhole(t, r.home)
	r.edit(t, "score.py", "* 7", "* 1 // 0") // 6 fails: the latest good run is over the limit, and stays
	sum, err = r.run(t, nil)
	require.NoError(t, err)
	require.Equal(t, state.Failed, sum.Status)
	done = requireCollected(t, r.home, gc.Limits{Keep: 1})
	require.Empty(t, done.Drops, "run 5 is the latest good one, and has rows of run 4")
	r.computed(t, func(o *runner.Options) { o.Script, o.ScriptPath = nil, r.other(t) }) // 7, of another script
	done = requireCollected(t, r.home, gc.Limits{Keep: 1})
	require.Empty(t, done.Drops, "runs of another script do not count")
}

// other writes the script as it was at first, as another one.
func (r *reuser) other(t *testing.T) string {
	t.Helper()
	r.write(t, "score.py", scoreFormula)
	r.write(t, "other.yaml", r.read(t, "script.yaml"))
	return filepath.Join(r.dir, "other.yaml")
}

// At every point of a run that takes over and computes, everything is collected
// that is not needed, and earlier runs are dropped: the run does not notice.
func TestCollectAtEveryPointOfARun(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	r := newReuser(t)
	_, err := r.run(t, nil) // 1
	require.NoError(t, err)
	r.edit(t, "score.py", "* 7", "* 8")
	_, err = r.run(t, nil) // 2: has rows of 1
	require.NoError(t, err)
	r.edit(t, "score.py", "* 8", "* 9")
	var mu sync.Mutex
	passed := map[job.CrashPoint]int{}
	sum, err := r.run(t, func(o *runner.Options) { // 3: has rows of 1
		o.Checkpoint = func(p job.CrashPoint) {
			mu.Lock()
			defer mu.Unlock()
			passed[p]++
			order := func(kind state.CommandKind) {
				require.NoError(t, state.Direct(context.Background(), r.home.State,
					state.RunKey{Workspace: "main", Run: 3},
					state.Command{Kind: kind, Token: fmt.Sprint(kind, p, passed[p]),
						Mark: state.Mark{Actor: "a", Time: time.Now()}}))
			}
			if paused := p == job.Executed; paused { // what is at work may commit
				order(state.CommandPause)
				defer order(state.CommandUnpause)
			}
			_, err := runGC(context.Background(), r.home, gc.Limits{Keep: 1}, false)
			require.NoError(t, err)
			requireWhole(t, r.home)
		}
	})
	require.NoError(t, err)
	require.Equal(t, state.Complete, sum.Status, "%+v", sum.Failure)
	for _, p := range job.CrashPoints() {
		require.Positive(t, passed[p], p)
	}
	got := outputs(t, r.dir)
	_, err = r.run(t, func(o *runner.Options) { o.Reuse = false })
	require.NoError(t, err)
	require.Equal(t, outputs(t, r.dir), got)
}

// dropping drops run 1 and collects just before, or just behind, the step that
// makes a plan the node's which has rows of that run.
type dropping struct {
	state.Store
	behind bool
	drop   func()
}

func (d *dropping) AdoptPlan(ctx context.Context, key state.NodeKey, f state.Adoption) (string, error) {
	if f.ReusedFrom != nil && !d.behind {
		d.drop()
	}
	standing, err := d.Store.AdoptPlan(ctx, key, f)
	if f.ReusedFrom != nil && d.behind {
		d.drop()
	}
	return standing, err
}

// A run from which rows are being taken over is dropped, by an order that looks
// at nothing: what has its plan by then keeps the parts, and whoever took over
// computes instead.
func TestCollectWhileRowsAreTakenOver(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	for _, behind := range []bool{false, true} {
		t.Run(fmt.Sprint(behind), func(t *testing.T) {
			t.Parallel()
			r := newReuser(t)
			first, err := r.run(t, nil)
			require.NoError(t, err)
			want := outputs(t, r.dir)
			before := stored(t, r.home)
			plain := r.home.State
			var once sync.Once
			r.home.State = &dropping{Store: plain, behind: behind, drop: func() {
				once.Do(func() {
					require.NoError(t, state.Direct(context.Background(), plain, first.Key,
						state.Command{Kind: state.CommandDrop, Token: "t",
							Mark: state.Mark{Actor: "a", Time: time.Now()}}))
					mid := *r.home
					mid.State = plain
					done, err := runGC(context.Background(), &mid, gc.Limits{}, false)
					require.NoError(t, err)
					require.Equal(t, behind, done.Held.Count > 0, "%+v", done)
					left := 0
					for key := range stored(t, r.home) {
						if _, ok := before[key]; ok {
							left++
						}
					}
					require.Equal(t, behind, left > 0)
				})
			}}
			sum, err := r.run(t, nil)
			r.home.State = plain
			require.NoError(t, err)
			require.Equal(t, state.Complete, sum.Status, "%+v", sum.Failure)
			require.Equal(t, want, outputs(t, r.dir))
			requireWhole(t, r.home)
			done, err := runGC(t.Context(), r.home, gc.Limits{}, false)
			require.NoError(t, err)
			require.Zero(t, done.Held, "nobody has its rows in the end")
			requireWhole(t, r.home)
		})
	}
}

// begins calls do once, just before an order begins.
type begins struct {
	state.Store
	do func()
}

func (b *begins) BeginCommand(ctx context.Context, key state.RunKey, o state.Command) error {
	if do := b.do; do != nil {
		b.do = nil
		do()
	}
	return b.Store.BeginCommand(ctx, key, o)
}

// A run that could take rows over begins, and ends, between the moment in which
// a drop has found no readers and that in which it begins.
func TestARunBetweenTheLookAndTheDrop(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	for _, how := range []string{"drop", "gc"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r := newReuser(t)
			first, err := r.run(t, nil)
			require.NoError(t, err)
			want := outputs(t, r.dir)
			if how == "gc" { // another run is the latest good one
				text := r.read(t, "script.yaml")
				r.edit(t, "script.yaml", "expression: r.name,", "expression: r.name + \"!\",")
				r.edit(t, "script.yaml", "expression: string(r.value)", "expression: string(r.value) + \"!\"")
				require.Equal(t, allNodes(), r.computed(t, nil))
				r.write(t, "script.yaml", text)
			}
			other := *r.home
			ran := false
			other.State = &begins{Store: r.home.State, do: func() {
				ran = true
				sum, err := r.run(t, nil)
				require.NoError(t, err)
				require.Equal(t, state.Complete, sum.Status)
			}}
			if how == "gc" {
				_, err = runGC(t.Context(), &other, gc.Limits{Keep: 1}, false)
			} else {
				_, err = control.Drop(t.Context(), &other, []state.RunKey{first.Key},
					control.DropOptions{By: caller.OfProcess(caller.CLI).Mark("old")})
			}
			require.NoError(t, err)
			require.True(t, ran)
			run, err := r.home.State.Run(t.Context(), first.Key)
			require.NoError(t, err)
			require.NotNil(t, run.Dropped)
			_, err = runGC(t.Context(), r.home, gc.Limits{}, false)
			require.NoError(t, err)
			requireWhole(t, r.home)
			require.Equal(t, want, outputs(t, r.dir))
		})
	}
}

// collectVictim is a victim that collects: "POINT:N".
func collectVictim(ctx context.Context, home *instance.Instance, client *remote.Client, point string) int {
	die := jobtest.DieAt(point)
	home.State = jobtest.Orders(home.State, die)
	_, err := control.Collect(ctx, home, control.CollectOptions{Workspace: "main", Limits: gc.Limits{Keep: 1},
		By: caller.OfProcess(caller.CLI).Mark("old"), Process: runtime.Process{Remote: client, Checkpoint: die}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// Whoever collects is killed at each of its points: nothing that is needed is
// gone, and the next one removes the rest.
func TestCollectCrashPoints(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	for i, point := range append(job.CollectPoints(), job.OrderPoints()...) {
		if i%effort.Of(4, 2, 1) != 0 {
			continue
		}
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			dir := crashInputs(t)
			text, err := victimCmd(t, dir, "published:2", false).CombinedOutput()
			requireKilled(t, err, text)
			text, err = victimCmd(t, dir, "order stop run", false).CombinedOutput()
			require.NoError(t, err, string(text))
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "out")))
			for range 2 {
				text, err = victimCmd(t, dir, "run", false).CombinedOutput()
				require.NoError(t, err, string(text))
			}
			want, kept := outputs(t, dir), "main/00003/"
			if point == job.Cleared { // a run that begins clears what earlier ones left: this one is the last
				text, err = victimCmd(t, dir, "published:2", false).CombinedOutput()
				requireKilled(t, err, text)
				text, err = victimCmd(t, dir, "order stop run", false).CombinedOutput()
				require.NoError(t, err, string(text))
				kept = "main/0000[34]/"
			}
			killed := 0
			for n := 1; n <= effort.Of(1, 2, 20); n++ {
				text, err = victimCmd(t, dir, fmt.Sprintf("collect %s:%d", point, n), false).CombinedOutput()
				if err != nil {
					requireKilled(t, err, text)
					killed++
				}
				home := openHome(t, dir)
				requireWhole(t, home)
				require.NoError(t, home.Close())
				if err == nil {
					break
				}
			}
			require.Positive(t, killed, "the crash point is never passed")
			home := openHome(t, dir)
			_, err = runGC(t.Context(), home, gc.Limits{Keep: 1}, false)
			require.NoError(t, err)
			requireWhole(t, home)
			for key := range stored(t, home) {
				require.Regexp(t, "^"+kept, key)
			}
			require.NoError(t, home.Close())
			requireNothingAnnounced(t, dir)
			text, err = victimCmd(t, dir, "run", false).CombinedOutput()
			require.NoError(t, err, string(text))
			require.Equal(t, want, outputs(t, dir))
		})
	}
}

// What a run has written again is gone although a run that is over has taken the
// node over: nobody reads the earlier rows any more. Who had them takes the node
// over again, or computes it, when somebody wants more of that run.
func TestCollectWhatWasWrittenAgain(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	r := newReuser(t)
	first, err := r.run(t, nil)
	require.NoError(t, err)
	r.edit(t, "score.py", "* 7", "* 8")
	second, err := r.run(t, nil) // has rows of 1
	require.NoError(t, err)
	want := outputs(t, r.dir)
	again := func(key state.RunKey, node string) runner.Summary {
		retry, err := runner.PlanRetry(t.Context(), r.home, key,
			runner.RetryOptions{Again: orders.RedoSelection{Nodes: []string{node}}})
		require.NoError(t, err)
		opts := retry.Options
		opts.MemoryBytes, opts.Interpreter = 512<<20, "python3"
		sum, err := runner.Run(t.Context(), r.home, opts)
		require.NoError(t, err)
		return sum
	}
	require.Equal(t, state.Complete, again(first.Key, "items").Status)
	done := requireCollected(t, r.home, gc.Limits{})
	require.Positive(t, done.Withdrawn.Count)
	require.Zero(t, done.Held.Count)
	require.NotEqual(t, want, outputs(t, r.dir), "the files are those of the first run")
	require.Equal(t, state.Complete, again(second.Key, "scored").Status)
	require.Equal(t, want, outputs(t, r.dir))
}
