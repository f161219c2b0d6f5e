package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"thalweg/internal/base/budget"
	"thalweg/internal/base/durable"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/files"
	"thalweg/internal/io/inputcache"
	"thalweg/internal/io/remote"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/gate"
	"thalweg/internal/run/job"
	"thalweg/internal/run/orders"
	"thalweg/internal/run/plan"
	"thalweg/internal/run/python"
	"thalweg/internal/store/parts"
	"thalweg/internal/store/state"
)

// Config of a pipeline.
type Config struct {
	Script *script.Script
	Run    state.RunKey
	// Identity is which script this is, Identify which script a recorded run is
	// of: tables are read from earlier runs of the same one only.
	Identity string
	Identify func(state.Run) string
	From     []int64 // runs that the user named for reading tables from
	// Reuse: nodes whose rows an earlier run has are not computed, but for those
	// Chosen.
	Reuse  bool
	Chosen []string
	// Surroundings holds, by node, whatever beside the script decides about the results of Python: see
	// python.Pool.Check.
	Surroundings map[string]map[string]string
	Store        state.Store
	Parts        parts.Store
	Fuse         bool            // tables that can be ephemeral are
	Budget       budget.Budget   // of this process
	Room         Room            // the memory that its batches take in turn; nil: one of Budget
	Planning     budget.Budget   // that nodes are planned by: the run's, wherever it is worked on; Budget if it is zero
	Pool         *python.Pool    // nil for a script without Python
	Engine       engine.Executor // nil: each batch has an instance of its own
	Files        durable.FS      // that output files of this machine go through
	Dir          string          // that relative names of files are seen from; "": the working directory
	StateDir     string          // that earlier versions named temporary files by
	Meter        *budget.Meter   // of this process; nil: what batches take of memory is not known
	WorkDir      string          // for spill and scratch files: private to this process
	Remote       *remote.Client
	// Answered reads the script as it is with answers that were given at its
	// gates; nil: it has none.
	Answered func(ctx context.Context, answers map[string]string) (*script.Script, error)
	// CopiesDir keeps copies of remote inputs: private to this process and the
	// run.
	CopiesDir string
	// RecordOf finds the record of an input file that a row of a table comes from, as
	// far as there is one; nil: failures do not name it.
	RecordOf func(context.Context, *Pipeline, ReadRow) (*fault.Place, error)
	Observe  func(job.Event) // nil: nobody is told how copying goes
	Copies   Copier          // of remote inputs that batches read; nil: those in CopiesDir
	Logger   *slog.Logger
}

// Room is the memory that batches take in turn; see budget.Room.
type Room interface {
	Budget() budget.Budget
	Take(ctx context.Context, share budget.Share) (g budget.Grant, release func(), err error)
}

// Copier makes copies of remote files; see inputcache.Store.
type Copier interface {
	EnsureAll(ctx context.Context, wants []inputcache.Want) ([]inputcache.Copy, error)
}

// Pipeline implements job.Job.
type Pipeline struct {
	*common
	cfg      Config
	planner  *plan.Planner
	tables   map[state.NodeKey]*seenTable // complete tables that were read before
	policies map[string]decision          // what dependency policies said before, by query
}

// common is the state that the pipelines of a run's versions share (see versionFor).
type common struct {
	mu          sync.Mutex // also of their tables and policies
	versions    versions
	inputsSeen  map[string]plannedInput // local files that nodes were planned with, by path
	inputsNoted map[string]bool         // nodes whose files are in it
	dirsMade    map[string]bool         // directories of output files whose names are flushed
	busy        busyMeter
	store       *inputcache.Store
	copied      map[*script.Node][]cachedInput // see copiedInputs
	listed      map[string][]string            // see list
	fetches     map[string]*fetching           // by node
	looks       map[string]*fetching           // likewise, for files that may not have to be copied
	background  sync.WaitGroup
}

var _ job.Job = (*Pipeline)(nil)

