package job

import (
	"context"
	"errors"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/run/gate"
	"thalweg/internal/store/state"
)

// Result is a finished execution: what to commit, and what to make visible
// just before.
type Result struct {
	Outcome state.Outcome
	// Publications lists what Publish is to show, as state has it before. Execute has announced whatever lies
	// anywhere before Publish. Of what lies anywhere before Publish, Execute has announced that it will.
	Publications []state.Publication
	// Publish puts output files under their final names; nil if there are none.
	// Doing it twice must be harmless: a crash may fall between it and the commit.
	Publish func(ctx context.Context) error
	// Discard removes what will not be published; nil if there is nothing.
	Discard func()
}

// Job is a run's content: how its nodes are planned and its batches executed.
type Job interface {
	// Plan decides a node's batches; all of its inputs are complete. What it
	// decides follows from what is recorded of the run, not from the machine. It
	// answers with *NotReadyError rather than keep the other nodes waiting for long,
	// with *AskError where people have to decide first, and with state.ErrConflict
	// where it has given an order by which nodes are planned again.
	Plan(ctx context.Context, node state.Node) (state.Plan, error)
	// Settle is called when all batches of a node are done, before it counts as
	// succeeded, perhaps more than once. state.ErrConflict says, as that of Plan
	// does, that an order has been given by which nodes are planned again;
	// *UnsettledError that the node has failed.
	Settle(ctx context.Context, node state.Node) error
	// Execute does a batch's work and publishes nothing. A result beside an error holds the side parts and
	// checks that explain the failure; they become visible with it.
	Execute(ctx context.Context, c state.Claim) (Result, error)
}

// NotReadyError is Plan's answer while what a node needs from outside is on
// its way: Plan is called again when Until ends.
type NotReadyError struct{ Until context.Context }

// Error implements error.
func (e *NotReadyError) Error() string { return "what the node needs is on its way" }

// AskError is Plan's answer for a gate at which people have to decide first:
// the node waits with that record.
type AskError struct{ Record gate.Record }

// Error implements error.
func (e *AskError) Error() string { return "gate " + e.Record.Gate + " waits for a decision" }

// UnsettledError is Settle's answer for a node that cannot count as done.
type UnsettledError struct{ Err error }

// Error implements error.
func (e *UnsettledError) Error() string { return e.Err.Error() }

// Unwrap gives the classified failure.
func (e *UnsettledError) Unwrap() error { return e.Err }

// Event tells people who watch of one change.
type Event struct {
	Run     state.RunKey
	Time    time.Time
	Kind    EventKind
	Node    string
	Batch   int
	Attempt int
	Batches int // planned batches of the node
	// ReusedFrom is the node whose rows a node has taken over that was planned
	// or has finished; nil: it computes them.
	ReusedFrom *state.NodeKey
	Stats      state.Stats
	Checks     []state.CheckResult // of a batch that finished or failed
	Failure    *state.Failure
	Gate       *gate.Record // of a gate that waits
	Copying    *Copying     // of a node whose inputs are being copied
	Status     state.Status // of the run, when it finished
}

// Copying says how far the copying of a node's inputs has come.
type Copying struct {
	Files     int   `json:"files"`
	FilesDone int   `json:"files_done"`
	Bytes     int64 `json:"bytes"` // of copies, also of those that are not complete
}

// EventKind names an event. The texts appear in JSON output: they do not change.
type EventKind string

// The events.
const (
	NodePlanned   EventKind = "node_planned"
	NodeCopying   EventKind = "node_copying" // its inputs, every few seconds
	NodeWaiting   EventKind = "node_waiting" // for people
	BatchStarted  EventKind = "batch_started"
	BatchFinished EventKind = "batch_finished"
	BatchFailed   EventKind = "batch_failed"
	BatchRetried  EventKind = "batch_retried" // it failed and will be tried again
	BatchReleased EventKind = "batch_released"
	BatchLost     EventKind = "batch_lost" // its worker went away, and another has taken it
	NodeFinished  EventKind = "node_finished"
	RunFinished   EventKind = "run_finished"
)

// CrashPoint names a place between two steps at which a process may die with
// a different state left behind: docs/guarantees.md says what follows.
type CrashPoint string

