package app

import (
	"context"

	"thalweg/internal/app/control"
	"thalweg/internal/app/runs"
	"thalweg/internal/app/view"
)

// Operations are what can be asked about runs, and ordered of them, from here and through a server alike.
type Operations interface {
	Find(ctx context.Context, workspace, ref string) (view.Run, error)
	Numbered(ctx context.Context, workspace string, number int64) (view.Run, error)
	FindOpen(ctx context.Context, workspace string) (OpenRun, error)
	List(ctx context.Context, workspace string, limit int, dropped bool) ([]view.ListedRun, error)
	Status(ctx context.Context, run view.Run) string
	Show(ctx context.Context, key view.RunKey) (view.RunDetail, error)
	Workers(ctx context.Context, key view.RunKey) (view.RunWorkers, error)
	Costs(ctx context.Context, workspace string, o CostOptions) (view.Costs, error)
	Workspaces(ctx context.Context) ([]string, error)
	ShowNode(ctx context.Context, key view.RunKey, node string) (view.NodeDetail, error)
	ShowBatch(ctx context.Context, key view.RunKey, node string, batch int) (view.BatchDetail, error)
	Batches(ctx context.Context, key view.RunKey, node string) ([]view.Batch, error)
	Checks(ctx context.Context, key view.RunKey, node string) ([]view.Check, error)
	Why(ctx context.Context, run view.Run) (view.Why, error)
	Causes(ctx context.Context, key view.RunKey) (view.Causes, error)
	Audit(ctx context.Context, key view.RunKey) ([]view.AuditEntry, error)
	AuditAll(ctx context.Context, workspace string, limit int) ([]view.AuditEntry, error)
	Events(ctx context.Context, key view.RunKey, after int64, tell func([]view.EventLine) error) error
	Schedules(ctx context.Context, workspace string) ([]view.Schedule, error)
	OrderSchedule(ctx context.Context, by Caller, workspace string, o ScheduleOrder) (view.ScheduleOrdered, error)
	Matrices(ctx context.Context, workspace string) ([]view.Matrix, error)
	MatrixCells(ctx context.Context, workspace, id string) ([]view.Cell, error)
	Lineage(ctx context.Context, key view.RunKey, column string) (view.ColumnLineage, error)
	AwaitNames(ctx context.Context, key view.RunKey) ([]view.Node, error)
	Nodes(ctx context.Context, run view.Run) (Summary, error)
	Summary(ctx context.Context, key view.RunKey) (Summary, error)
	Follow(ctx context.Context, key view.RunKey, o FollowOptions, tell func([]view.EventLine) error) error
	FollowWork(ctx context.Context, key view.RunKey, o FollowOptions, show func(view.Event) error) error
	Query(ctx context.Context, by Caller, o Query) (QueryResult, error)
	Diff(ctx context.Context, by Caller, runs [2]view.RunKey, o DiffOptions) (Comparison, error)
	Trace(ctx context.Context, by Caller, o TraceOptions) (*view.Tree, error)

	Submit(ctx context.Context, by Caller, o RunOptions) (view.RunKey, view.Diagnostics, error)
	Plan(ctx context.Context, by Caller, o RunOptions) (view.RunPlanned, error)
	PreviewRetry(ctx context.Context, by Caller, key view.RunKey, again RedoSelection) (Preview[RetryPreview], error)
	Stop(ctx context.Context, by Caller, key view.RunKey, reason string) (view.Stopped, error)
	Pause(ctx context.Context, by Caller, key view.RunKey, reason string) (view.Paused, error)
	Take(ctx context.Context, by Caller, key view.RunKey, comment string) (view.Taken, error)
	PreviewInvalidation(ctx context.Context, key view.RunKey, nodes []string) (Preview[view.Invalidated], error)
	Invalidate(ctx context.Context, by Caller, key view.RunKey, nodes []string, reason,
		token string) (view.Invalidated, error)
	PreviewDrop(ctx context.Context, keys []view.RunKey) (Preview[[]view.Dropped], error)
	Drop(ctx context.Context, by Caller, keys []view.RunKey, reason, token string) ([]view.Dropped, error)
	PreviewCollection(ctx context.Context, workspace string, limits Limits) (Preview[view.Collected], error)
	Collect(ctx context.Context, by Caller, workspace string, limits Limits, reason, token string) (view.Collected, error)
	Approvals(ctx context.Context, workspace string) ([]Asking, error)
	Decide(ctx context.Context, by Caller, req DecisionRequest) (Decided, error)
}

