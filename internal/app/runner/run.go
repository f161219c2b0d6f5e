package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"thalweg/internal/base/allow"

	"thalweg/internal/app/inspect"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/outputs"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/sources"
	"thalweg/internal/app/view"
	"thalweg/internal/app/workerprocess"
	"thalweg/internal/base/address"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/remote"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/gate"
	"thalweg/internal/run/job"
	"thalweg/internal/run/orders"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/store/state"
)

// Options of a run.
type Options struct {
	runtime.Process
	ScriptPath    string
	ParamsPath    string
	Params        map[string]string // parameters of the command line, which win
	Lenient       bool              // see script.Sources
	Literal       bool              // see script.Sources
	Script        *script.Script    // instead of loading ScriptPath; may be nil
	ScriptSources *script.Sources   // that Script was loaded from; nil: its gates ask for no answers
	Workspace     string
	Start         []string         // nodes to start with; empty: those that start by themselves
	Select        script.Selection // a part of the script, instead of Start
	// runs of any script to read tables from that this run does not write; else earlier runs of the same script
	From        []int64
	Description string
	Ephemeral   bool // tables that can be ephemeral are
	// nodes whose rows an earlier run has are not computed, but for those of Start and those that Select names
	Reuse      bool
	Resume     bool                 // continue a run instead of starting one
	ResumeRun  int64                // the run to continue; 0: the workspace's last
	Pinned     bool                 // with ResumeRun: from what was pinned of it, whatever ScriptPath has now
	Again      orders.RedoSelection // with Resume: what of the run is done again besides what failed or was left
	Dir        string               // that relative names of files are seen from; "": the working directory
	Policy     *allow.Policy        // of what the run may open; nil: whatever its processes can
	Texts      sources.Texts        // read instead of the files of a new run's script; may be nil
	Parent     int64                // the run that this one takes the place of; 0: none
	Unattended bool                 // nobody is asked at gates: they are left out, and answers are their defaults
	Wait       bool                 // a run that waits for people is waited for: see Run
	Started    func(Started)        // called once, before the first batch; may be nil
	// called with Wait when a run begins to wait for people; may be nil
	Waits func(Summary)

	Token    string            // see state.Run; "": one of its own
	Offered  map[string]string // see script.Sources
	Deadline string            // when it is to be over, instead of what the script says
	Nominal  time.Time         // when it was to begin; zero: now
	Hooks    []script.Hook     // beside the script's
	Priority state.Priority    // of a new run
	Most     Ask               // what it may take
	Limiter  Limiter           // needed with Most

	Exclusive bool // it does not begin while another run writes one of its outputs
	// Shared is told of such outputs, else: also before the run has a number; may be nil.
	Shared func(state.RunKey, SharedOutput)
}

// Started describes a run that is about to work.
type Started struct {
	Key      state.RunKey
	Resumed  bool
	Nodes    []state.Node
	Budget   budget.Budget
	Warnings view.Diagnostics
	Script   *script.Script
	Dir      string // that relative names of files are seen from
	Remote   bool   // others work on it
}

// Summary describes a run that is over, or that waits for people.
type Summary struct {
	Key     state.RunKey
	Status  state.Status
	Failure *state.Failure
	Nodes   []state.Node
	Stats   map[string]state.Stats   // per node, over its batches
	Worked  map[string]time.Duration // how long each node was worked on
	Files   []state.File
	Checks  []state.CheckResult
	Foreign []inspect.ForeignTable // tables of other runs that were read
	Asked   []gate.Asked           // what waits for people

	ComputedIn map[string]string // of ephemeral nodes: the node inside which their table is computed
	Elapsed    time.Duration
	Overhead   time.Duration // of Elapsed, with neither DuckDB nor Python at work
	Bill       *view.Bill    // what it cost; nil: not known
	PeakBytes  int64         // of this process and its interpreters together
}

