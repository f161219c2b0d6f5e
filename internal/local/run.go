package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"thalweg/internal/budget"
	"thalweg/internal/document"
	"thalweg/internal/engine"
	"thalweg/internal/fault"
	"thalweg/internal/pipeline"
	"thalweg/internal/remote"
	"thalweg/internal/script"
	"thalweg/internal/secret"
	"thalweg/internal/state"
	"thalweg/internal/worker"
)

// Options of a run.
type Options struct {
	ScriptPath   string
	ParamsPath   string
	Program      string            // version of this program, for the record
	Params       map[string]string // parameters of the command line, which win
	Lenient      bool              // see script.Sources
	Known        *secret.Known     // secrets, to keep them out of the state; nil: only rules decide
	Script       *script.Script    // instead of loading ScriptPath; may be nil
	Workspace    string
	Start        []string // nodes to start with; empty: those that start by themselves
	From         []int64  // runs of any script to read tables from that this run does not write; else earlier runs of the same script
	Description  string
	Ephemeral    bool  // tables that can be ephemeral are
	Resume       bool  // continue a run instead of starting one
	ResumeRun    int64 // the run to continue; 0: the workspace's last
	MemoryBytes  int64 // 0: a share of the machine's
	Cores        int   // 0: the machine's
	Interpreter  string
	Keeper       string         // see python.Config
	RowTimeout   time.Duration  // longest that Python may take for a row; 0: the pool's default
	GroupTimeout time.Duration  // longest that Python may take for a call of a py_table; 0: the pool's default
	Remote       *remote.Client // for files of other machines; nil: one with defaults
	Logger       *slog.Logger
	Observe      func(worker.Event)
	Started      func(Started)                         // called once, before the first batch; may be nil
	Checkpoint   func(worker.CrashPoint)               // for tests that die there; may be nil
	Lease        time.Duration                         // of claims; 0: the default
	Waiting      func(text string)                     // called while other processes hold the memory; may be nil
	Tune         func(*budget.Budget)                  // for tests and measurements of other splits; may be nil
	Executor     func(engine.Executor) engine.Executor // for tests in which tasks fail; may be nil
}

// Started describes a run that is about to work.
type Started struct {
	Key      state.RunKey
	Resumed  bool
	Nodes    []state.Node
	Budget   budget.Budget
	Warnings document.Diagnostics
}

// Summary is how a run ended.
type Summary struct {
	Key     state.RunKey
	Status  state.Status
	Failure *state.Failure
	Nodes   []state.Node
	Stats   map[string]state.Stats // per node, over its batches
	Files   []state.File
	Checks  []state.CheckResult
	Foreign []ForeignTable // tables of other runs that were read

	ComputedIn map[string]string // of ephemeral nodes: the node inside which their table is computed
	Elapsed    time.Duration
	Overhead   time.Duration // of Elapsed, with neither DuckDB nor Python at work
	PeakBytes  int64         // of this process and its interpreters together
}

