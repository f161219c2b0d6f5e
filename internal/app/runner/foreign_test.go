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

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/gc"
	"thalweg/internal/ops/history"
	"thalweg/internal/run/job"
	"thalweg/internal/run/orders"
	"thalweg/internal/store/parts"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// foreignScript has a table, timed, that is another one each time that it is
// made (the formula reads a file), and nodes that read it: a run that starts
// with them reads the one of an earlier run.
const foreignScript = `
nodes:
  base:
    type: file_table
    r:
      urls: [DIR/1.csv, DIR/2.csv, DIR/3.csv, DIR/4.csv]
      csv: {hdr_line_idx: 0, first_data_line_idx: 1}
      columns: {id: {csv: {col_hdr: id}, col_type: int}}
    w: {name: base, fields: {id: {expression: r.id, type: int}}}
  timed:
    type: table_custom_tfm_table
    custom_proc_type: py_calc
    r: base
    p:
      python_code_urls: [DIR/times.py]
      calculated_fields:
        value: {expression: "times(r.id)", type: int}
    w: {name: timed, fields: {id: {expression: r.id, type: int}, value: {expression: p.value, type: int}}}
  copied:
    type: table_table
    r: timed
    w: copied
  written:
    type: table_file
    r: copied
    w: {url_template: DIR/out.csv, columns: [{name: id, expression: r.id, type: int, csv: {header: ` +
	`id}}, {name: value, expression: r.value, type: int, csv: {header: value}}]}
`

// foreigner runs foreignScript: first all of it, then from its second half on.
type foreigner struct {
	dir  string
	home *instance.Instance
}

func newForeigner(t *testing.T) *foreigner {
	t.Helper()
	f := &foreigner{dir: t.TempDir()}
	var err error
	f.home, err = instance.Open(t.Context(), filepath.Join(f.dir, instance.DefaultDir), true)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.home.Close()) })
	f.write(t, "script.yaml", strings.ReplaceAll(foreignScript, "DIR", f.dir))
	f.write(t, "times.py", "FACTOR = int(open('"+f.dir+"/factor').read())\n\ndef times(x):\n    return x * FACTOR\n")
	for i := range 4 {
		f.write(t, fmt.Sprintf("%d.csv", i+1), fmt.Sprintf("id\n%d\n%d\n", 2*i, 2*i+1))
	}
	f.run(t, 1, func(o *runner.Options) { o.Start = nil })
	return f
}

func (f *foreigner) write(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600))
}

// run runs copied and written with a factor for whatever is computed of timed.
func (f *foreigner) run(t *testing.T, factor int, change func(*runner.Options)) runner.Summary {
	t.Helper()
	f.write(t, "factor", fmt.Sprint(factor))
	opts := runner.Options{ScriptPath: filepath.Join(f.dir, "script.yaml"), Workspace: "main",
		Process: runtime.Process{MemoryBytes: 512 << 20, Cores: 1, Interpreter: "python3",
			Tune: func(b *budget.Budget) { b.Slots, b.BatchBytes, b.SmallBytes = 1, 1, 1 }}, Reuse: true,
		Start: []string{"copied"}}
	if change != nil {
		change(&opts)
	}
	sum, err := runner.Run(context.Background(), f.home, opts)
	require.NoError(t, err)
	return sum
}

// elsewhere is the same state directory in another process.
func (f *foreigner) elsewhere(t *testing.T) *foreigner {
	t.Helper()
	home := openHome(t, f.dir)
	t.Cleanup(func() { require.NoError(t, home.Close()) })
	return &foreigner{dir: f.dir, home: home}
}

// retry makes table timed of run 1 again, in another process.
func (f *foreigner) retry(t *testing.T, factor int) {
	t.Helper()
	f = f.elsewhere(t)
	key := state.RunKey{Workspace: "main", Run: 1}
	retry, err := runner.PlanRetry(context.Background(), f.home, key,
		runner.RetryOptions{Again: orders.RedoSelection{Nodes: []string{"timed"}}})
	require.NoError(t, err)
	sum := f.run(t, factor, func(o *runner.Options) {
		o.ScriptPath, o.Start = "", nil
		o.Resume, o.Pinned, o.ResumeRun, o.Again = true, true, retry.Options.ResumeRun, retry.Options.Again
	})
	require.Equal(t, state.Complete, sum.Status, "%+v", sum.Failure)
}

