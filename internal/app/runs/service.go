package runs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"thalweg/internal/app/hub"
	"thalweg/internal/app/inspect"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/registry"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/view"
	"thalweg/internal/app/workerprocess"
	"thalweg/internal/base/action"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/bill"
	"thalweg/internal/ops/history"
	"thalweg/internal/run/job"
	"thalweg/internal/run/sheet"
	"thalweg/internal/store/state"
)

// Service answers questions about the runs of one instance.
type Service struct {
	Home *instance.Instance
	News *hub.Hub
	// Scripts are those of runs; nil: runs are not described by them.
	Scripts *Scripts
	Logger  *slog.Logger // nil: nothing is logged

	discreet bool // failures are told of without values of the data
}

// Alone returns the one rule by which a run that is not over has nobody who
// works on it, and what is said then: a state directory's is interrupted, a
// cluster's waits for a worker.
func (s *Service) Alone(ctx context.Context) func(state.Run) (history.Orphan, bool) {
	return func(r state.Run) (out history.Orphan, is bool) {
		if r.Status.Terminal() {
			return out, false
		}
		atWork := s.Home.AtWork(r.RunKey)
		if atWork && s.Home.Cluster() == nil {
			return out, false
		}
		if s.Home.Cluster() == nil {
			return history.Orphan{Do: r.Do("resume").String()}, true
		}
		text, hint, err := registry.NobodyTakes(ctx, s.Home, r.RunKey)
		switch {
		case atWork && (err != nil || text == ""): // whoever works on it can
			return out, false
		case err != nil:
			return history.Orphan{Why: "it could not be seen which are there: " + err.Error(),
				Do: action.Do("doctor").String() + " looks at the cluster's services"}, true
		case text != "":
			return history.Orphan{Why: text, Do: hint}, true
		}
		return history.Orphan{Why: "none of those that are there has taken it yet",
			Do: r.Do("attach").String() + " follows it"}, true
	}
}

// List lists the runs of a workspace, the latest last: limit of them, 0 being
// all. With dropped it lists those that were dropped, too.
func (s *Service) List(ctx context.Context, workspace string, limit int, dropped bool) ([]view.ListedRun, error) {
	runs, err := history.List(ctx, s.Home.State, workspace,
		history.ListOptions{Limit: limit, All: dropped, Alone: s.Alone(ctx), Now: time.Now()})
	if err == nil {
		err = s.priceAll(ctx, runs)
	}
	slices.Reverse(runs)
	return append([]view.ListedRun{}, runs...), err
}

// PageOptions select a page of a workspace's runs.
type PageOptions struct {
	From    int64  // runs of lower numbers; 0: all
	Limit   int    // runs
	Dropped bool   // also those
	Status  string // "": all
	Script  string // part of the script's path; "": all
	Text    string // part of the description, in letters of either case; "": all
	// Since and Until limit when they began; zero: they do not.
	Since, Until time.Time
	Priced       bool // with what they cost in money
}

// match selects runs before their nodes are read; nil: all.
func (p PageOptions) match() func(state.Run) bool {
	if p.Status == "" && p.Script == "" && p.Text == "" {
		return nil
	}
	text := strings.ToLower(p.Text)
	return func(r state.Run) bool {
		return p.mayBe(r) && strings.Contains(r.ScriptPath, p.Script) &&
			strings.Contains(strings.ToLower(r.Description), text)
	}
}

// mayBe reports whether a run may have the status of the selection: its nodes, and who works on it, may decide it.
func (p PageOptions) mayBe(r state.Run) bool {
	switch p.Status {
	case "":
		return true
	case history.Dropped:
		return r.Dropped != nil
	case history.Invalidated:
		return r.Invalidated != nil
	case history.Waiting, history.Interrupted:
		return r.Status == state.Running
	}
	return string(r.Status) == p.Status
}

// keep selects runs when all is known of them; nil: all.
func (p PageOptions) keep() func(view.ListedRun) bool {
	if p.Status == "" {
		return nil
	}
	return func(r view.ListedRun) bool { return r.Status == p.Status }
}

