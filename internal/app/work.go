package app

import (
	"context"
	"errors"
	"slices"
	"time"

	"thalweg/internal/app/caller"
	"thalweg/internal/app/control"
	"thalweg/internal/app/fleet"
	"thalweg/internal/app/openlineage"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runs"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/scheduler"
	"thalweg/internal/app/scripts"
	"thalweg/internal/app/view"
	"thalweg/internal/app/worker"
	"thalweg/internal/base/fault"
)

// Types of working on runs.
type (
	RunOptions    = runner.Options
	Started       = runner.Started
	Summary       = runner.Summary
	Shared        = runner.SharedOutput
	Retry         = runner.Retry
	LimitAsk      = runner.Ask
	CellState     = runner.CellState
	Served        = scheduler.Served
	WorkOptions   = worker.WorkerOptions
	Telling       = openlineage.Teller
	RedoSelection = control.RedoSelection
	RedoBatches   = control.RedoBatches
)

// ErrLeave is the cause of the end of a context whose run may go on in other processes.
var ErrLeave = runner.ErrLeave

// Tell begins to send OpenLineage events to an address or file; "": to the one that the
// process environment names. Close of the result sends the rest.
func (a *App) Tell(ctx context.Context, to string) (*Telling, error) {
	return openlineage.Open(ctx, a.home, a.process, to)
}

// Run works on a new run, or continues one, until it is over or waits: see
// runner.Run. The summary is valid if its run is not 0, even with an error.
func (a *App) Run(ctx context.Context, by Caller, o RunOptions) (Summary, error) {
	o.Process, o.Limiter = a.with(by, o.Process), limiter{a}
	return runner.Run(ctx, a.home, o)
}

// with returns a.process with a caller, and with the callbacks of the given process: Observe, Waiting and
// Checkpoint. All else of that process is ignored.
func (a *App) with(by Caller, callbacks Process) Process {
	p := a.in(by)
	p.Observe, p.Waiting, p.Checkpoint = callbacks.Observe, callbacks.Waiting, callbacks.Checkpoint
	if cfg := a.home.Cluster(); cfg != nil && p.MemoryBytes == 0 {
		p.MemoryBytes = cfg.Worker.Memory
	}
	return p
}

// Submit begins a run of a cluster, or continues one, and leaves the work to the cluster's workers.
func (a *App) Submit(ctx context.Context, by Caller, o RunOptions) (view.RunKey, view.Diagnostics, error) {
	o.Process, o.Limiter = a.with(by, o.Process), limiter{a}
	return runner.Submit(ctx, a.home, o)
}

// AwaitTaken waits until the workers have looked at a new run of a cluster. It returns
// the reasons of those that cannot work on it. If none can, AwaitTaken stops the run,
// and returns an error.
func (a *App) AwaitTaken(ctx context.Context, by Caller, key view.RunKey) (cannot []string, err error) {
	return a.Orders.AwaitTaken(ctx, by, key)
}

// NotSeenError says that a run was submitted, but that it is not known whether a worker can take it.
type NotSeenError = control.NotSeenError

// PlanRun says what a new run of a script does with each of its nodes.
func (a *App) PlanRun(ctx context.Context, by Caller, s *scripts.Script, o RunOptions) (view.RunPlanned, error) {
	out := view.RunPlanned{Event: "run_planned", Nodes: []view.PlannedNode{}, Outside: []string{}}
	o.Process = a.with(by, o.Process)
	nodes, err := runner.PlanRun(ctx, a.home, s, o)
	if err != nil {
		return out, err
	}
	for _, n := range nodes {
		out.Nodes = append(out.Nodes, view.PlannedNode{Node: n.Node, Why: n.Why, From: view.ReusedFromOf(n.From)})
	}
	for _, n := range s.Nodes {
		if !slices.ContainsFunc(nodes, func(of runner.PlannedNode) bool { return of.Node == n.Name }) {
			out.Outside = append(out.Outside, n.Name)
		}
	}
	next, err := a.next(s, o, nodes)
	if err != nil {
		return out, err
	}
	if out.Refused, err = a.refused(ctx, s, o); err != nil {
		return out, err
	}
	out.Forecast, err = a.forecast(ctx, next)
	return out, err
}