// Run loads a script and executes it, or continues its last run. The summary
// is valid whenever its Key.Run is not 0, also beside an error.
func Run(ctx context.Context, home *Home, opts Options) (_ Summary, err error) {
	start := time.Now()
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Remote == nil {
		opts.Remote = remote.New(remote.Config{Logger: opts.Logger})
		defer func() { err = errors.Join(err, opts.Remote.Close()) }()
	}
	t, err := newTools(home, opts)
	if err != nil {
		return Summary{}, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	t.engine.Prepare(1) // while the script is being read
	s, diags := opts.Script, document.Diagnostics(nil)
	if s == nil {
		src := Sources(opts.Remote, "", opts.ScriptPath, opts.ParamsPath)
		src.Known = opts.Known
		src.Params, src.Lenient = opts.Params, opts.Lenient
		if s, diags = script.Load(ctx, src); diags.HasErrors() {
			return Summary{}, &InvalidScriptError{Diagnostics: diags}
		}
	}
	r := &runner{tools: t, script: s, start: start, identity: home.identity(s.Name, opts.ScriptPath)}
	if r.dir, err = os.Getwd(); err != nil {
		return Summary{}, fmt.Errorf("find the working directory: %w", err)
	}
	return r.run(ctx, diags.Warnings())
}

// InvalidScriptError is returned for a script that cannot be loaded.
type InvalidScriptError struct{ Diagnostics document.Diagnostics }

// Error gives the first problem in one line.
func (e *InvalidScriptError) Error() string { return e.Diagnostics.Err().Error() }

// Unwrap gives the classified failure.
func (e *InvalidScriptError) Unwrap() error { return e.Diagnostics.Err() }

// runner is one call of Run.
type runner struct {
	*tools
	script   *script.Script
	start    time.Time
	identity string // which script it is
	key      state.RunKey
	lock     *RunLock
	joined   bool // other processes are at work on the run already
	planning budget.Budget
	dir      string    // see settings
	begun    *settings // of the run that is resumed; nil: not known
	nodes    []state.Node
	peak     peakMeter
	content  *pipeline.Pipeline
}

// run prepares what may fail before a run exists, so that a bad script leaves
// no run behind, and then works on it.
func (r *runner) run(ctx context.Context, warnings document.Diagnostics) (sum Summary, err error) {
	if err := CheckWorkspace(r.opts.Workspace); err != nil {
		return sum, err
	}
	affected, err := r.affected(ctx)
	if err != nil {
		return sum, err
	}
	defer func() {
		if r.lock != nil {
			err = errors.Join(err, r.lock.Close())
		}
	}()
	if err := r.enter(ctx, needsPython(affected)); err != nil {
		return sum, err
	}
	if err := r.openPool(); err != nil {
		return sum, err
	}
	r.engine.Prepare(min(r.budget.Slots, starts(affected, r.script)))
	if err := r.checkPython(ctx, r.dir, affected); err != nil {
		return sum, err
	}
	if r.opts.Resume {
		err = r.resume(ctx)
	} else {
		err = r.create(ctx, affected)
	}
	if err != nil {
		return sum, err
	}
	defer r.content.Close()
	if r.nodes, err = r.home.State.Nodes(ctx, r.key); err != nil {
		return Summary{Key: r.key}, fmt.Errorf("read the nodes of run %d: %w", r.key.Run, err)
	}
	if r.opts.Resume && !r.joined {
		r.sweepLeavings(ctx, r.key, false)
	}
	if err := r.sweepDead(ctx, r.key); err != nil {
		r.opts.Logger.Warn("what dead runs left behind them stays until the next run", "error", err)
	}
	return r.drive(ctx, warnings)
}

// openContent makes the run's content, once its number is known.
func (r *runner) openContent() {
	r.content = r.job(jobOf{script: r.script, run: r.key, identity: r.identity, from: r.opts.From, planning: r.planning, ephemeral: r.opts.Ephemeral, dir: r.dir, ownCopies: r.joined})
}

// starts counts the nodes that read no table: the first to have batches.
func starts(nodes []*script.Node, s *script.Script) (n int) {
	for _, node := range nodes {
		if len(node.Sources(s)) == 0 {
			n++
		}
	}
	return n
}

// inNode says which node a failure belongs to that was met before the run.
func inNode(err error, n *script.Node) error {
	var f *fault.Error
	if !errors.As(err, &f) || n.PyTable == nil {
		return err
	}
	f.Message = fmt.Sprintf("node %s: %s", n.Name, f.Message)
	if f.Place.File == "" {
		f.Place.File, f.Place.Line, f.Place.Column = n.PyTable.Pos.File, int64(n.PyTable.Pos.Line), n.PyTable.Pos.Col
	}
	return f
}

// create records a new run and takes its lock.
func (r *runner) create(ctx context.Context, affected []*script.Node) error {
	if err := r.home.checkFiles(ctx, r.opts.Remote, r.script, affected); err != nil {
		return err
	}
	if err := r.checkSources(ctx, affected); err != nil {
		return err
	}
	in := map[*script.Node]bool{}
	for _, n := range affected {
		in[n] = true
	}
	specs := make([]state.NodeSpec, len(affected))
	names := make([]string, 0, len(affected))
	for i, n := range affected {
		specs[i] = state.NodeSpec{Name: n.Name, Kind: KindOf(n), Ordinal: i, Fingerprint: n.Fingerprint}
		if n.Table != nil {
			specs[i].Table = n.Table.Name
		}
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
	r.planning = r.whole
	run, blobs, err := r.record(names)
	if err != nil {
		return err
	}
	r.key, err = r.store.CreateRun(ctx, run, specs, blobs...)
	if err != nil {
		return fmt.Errorf("record a new run: %w", err)
	}
	// Others may have seen it by now, and be at work.
	r.lock, _, err = r.home.JoinRun(r.key)
	r.openContent()
	return err
}

// order is one that whoever runs this process gives.
func (r *runner) order(kind state.OrderKind) state.Order {
	return state.Order{Kind: kind, Token: rand.Text(), Mark: state.Mark{Actor: actor(), Time: time.Now()}}
}

// actor names the person at work, as the machine knows them.
func actor() string {
	name := strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}

// KindOf is a node's type as people read it.
func KindOf(n *script.Node) string {
	switch {
	case n.PyCalc != nil:
		return script.ProcPyCalc
	case n.Tag != nil:
		return script.ProcTag
	}
	return string(n.Type)
}

// affected lists the nodes to execute: those that the start nodes lead to, or
// those of the run that is resumed, whose lock it then holds.
func (r *runner) affected(ctx context.Context) ([]*script.Node, error) {
	if !r.opts.Resume {
		return r.script.Affected(r.opts.Start)
	}
	if len(r.opts.Start) > 0 {
		return nil, &fault.Error{Kind: fault.Script, Message: "a resumed run has its nodes already", Hint: "leave --start out, or --resume"}
	}
	if len(r.opts.From) > 0 {
		return nil, &fault.Error{Kind: fault.Script, Message: "a resumed run reads the tables that it was begun with", Hint: "leave --from out, or --resume"}
	}
	if err := r.takeOver(ctx); err != nil {
		return nil, err
	}
	stored, err := r.home.State.Nodes(ctx, r.key)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read the nodes of run %d: %w", r.key.Run, err), r.lock.Close())
	}
	var out []*script.Node
	for _, n := range stored {
		if node := r.script.Node(n.Name); node != nil {
			out = append(out, node)
		}
	}
	return out, nil
}

// takeOver joins the run that is to be resumed: the one named, or the workspace's last.
func (r *runner) takeOver(ctx context.Context) error {
	key := state.RunKey{Workspace: r.opts.Workspace, Run: r.opts.ResumeRun}
	if key.Run == 0 {
		runs, err := state.All(ctx, r.home.State.Runs, r.opts.Workspace)
		if err != nil {
			return fmt.Errorf("read the runs of workspace %s: %w", r.opts.Workspace, err)
		}
		if i := slices.IndexFunc(runs, func(run state.Run) bool { return r.home.identityOf(run) == r.identity }); i >= 0 {
			key = runs[i].RunKey // the latest comes first
		}
	}
	if key.Run == 0 {
		return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("there is no run of script %s to resume in workspace %s", pipeline.ScriptName(r.identity), r.opts.Workspace),
			Hint: "leave --resume out to start one; --run N resumes a run that was begun under another name"}
	}
	if err := r.checkResumable(ctx, key); err != nil {
		return err
	}
	lock, alone, err := r.home.JoinRun(key)
	if err != nil {
		return err
	}
	r.key, r.lock, r.joined = key, lock, !alone
	return nil
}

