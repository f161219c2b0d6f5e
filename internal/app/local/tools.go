package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
	"thalweg/internal/ops/notify"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/run/plan"
	"thalweg/internal/run/python"
	"thalweg/internal/run/sandbox"
	"thalweg/internal/store/state"
	"thalweg/internal/store/state/retrying"
)

// tools are what a process does its batches with, whatever run they are of.
type tools struct {
	home   *Instance
	opts   Process
	store  state.Store // as runs write it
	work   string      // for files that are private to this process
	engine *engine.Instances
	whole  budget.Budget               // that this process would have by itself
	budget budget.Budget               // likewise: what it has now is its room's
	shares *budget.Ledger              // nil: it holds no memory so far
	room   atomic.Pointer[budget.Room] // of the shares, for who looks meanwhile
	review sync.WaitGroup              // of the shares
	limits atomic.Pointer[python.Pool] // whose interpreters follow the shares; see resized
	had    int64                       // bytes of the share, when it was resized before
	meter  budget.Meter
	cancel context.CancelFunc
	pool   *python.Pool     // nil: nothing has needed one so far
	slots  *sandbox.Slots   // where batches are executed; nil: in this process
	lent   *sandbox.Parent  // of a process that is a slot: what it works with; nil: it is none
	teller *notify.Notifier // nil: nothing is told yet
}

func newTools(home *Instance, opts Process) (*tools, error) {
	opts = opts.withDefaults()
	work, err := home.WorkDir()
	if err != nil {
		return nil, err
	}
	return &tools{home: home, opts: opts, work: work, store: newStore(home, opts),
		engine: engine.NewInstances(filepath.Join(work, "engine"), work, home.partsDir)}, nil
}

// newStore is the state as runs write it: patiently, and without secrets.
func newStore(home *Instance, opts Process) state.Store {
	return redactingStore{retrying.New(home.State, retrying.Config{Within: opts.stateWithin, Logger: opts.Logger}),
		opts.Known}
}

func (t *tools) close() error {
	t.meter.Close()
	return errors.Join(t.engine.Close(), t.giveBack())
}

// giveBack ends what takes up this process's share of the memory, and gives it back.
func (t *tools) giveBack() (err error) {
	if t.slots != nil {
		err = t.slots.Close()
		t.slots = nil
	}
	return errors.Join(err, t.closePool(), t.leave())
}

// closePool ends the interpreters.
func (t *tools) closePool() error {
	if t.pool == nil {
		return nil
	}
	t.limits.Store(nil)
	err := t.pool.Close()
	t.pool = nil
	return err
}

// enter takes this process's share of the state directory's memory, and waits
// for it if others hold it. It follows them as they come and go until leave.
func (t *tools) enter(ctx context.Context, python bool) (err error) {
	if t.shares != nil {
		return nil
	}
	total := t.opts.MemoryBytes
	if total == 0 {
		total = budget.Default()
	}
	if t.whole, err = t.split(total, python); err != nil {
		return err
	}
	member := budget.Member{Owner: fmt.Sprintf("process %d", os.Getpid()), Total: total, Waiting: t.opts.Waiting,
		Resized: t.resized}
	if t.shares, err = budget.Enter(ctx, filepath.Join(t.home.Dir, "shares"), member, t.whole); err != nil {
		return homeFault(t.home.Dir, "share the memory with other processes", err)
	}
	t.room.Store(t.shares.Room())
	t.budget = t.whole
	ctx, t.cancel = context.WithCancel(context.WithoutCancel(ctx))
	t.review.Go(func() {
		t.shares.Review(ctx, func(err error) {
			t.opts.Logger.Warn("what other processes hold of the memory cannot be followed; it is tried again", "error", err)
		})
	})
	return nil
}

// resized has as many interpreters as there is memory for, and reports whether the
// others have ended. What a larger share has left behind is given back.
func (t *tools) resized(b budget.Budget) (done bool) {
	if pool := t.limits.Load(); pool != nil && !pool.Limit(b.Interpreters) {
		return false
	}
	if b.TotalBytes < t.had {
		t.engine.Release()
	}
	t.had = b.TotalBytes
	return true
}

// leave gives the share back.
func (t *tools) leave() error {
	if t.shares == nil {
		return nil
	}
	t.cancel()
	t.review.Wait()
	t.room.Store(nil)
	err := t.shares.Leave()
	t.shares = nil
	return err
}

// held is what the batches have of the memory now.
func (t *tools) held() (b budget.Budget, ok bool) {
	room := t.room.Load()
	if room == nil {
		return b, false
	}
	return room.Budget(), true
}

// split divides a figure of memory over this process's cores.
func (t *tools) split(total int64, python bool) (budget.Budget, error) {
	divide := share
	if t.opts.isolated {
		divide = shareProcesses
	}
	b, err := divide(total, t.opts.Cores, python)
	if err != nil {
		return b, err
	}
	if free, ok := freeBytes(t.home.Dir); ok {
		b.SpillBytes = max(int64(float64(free)*spillShare)/int64(b.Slots), spillBytesMin)
	}
	b.Far = !t.home.Parts.Properties().Local
	if t.opts.Tune != nil {
		t.opts.Tune(&b)
	}
	return b, nil
}

// planSlotsMost is how many slots nodes are planned for at most.
const planSlotsMost = 1024