// refused says why a run would be refused for its limit; "": it would not be. A limit that is none is an error.
func (a *App) refused(ctx context.Context, s *scripts.Script, o RunOptions) (string, error) {
	if _, err := o.Most.On(nil); err != nil {
		return "", err
	}
	o.Limiter = limiter{a}
	_, err := runner.LimitNew(ctx, s, o)
	var f *fault.Error
	if errors.As(err, &f) && f.Kind == fault.Script {
		return f.Message, nil
	}
	return "", err
}

// forecast says what a run is expected to take and cost.
func (a *App) forecast(ctx context.Context, next runs.Next) (*view.Forecast, error) {
	f, err := a.Runs.Forecast(ctx, next)
	if err != nil || f.Elapsed == nil {
		return f, err
	}
	rates, err := a.Runs.Rates(ctx, a.process.Getenv)
	if f.Unpriced = rates.Unpriced; err != nil || f.Unpriced != "" {
		return f, err
	}
	of := func(ms int64) view.Money { return rates.PerHour.For(time.Duration(ms) * time.Millisecond) }
	f.Cost = &view.ForecastCost{Low: of(f.Elapsed.Low), Middle: of(f.Elapsed.Middle), High: of(f.Elapsed.High)}
	return f, nil
}

// next describes a run that is planned so.
func (a *App) next(s *scripts.Script, o RunOptions, nodes []runner.PlannedNode) (next runs.Next, err error) {
	next = runs.Next{Workspace: o.Workspace, Files: map[string]int64{}, Computed: map[string]bool{}}
	if next.Budget, err = runtime.ShareOf(o.MemoryBytes, o.Cores, runtime.NeedsPython(s.Nodes)); err != nil {
		return next, err
	}
	if next.Script, err = o.Identity(a.home, s); err != nil {
		return next, err
	}
	next.Code = runs.CodeOf(s)
	for _, n := range nodes {
		if next.Computed[n.Node] = n.From == nil; n.Bytes >= 0 {
			next.Files[n.Node] = n.Bytes
		}
	}
	return next, nil
}

// OrderSchedule pauses a schedule or watch, or lets it go on.
func (a *App) OrderSchedule(ctx context.Context, by Caller, workspace string, o ScheduleOrder) (view.ScheduleOrdered,
	error) {
	o.Reason = a.process.Known.Text(o.Reason)
	return a.Fleet.OrderSchedule(ctx, by, workspace, o)
}

// RetryPreview says what a retry of a run does, and holds the options that begin it.
type RetryPreview struct {
	view.RetryPlanned
	Options RunOptions `json:"-"`
}

// PreviewRetry says what a retry of a run would do. The token is that of what it says.
func (a *App) PreviewRetry(ctx context.Context, by Caller, key view.RunKey, again RedoSelection) (
	out control.Preview[RetryPreview], err error) {
	r, err := a.Orders.PlanRetry(ctx, by, key, again)
	if err != nil {
		return out, err
	}
	var begins view.RunPlanned
	if len(r.Changed) > 0 {
		if begins, err = a.PlanRun(ctx, by, r.Options.Script, r.Options); err != nil {
			return out, err
		}
		if begins.Nodes, err = a.Orders.LastTime(ctx, key, begins.Nodes); err != nil {
			return out, err
		}
	}
	return control.PreviewOf(RetryPreview{RetryPlanned: r.View(begins.Nodes), Options: r.Options})
}

// Replaces lists the existing outputs that a new run of a script would replace.
func (a *App) Replaces(ctx context.Context, s *scripts.Script, o RunOptions) ([]view.Replaced, error) {
	return runner.Replaces(ctx, a.process.Remote, s, o)
}

// Explain says how a run of a script would proceed, and what it would take over from earlier runs.
func (a *App) Explain(ctx context.Context, by Caller, s *scripts.Script, o scripts.ExplainOptions) (view.Explained,
	error) {
	o.Process = a.in(by)
	out, err := scripts.Explain(ctx, a.home, s, o)
	if err != nil || o.Node != "" {
		return out, err
	}
	next, err := a.next(s, RunOptions{ScriptPath: o.Path, Workspace: o.Workspace, Dir: o.Seen.Dir, Process: o.Process},
		nil)
	if err != nil {
		return out, err
	}
	for _, n := range out.Nodes {
		if next.Computed[n.Node] = n.ReusedFrom == nil; !n.Estimated && n.Problem == "" {
			next.Files[n.Node] = n.BytesIn
		}
	}
	out.Forecast, err = a.forecast(ctx, next)
	return out, err
}