// New returns the pipeline of a run.
func New(cfg Config) *Pipeline {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Planning.Slots == 0 {
		cfg.Planning = cfg.Budget
	}
	if cfg.Room == nil {
		cfg.Room = budget.NewRoom(cfg.Budget)
	}
	if cfg.Engine == nil {
		cfg.Engine = (*engine.Instances)(nil)
	}
	return &Pipeline{
		cfg:      cfg,
		planner:  &plan.Planner{Script: cfg.Script, Dir: cfg.Dir, Budget: cfg.Planning, Fuse: cfg.Fuse},
		tables:   map[state.NodeKey]*seenTable{},
		policies: map[string]decision{},
		common: &common{
			versions:   versions{by: map[string]*Pipeline{}, nodes: map[string]string{}},
			inputsSeen: map[string]plannedInput{}, inputsNoted: map[string]bool{}, dirsMade: map[string]bool{},
			store:   inputcache.New(cfg.CopiesDir, cfg.Remote, cfg.Script),
			copied:  map[*script.Node][]cachedInput{},
			fetches: map[string]*fetching{}, looks: map[string]*fetching{},
		},
	}
}

// Plan implements job.Job.
func (p *Pipeline) Plan(ctx context.Context, node state.Node) (state.Plan, error) {
	plan, err := p.plan(ctx, node)
	return plan, inScript(p.cfg.Script, node.Name, p.planAgain(ctx, err))
}

func (p *Pipeline) plan(ctx context.Context, node state.Node) (state.Plan, error) {
	p, err := p.versionFor(ctx, node.Name, node.Epoch)
	if err != nil {
		return state.Plan{}, err
	}
	if gate.Is(node.NodeSpec) {
		return p.planGate(ctx, node)
	}
	n := p.cfg.Script.Node(node.Name)
	if n == nil {
		return state.Plan{}, fault.New(fault.Script, "the script has no node %s any more", node.Name)
	}
	in, err := p.inputs(ctx, n, node)
	if err != nil {
		return state.Plan{}, err
	}
	if err := p.checkGates(ctx, n, node, in); err != nil {
		return state.Plan{}, err
	}
	fused, err := p.fused(ctx, n)
	if err != nil {
		return state.Plan{}, err
	}
	if fused {
		data, err := p.planner.PlanEphemeral(n, in).Encode()
		return state.Plan{Record: data}, err
	}
	// it is looked at again before each batch
	if err := orders.NoteReads(ctx, p.cfg.Store, node.NodeKey, in.Foreign(n, p.cfg.Run), time.Now()); err != nil &&
		!errors.Is(err, orders.ErrDropping) {
		return state.Plan{}, err
	}
	if taken, ok, err := p.takeOverUncopied(ctx, n, node, in); ok || err != nil {
		return taken, err
	}
	if err := p.placeAll(ctx, n, &in, p.copies); err != nil {
		return state.Plan{}, err
	}
	id, err := p.identify(ctx, n, in) // before anything of the files is read
	if err != nil {
		return state.Plan{}, err
	}
	if taken, ok, err := p.takeOver(ctx, n, node, in, id); ok || err != nil {
		return taken, err
	}
	np, specs, err := p.planner.PlanNode(ctx, n, in)
	if err != nil {
		return state.Plan{}, err
	}
	np.Follows = id.Encode()
	read, err := p.slicesOf(specs)
	if err != nil {
		return state.Plan{}, err
	}
	if len(read) > 0 {
		if err := p.recallInputs(ctx); err != nil {
			return state.Plan{}, err
		}
	}
	if err := p.noteInputs(n.Name, read); err != nil {
		return state.Plan{}, err
	}
	data, err := np.Encode()
	if err != nil {
		return state.Plan{}, fmt.Errorf("encode the plan of %s: %w", n.Name, err)
	}
	return state.Plan{Record: data, Batches: specs, Inputs: inputFiles(read), InputDigest: id.Digest()}, nil
}

// fused reports whether a node's table is not stored: it is ephemeral, and the
// node that computes it is part of the run.
func (p *Pipeline) fused(ctx context.Context, n *script.Node) (bool, error) {
	if n.Table == nil || !p.planner.Ephemeral(n) {
		return false, nil
	}
	key := state.NodeKey{RunKey: p.cfg.Run, Node: p.cfg.Script.EphemeralReader(n).Name}
	_, err := p.cfg.Store.Node(ctx, key)
	if errors.Is(err, state.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for node %s: %w", key.Node, err)
	}
	return true, nil
}

