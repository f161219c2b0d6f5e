package state

// Status is where a run, node, batch or attempt is in its life.
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
	Lost      Status = "lost"      // attempt: its lease ended before it did
)

// transitions lists every legal move of each kind of thing: the one place
// that says so. docs/state-machine.md shows it as a diagram, and a test
// compares the two.
var transitions = map[string]map[Status][]Status{
	"run": {
		Running: {Complete, Failed, Stopped},
		Failed:  {Running},
		Stopped: {Running},
	},
	"node": {
		Pending: {Running, Failed, Stopped}, // Failed: it could not be planned
		Running: {Succeeded, Failed, Stopped},
		Failed:  {Pending, Running}, // Pending: it was not planned
		Stopped: {Pending, Running},
	},
	"batch": {
		Pending: {Claimed},
		Claimed: {Succeeded, Failed, Pending},
		Failed:  {Pending},
	},
	"attempt": {
		Claimed: {Succeeded, Failed, Released, Lost},
	},
}

// CanMove reports whether a thing (run, node, batch, attempt) may go from one state to another.
func CanMove(thing string, from, to Status) bool {
	for _, s := range transitions[thing][from] {
		if s == to {
			return true
		}
	}
	return false
}

// Terminal reports whether a run, node or batch in this state will not move by itself.
func (s Status) Terminal() bool {
	switch s {
	case Succeeded, Complete, Failed, Stopped:
		return true
	}
	return false
}
