package budget

import (
	"context"
	"slices"
	"sync"

	"thalweg/internal/base/awake"
)

// Share is a step of memory that a batch asks for.
type Share int

// Shares, each more than the one before.
const (
	OneSlot    Share = iota
	AllSlots         // that its process has, and nobody beside
	Everything       // that the processes of a directory have together, as if the batch's were the only one
)

// Room is the memory of a process's slots, which its batches take in turn. It
// can become smaller and larger while batches are in it.
type Room struct {
	mu      sync.Mutex
	budget  Budget
	aim     *Budget   // that it becomes once the batches in it fit; nil: it has
	most    int64     // budget.TotalBytes, where it has everything
	shared  bool      // a Ledger decides what it has
	used    int       // slots
	alone   bool      // one batch has all of them
	granted Share     // that it has got, if it is alone
	paused  bool      // a batch has had everything: the ledger decides who is next
	known   bool      // to the ledger, which is deciding
	waiting []*waiter // in the order in which they came
	changed chan struct{}
}

// waiter wants something of a room.
type waiter struct {
	share Share
	turn  bool // it is a core that it waits for: of memory there is enough
	grant Grant
	ready chan struct{} // closed when it has it
}

// Grant describes the slots and the memory that a batch was given.
type Grant struct {
	Slots       int
	EngineBytes int64 // DuckDB's memory_limit
	Turn        bool  // it has waited, if at all, for a free slot, as many as there are cores: not for memory
	Most        bool  // there is no Share that would give more
}

// NewRoom returns an empty room that nobody shares.
func NewRoom(b Budget) *Room {
	return &Room{budget: b, most: b.TotalBytes, changed: make(chan struct{}, 1)}
}

// Budget returns the room's present budget.
func (r *Room) Budget() Budget {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.budget
}

// Take waits for a share of the room, and holds it until release is called. The wait is no work:
// see awake.Waits.
func (r *Room) Take(ctx context.Context, share Share) (g Grant, release func(), err error) {
	defer awake.Waits(ctx)()
	w := &waiter{share: share, ready: make(chan struct{})}
	r.mu.Lock()
	w.turn = r.turnFor(w)
	r.waiting = append(r.waiting, w)
	r.admit()
	if share == Everything || r.slots() == 0 {
		r.tell()
	}
	r.mu.Unlock()
	select {
	case <-w.ready:
		return w.grant, sync.OnceFunc(func() { r.give(w.grant) }), nil
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-w.ready: // at the same moment
		r.leave(w.grant)
	default:
		r.waiting = slices.DeleteFunc(r.waiting, func(other *waiter) bool { return other == w })
	}
	r.admit()
	return g, nil, ctx.Err()
}

// become makes another budget the room's as soon as the batches in it fit, and
// reports whether it is. Until then none begins that would be in the way.
func (r *Room) become(b Budget) (done bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.aim = &b
	if r.known { // else the next review decides: the batch has ended since this one began
		r.paused, r.known = false, false
	}
	done = r.arrive()
	r.admit()
	return done
}

// demand sums up the state of a room's batches for the ledger.
type demand struct {
	everything bool // one waits for everything, or has it
	had        bool // one has had everything since the ledger last decided
	waiting    bool // some wait
	idle       bool // none is at work that could be, with what the room has
}

func (r *Room) demand() demand {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known = r.paused
	wants := func(w *waiter) bool { return w.share == Everything }
	return demand{
		everything: r.alone && r.granted == Everything || slices.ContainsFunc(r.waiting, wants),
		had:        r.paused,
		waiting:    len(r.waiting) > 0,
		idle:       r.used == 0 && (len(r.waiting) == 0 || r.slots() == 0 || wants(r.waiting[0])),
	}
}

// becoming reports whether batches have to end until the room is what it is to become.
func (r *Room) becoming() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.aim != nil
}

// tell wakes who decides what the room has; mu is held.
func (r *Room) tell() {
	select {
	case r.changed <- struct{}{}:
	default: // it has been told
	}
}

// turnFor reports whether more memory would not spare somebody who comes now the wait: there is a slot
// for each core, and nobody has, or wants before, more than one of them; mu is held.
func (r *Room) turnFor(w *waiter) bool {
	several := func(w *waiter) bool { return w.share != OneSlot }
	return !several(w) && !slices.ContainsFunc(r.waiting, several) && r.aim == nil && !r.alone &&
		r.budget.Slots >= r.budget.Cores
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
	if r.alone && r.granted == Everything && r.shared {
		r.paused = true
		r.tell()
	}
	r.alone = false // else nobody is beside it, who could leave
	if r.aim != nil && r.arrive() {
		r.tell()
	}
}

// arrive makes the room what it is to become, if its batches fit, and reports whether it is; mu is held.
func (r *Room) arrive() bool {
	// Batches in the room keep what they have got.
	if r.used > r.aim.Slots || r.used > 0 && r.aim.SlotEngineBytes < r.budget.SlotEngineBytes {
		return false
	}
	r.budget, r.aim = *r.aim, nil
	return true
}

// slots returns the number of slots that may be in use; mu is held.
func (r *Room) slots() int {
	switch {
	case r.paused:
		return 0
	case r.aim == nil:
		return r.budget.Slots
	case r.aim.SlotEngineBytes < r.budget.SlotEngineBytes:
		return 0
	}
	return min(r.budget.Slots, r.aim.Slots)
}

func (r *Room) serve(w *waiter) bool {
	slots, whole := r.slots(), r.budget.TotalBytes >= r.most
	switch {
	case r.used >= slots, w.share == Everything && !whole:
		return false
	case w.share == OneSlot:
		w.grant = Grant{Slots: 1, EngineBytes: r.budget.SlotEngineBytes, Turn: w.turn,
			Most: whole && r.budget.Slots == 1}
	case r.used > 0 || slots < r.budget.Slots:
		return false
	default:
		w.grant = Grant{Slots: slots, EngineBytes: r.budget.SlotEngineBytes * int64(slots), Most: whole}
		r.alone, r.granted = true, w.share
	}
	r.used += w.grant.Slots
	return true
}