// requireFactor holds the file that was written to one table.
func (f *foreigner) requireFactor(t *testing.T, factor int) {
	t.Helper()
	want := "id,value\n"
	for i := range 8 {
		want += fmt.Sprintf("%d,%d\n", i, i*factor)
	}
	got, err := os.ReadFile(filepath.Join(f.dir, "out.csv"))
	require.NoError(t, err)
	require.Equal(t, want, string(got))
}

// at calls do once, when a run comes to a point the N-th time.
func at(point job.CrashPoint, n int, do func()) func(*runner.Options) {
	var mu sync.Mutex
	return func(o *runner.Options) {
		o.Checkpoint = func(p job.CrashPoint) {
			mu.Lock()
			defer mu.Unlock()
			if p == point {
				if n--; n == 0 {
					do()
				}
			}
		}
	}
}

// A table of another run is made again at some point of a run that reads it: all
// of its rows are those of one table, the one that stands.
func TestASourceIsDoneAgainWhileItIsRead(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	type moment struct {
		point job.CrashPoint
		nth   int
	}
	few := []moment{{job.Claimed, 1}, {job.Committed, 2}}
	many := append([]moment{{job.Planned, 1}, {job.Planned, 2}, {job.Claimed, 2}, {job.Executed, 1},
		{job.Executed, 2}, {job.Committed, 4}, {job.Settling, 1}}, few...)
	for _, m := range effort.Of(few[1:], few, many) {
		t.Run(fmt.Sprintf("%s %d", m.point, m.nth), func(t *testing.T) {
			t.Parallel()
			f := newForeigner(t)
			f.requireFactor(t, 1)
			passed := false
			sum := f.run(t, 1, at(m.point, m.nth, func() {
				passed = true
				f.retry(t, 7)
			}))
			require.True(t, passed)
			require.Equal(t, state.Complete, sum.Status, "%+v", sum.Failure)
			factor := 7
			if m.point == job.Settling || m == (moment{job.Planned, 2}) { // it had read all of it
				factor = 1
			}
			f.requireFactor(t, factor)
		})
	}
}

// moving calls do once, behind the first look at table timed of run 1: when the
// node was read, and what it has written was not.
type moving struct {
	state.Store
	mu   sync.Mutex
	once func()
}

func (m *moving) Parts(ctx context.Context, key state.NodeKey, page state.Page) ([]state.Part, int64, error) {
	if key.Run == 1 && key.Node == "timed" {
		m.mu.Lock()
		do := m.once
		m.once = nil
		m.mu.Unlock()
		if do != nil {
			do()
		}
	}
	return m.Store.Parts(ctx, key, page)
}

// A table is ordered to be made again between the look at its node and the one
// at its parts: it is not read as the empty table that it is for that moment.
func TestASourceIsWithdrawnBetweenTwoLooks(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	f := newForeigner(t)
	f.write(t, "factor", "7")
	plain := f.home.State
	var other sync.WaitGroup
	f.home.State = &moving{Store: plain, once: func() {
		f.withdraw(t, plain)
		elsewhere := f.elsewhere(t)
		other.Go(func() { elsewhere.goOn(t) })
	}}
	sum := f.run(t, 7, nil)
	other.Wait()
	require.Equal(t, state.Complete, sum.Status, "%+v", sum.Failure)
	f.requireFactor(t, 7)
}

// outdated calls again behind a list of runs in which table timed of run 1 is not
// there, and gives that list: when it is seen, it is over.
type outdated struct {
	*moving
	again func()
}

func (o *outdated) Runs(ctx context.Context, workspace string, page state.Page) ([]state.Run, int64, error) {
	runs, next, err := o.moving.Runs(ctx, workspace, page)
	for _, r := range runs {
		if brief, _ := r.Brief("timed"); r.Run == 1 && brief.Status != state.Succeeded {
			o.mu.Lock()
			do := o.again
			o.again = nil
			o.mu.Unlock()
			if do != nil {
				do()
			}
		}
	}
	return runs, next, err
}

// A table is made again, and its run is over, between the look at the list of
// runs, which says that it is not there, and the look at its run.
func TestASourceComesBackBetweenTwoLooks(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	f := newForeigner(t)
	f.write(t, "factor", "7")
	plain := f.home.State
	passed := false
	f.home.State = &outdated{
		moving: &moving{Store: plain, once: func() { f.withdraw(t, plain) }},
		again:  func() { passed = true; f.elsewhere(t).goOn(t) },
	}
	sum := f.run(t, 7, nil)
	require.True(t, passed)
	require.Equal(t, state.Complete, sum.Status, "%+v", sum.Failure)
	f.requireFactor(t, 7)
}

