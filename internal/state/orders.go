package state

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Order is a decision about a whole run. It is recorded in the run's partition
// first, then each node hears of it in its own, then the run's status follows:
// whoever finds one half carried out carries on (Carry). Orders of a run are
// numbered, and a node that has heard a later one ignores an earlier one, so
// that a worker that wakes up late repeats nothing.
type Order struct {
	Epoch int64     `json:"epoch"` // its number: 1, 2, 3 … in a run
	Token string    `json:"token"` // its giver's own, so that it can be repeated
	Kind  OrderKind `json:"kind"`
	From  Status    `json:"from"` // the run's when it was given
	Mark            // who gave it, when, why
	Nodes []Redo    `json:"nodes,omitempty"`   // that it is about; none: all of the run's
	Cause *Failure  `json:"failure,omitempty"` // of OrderFail
	Done  bool      `json:"done,omitempty"`    // carried out
}

// OrderKind is what an order demands. The texts are stored.
type OrderKind string

// The orders. Each makes every claim that was given before it worthless.
const (
	OrderStop       OrderKind = "stop"       // nothing more is done; a running run becomes Stopped
	OrderFail       OrderKind = "fail"       // likewise; it becomes Failed
	OrderReopen     OrderKind = "reopen"     // go on: what failed, stopped or was under way is done again
	OrderRedo       OrderKind = "redo"       // go on, and do these nodes or batches again although they are done
	OrderInvalidate OrderKind = "invalidate" // nobody may read these nodes' tables any more
	OrderApprove    OrderKind = "approve"    // these nodes need not wait any more
	OrderReject     OrderKind = "reject"     // these nodes waited in vain: they fail
)

// Redo names a node that an order is about, and for OrderRedo what of it is to
// be done again.
type Redo struct {
	Node    string `json:"node"`
	Batches []int  `json:"batches,omitempty"` // none: all
	Replan  bool   `json:"replan,omitempty"`  // its inputs have changed: its plan goes, too
}

// about finds what an order says of a node.
func (o Order) about(node string) (Redo, bool) {
	i := slices.IndexFunc(o.Nodes, func(r Redo) bool { return r.Node == node })
	if i >= 0 {
		return o.Nodes[i], true
	}
	return Redo{}, len(o.Nodes) == 0
}

// Pending reports whether there is an order that is not carried out yet.
func (o *Order) Pending() bool { return o != nil && !o.Done }

// Concerns reports whether a node has to hear of the order. What goes on in
// nodes that need not is not disturbed.
func (o Order) Concerns(node string) bool {
	switch o.Kind {
	case OrderStop, OrderFail, OrderReopen:
		return true
	case OrderRedo:
		if o.From != Running { // all others go on where they were
			return true
		}
	}
	_, about := o.about(node)
	return about
}

// Leads gives the status that a run gets by an order; ok is false if it cannot
// have it as it is.
func (o Order) Leads(run Run) (to Status, ok bool) {
	switch o.Kind {
	case OrderStop:
		return Stopped, run.Status == Running
	case OrderFail:
		return Failed, run.Status == Running
	case OrderReopen:
		return Running, run.Status != Complete && run.Invalidated == nil
	case OrderRedo:
		return Running, len(o.Nodes) > 0 && run.Invalidated == nil
	case OrderInvalidate:
		return run.Status, run.Status != Running
	case OrderApprove, OrderReject:
		return run.Status, len(o.Nodes) > 0 && run.Status == Running
	}
	return run.Status, false
}

// Effect is what an order does to a node.
type Effect struct {
	Status Status
	Unplan bool  // its plan and batches do not count any more
	Renew  bool  // its generation rises: something that was done is done again
	Free   bool  // failed and claimed batches go back to Pending, with no try used up; claimed attempts become Lost
	All    bool  // so do all others
	These  []int // so do these
}

// On says what becomes of a node in a status that hears of the order. A batch
// that goes back to Pending withdraws what its latest attempt published.
func (o Order) On(name string, status Status, planned bool) Effect {
	e := Effect{Status: status}
	again := Pending
	if planned {
		again = Running
	}
	redo, meant := o.about(name)
	switch o.Kind {
	case OrderStop, OrderFail:
		if status == Pending || status == Waiting || status == Running {
			e.Status = Stopped
		}
	case OrderReopen, OrderRedo:
		switch {
		case o.Kind == OrderRedo && meant, status == Invalidated:
			e = Effect{Status: again, Renew: true, Free: true, All: len(redo.Batches) == 0, These: redo.Batches}
			if redo.Replan {
				e = Effect{Status: Pending, Renew: true, Unplan: true, Free: true, All: true}
			}
		case status == Failed || status == Stopped:
			e.Status = again
			e.Free = true
		default:
			e.Free = status == Running
		}
	case OrderInvalidate:
		e.Status = Invalidated
	case OrderApprove:
		if status == Waiting {
			e.Status = Pending
		}
	case OrderReject:
		if status == Waiting {
			e.Status = Failed
		}
	}
	return e
}

// Direct gives an order to a run and carries it out. It chooses the number; an
// order before it that is not carried out yet is carried out first. ErrConflict
// if a run in its status cannot have it.
func Direct(ctx context.Context, s Store, key RunKey, o Order) error {
	for {
		run, err := s.Run(ctx, key)
		if err != nil {
			return fmt.Errorf("read run %d: %w", key.Run, err)
		}
		if err := Carry(ctx, s, run, o.Time); err != nil {
			return err
		}
		if run.Order != nil && run.Order.Token == o.Token {
			return nil // given before, by a call whose answer was lost
		}
		if !run.Order.Pending() {
			if _, ok := o.Leads(run); !ok {
				return fmt.Errorf("%s run %d, which is %s: %w", o.Kind, key.Run, run.Status, ErrConflict)
			}
			o.Epoch, o.From = run.Epoch+1, run.Status
			// In the way: another order, or the run's own progress. It is looked at again.
			if err := s.BeginOrder(ctx, key, o); err != nil && !errors.Is(err, ErrConflict) && !errors.Is(err, ErrUnknown) {
				return err
			}
		}
	}
}

// Carry carries out a run's order, if it has one that is not carried out yet.
func Carry(ctx context.Context, s Store, run Run, now time.Time) error {
	if !run.Order.Pending() {
		return nil
	}
	nodes, err := s.Nodes(ctx, run.RunKey)
	if err != nil {
		return fmt.Errorf("read the nodes of run %d: %w", run.Run, err)
	}
	for _, n := range nodes {
		if !run.Order.Concerns(n.Name) || n.Epoch >= run.Order.Epoch {
			continue
		}
		if err := s.Hear(ctx, n.NodeKey, *run.Order); err != nil {
			return fmt.Errorf("%s node %s: %w", run.Order.Kind, n.Name, err)
		}
	}
	err = s.EndOrder(ctx, run.RunKey, run.Order.Epoch, now)
	if errors.Is(err, ErrConflict) {
		return nil // others have carried it out, and there is a later one
	}
	return err
}