// The crash points, in the order in which a batch passes them.
const (
	Planned   CrashPoint = "planned"   // a node's batches are stored, none is offered
	Claimed   CrashPoint = "claimed"   // nothing is done yet
	Executed  CrashPoint = "executed"  // parts are stored, files written under temporary names
	Published CrashPoint = "published" // files have their final names, nothing is committed
	Committed CrashPoint = "committed" // the batch is done, nobody has noticed
	// a node's batches are done, or those of an earlier run are taken over; it does not count as succeeded
	Settling CrashPoint = "settling"
)

// The crash points of who begins runs and who tells of them.
const (
	RunDue   CrashPoint = "run_due"   // that a run is due is written down, it is not begun
	RunBegun CrashPoint = "run_begun" // the run is there, it is not written down for what
	Owed     CrashPoint = "owed"      // what is to be told is written down, nobody was told
	Told     CrashPoint = "told"      // they were told, it is not written down
)

// The crash points of who gives a run an order: stop, pause, redo, invalidate.
const (
	OrderBegun   CrashPoint = "order_begun"   // it is recorded, no node has heard of it
	OrderHeard   CrashPoint = "order_heard"   // some nodes have
	OrderCarried CrashPoint = "order_carried" // all have, and the run has its status
)

// OrderPoints lists those of an order.
func OrderPoints() []CrashPoint { return []CrashPoint{OrderBegun, OrderHeard, OrderCarried} }

// ServingPoints lists those of who begins runs and tells of them.
func ServingPoints() []CrashPoint { return []CrashPoint{RunDue, RunBegun, Owed, Told} }

// CrashPoints lists those of a batch.
func CrashPoints() []CrashPoint {
	return []CrashPoint{Planned, Claimed, Executed, Published, Committed, Settling}
}

// The crash points of a gate, in the order in which it passes them before it is
// planned.
const (
	Noted   CrashPoint = "noted"   // that it waits is noted in the workspace, and it does not yet
	Asked   CrashPoint = "asked"   // it waits, nobody was told
	Left    CrashPoint = "left"    // whoever worked on the run has left it because it waits, and has not looked again
	Decided CrashPoint = "decided" // somebody has decided, and nothing is recorded
)

// The crash points of who removes what nobody needs any more, in order.
const (
	RunDropped  CrashPoint = "run_dropped"  // a run that was over the limits is dropped, nothing of it is removed
	Cleared     CrashPoint = "cleared"      // what dead attempts at a node announced is gone
	PartRemoved CrashPoint = "part_removed" // a part is gone, others are not
	Purged      CrashPoint = "purged"       // state has forgotten the work of one node of a dropped run
)

// GatePoints lists those of a gate.
func GatePoints() []CrashPoint { return []CrashPoint{Noted, Asked, Left, Decided} }

// CollectPoints lists those of who removes what nobody needs any more.
func CollectPoints() []CrashPoint { return []CrashPoint{RunDropped, Cleared, PartRemoved, Purged} }

// The crash points of a file that is made to last, in the order in which it
// passes them: parts, output files, what the state directory keeps.
const (
	Staged  CrashPoint = "staged"  // it is written, under a name that nobody reads, and not flushed
	Flushed CrashPoint = "flushed" // it is flushed, under that name
	Named   CrashPoint = "named"   // it has its name, which is not flushed
)

// FilePoints lists those of a file.
func FilePoints() []CrashPoint { return []CrashPoint{Staged, Flushed, Named} }

// FailureOf turns an error into what state keeps of it.
func FailureOf(err error, key state.BatchKey) state.Failure {
	f := fault.Of(err)
	message := f.Message
	if f.Err != nil {
		message += ": " + f.Err.Error()
	}
	return state.Failure{Kind: f.Kind, Retryable: f.Retryable, Place: f.Place, Message: message, Hint: f.Hint,
		Detail: f.Detail, Node: key.Node, Batch: key.Batch}
}

// Interrupted reports whether an error only says that somebody asked to stop.
func Interrupted(err error) bool {
	return fault.Of(err).Kind == fault.Canceled || errors.Is(err, context.Canceled)
}
