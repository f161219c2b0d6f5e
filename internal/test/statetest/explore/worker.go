package explore

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"thalweg/internal/store/state"
)

// workerState is a worker's memory. It holds the pieces of the run that it has read, its decision about the
// latest one, and the batch that it works on.
type workerState struct {
	name string
	read int         // pieces that it has: the run, then the first nodes, which had succeeded
	ran  *runPicture // as it was read
	todo []*call

	claim   *state.Claim
	content string // that its work has come to; "": not done
}

func (s *workerState) append(to []byte) []byte {
	to = append(to, '\n', byte(s.read))
	if s.read > 0 {
		to = binary.AppendVarint(to, s.ran.Epoch)
	}
	for _, c := range s.todo {
		to = append(append(to, ' '), c.name...)
	}
	if c := s.claim; c != nil {
		to = fmt.Appendf(to, " claim %s %d %d %d %d %s", c.Node, c.Batch, c.Attempt, c.Epoch,
			c.Lease.UnixMilli(), s.content)
	}
	return to
}

// workerSteps lists what a worker may do next: read, do what it has decided to
// do or think better of it, work, die.
func (w *world) workerSteps(i int) []step {
	s := &w.workers[i]
	if c := w.unheard[i]; c != nil {
		return append(w.ask(c), w.dies(i)...)
	}
	var out []step
	switch {
	case s.claim != nil && w.bounds.Alternate:
	case len(s.todo) > 0:
		out = w.ask(s.todo[0])
	default:
		out = w.reads(i)
	}
	if s.read > 0 || len(s.todo) > 0 {
		out = append(out, step{s.name + " looks again", func(w *world) error { w.workers[i].forget(); return nil }})
	}
	if s.claim != nil {
		out = append(append(out, w.workSteps(i)...), w.dies(i)...)
	}
	return out
}

// forget clears the memory of a coordinator that looks again, or dies.
func (s *workerState) forget() { s.read, s.ran, s.todo = 0, nil, nil }

// dies ends a worker that has a claim, if somebody can still see its lease end:
// the second one sees that of the first at once.
func (w *world) dies(i int) []step {
	if w.spent.crashes >= w.bounds.Crashes || i == 1 && w.spent.tick+ticksPerLease > w.bounds.Ticks ||
		w.workers[i].claim == nil {
		return nil
	}
	return []step{{w.workers[i].name + " dies", func(w *world) error {
		w.spent.crashes++
		w.workers[i], w.unheard[i] = workerState{name: w.workers[i].name}, nil
		return nil
	}}}
}

// did is that a worker has heard the answer to the first of what it had to do.
func did(c *call) func(w *world, err error) {
	return func(w *world, err error) {
		s := &w.workers[c.who]
		if s.todo = s.todo[1:]; len(s.todo) == 0 {
			s.forget()
		}
		if c.bid == nil || err != nil {
			return
		}
		b := *c.bid
		s.claim, s.content = &state.Claim{BatchKey: b.BatchKey, Epoch: b.Epoch, Attempt: b.Attempt + 1, Owner: b.Owner,
			Lease: b.Lease}, ""
		if b.Node == first {
			w.work(c.who) // it reads no table: there is nothing to see in between
		}
	}
}

// reads reads the next piece of the run: no two of them are of one moment. A
// worker decides one thing about it, by the rules of a coordinator (package
// coordinator), or reads on.
func (w *world) reads(i int) []step {
	s := &w.workers[i]
	switch {
	case s.read > 0:
	case w.ran.Command.Pending():
		return []step{{s.name + " reads the order", func(w *world) error {
			w.workers[i].todo = w.carry(i, *w.ran.Command)
			return nil
		}}}
	case w.ran.Status == state.Running:
		return []step{{s.name + " reads the run", func(w *world) error {
			w.workers[i].read, w.workers[i].ran = 1, w.ran
			return nil
		}}}
	default:
		return nil
	}
	var out []step
	for _, c := range w.decisions(i) {
		c.who = i
		if c.heard == nil {
			c.heard = did(c)
		}
		out = append(out, step{s.name + " reads: " + c.name, func(w *world) error {
			w.workers[i].forget()
			w.workers[i].todo = []*call{c}
			return nil
		}})
	}
	if n := w.at[s.read-1]; n.Status == state.Succeeded && s.read < nodeCount && !s.ran.Behind(n.Node) {
		out = append(out, step{s.name + " reads on", func(w *world) error { w.workers[i].read++; return nil }})
	}
	return out
}

