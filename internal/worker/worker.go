package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"thalweg/internal/fault"
	"thalweg/internal/state"
)

// Result is a finished execution: what to commit, and what to make visible
// just before.
type Result struct {
	Outcome state.Outcome
	// Publications are what Publish shows, as state has it before. Of what lies
	// anywhere before Publish, Execute has announced that it will.
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
	// answers with *NotReadyError rather than keep the other nodes waiting for long.
	Plan(ctx context.Context, node state.Node) (state.Plan, error)
	// Execute does a batch's work. It publishes nothing. A result beside an
	// error is what the failure leaves for people to look at: side parts and
	// checks, which become visible together with it.
	Execute(ctx context.Context, c state.Claim) (Result, error)
}

// NotReadyError is Plan's answer while what a node needs from outside is on
// its way: Plan is called again when Until ends.
type NotReadyError struct{ Until context.Context }

// Error implements error.
func (e *NotReadyError) Error() string { return "what the node needs is on its way" }

// Guard calls fn and turns a panic into a failure that says where: one batch's
// or plan's mistake is not the end of a process that works on others.
func Guard(doing string, fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &fault.Error{Kind: fault.Bug, Message: fmt.Sprintf("%s: panic: %v", doing, p), Detail: string(debug.Stack()),
				Hint: "this is a mistake in Thalweg: please report it with the lines above"}
		}
	}()
	return fn()
}

// Event is what happened, for people who watch.
type Event struct {
	Run     state.RunKey
	Time    time.Time
	Kind    EventKind
	Node    string
	Batch   int
	Attempt int
	Batches int // planned batches of the node
	Stats   state.Stats
	Checks  []state.CheckResult // of a batch that finished or failed
	Failure *state.Failure
	Status  state.Status // of the run, when it finished
}

// EventKind names an event. The texts appear in JSON output: they do not change.
type EventKind string

// The events.
const (
	NodePlanned   EventKind = "node_planned"
	BatchStarted  EventKind = "batch_started"
	BatchFinished EventKind = "batch_finished"
	BatchFailed   EventKind = "batch_failed"
	BatchRetried  EventKind = "batch_retried" // it failed and will be tried again
	BatchReleased EventKind = "batch_released"
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
)

// CrashPoints lists them all.
func CrashPoints() []CrashPoint {
	return []CrashPoint{Planned, Claimed, Executed, Published, Committed}
}

// FailureOf turns an error into what state keeps of it.
func FailureOf(err error, key state.BatchKey) state.Failure {
	f := fault.Of(err)
	message := f.Message
	if f.Err != nil {
		message += ": " + f.Err.Error()
	}
	return state.Failure{Kind: f.Kind, Retryable: f.Retryable, Place: f.Place, Message: message, Hint: f.Hint, Detail: f.Detail, Node: key.Node, Batch: key.Batch}
}

// Interrupted reports whether an error only says that somebody asked to stop.
func Interrupted(err error) bool {
	return fault.Of(err).Kind == fault.Canceled || errors.Is(err, context.Canceled)
}
