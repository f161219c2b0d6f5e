package cassandra

import (
	"context"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sync"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"thalweg/internal/store/state"
	"thalweg/internal/store/state/backoff"
)

// Limits of what is written together.
const (
	// groupCalls limits the calls that one conditional write may answer.
	groupCalls = 64
	// groupPlaces limits the rows that these calls concern: one request reads them all. It is a power of two,
	// as the forms of that request are.
	groupPlaces = 16
	// groupBytes limits, about, what they write together: one more call may be as large as it is. Cassandra's
	// limit for one partition is 16 MiB.
	groupBytes = 256 << 10
	// lanesMax limits the write queues that are remembered of nodes without a change under way.
	lanesMax = 1024
)

// call is one call of the store that changes a node.
type call struct {
	*operation
	asker  context.Context //nolint:containedctx // of who waits for the answer
	places []place         // rows that it is about
	alone  bool            // it decides on more than those
	urgent bool            // it goes before those that are not
	decide func(ctx context.Context, n *nodeChange) (changed bool, err error)

	verdict error // if what it was decided on stands
	answer  error
	done    chan struct{} // closed when there is an answer
}

// left reports whether nobody waits for the answer any more.
func (c *call) left() bool { return c.asker.Err() != nil }

func (c *call) finish(err error) {
	c.answer = err
	close(c.done)
}

// writeQueues are the ways of this process to the nodes: calls that come while another
// one of the same node is under way are decided together and written at once. That
// saves conditional writes, and decides nothing.
type writeQueues struct {
	mu      sync.Mutex
	known   map[state.NodeKey]*writeQueue
	closed  bool
	working sync.WaitGroup
	ctx     context.Context //nolint:containedctx // ends with the store
	end     context.CancelFunc
}

// writeQueue is the way to one node. What has no mu belongs to who works on it.
type writeQueue struct {
	key     state.NodeKey
	busy    bool    // mu
	waiting []*call // mu
	pace    backoff.Tries
	chance  *rand.Rand
}

func newLanes() *writeQueues {
	l := &writeQueues{known: map[state.NodeKey]*writeQueue{}}
	l.ctx, l.end = context.WithCancel(context.Background())
	return l
}

// close fails what is under way and returns when nothing is.
func (l *writeQueues) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.end()
	l.working.Wait()
}

// do has a call decided and waits for its answer.
func (l *writeQueues) do(ctx context.Context, key state.NodeKey, c *call) error {
	if err := ctx.Err(); err != nil {
		return c.explain(err)
	}
	c.asker, c.done = ctx, make(chan struct{})
	if !l.add(key, c) {
		return c.explain(gocql.ErrSessionClosed)
	}
	select {
	case <-c.done:
		return c.answer
	case <-ctx.Done():
		return c.explain(ctx.Err())
	}
}

func (l *writeQueues) add(key state.NodeKey, c *call) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	way := l.known[key]
	if way == nil {
		way = &writeQueue{key: key, chance: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))} //nolint:gosec // spacing, not a secret
		l.known[key] = way
	}
	at := len(way.waiting)
	if c.urgent {
		at = max(0, slices.IndexFunc(way.waiting, func(w *call) bool { return !w.urgent }))
	}
	way.waiting = slices.Insert(way.waiting, at, c)
	if !way.busy {
		way.busy = true
		l.working.Go(func() { l.serve(c.Store, way) })
	}
	return true
}

// serve answers calls until none waits.
func (l *writeQueues) serve(s *Store, way *writeQueue) {
	for {
		g := &group{operation: s.operation("", ""), way: way}
		if !l.admit(g, true) {
			return
		}
		g.serve(l)
	}
}

// admit takes calls that wait into a group, in their order, as many as may be
// decided together, and reports whether it has any. A writeQueue that is to end ends if it has none.
func (l *writeQueues) admit(g *group, end bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	g.calls = slices.DeleteFunc(g.calls, (*call).left)
	way := g.way
	way.waiting = slices.DeleteFunc(way.waiting, (*call).left)
	for len(way.waiting) > 0 && len(g.calls) < groupCalls {
		next := way.waiting[0]
		if len(g.calls) > 0 && (next.alone || g.calls[0].alone || len(g.rows(next)) > groupPlaces) {
			break
		}
		g.calls, way.waiting = append(g.calls, next), way.waiting[1:]
	}
	if len(g.calls) > 0 || !end {
		return len(g.calls) > 0
	}
	way.busy = false
	if len(l.known) > lanesMax {
		delete(l.known, way.key)
	}
	return false
}