// inputs finds the tables that a node reads.
func (p *Pipeline) inputs(ctx context.Context, n *script.Node, node state.Node) (plan.Inputs, error) {
	var in plan.Inputs
	var err error
	if n.Reader != nil {
		var tables []*plan.Table
		for _, source := range n.Reader.Creators {
			t, err := p.table(ctx, source, node)
			if err != nil {
				return in, err
			}
			tables = append(tables, t)
		}
		in.Reader = plan.Together(n.Reader.Fields(), tables)
	}
	if n.Lookup != nil {
		if in.Lookup, err = p.table(ctx, n.Lookup.Index.Node, node); err != nil {
			return in, err
		}
	}
	for i, source := range n.Named() {
		if i == 0 {
			in.Named = map[string]*plan.Table{}
		}
		if in.Named[source.Table.Name], err = p.table(ctx, source, node); err != nil {
			return in, err
		}
	}
	in.Query = in.QueryTables(n)
	return in, nil
}

// table reads the manifest of source's complete table in the run that the
// reader's dependency policy says.
func (p *Pipeline) table(ctx context.Context, source *script.Node, reader state.Node) (*plan.Table, error) {
	key, err := p.source(ctx, source, reader)
	if err != nil {
		return nil, err
	}
	node, err := p.complete(ctx, key, reader)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	seen := p.tables[key]
	p.mu.Unlock()
	if seen != nil && seen.identity == identityOf(node) {
		return seen.table, nil
	}
	t, err := readTable(ctx, p.cfg.Store, node)
	if err != nil {
		return nil, err
	}
	if err := fits(t, source); err != nil {
		return nil, err
	}
	t.Node = source
	if t.ComputedIn != "" {
		if t.Inner, err = p.inner(ctx, t, key, reader); err != nil {
			return nil, err
		}
	}
	p.mu.Lock()
	p.tables[key] = &seenTable{identity: identityOf(node), table: t}
	p.mu.Unlock()
	return t, nil
}

// seenTable is a table as it was when it was read.
type seenTable struct {
	identity string
	table    *plan.Table
}

// complete is the node that has the rows of another, which must be complete and
// may be read: each time that somebody wants to, because people may have ruled
// otherwise meanwhile.
func (p *Pipeline) complete(ctx context.Context, key state.NodeKey, reader state.Node) (state.Node, error) {
	node, err := p.cfg.Store.Node(ctx, key)
	if err != nil {
		return node, fmt.Errorf("read node %s of run %d: %w", key.Node, key.Run, err)
	}
	held, err := holder(ctx, p.cfg.Store, node)
	switch {
	case errors.Is(err, ErrTableGone) && key.RunKey == p.cfg.Run:
		return held, &lostTable{plans: node, err: err}
	case err == nil && held.Status == state.Invalidated:
		err = Voided(ctx, p.cfg.Store, held)
	case err == nil && held.Status != state.Succeeded:
		err = p.incomplete(ctx, held)
	}
	if err != nil && key.RunKey != p.cfg.Run && reader.PlanDigest != "" {
		err = &lostTable{plans: reader, err: err}
	}
	return held, err
}

// incomplete is the failure to read the table of a node that is not complete.
func (p *Pipeline) incomplete(ctx context.Context, node state.Node) error {
	f := &fault.Error{Kind: fault.Environment, Retryable: node.RunKey == p.cfg.Run,
		Message: fmt.Sprintf("the table of node %s in run %d cannot be read: the node is %s now", node.Name, node.Run,
			node.Status), Hint: "run it again"}
	if f.Retryable {
		return f
	}
	return p.mayCome(ctx, f, node, node.Status)
}

// Voided is the failure to read a table that somebody has declared invalid.
func Voided(ctx context.Context, store state.Store, node state.Node) error {
	by, _, err := state.Voided(ctx, store, node)
	if err != nil {
		return err
	}
	what := "invalidated"
	if node.Dropped {
		what = "dropped"
	}
	return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("table %s of run %d was %s by %s on %s: %s",
		cmp.Or(node.Table, node.Name), node.Run, what, cmp.Or(by.Actor, "somebody"),
		by.Time.Local().Format(time.DateTime), cmp.Or(by.Reason, "no reason is given")),
		Hint: "nothing reads it any more: begin a new run, which reads another one's ({{set from=N}} names it) or " +
			"makes it again"}
}

// identityOf tells what a node has written from all else that it or any other
// ever writes.
func identityOf(n state.Node) string {
	return fmt.Sprintf("%s/%d/%s/%d/%s", n.Workspace, n.Run, n.Node, n.Generation, n.PlanDigest)
}

