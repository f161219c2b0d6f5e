package simulate

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
)

// memory is the state of one simulated run, in the memory of this process. It has what coordinators and executors call,
// decides it by the rules of package state as any other store, and keeps milliseconds, as they do.
type memory struct {
	state.Store // nil: nobody calls anything else
	mu          sync.Mutex
	run         state.Run
	nodes       []*memoryNode
	roles       map[string]*state.Role
}

// memoryNode is a node of a memory.
type memoryNode struct {
	state.Node
	staged  map[string]map[int]state.BatchSpec // of plans, by digest
	batches []memoryBatch                      // by number
	undone  []int                              // of a batch: itself until it is done, then one after it
	claimed []int                              // sorted
}

type memoryBatch struct {
	state.Batch
	token string
}

func newMemory() *memory { return &memory{roles: map[string]*state.Role{}} }

// kept is a time as stores have it.
func kept(t time.Time) time.Time { return time.UnixMilli(t.UnixMilli()).UTC() }

// CreateRun implements state.Store.
func (m *memory) CreateRun(_ context.Context, run state.Run, nodes []state.NodeSpec, _ ...state.Blob) (state.RunKey,
	error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.run.Run != 0 {
		return run.RunKey, fault.New(fault.Bug, "a second run is simulated over the state of another one")
	}
	run.Run, run.Status = 1, state.Running
	m.run = run
	for _, spec := range nodes {
		n := &memoryNode{staged: map[string]map[int]state.BatchSpec{}}
		n.NodeKey, n.NodeSpec = state.NodeKey{RunKey: run.RunKey, Node: spec.Name}, spec
		n.Status = state.Pending
		m.nodes = append(m.nodes, n)
	}
	return run.RunKey, nil
}

// Run implements state.Store.
func (m *memory) Run(context.Context, state.RunKey) (state.Run, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.run, nil
}

// CompleteRun implements state.Store.
func (m *memory) CompleteRun(_ context.Context, _ state.RunKey, epoch int64, _ string, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.run.Epoch != epoch {
		return state.ErrConflict
	}
	m.run.Status, m.run.Finished = state.Complete, kept(now)
	return nil
}

// Acquire implements state.Store.
func (m *memory) Acquire(_ context.Context, _ state.RunKey, role, owner string, now, until time.Time) (state.Role,
	error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.roles[role]
	if r == nil {
		r = &state.Role{Name: role}
		m.roles[role] = r
	}
	if !r.Take(owner, kept(now), kept(until)) {
		return *r, state.ErrHeld
	}
	return *r, nil
}

// Resign implements state.Store.
func (m *memory) Resign(_ context.Context, _ state.RunKey, role, owner string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.roles[role]; r != nil && r.Owner == owner {
		r.Owner, r.Until = "", time.Time{}
	}
	return nil
}

// Notes implements state.Store: there are none.
func (m *memory) Notes(context.Context, string, string, string, int) ([]state.Note, error) {
	return nil, nil
}

// Nodes implements state.Store.
func (m *memory) Nodes(context.Context, state.RunKey) ([]state.Node, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]state.Node, len(m.nodes))
	for i, n := range m.nodes {
		out[i] = n.Node
		out[i].Plan = nil
	}
	return out, nil
}

// with calls do with a node.
func (m *memory) with(key state.NodeKey, do func(n *memoryNode) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.nodes, func(n *memoryNode) bool { return n.NodeKey == key })
	if i < 0 {
		return state.ErrNotFound
	}
	return do(m.nodes[i])
}

// StagePlan implements state.Store.
func (m *memory) StagePlan(_ context.Context, key state.NodeKey, digest string, piece state.PlanPiece) error {
	return m.with(key, func(n *memoryNode) error {
		n.stage(digest, piece)
		return nil
	})
}

func (n *memoryNode) stage(digest string, piece state.PlanPiece) {
	if n.staged[digest] == nil {
		n.staged[digest] = map[int]state.BatchSpec{}
	}
	for _, b := range piece.Batches {
		n.staged[digest][b.Batch] = b
	}
}

// AdoptPlan implements state.Store.
func (m *memory) AdoptPlan(_ context.Context, key state.NodeKey, f state.Adoption) (standing string, err error) {
	err = m.with(key, func(n *memoryNode) error {
		switch {
		case n.Epoch != f.Epoch:
			return state.ErrConflict
		case n.PlanDigest != "":
			standing = n.PlanDigest
			return nil
		case n.Status != state.Pending:
			return state.ErrConflict
		}
		n.stage(f.Digest, f.Rest)
		specs := n.staged[f.Digest]
		n.batches, n.undone = make([]memoryBatch, len(specs)), make([]int, len(specs)+1)
		for i := range n.undone {
			n.undone[i] = i
		}
		for i := range n.batches {
			spec, ok := specs[i]
			if !ok || len(specs) != f.Batches {
				return fault.New(fault.Bug, "a plan of %d batches has %d stored", f.Batches, len(specs))
			}
			n.batches[i].Batch = state.Batch{BatchKey: state.BatchKey{NodeKey: key, Batch: i}, BatchSpec: spec,
				Status: state.Pending}
		}
		n.staged, standing = nil, f.Digest
		n.Status, n.PlanDigest, n.Plan, n.InputDigest = state.Running, f.Digest, f.Record, f.InputDigest
		n.BatchesTotal = f.Batches
		n.Revision++
		return nil
	})
	return standing, err
}