// decisions returns the calls by which a worker may decide about the piece that it reads next. What it
// decides about a node alone it may do as soon as it has read the run.
func (w *world) decisions(i int) []*call {
	s := &w.workers[i]
	var out []*call
	if s.read == 1 {
		for at, n := range w.at {
			out = append(out, w.decide(i, at, n)...)
		}
	}
	switch n := w.at[s.read-1]; {
	case s.ran.Behind(n.Node):
		return out
	case n.Status == state.Pending && s.read-1 == gateAt && n.Decision == nil:
		return append(out, w.asks(i, n))
	case n.Status == state.Pending:
		return append(out, w.plan(i, s.read-1, n))
	case n.Status == state.Succeeded && s.read == nodeCount:
		return append(out, w.complete(i))
	}
	return out
}

// decide returns the calls that a worker which has read a node may make about it, whatever the others are.
func (w *world) decide(i, at int, n *nodePicture) []*call {
	s := &w.workers[i]
	switch {
	case n.Status == state.Running && n.BatchesFailed == 0 && n.BatchesDone < n.BatchesTotal && s.claim == nil:
		return w.bids(i, at, n)
	case s.ran.Behind(n.Node):
		return nil
	case n.Status == state.Failed:
		return []*call{w.begin(i, s.ran.Run, state.Command{Kind: state.CommandFail, Cause: &state.Failure{}})}
	case n.Status == state.Waiting && w.bounds.Ticks > 0 && w.spent.tick == w.bounds.Ticks: // its time is over
		return []*call{w.move(i, at, n, state.Failed)}
	case n.Status == state.Running && n.BatchesFailed > 0:
		return []*call{w.move(i, at, n, state.Failed)}
	case n.Status == state.Running && n.BatchesDone == n.BatchesTotal:
		return append([]*call{w.move(i, at, n, state.Succeeded)}, w.unsettled(i, at)...)
	}
	return nil
}

// unsettled plans a node again, and all that may read it: what it took over is gone.
func (w *world) unsettled(i, at int) []*call {
	if at != firstAt || w.spent.failed >= w.bounds.Failures {
		return nil
	}
	c := w.begin(i, w.workers[i].ran.Run, replan(nodes[at:]...))
	c.heard = func(w *world, err error) { w.spent.failed++; did(c)(w, err) }
	return []*call{c}
}

func (w *world) complete(i int) *call {
	name, epoch, now := w.workers[i].name, w.workers[i].ran.Epoch, w.now(i)
	return &call{name: fmt.Sprintf("%s completes the run in epoch %d", name, epoch), part: runAt,
		do: func(ctx context.Context, st state.Store) error {
			return st.CompleteRun(ctx, w.run, epoch, name, now)
		}}
}

func (w *world) plan(i, at int, n *nodePicture) *call {
	name, now := w.workers[i].name, w.now(i)
	p := state.Plan{Record: []byte("plan")}
	for b := range [nodeCount]int{w.bounds.Batches, 0, 1}[at] {
		p.Batches = append(p.Batches, state.BatchSpec{Batch: b})
	}
	return &call{name: fmt.Sprintf("%s plans %s in epoch %d", name, n.Name, n.Epoch), part: at,
		do: func(ctx context.Context, st state.Store) error {
			_, err := state.PlanNode(ctx, st, n.NodeKey, n.Epoch, p, name, now)
			return err
		}}
}

// asks lets the gate wait, which shows what stands in the table when the worker
// reads it: after it has read the gate.
func (w *world) asks(i int, n *nodePicture) *call {
	name, now := w.workers[i].name, w.now(i)
	c := &call{name: fmt.Sprintf("%s asks in epoch %d", name, n.Epoch), who: i, part: gateAt}
	c.next = func(w *world) *call {
		shown := w.at[firstAt].content()
		m := state.Move{Epoch: n.Epoch, From: n.Status, To: state.Waiting, Gate: []byte(shown), GateDigest: shown,
			Actor: name, Now: now}
		next := &call{name: c.name + " about " + shown, who: i, part: gateAt,
			do: func(ctx context.Context, st state.Store) error { return st.MoveNode(ctx, n.NodeKey, m) }}
		next.heard = did(next)
		return next
	}
	return c
}