// back gives calls back to their writeQueue, before those that have come since.
func (l *writeQueues) back(way *writeQueue, calls []*call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	way.waiting = slices.Concat(calls, way.waiting)
}

// group is calls of one node that are decided one after the other, each on what the
// one before leaves, and written at once.
type group struct {
	*operation
	way   *writeQueue
	calls []*call
	// unknown is the error of the latest write if its outcome is unknown. Until that is known the group stays
	// as it is: decided on the same again, the same is written.
	unknown error
}

// serve answers all of a group, and whom it takes in meanwhile. A lost write is
// decided again, and so is one whose outcome is not known: each call may be
// repeated, so what was done then is found done.
func (g *group) serve(l *writeQueues) {
	pause := firstPause
	for left := unknownTries; ; {
		err := wait(l.ctx, g.way.pace.Wait(g.way.chance))
		if g.unknown == nil && !l.admit(g, false) {
			return
		}
		g.name, g.what = g.calls[0].name, g.calls[0].what
		var c *change
		if err == nil {
			c, err = g.decide(l)
		}
		if err == nil && c == nil {
			g.finish(nil)
			return
		}
		if err == nil {
			var applied bool
			if applied, err = g.apply(l.ctx, c); applied {
				g.way.pace.Won()
				g.finish(nil)
				return
			}
			g.serial = true
			if unsure(err) {
				g.unknown = err
			}
		}
		switch {
		case err == nil:
			g.way.pace.Lost()
			continue
		case g.unknown == nil || !passes(err) || l.ctx.Err() != nil:
			g.finish(afterUnknown(g.unknown, err))
			return
		}
		if left--; left == 0 {
			g.finish(afterUnknown(g.unknown, err))
			return
		}
		_ = wait(l.ctx, rand.N(pause)) //nolint:gosec // spacing, not a secret
		pause = min(2*pause, longestPause)
	}
}

// finish answers every call: with what was decided, or with what failed for all.
func (g *group) finish(err error) {
	for _, c := range g.calls {
		switch {
		case err != nil:
			c.finish(c.explain(err))
		default:
			c.finish(c.explain(c.verdict))
		}
	}
	g.calls = nil
}

// decide reads what the calls are about and puts together what they change; nil
// if that is nothing. What was decided on nothing but what was read is answered.
func (g *group) decide(l *writeQueues) (*change, error) {
	m, err := g.read(l.ctx, g.way.key, g.places()...)
	if err != nil {
		return nil, err
	}
	n, changed := g.change(m), false
	var kept []*call
	for i, c := range g.calls {
		if n.bytes > groupBytes && g.unknown == nil {
			l.back(g.way, g.calls[i:])
			break
		}
		does, err := c.decide(l.ctx, n)
		err = afterUnknown(g.unknown, err)
		if !changed && !does {
			c.finish(c.explain(err))
			continue
		}
		c.verdict, changed = err, changed || does
		kept = append(kept, c)
	}
	if g.calls = kept; !changed {
		return nil, nil
	}
	return n.done()
}

// places are the rows that the calls are about, each once, and the last one
// again as often as there are few forms of the statement.
func (g *group) places() []place {
	all := g.rows()
	for n := len(all); n > 3 && len(all) < 1<<bits.Len(uint(n-1)); { //nolint:gosec // a count
		all = append(all, all[n-1])
	}
	return all
}

// rows are those that the calls, and these ones, are about, each once.
func (g *group) rows(more ...*call) (all []place) {
	for _, c := range slices.Concat(g.calls, more) {
		for _, at := range c.places {
			if !slices.Contains(all, at) {
				all = append(all, at)
			}
		}
	}
	return all
}

// alongside changes a node by what is decided on these rows.
func (o *operation) alongside(ctx context.Context, key state.NodeKey, places []place,
	decide func(ctx context.Context, n *nodeChange) (changed bool, err error)) error {
	return o.writeQueues.do(ctx, key, &call{operation: o, places: places, decide: decide, urgent: o.name == "Extend"})
}

// updateNode changes a node by what is decided on its head, and on what decide
// reads besides.
func (o *operation) updateNode(ctx context.Context, key state.NodeKey,
	decide func(ctx context.Context, n *nodeChange) (changed bool, err error)) error {
	return o.writeQueues.do(ctx, key, &call{operation: o, alone: true, decide: decide})
}