// withdraw orders table timed of run 1 to be made again.
func (f *foreigner) withdraw(t *testing.T, in state.Store) {
	order := state.Command{Kind: state.CommandRedo, Token: "t", Nodes: []state.CommandNode{{Node: "timed"}},
		Mark: state.Mark{Actor: "ann", Time: time.Now()}}
	require.NoError(t, state.Direct(context.Background(), in, state.RunKey{Workspace: "main", Run: 1}, order))
}

// goOn works on run 1 until it is over.
func (f *foreigner) goOn(t *testing.T) {
	sum := f.run(t, 7, func(o *runner.Options) {
		o.ScriptPath, o.Start, o.Resume, o.Pinned, o.ResumeRun = "", nil, true, true, 1
	})
	require.Equal(t, state.Complete, sum.Status, "%+v", sum.Failure)
}

// Rows that were taken over are declared invalid, or dropped, when the node that
// has them is done, and others read it: all is computed that hangs on them.
func TestTakenOverRowsAreLostWhileTheyAreRead(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	both := []state.CommandKind{state.CommandDrop, state.CommandInvalidate}
	for _, kind := range effort.Of(both[:1], both, both) {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			r := newReuser(t)
			first, err := r.run(t, nil)
			require.NoError(t, err)
			r.edit(t, "score.py", "* 7", "* 8")
			require.NotEmpty(t, r.computed(t, func(o *runner.Options) { o.Reuse = false }))
			want := outputs(t, r.dir)
			r.edit(t, "score.py", "* 8", "* 7")
			r.edit(t, "score.py", "* 7", "* 8  ")
			sum, err := r.run(t, at(job.Claimed, 1, func() {
				for _, run := range []int64{1, 2} {
					key := state.RunKey{Workspace: "main", Run: run}
					require.NoError(t, state.Direct(context.Background(), r.home.State, key,
						state.Command{Kind: kind, Token: "t", Mark: state.Mark{Actor: "ann", Time: time.Now()}}))
				}
				if kind == state.CommandDrop {
					_, err := runGC(context.Background(), r.home, gc.Limits{}, false)
					require.NoError(t, err)
				}
			}))
			require.NoError(t, err)
			require.Equal(t, state.Complete, sum.Status, "%+v", sum.Failure)
			require.Equal(t, allNodes(), computedOf(sum), "nothing is left of run %d", first.Key.Run)
			require.Equal(t, want, outputs(t, r.dir))
			requireWhole(t, r.home)
		})
	}
}

// A source that is gone for good is one clear failure, and so is one that is made
// again and again.
func TestASourceThatCannotBeRead(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	key := state.RunKey{Workspace: "main", Run: 1}
	t.Run("invalidated", func(t *testing.T) {
		t.Parallel()
		f := newForeigner(t)
		sum := f.run(t, 1, at(job.Committed, 1, func() {
			require.NoError(t, state.Direct(context.Background(), f.home.State, key,
				state.Command{Kind: state.CommandInvalidate,
					Token: "t", Mark: state.Mark{Actor: "ann", Reason: "wrong", Time: time.Now()}}))
		}))
		require.Equal(t, state.Failed, sum.Status)
		require.Contains(t, sum.Failure.Message, "table timed of run 1 was invalidated by ann on")
		f = f.elsewhere(t)
		sum = f.run(t, 3, func(o *runner.Options) { o.Start = nil })
		require.Equal(t, state.Complete, sum.Status)
		f.requireFactor(t, 3)
	})
	t.Run("named and invalidated", func(t *testing.T) {
		t.Parallel()
		f := newForeigner(t)
		named := at(job.Committed, 1, func() {
			require.NoError(t, state.Direct(context.Background(), f.home.State, key,
				state.Command{Kind: state.CommandInvalidate,
					Token: "t", Mark: state.Mark{Actor: "ann", Reason: "wrong", Time: time.Now()}}))
		})
		sum := f.run(t, 1, func(o *runner.Options) { named(o); o.From = []int64{1} })
		require.Equal(t, state.Failed, sum.Status)
		require.Contains(t, sum.Failure.Message, "table timed of run 1 was invalidated by ann on")
	})
	t.Run("again and again", func(t *testing.T) {
		t.Parallel()
		f := newForeigner(t)
		again := 0
		begun := func(p job.CrashPoint) {
			if p == job.Planned && again <= orders.PlanAgainMax {
				again++
				order := state.Command{Kind: state.CommandRedo, Token: fmt.Sprint(again),
					Nodes: []state.CommandNode{{Node: "base"}}, Mark: state.Mark{Actor: "ann", Time: time.Now()}}
				require.NoError(t, state.Direct(context.Background(), f.home.State, key, order))
				f.finish(t)
			}
		}
		sum := f.run(t, 1, func(o *runner.Options) { o.Start, o.Checkpoint = []string{"timed"}, begun })
		require.Equal(t, state.Failed, sum.Status)
		require.Equal(t, "node timed was planned again 5 times, because what it reads of other runs did not stay as "+
			"it was: node base of run 1, whose table it reads, has been done again", sum.Failure.Message)
		require.Contains(t, sum.Failure.Hint, "{{do resume run=2}}")
		deeds, err := history.Audit(t.Context(), f.home.State, sum.Key)
		require.NoError(t, err)
		require.Len(t, deeds, 1, "it was begun; nobody has ordered anything: %+v", deeds)
		require.Equal(t, fault.Environment, sum.Failure.Kind)
	})
}

