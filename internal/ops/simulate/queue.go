package simulate

import (
	"context"
	"errors"
	"slices"
	"time"

	"thalweg/internal/run/sheet"
	"thalweg/internal/store/queue"
)

// broker is the part of the queue that all processes share: all hints, in their order.
type broker struct {
	list []queue.Hint
	ends []*hints // of all processes, for those whose receivers wait
}

// hints is the queue as one process uses it. Where processes share none, they are
// its own alone, as those of package queue/inproc are.
type hints struct {
	fleet   *fleet
	worker  *fleetWorker
	own     []queue.Hint
	idle    []*waiter // receivers
	began   int       // of them
	signals []queue.Signal
	hearing []*waiter
}

var _ queue.Queue = (*hints)(nil)

// Publish implements queue.Queue.
func (h *hints) Publish(ctx context.Context, all ...queue.Hint) error {
	if !h.Shared() {
		return h.Keep(ctx, all...)
	}
	if h.fleet.world.isOver() || !h.fleet.world.sleep(&h.worker.process, h.fleet.costs.Queue.sample(h.worker.random)) {
		return errOver
	}
	w := h.fleet.world
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, hint := range all {
		h.fleet.broker.list = append(h.fleet.broker.list, hint)
		h.fleet.broker.deliver(w)
	}
	return nil
}

// deliver lets a receiver of any process go on; mu of the world is held.
func (b *broker) deliver(w *world) {
	for i, end := range b.ends {
		if len(end.idle) > 0 && !end.worker.dead {
			w.resume(end.idle[0])
			end.idle = end.idle[1:]
			b.ends = append(slices.Delete(b.ends, i, i+1), end) // each in turn
			return
		}
	}
}

// Keep implements queue.Queue.
func (h *hints) Keep(_ context.Context, all ...queue.Hint) error {
	w := h.fleet.world
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, hint := range all {
		h.own = append(h.own, hint)
		if len(h.idle) > 0 {
			w.resume(h.idle[0])
			h.idle = h.idle[1:]
		}
	}
	return nil
}

// Receive implements queue.Queue.
func (h *hints) Receive(context.Context) (queue.Delivery, error) {
	w := h.fleet.world
	w.mu.Lock()
	defer w.mu.Unlock()
	h.fleet.idle, h.worker.waits = h.fleet.idle+1, h.worker.waits+1
	if h.began < h.fleet.Slots && !w.over { // slots begin at once: from here on one goes on at a time
		h.began++
		who := newWaiter(&h.worker.process)
		w.resume(who)
		w.wait(who)
	}
	for !w.over && len(h.own) == 0 && len(h.fleet.broker.list) == 0 {
		who := newWaiter(&h.worker.process)
		h.idle = append(h.idle, who)
		w.wait(who)
	}
	h.fleet.idle, h.worker.waits = h.fleet.idle-1, h.worker.waits-1
	if w.over {
		return queue.Delivery{}, queue.ErrClosed
	}
	from := &h.own
	if len(h.own) == 0 {
		from = &h.fleet.broker.list
	}
	hint := (*from)[0]
	*from = (*from)[1:]
	return queue.Delivery{Hint: hint, Done: ignored, Back: ignored}, nil
}

func ignored(context.Context) error { return nil }

// Shared implements queue.Queue.
func (h *hints) Shared() bool { return h.fleet.costs.Queue.Median > 0 }

// Waiting implements queue.Queue.
func (h *hints) Waiting(context.Context, queue.Priority) (int, error) {
	w := h.fleet.world
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(h.fleet.broker.list), nil
}

// Signal implements queue.Queue: every process hears of it a little later.
func (h *hints) Signal(_ context.Context, s queue.Signal) error {
	w := h.fleet.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return errOver
	}
	in := h.fleet.costs.Queue.sample(h.worker.random)
	for _, end := range h.fleet.broker.ends {
		w.schedule(in, event{of: &end.worker.process, do: func() { end.hear(s) }})
	}
	return nil
}

func (h *hints) hear(s queue.Signal) {
	w := h.fleet.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(h.signals, s) {
		h.signals = append(h.signals, s)
	}
	if len(h.hearing) > 0 {
		w.resume(h.hearing[0])
		h.hearing = h.hearing[1:]
	}
}

// Signalled implements queue.Queue.
func (h *hints) Signalled(context.Context) (queue.Signal, error) {
	w := h.fleet.world
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.over && len(h.signals) == 0 {
		who := newWaiter(&h.worker.process)
		h.hearing = append(h.hearing, who)
		w.wait(who)
	}
	if w.over {
		return queue.Signal{}, queue.ErrClosed
	}
	s := h.signals[0]
	h.signals = h.signals[1:]
	return s, nil
}

// Close implements queue.Queue.
func (h *hints) Close() error { return errors.New("queues of simulations are not closed") }

// passing divides the time of slots that have nothing to do; mu of the world is held.
func (f *fleet) passing(d time.Duration) {
	f.capacity += time.Duration(f.slots) * d
	unoffered := min(f.idle, f.open)
	f.spent[sheet.Unoffered] += time.Duration(unoffered) * d
	rest := time.Duration(f.idle-unoffered) * d
	if f.working > 0 {
		f.spent[sheet.Nothing] += rest
	} else {
		f.spent[sheet.Handover] += rest
	}
}
