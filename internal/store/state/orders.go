package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	Cause *Failure  `json:"failure,omitempty"` // of OrderFail and OrderReject
	Done  bool      `json:"done,omitempty"`    // carried out
}

// OrderKind names the demand of an order. The texts are stored. The texts are stored.
type OrderKind string

// The orders. Each but the pauses makes every claim that was given before it worthless.
const (
	// what is under way ends as it does, nothing more is begun; a running run becomes Paused
	OrderPause      OrderKind = "pause"
	OrderUnpause    OrderKind = "unpause"    // a paused run goes on
	OrderStop       OrderKind = "stop"       // nothing more is done; a running run becomes Stopped
	OrderFail       OrderKind = "fail"       // likewise; it becomes Failed
	OrderReopen     OrderKind = "reopen"     // go on: what failed, stopped or was under way is done again
	OrderRedo       OrderKind = "redo"       // go on, and do these nodes or batches again although they are done
	OrderInvalidate OrderKind = "invalidate" // nobody may read these nodes' tables any more
	// these nodes need not wait any more, if they still wait for what was decided
	OrderApprove OrderKind = "approve"
	OrderReject  OrderKind = "reject" // likewise they waited in vain: they fail, with Cause
	// nobody reads, continues or lists the run any more, and what its nodes keep may go (Store.Purge)
	OrderDrop OrderKind = "drop"
)

// Redo names a node that an order is about, and for OrderRedo what of it is to
// be done again; for OrderApprove and OrderReject what was decided upon. With a node
// that is done again its order names, with Replan, all that have read it, themselves
// or through others; in a run that is not over all that may come to.
type Redo struct {
	Node    string `json:"node"`
	Batches []int  `json:"batches,omitempty"` // none: all
	Replan  bool   `json:"replan,omitempty"`  // its inputs have changed: its plan goes, too
	// of the gate that was shown: a node whose Gate has another one ignores the order
	Digest string `json:"digest,omitempty"`
	Role   string `json:"role,omitempty"` // as which somebody decides
	// RoleVerified says that Role is not by their own account.
	RoleVerified bool            `json:"role_verified,omitempty"`
	Answers      json.RawMessage `json:"answers,omitempty"` // to what the gate asks; opaque here
}

// TokenAgain begins the tokens of orders that nobody has given: a node has to be
// planned again, because what it reads is not what it was.
const TokenAgain = "planned again: "

// OfPeople reports whether somebody has given the order, and not the machinery.
func (o Order) OfPeople() bool {
	return o.Kind != OrderFail && !strings.HasPrefix(o.Token, TokenAgain)
}

// about finds what an order says of a node.
func (o Order) about(node string) (Redo, bool) {
	i := slices.IndexFunc(o.Nodes, func(r Redo) bool { return r.Node == node })
	if i >= 0 {
		return o.Nodes[i], true
	}
	return Redo{}, len(o.Nodes) == 0
}

// ReasonAgain is the reason of a stop that the next order of the same giver ends: parts of the run are done
// again.
const ReasonAgain = "parts of it are done again"

// AboutToGoOn reports whether a run is stopped for a moment, unless whoever
// stopped it has died since.
func (r Run) AboutToGoOn() bool {
	return r.Status == Stopped && r.Order != nil && r.Order.Kind == OrderStop && r.Order.Reason == ReasonAgain
}

// Pending reports whether there is an order that is not carried out yet.
func (o *Order) Pending() bool { return o != nil && !o.Done }

// Behind reports whether a node has heard of an order that began after the run was
// read: others may not have heard of it yet. Who has read them so must not
// conclude anything from one about another, but read the run again.
func (r Run) Behind(n Node) bool { return n.Epoch > r.Epoch }

// GoesOn reports whether a run is running, or will be once its order is carried out.
func (r Run) GoesOn() bool {
	if r.Order.Pending() {
		to, _ := r.Order.Leads(r)
		return to == Running
	}
	return r.Status == Running
}

