package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"thalweg/internal/budget"
	"thalweg/internal/fault"
	"thalweg/internal/pipeline"
	"thalweg/internal/plan"
	"thalweg/internal/python"
	"thalweg/internal/queue/inproc"
	"thalweg/internal/script"
	"thalweg/internal/state"
	"thalweg/internal/worker"
)

// Options of a run.
type Options struct {
	ScriptPath  string
	ParamsPath  string
	Workspace   string
	Start       []string // nodes to start with; empty: those that start by themselves
	Description string
	Resume      bool
	MemoryBytes int64 // 0: a share of the machine's
	Cores       int   // 0: the machine's
	Interpreter string
	RowTimeout  time.Duration // longest that Python may take for a row; 0: the pool's default
	Logger      *slog.Logger
	Observe     func(worker.Event)
	Started     func(Started)           // called once, before the first batch; may be nil
	Checkpoint  func(worker.CrashPoint) // for tests that die there; may be nil
	Tune        func(*budget.Budget)    // for tests and measurements of other splits; may be nil
}

// Started describes a run that is about to work.
type Started struct {
	Key      state.RunKey
	Resumed  bool
	Nodes    []state.Node
	Budget   budget.Budget
	Warnings script.Diagnostics
	// PythonRows tells how many rows Python has finished in the whole process.
	PythonRows func() int64
}

// Summary is how a run ended.
type Summary struct {
	Key       state.RunKey
	Status    state.Status
	Failure   *state.Failure
	Nodes     []state.Node
	Stats     map[string]state.Stats // per node, over its batches
	Files     []state.File
	Elapsed   time.Duration
	Overhead  time.Duration // of Elapsed, with neither DuckDB nor Python at work
	PeakBytes int64         // of this process and its interpreters together
}

// Run loads a script and executes it, or continues its last run. The summary
// is valid whenever its Key.Run is not 0, also beside an error.
func Run(ctx context.Context, home *Home, opts Options) (Summary, error) {
	start := time.Now()
	s, diags := script.Load(ctx, Sources(opts.ScriptPath, opts.ParamsPath))
	if diags.HasErrors() {
		return Summary{}, &InvalidScriptError{Diagnostics: diags}
	}
	r := &runner{home: home, opts: opts, script: s, start: start}
	return r.run(ctx, diags.Warnings())
}

// InvalidScriptError is returned for a script that cannot be loaded.
type InvalidScriptError struct{ Diagnostics script.Diagnostics }

// Error gives the first problem in one line.
func (e *InvalidScriptError) Error() string { return e.Diagnostics.Err().Error() }

// Unwrap gives the classified failure.
func (e *InvalidScriptError) Unwrap() error { return e.Diagnostics.Err() }

// runner is one call of Run.
type runner struct {
	home   *Home
	opts   Options
	script *script.Script
	start  time.Time
	key    state.RunKey
	lock   *RunLock
	nodes  []state.Node
	peak   peakMeter
	budget budget.Budget
	work   string
	pool   *python.Pool
}

// run prepares what may fail before a run exists, so that a bad script leaves
// no run behind, and then works on it.
func (r *runner) run(ctx context.Context, warnings script.Diagnostics) (sum Summary, err error) {
	if err := CheckWorkspace(r.opts.Workspace); err != nil {
		return sum, err
	}
	affected, err := r.script.Affected(r.opts.Start)
	if err != nil {
		return sum, err
	}
	if err := r.split(affected); err != nil {
		return sum, err
	}
	if r.work, err = r.home.WorkDir(); err != nil {
		return sum, err
	}
	if err := r.openPool(); err != nil {
		return sum, err
	}
	if r.pool != nil {
		defer func() { err = errors.Join(err, r.pool.Close()) }()
	}
	if err := r.checkPython(ctx, affected); err != nil {
		return sum, err
	}
	if r.opts.Resume {
		err = r.resume(ctx)
	} else {
		err = r.create(ctx, affected)
	}
	if err != nil {
		return Summary{Key: r.key}, err
	}
	defer func() { err = errors.Join(err, r.lock.Close()) }()
	if r.nodes, err = r.home.State.Nodes(ctx, r.key); err != nil {
		return Summary{Key: r.key}, fmt.Errorf("read the nodes of run %d: %w", r.key.Run, err)
	}
	return r.drive(ctx, warnings)
}