func (r *runner) checkResumable(ctx context.Context, key state.RunKey) error {
	run, err := r.home.State.Run(ctx, key)
	switch {
	case errors.Is(err, state.ErrNotFound):
		return noRun(key)
	case err != nil:
		return fmt.Errorf("read run %d: %w", key.Run, err)
	case run.Status == state.Complete:
		return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("run %d is complete: there is nothing to resume", key.Run), Hint: "leave --resume out to start a new run"}
	case run.Fingerprint != r.script.Fingerprint:
		return &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("the script, its parameters or its Python code changed since run %d: its finished batches may no longer be right", key.Run),
			Hint:    "start a new run without --resume, or bring the old version back"}
	}
	r.identity, r.opts.From = r.home.identityOf(run), run.Sources
	if r.begun, err = settingsOf(ctx, r.store, run); err == nil && r.begun != nil {
		r.dir = r.begun.Dir
	}
	return err
}

// resume makes the run go on. Where others are at work on it, it goes on already.
func (r *runner) resume(ctx context.Context) error {
	run, err := r.store.Run(ctx, r.key)
	if err != nil {
		return fmt.Errorf("read run %d: %w", r.key.Run, err)
	}
	if r.planning = r.whole; r.begun != nil {
		r.planning, r.opts.Ephemeral = r.begun.Budget, r.begun.Ephemeral
	}
	r.openContent()
	if r.joined && run.Status == state.Running {
		return nil
	}
	if err := r.content.CheckInputs(ctx); err != nil {
		return err
	}
	if err := state.Direct(ctx, r.store, r.key, r.order(state.OrderReopen)); err != nil {
		return fmt.Errorf("reopen run %d: %w", r.key.Run, err)
	}
	return nil
}

// drive works on the run until it is over or ctx ends. A run whose process is
// asked to end is stopped.
func (r *runner) drive(ctx context.Context, warnings document.Diagnostics) (sum Summary, err error) {
	sum = Summary{Key: r.key, Status: state.Running}
	previous := debug.SetMemoryLimit(r.budget.GoBytes)
	defer debug.SetMemoryLimit(previous)
	stopMeter := r.peak.start()
	defer stopMeter()
	observe := r.opts.Observe
	if observe == nil {
		observe = func(worker.Event) {}
	}
	if r.opts.Started != nil {
		r.opts.Started(Started{Key: r.key, Resumed: r.opts.Resume, Nodes: r.nodes, Budget: r.budget, Warnings: warnings})
	}
	c := newCrew(ctx, crewConfig{store: r.store, slots: r.whole.Slots, lease: r.opts.Lease, logger: r.opts.Logger, checkpoint: r.opts.Checkpoint})
	run := c.open(ctx, r.key, r.content, r.lock, observe)
	var runErr error
	sum.Status, runErr = run.Run()
	runErr = errors.Join(runErr, c.stop())
	if sum.Status == state.Running && runErr == nil && !r.leaves(ctx) {
		sum.Status, runErr = r.stop(ctx)
	}
	stopMeter()
	if sum.Status != state.Running && ctx.Err() == nil {
		r.sweepLeavings(ctx, r.key, false)
	}
	if runErr == nil {
		observe(worker.Event{Run: r.key, Time: time.Now(), Kind: worker.RunFinished, Status: sum.Status})
	}
	if sum.Status == state.Complete {
		if err := os.RemoveAll(r.home.remoteDir(r.key)); err != nil {
			r.opts.Logger.Warn("copies of remote inputs stay until the next run", "error", err)
		}
	}
	return r.summarise(sum, r.content.Idle(r.start)), runErr
}

