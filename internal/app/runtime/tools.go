package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"thalweg/internal/base/allow"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/registry"
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

// Runtime holds the resources that a process executes batches with, whatever run they are of.
type Runtime struct {
	Instance  *instance.Instance
	Process   Process
	Store     state.Store // as runs write it
	WorkDir   string      // for files that are private to this process
	Engine    *engine.Instances
	OwnBudget budget.Budget               // that this process would have by itself
	Budget    budget.Budget               // likewise: what it has now is its room's
	Shares    *budget.Ledger              // nil: it holds no memory so far
	room      atomic.Pointer[budget.Room] // of the shares, for who looks meanwhile
	review    sync.WaitGroup              // of the shares
	Limits    atomic.Pointer[python.Pool] // whose interpreters follow the shares; see resized
	had       int64                       // bytes of the share, when it was resized before
	Meter     budget.Meter
	scratch   string // WorkDir, if Close removes it
	cancel    context.CancelFunc
	Pool      *python.Pool     // nil: nothing has needed one so far
	Slots     *sandbox.Slots   // where batches are executed; nil: in this process
	Parent    *sandbox.Parent  // of a process that is a slot: what it works with; nil: it is none
	teller    *notify.Notifier // nil: nothing is told yet
}

func New(home *instance.Instance, opts Process) (*Runtime, error) {
	opts = opts.WithDefaults()
	work, err := home.Scratch()
	if err != nil {
		return nil, err
	}
	return &Runtime{Instance: home, Process: opts, WorkDir: work, scratch: work, Store: NewStore(home, opts),
		Engine: engine.NewInstances(filepath.Join(work, "engine"), work, home.PartsDir)}, nil
}

// NewStore is the state as runs write it: patiently, and without secrets.
func NewStore(home *instance.Instance, opts Process) state.Store {
	patient := retrying.New(home.State, retrying.Config{Within: opts.StateWithin, Logger: opts.Logger})
	return instance.RedactingStore(patient, opts.Known)
}

func (t *Runtime) Close() error {
	t.Meter.Close()
	err := errors.Join(t.Engine.Close(), t.GiveBack())
	_ = os.RemoveAll(t.scratch) // what is left goes with the instance's own, or when that is swept
	return err
}

// GiveBack ends what takes up this process's share of the memory, and gives it back.
func (t *Runtime) GiveBack() (err error) {
	if t.Slots != nil {
		err = t.Slots.Close()
		t.Slots = nil
	}
	return errors.Join(err, t.ClosePool(), t.leave())
}

// ClosePool ends the interpreters.
func (t *Runtime) ClosePool() error {
	if t.Pool == nil {
		return nil
	}
	t.Limits.Store(nil)
	err := t.Pool.Close()
	t.Pool = nil
	return err
}

// Enter takes this process's share of the state directory's memory, and waits
// for it if others hold it. It follows them as they come and go until leave.
func (t *Runtime) Enter(ctx context.Context, python bool) (err error) {
	if t.Shares != nil {
		return nil
	}
	total := t.Process.MemoryBytes
	if total == 0 {
		total = budget.Default()
	}
	if t.OwnBudget, err = t.Split(total, python); err != nil {
		return err
	}
	member := budget.Member{Owner: fmt.Sprintf("process %d", os.Getpid()), Total: total, Waiting: t.Process.Waiting,
		Resized: t.resized}
	if t.Shares, err = budget.Enter(ctx, filepath.Join(t.Instance.Dir, "shares"), member, t.OwnBudget); err != nil {
		return instance.Fault(t.Instance.Dir, "share the memory with other processes", err)
	}
	t.room.Store(t.Shares.Room())
	t.Budget = t.OwnBudget
	ctx, t.cancel = context.WithCancel(context.WithoutCancel(ctx))
	t.review.Go(func() {
		t.Shares.Review(ctx, func(err error) {
			t.Process.Logger.Warn("what other processes hold of the memory cannot be followed; it is tried again",
				"error", err)
		})
	})
	return nil
}