// checkPython imports the Python code of every node before anything runs.
func (r *runner) checkPython(ctx context.Context, nodes []*script.Node) error {
	for _, n := range nodes {
		if n.PyCalc == nil {
			continue
		}
		if err := r.pool.Check(ctx, plan.ProgramOf(n)); err != nil {
			return err
		}
	}
	return nil
}

// create records a new run and takes its lock.
func (r *runner) create(ctx context.Context, affected []*script.Node) error {
	in := map[*script.Node]bool{}
	for _, n := range affected {
		in[n] = true
	}
	specs := make([]state.NodeSpec, len(affected))
	names := make([]string, 0, len(affected))
	for i, n := range affected {
		specs[i] = state.NodeSpec{Name: n.Name, Kind: kindOf(n), Ordinal: i}
		for _, source := range n.Sources(r.script) {
			if in[source] {
				specs[i].Inputs = append(specs[i].Inputs, source.Name)
			}
		}
		if len(n.Sources(r.script)) == 0 || !in[n.Sources(r.script)[0]] {
			names = append(names, n.Name)
		}
	}
	if len(r.opts.Start) > 0 {
		names = r.opts.Start
	}
	var err error
	r.key, err = r.home.State.CreateRun(ctx, state.Run{
		RunKey: state.RunKey{Workspace: r.opts.Workspace}, ScriptPath: r.opts.ScriptPath, ParamsPath: r.opts.ParamsPath,
		Fingerprint: r.script.Fingerprint, StartNodes: names, Description: r.opts.Description, Created: time.Now(), Definition: r.script.Definition(),
	}, specs)
	if err != nil {
		return fmt.Errorf("record a new run: %w", err)
	}
	lock, ok, err := r.home.LockRun(r.key)
	if err == nil && !ok {
		err = fmt.Errorf("run %d is new, but somebody holds its lock", r.key.Run)
	}
	r.lock = lock
	return err
}

// kindOf is a node's type as people read it.
func kindOf(n *script.Node) string {
	switch {
	case n.PyCalc != nil:
		return script.ProcPyCalc
	case n.Tag != nil:
		return script.ProcTag
	}
	return string(n.Type)
}

// resume takes over the workspace's last run.
func (r *runner) resume(ctx context.Context) error {
	runs, err := r.home.State.Runs(ctx, r.opts.Workspace)
	if err != nil {
		return fmt.Errorf("read the runs of workspace %s: %w", r.opts.Workspace, err)
	}
	if len(runs) == 0 {
		return &fault.Error{Kind: fault.Script, Message: "there is no run to resume in workspace " + r.opts.Workspace, Hint: "leave --resume out to start one"}
	}
	last := runs[len(runs)-1]
	if last.Status == state.Complete {
		return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("run %d is complete: there is nothing to resume", last.Run), Hint: "leave --resume out to start a new run"}
	}
	if last.Fingerprint != r.script.Fingerprint {
		return &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("the script, its parameters or its Python code changed since run %d: its finished batches may no longer be right", last.Run),
			Hint:    "start a new run without --resume, or bring the old version back"}
	}
	lock, ok, err := r.home.LockRun(last.RunKey)
	if err != nil {
		return err
	}
	if !ok {
		return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("run %d is being worked on by another process", last.Run), Hint: "wait for it, or stop it first"}
	}
	r.key, r.lock = last.RunKey, lock
	if err := r.home.State.Reopen(ctx, r.key, time.Now()); err != nil {
		return errors.Join(fmt.Errorf("reopen run %d: %w", r.key.Run, err), lock.Close())
	}
	return nil
}

