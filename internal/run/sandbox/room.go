package sandbox

import (
	"context"
	"sync"
	"sync/atomic"

	"thalweg/internal/base/budget"
)

// Room is the memory that batches take in turn; see budget.Room.
type Room interface {
	Budget() budget.Budget
	Take(ctx context.Context, share budget.Share) (g budget.Grant, release func(), err error)
}

// roomAnswer is the answer to a batch's request for memory.
type roomAnswer struct {
	Grant  budget.Grant  `json:"grant"`
	Hold   uint64        `json:"hold"`
	Budget budget.Budget `json:"budget"` // of the whole room now
}

// batchHooks are told what a batch does: each until what it answers with is called.
type batchHooks struct{ waits, computes func() func() }

// lendRoom lets the other side take memory. The wait for it is no work of the batch there; with it, it computes.
func lendRoom(to *peer, from Room, held *holds, of *atomic.Pointer[batchHooks]) {
	to.calls["room.take"] = answers(func(ctx context.Context, share budget.Share) (any, error) {
		batch := of.Load()
		if batch != nil {
			defer batch.waits()()
		}
		g, release, err := from.Take(ctx, share)
		if err != nil {
			return nil, err
		}
		if batch != nil {
			over, free := batch.computes(), release
			release = func() { over(); free() }
		}
		return roomAnswer{Grant: g, Hold: held.add(release), Budget: from.Budget()}, nil
	})
}

// farRoom is a room that the other side has. It knows the budget as it was when
// it last heard of it: what a batch gets is in its grant.
type farRoom struct {
	peer *peer
	last atomic.Pointer[budget.Budget]
}

var _ Room = (*farRoom)(nil)

// Budget implements Room.
func (r *farRoom) Budget() budget.Budget { return *r.last.Load() }

// Take implements Room.
func (r *farRoom) Take(ctx context.Context, share budget.Share) (budget.Grant, func(), error) {
	out, err := ask[roomAnswer](ctx, r.peer, "room.take", share)
	if err != nil {
		return budget.Grant{}, nil, err
	}
	r.last.Store(&out.Budget)
	return out.Grant, sync.OnceFunc(func() { r.peer.tell("release", out.Hold) }), nil
}