// ErrLeave is the cause of the end of a context whose run may go on in other processes.
var ErrLeave = fmt.Errorf("asked to leave the work to others: %w", context.Canceled)

// leaves reports whether the run goes on without this process.
func (r *runner) leaves(ctx context.Context) bool {
	return errors.Is(context.Cause(ctx), ErrLeave) && !r.lock.alone()
}

// stop records that somebody ended the run before it was over.
func (r *runner) stop(ctx context.Context) (state.Status, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), summaryTimeout)
	defer cancel()
	err := state.Direct(ctx, r.store, r.key, r.order(state.OrderStop))
	if errors.Is(err, state.ErrConflict) { // it was over already
		run, err := r.store.Run(ctx, r.key)
		if err != nil {
			return state.Running, fmt.Errorf("read run %d: %w", r.key.Run, err)
		}
		return run.Status, nil
	}
	if err != nil {
		return state.Running, fmt.Errorf("record that run %d was stopped: %w", r.key.Run, err)
	}
	return state.Stopped, nil
}

// spillShare of the free disk may be used by the slots' spill files together;
// each may have spillBytesMin at least, so that a full disk says that it is full.
const (
	spillShare    = 0.8
	spillBytesMin = 16 << 20
)

// freeBytes is the free space of the file system that dir is on.
func freeBytes(dir string) (int64, bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true
}

// interpreterBytesMin is the least address space an interpreter is held to:
// the limit counts what is mapped, which is several times what is used.
const interpreterBytesMin = 512 << 20

// earlyInterpreters bounds the interpreters that are started before it is known
// how much there will be for them to do.
const earlyInterpreters = 8

// groupBytesMin is what a call of a function over many rows may always have; more
// where interpreters have more: values take several times as much in Python.
const groupBytesMin = 16 << 20

// summarise reads how the run ended from state.
func (r *runner) summarise(sum Summary, idle time.Duration) Summary {
	ctx, cancel := context.WithTimeout(context.Background(), summaryTimeout)
	defer cancel()
	sum.Elapsed, sum.Overhead, sum.PeakBytes = time.Since(r.start), idle, r.peak.bytes()
	if run, err := r.home.State.Run(ctx, r.key); err == nil {
		sum.Failure = run.Failure
	}
	sum.Nodes, _ = r.home.State.Nodes(ctx, r.key) // what cannot be read is not shown: the status is known already
	sum.Files, _ = state.OfNodes(ctx, r.home.State, r.key, r.home.State.Files)
	sum.Checks, _ = state.OfNodes(ctx, r.home.State, r.key, r.home.State.Checks)
	sum.Foreign, _ = r.home.foreignTables(ctx, r.key, sum.Nodes)
	sum.ComputedIn = ComputedIn(ctx, r.home.State, sum.Nodes)
	sum.Stats = NodeStats(ctx, r.home.State, sum.Nodes)
	return sum
}

// NodeStats adds up what the batches of nodes measured. A node whose batches
// cannot be read is left out.
func NodeStats(ctx context.Context, store state.Store, nodes []state.Node) map[string]state.Stats {
	stats := map[string]state.Stats{}
	for _, n := range nodes {
		batches, err := state.All(ctx, store.Batches, n.NodeKey)
		if err != nil {
			continue
		}
		var total state.Stats
		for _, b := range batches {
			total.Engine += b.Stats.Engine
			total.Python += b.Stats.Python
			total.Elapsed += b.Stats.Elapsed
			total.Warnings = append(total.Warnings, b.Stats.Warnings...)
			for name, n := range b.Stats.Counters {
				if total.Counters == nil {
					total.Counters = map[string]int64{}
				}
				total.Counters[name] += n
			}
		}
		stats[n.Name] = total
	}
	return stats
}

// summaryTimeout bounds reading the summary of a run that is over.
const summaryTimeout = 30 * time.Second