// drive works on the run until it is over or ctx ends.
func (r *runner) drive(ctx context.Context, warnings script.Diagnostics) (sum Summary, err error) {
	sum = Summary{Key: r.key, Status: state.Running}
	previous := debug.SetMemoryLimit(r.budget.GoBytes)
	defer debug.SetMemoryLimit(previous)
	stopMeter := r.peak.start()
	defer stopMeter()
	q := inproc.New(0)
	defer func() { err = errors.Join(err, q.Close()) }()
	job := pipeline.New(pipeline.Config{Script: r.script, Run: r.key, Store: r.home.State, Parts: r.home.Parts, Budget: r.budget, Pool: r.pool, WorkDir: r.work, Logger: r.opts.Logger})
	if r.opts.Started != nil {
		r.opts.Started(Started{Key: r.key, Resumed: r.opts.Resume, Nodes: r.nodes, Budget: r.budget, Warnings: warnings})
	}
	w := worker.New(worker.Config{Store: r.home.State, Queue: q, Job: job, Owner: fmt.Sprintf("pid-%d-%d", os.Getpid(), r.start.UnixNano()),
		Slots: r.budget.Slots, Logger: r.opts.Logger, Observe: r.opts.Observe, Checkpoint: r.opts.Checkpoint}, r.key)
	status, runErr := w.Run(ctx)
	stopMeter()
	sum.Status = status
	return r.summarise(sum, job.Idle(r.start)), runErr
}

// split divides the memory between what these nodes need.
func (r *runner) split(nodes []*script.Node) error {
	total, cores := r.opts.MemoryBytes, r.opts.Cores
	if total == 0 {
		total = budget.Default()
	}
	if cores == 0 {
		cores = budget.Cores()
	}
	interpreters := 0
	for _, n := range nodes {
		if n.PyCalc != nil {
			interpreters = cores
		}
	}
	var err error
	if r.budget, err = budget.Split(total, cores, interpreters); err != nil {
		return &fault.Error{Kind: fault.Script, Message: err.Error(), Hint: "give more with --memory"}
	}
	if r.opts.Tune != nil {
		r.opts.Tune(&r.budget)
	}
	return nil
}

// interpreterBytesMin is the least address space an interpreter is held to:
// the limit counts what is mapped, which is several times what is used.
const interpreterBytesMin = 512 << 20

func (r *runner) openPool() error {
	if r.budget.Interpreters == 0 {
		return nil
	}
	var err error
	r.pool, err = python.NewPool(python.Config{Interpreter: r.opts.Interpreter, Size: r.budget.Interpreters, RowTimeout: r.opts.RowTimeout,
		MemoryBytes: max(r.budget.InterpreterBytes, interpreterBytesMin), RecycleBytes: r.budget.InterpreterBytes, Logger: r.opts.Logger})
	return err
}

// summarise reads how the run ended from state.
func (r *runner) summarise(sum Summary, idle time.Duration) Summary {
	ctx, cancel := context.WithTimeout(context.Background(), summaryTimeout)
	defer cancel()
	sum.Elapsed, sum.Overhead, sum.PeakBytes = time.Since(r.start), idle, r.peak.bytes()
	if run, err := r.home.State.Run(ctx, r.key); err == nil {
		sum.Failure = run.Failure
	}
	sum.Nodes, _ = r.home.State.Nodes(ctx, r.key) // what cannot be read is not shown: the status is known already
	sum.Files, _ = r.home.State.Files(ctx, r.key)
	sum.Stats = map[string]state.Stats{}
	for _, n := range sum.Nodes {
		batches, _ := r.home.State.Batches(ctx, n.NodeKey)
		var total state.Stats
		for _, b := range batches {
			total.Engine += b.Stats.Engine
			total.Python += b.Stats.Python
			total.Elapsed += b.Stats.Elapsed
		}
		sum.Stats[n.Name] = total
	}
	return sum
}

// summaryTimeout bounds reading the summary of a run that is over.
const summaryTimeout = 30 * time.Second