// inner finds what an ephemeral table is computed from: in the run that it is
// of, where its reader has been planned behind it.
func (p *Pipeline) inner(ctx context.Context, t *plan.Table, key state.NodeKey, reader state.Node) (*plan.Inputs,
	error) {
	if key.RunKey != p.cfg.Run || t.ComputedIn != reader.Name {
		return nil, &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("node %s reads table %s of run %d, which is not stored: there it was ephemeral, "+
				"computed inside node %s", reader.Name, t.Node.Table.Name, key.Run, t.ComputedIn),
			Hint: fmt.Sprintf("name %s in {{set start}} as well, or run it again without ephemeral", key.Node)}
	}
	node, err := p.own(ctx, key.Node)
	if err != nil {
		return nil, err
	}
	in, err := p.inputs(ctx, t.Node, node)
	if err != nil {
		return nil, err
	}
	np, err := plan.DecodeNodePlan(node.Plan)
	if err != nil {
		return nil, err
	}
	return &in, asPlanned(node, np, t.Node, in)
}

// ReadTable reads a node's plan and manifest, or those of the node from which
// it has taken its rows over. Its Node is left nil.
func ReadTable(ctx context.Context, store state.Store, key state.NodeKey) (*plan.Table, error) {
	node, err := store.Node(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read node %s of run %d: %w", key.Node, key.Run, err)
	}
	if node, err = holder(ctx, store, node); err != nil {
		return nil, err
	}
	return readTable(ctx, store, node)
}

// readTable reads what a node has written, all of it of the same time: the node
// is looked at again behind its manifest.
func readTable(ctx context.Context, store state.Store, node state.Node) (*plan.Table, error) {
	key := node.NodeKey
	np, err := plan.DecodeNodePlan(node.Plan)
	if err != nil {
		return nil, fmt.Errorf("read node %s of run %d: %w", key.Node, key.Run, err)
	}
	manifest, err := state.Manifest(ctx, store, key)
	if err != nil {
		return nil, fmt.Errorf("read the manifest of %s in run %d: %w", key.Node, key.Run, err)
	}
	if err := still(ctx, store, node); err != nil {
		return nil, err
	}
	table := &plan.Table{Run: key.RunKey, Writer: key.Node, Identity: identityOf(node), Layout: np.Layout,
		Parts: manifest, ComputedIn: np.ComputedIn}
	table.Settle()
	return table, nil
}

// still refuses what was read of a node that has been ordered to be done again
// since it was looked at: some of its parts may have been withdrawn by then.
func still(ctx context.Context, store state.Store, node state.Node) error {
	now, err := store.Node(ctx, node.NodeKey)
	switch {
	case err != nil:
		return fmt.Errorf("read node %s of run %d: %w", node.Name, node.Run, err)
	case identityOf(now) != identityOf(node), now.Status != node.Status && node.Status == state.Succeeded:
		return &fault.Error{Kind: fault.Environment, Retryable: true,
			Message: fmt.Sprintf("what node %s of run %d has written was withdrawn while it was read",
				node.Name, node.Run),
			Hint: "read it again"}
	}
	return nil
}

// ReadSides reads a node's side tables, by state.Part.Side: those that its
// plan speaks of, with or without rows. Their Node is left nil.
func ReadSides(ctx context.Context, store state.Store, node state.Node, np plan.NodePlan) (map[string]*plan.Table,
	error) {
	sides := map[string]*plan.Table{}
	node, err := holder(ctx, store, node)
	if err != nil {
		return nil, err
	}
	key := node.NodeKey
	for side, layout := range np.Sides {
		sides[side] = &plan.Table{Run: key.RunKey, Writer: key.Node, Layout: layout}
	}
	if len(sides) == 0 {
		return sides, nil
	}
	parts, err := state.SideParts(ctx, store, key)
	if err != nil {
		return nil, fmt.Errorf("read the side tables of %s in run %d: %w", key.Node, key.Run, err)
	}
	for _, p := range parts {
		if t := sides[p.Side]; t != nil {
			t.Parts = append(t.Parts, p)
		}
	}
	return sides, still(ctx, store, node)
}

// Execute implements job.Job.
func (p *Pipeline) Execute(ctx context.Context, c state.Claim) (out job.Result, err error) {
	out, err = p.executeBatch(ctx, c)
	if err = p.planAgain(ctx, err); errors.Is(err, errPlannedAgain) {
		err = &fault.Error{Kind: fault.Canceled, Message: "it is not wanted any more", Err: err}
	}
	return out, inScript(p.cfg.Script, c.Node, err)
}