// Page lists runs of a workspace, the latest first, and returns the From of the next page; 0: there is none.
func (s *Service) Page(ctx context.Context, workspace string, p PageOptions) ([]view.ListedRun, int64, error) {
	o := history.ListOptions{Limit: p.Limit, From: p.From, All: p.Dropped, Since: p.Since, Until: p.Until,
		Match: p.match(), Keep: p.keep(), Alone: s.Alone(ctx), Now: time.Now()}
	runs, next, err := history.ListPage(ctx, s.Home.State, workspace, o)
	if err == nil && p.Priced {
		err = s.priceAll(ctx, runs)
	}
	return append([]view.ListedRun{}, runs...), next, err
}

// OfScript lists the latest runs of a script, the latest first: of its name, "" being none, or its path. Where the name
// is not known, they are all that were begun at the path.
func (s *Service) OfScript(ctx context.Context, workspace, name string, known bool, path string,
	limit int) ([]view.ListedRun, error) {
	identity := s.Home.Identity(name, path)
	match := func(r state.Run) bool {
		if !known {
			r.Script = ""
		}
		return s.Home.IdentityOf(r) == identity
	}
	runs, _, err := history.ListPage(ctx, s.Home.State, workspace,
		history.ListOptions{Limit: limit, Match: match, Alone: s.Alone(ctx), Now: time.Now()})
	return append([]view.ListedRun{}, runs...), err
}

// Listed returns a run as List has it.
func (s *Service) Listed(ctx context.Context, key state.RunKey) (view.ListedRun, error) {
	return history.One(ctx, s.Home.State, key, history.ListOptions{All: true, Alone: s.Alone(ctx)})
}

// Status returns the status of a run as List has it; what state says of it where more cannot be read.
func (s *Service) Status(ctx context.Context, r state.Run) string {
	if seen, err := s.Listed(ctx, r.RunKey); err == nil {
		return seen.Status
	}
	return string(r.Status)
}