// Preview says what an order would do.
type Preview[T any] = control.Preview[T]

// OpenRun is the latest run that is not over, among others.
type OpenRun = runs.Open

type (
	runService   = runs.Service
	orderService = control.Service
)

// here are the Operations of an instance that is open in this process.
type here struct {
	*runService
	*orderService
	app *App
}

// Causes implements Operations.
func (h here) Causes(ctx context.Context, key view.RunKey) (view.Causes, error) {
	return h.app.Fleet.Causes(ctx, key, true)
}

// Schedules implements Operations.
func (h here) Schedules(ctx context.Context, workspace string) ([]view.Schedule, error) {
	return h.app.Fleet.Schedules(ctx, workspace)
}

// OrderSchedule implements Operations.
func (h here) OrderSchedule(ctx context.Context, by Caller, workspace string, o ScheduleOrder) (view.ScheduleOrdered, error) {
	return h.app.OrderSchedule(ctx, by, workspace, o)
}

// Matrices implements Operations.
func (h here) Matrices(ctx context.Context, workspace string) ([]view.Matrix, error) {
	return h.app.Matrices(ctx, workspace)
}

// MatrixCells implements Operations.
func (h here) MatrixCells(ctx context.Context, workspace, id string) ([]view.Cell, error) {
	return h.app.MatrixCells(ctx, workspace, id)
}

// Lineage implements Operations.
func (h here) Lineage(ctx context.Context, key view.RunKey, column string) (view.ColumnLineage, error) {
	s, _, err := h.app.Data.ScriptOf(ctx, key)
	if err != nil {
		return view.ColumnLineage{}, err
	}
	return LineageOf(s, column)
}

// Query implements Operations.
func (h here) Query(ctx context.Context, by Caller, o Query) (QueryResult, error) {
	return h.app.Data.Query(ctx, by, o)
}

// Diff implements Operations.
func (h here) Diff(ctx context.Context, by Caller, runs [2]view.RunKey, o DiffOptions) (Comparison, error) {
	return h.app.Data.Diff(ctx, by, runs, o)
}

// Trace implements Operations.
func (h here) Trace(ctx context.Context, by Caller, o TraceOptions) (*view.Tree, error) {
	return h.app.Data.Trace(ctx, by, o)
}

// Submit implements Operations.
func (h here) Submit(ctx context.Context, by Caller, o RunOptions) (view.RunKey, view.Diagnostics, error) {
	return h.app.Submit(ctx, by, o)
}

// Plan implements Operations.
func (h here) Plan(ctx context.Context, by Caller, o RunOptions) (view.RunPlanned, error) {
	s, _, err := h.app.Scripts.Valid(ctx, NamedScript{Path: o.ScriptPath, ParamsPath: o.ParamsPath, Params: o.Params,
		Lenient: o.Lenient, Literal: o.Literal, Dir: o.Dir, Policy: o.Policy, Texts: o.Texts})
	if err != nil {
		return view.RunPlanned{}, err
	}
	return h.app.PlanRun(ctx, by, s, o)
}

// PreviewRetry implements Operations.
func (h here) PreviewRetry(ctx context.Context, by Caller, key view.RunKey,
	again RedoSelection) (Preview[RetryPreview], error) {
	return h.app.PreviewRetry(ctx, by, key, again)
}

// Elsewhere returns an App of a server: it has Operations and nothing else.
func Elsewhere(o Operations) *App { return &App{Operations: o} }