// BadRows lists the nodes of the run that have put rows aside.
func (s Summary) BadRows() []inspect.BadRows { return inspect.ListBadRows(s.Nodes, s.Stats) }

// Run loads a script and executes it, or continues its last run, until it is
// over, or until all that is left of it waits for people: its status is Waiting
// then, or Paused, and nothing of it is under way or held. With Options.Wait it
// goes on when they have decided. The summary is valid whenever its Key.Run is not 0, also beside an error.
func Run(ctx context.Context, home *instance.Instance, opts Options) (Summary, error) {
	for {
		sum, err := work(ctx, home, opts)
		if err != nil || ctx.Err() != nil || sum.Status != state.Waiting && sum.Status != state.Paused {
			return sum, err
		}
		if opts.Checkpoint != nil {
			opts.Checkpoint(job.Left)
		}
		goesOn, err := goesOn(ctx, home, &sum)
		if err == nil && !goesOn && sum.Status == state.Waiting && opts.Wait {
			if opts.Waits != nil {
				opts.Waits(sum)
			}
			err = awaitDecision(ctx, home, sum)
			goesOn = ctx.Err() == nil
		}
		if err != nil || !goesOn {
			return sum, err
		}
		if opts.Pinned, err = wholePinned(ctx, home, sum.Key); err != nil {
			return sum, err
		}
		opts.Resume, opts.ResumeRun, opts.Start, opts.From, opts.Again, opts.Parent = true, sum.Key.Run, nil, nil,
			orders.RedoSelection{}, 0
		opts.Select, opts.Most = script.Selection{}, Ask{}
	}
}

// goesOn looks once more at a run that this process has left because it waits:
// who decides looks behind the decision whether somebody is at work, who leaves
// looks behind that. One of the two sees the other. A run that has ended in
// between has ended for the summary, too.
func goesOn(ctx context.Context, home *instance.Instance, sum *Summary) (bool, error) {
	run, err := home.State.Run(ctx, sum.Key)
	if err != nil {
		return false, fmt.Errorf("read run %d: %w", sum.Key.Run, err)
	}
	if run.Status.Terminal() && !run.Command.Pending() {
		sum.Status, sum.Failure = run.Status, run.Failure
		return false, nil
	}
	nodes, err := home.State.Nodes(ctx, sum.Key)
	if err != nil {
		return false, fmt.Errorf("read the nodes of run %d: %w", sum.Key.Run, err)
	}
	return run.Command.Pending() || run.Status == state.Running && !state.Waits(nodes), nil
}

