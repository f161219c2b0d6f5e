package app

import (
	"context"
	"io"
	"time"

	"thalweg/internal/app/control"
	"thalweg/internal/app/inspect"
	"thalweg/internal/app/runs"
	"thalweg/internal/app/scripts"
	"thalweg/internal/app/scripttest"
	"thalweg/internal/app/view"
	"thalweg/internal/store/state"
)

// Words of requests, and of answers that are not shown as they are.
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
	TraceOptions    = inspect.TraceOptions
	CheckOptions    = inspect.CheckOptions
	CheckFound      = inspect.CheckFound
	DecisionRequest = control.DecisionRequest
	Decided         = control.Decided
	Asking          = control.Asking
	Limits          = control.Limits
	FollowOptions   = runs.FollowOptions
	TestOptions     = scripttest.Options
	TestResult      = scripttest.Result
)

// StopBound is the longest time that a stop waits for the processes at work.
const StopBound = control.StopBound

// LastRun names the latest run of a workspace; LastRun~1 the one before it.
const LastRun = runs.Last

// Draw writes the picture of a run as SVG.
func Draw(w io.Writer, s *Script, d view.RunDetail) error { return runs.Draw(w, s, d) }

// Finished returns a summary as the last event of a run.
func Finished(sum Summary) view.RunFinished { return runs.Finished(sum) }

// Settled returns nodes of a run that is over as it left them.
func Settled(sum Summary) []view.Node { return runs.Settled(sum.Status, time.Now(), sum.Nodes) }

// InvalidationReason refuses an invalidation without a reason.
func InvalidationReason(reason string) error { return control.InvalidationReason(reason) }

// DropReason refuses to drop runs without a reason.
func DropReason(reason string) error { return control.DropReason(reason) }

// ParsePriority reads how urgent a run is; false: it is none.
func ParsePriority(text string) (state.Priority, bool) { return state.ParsePriority(text) }

// Explain says how a run of a script would go about it, where there is no instance yet.
func Explain(ctx context.Context, process Process, s *Script, o ExplainOptions) (view.Explained, error) {
	o.Process = process
	return scripts.Explain(ctx, nil, s, o)
}

// Tests returns the tests of a script: in a file, "" being the one beside it.
func Tests(path, script string, known *Secrets) (*scripttest.Suite, error) {
	if path == "" {
		path = scripttest.PathFor(script)
	}
	return scripttest.Load(path, script, known)
}

// Test runs one of the tests of a script.
func Test(ctx context.Context, suite *scripttest.Suite, one *scripttest.Case, o TestOptions) (TestResult, error) {
	return scripttest.Run(ctx, suite, one, o)
}

// Suite is the tests of a script.
type Suite = scripttest.Suite

// Parameters lists the parameters of a script's text, also of one that has mistakes.
func Parameters(text string) []scripts.Parameter { return scripts.Parameters(text) }

// NodesOf lists the names of its nodes, likewise.
func NodesOf(text string) []string { return scripts.NodesOf(text) }

// TagsOf lists the tags of its nodes, in order.
func TagsOf(text string) []string { return scripts.TagsOf(text) }

// Cell returns a value of a table as it is shown.
func Cell(v any) any { return inspect.Cell(v) }

// DrawScript writes the picture of a script, as svg or dot; with fields of its tables, if that is asked for.
func DrawScript(w io.Writer, s *Script, format string, fields bool) error {
	return scripts.Draw(w, s, format, fields)
}

// ScriptBytesMax bounds a script's text.
const ScriptBytesMax = scripts.BytesMax

// FormatScript returns a script or a file of parameters in the canonical layout; name is that of its file.
func FormatScript(name string, text []byte) ([]byte, error) { return scripts.Format(name, text) }

// SpareParam begins the name of a parameter that an environment offers: it counts where the script has it.
const SpareParam = scripts.SpareParam

// WriteSchemaBeside gives editors the schema that the script at path names in its first line, unless it is there.
func WriteSchemaBeside(path string) error { return scripts.WriteSchemaBeside(path) }

// InitProject begins a project in a directory from a template, and returns the names of its files.
func InitProject(template, dir string) ([]string, error) { return scripts.Init(template, dir) }

// Schema returns the JSON Schema of scripts, or with "cluster" of cluster configurations.
func Schema(of string) ([]byte, error) { return scripts.Schema(of) }

// ColumnsOf returns the columns of a script, and what each is made of.
func ColumnsOf(s *Script) *view.Columns { return scripts.ColumnsOf(s) }

// NewRowWriter returns what writes the rows of a query to out, as csv or else as json: an object a line.
func NewRowWriter(format string, out io.Writer) RowWriter { return inspect.NewRowWriter(format, out) }
