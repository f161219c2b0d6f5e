package state

import "thalweg/internal/base/fault"

// Effect describes an order's effect on a node and on its batches.
type Effect struct {
	Status   Status
	Fences   bool      // claims that were given before are worth nothing
	Gate     bool      // what it waits for, or was decided upon, stays
	Decision *Decision // that the node has then
	Failure  *Failure  // likewise
	Dropped  bool      // likewise

	Unplan bool  // its plan and batches do not count any more
	Renew  bool  // its generation rises: something that was done is done again
	Free   bool  // failed and claimed batches go back to Pending, with no try used up; claimed attempts become Lost
	All    bool  // so do all others
	These  []int // so do these
}

// On says what becomes of a node, without its batches' sake, that hears of the
// order. A batch that goes back to Pending withdraws what its latest attempt
// published.
func (c Command) On(n Node) Effect {
	e := Effect{Status: n.Status, Fences: true, Decision: n.Decision, Dropped: n.Dropped}
	again := Pending
	if n.PlanDigest != "" {
		again = Running
	}
	redo, meant := c.about(n.Name)
	switch c.Kind {
	case CommandPause:
		e.Fences = false
		if n.Status == Pending || n.Status == Running {
			e.Status = Paused
		}
	case CommandUnpause:
		e.Fences = false
		if n.Status == Paused {
			e.Status = again
		}
	case CommandStop, CommandFail:
		if n.Status == Pending || n.Status == Waiting || n.Status == Running || n.Status == Paused {
			e.Status = Stopped
		}
	case CommandReopen, CommandRedo:
		e.goOn(n, redo, c.Kind == CommandRedo && meant, again)
	case CommandInvalidate:
		e.Status = Invalidated
	case CommandDrop:
		e.Status, e.Dropped = Invalidated, true
	case CommandApprove, CommandReject:
		if n.Status == Waiting && redo.Digest == n.GateDigest {
			c.decide(&e, redo)
		}
	}
	e.Gate = e.Status == Waiting || e.Decision != nil
	if e.Status == n.Status && e.Status == Failed {
		e.Failure = n.Failure
	}
	return e
}

// goOn lets a node go on, or does it again.
func (e *Effect) goOn(n Node, redo CommandNode, redone bool, again Status) {
	switch {
	case redone, n.Status == Invalidated:
		e.Status, e.Renew, e.Free, e.All, e.These = again, true, true, len(redo.Batches) == 0, redo.Batches
		if redo.Replan || n.Kind == KindGate { // a gate asks anew: its plan says who has let it pass
			e.Status, e.Unplan, e.All, e.These = Pending, true, true, nil
		}
		e.Decision = nil // what was decided upon is made again
	case n.Status == Failed || n.Status == Stopped || n.Status == Paused:
		e.Status, e.Free = again, true
		if n.Decision != nil && (n.Status == Failed || !n.Decision.Approved) {
			e.Decision = nil // it is asked again: it was rejected, or the approval did not stand
		}
	default:
		e.Free = n.Status == Running
	}
}

// decide carries out a decision about a node that waits for it. One that was
// approved while its run is paused goes on with it.
func (c Command) decide(e *Effect, redo CommandNode) {
	e.Decision = &Decision{Approved: c.Kind == CommandApprove, Mark: c.Mark, Role: redo.Role,
		RoleVerified: redo.RoleVerified, Digest: redo.Digest,
		Answers: redo.Answers, Token: c.Token}
	switch {
	case c.Kind == CommandReject:
		e.Status, e.Failure = Failed, c.Cause
		if e.Failure == nil {
			e.Failure = &Failure{Kind: fault.Canceled, Message: "rejected by " + c.Actor, Detail: c.Reason,
				Node: redo.Node, Batch: -1}
		}
	case c.From == Paused:
		e.Status = Paused
	default:
		e.Status = Pending
	}
}

// Tells returns the data of the event by which a node records an order.
func (e Effect) Tells(before, after Node) EventData {
	data := EventData{Epoch: after.Epoch, Status: after.Status, Generation: after.Generation}
	if e.Decision != before.Decision {
		data.Decision = e.Decision
	}
	return data
}

// Hears is a node when it has heard of an order that does this to it.
func (e Effect) Hears(n Node, c Command) Node {
	if e.Status != n.Status {
		if n.Status = e.Status; e.Status != Invalidated || n.Finished.IsZero() { // what is invalidated has ended when it did
			n.Finished = finishedAt(e.Status, c.Time)
		}
	}
	n.Epoch, n.Decision, n.Failure, n.Dropped = c.Epoch, e.Decision, e.Failure, e.Dropped
	if e.Fences {
		n.Fence = c.Epoch
	}
	if e.Renew {
		n.Generation++
	}
	if e.Unplan {
		n.Plan, n.PlanDigest, n.InputDigest, n.ReusedFrom = nil, "", "", nil
	}
	if !e.Gate {
		n.Gate, n.GateDigest = nil, ""
	}
	return n
}