func (p *Pipeline) executeBatch(ctx context.Context, c state.Claim) (out job.Result, err error) {
	if p, err = p.versionFor(ctx, c.Node, c.Epoch); err != nil {
		return job.Result{}, err
	}
	x, err := p.prepare(ctx, c)
	if err != nil {
		return job.Result{}, err
	}
	defer x.cleanup()
	defer func() {
		x.strain.measured.tell(&out.Outcome.Stats)
		if err != nil {
			x.dropOutput(ctx)
		}
	}()
	if x.batch.Work.Manifest {
		res, err := x.writeManifest(ctx)
		if err != nil {
			return job.Result{}, err
		}
		return x.result(ctx, res)
	}
	task, err := p.planner.Task(x.node, x.in, x.plan, x.own, x.batch)
	if err != nil {
		return job.Result{}, err
	}
	p.cfg.Logger.Debug("executing", "node", c.Node, "batch", c.Batch, "attempt", c.Attempt, "sql", shortSQL(task.Query),
		"layout", x.plan.Layout)
	res, err := p.execute(ctx, x, task)
	if errors.Is(err, plan.ErrLookAgain) {
		res, err = x.lookAgain(ctx)
	}
	// A file that changed while it was read explains whatever came of it, and so
	// does a table.
	if changed := x.unchanged(); changed != nil && ctx.Err() == nil {
		err = changed
	}
	if gone := x.stillThere(ctx); gone != nil && ctx.Err() == nil {
		err = gone
	}
	if err != nil {
		return x.evidence(ctx, res), err
	}
	return x.result(ctx, res)
}

// unchanged says which of the files that the batch has read is another one now, or may not be read where it leads now.
func (x *attempt) unchanged() error {
	defer during(&x.strain.measured.read)()
	if err := x.mayRead(); err != nil {
		return err
	}
	return files.Unchanged(slices.Concat(x.batch.Work.FileLists()...))
}

// mayRead judges the files of this machine that the batch reads.
func (x *attempt) mayRead() error {
	policy := x.p.cfg.Remote.Policy()
	if policy == nil {
		return nil
	}
	for _, s := range slices.Concat(x.batch.Work.FileLists()...) {
		if s.Copy != "" {
			continue
		}
		if err := policy.MayRead(s.Path); err != nil {
			return err
		}
	}
	return nil
}

// shortSQL keeps a query with a thousand file names readable in the log.
func shortSQL(s string) string {
	const bytesMax = 4_000
	if len(s) <= bytesMax {
		return s
	}
	return s[:bytesMax/2] + " … " + s[len(s)-bytesMax/2:]
}

// attempt is one execution's circumstances.
type attempt struct {
	p       *Pipeline
	claim   state.Claim
	state   state.Node
	node    *script.Node
	in      plan.Inputs
	own     *plan.Table // what the node has written so far, for batches that check it
	checks  []state.CheckResult
	plan    plan.NodePlan
	batch   plan.Batch
	stage   *parts.Stage // private, removed at the end
	dir     string       // private, removed at the end
	final   string       // absolute path or address of the output file
	threads job.Threads  // that its engine was told to have
	strain  *strain      // of all pieces of the batch together
	// announced is the state's present record of the output file.
	announced []state.Publication
	// manifestWas is the manifest at the file's server when the attempt began; nil: there was none.
	manifestWas *remote.Version
	release     []func()
}

func (p *Pipeline) prepare(ctx context.Context, c state.Claim) (_ *attempt, err error) {
	x, err := p.gather(ctx, c)
	if err != nil || x.node.Out == nil || x.batch.Work.Check || x.batch.Work.BadCaps {
		return x, err
	}
	if err := x.openOutput(ctx); err != nil {
		x.cleanup()
		return nil, err
	}
	return x, nil
}