// Version returns a text that is another one as soon as anything of a run is that Show returns, but for the times of
// what is under way.
func (s *Service) Version(ctx context.Context, run state.Run) (string, error) {
	seen, err := s.Listed(ctx, run.RunKey)
	if err != nil {
		return "", err
	}
	nodes, err := s.nodes(ctx, run.RunKey)
	if err != nil {
		return "", err
	}
	sheets, err := sheet.Of(ctx, s.Home.State, run.RunKey)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, w := range sheets {
		fmt.Fprint(h, " ", w.Worker)
		if run.Status.Terminal() { // else they are of what is under way
			fmt.Fprint(h, w.To.UnixNano())
		}
	}
	// prices may be others
	if b := bill.Of(sheets, nil, s.Home.Costs.Basis); b != nil && b.Total != nil && run.Status.Terminal() {
		fmt.Fprint(h, b.Total.Text(6), b.Unpriced)
	}
	fmt.Fprint(h, s.discreet, run.Epoch, seen.Status, seen.NoWorker, run.Status, run.Finished.UnixNano())
	for _, n := range nodes {
		fmt.Fprint(h, " ", n.Revision, n.Status, n.Dropped)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// Show returns a run with its nodes, where the time went, and what failed.
func (s *Service) Show(ctx context.Context, key state.RunKey) (view.RunDetail, error) {
	d, err := history.ShowRun(ctx, s.Home.State, key,
		history.ListOptions{All: true, Alone: s.Alone(ctx), Now: time.Now(), Basis: s.Home.Costs.Basis})
	if err != nil {
		return d, err
	}
	nodes, err := s.nodes(ctx, key)
	if err != nil {
		return d, err
	}
	in := inspect.ComputedIn(ctx, s.Home.State, nodes)
	for i, n := range d.Nodes {
		d.Nodes[i].ComputedIn = in[n.Node]
	}
	return d, nil
}

// Workers returns the time sheets of a run.
func (s *Service) Workers(ctx context.Context, key state.RunKey) (view.RunWorkers, error) {
	sheets, err := sheet.Of(ctx, s.Home.State, key)
	return view.RunWorkers{Workspace: key.Workspace, Run: key.Run, Total: sheet.TotalOf(sheets),
		Workers: append([]view.TimeSheet{}, sheets...)}, err
}

func (s *Service) nodes(ctx context.Context, key state.RunKey) ([]state.Node, error) {
	nodes, err := s.Home.State.Nodes(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read the nodes of run %d: %w", key.Run, err)
	}
	return nodes, nil
}

// ShowNode returns a node of a run, with its slowest and its unsettled batches.
func (s *Service) ShowNode(ctx context.Context, key state.RunKey, node string) (view.NodeDetail, error) {
	d, err := history.ShowNode(ctx, s.Home.State, state.NodeKey{RunKey: key, Node: node}, time.Now())
	if err != nil {
		return d, err
	}
	nodes, err := s.nodes(ctx, key)
	if err != nil {
		return d, err
	}
	b, err := workerprocess.Bill(ctx, s.Home, key, nodes)
	d.Cost.PriceNode(b, node)
	return d, err
}

// ShowBatch returns a batch of a node, with its attempts.
func (s *Service) ShowBatch(ctx context.Context, key state.RunKey, node string, batch int) (view.BatchDetail, error) {
	return history.ShowBatch(ctx, s.Home.State,
		state.BatchKey{NodeKey: state.NodeKey{RunKey: key, Node: node}, Batch: batch}, time.Now())
}

// Audit lists what people have ordered of a run, the latest last.
func (s *Service) Audit(ctx context.Context, key state.RunKey) ([]view.AuditEntry, error) {
	entries, err := history.Audit(ctx, s.Home.State, key)
	return append([]view.AuditEntry{}, entries...), err
}

// AuditAll does so for all runs of a workspace: limit of the latest entries at least, 0 being all.
func (s *Service) AuditAll(ctx context.Context, workspace string, limit int) ([]view.AuditEntry, error) {
	entries, err := history.AuditAll(ctx, s.Home.State, workspace, limit)
	slices.Reverse(entries)
	return append([]view.AuditEntry{}, entries...), err
}

// Workspaces lists the workspaces that have runs, by name.
func (s *Service) Workspaces(ctx context.Context) ([]string, error) {
	names, err := s.Home.State.Workspaces(ctx)
	slices.Sort(names)
	return names, err
}

// WithoutValues returns a service that tells of failures without values of the data.
func (s *Service) WithoutValues() *Service {
	home := *s.Home
	home.State = instance.WithoutValues(home.State)
	return &Service{Home: &home, News: s.News, Scripts: s.Scripts, Logger: s.Logger, discreet: true}
}

// Names lists the names and statuses of a run's nodes.
func (s *Service) Names(ctx context.Context, key state.RunKey) ([]view.Node, error) {
	return s.nodes(ctx, key)
}

// AwaitNames does so as soon as the state, which may be away, is there.
func (s *Service) AwaitNames(ctx context.Context, key state.RunKey) ([]view.Node, error) {
	nodes, err := s.Home.Waiting(s.Logger).Nodes(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read the nodes of run %d: %w", key.Run, err)
	}
	return nodes, nil
}

// noNode is the failure of a node that a run has not got.
func (s *Service) noNode(ctx context.Context, key state.RunKey, name string) error {
	f := &fault.Error{Kind: fault.Script, Code: fault.NotFound,
		Message: fmt.Sprintf("run %d has no node %s", key.Run, name),
		Hint:    fmt.Sprintf("{{do nodes run=%d}} lists them", key.Run)}
	nodes, err := s.nodes(ctx, key)
	if err != nil {
		return f // the list says it, too
	}
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Node
	}
	return f.Suggest(name, names)
}

// Checks lists what the checks of a run found; with a node only of that one.
func (s *Service) Checks(ctx context.Context, key state.RunKey, node string) ([]view.Check, error) {
	nodes, err := s.Home.State.Nodes(ctx, key)
	if err != nil {
		return nil, err
	}
	if node != "" {
		nodes = slices.DeleteFunc(nodes, func(n state.Node) bool { return n.Name != node })
		if len(nodes) == 0 {
			return nil, &fault.Error{Kind: fault.Script, Code: fault.NotFound,
				Message: fmt.Sprintf("run %d has no node %s", key.Run, node),
				Hint:    "{{do nodes}} lists them"}
		}
	}
	results, err := inspect.Checks(ctx, s.Home.State, nodes)
	return view.ChecksOf("", results), err
}

// Summary returns how a run is, with what its nodes have done.
func (s *Service) Summary(ctx context.Context, key state.RunKey) (runner.Summary, error) {
	return runner.SummaryOf(ctx, s.Home, key)
}

// Nodes returns a run's nodes with what they have done, as the run has left them.
func (s *Service) Nodes(ctx context.Context, run state.Run) (runner.Summary, error) {
	nodes, err := s.Home.State.Nodes(ctx, run.RunKey)
	if err != nil {
		return runner.Summary{}, err
	}
	checks, err := inspect.Checks(ctx, s.Home.State, nodes)
	if err != nil {
		return runner.Summary{}, err
	}
	nodes = Settled(run.Status, run.Finished, nodes)
	return runner.Summary{Key: run.RunKey, Checks: checks, Stats: runner.NodeStats(ctx, s.Home.State, nodes),
		Worked:     runner.Worked(ctx, s.Home.State, run, nodes),
		ComputedIn: inspect.ComputedIn(ctx, s.Home.State, nodes),
		Nodes:      inspect.Shown(ctx, s.Home.State, nodes)}, nil
}

// Settled returns nodes of a run that is over as it left them: nothing of it is
// running any more.
func Settled(run state.Status, finished time.Time, nodes []state.Node) []state.Node {
	if run == state.Running {
		return nodes
	}
	out := make([]state.Node, len(nodes))
	for i, n := range nodes {
		switch {
		case n.Dropped:
			n.Status = history.Dropped
		case n.Status == state.Running:
			n.Status = state.Stopped
			if n.Finished.IsZero() {
				n.Finished = finished
			}
		}
		out[i] = n
	}
	return out
}

// Why says what a run waits for, or what is slow in it.
func (s *Service) Why(ctx context.Context, run state.Run) (view.Why, error) {
	out := view.Why{Workspace: run.Workspace, Run: run.Run}
	waiters, err := budget.Waiters(ctx, filepath.Join(s.Home.Dir, "shares"))
	if err != nil {
		return out, err
	}
	around := history.ProcessFacts{Slots: runtime.SlotsOf(ctx, s.Home, run), Memory: waiters.Texts, Gone: job.Gone}
	around.Waits = func(owner string) bool {
		return slices.ContainsFunc(waiters.PIDs, func(pid int) bool { return job.IsProcess(owner, pid) })
	}
	around.Alone, around.Orphaned = s.Alone(ctx)(run)
	workers, err := s.workersOn(ctx, run)
	if err != nil {
		return out, err
	}
	for _, w := range workers {
		for _, text := range w.Notices {
			around.Notices = append(around.Notices, fmt.Sprintf("%s (process %d): %s", w.Host, w.PID, text))
		}
		if len(w.Concurrency) > 0 {
			out.Workers = append(out.Workers, view.WorkerPace{Host: w.Host, PID: w.PID, Concurrency: w.Concurrency,
				Decisions: w.Decisions})
		}
	}
	facts, err := history.Gather(ctx, s.Home.State, run.RunKey, time.Now(), around)
	out.Answers = facts.Why()
	return out, err
}

// workersOn are a cluster's workers that work on a run, by their notes.
func (s *Service) workersOn(ctx context.Context, run state.Run) ([]registry.WorkerEntry, error) {
	if s.Home.Cluster() == nil || run.Status.Terminal() {
		return nil, nil
	}
	workers, err := registry.Workers(ctx, s.Home)
	return slices.DeleteFunc(workers, func(w registry.WorkerEntry) bool {
		return w.Gone || !slices.ContainsFunc(w.Runs, func(r registry.RunAt) bool {
			return r.Workspace == run.Workspace && r.Run == run.Run
		})
	}), err
}
