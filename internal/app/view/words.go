package view

import (
	"strings"

	"thalweg/internal/app/registry"
	"thalweg/internal/base/action"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/document"
	"thalweg/internal/lang/script"
	"thalweg/internal/ops/compare"
	"thalweg/internal/ops/doctor"
	"thalweg/internal/ops/gc"
	"thalweg/internal/ops/history"
	"thalweg/internal/ops/lineage"
	"thalweg/internal/run/gate"
	"thalweg/internal/run/job"
	"thalweg/internal/run/orders"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// Shapes that lower packages define, because they keep them or make them. They
// are shown as they are.
type (
	Action      = action.Action
	Diagnostics = document.Diagnostics
	Diagnostic  = document.Diagnostic
	// DiagnosticJSON is what a Diagnostic is encoded as.
	DiagnosticJSON = document.DiagnosticJSON

	Run         = state.Run
	Priority    = state.Priority
	RunKey      = state.RunKey
	Node        = state.Node
	NodeKey     = state.NodeKey
	BatchKey    = state.BatchKey
	Status      = state.Status
	Stats       = state.Stats
	Failure     = state.Failure
	CheckResult = state.CheckResult
	File        = state.File
	Mark        = state.Mark
	Redo        = state.CommandNode
	GateChoice  = state.Decision

	ListedRun   = history.Run
	RunDetail   = history.RunDetail
	ListedNode  = history.Node
	NodeDetail  = history.NodeDetail
	ListedBatch = history.Batch
	BatchDetail = history.BatchDetail
	ListedTry   = history.ListedAttempt
	Cost        = history.Cost
	Stages      = history.Stages
	Stage       = history.Stage
	TimeSpan    = history.TimeSpan
	Timeline    = history.Timeline
	AuditEntry  = history.AuditEntry
	EventLine   = history.Line
	EventChoice = history.Selection
	Importance  = history.Importance
	Standing    = history.Standing
	Expectation = history.Expectation

	Event     = job.Event
	EventKind = job.EventKind

	GateRecord = gate.Record
	GateAsked  = gate.Asked

	RedoStep = orders.RedoStep
	Outlook  = orders.Outlook
	Touched  = orders.Touched

	Column  = lineage.Column
	Link    = lineage.Link
	Tree    = lineage.Tree
	Row     = lineage.Row
	Value   = lineage.Value
	Origin  = lineage.Origin
	Role    = plan.Role
	Columns = lineage.Columns

	Difference = compare.Difference
	Budget     = budget.Budget
	Amount     = gc.Amount

	Worker  = registry.WorkerEntry
	Finding = doctor.Finding
	Verdict = doctor.Verdict
)

// Statuses of runs, nodes and batches.
const (
	Pending    = state.Pending
	Claimed    = state.Claimed
	Running    = state.Running
	Waiting    = state.Waiting
	PausedRun  = state.Paused
	Succeeded  = state.Succeeded
	Complete   = state.Complete
	FailedRun  = state.Failed
	StoppedRun = state.Stopped
	Invalid    = state.Invalidated

	// Statuses that only lists of runs have.
	Interrupted = history.Interrupted
	ListWaiting = history.Waiting
	ListInvalid = history.Invalidated
	Dropping    = history.Dropped
)

// How a run is followed.
const (
	AbandonedFor = history.AbandonedFor // looks in a row that find nobody at work on it end that
	AboutToGoOn  = history.AboutToGoOn  // the longest wait for a stopped run to go on
)

// Values that are shown only where they are not the usual ones.
const (
	PriorityNormal = state.PriorityNormal
	CommandFail    = state.CommandFail
	GateKind       = gate.Kind
)

// What happens to a run, to its nodes and to their batches.
const (
	NodePlanned   = job.NodePlanned
	NodeCopying   = job.NodeCopying
	NodeWaiting   = job.NodeWaiting
	NodeFinished  = job.NodeFinished
	BatchStarted  = job.BatchStarted
	BatchFinished = job.BatchFinished
	BatchFailed   = job.BatchFailed
	BatchRetried  = job.BatchRetried
	BatchReleased = job.BatchReleased
	BatchLost     = job.BatchLost
	RunEnded      = job.RunFinished
)

// Why a retry does something again.
const (
	RedoAsked       = orders.Asked
	RedoFollows     = orders.Follows
	RedoReads       = orders.Reads
	RedoComputes    = orders.Computes
	RedoInvalidated = orders.Invalidated
	RedoFailed      = orders.HasFailed
	RedoLeft        = orders.Left
)

// What rows are to the one that is made of them.
const (
	RoleRow   = plan.RoleRow
	RoleLeft  = plan.RoleLeft
	RoleRight = plan.RoleRight
	RoleGroup = plan.RoleGroup
	RoleSame  = plan.RoleSame
	RoleBatch = plan.RoleBatch
	RoleQuery = plan.RoleQuery
	RoleAll   = plan.RoleAll
)

// Verdicts about what is looked at.
const (
	Good    = doctor.Good
	Warning = doctor.Warning
	Skipped = doctor.Skipped
	Bad     = doctor.Bad
	Ours    = doctor.Ours
)

// ParsePriority reads the priority of a run; false: the text is none.
func ParsePriority(text string) (Priority, bool) { return state.ParsePriority(text) }

// OfNoBatch is the batch of a failure that concerns none.
const OfNoBatch = -1

// FailureOf returns err as a failure that concerns no batch.
func FailureOf(err error) Failure { return job.FailureOf(err, state.BatchKey{Batch: OfNoBatch}) }

// Worst returns the worst verdict of findings.
func Worst(found []Finding) Verdict { return doctor.Worst(found) }

// IsGate reports whether a node of a run is a gate.
func IsGate(node string) bool { return strings.HasPrefix(node, gate.Prefix) }

// GateNode returns the name of the node of a gate.
func GateNode(name string) string { return gate.Prefix + name }

// GateName returns the name of the gate that a node of a run is.
func GateName(node string) string { return gate.NameOf(node) }

// GateAnswers returns the answers of a decision by name, nil if it cannot be read.
func GateAnswers(d GateChoice) map[string]string {
	answers, err := gate.Answers(d)
	if err != nil {
		return nil
	}
	return answers
}

// ShowTable returns the action that shows a table of a run.
func ShowTable(run RunKey, table string) Action { return gate.Look(run, table) }

// RenderActions writes the actions and settings of a text as r does.
func RenderActions(text string, r action.Renderer) string { return action.Render(text, r) }

// Arg is an argument of an action, or a setting.
type Arg = action.Arg

// Quote quotes a text of the user's as messages do.
func Quote(text string) string { return document.Quote(text) }

// ResumeVerb is the verb of the action that lets a run go on.
const ResumeVerb = state.Resume

// DirManifest is the name of the file that lists the files of an output directory.
const DirManifest = script.DirManifest
