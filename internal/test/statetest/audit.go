package statetest

import (
	"context"
	"fmt"

	"thalweg/internal/store/state"
)

// Audit reads the events of a run and its nodes and holds them to what the
// states promise, whatever a store does in between. It knows nothing of how
// orders work on nodes (state.Command.On): it is told, by the events, what they
// did.
func Audit(ctx context.Context, s state.Store, key state.RunKey) error {
	orders := map[int64]state.Command{}
	own, err := allEvents(ctx, s, state.NodeKey{RunKey: key})
	if err != nil {
		return err
	}
	for _, e := range own {
		if e.Kind == state.OrderBegun {
			orders[e.Epoch] = *e.Command
		}
	}
	nodes, err := s.Nodes(ctx, key)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		events, err := allEvents(ctx, s, n.NodeKey)
		if err != nil {
			return err
		}
		a := audited{orders: orders, asks: n.Kind == state.KindGate, status: state.Pending, claims: map[int]claimed{},
			done: map[int]bool{}}
		for _, e := range events {
			if err := a.event(e); err != nil {
				return fmt.Errorf("event %d of %s (%s): %w", e.Seq, n.Name, e.Kind, err)
			}
		}
	}
	return nil
}

func allEvents(ctx context.Context, s state.Store, key state.NodeKey) (all []state.Event, err error) {
	for {
		some, err := s.Events(ctx, key, int64(len(all)), 0)
		if err != nil || len(some) == 0 {
			return all, err
		}
		all = append(all, some...)
	}
}

// audited is the state of a node as its events have told it so far.
type audited struct {
	orders   map[int64]state.Command
	status   state.Status
	epoch    int64
	dropped  bool
	asks     bool   // it is a gate
	planned  bool   // since it was begun again
	gate     string // digest that it waits for, or was decided upon
	approved bool
	claims   map[int]claimed // the latest of each batch
	done     map[int]bool    // batches that are
}

// claimed is an attempt. It is fenced once the node has heard of an order that
// ends what was claimed before.
type claimed struct {
	attempt int
	open    bool
	fenced  bool
}

func (a *audited) event(e state.Event) error {
	switch e.Kind {
	case state.NodePlanned:
		if a.status != state.Pending {
			return fmt.Errorf("planned while %s", a.status)
		}
		a.done, a.planned = map[int]bool{}, true
	case state.BatchClaimed:
		return a.claim(e)
	case state.BatchEnded:
		return a.end(e)
	case state.NodeHeard:
		if err := a.hear(e); err != nil {
			return err
		}
	case state.NodeMoved:
		if e.Status == state.Waiting {
			if a.approved {
				return fmt.Errorf("asked again after it was approved")
			}
			a.gate = e.Gate
		}
		if e.Status == state.Succeeded && a.asks && !a.planned {
			return fmt.Errorf("passed by a plan of before it was begun again")
		}
	}
	if e.Status != a.status && !state.CanMove("node", a.status, e.Status) {
		return fmt.Errorf("from %s to %s", a.status, e.Status)
	}
	a.status = e.Status
	return nil
}

func (a *audited) claim(e state.Event) error {
	before := a.claims[*e.Batch]
	switch {
	case a.status != state.Running:
		return fmt.Errorf("batch %d claimed while the node is %s", *e.Batch, a.status)
	case before.open:
		return fmt.Errorf("batch %d claimed while attempt %d has it", *e.Batch, before.attempt)
	case a.done[*e.Batch]:
		return fmt.Errorf("batch %d claimed although it is done", *e.Batch)
	case e.Attempt != before.attempt+1:
		return fmt.Errorf("attempt %d of batch %d comes behind %d", e.Attempt, *e.Batch, before.attempt)
	}
	a.claims[*e.Batch] = claimed{attempt: e.Attempt, open: true}
	return nil
}

func (a *audited) end(e state.Event) error {
	c := a.claims[*e.Batch]
	if c.attempt != e.Attempt || !c.open {
		return fmt.Errorf("attempt %d of batch %d ends, which has ended: %d is the latest", e.Attempt,
			*e.Batch, c.attempt)
	}
	if c.fenced && e.Status != state.Lost { // its lease may end all the same
		return fmt.Errorf("attempt %d of batch %d is %s behind an order that ended it", e.Attempt, *e.Batch, e.Status)
	}
	c.open = false
	a.claims[*e.Batch] = c
	a.done[*e.Batch] = e.Status == state.Succeeded
	return nil
}

// hear follows an order, by what it is called and what the event says it did.
func (a *audited) hear(e state.Event) error {
	o, begun := a.orders[e.Epoch]
	switch {
	case !begun || e.Epoch <= a.epoch:
		return fmt.Errorf("order %d heard behind %d, or never begun", e.Epoch, a.epoch)
	case a.dropped:
		return fmt.Errorf("%s of a dropped run", o.Kind)
	}
	a.epoch = e.Epoch
	decides := o.Kind == state.CommandApprove || o.Kind == state.CommandReject
	switch d := e.Decision; {
	case d == nil:
	case !decides || d.Approved != (o.Kind == state.CommandApprove) || d.Actor != o.Actor:
		return fmt.Errorf("a decision that %s did not make", o.Kind)
	case a.status != state.Waiting:
		return fmt.Errorf("a decision about a node that is %s", a.status)
	case d.Digest != a.gate:
		return fmt.Errorf("a decision about %q, and what was shown is %q", d.Digest, a.gate)
	default:
		a.approved = d.Approved
	}
	if a.status == state.Waiting && (e.Status == state.Pending || decides && e.Status != state.Waiting) &&
		e.Decision == nil && o.Kind != state.CommandRedo {
		return fmt.Errorf("%s lets it wait no more, without a decision", o.Kind)
	}
	switch o.Kind {
	case state.CommandPause, state.CommandUnpause:
		return nil
	case state.CommandDrop:
		a.dropped = true
	case state.CommandRedo, state.CommandReopen:
		a.again(e, o)
	}
	for batch, c := range a.claims {
		c.fenced = c.fenced || c.open
		a.claims[batch] = c
	}
	return nil
}

// again forgets what an order lets a node do again.
func (a *audited) again(e state.Event, o state.Command) {
	for batch, c := range a.claims { // what was under way is given back, and lost
		if c.open && e.Status == state.Running || c.open && e.Status == state.Pending {
			a.claims[batch] = claimed{attempt: c.attempt}
		}
	}
	renewed := a.status == state.Invalidated || a.status == state.Failed && a.asks && !a.planned
	for _, r := range o.Nodes {
		if o.Kind != state.CommandRedo || r.Node != e.Node {
			continue
		}
		renewed = true
		for _, batch := range r.Batches {
			delete(a.done, batch)
		}
		if len(r.Batches) == 0 || r.Replan {
			a.done = map[int]bool{}
		}
	}
	if renewed {
		a.approved, a.gate, a.planned = false, "", false
		if a.status == state.Invalidated {
			a.done = map[int]bool{}
		}
	}
}