// MoveNode implements state.Store.
func (m *memory) MoveNode(_ context.Context, key state.NodeKey, move state.Move) error {
	if !state.Settles(move.From, move.To) {
		return fmt.Errorf("move node %s from %s to %s: %w", key.Node, move.From, move.To, state.ErrIllegalMove)
	}
	return m.with(key, func(n *memoryNode) error {
		if made, err := move.On(n.Node); made || err != nil {
			return err
		}
		n.Node = move.Moves(n.Node)
		n.Revision++
		return nil
	})
}

// next is the first batch from one on that is not done; how many there are: none is.
func (n *memoryNode) next(from int) int {
	last := from
	for n.undone[last] != last {
		last = n.undone[last]
	}
	for from != last {
		from, n.undone[from] = n.undone[from], last
	}
	return last
}

// pageOf is how much a page has at most.
func pageOf(page state.Page) int {
	if page.Limit <= 0 || page.Limit > state.PageMax {
		return state.PageMax
	}
	return page.Limit
}

// Offers implements state.Store. All batches are of one phase.
func (m *memory) Offers(_ context.Context, key state.NodeKey, now time.Time, page state.Page) (offers []state.Offer,
	next int64, err error) {
	now = kept(now)
	err = m.with(key, func(n *memoryNode) error {
		if n.Status != state.Running {
			return nil
		}
		limit := pageOf(page)
		for i := n.next(min(int(page.From), len(n.batches))); i < len(n.batches) && len(offers) < limit; i = n.next(i + 1) {
			b := &n.batches[i]
			if b.Status == state.Pending || b.Lease.Before(now) {
				offers = append(offers, state.Offer{BatchKey: b.BatchKey, Epoch: n.Epoch, Attempt: b.Attempt, Class: b.Class})
			}
		}
		if len(offers) == limit {
			next = int64(offers[limit-1].Batch) + 1
		}
		return nil
	})
	return offers, next, err
}

// Unsettled implements state.Store: none fails, so they are those that are claimed.
func (m *memory) Unsettled(_ context.Context, key state.NodeKey, page state.Page) (batches []state.Batch, next int64,
	err error) {
	err = m.with(key, func(n *memoryNode) error {
		from, _ := slices.BinarySearch(n.claimed, int(page.From))
		for _, i := range n.claimed[from:] {
			if len(batches) == pageOf(page) {
				next = int64(i)
				break
			}
			batches = append(batches, n.batches[i].Batch)
		}
		return nil
	})
	return batches, next, err
}

// Claim implements state.Store.
func (m *memory) Claim(_ context.Context, bid state.ClaimRequest) (claim state.Claim, err error) {
	bid.Now, bid.Lease = kept(bid.Now), kept(bid.Lease)
	err = m.with(bid.NodeKey, func(n *memoryNode) error {
		if bid.Batch >= len(n.batches) {
			return state.ErrNotClaimable
		}
		b := &n.batches[bid.Batch]
		switch bid.On(n.Node, b.Batch, b.token, b.Phase) {
		case state.ClaimRefused:
			return state.ErrNotClaimable
		case state.ClaimHeld:
		case state.ClaimExpired:
			b.Tries++
			n.Revision++
			fallthrough
		case state.ClaimTaken:
			n.take(b, bid)
		}
		claim = state.Claim{BatchKey: b.BatchKey, Epoch: b.Epoch, Attempt: b.Attempt, Tries: b.Tries, Owner: b.Owner,
			Lease: b.Lease, Spec: b.BatchSpec}
		return nil
	})
	return claim, err
}

func (n *memoryNode) take(b *memoryBatch, bid state.ClaimRequest) {
	if at, there := slices.BinarySearch(n.claimed, bid.Batch); !there {
		n.claimed = slices.Insert(n.claimed, at, bid.Batch)
	}
	b.Status, b.Attempt, b.Epoch, b.Owner, b.token = state.Claimed, bid.Attempt+1, bid.Epoch, bid.Owner, bid.Token
	b.Lease, b.Started = bid.Lease, bid.Now
	if n.Started.IsZero() {
		n.Started = bid.Now
	}
	n.Revision++
}

// held calls do with a batch, if the claim has not been lost.
func (m *memory) held(c state.Claim, do func(n *memoryNode, b *memoryBatch)) error {
	return m.with(c.NodeKey, func(n *memoryNode) error {
		if c.Batch >= len(n.batches) {
			return state.ErrNotFound
		}
		b := &n.batches[c.Batch]
		own := b.Attempt == c.Attempt && b.Owner == c.Owner && b.Epoch == c.Epoch
		if !own || b.Status != state.Claimed || !n.Holds(c.Epoch) {
			return state.ErrLeaseLost
		}
		do(n, b)
		return nil
	})
}

// Extend implements state.Store.
func (m *memory) Extend(_ context.Context, c state.Claim, lease time.Time) error {
	return m.held(c, func(_ *memoryNode, b *memoryBatch) {
		b.Lease = slices.MaxFunc([]time.Time{b.Lease, kept(lease)}, time.Time.Compare)
	})
}

// Commit implements state.Store.
func (m *memory) Commit(_ context.Context, c state.Claim, out state.Outcome, now time.Time) error {
	return m.held(c, func(n *memoryNode, b *memoryBatch) {
		b.Status, b.Lease, b.Finished, b.Stats = state.Succeeded, time.Time{}, kept(now), out.Stats
		n.undone[c.Batch] = c.Batch + 1
		at, _ := slices.BinarySearch(n.claimed, c.Batch)
		n.claimed = slices.Delete(n.claimed, at, at+1)
		n.BatchesDone++
		n.Revision++
	})
}
