package app

import (
	"io"
	"time"

	"thalweg/internal/app/control"
	"thalweg/internal/app/fleet"
	"thalweg/internal/app/inspect"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runs"
	"thalweg/internal/app/scripts"
	"thalweg/internal/app/scripttest"
	"thalweg/internal/app/view"
)

// Types of requests, and of results that have no form in package view.
type (
	NamedScript     = scripts.Named
	Script          = scripts.Script
	Hook            = scripts.Hook
	Selection       = scripts.Selection
	ExplainOptions  = scripts.ExplainOptions
	InferOptions    = scripts.InferOptions
	Proposal        = scripts.Proposal
	ScriptService   = scripts.Service
	Query           = inspect.QueryOptions
	QueryResult     = inspect.QueryResult
	RowWriter       = inspect.RowWriter
	Comparison      = inspect.Comparison
	DiffOptions     = inspect.DiffOptions
	IndexOptions    = inspect.IndexOptions
	TraceOptions    = inspect.TraceOptions
	CheckOptions    = inspect.CheckOptions
	CheckFound      = inspect.CheckFound
	DecisionRequest = control.DecisionRequest
	Decided         = control.Decided
	Asking          = control.Asking
	Limits          = control.Limits
	FollowOptions   = runs.FollowOptions
	RunService      = runs.Service
	NeedsAsker      = fleet.Asker
	ScheduleOrder   = fleet.ScheduleOrder
	RunsPage        = runs.PageOptions
	CostOptions     = runs.CostOptions
	BatchesPage     = runs.BatchesPage
	SamplesOptions  = runs.SamplesOptions
	DrawOptions     = runs.DrawOptions
	TestOptions     = scripttest.Options
	TestResult      = scripttest.Result
)

// StopBound is the longest time that a stop waits for the processes at work.
const StopBound = control.StopBound

// CheckRunRef refuses what is no name of a run.
func CheckRunRef(ref string) error { return runs.CheckRef(ref) }

// LastRun names the latest run of a workspace. With ~1 after it, it names the run before that.
const LastRun = runs.Last

// Draw writes the picture of a run as SVG.
func Draw(w io.Writer, s *Script, d view.RunDetail, o DrawOptions) error {
	return runs.Draw(w, s, d, o)
}

// Finished returns a summary as the last event of a run.
func Finished(sum Summary) view.RunFinished { return runs.Finished(sum) }

// SummaryView returns a summary as it is sent to others.
func SummaryView(sum Summary) view.RunSummary { return runs.SummaryView(sum) }

// SummaryFrom returns the summary that a view was made of, without what waits for people.
func SummaryFrom(v view.RunSummary) Summary { return runs.SummaryFrom(v) }

// ShowWork returns what shows the lines of a run's stream as events of who works on it: see runs.ShowWork.
func ShowWork(stay bool, asked func(node string) (*view.GateRecord, error),
	show func(view.Event) error) func([]view.EventLine) error {
	return runs.ShowWork(stay, asked, show)
}

// ResultFrom returns the rows of a page with cells as a query gives them.
func ResultFrom(page view.Page) (QueryResult, error) { return inspect.ResultFrom(page) }

// ComparisonFrom returns the comparison that a view was made of: of changed rows, what has changed.
func ComparisonFrom(v view.Diff) Comparison { return inspect.ComparisonFrom(v) }

// Settled returns the final nodes of a run that is over.
func Settled(sum Summary) []view.Node { return runs.Settled(sum.Status, time.Now(), sum.Nodes) }

// InvalidationReason refuses an invalidation without a reason.
func InvalidationReason(reason string) error { return control.InvalidationReason(reason) }

// TakeReason refuses to take a failure without a comment.
func TakeReason(comment string) error { return control.TakeReason(comment) }

// DropReason refuses to drop runs without a reason.
func DropReason(reason string) error { return control.DropReason(reason) }

// ParsePriority reads the priority of a run; false: the text is none.
func ParsePriority(text string) (view.Priority, bool) { return view.ParsePriority(text) }

// CheckedView returns what the checks found over the tables of a run as programs see it.
func CheckedView(run view.Run, found []CheckFound) (view.Checked, error) {
	return inspect.CheckedView(run, found)
}

// HasValues reports whether an answer has a failure with values of the data in it.
func HasValues(answer any) bool { return instance.HasValues(answer) }

// FailureWithoutValues returns a failure without values of the data; nil for nil.
func FailureWithoutValues(f *view.Failure) *view.Failure { return instance.FailureWithoutValues(f) }

// Cell returns a value of a table as it is shown.
func Cell(v any) any { return inspect.Cell(v) }

// NewRowWriter returns a writer of query rows to out. If format is not csv, it writes one JSON object a line.
func NewRowWriter(format string, out io.Writer) RowWriter { return inspect.NewRowWriter(format, out) }
