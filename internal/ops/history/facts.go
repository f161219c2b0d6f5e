package history

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"thalweg/internal/base/format"
	"thalweg/internal/run/gate"
	"thalweg/internal/store/state"
)

// Facts holds what is known of a run. Why answers from it alone.
type Facts struct {
	Now       time.Time
	Zone      *time.Location // in which times of day are written
	Run       state.Run
	Nodes     []state.Node
	Tallies   map[string]state.Tally
	Worked    map[string]time.Duration // how long each node has been worked on
	Unsettled map[string][]state.Batch // of nodes that are running: the first page
	Gates     map[string]gate.Record   // of nodes that wait, or have waited, for a decision
	Voided    map[string]state.Mark    // who invalidated a node; empty: not known
	Holds     []Hold                   // times in which the run stood still before it went on, in order
	ProcessFacts
}

// Hold is a time in which a run stood still because of what somebody had
// ordered, or because it had failed.
type Hold struct {
	From, To time.Time
	Order    state.Command // with which it began; zero: the run was complete
}

// ProcessFacts is the caller's knowledge of the machines around a run.
type ProcessFacts struct {
	Slots    int      // batches that are worked on at once; 0: not known
	Orphaned bool     // nobody works on the run
	Alone    Orphan   // why, and what lets it go on, if Orphaned
	Memory   []string // processes that wait for memory, each with who holds it
	Notices  []string // messages of the run's workers for the operator
	// Waits reports whether an owner of batches waits for memory; nil: none is known to.
	Waits func(owner string) bool
	Gone  func(owner string) bool // reports whether an owner is known to have died; nil: not known
}

// Gather reads the facts of a run. Its cost grows with the nodes, not with their
// batches.
func Gather(ctx context.Context, store state.Store, key state.RunKey, now time.Time,
	around ProcessFacts) (Facts, error) {
	f := Facts{Now: now, Zone: time.Local, Tallies: map[string]state.Tally{}, Worked: map[string]time.Duration{},
		Unsettled: map[string][]state.Batch{}, Gates: map[string]gate.Record{}, Voided: map[string]state.Mark{},
		ProcessFacts: around}
	var err error
	if f.Run, f.Nodes, err = read(ctx, store, key); err != nil {
		return f, err
	}
	if f.Holds, err = holds(ctx, store, key); err != nil {
		return f, err
	}
	for _, n := range f.Nodes {
		if err := f.look(ctx, store, n); err != nil {
			return f, fmt.Errorf("look at node %s: %w", n.Name, err)
		}
	}
	return f, nil
}

func (f Facts) look(ctx context.Context, store state.Store, n state.Node) (err error) {
	if f.Tallies[n.Name], err = store.Tally(ctx, n.NodeKey); err != nil {
		return err
	}
	if f.Worked[n.Name], err = state.Worked(ctx, store, f.Run, n, f.Now); err != nil {
		return err
	}
	switch n.Status {
	case state.Running, state.Paused:
		f.Unsettled[n.Name], _, err = store.Unsettled(ctx, n.NodeKey, state.Page{})
	case state.Invalidated:
		f.Voided[n.Name], _, err = state.Voided(ctx, store, n)
	}
	if err == nil && len(n.Gate) > 0 {
		f.Gates[n.Name], err = gate.Decode(n.Gate)
	}
	return err
}

// holds finds the times in which a run stood still. It reads the run's own events,
// of which there are one or two for each order.
func holds(ctx context.Context, store state.Store, key state.RunKey) (out []Hold, err error) {
	var begun *Hold
	var order state.Command
	for after := int64(0); ; {
		events, err := store.Events(ctx, state.NodeKey{RunKey: key}, after, state.PageMax)
		if err != nil {
			return nil, fmt.Errorf("read the events of run %d: %w", key.Run, err)
		}
		for _, e := range events {
			after = e.Seq
			switch {
			case e.Kind == state.OrderBegun && e.Command != nil:
				if order = *e.Command; begun != nil && goesOn(order.Kind) {
					begun.To = e.Time
					out, begun = append(out, *begun), nil
				}
			case begun != nil || e.Status == state.Running:
			case e.Kind == state.OrderEnded:
				begun = &Hold{From: e.Time, Order: order}
			case e.Kind == state.RunCompleted:
				begun = &Hold{From: e.Time}
			}
		}
		if len(events) < state.PageMax {
			return out, nil
		}
	}
}

// goesOn reports whether an order continues a run that stands still.
func goesOn(k state.CommandKind) bool {
	return k == state.CommandReopen || k == state.CommandRedo || k == state.CommandUnpause
}

// elapsed returns the time that the run has taken, without the times in which it stood still.
func (f Facts) elapsed() time.Duration {
	all := took(f.Run, f.Now)
	return max(all-f.held(f.Run.Created, f.Run.Created.Add(all)), 0)
}

// held returns the time for which the run stood still between two moments.
func (f Facts) held(from, to time.Time) (sum time.Duration) {
	for _, h := range f.Holds {
		begin, end := h.From, h.To
		if begin.Before(from) {
			begin = from
		}
		if end.After(to) {
			end = to
		}
		sum += max(end.Sub(begin), 0)
	}
	return sum
}

// its returns the run's elapsed time as part of a sentence.
func (f Facts) its() string {
	if len(f.Holds) > 0 {
		return "the " + format.Span(f.elapsed()) + " that nothing held it up"
	}
	return "its " + format.Span(f.elapsed())
}

// took returns the time for which a node has been worked on.
func (f Facts) took(n state.Node) time.Duration { return f.Worked[n.Name] }

// heaviest returns the node that has been worked on longest; ok is false if none has begun.
func (f Facts) heaviest() (n state.Node, ok bool) {
	if len(f.Nodes) == 0 {
		return n, false
	}
	n = slices.MaxFunc(f.Nodes, func(a, b state.Node) int { return cmp.Compare(f.took(a), f.took(b)) })
	return n, f.took(n) > 0
}

// at finds the nodes in a status.
func (f Facts) at(status state.Status) (nodes []state.Node) {
	for _, n := range f.Nodes {
		if n.Status == status {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// clock writes a time of day, with its date if that is not today.
func (f Facts) clock(t time.Time) string {
	zone := f.Zone
	if zone == nil {
		zone = time.UTC
	}
	layout := time.TimeOnly
	t = t.In(zone)
	if t.Format(time.DateOnly) != f.Now.In(zone).Format(time.DateOnly) {
		layout = time.DateTime
	}
	return t.Format(layout)
}