// work loads the script and works on the run until it is over, or until all that is left waits for people.
func work(ctx context.Context, home *instance.Instance, opts Options) (_ Summary, err error) {
	start := time.Now()
	opts.Process = opts.WithDefaults()
	if opts.Remote == nil {
		opts.Remote = remote.New(remote.Config{Logger: opts.Logger})
		defer func() { err = errors.Join(err, opts.Remote.Close()) }()
	}
	t, err := runtime.New(home, opts.Process)
	if err != nil {
		return Summary{}, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	t.Engine.Prepare(1) // while the script is being read
	r := &runner{Runtime: t, opts: opts, start: start}
	warnings, err := r.load(ctx)
	if err != nil {
		return Summary{}, err
	}
	return r.run(ctx, warnings)
}

// load loads the script, from where it is or from what was pinned of the run
// that goes on.
func (r *runner) load(ctx context.Context) (view.Diagnostics, error) {
	if r.opts.Pinned {
		rec, err := r.Recall(ctx, state.RunKey{Workspace: r.opts.Workspace, Run: r.opts.ResumeRun})
		if err != nil {
			return nil, err
		}
		r.script, r.identity, r.dir, r.sources = rec.Script, r.Instance.IdentityOf(rec.Run), rec.Dir, &rec.Sources
		r.opts.Policy = rec.Policy
		return rec.Warnings, nil
	}
	var diags view.Diagnostics
	r.sources = r.opts.ScriptSources
	if r.script = r.opts.Script; r.script == nil {
		src := r.opts.Sources(r.opts.Policy, r.opts.Dir, r.opts.ScriptPath, r.opts.ParamsPath)
		src.Known, src.Literal = r.opts.Known, r.opts.Literal
		src.Params, src.Offered, src.Lenient, src.Read = r.opts.Params, r.opts.Offered, r.opts.Lenient,
			sources.Remembered(r.opts.Texts.Over(src.Dir, src.Read))
		if r.script, diags = script.Load(ctx, src); diags.HasErrors() {
			return nil, &sources.InvalidScriptError{Diagnostics: diags}
		}
		r.sources = &src
	}
	var err error
	if r.dir, err = r.opts.seenFrom(); err != nil {
		return nil, err
	}
	r.identity = r.Instance.Identity(r.script.Name, address.SeenFrom(r.dir, r.opts.ScriptPath))
	return diags.Warnings(), nil
}

// runner is one call of Run.
type runner struct {
	*runtime.Runtime
	opts     Options
	script   *script.Script
	sources  *script.Sources // that it was loaded from; nil: it was given
	start    time.Time
	identity string // which script it is
	key      state.RunKey
	lock     *instance.RunLock
	joined   bool // other processes are at work on the run already
	planning budget.Budget
	python   map[string]map[string]string // see checkPython
	dir      string                       // see settings
	begun    *runtime.Settings            // of the run that is resumed; nil: not known
	nodes    []state.Node
	watch    *budget.Watch
	content  *pipeline.Pipeline
	warnings view.Diagnostics // of the script
	told     map[SharedOutput]bool
	sheets   *workerprocess.Sheets
}

// run prepares what may fail before a run exists, so that a bad script leaves
// no run behind, and then works on it.
func (r *runner) run(ctx context.Context, warnings view.Diagnostics) (sum Summary, err error) {
	if err := instance.CheckWorkspace(r.opts.Workspace); err != nil {
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
	if err := r.alone(ctx, affected); err != nil { // before it waits for memory
		return sum, err
	}
	if err := r.Enter(ctx, runtime.NeedsPython(affected)); err != nil {
		return sum, err
	}
	if err := r.OpenPool(); err != nil {
		return sum, err
	}
	if r.sheets, r.Store, err = workerprocess.Account(r.Instance, r.Store, workerprocess.Means{Getenv: r.Process.Getenv,
		Cores: r.Process.Cores, Slots: r.OwnBudget.Slots, Memory: r.Process.MemoryBytes, Held: r.Held}); err != nil {
		return sum, err
	}
	r.Engine.Prepare(min(r.Budget.Slots, starts(affected, r.script)))
	if runtime.NeedsPython(affected) {
		if err := r.CheckRequirements(ctx, r.script); err != nil {
			return sum, err
		}
	}
	if r.python, err = r.CheckPython(ctx, r.dir, affected); err != nil {
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
	if err := r.stillAlone(ctx, affected); err != nil {
		return Summary{Key: r.key}, err
	}
	if r.nodes, err = r.Instance.State.Nodes(ctx, r.key); err != nil {
		return Summary{Key: r.key}, fmt.Errorf("read the nodes of run %d: %w", r.key.Run, err)
	}
	if r.opts.Resume && !r.joined {
		r.SweepLeavings(ctx, r.key, false)
	}
	if err := r.SweepDead(ctx, r.key); err != nil {
		r.opts.Logger.Warn("what dead runs left behind them stays until the next run", "error", err)
	}
	stopTelling := r.Tell(ctx, r.key)
	defer stopTelling()
	return r.drive(ctx, warnings)
}

// stillAlone is alone for a run that others can see by now: one that is refused is stopped.
func (r *runner) stillAlone(ctx context.Context, nodes []*script.Node) error {
	err := r.alone(ctx, nodes)
	if err != nil && r.opts.Exclusive && ctx.Err() == nil {
		_, stopped := orders.Stop(ctx, r.Store, r.key, r.opts.Caller.Mark(err.Error()))
		err = errors.Join(err, stopped)
	}
	return err
}

// openContent makes the run's content, once its number is known.
func (r *runner) openContent() {
	r.content = r.Job(runtime.JobSpec{Script: r.script, Sources: r.sources, Run: r.key, Identity: r.identity,
		From:     r.opts.From,
		Planning: r.planning, Ephemeral: r.opts.Ephemeral, Dir: r.dir, OwnCopies: r.joined,
		Reuse: r.opts.Reuse, Chosen: r.opts.chosen(r.script), Python: r.python, Policy: r.opts.Policy})
}

// seenFrom is the directory that relative names of files are seen from.
func (o Options) seenFrom() (string, error) {
	if o.Dir != "" {
		return o.Dir, nil
	}
	dir, err := filepath.Abs(cmp.Or(o.Process.Dir, "."))
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir) // what .. leaves is then the same whoever looks
}

// Identity returns the identity that a run with these options has.
func (o Options) Identity(home *instance.Instance, s *script.Script) (string, error) {
	dir, err := o.seenFrom()
	return home.Identity(s.Name, address.SeenFrom(dir, o.ScriptPath)), err
}

// chosen returns the nodes that are computed even if an earlier run has their rows. They are the nodes
// that somebody has named; a run that takes the place of another one has none.
func (o Options) chosen(s *script.Script) []string {
	if o.Parent != 0 {
		return nil
	}
	if o.Select.Empty() || s == nil {
		return o.Start
	}
	_, named, _ := s.Selected(o.Select) // nodes has told what is wrong with it
	return named
}

// nodes lists the nodes of a new run of a script.
func (o Options) nodes(s *script.Script) ([]*script.Node, error) {
	if o.Select.Empty() {
		return s.Affected(o.Start)
	}
	nodes, _, err := s.Selected(o.Select)
	return nodes, err
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

// create records a new run and takes its lock.
func (r *runner) create(ctx context.Context, affected []*script.Node) error {
	if err := r.enlist(ctx, affected); err != nil {
		return err
	}
	// Others may have seen it by now, and be at work.
	var err error
	r.lock, _, err = r.Instance.JoinRun(r.key)
	r.openContent()
	return errors.Join(err, r.replaceParent(ctx))
}

// replaceParent ends the run whose place this one takes, if it is not over: it
// would go on with what has changed, and write the same files.
func (r *runner) replaceParent(ctx context.Context) error {
	if r.opts.Parent == 0 {
		return nil
	}
	_, err := orders.Stop(ctx, r.Store, state.RunKey{Workspace: r.key.Workspace, Run: r.opts.Parent},
		r.opts.Caller.Mark(fmt.Sprintf("run %d takes its place", r.key.Run)))
	return err
}

// enlist records a new run.
func (r *runner) enlist(ctx context.Context, affected []*script.Node) error {
	if err := outputs.CheckFiles(ctx, r.Instance, r.opts.Remote.Within(r.opts.Policy), r.script, affected); err != nil {
		return err
	}
	for _, h := range r.script.Notify {
		if len(h.Command) == 0 {
			continue
		}
		if err := r.opts.Policy.Command(); err != nil {
			return err
		}
	}
	if err := r.checkSources(ctx, affected); err != nil {
		return err
	}
	in := map[*script.Node]bool{}
	for _, n := range affected {
		in[n] = true
	}
	names := make([]string, 0, len(affected))
	for _, n := range affected {
		if len(n.Sources(r.script)) == 0 || !in[n.Sources(r.script)[0]] {
			names = append(names, n.Name)
		}
	}
	if len(r.opts.Start) > 0 {
		names = r.opts.Start
	}
	specs := r.specs(affected)
	var err error
	if r.planning, err = r.PlanFor(ctx, runtime.NeedsPython(affected)); err != nil {
		return err
	}
	run, blobs, err := r.record(names)
	if err != nil {
		return err
	}
	if run.Limit, err = LimitNew(ctx, r.script, r.opts); err != nil {
		return err
	}
	r.key, err = r.Store.CreateRun(ctx, run, specs, blobs...)
	if err != nil {
		return fmt.Errorf("record a new run: %w", err)
	}
	return nil
}

// specs are the steps of a run of these nodes, as state keeps them.
func (r *runner) specs(affected []*script.Node) []state.NodeSpec {
	steps := r.script.Steps(affected)
	if r.opts.Unattended {
		steps = script.Unattended(steps)
	}
	specs := make([]state.NodeSpec, len(steps))
	for i, s := range steps {
		specs[i] = state.NodeSpec{Name: s.Name, Ordinal: i, Inputs: s.Inputs, Kind: gate.Kind}
		if n := s.Node; n != nil {
			specs[i].Kind, specs[i].Fingerprint = KindOf(n), n.Fingerprint
			if n.Table != nil {
				specs[i].Table = n.Table.Name
			}
		}
	}
	return specs
}

// order is one that whoever runs this process gives.
func (r *runner) order(kind state.CommandKind) state.Command {
	mark := r.opts.Caller.Mark("")
	return state.Command{Kind: kind, Token: mark.OrderToken() + " " + string(kind), Mark: mark}
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
		return r.opts.nodes(r.script)
	}
	if err := r.onlyResume(); err != nil {
		return nil, err
	}
	if err := r.takeOver(ctx); err != nil {
		return nil, err
	}
	stored, err := r.Instance.State.Nodes(ctx, r.key)
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

// onlyResume refuses what only new runs may be told.
func (r *runner) onlyResume() error {
	if !r.opts.Select.Empty() {
		return &fault.Error{Kind: fault.Script, Message: "a resumed run has its nodes already",
			Hint: "leave {{set node}}, {{set from}}, {{set to}} and {{set tag}} out, or {{set resume}}"}
	}
	if len(r.opts.Start) > 0 {
		return &fault.Error{Kind: fault.Script, Message: "a resumed run has its nodes already",
			Hint: "leave {{set start}} out, or {{set resume}}"}
	}
	if len(r.opts.From) > 0 {
		return &fault.Error{Kind: fault.Script, Message: "a resumed run reads the tables that it was begun with",
			Hint: "leave {{set from}} out, or {{set resume}}"}
	}
	return nil
}

// toResume finds the run that is to be resumed: the one named, or the script's last.
func (r *runner) toResume(ctx context.Context) (state.RunKey, error) {
	key := state.RunKey{Workspace: r.opts.Workspace, Run: r.opts.ResumeRun}
	if key.Run == 0 {
		runs, err := state.All(ctx, r.Instance.State.Runs, r.opts.Workspace)
		if err != nil {
			return key, fmt.Errorf("read the runs of workspace %s: %w", r.opts.Workspace, err)
		}
		if i := slices.IndexFunc(runs,
			func(run state.Run) bool { return r.Instance.IdentityOf(run) == r.identity }); i >= 0 {
			key = runs[i].RunKey // the latest comes first
		}
	}
	if key.Run == 0 {
		return key, &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("there is no run of script %s to resume in workspace %s",
				pipeline.ScriptName(r.identity), r.opts.Workspace),
			Hint: "leave {{set resume}} out to start one; {{set run=N}} resumes a run that was begun under " +
				"another name"}
	}
	return key, r.checkResumable(ctx, key)
}

// takeOver joins the run that is to be resumed.
func (r *runner) takeOver(ctx context.Context) error {
	key, err := r.toResume(ctx)
	if err != nil {
		return err
	}
	lock, alone, err := r.Instance.JoinRun(key)
	if err != nil {
		return err
	}
	r.key, r.lock, r.joined = key, lock, !alone
	return nil
}

func (r *runner) checkResumable(ctx context.Context, key state.RunKey) error {
	run, err := carried(ctx, r.Store, key)
	done := false
	if err == nil && run.Status == state.Complete {
		wanted, err := orders.Close(ctx, r.Instance.State, run, r.opts.Again)
		if err != nil {
			return err
		}
		done = len(wanted.Redo) == 0
	}
	switch {
	case errors.Is(err, state.ErrNotFound):
		return instance.RunNotFound(key)
	case err != nil:
		return err
	case run.Dropped != nil:
		return instance.RunDropped(run)
	case run.Invalidated != nil:
		return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("run %d was invalidated by %s: %s", key.Run,
			run.Invalidated.Actor, run.Invalidated.Reason), Hint: "an invalidated run does not go on: start a new one"}
	case done && r.opts.Pinned:
		return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("run %d is complete: there is nothing to resume",
			key.Run), Hint: key.Do("retry", "node", "NODE").String() + " does parts of it again"}
	case done:
		return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("run %d is complete: there is nothing to resume",
			key.Run),
			Hint: "without {{set resume}} a new run starts, with {{set fresh}} it computes everything again; " +
				key.Do("retry", "node", "NODE").String() + " does parts of this one again"}
	case run.Fingerprint != r.script.Fingerprint:
		return &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("the script, its parameters or its Python code changed since run %d: its finished "+
				"batches may no longer be right", key.Run),
			Hint: key.Do("retry").String() +
				" begins a new run, which takes over what has not changed; without {{set resume}}, {{set " +
				"start=NODE}} begins at a node and {{set fresh}} computes everything; " +
				"or bring the old version back"}
	}
	r.identity, r.opts.From = r.Instance.IdentityOf(run), run.Sources
	if r.begun, err = runtime.SettingsOf(ctx, r.Store, run); err == nil && r.begun != nil {
		r.dir = r.begun.Dir
		r.hold(r.begun.Policy)
	}
	return err
}

