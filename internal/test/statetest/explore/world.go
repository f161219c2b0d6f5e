package explore

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"thalweg/internal/store/state"
	"thalweg/internal/test/statetest/hostile"
)

// The run that is explored: a node of two batches, a gate that shows its table,
// and a node of one batch that reads it and waits for the gate.
const (
	first  = "a"
	gate   = "approval:a"
	second = "b"
)

// Their places, and that of the run's own partition beside theirs.
const (
	firstAt = iota
	gateAt
	secondAt
	nodeCount
	runAt = nodeCount
)

var (
	nodes = [nodeCount]string{first, gate, second}
	began = time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Times.
const (
	tickTime      = time.Minute
	ticksPerLease = 2 // after as many it has ended
	leaseTime     = 90 * time.Second
	// how far the second worker's clock is ahead: leases of the other have always ended for it
	skew = 2 * tickTime
)

// Bounds limits the events on one path.
type Bounds struct {
	// that the person gives, one after the other; to decide what a gate asks, and to let a paused run go on, may
	// always be done
	Orders     []Choice
	Crashes    int // of workers, where a lease can still end
	Ticks      int // of the clock
	Duplicates int // calls that are done once more at any time later
	Unheard    int // calls whose answer is lost, so that they are repeated
	Failures   int // of batches, claims that are given back, nodes that have to be planned again before they settle
	States     int // at most; 0: all

	Batches   int  // of the first node; 0: two
	Workers   int  // 0: two
	Alternate bool // a worker that works on a batch coordinates nothing meanwhile
}

// world is one state of everything: the store, who uses it, and what is known
// of what was promised to whom.
type world struct {
	bounds  Bounds
	beside  Beside         // sees each call; nil: nobody
	store   *hostile.Store // never changed but where somebody is beside: a change is made in a fork
	ran     *runPicture
	at      [nodeCount]*nodePicture
	run     state.RunKey
	workers [2]workerState
	person  personState
	unheard [3]*call // of each actor: a call whose answer it has not heard, and repeats
	late    *call    // that will be done once more
	spent   spent

	over     int64  // the latest order that was carried out and ends what was under way
	approved string // what the person has approved, and not taken back: one after the other
}

// spent counts how much of the bounds is used up.
type spent struct{ tick, orders, crashes, doubled, unheard, failed int }

// call is a change of one partition of the store, as somebody asks for it.
type call struct {
	name  string // with all that it depends on
	kind  kind
	part  int // which partition it is: a node's, or runAt
	do    func(ctx context.Context, st state.Store) error
	who   int // whose it is
	heard func(w *world, err error)
	next  func(w *world) *call // reads more first, and asks for that; nil: it is to be done

	bid     *state.ClaimRequest // of a claim
	claim   *state.Claim        // of what is done to a batch
	content string              // of what is committed
	order   *state.Command      // that is begun, heard of or ended
}

// kind classifies a change for its judges.
type kind int

const (
	moves kind = iota // a node or the run, as a coordinator
	begins
	hears
	ends
	claims
	commits
	works // on a claim, otherwise
)

func newWorld(b Bounds, store *hostile.Store, workspace string) (*world, error) {
	b.Batches, b.Workers = cmp.Or(b.Batches, 2), cmp.Or(b.Workers, 2)
	w := &world{bounds: b, store: store}
	var err error
	if w.run, err = Begin(context.Background(), store.Open(), workspace); err != nil {
		return nil, err
	}
	for i := range w.workers {
		w.workers[i].name = fmt.Sprint("w", i+1)
	}
	for part := range nodeCount + 1 {
		err = errors.Join(err, w.look(part))
	}
	return w, err
}

// Begin creates the run that is explored.
func Begin(ctx context.Context, st state.Store, workspace string) (state.RunKey, error) {
	return st.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: workspace}, Token: "t", Created: began},
		[]state.NodeSpec{
			{Name: first, Ordinal: 0, Table: first}, {Name: gate, Kind: state.KindGate, Ordinal: 1,
				Inputs: []string{first}},
			{Name: second, Ordinal: 2, Table: second, Inputs: []string{first, gate}}})
}

// clone shares what nobody changes.
func (w *world) clone() *world {
	c := *w
	return &c
}

// now returns the time on an actor's clock: 0 and 1 are workers, 2 the person.
func (w *world) now(actor int) time.Time {
	t := began.Add(time.Duration(w.spent.tick) * tickTime)
	if actor == 1 {
		t = t.Add(skew)
	}
	return t
}

