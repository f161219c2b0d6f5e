package explore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"thalweg/internal/run/orders"
	"thalweg/internal/store/state"
)

// person is the actor's place among the actors, behind the workers.
const person = 2

// personState is the memory of the person who gives orders.
type personState struct {
	seen string  // what a gate has shown that the person has looked at before
	todo []*call // to carry out the order that was given
}

func (s *personState) append(to []byte) []byte {
	to = append(append(to, "\nperson "...), s.seen...)
	for _, c := range s.todo {
		to = append(append(to, ' '), c.name...)
	}
	return to
}

// Choice is an order that the person may give.
type Choice string

// The choices. Those that begin something anew are made as package orders does.
const (
	Stop  Choice = "stop"
	Pause Choice = "pause"
	GoOn  Choice = "go on" // what is over; what was invalidated is done again, with all that reads it
	// a batch of the first node, with all that has read it, in a run that is over
	Again          Choice = "again"
	AgainAlive     Choice = "again, alive"     // the first node, with all that reads it, in one that is not
	Invalidate     Choice = "invalidate"       // the run
	InvalidateNode Choice = "invalidate first" // its first node
	DecideLate     Choice = "decide late"      // about what a gate has shown earlier
)

// Choices lists them.
var Choices = []Choice{Stop, Pause, GoOn, Again, AgainAlive, Invalidate, InvalidateNode, DecideLate}

// personSteps lists what the person may do next: look at a gate, give an order,
// carry it out, go away in the middle of that.
func (w *world) personSteps() []step {
	p := &w.person
	away := step{"the person goes away",
		func(w *world) error { w.person.todo, w.unheard[person] = nil, nil; return nil }}
	switch {
	case w.unheard[person] != nil:
		return append(w.ask(w.unheard[person]), away)
	case len(p.todo) > 0:
		return append(w.ask(p.todo[0]), away)
	case w.ran.Command.Pending():
		return nil
	}
	out := w.give(state.Command{Kind: state.CommandUnpause}, true)
	shown := ""
	if g := w.at[gateAt]; g.Status == state.Waiting {
		shown = g.GateDigest
		for _, o := range decisions(shown) {
			out = append(out, w.give(o, true)...)
		}
	}
	rest := w.bounds.Orders[w.spent.orders:]
	if len(rest) == 0 {
		return out
	}
	if shown != "" && p.seen != shown && slices.Contains(rest, DecideLate) {
		out = append(out, step{"the person looks at " + shown,
			func(w *world) error { w.person.seen = shown; return nil }})
	}
	for _, o := range w.orders(rest[0]) {
		out = append(out, w.give(o, false)...)
	}
	return out
}

// give is to give an order, if the run may have it. What it was decided on is read
// in the moment in which it begins: it is conditional on the order before it and
// on the run's status, so that reading it earlier leads to nothing else
// (state.Decide begins anew), but for what a gate has shown.
func (w *world) give(o state.Command, free bool) []step {
	if _, ok := o.Leads(w.ran.Run); !ok {
		return nil
	}
	c := w.begin(person, w.ran.Run, o)
	c.heard = func(w *world, err error) {
		if !free {
			w.spent.orders++
		}
		if err == nil {
			w.person.todo = w.carry(person, *c.order)
		}
	}
	return w.ask(c)
}

// decisions are those about what a gate has shown.
func decisions(shown string) []state.Command {
	about := []state.CommandNode{{Node: gate, Digest: shown}}
	return []state.Command{{Kind: state.CommandApprove, Nodes: about}, {Kind: state.CommandReject, Nodes: about}}
}