// gather makes local what a batch reads.
func (p *Pipeline) gather(ctx context.Context, c state.Claim) (_ *attempt, err error) {
	x := &attempt{p: p, claim: c, node: p.cfg.Script.Node(c.Node), threads: job.ThreadsOf(ctx),
		strain: &strain{measured: measured{watch: p.cfg.Meter.Watch()}}}
	defer func() {
		if err != nil {
			x.cleanup()
		}
	}()
	if x.state, err = p.cfg.Store.Node(ctx, c.NodeKey); err != nil {
		return nil, fmt.Errorf("read node %s: %w", c.Node, err)
	}
	if x.plan, err = plan.DecodeNodePlan(x.state.Plan); err != nil {
		return nil, err
	}
	done := during(&x.strain.measured.read)
	x.in, err = p.inputs(ctx, x.node, x.state)
	if done(); err != nil {
		return nil, err
	}
	if err := asPlanned(x.state, x.plan, x.node, x.in); err != nil {
		return nil, err
	}
	x.batch = plan.Batch{Number: c.Batch, Paths: plan.Paths{}, Run: c.RunKey, RowsIn: c.Spec.RowsIn}
	if x.node.Table != nil || len(x.plan.Sides) > 0 {
		if err := x.openStage(ctx); err != nil {
			return nil, err
		}
	}
	if err := x.batch.Work.Decode(c.Spec); err != nil {
		return nil, err
	}
	if err := x.batch.Work.Locate(x.in); err != nil {
		return nil, err
	}
	if x.dir, err = os.MkdirTemp(p.cfg.WorkDir, "batch-"); err != nil {
		return nil, &fault.Error{Kind: fault.Environment, Retryable: fault.Passes(err),
			Message: "make a directory for scratch files", Err: err,
			Hint: "check the state directory's permissions and free space"}
	}
	x.batch.Scratch = filepath.Join(x.dir, "scratch")
	if err := os.Mkdir(x.batch.Scratch, 0o700); err != nil {
		return nil, fmt.Errorf("make a scratch directory: %w", err)
	}
	if err = x.read(ctx); err != nil {
		if gone := x.stillThere(ctx); gone != nil && ctx.Err() == nil { // parts that were withdrawn are removed, too
			err = gone
		}
	}
	return x, err
}

// read gets ready what the batch reads.
func (x *attempt) read(ctx context.Context) (err error) {
	defer during(&x.strain.measured.read)()
	switch {
	case x.batch.Work.Check:
		err = x.prepareChecks(ctx)
	case x.batch.Work.BadCaps:
		err = x.prepareBadCaps(ctx)
	}
	if err != nil {
		return err
	}
	if err := x.locate(ctx); err != nil {
		return err
	}
	if err := x.mayRead(); err != nil {
		return err
	}
	return x.fetch(ctx)
}

// prepareBadCaps finds what the other batches of the node have put aside.
func (x *attempt) prepareBadCaps(ctx context.Context) error {
	sides, err := ReadSides(ctx, x.p.cfg.Store, x.state, x.plan)
	if err != nil {
		return err
	}
	x.own = sides[state.SideBad]
	x.batch.Bad, err = badTotals(ctx, x.p.cfg.Store, x.claim.NodeKey)
	return err
}

// badTotals adds up what the batches of a node have read and put aside.
func badTotals(ctx context.Context, store state.Store, key state.NodeKey) (plan.BadTotals, error) {
	batches, err := state.All(ctx, store.Batches, key)
	if err != nil {
		return plan.BadTotals{}, fmt.Errorf("read the batches of %s: %w", key.Node, err)
	}
	t := plan.BadTotals{Complete: true}
	for _, b := range batches {
		t.Rows += b.Stats.RowsIn
		t.Bad += b.Stats.Counters[plan.CounterBadRows]
	}
	return t, nil
}

// openStage makes the attempt's own directory for new parts.
func (x *attempt) openStage(ctx context.Context) error {
	stage, err := x.p.cfg.Parts.Stage(ctx)
	if err != nil {
		return fmt.Errorf("make a stage for %s: %w", x.claim.Node, err)
	}
	x.stage, x.batch.StageDir, x.batch.Stage = stage, stage.Dir, stage.File
	return nil
}