// Hooks reads the hooks of all runs from the file at path; "": from the instance's hooks file, if it has one.
func (a *App) Hooks(ctx context.Context, path string) ([]scripts.Hook, error) {
	return runner.Hooks(ctx, a.home, a.process, path)
}

// MatrixOptions say how a script is run once for each combination of parameter values.
type MatrixOptions struct {
	RunOptions
	Dir         string   // of the state
	Axes        []string // NAME=VALUES
	Concurrency int      // cells at once
	FailFast    bool     // no cell begins after one has failed
	Again       bool     // run all cells, also those that are complete
	Show        func(CellState)
}

// CheckAxes refuses texts that are not of the form NAME=VALUES.
func CheckAxes(texts []string) error {
	_, err := runner.ParseAxes(texts)
	return err
}

// RunMatrix runs a script once for each cell that is not complete, and returns
// all cells with their final state. A cell that fails is no error.
func (a *App) RunMatrix(ctx context.Context, by Caller, o MatrixOptions) ([]CellState, error) {
	axes, err := runner.ParseAxes(o.Axes)
	if err != nil {
		return nil, err
	}
	o.Process, o.Limiter = a.with(by, o.Process), limiter{a}
	return runner.RunMatrix(ctx, runner.MatrixOptions{Options: o.RunOptions, Dir: o.Dir, Cluster: a.home.Cluster(),
		Axes: axes, Concurrency: o.Concurrency, FailFast: o.FailFast, Again: o.Again, Show: o.Show})
}

// Matrices lists the matrices of a workspace.
func (a *App) Matrices(ctx context.Context, workspace string) ([]view.Matrix, error) {
	found, err := runner.Matrices(ctx, a.home, workspace)
	out := []view.Matrix{}
	for _, m := range found {
		out = append(out, m.View())
	}
	return out, err
}

// MatrixCells lists the cells of a matrix. Statuses are those of lists of runs, as interrupted and dropped.
func (a *App) MatrixCells(ctx context.Context, workspace, id string) ([]view.Cell, error) {
	all, err := runner.Matrices(ctx, a.home, workspace)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(all, func(m runner.Matrix) bool { return m.ID == id })
	if at < 0 {
		return nil, &fault.Error{Kind: fault.Script, Code: fault.NotFound, Message: "there is no matrix of this name"}
	}
	cells, err := runner.MatrixCells(ctx, a.home, workspace, all[at])
	if err != nil {
		return nil, err
	}
	out := []view.Cell{}
	for _, c := range cells {
		seen, err := a.Runs.Listed(ctx, view.RunKey{Workspace: workspace, Run: c.Run})
		if err != nil {
			return nil, err
		}
		c.Status = view.Status(seen.Status)
		out = append(out, c.View())
	}
	return out, nil
}

// Work takes batches of all runs of the instance until ctx ends: see worker.Serve. m measures it; nil: no metrics.
func (a *App) Work(ctx context.Context, by Caller, o WorkOptions, m *Metrics) error {
	o.Process = a.with(by, o.Process)
	home := *a.home // a copy, so that m measures only the calls of this worker
	if m != nil {
		m.Measure(&home, &o)
	}
	return worker.Serve(ctx, &home, o)
}

// ScheduleOptions say which runs a scheduler begins.
type ScheduleOptions = scheduler.SchedulerOptions

// Schedule begins runs when their scripts' schedules and watches say so, until ctx ends.
func (a *App) Schedule(ctx context.Context, by Caller, o ScheduleOptions) error {
	o.Process = a.with(by, o.Process)
	o.Process.Caller.Via, o.Limiter = caller.Scheduler, limiter{a}
	return scheduler.Schedule(ctx, a.home, o)
}

// OnTime is the longest time since a scheduler's last look for which it counts as alive.
const OnTime = fleet.OnTime

// Axis is a parameter with its values.
type Axis = runner.Axis