// hold holds the run to what it may open, whoever resumes it with the script.
func (r *runner) hold(policy *allow.Policy) {
	if policy == nil {
		return
	}
	r.opts.Policy = policy
	if r.sources != nil {
		own := *r.sources
		held := r.opts.Sources(policy, own.Dir, own.Path, own.ParamsPath)
		own.Columns, own.TableColumns, own.Environment, own.Describe, own.Secrets = held.Columns, held.TableColumns,
			held.Environment, held.Describe, held.Secrets
		r.sources = &own
	}
}

// resume makes the run go on. Where others are at work on it, it goes on already.
func (r *runner) resume(ctx context.Context) error {
	run, err := r.Store.Run(ctx, r.key)
	if err != nil {
		return fmt.Errorf("read run %d: %w", r.key.Run, err)
	}
	if r.planning = r.OwnBudget; r.begun != nil {
		r.planning, r.opts.Ephemeral = r.begun.Budget, r.begun.Ephemeral
		r.opts.Reuse, r.opts.Start = r.begun.Reuse, r.begun.Chosen
	}
	r.openContent()
	if r.joined && run.Status == state.Running && r.opts.Again.Empty() {
		if !r.opts.Most.Empty() {
			return &fault.Error{Kind: fault.Script, Code: fault.Conflict,
				Message: fmt.Sprintf("run %d is running: its limit is not changed now", run.Run),
				Hint:    "pause it first: " + run.Do("pause").String()}
		}
		return nil
	}
	wanted, err := orders.Close(ctx, r.Store, run, r.opts.Again)
	if err != nil {
		return err
	}
	if err := r.content.CheckInputs(ctx, wanted.Redoes); err != nil {
		return err
	}
	_, err = orders.GoOn(ctx, r.Store, r.key, r.opts.Again, r.opts.Caller.Mark(""), r.limitAgain(ctx))
	if errors.Is(err, state.ErrConflict) { // others have ended it since it was looked at
		err = cmp.Or(r.checkResumable(ctx, r.key), err)
	}
	return err
}

