package hostile

import (
	"cmp"
	"context"
	"slices"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
)

func (p *nodePartition) tell(kind state.EventKind, actor string, at time.Time, data state.EventData) {
	p.events = append(p.events, state.Event{NodeKey: p.node.NodeKey, Seq: int64(len(p.events)) + 1,
		Version: state.EventVersion, Time: milli(at), Actor: actor, Kind: kind, EventData: data})
}

// read gives the node with what is derived from its batches.
func (p *nodePartition) read() state.Node {
	n := p.node
	n.Revision = int64(len(p.events))
	if p.purged != nil {
		return n
	}
	n.BatchesTotal = len(p.batches)
	for _, b := range p.batches {
		switch b.Status {
		case state.Failed:
			n.BatchesFailed++
		case state.Succeeded:
			n.BatchesDone++
			n.RowsIn += b.Stats.RowsIn
			n.RowsOut += b.Stats.RowsOut
			n.BytesIn += b.Stats.BytesIn
			n.BytesOut += b.Stats.BytesOut
		}
	}
	return n
}

// Nodes implements state.Store.
func (s *Store) Nodes(ctx context.Context, key state.RunKey) ([]state.Node, error) {
	var specs []state.NodeSpec
	if err := s.inRun(ctx, key, func(p *runPartition) error { specs = p.nodes; return nil }); err != nil {
		return nil, err
	}
	var nodes []state.Node
	for _, spec := range specs {
		n, err := s.Node(ctx, state.NodeKey{RunKey: key, Node: spec.Name})
		if err != nil {
			return nil, err
		}
		n.Plan = nil
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// Node implements state.Store.
func (s *Store) Node(ctx context.Context, key state.NodeKey) (n state.Node, err error) {
	err = s.inNode(ctx, key, func(p *nodePartition) error { n = p.read(); return nil })
	return n, err
}

// MoveNode implements state.Store.
func (s *Store) MoveNode(ctx context.Context, key state.NodeKey, m state.Move) error {
	if !state.Settles(m.From, m.To) {
		return state.ErrIllegalMove
	}
	return s.inNode(ctx, key, func(p *nodePartition) error {
		if made, err := m.On(p.node); made || err != nil {
			return err
		}
		p.node = m.Moves(p.node)
		p.node.Finished = milli(p.node.Finished)
		p.tell(state.NodeMoved, m.Actor, m.Now, m.Tells())
		return nil
	})
}

// ApplyCommand implements state.Store.
func (s *Store) ApplyCommand(ctx context.Context, key state.NodeKey, o state.Command) error {
	return s.inNode(ctx, key, func(p *nodePartition) error {
		if p.node.Epoch >= o.Epoch {
			return nil
		}
		before := p.node
		e := o.On(before)
		if e.Status != before.Status && !state.CanMove("node", before.Status, e.Status) {
			return state.ErrIllegalMove
		}
		if e.Free {
			p.free(e, o.Time)
		}
		after := e.Hears(before, o)
		after.Finished = milli(after.Finished)
		p.node = after
		p.tell(state.NodeHeard, o.Actor, o.Time, e.Tells(before, after))
		return nil
	})
}

// free gives batches back to Pending.
func (p *nodePartition) free(e state.Effect, now time.Time) {
	for i, b := range p.batches {
		if b.Status == state.Claimed {
			p.latest(b).finish(state.Lost, now, nil)
		}
		if b.Status == state.Pending || b.Status == state.Claimed || b.Status == state.Failed || e.All ||
			slices.Contains(e.These, i) {
			b.reset()
			b.Tries, b.NotBefore = 0, time.Time{}
		}
	}
	if e.Unplan {
		p.plan, p.batches = nil, nil
	}
}

func (b *batch) reset() {
	b.Batch = state.Batch{BatchKey: b.BatchKey, BatchSpec: b.BatchSpec, Status: state.Pending, Attempt: b.Attempt,
		Epoch: b.Epoch, Tries: b.Tries, NotBefore: b.NotBefore}
	b.token = ""
}

// latest is a batch's latest attempt.
func (p *nodePartition) latest(b *batch) *attempt { return p.attempts[b.BatchKey.Batch][b.Attempt-1] }

func (a *attempt) finish(to state.Status, now time.Time, failure *state.Failure) {
	a.Status, a.Finished, a.Failure = to, milli(now), failure
}

// stage finds the plan that a digest stands for, and adds a piece to it.
func (p *nodePartition) stage(digest string, piece state.PlanPiece) *stagedPlan {
	plan := p.staged[digest]
	if plan == nil {
		plan = &stagedPlan{batches: map[int]state.BatchSpec{}, inputs: map[int]state.Input{}}
		p.staged[digest] = plan
	}
	for _, b := range piece.Batches {
		plan.batches[b.Batch] = b
	}
	for i, in := range piece.Inputs {
		in.Time = milli(in.Time)
		plan.inputs[piece.First+i] = in
	}
	return plan
}

// StagePlan implements state.Store.
func (s *Store) StagePlan(ctx context.Context, key state.NodeKey, digest string, piece state.PlanPiece) error {
	return s.inNode(ctx, key, func(p *nodePartition) error { p.stage(digest, piece); return nil })
}

// AdoptPlan implements state.Store.
func (s *Store) AdoptPlan(ctx context.Context, key state.NodeKey, f state.Adoption) (standing string, err error) {
	err = s.inNode(ctx, key, func(p *nodePartition) error {
		switch {
		case p.node.Epoch != f.Epoch:
			return state.ErrConflict
		case p.plan != nil:
			standing = p.node.PlanDigest
			return nil
		case p.node.Status != state.Pending:
			return state.ErrConflict
		}
		plan := p.stage(f.Digest, f.Rest)
		if len(plan.batches) != f.Batches {
			return fault.New(fault.Bug, "a plan of %d batches has %d stored", f.Batches, len(plan.batches))
		}
		standing, p.plan = f.Digest, plan
		p.node.Status, p.node.PlanDigest, p.node.InputDigest, p.node.ReusedFrom = state.Running,
			f.Digest, f.InputDigest, f.ReusedFrom
		p.node.Plan = append([]byte{}, f.Record...)
		for i := range f.Batches {
			b := &batch{Batch: state.Batch{BatchKey: state.BatchKey{NodeKey: key, Batch: i}, BatchSpec: plan.batches[i],
				Status: state.Pending, Attempt: len(p.attempts[i])}}
			b.Work = nil
			p.batches = append(p.batches, b)
		}
		p.tell(state.NodePlanned, f.Actor, f.Now, state.EventData{Status: state.Running, Batches: f.Batches,
			Digest: f.Digest, ReusedFrom: f.ReusedFrom})
		return nil
	})
	return standing, err
}

// list reads a page of what is numbered: from is the first number, each gives
// what a number has and whether that counts as one of the page.
func list[T any](ctx context.Context, s *Store, key state.NodeKey, page state.Page, end func(*nodePartition) int,
	each func(p *nodePartition, at int) (some []T, counts bool)) (all []T, next int64, err error) {
	err = s.inNode(ctx, key, func(p *nodePartition) error {
		left := limit(page)
		for at := int(page.From); at < end(p); at++ {
			some, counts := each(p, at)
			if counts && left == 0 {
				next = int64(at)
				break
			}
			if counts {
				left--
			}
			all = append(all, some...)
		}
		return nil
	})
	return all, next, err
}

// Tally implements state.Store.
func (s *Store) Tally(ctx context.Context, key state.NodeKey) (t state.Tally, err error) {
	err = s.inNode(ctx, key, func(p *nodePartition) error { t = *p.tally(); return nil })
	return t, err
}

func (p *nodePartition) tally() *state.Tally {
	if p.purged != nil {
		return p.purged
	}
	var t state.Tally
	for i, b := range p.batches {
		if b.Status == state.Succeeded || b.Status == state.Failed {
			t.Count(i, b.Status, b.Stats)
		}
	}
	return &t
}

// Batch implements state.Store.
func (s *Store) Batch(ctx context.Context, key state.BatchKey) (b state.Batch, attempts []state.Attempt, err error) {
	err = s.inNode(ctx, key.NodeKey, func(p *nodePartition) error {
		if key.Batch < 0 || key.Batch >= len(p.batches) {
			return state.ErrNotFound
		}
		b = p.batches[key.Batch].Batch
		b.Work = p.plan.batches[key.Batch].Work
		attempts = p.told(key.Batch)
		attempts = attempts[max(0, len(attempts)-state.PageMax):]
		return nil
	})
	return b, attempts, err
}

func batchesOf(p *nodePartition) int { return len(p.batches) }

// Batches implements state.Store.
func (s *Store) Batches(ctx context.Context, key state.NodeKey, page state.Page) ([]state.Batch, int64, error) {
	return list(ctx, s, key, page, batchesOf, func(p *nodePartition, at int) ([]state.Batch, bool) {
		return []state.Batch{p.batches[at].Batch}, true
	})
}

// Unsettled implements state.Store.
func (s *Store) Unsettled(ctx context.Context, key state.NodeKey, page state.Page) ([]state.Batch, int64, error) {
	return list(ctx, s, key, page, batchesOf, func(p *nodePartition, at int) ([]state.Batch, bool) {
		b := p.batches[at].Batch
		if b.Status != state.Claimed && b.Status != state.Failed && b.NotBefore.IsZero() {
			return nil, false
		}
		return []state.Batch{b}, true
	})
}

// Specs implements state.Store.
func (s *Store) Specs(ctx context.Context, key state.NodeKey, page state.Page) ([]state.BatchSpec, int64, error) {
	return list(ctx, s, key, page, batchesOf, func(p *nodePartition, at int) ([]state.BatchSpec, bool) {
		return []state.BatchSpec{p.plan.batches[at]}, true
	})
}

// Inputs implements state.Store.
func (s *Store) Inputs(ctx context.Context, key state.NodeKey, page state.Page) ([]state.Input, int64, error) {
	end := func(p *nodePartition) int {
		if p.plan == nil {
			return 0
		}
		return len(p.plan.inputs)
	}
	return list(ctx, s, key, page, end, func(p *nodePartition, at int) ([]state.Input, bool) {
		return []state.Input{p.plan.inputs[at]}, true
	})
}

// Offers implements state.Store.
func (s *Store) Offers(ctx context.Context, key state.NodeKey, now time.Time, page state.Page) ([]state.Offer,
	int64, error) {
	return list(ctx, s, key, page, batchesOf, func(p *nodePartition, at int) ([]state.Offer, bool) {
		b := p.batches[at]
		o := state.Offer{BatchKey: b.BatchKey, Epoch: p.node.Epoch, Attempt: b.Attempt, Class: b.Class}
		free := state.ClaimRequest{Offer: o, Now: milli(now)}.On(p.node, b.Batch, b.token, p.phase()) != state.ClaimRefused
		if !free {
			return nil, false
		}
		return []state.Offer{o}, true
	})
}

// phase is the first one that is not done.
func (p *nodePartition) phase() int {
	open := slices.DeleteFunc(slices.Clone(p.batches), func(b *batch) bool { return b.Status == state.Succeeded })
	if len(open) == 0 {
		return 0
	}
	return slices.MinFunc(open, func(a, b *batch) int { return cmp.Compare(a.Phase, b.Phase) }).Phase
}