// instance bounds the batch's DuckDB. Nodes of fewer batches than slots get
// the idle cores as threads.
func (x *attempt) instance() engine.InstanceConfig {
	b := x.p.cfg.Budget
	threads := 1
	busy := min(b.Slots, max(x.state.BatchesTotal, 1))
	switch {
	case x.batch.Work.Check && !x.batch.Work.Share.Looks() || x.batch.Work.BadCaps:
		// hardly anything else of the node is left to do
		threads = b.Cores
	case x.node.PyCalc == nil && busy < b.Cores && !x.small():
		threads = b.Cores / busy
	}
	switch wanted := x.threads; {
	case wanted.Exact && x.node.PyCalc == nil:
		threads = wanted.Count
	case x.node.PyCalc == nil && !x.small():
		threads = max(threads, wanted.Count)
	}
	return engine.InstanceConfig{MemoryBytes: x.p.cfg.Room.Budget().SlotEngineBytes, Threads: threads,
		TextBytes: expr.TextBytes(x.p.cfg.Planning.SlotEngineBytes, threads), SpillDir: filepath.Join(x.dir, "spill"),
		SpillBytes: b.SpillBytes}
}

// smallBytesMax is the input of a batch that is done before a second thread
// could take part: DuckDB shares out row groups, and waits for threads in a loop.
const smallBytesMax = 1 << 20

func (x *attempt) small() bool {
	bytes := x.claim.Spec.BytesIn
	if x.in.Lookup != nil {
		bytes += x.in.Lookup.Bytes()
	}
	return bytes <= smallBytesMax && x.claim.Spec.RowsIn <= engine.PartRowGroupRows
}

// letGo gives back what was fetched.
func (x *attempt) letGo() {
	for _, release := range x.release {
		release()
	}
	x.release = nil
}

func (x *attempt) cleanup() {
	x.strain.measured.watch.Stop()
	x.letGo()
	var errs []error
	if x.stage != nil {
		errs = append(errs, x.stage.Close())
	}
	if x.dir != "" {
		errs = append(errs, os.RemoveAll(x.dir))
	}
	if err := errors.Join(errs...); err != nil {
		x.p.cfg.Logger.Warn("an attempt's private files stay until the next start", "node", x.claim.Node, "batch",
			x.claim.Batch, "error", err)
	}
}

// result turns what the engine wrote into what the worker commits.
func (x *attempt) result(ctx context.Context, res engine.Result) (job.Result, error) {
	out := job.Result{}
	out.Outcome.Checks = x.checks
	out.Outcome.Stats = x.stats(res)
	s := &out.Outcome.Stats
	s.RowsIn, s.BytesIn, s.RowsOut = x.claim.Spec.RowsIn, x.claim.Spec.BytesIn, res.RowsOut
	switch {
	case s.RowsIn >= 0:
	case x.node.Query != nil: // which may read a part of a file, or all of it twice
		s.RowsIn = x.batch.Work.Counted + res.Records
	default:
		s.RowsIn = res.CSVRows
	}
	var err error
	if s.Warnings, s.Repeats, err = x.warnings(ctx, res.PartsRead); err != nil {
		return out, err
	}
	s.Repeats = append(s.Repeats, x.strain.notes...)
	written := append(append([]engine.Written{}, res.Written...), res.Sides...)
	if x.node.Out != nil {
		written = res.Sides
	}
	if err := x.putParts(ctx, &out, written); err != nil {
		return job.Result{}, err
	}
	if x.node.Out != nil && (len(res.Written) > 0 || x.isDir()) && !x.batch.Work.Check && !x.batch.Work.BadCaps {
		return x.outputResult(ctx, out, res)
	}
	return out, nil
}

// warnings are about inputs that were read as they are and may be a mistake. partsRead says
// that values may have been read in part.
func (x *attempt) warnings(ctx context.Context, partsRead bool) ([]string, []state.Repeat, error) {
	var out []string
	var repeats []state.Repeat
	var errs []error
	x.batch.Work.Each(x.node, func(n *script.Node, w *plan.Work) {
		for i, r := range n.FileReaders() {
			read := w.Files
			if i < len(w.Scans) {
				read = w.Scans[i]
			}
			some, err := fileWarnings(ctx, r, read)
			out, errs = append(out, some...), append(errs, err)
			if !partsRead {
				continue
			}
			first, values, err := files.LeftOver(ctx, r, read, x.batch.Scratch)
			if errs = append(errs, err); values > 0 {
				repeats = append(repeats, state.Repeat{Kind: "read in part by " + n.Name, First: first,
					Count: values, Of: "values",
					Way: "write all of the text into the format, or give the column in the short form, where it " +
						"is an error"})
			}
		}
	})
	return out, repeats, errors.Join(errs...)
}