// drive works on the run until it is over or ctx ends. A run whose process is
// asked to end is stopped.
func (r *runner) drive(ctx context.Context, warnings view.Diagnostics) (sum Summary, err error) {
	sum = Summary{Key: r.key, Status: state.Running}
	previous := debug.SetMemoryLimit(r.Budget.GoBytes)
	defer debug.SetMemoryLimit(previous)
	r.watch = r.Meter.Watch()
	defer r.watch.Stop()
	observe := r.opts.Observe
	if observe == nil {
		observe = func(job.Event) {}
	}
	if r.opts.Started != nil {
		r.opts.Started(Started{Key: r.key, Resumed: r.opts.Resume, Nodes: r.nodes, Budget: r.Shares.Room().Budget(),
			Warnings: warnings, Script: r.script, Dir: r.dir})
	}
	c := workerprocess.New(ctx, workerprocess.Config{Store: r.Store, Slots: r.OwnBudget.Slots,
		Ahead: workerprocess.AheadOf(r.Instance.Parts), Lease: r.opts.Lease,
		Tries: r.opts.Tries, Deadline: r.opts.AttemptTimeout, Clock: r.Instance.Clock, Logger: r.opts.Logger,
		Checkpoint: r.opts.Checkpoint, Sampler: workerprocess.SamplerOf(r.Instance),
		Sheets: r.sheets})
	run := c.Open(ctx, r.key, state.PriorityNormal, r.content, r.content, r.lock, observe)
	var runErr error
	sum.Status, runErr = run.Run()
	runErr = errors.Join(runErr, c.Stop())
	if sum.Status == state.Running && runErr == nil && !r.leaves(ctx) {
		sum.Status, runErr = r.stop(ctx)
	}
	r.watch.Stop()
	if sum.Status.Terminal() && ctx.Err() == nil {
		r.SweepLeavings(ctx, r.key, false)
	}
	if runErr == nil {
		observe(job.Event{Run: r.key, Time: time.Now(), Kind: job.RunFinished, Status: sum.Status})
	}
	if sum.Status == state.Complete {
		if err := os.RemoveAll(r.Instance.RemoteDir(r.key)); err != nil {
			r.opts.Logger.Warn("copies of remote inputs stay until the next run", "error", err)
		}
	}
	return r.summarise(sum, r.content.Idle(r.start)), runErr
}