// planFor is what a new run's nodes are planned by: what this process may use; in a cluster the
// smallest share that a worker's slot has, and as many slots as all workers have.
func (t *tools) planFor(ctx context.Context, python bool) (budget.Budget, error) {
	out := t.whole
	if t.home.cluster == nil {
		return out, nil
	}
	workers, err := Workers(ctx, t.home)
	if err != nil {
		return out, fmt.Errorf("see which workers there are: %w", err)
	}
	slots := 0
	for _, w := range workers {
		if w.Gone || w.Draining || w.Slots < 1 {
			continue
		}
		b, err := shareProcesses(cmp.Or(t.opts.MemoryBytes, w.Memory), w.Slots, python)
		if err != nil {
			return out, err
		}
		if slots == 0 || b.SlotEngineBytes < out.SlotEngineBytes {
			b.SpillBytes, b.Far = t.whole.SpillBytes, t.whole.Far
			out = b
		}
		slots += b.Slots
	}
	if slots > 0 {
		out.Slots = min(slots, planSlotsMost)
		if t.opts.Tune != nil {
			t.opts.Tune(&out)
		}
	}
	return out, nil
}

// share divides so many bytes over so many cores, 0 being the machine's.
func share(total int64, cores int, python bool) (budget.Budget, error) {
	if total == 0 {
		total = budget.Default()
	}
	if cores == 0 {
		cores = budget.Cores()
	}
	interpreters := 0
	if python {
		interpreters = cores
	}
	b, err := budget.Split(total, cores, interpreters)
	if err != nil {
		return b, &fault.Error{Kind: fault.Script, Message: err.Error(), Hint: "give more with --memory"}
	}
	return b, nil
}

// needsPython reports whether any of the nodes calls Python.
func needsPython(nodes []*script.Node) bool {
	for _, n := range nodes {
		if n.PyCalc != nil || n.PyTable != nil {
			return true
		}
	}
	return false
}

// openPool makes the interpreters, if there are none yet and there is a share for them.
func (t *tools) openPool() error {
	if t.budget.Interpreters == 0 || t.pool != nil {
		return nil
	}
	var err error
	b := t.budget
	t.pool, err = python.NewPool(python.Config{Interpreter: t.opts.Interpreter, Size: b.Interpreters,
		Early: min(b.Interpreters, earlyInterpreters), RowTimeout: t.opts.RowTimeout,
		GroupTimeout: t.opts.GroupTimeout, MaxGroupBytes: min(max(b.InterpreterBytes/4, groupBytesMin),
			python.DefaultMaxGroupBytes),
		MemoryBytes: max(b.InterpreterBytes, interpreterBytesMin), RecycleBytes: b.InterpreterBytes, Keeper: t.opts.Keeper,
		Logger: t.opts.Logger})
	if err != nil {
		return err
	}
	if now, shared := t.held(); shared {
		t.pool.Limit(now.Interpreters)
	}
	t.limits.Store(t.pool)
	return nil
}

// checkPython imports the Python code of every node, in dir, before anything
// runs. It answers with what decides about the results beside the script, by node.
func (t *tools) checkPython(ctx context.Context, dir string, nodes []*script.Node) (map[string]map[string]string,
	error) {
	surroundings := map[string]map[string]string{}
	if t.shares != nil && needsPython(nodes) { // it takes an interpreter, as a batch does
		_, release, err := t.shares.Room().Take(ctx, budget.OneSlot)
		if err != nil {
			return nil, &fault.Error{Kind: fault.Canceled, Retryable: true, Message: "importing the Python code was interrupted",
				Err: context.Cause(ctx)}
		}
		defer release()
	}
	for _, n := range nodes {
		prog := plan.ProgramOf(n)
		if prog == nil {
			continue
		}
		prog.Dir = dir
		found, err := t.pool.Check(ctx, prog)
		if err != nil {
			return nil, inNode(err, n)
		}
		surroundings[n.Name] = found
	}
	return surroundings, nil
}

// jobOf says whose content a pipeline is.
type jobOf struct {
	script    *script.Script
	sources   *script.Sources // that it was loaded from; nil: it was given
	run       state.RunKey
	identity  string
	from      []int64
	planning  budget.Budget                // that its nodes are planned by
	ephemeral bool                         // see Options
	dir       string                       // see settings
	ownCopies bool                         // another process may keep copies of its remote inputs
	reuse     bool                         // see settings
	chosen    []string                     // see settings
	python    map[string]map[string]string // see checkPython
}

// job makes a run's content.
func (t *tools) job(j jobOf) *pipeline.Pipeline {
	copies := filepath.Join(t.home.remoteDir(j.run), pipeline.CopiesDir)
	if j.ownCopies {
		copies = filepath.Join(t.work, "copies", filepath.Base(t.home.remoteDir(j.run)))
	}
	t.engine.Allow(pipeline.Reach(j.script, j.dir, j.run)...)
	var executor engine.Executor = t.engine
	if t.opts.Executor != nil {
		executor = t.opts.Executor(executor)
	}
	var room pipeline.Room // of its own, for those who only look at a run
	var copier pipeline.Copier
	switch {
	case t.lent != nil:
		room, copier = t.lent.Room, t.lent.Copies(j.run)
	case t.shares != nil:
		room = t.shares.Room()
	}
	return pipeline.New(pipeline.Config{Answered: t.answered(j), Script: j.script, Run: j.run, Identity: j.identity,
		Identify: t.home.identityOf, From: j.from, Reuse: j.reuse, Chosen: j.chosen, Surroundings: j.python, Store: t.store,
		Parts:  t.home.Parts,
		Budget: t.budget, Room: room, Planning: j.planning, Fuse: j.ephemeral, Pool: t.pool, Engine: executor, Dir: j.dir,
		StateDir: t.home.Dir, Meter: &t.meter, Observe: t.opts.Observe, RecordOf: t.recordOf, WorkDir: t.work,
		Remote:    t.opts.Remote,
		CopiesDir: copies, Copies: copier, Files: t.home.files, Logger: t.opts.Logger})
}