func (w *world) move(i, at int, n *nodePicture, to state.Status) *call {
	name := w.workers[i].name
	m := state.Move{Epoch: n.Epoch, From: n.Status, To: to, Actor: name, Now: w.now(i)}
	return &call{name: fmt.Sprintf("%s moves %s to %s in epoch %d", name, n.Name, to, n.Epoch), part: at,
		do: func(ctx context.Context, st state.Store) error {
			return st.MoveNode(ctx, n.NodeKey, m)
		}}
}

// bids asks for each batch that seemed free.
func (w *world) bids(i, at int, n *nodePicture) []*call {
	name, now := w.workers[i].name, w.now(i)
	var out []*call
	for _, b := range n.batches {
		if free := b.Status == state.Pending && !now.Before(b.NotBefore) || b.Status == state.Claimed &&
			b.Lease.Before(now); !free {
			continue
		}
		bid := state.ClaimRequest{Offer: state.Offer{BatchKey: b.BatchKey, Epoch: n.Epoch, Attempt: b.Attempt}, Owner: name,
			Token: fmt.Sprintf("%s %d", name, b.Attempt), Now: now, Lease: now.Add(leaseTime)}
		out = append(out, &call{
			name: fmt.Sprintf("%s claims %s %d after attempt %d in epoch %d at %d", name, n.Name,
				b.BatchKey.Batch, b.Attempt, bid.Epoch, w.spent.tick),
			kind: claims, part: at, bid: &bid,
			do: func(ctx context.Context, st state.Store) error {
				_, err := st.Claim(ctx, bid)
				return err
			},
		})
	}
	return out
}

// workSteps returns the steps that a worker may take about its batch.
func (w *world) workSteps(i int) []step {
	s, now := w.workers[i], w.now(i)
	c := *s.claim
	name := fmt.Sprintf("%s %d attempt %d", c.Node, c.Batch, c.Attempt)
	over := func(w *world, _ error) { w.workers[i].claim, w.workers[i].content = nil, "" }
	change := func(what string, kind kind, heard func(w *world, err error),
		do func(ctx context.Context, st state.Store) error) []step {
		return w.ask(&call{name: fmt.Sprintf("%s %s %s", s.name, what, name), kind: kind,
			part: map[string]int{first: firstAt, second: secondAt}[c.Node],
			who:  i, claim: &c, content: s.content, heard: heard, do: do})
	}
	var out []step
	if end := now.Add(leaseTime); end.After(c.Lease) {
		out = change("extends to "+end.Format(time.TimeOnly), works, func(w *world, err error) {
			if err != nil {
				over(w, err)
				return
			}
			longer := c
			longer.Lease = end
			w.workers[i].claim = &longer
		}, func(ctx context.Context, st state.Store) error { return st.Extend(ctx, c, end) })
	}
	if s.content == "" {
		return append(out, step{s.name + " works on " + name, func(w *world) error { w.work(i); return nil }})
	}
	out = append(out, change("commits "+s.content+" as", commits, over,
		func(ctx context.Context, st state.Store) error {
			return st.Commit(ctx, c, state.Outcome{Parts: []state.Part{{Key: s.content, Rows: 1}}}, now)
		})...)
	if w.spent.failed >= w.bounds.Failures {
		return out
	}
	failed := func(w *world, err error) { w.spent.failed++; over(w, err) }
	out = append(out, change("fails", works, failed, func(ctx context.Context, st state.Store) error {
		return st.Fail(ctx, c, state.Failure{}, state.Outcome{}, now)
	})...)
	out = append(out, change("gives up for now", works, failed, func(ctx context.Context, st state.Store) error {
		return st.Retry(ctx, c, state.Failure{}, state.Stats{}, now, now)
	})...)
	return append(out, change("gives back", works, failed,
		func(ctx context.Context, st state.Store) error { return st.Release(ctx, c, now) })...)
}

// work comes to what names the attempt, and what it has read.
func (w *world) work(i int) {
	c := w.workers[i].claim
	made := fmt.Sprintf("%s%d@%d", c.Node, c.Batch, c.Attempt)
	if c.Node == second {
		made += "<" + w.at[firstAt].content() + ">"
	}
	w.workers[i].content = made
}