// ErrLeave is the cause of the end of a context whose run may go on in other processes.
var ErrLeave = fmt.Errorf("asked to leave the work to others: %w", context.Canceled)

// leaves reports whether the run goes on without this process, which does not
// count as working on it any more when it looks: of several that leave at once
// the last one finds nobody.
func (r *runner) leaves(ctx context.Context) bool {
	if !errors.Is(context.Cause(ctx), ErrLeave) {
		return false
	}
	closeErr := r.lock.Close()
	lock, alone, err := r.Instance.EnterEmpty(r.key)
	r.lock = lock
	if err = errors.Join(closeErr, err); err != nil {
		r.opts.Logger.Warn("whether others work on the run is not known: it is stopped", "run", r.key.Run, "error", err)
	}
	return err == nil && !alone
}

// stop records that somebody ended the run before it was over.
func (r *runner) stop(ctx context.Context) (state.Status, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), summaryTimeout)
	defer cancel()
	err := state.Direct(ctx, r.Store, r.key, r.order(state.CommandStop))
	if errors.Is(err, state.ErrConflict) { // it was over already
		run, err := r.Store.Run(ctx, r.key)
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

// summarise reads how the run ended from state.
func (r *runner) summarise(sum Summary, idle time.Duration) Summary {
	ctx, cancel := context.WithTimeout(context.Background(), summaryTimeout)
	defer cancel()
	sum.Elapsed, sum.Overhead = time.Since(r.start), idle
	sum.PeakBytes, _ = r.watch.Stop()
	fill(ctx, r.Instance, &sum)
	return sum
}

// SummaryOf returns the summary of a run that others work on, as it is now.
func SummaryOf(ctx context.Context, home *instance.Instance, key state.RunKey) (Summary, error) {
	run, err := home.State.Run(ctx, key)
	if err != nil {
		return Summary{Key: key}, fmt.Errorf("read run %d: %w", key.Run, err)
	}
	sum := Summary{Key: key, Status: run.Status, Elapsed: time.Since(run.Created)}
	if !run.Finished.IsZero() {
		sum.Elapsed = run.Finished.Sub(run.Created)
	}
	fill(ctx, home, &sum)
	if run.Status == state.Running && state.Waits(sum.Nodes) {
		sum.Status = state.Waiting
	}
	return sum, nil
}

// fill reads how a run is from state. What cannot be read is not shown.
func fill(ctx context.Context, h *instance.Instance, sum *Summary) {
	run, err := h.State.Run(ctx, sum.Key)
	if err == nil {
		sum.Failure = run.Failure
	}
	sum.Nodes, _ = h.State.Nodes(ctx, sum.Key)
	sum.Worked = Worked(ctx, h.State, run, sum.Nodes)
	sum.Asked = askedOf(sum.Nodes)
	sum.Files, _ = inspect.Files(ctx, h.State, sum.Nodes)
	sum.Checks, _ = inspect.Checks(ctx, h.State, sum.Nodes)
	sum.Foreign, _ = inspect.ForeignTables(ctx, h, sum.Key, sum.Nodes)
	sum.ComputedIn = inspect.ComputedIn(ctx, h.State, sum.Nodes)
	sum.Stats = NodeStats(ctx, h.State, sum.Nodes)
	sum.Bill, _ = workerprocess.Bill(ctx, h, sum.Key, sum.Nodes)
	sum.Nodes = inspect.Shown(ctx, h.State, sum.Nodes)
}

// Worked returns the time for which each of a run's nodes has been worked on. Nodes of which that
// cannot be read are left out.
func Worked(ctx context.Context, store state.Store, run state.Run, nodes []state.Node) map[string]time.Duration {
	out := map[string]time.Duration{}
	for _, n := range nodes {
		if took, err := state.Worked(ctx, store, run, n, time.Now()); err == nil {
			out[n.Name] = took
		}
	}
	return out
}

// NodeStats adds up what the batches of nodes measured. A node of which that
// cannot be read is left out.
func NodeStats(ctx context.Context, store state.Store, nodes []state.Node) map[string]state.Stats {
	stats := map[string]state.Stats{}
	for _, n := range nodes {
		tally, err := store.Tally(ctx, inspect.HolderOf(n))
		if err != nil {
			continue
		}
		total := tally.Stats
		if n.ReusedFrom != nil { // it has cost nothing here
			total.Engine, total.Python, total.Elapsed, total.PeakBytes = 0, 0, 0, 0
		}
		if total.Warnings, err = warnings(ctx, store, inspect.HolderOf(n), tally); err == nil {
			stats[n.Name] = total
		}
	}
	return stats
}

// warnings lists all warnings of a node by batch: only where there are more
// than its tally keeps are its batches read.
func warnings(ctx context.Context, store state.Store, key state.NodeKey, tally state.Tally) (texts []string,
	err error) {
	if told, all := tally.Told(); len(told) == all {
		for _, w := range told {
			texts = append(texts, w.Text)
		}
		return texts, nil
	}
	for _, r := range tally.Repeats {
		texts = append(texts, r.Text())
	}
	batches, err := state.All(ctx, store.Batches, key)
	for _, b := range batches {
		texts = append(texts, b.Stats.Warnings...)
	}
	return texts, err
}

// summaryTimeout bounds reading the summary of a run that is over.
const summaryTimeout = 30 * time.Second