// resized has as many interpreters as there is memory for, and reports whether the
// others have ended. What a larger share has left behind is given back.
func (t *Runtime) resized(b budget.Budget) (done bool) {
	if pool := t.Limits.Load(); pool != nil && !pool.Limit(b.Interpreters) {
		return false
	}
	if b.TotalBytes < t.had {
		t.Engine.Release()
	}
	t.had = b.TotalBytes
	return true
}

// leave gives the share back.
func (t *Runtime) leave() error {
	if t.Shares == nil {
		return nil
	}
	t.cancel()
	t.review.Wait()
	t.room.Store(nil)
	err := t.Shares.Leave()
	t.Shares = nil
	return err
}

// Held returns the memory that batches have now; ok is false if they have none.
func (t *Runtime) Held() (b budget.Budget, ok bool) {
	room := t.room.Load()
	if room == nil {
		return b, false
	}
	return room.Budget(), true
}

// Split divides a figure of memory over this process's cores.
func (t *Runtime) Split(total int64, python bool) (budget.Budget, error) {
	divide := ShareOf
	if t.Process.Isolated {
		divide = shareProcesses
	}
	b, err := divide(total, t.Process.Cores, python)
	if err != nil {
		return b, err
	}
	if free, ok := freeBytes(t.Instance.Dir); ok {
		b.SpillBytes = max(int64(float64(free)*spillShare)/int64(b.Slots), spillBytesMin)
	}
	b.Far = !t.Instance.Parts.Properties().Local
	if t.Process.Tune != nil {
		t.Process.Tune(&b)
	}
	return b, nil
}

// planSlotsMost is the most slots that nodes are planned for.
const planSlotsMost = 1024

// PlanFor returns the budget by which a new run's nodes are planned: this process's own. In a
// cluster it has the smallest share of a worker's slot, and as many slots as all workers have.
func (t *Runtime) PlanFor(ctx context.Context, python bool) (budget.Budget, error) {
	out := t.OwnBudget
	if t.Instance.ClusterConfig == nil {
		return out, nil
	}
	workers, err := registry.Workers(ctx, t.Instance)
	if err != nil {
		return out, fmt.Errorf("see which workers there are: %w", err)
	}
	slots := 0
	for _, w := range workers {
		if w.Gone || w.Draining || w.Slots < 1 {
			continue
		}
		b, err := shareProcesses(cmp.Or(t.Process.MemoryBytes, w.Memory), w.Slots, python)
		if err != nil {
			return out, err
		}
		if slots == 0 || b.SlotEngineBytes < out.SlotEngineBytes {
			b.SpillBytes, b.Far = t.OwnBudget.SpillBytes, t.OwnBudget.Far
			out = b
		}
		slots += b.Slots
	}
	if slots > 0 {
		out.Slots = min(slots, planSlotsMost)
		if t.Process.Tune != nil {
			t.Process.Tune(&out)
		}
	}
	return out, nil
}

// ShareOf divides so many bytes over so many cores, 0 being the machine's.
func ShareOf(total int64, cores int, python bool) (budget.Budget, error) {
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
		return b, &fault.Error{Kind: fault.Script, Message: err.Error(), Hint: "give more with {{set memory}}"}
	}
	return b, nil
}

// NeedsPython reports whether any of the nodes calls Python.
func NeedsPython(nodes []*script.Node) bool {
	for _, n := range nodes {
		if n.PyCalc != nil || n.PyTable != nil {
			return true
		}
	}
	return false
}

// OpenPool makes the interpreters, if there are none yet and there is a share for them.
func (t *Runtime) OpenPool() error {
	if t.Budget.Interpreters == 0 || t.Pool != nil {
		return nil
	}
	var err error
	b := t.Budget
	t.Pool, err = python.NewPool(python.Config{Interpreter: t.Process.Interpreter, Size: b.Interpreters,
		Early: min(b.Interpreters, earlyInterpreters), RowTimeout: t.Process.RowTimeout,
		GroupTimeout: t.Process.GroupTimeout, MaxGroupBytes: min(max(b.InterpreterBytes/4, groupBytesMin),
			python.DefaultMaxGroupBytes),
		MemoryBytes: max(b.InterpreterBytes, interpreterBytesMin), RecycleBytes: b.InterpreterBytes,
		Keeper: t.Process.Keeper, Logger: t.Process.Logger})
	if err != nil {
		return err
	}
	if now, shared := t.Held(); shared {
		t.Pool.Limit(now.Interpreters)
	}
	t.Limits.Store(t.Pool)
	return nil
}