// Concerns reports whether a node has to hear of the order. What goes on in
// nodes that need not is not disturbed.
func (o Order) Concerns(node string) bool {
	switch o.Kind {
	case OrderStop, OrderFail, OrderReopen, OrderPause, OrderUnpause, OrderDrop:
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
	alive := run.Status == Running || run.Status == Paused
	void := run.Invalidated != nil || run.Dropped != nil
	switch o.Kind {
	case OrderStop:
		return Stopped, alive
	case OrderFail:
		return Failed, alive
	case OrderPause:
		return Paused, run.Status == Running && len(o.Nodes) == 0
	case OrderUnpause:
		return Running, run.Status == Paused && len(o.Nodes) == 0
	case OrderReopen:
		return Running, run.Status != Complete && !void
	case OrderRedo:
		return Running, len(o.Nodes) > 0 && !void
	case OrderInvalidate:
		return run.Status, !alive && run.Dropped == nil
	case OrderApprove, OrderReject:
		return run.Status, len(o.Nodes) > 0 && alive
	case OrderDrop:
		return run.Status, !alive && run.Dropped == nil && len(o.Nodes) == 0
	}
	return run.Status, false
}

// Direct gives an order to a run and carries it out. It chooses the number; an
// order before it that is not carried out yet is carried out first. ErrConflict
// if a run in its status cannot have it.
//
// A run that was over and goes on is noted as open before and after that: the
// first note is for the case that this process dies, the second for that of
// somebody who finds the first one wrong before the order has begun.
func Direct(ctx context.Context, s Store, key RunKey, o Order) error {
	return Decide(ctx, s, key, o.Token, o.Time, func(Run) (Order, error) { return o, nil })
}

// Decide gives the order that is decided on a run as it is, and carries it out
// as Direct does. If the run's status or its latest order is another one when
// the order begins, it is decided again.
func Decide(ctx context.Context, s Store, key RunKey, token string, now time.Time,
	decide func(Run) (Order, error)) error {
	var reopens *Note
	for {
		run, err := s.Run(ctx, key)
		if err != nil {
			return fmt.Errorf("read run %d: %w", key.Run, err)
		}
		if err := Carry(ctx, s, run, now); err != nil {
			return err
		}
		if run.Order != nil && run.Order.Token == token { // begun, here or by a call whose answer was lost
			return directed(ctx, s, run, reopens)
		}
		if run.Order.Pending() {
			continue
		}
		o, err := decide(run)
		if err != nil {
			return err
		}
		to, ok := o.Leads(run)
		if !ok {
			return fmt.Errorf("%s run %d, which is %s: %w", o.Kind, key.Run, run.Status, ErrConflict)
		}
		if run.Status.Terminal() && !to.Terminal() {
			note := OpenNote(key.Run, token, o.Time)
			if err := s.PutNote(ctx, key.Workspace, note); err != nil {
				return fmt.Errorf("note that run %d is open: %w", key.Run, err)
			}
			reopens = &note
		}
		o.Epoch, o.From, o.Token = run.Epoch+1, run.Status, token
		// In the way: another order, or the run's own progress. It is looked at again.
		if err := s.BeginOrder(ctx, key, o); err != nil && !errors.Is(err, ErrConflict) && !errors.Is(err, ErrUnknown) {
			return err
		}
	}
}

// directed brings the note of a run up to date that an order was given to. A run
// whose order leads to an end is read again when that is carried out.
func directed(ctx context.Context, s Store, run Run, reopens *Note) error {
	if reopens != nil {
		if err := s.PutNote(ctx, run.Workspace, *reopens); err != nil {
			return fmt.Errorf("note that run %d is open: %w", run.Run, err)
		}
		return nil
	}
	if to, _ := run.Order.Leads(Run{Status: run.Order.From}); !to.Terminal() {
		return nil
	}
	return closeRun(ctx, s, run.RunKey)
}

// Carry carries out a run's order, if it has one that is not carried out yet. Who
// reads a table hears of it before who writes that: else, of two nodes that are
// done again in a run that goes on, the first could have new rows while a claim
// of the second, given before the order, still reads and commits.
func Carry(ctx context.Context, s Store, run Run, now time.Time) error {
	if !run.Order.Pending() {
		return nil
	}
	nodes, err := s.Nodes(ctx, run.RunKey)
	if err != nil {
		return fmt.Errorf("read the nodes of run %d: %w", run.Run, err)
	}
	for _, n := range slices.Backward(nodes) {
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
