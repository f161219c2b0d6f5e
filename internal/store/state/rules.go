package state

import (
	"time"

	"thalweg/internal/base/fault"
)

// What a store decides about a value that it has read is decided here, once
// for all stores.

// Begins decides whether an order may begin in a run. begun says that it has
// already, by the same call.
func (c Command) Begins(run Run) (begun bool, err error) {
	if run.Epoch == c.Epoch && run.Command != nil && run.Command.Token == c.Token {
		return true, nil
	}
	if _, ok := c.Leads(run); !ok || run.Epoch+1 != c.Epoch || run.Status != c.From || run.Command.Pending() {
		return false, ErrConflict
	}
	return false, nil
}

// Ends gives the run as it is when its order is carried out.
func (c *Command) Ends(run Run, now time.Time) Run {
	done := *c
	done.Done = true
	run.Command = &done
	if to, _ := c.Leads(run); to != run.Status {
		run.Status, run.Finished, run.Failure = to, time.Time{}, nil
		if to.Terminal() {
			run.Finished = now
		}
	}
	run.Limit = c.limitAfter(run.Limit)
	switch {
	case c.Kind == CommandFail:
		run.Failure = c.Cause
	case c.Kind == CommandInvalidate && len(c.Nodes) == 0:
		mark := c.Mark
		run.Invalidated = &mark
	case c.Kind == CommandDrop:
		mark := c.Mark
		run.Dropped = &mark
	}
	return run
}

// Kept gives a move without what its target does not keep.
func (m Move) Kept() Move {
	if m.To != Failed {
		m.Failure = nil
	}
	if m.To != Waiting {
		m.Gate, m.GateDigest = nil, ""
	}
	return m
}

// On decides whether a node may make a move. made says that it has already.
func (m Move) On(n Node) (made bool, err error) {
	switch {
	case n.Epoch == m.Epoch && n.Status == m.To:
		return true, nil
	case n.Epoch != m.Epoch || n.Status != m.From:
		return false, ErrConflict
	case m.To == Waiting && n.Decision != nil: // it has been decided
		return false, ErrConflict
	}
	return false, nil
}

// Moves is a node when it has made a move.
func (m Move) Moves(n Node) Node {
	kept := m.Kept()
	n.Status, n.Failure, n.Finished = m.To, kept.Failure, finishedAt(m.To, m.Now)
	if n.Decision == nil { // else what was decided upon stays beside it
		n.Gate, n.GateDigest = kept.Gate, kept.GateDigest
	}
	return n
}

// Tells returns the data of the event of a move.
func (m Move) Tells() EventData {
	kept := m.Kept()
	return EventData{Status: m.To, Failure: kept.Failure, Gate: kept.GateDigest}
}

// finishedAt is the moment to record for a node that moves to a status.
func finishedAt(to Status, now time.Time) time.Time {
	if to.Terminal() {
		return now
	}
	return time.Time{}
}

// Take gives a role to an owner, if it may have it.
func (r *Role) Take(owner string, now, until time.Time) bool {
	switch {
	case r.Owner == owner:
		if until.Before(r.Until) {
			until = r.Until
		}
	case r.Owner != "" && !r.Until.Before(now):
		return false
	default:
		r.Owner = owner
		r.Term++
	}
	r.Until = until
	return true
}

// ClaimAnswer is the result of a claim request.
type ClaimAnswer int

// The answers.
const (
	ClaimRefused ClaimAnswer = iota
	ClaimTaken               // the batch is free
	ClaimExpired             // it is, once its attempt is lost
	ClaimHeld                // the same request has it already
)

// On decides a request for a batch of a node, whose latest attempt was claimed
// with token. phase is the node's first one that is not done.
func (b ClaimRequest) On(n Node, batch Batch, token string, phase int) ClaimAnswer {
	switch {
	case batch.Status == Claimed && batch.Attempt == b.Attempt+1 && batch.Owner == b.Owner && token == b.Token &&
		token != "" &&
		n.Holds(batch.Epoch):
		return ClaimHeld
	case n.Epoch != b.Epoch || n.Status != Running:
		return ClaimRefused
	case batch.Attempt != b.Attempt || batch.Phase != phase:
		return ClaimRefused
	case batch.Status == Pending && !b.Now.Before(batch.NotBefore):
		return ClaimTaken
	case batch.Status == Claimed && batch.Lease.Before(b.Now):
		return ClaimExpired
	}
	return ClaimRefused
}

// Holds reports whether a claim that was given at an epoch may still be acted on.
func (n Node) Holds(epoch int64) bool { return epoch >= n.Fence }

// CheckSpans refuses spans that no sequence may have.
func CheckSpans(at int64, spans []Span) error {
	for _, s := range spans {
		if s.From < 1 || s.To < s.From {
			return fault.New(fault.Bug, "a span of events from %d to %d", s.From, s.To)
		}
	}
	if at < 0 {
		return fault.New(fault.Bug, "a sequence of %d spans", at)
	}
	return nil
}

// Check refuses an outcome that no attempt may publish.
func (o Outcome) Check() error {
	seen := make(map[int]bool, len(o.Parts))
	for _, p := range o.Parts {
		if p.Key == "" || seen[p.Seq] {
			return fault.New(fault.Bug, "part %q has no key or shares its place %d with another", p.Key, p.Seq)
		}
		seen[p.Seq] = true
	}
	return nil
}

// CheckFailed refuses, of an attempt that failed, what only one that
// succeeded may publish.
func (o Outcome) CheckFailed() error {
	for _, p := range o.Parts {
		if p.Side == "" {
			return fault.New(fault.Bug, "a failed attempt publishes part %s of its table", p.Key)
		}
	}
	if len(o.Files) > 0 {
		return fault.New(fault.Bug, "a failed attempt publishes file %s", o.Files[0].URL)
	}
	return nil
}
