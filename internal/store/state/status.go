package state

import "slices"

// Status is the state of a run, node, batch or attempt in its life.
type Status string

// The states. Their texts are stored and printed in JSON: they do not change.
const (
	Pending   Status = "pending"   // node: inputs not complete; batch: can be taken
	Running   Status = "running"   // run, node
	Claimed   Status = "claimed"   // batch, attempt
	Succeeded Status = "succeeded" // batch, attempt, node
	Complete  Status = "complete"  // run: every node succeeded
	Failed    Status = "failed"    // batch, attempt, node, run
	Stopped   Status = "stopped"   // node, run: somebody asked
	Released  Status = "released"  // attempt: given back by a worker that shut down
	Lost      Status = "lost"      // attempt: its lease ended before it did, or an order came

	Paused      Status = "paused"      // run, node: what is under way ends, nothing more is begun
	Waiting     Status = "waiting"     // node: somebody has to decide first
	Invalidated Status = "invalidated" // node: nobody may read its table any more
)

// transitions lists every legal move of each kind of thing: the one place
// that says so. docs/state-machine.md shows it as a diagram, and a test
// compares the two.
var transitions = map[string]map[Status][]Status{
	"run": {
		Running:  {Complete, Failed, Stopped, Paused},
		Paused:   {Running, Failed, Stopped},
		Failed:   {Running},
		Stopped:  {Running},
		Complete: {Running}, // something of it is done again
	},
	"node": {
		Pending:     {Waiting, Running, Failed, Stopped, Paused, Invalidated},   // Failed: it could not be planned
		Waiting:     {Pending, Failed, Stopped, Paused, Invalidated},            // Paused: approved while its run is
		Running:     {Succeeded, Failed, Stopped, Paused, Pending, Invalidated}, // Pending: to be planned again
		Paused:      {Pending, Running, Stopped, Invalidated},
		Succeeded:   {Pending, Running, Invalidated},
		Failed:      {Pending, Running, Invalidated}, // Pending: it was not planned, or is to be again
		Stopped:     {Pending, Running, Invalidated},
		Invalidated: {Pending, Running},
	},
	"batch": {
		Pending:   {Claimed},
		Claimed:   {Succeeded, Failed, Pending},
		Failed:    {Pending},
		Succeeded: {Pending}, // it is done again
	},
	"attempt": {
		Claimed: {Succeeded, Failed, Released, Lost},
	},
}

// settled lists the moves of a node that a coordinator makes by itself
// (Store.MoveNode); a plan and orders make the others.
var settled = map[Status][]Status{
	Pending: {Waiting, Failed},
	Waiting: {Failed}, // its time is over
	Running: {Succeeded, Failed},
}

// Settles reports whether a coordinator may move a node so.
func Settles(from, to Status) bool { return slices.Contains(settled[from], to) }

// CanMove reports whether a thing (run, node, batch, attempt) may go from one state to another.
func CanMove(thing string, from, to Status) bool {
	return slices.Contains(transitions[thing][from], to)
}

// Terminal reports whether a run, node or batch in this state will not move by itself.
func (s Status) Terminal() bool {
	switch s {
	case Succeeded, Complete, Failed, Stopped, Invalidated:
		return true
	}
	return false
}
