package state

import (
	"time"

	"thalweg/internal/fault"
)

// What a store decides about a value that it has read is decided here, once
// for all stores.

// Begins decides whether an order may begin in a run. begun says that it has
// already, by the same call.
func (o Order) Begins(run Run) (begun bool, err error) {
	if run.Epoch == o.Epoch && run.Order != nil && run.Order.Token == o.Token {
		return true, nil
	}
	if _, ok := o.Leads(run); !ok || run.Epoch+1 != o.Epoch || run.Status != o.From || run.Order.Pending() {
		return false, ErrConflict
	}
	return false, nil
}

// Ends gives the run as it is when its order is carried out.
func (o *Order) Ends(run Run, now time.Time) Run {
	done := *o
	done.Done = true
	run.Order = &done
	if to, _ := o.Leads(run); to != run.Status {
		run.Status, run.Finished, run.Failure = to, time.Time{}, nil
		if to.Terminal() {
			run.Finished = now
		}
	}
	switch {
	case o.Kind == OrderFail:
		run.Failure = o.Cause
	case o.Kind == OrderInvalidate && len(o.Nodes) == 0:
		mark := o.Mark
		run.Invalidated = &mark
	}
	return run
}

// Kept gives a move without what its target does not keep.
func (m Move) Kept() Move {
	if m.To != Failed {
		m.Failure = nil
	}
	if m.To != Waiting {
		m.Gate = nil
	}
	return m
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

// BidAnswer is what becomes of a bid.
type BidAnswer int

// The answers.
const (
	BidRefused BidAnswer = iota
	BidTaken             // the batch is free
	BidExpired           // it is, once its attempt is lost
	BidHeld              // the same bid has it already
)

// On decides a bid for a batch of a node, whose latest attempt was claimed
// with token.
func (b Bid) On(n Node, batch Batch, token string) BidAnswer {
	switch {
	case n.Epoch != b.Epoch || n.Status != Running:
		return BidRefused
	case batch.Status == Claimed && batch.Attempt == b.Attempt+1 && batch.Owner == b.Owner && token == b.Token && token != "":
		return BidHeld
	case batch.Attempt != b.Attempt:
		return BidRefused
	case batch.Status == Pending && !b.Now.Before(batch.NotBefore):
		return BidTaken
	case batch.Status == Claimed && batch.Lease.Before(b.Now):
		return BidExpired
	}
	return BidRefused
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