// CheckPython imports the Python code of every node, in dir, before anything
// runs. It answers with what decides about the results beside the script, by node.
func (t *Runtime) CheckPython(ctx context.Context, dir string, nodes []*script.Node) (map[string]map[string]string,
	error) {
	surroundings := map[string]map[string]string{}
	if t.Shares != nil && NeedsPython(nodes) { // it takes an interpreter, as a batch does
		_, release, err := t.Shares.Room().Take(ctx, budget.OneSlot)
		if err != nil {
			return nil, &fault.Error{Kind: fault.Canceled, Retryable: true,
				Message: "importing the Python code was interrupted", Err: context.Cause(ctx)}
		}
		defer release()
	}
	for _, n := range nodes {
		prog := plan.ProgramOf(n)
		if prog == nil {
			continue
		}
		prog.Dir = dir
		found, err := t.Pool.Check(ctx, prog)
		if err != nil {
			return nil, inNode(err, n)
		}
		surroundings[n.Name] = found
	}
	return surroundings, nil
}

// JobSpec says whose content a pipeline is.
type JobSpec struct {
	Script    *script.Script
	Sources   *script.Sources // that it was loaded from; nil: it was given
	Run       state.RunKey
	Identity  string
	From      []int64
	Planning  budget.Budget                // that its nodes are planned by
	Ephemeral bool                         // see Options
	Dir       string                       // see settings
	OwnCopies bool                         // another process may keep copies of its remote inputs
	Reuse     bool                         // see settings
	Chosen    []string                     // see settings
	Python    map[string]map[string]string // see checkPython
	Policy    *allow.Policy                // see settings
}

// Job makes a run's content.
func (t *Runtime) Job(j JobSpec) *pipeline.Pipeline {
	copies := filepath.Join(t.Instance.RemoteDir(j.Run), pipeline.CopiesDir)
	if j.OwnCopies {
		copies = filepath.Join(t.WorkDir, "copies", filepath.Base(t.Instance.RemoteDir(j.Run)))
	}
	t.Engine.Allow(slices.DeleteFunc(pipeline.Reach(j.Script, j.Dir, j.Run), func(dir string) bool {
		return j.Policy.MayRead(dir) != nil
	})...)
	var executor engine.Executor = t.Engine
	if t.Process.Executor != nil {
		executor = t.Process.Executor(executor)
	}
	var room pipeline.Room // of its own, for those who only look at a run
	var copier pipeline.Copier
	switch {
	case t.Parent != nil:
		room, copier = t.Parent.Room, t.Parent.Copies(j.Run)
	case t.Shares != nil:
		room = t.Shares.Room()
	}
	return pipeline.New(pipeline.Config{Answered: t.Answered(j), Script: j.Script, Run: j.Run, Identity: j.Identity,
		Identify: t.Instance.IdentityOf, From: j.From, Reuse: j.Reuse, Chosen: j.Chosen, Surroundings: j.Python,
		Store:  t.Store,
		Parts:  t.Instance.Parts,
		Budget: t.Budget, Room: room, Planning: j.Planning, Fuse: j.Ephemeral, Pool: t.Pool,
		Engine: executor, Dir: j.Dir,
		StateDir: t.Instance.Dir, Meter: &t.Meter, Observe: t.Process.Observe, RecordOf: t.recordOf, WorkDir: t.WorkDir,
		Remote:    t.Process.Remote.Within(j.Policy),
		CopiesDir: copies, Copies: copier, Files: t.Instance.Files, Logger: t.Process.Logger})
}