// finish executes what is left of run 1 as if it had no rows.
func (f *foreigner) finish(t *testing.T) {
	t.Helper()
	ctx, run := context.Background(), state.RunKey{Workspace: "main", Run: 1}
	nodes, err := f.home.State.Nodes(ctx, run)
	require.NoError(t, err)
	for _, n := range nodes {
		if n.Status != state.Running {
			continue
		}
		for batch := range n.BatchesTotal {
			now := time.Now()
			c, err := f.home.State.Claim(ctx,
				state.ClaimRequest{Offer: state.Offer{BatchKey: state.BatchKey{NodeKey: n.NodeKey, Batch: batch}, Epoch: n.Epoch,
					Attempt: n.Generation}, Owner: "test", Token: fmt.Sprint(n.Generation, batch), Now: now,
					Lease: now.Add(time.Minute)})
			require.NoError(t, err)
			require.NoError(t, f.home.State.Commit(ctx, c, state.Outcome{}, now))
		}
		require.NoError(t, f.home.State.MoveNode(ctx, n.NodeKey, state.Move{Epoch: n.Epoch, From: state.Running,
			To: state.Succeeded, Now: time.Now()}))
	}
}

// fetching calls do once, before the first part is fetched that run 1 has written.
type fetching struct {
	parts.Store
	mu   sync.Mutex
	once func()
}

func (s *fetching) Fetch(ctx context.Context, key, sum string) (string, func(), error) {
	s.mu.Lock()
	do := s.once
	s.once = nil
	s.mu.Unlock()
	if do != nil {
		do()
	}
	return s.Store.Fetch(ctx, key, sum)
}

// gc has looked for who reads what, then a run is planned to read a table, and
// that is made again: gc removes what was withdrawn, and that run reads what
// stands. It reads nothing that is not there.
func TestCollectBesideAReaderThatItDoesNotKnow(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	f := newForeigner(t)
	before := stored(t, f.home)
	reads, collected := make(chan struct{}), make(chan struct{})
	plain := *f.home
	f.home.Parts = &fetching{Store: plain.Parts, once: func() {
		close(reads)
		<-collected
	}}
	var sum runner.Summary
	var reader sync.WaitGroup
	once := sync.OnceFunc(func() { // the plans of all runs are read by then
		reader.Go(func() { sum = f.run(t, 1, nil) })
		<-reads
		f.retry(t, 7)
	})
	plain.State = &collecting{Store: plain.State, attempts: once}
	done, err := runGC(t.Context(), &plain, gc.Limits{}, false)
	require.NoError(t, err)
	require.Positive(t, done.Withdrawn.Count, "%+v", done)
	close(collected)
	reader.Wait()
	require.Equal(t, state.Complete, sum.Status, "%+v", sum.Failure)
	f.requireFactor(t, 7)
	requireWhole(t, f.home)
	gone := 0
	for key := range before {
		if _, ok := stored(t, f.home)[key]; !ok {
			gone++
		}
	}
	require.Positive(t, gone)
}

// collecting calls attempts before gc looks at the first attempt.
type collecting struct {
	state.Store
	attempts func()
}

func (c *collecting) Attempts(ctx context.Context, key state.NodeKey, page state.Page) ([]state.Attempt, int64, error) {
	c.attempts()
	return c.Store.Attempts(ctx, key, page)
}
