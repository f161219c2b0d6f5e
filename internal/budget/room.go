package budget

import (
	"context"
	"sync"
)

// Room is the memory of a process's slots, which its batches take in turn. It
// can become smaller and larger while batches are in it.
type Room struct {
	mu      sync.Mutex
	budget  Budget
	used    int       // slots
	alone   bool      // one batch has all of them
	waiting []*waiter // in the order in which they came
}

// waiter wants something of a room.
type waiter struct {
	all   bool    // every slot there is, and nobody beside
	turn  bool    // it is a core that it waits for: of memory there is enough
	to    *Budget // that the room becomes
	grant Grant
	ready chan struct{} // closed when it has it
}

// Grant is what a batch has got.
type Grant struct {
	Slots       int
	EngineBytes int64 // DuckDB's memory_limit
	Turn        bool  // it has waited, if at all, for a free slot, as many as there are cores: not for memory
}

// NewRoom returns an empty room.
func NewRoom(b Budget) *Room { return &Room{budget: b} }

// Budget is what the room has now.
func (r *Room) Budget() Budget {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.budget
}

// Take waits for a slot, or for all of them, and holds it until release is called.
func (r *Room) Take(ctx context.Context, all bool) (g Grant, release func(), err error) {
	w := &waiter{all: all, ready: make(chan struct{})}
	if err := r.wait(ctx, w); err != nil {
		return g, nil, err
	}
	return w.grant, func() { r.give(w.grant) }, nil
}

// Become waits until the batches in the room fit into another budget, and makes
// it the room's. Who comes later waits behind.
func (r *Room) Become(ctx context.Context, b Budget) error {
	return r.wait(ctx, &waiter{to: &b, ready: make(chan struct{})})
}

func (r *Room) wait(ctx context.Context, w *waiter) error {
	r.mu.Lock()
	w.turn = r.turnFor(w)
	r.waiting = append(r.waiting, w)
	r.admit()
	r.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-w.ready: // at the same moment
		r.leave(w.grant)
	default:
		for i, other := range r.waiting {
			if other == w {
				r.waiting = append(r.waiting[:i:i], r.waiting[i+1:]...)
				break
			}
		}
	}
	r.admit()
	return ctx.Err()
}

// turnFor reports whether more memory would not spare somebody who comes now the wait: there is a slot
// for each core, and nobody has, or wants before, more than one of them; mu is held.
func (r *Room) turnFor(w *waiter) bool {
	for _, before := range append(r.waiting[:len(r.waiting):len(r.waiting)], w) {
		if before.all || before.to != nil {
			return false
		}
	}
	return !r.alone && r.budget.Slots >= r.budget.Cores
}

func (r *Room) give(g Grant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leave(g)
	r.admit()
}

// admit serves those who wait, in their order, as long as there is room; mu is held.
func (r *Room) admit() {
	for len(r.waiting) > 0 && r.serve(r.waiting[0]) {
		close(r.waiting[0].ready)
		r.waiting = r.waiting[1:]
	}
}

// leave takes a batch out; mu is held.
func (r *Room) leave(g Grant) {
	r.used -= g.Slots
	r.alone = false // else nobody is beside it, who could leave
}

func (r *Room) serve(w *waiter) bool {
	switch {
	case w.to != nil:
		// Batches in the room keep what they have got.
		if r.used > w.to.Slots || r.used > 0 && w.to.SlotEngineBytes < r.budget.SlotEngineBytes {
			return false
		}
		r.budget = *w.to
		return true
	case w.all:
		if r.used > 0 {
			return false
		}
		w.grant = Grant{Slots: r.budget.Slots, EngineBytes: r.budget.SlotEngineBytes * int64(r.budget.Slots)}
		r.alone = true
	default:
		if r.used >= r.budget.Slots {
			return false
		}
		w.grant = Grant{Slots: 1, EngineBytes: r.budget.SlotEngineBytes, Turn: w.turn}
	}
	r.used += w.grant.Slots
	return true
}