func fileWarnings(ctx context.Context, r *script.FileReader, read []files.Slice) ([]string, error) {
	rowless, noRows := files.Rowless(ctx, r, read)
	lacking, noColumns := files.Lacking(r, read)
	shared, noHeader := files.SharedHeaders(r, read)
	out := few(rowless, "input file has", "input files have", "no rows")
	out = append(out, few(files.Repeated(read), "input file is", "input files are", "read more than once")...)
	out = append(out, few(lacking, "input file lacks", "input files lack", "columns that may be missing")...)
	out = append(out, few(files.Further(r, read), "input file has", "input files have",
		"columns that the first file has not")...)
	out = append(out, few(shared, "column has", "columns have", "a header that is there more than once")...)
	return out, errors.Join(noRows, noColumns, noHeader)
}

// few keeps the first warnings of a kind, and counts the others.
func few(all []string, one, several, what string) []string {
	const namesMax = 10 // of a batch, of each kind
	if more := len(all) - namesMax; more > 0 {
		return append(all[:namesMax:namesMax], moreOf(more, one, several)+" "+what)
	}
	return all
}

// evidence keeps the side parts of a task that failed. That it cannot be kept does not hide why the task
// failed.
func (x *attempt) evidence(ctx context.Context, res engine.Result) job.Result {
	out := job.Result{}
	out.Outcome.Stats, out.Outcome.Checks = x.stats(res), x.checks
	if err := x.putParts(ctx, &out, res.Sides); err != nil {
		x.p.cfg.Logger.Warn("the rows that show a failure could not be kept", "node", x.claim.Node,
			"batch", x.claim.Batch, "error", err)
	}
	return out
}

// putParts stores parts, several at a time: each is an fsync.
func (x *attempt) putParts(ctx context.Context, out *job.Result, written []engine.Written) error {
	if len(written) == 0 {
		return nil
	}
	defer during(&x.strain.measured.write)()
	parts := make([]state.Part, len(written))
	errs := make([]error, len(written))
	limit := make(chan struct{}, putsMax)
	var wg sync.WaitGroup
	for i, w := range written {
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			parts[i], errs[i] = x.putPart(ctx, i, w)
		})
	}
	wg.Wait()
	out.Discard = func() { x.p.discard(parts) }
	if err := errors.Join(errs...); err != nil {
		out.Discard()
		out.Discard = nil
		return &fault.Error{Kind: fault.Environment, Retryable: fault.Passes(err), Message: "store the parts of " +
			x.node.Name, Err: err, Hint: "check free space and permissions of the state directory"}
	}
	out.Outcome.Parts = parts
	for _, p := range parts {
		if p.Side == "" {
			out.Outcome.Stats.BytesOut += p.Bytes
		}
	}
	return nil
}

// putsMax bounds the parts of one batch being made durable at once.
const putsMax = 8

func (x *attempt) putPart(ctx context.Context, seq int, w engine.Written) (state.Part, error) {
	key := x.partKey(seq, w)
	layout := x.plan.Layout
	if w.Side != "" {
		layout = x.plan.Sides[w.Side]
	}
	groups, err := noteGroups(x.p.cfg.Parts, layout, w.Path)
	if err != nil {
		return state.Part{}, err
	}
	info, err := x.p.cfg.Parts.Put(ctx, key, w.Path)
	if err != nil {
		return state.Part{}, err
	}
	return state.Part{Key: key, Side: w.Side, Batch: x.claim.Batch, Seq: seq, Bucket: -1, Keys: w.Keys, Groups: groups,
		Rows: w.Rows, Bytes: info.Bytes,
		RawBytes: w.RawBytes, Schema: layout.Schema(), Checksum: info.Checksum}, nil
}

// partKey names an attempt's part: never used by any other attempt.
func (x *attempt) partKey(seq int, w engine.Written) string {
	return PartsDir(x.state) + partName(x.claim.Batch, x.claim.Attempt, seq, w.Side)
}

func (p *Pipeline) discard(written []state.Part) {
	for _, part := range written {
		if part.Key == "" {
			continue
		}
		if err := p.cfg.Parts.Delete(context.Background(), part.Key); err != nil {
			p.cfg.Logger.Warn("a dropped attempt's part stays until gc", "part", part.Key, "error", err)
		}
	}
}

func moreOf(n int, one, many string) string {
	if n == 1 {
		many = one
	}
	return fmt.Sprintf("%d more %s", n, many)
}