// orders returns the commands that a choice may lead to.
func (w *world) orders(choice Choice) []state.Command {
	over := w.ran.Status.Terminal()
	switch choice {
	case Stop:
		return []state.Command{{Kind: state.CommandStop}}
	case Pause:
		return []state.Command{{Kind: state.CommandPause}}
	case Invalidate:
		return []state.Command{{Kind: state.CommandInvalidate}}
	case InvalidateNode:
		return []state.Command{{Kind: state.CommandInvalidate, Nodes: []state.CommandNode{{Node: first}}}}
	case GoOn:
		if over {
			return w.again(orders.RedoSelection{})
		}
	case Again:
		if over {
			return w.again(orders.RedoSelection{Batches: []orders.Batches{{Node: first}}})
		}
	case AgainAlive:
		if !over {
			return []state.Command{replan(first, gate, second)}
		}
	case DecideLate:
		if w.person.seen != "" && w.person.seen != w.at[gateAt].GateDigest {
			return decisions(w.person.seen)
		}
	}
	return nil
}

// again is the order that a wish comes to.
func (w *world) again(wish orders.RedoSelection) []state.Command {
	c, err := orders.Close(context.Background(), w.store.Open(), w.ran.Run, wish)
	switch {
	case err != nil: // there is nothing to do again
		return nil
	case len(c.Redo) > 0:
		return []state.Command{{Kind: state.CommandRedo, Nodes: c.Redo}}
	}
	return []state.Command{{Kind: state.CommandReopen}}
}

// replan is to do nodes again from the beginning.
func replan(nodes ...string) state.Command {
	o := state.Command{Kind: state.CommandRedo}
	for _, name := range nodes {
		o.Nodes = append(o.Nodes, state.CommandNode{Node: name, Replan: true})
	}
	return o
}

// begin asks for an order, as state.Decide does.
func (w *world) begin(who int, run state.Run, o state.Command) *call {
	name := w.nameOf(who)
	o.Epoch, o.From, o.Token, o.Mark = run.Epoch+1, run.Status, fmt.Sprintf("%s %d %s", name, run.Epoch+1, o.Kind),
		state.Mark{Actor: name, Time: w.now(who)}
	about := ""
	for _, r := range o.Nodes {
		about += fmt.Sprintf(" (%s %v %t %s)", r.Node, r.Batches, r.Replan, r.Digest)
	}
	return &call{name: fmt.Sprintf("%s orders %s as number %d%s", name, o.Kind, o.Epoch, about), kind: begins, who: who,
		part: runAt, order: &o,
		do: func(ctx context.Context, st state.Store) error { return st.BeginCommand(ctx, w.run, o) }}
}

func (w *world) nameOf(who int) string {
	if who == person {
		return "the person"
	}
	return w.workers[who].name
}

// carry returns the calls that state.Carry makes with what it reads now. It asks the nodes that
// have not heard, one after the other, whatever they hear meanwhile, and ends the order.
func (w *world) carry(who int, o state.Command) []*call {
	r := &recorder{Store: w.store.Open()}
	run := w.ran.Run
	run.Command = &o
	_ = state.Carry(context.Background(), r, run, w.now(who)) // the recorder refuses nothing
	for _, c := range r.calls {
		c.name += " from " + w.nameOf(who)
		c.who, c.order = who, &o
		c.heard = did(c)
		if who == person {
			c.heard = func(w *world, _ error) { w.person.todo = w.person.todo[1:] }
		}
	}
	return r.calls
}

// recorder notes what it is asked for, instead of doing it.
type recorder struct {
	state.Store
	calls []*call
}

// ApplyCommand implements state.Store.
func (r *recorder) ApplyCommand(_ context.Context, key state.NodeKey, o state.Command) error {
	r.calls = append(r.calls, &call{name: fmt.Sprintf("%s hears order %d", key.Node, o.Epoch), kind: hears,
		part: slices.Index(nodes[:], key.Node),
		do:   func(ctx context.Context, st state.Store) error { return st.ApplyCommand(ctx, key, o) }})
	return nil
}

// CommitCommand implements state.Store.
func (r *recorder) CommitCommand(_ context.Context, key state.RunKey, epoch int64, now time.Time) error {
	r.calls = append(r.calls, &call{name: fmt.Sprintf("order %d is ended", epoch), kind: ends, part: runAt,
		do: func(ctx context.Context, st state.Store) error { return st.CommitCommand(ctx, key, epoch, now) }})
	return nil
}