// key names the state: worlds of one key go on alike.
func (w *world) key(to []byte) []byte {
	for _, n := range w.at {
		to = append(to, n.digest[:]...)
	}
	to = append(to, w.ran.digest[:]...)
	s := w.spent
	to = append(to, byte(s.tick), byte(s.orders), byte(s.crashes), byte(s.doubled), byte(s.unheard), byte(s.failed))
	to = binary.AppendVarint(to, w.over)
	to = append(append(to, w.approved...), 0)
	if w.late != nil {
		to = append(to, w.late.name...)
	}
	for _, c := range w.unheard {
		to = append(to, 0)
		if c != nil {
			to = append(to, c.name...)
		}
	}
	for i := range w.workers {
		to = w.workers[i].append(to)
	}
	return w.person.append(to)
}

// step is something that may happen next.
type step struct {
	name string
	do   func(w *world) error // an error is a promise that was broken
}

// steps lists what may happen next, always in the same order.
func (w *world) steps() []step {
	var out []step
	for i := range w.bounds.Workers {
		out = append(out, w.workerSteps(i)...)
	}
	out = append(out, w.personSteps()...)
	if w.spent.tick < w.bounds.Ticks {
		out = append(out, step{"the clock goes on", func(w *world) error { w.spent.tick++; return nil }})
	}
	if late := w.late; late != nil {
		out = append(out, step{"late: " + late.name, func(w *world) error {
			w.late = nil
			_, err := w.change(late)
			return err
		}})
	}
	return out
}

// ask makes a change of the store a step of its own. The change may come once more
// at any time later, or its answer may be lost: then whoever asked repeats it.
func (w *world) ask(c *call) []step {
	if c.next != nil {
		return []step{{c.name + " and reads on",
			func(w *world) error { w.workers[c.who].todo = []*call{c.next(w)}; return nil }}}
	}
	once := func(w *world) error {
		answer, broken := w.change(c)
		w.unheard[c.who] = nil
		c.heard(w, answer)
		return broken
	}
	out := []step{{c.name, once}}
	if w.late == nil && w.spent.doubled < w.bounds.Duplicates {
		out = append(out, step{c.name + ", to come once more", func(w *world) error {
			w.spent.doubled++
			w.late = c
			return once(w)
		}})
	}
	if w.spent.unheard < w.bounds.Unheard {
		out = append(out, step{c.name + ", and nobody hears the answer", func(w *world) error {
			w.spent.unheard++
			w.unheard[c.who] = c
			_, broken := w.change(c)
			return broken
		}})
	}
	return out
}

// change makes a change and looks whether it keeps what was promised.
func (w *world) change(c *call) (answer, broken error) {
	key := state.NodeKey{RunKey: w.run}
	if c.part != runAt {
		key.Node = nodes[c.part]
	}
	before := *w
	if w.beside == nil {
		w.store = w.store.Fork(key)
	}
	answer = c.do(context.Background(), w.store.Open())
	if w.beside != nil {
		if err := w.beside(c.name, c.do, answer); err != nil {
			return answer, err
		}
	}
	if err := w.look(c.part); err != nil {
		return answer, err
	}
	return answer, w.judge(c, answer, &before)
}

// runPicture is a copy of the run's partition. Nobody changes it. Nobody changes it.
type runPicture struct {
	state.Run
	digest digest
}

// nodePicture is a copy of a node's partition.
type nodePicture struct {
	state.Node
	batches  []state.Batch
	attempts []state.Attempt
	parts    []state.Part
	digest   digest
}

// over reports whether nothing of the run will be done any more by itself.
func (r *runPicture) over() bool { return r.Status.Terminal() && !r.Command.Pending() }

// look brings the picture of a partition up to date.
func (w *world) look(part int) (err error) {
	ctx := context.Background()
	if part == runAt {
		p := &runPicture{digest: digestOf(w.store.AppendState(nil, state.NodeKey{RunKey: w.run}))}
		p.Run, err = w.store.Run(ctx, w.run)
		w.ran = p
		return err
	}
	key := state.NodeKey{RunKey: w.run, Node: nodes[part]}
	p := &nodePicture{digest: digestOf(w.store.AppendState(make([]byte, 0, 1024), key))}
	if p.Node, err = w.store.Node(ctx, key); err != nil {
		return err
	}
	if p.batches, _, err = w.store.Batches(ctx, key, state.Page{}); err != nil {
		return err
	}
	if p.attempts, _, err = w.store.Attempts(ctx, key, state.Page{}); err != nil {
		return err
	}
	if p.parts, _, err = w.store.Parts(ctx, key, state.Page{}); err != nil {
		return err
	}
	w.at[part] = p
	return nil
}

// content returns the content of a node's table, as its readers would see it.
func (p *nodePicture) content() string {
	keys := make([]string, 0, len(p.parts))
	for _, part := range p.parts {
		keys = append(keys, part.Key)
	}
	return strings.Join(keys, "+")
}
