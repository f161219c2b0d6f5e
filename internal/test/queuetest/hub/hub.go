package hub

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"thalweg/internal/store/queue"
	"thalweg/internal/store/queue/inproc"
)

// Hub is a broker in memory, for tests of those who share a queue: it passes the
// suite, and can be told to behave as badly as a broker may.
type Hub struct {
	mu      sync.Mutex
	changed *sync.Cond
	waiting []queue.Hint
	taken   uint64
	members []*Member
	down    bool
	faults  Faults
}

// Faults holds the percentages of hints and signals that a hub loses, doubles and shuffles.
type Faults struct {
	Lose, Double, Shuffle int
	Rand                  *rand.Rand // needed where one of them is not 0
}

// New returns a broker without members.
func New(f Faults) *Hub {
	h := &Hub{faults: f}
	h.changed = sync.NewCond(&h.mu)
	return h
}

// Member is a process's end of a hub.
type Member struct {
	*inproc.Queue // what is kept, and signals

	hub    *Hub
	cut    bool
	closed bool
	held   map[*queue.Hint]bool // received and not settled
}

var _ queue.Queue = (*Member)(nil)

// Join adds a process.
func (h *Hub) Join() *Member {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := &Member{Queue: inproc.New(0), hub: h, held: map[*queue.Hint]bool{}}
	h.members = append(h.members, m)
	return m
}

// Down takes the broker away from all, or gives it back.
func (h *Hub) Down(down bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.down = down
	for _, m := range h.members {
		m.lose(down)
	}
	h.changed.Broadcast()
}

// Cut takes the broker away from one member, or gives it back.
func (m *Member) Cut(cut bool) {
	m.hub.mu.Lock()
	defer m.hub.mu.Unlock()
	m.cut = cut
	m.lose(cut)
	m.hub.changed.Broadcast()
}

// lose gives others what a member held, or clears what it has kept; mu is held.
func (m *Member) lose(lost bool) {
	if !lost {
		m.Clear()
		return
	}
	for h := range m.held {
		m.hub.waiting = append([]queue.Hint{*h}, m.hub.waiting...)
	}
	clear(m.held)
}

// Purge drops all hints that wait.
func (h *Hub) Purge() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting = nil
}

// Repeat makes each hint that waits come so many times more, and the last one first.
func (h *Hub) Repeat(times int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []queue.Hint
	for range times + 1 {
		for i := range h.waiting {
			all = append(all, h.waiting[len(h.waiting)-1-i])
		}
	}
	h.waiting = all
}

// Left returns the number of waiting hints.
func (h *Hub) Left() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.waiting)
}

func (m *Member) reached() bool { return !m.cut && !m.closed && !m.hub.down }

// Shared implements queue.Queue.
func (m *Member) Shared() bool {
	m.hub.mu.Lock()
	defer m.hub.mu.Unlock()
	return m.reached()
}

var errCut = errors.New("the hub cannot be reached")

func (m *Member) ready(ctx context.Context) error {
	switch {
	case m.closed:
		return queue.ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	case !m.reached():
		return errCut
	}
	return nil
}

// Publish implements queue.Queue.
func (m *Member) Publish(ctx context.Context, hints ...queue.Hint) error {
	h := m.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	for _, hint := range hints {
		h.put(hint)
	}
	h.changed.Broadcast()
	return nil
}

func (h *Hub) happens(percent int) bool { return percent > 0 && h.faults.Rand.IntN(100) < percent }

func (h *Hub) put(hint queue.Hint) {
	if h.happens(h.faults.Lose) {
		return
	}
	h.waiting = append(h.waiting, hint)
	if h.happens(h.faults.Double) {
		h.waiting = append(h.waiting, hint)
	}
	if h.happens(h.faults.Shuffle) {
		h.faults.Rand.Shuffle(len(h.waiting),
			func(i, j int) { h.waiting[i], h.waiting[j] = h.waiting[j], h.waiting[i] })
	}
}

// Keep implements queue.Queue.
func (m *Member) Keep(ctx context.Context, hints ...queue.Hint) error {
	if err := m.Queue.Publish(ctx, hints...); err != nil {
		return err
	}
	m.hub.mu.Lock()
	defer m.hub.mu.Unlock()
	m.hub.changed.Broadcast()
	return nil
}

// Waiting implements queue.Queue.
func (m *Member) Waiting(ctx context.Context, p queue.Priority) (n int, err error) {
	m.hub.mu.Lock()
	defer m.hub.mu.Unlock()
	if err := m.ready(ctx); err != nil {
		return 0, fmt.Errorf("ask how many wait: %w", err)
	}
	for _, h := range m.hub.waiting {
		if h.Priority == p {
			n++
		}
	}
	return n, nil
}

// Receive implements queue.Queue.
func (m *Member) Receive(ctx context.Context) (queue.Delivery, error) {
	h := m.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	defer context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.changed.Broadcast()
	})()
	for {
		if m.closed || ctx.Err() != nil {
			return queue.Delivery{}, fmt.Errorf("receive: %w", m.ready(ctx))
		}
		if d, ok := m.Take(); ok {
			return d, nil
		}
		if m.reached() && len(h.waiting) > 0 {
			return m.deliver(h.next()), nil
		}
		h.changed.Wait()
	}
}

// next takes the most urgent hint; there must be one, and mu is held.
func (h *Hub) next() queue.Hint {
	defer func() { h.taken++ }()
	for _, p := range queue.LevelsFor(h.taken) {
		for i, hint := range h.waiting {
			if hint.Priority == p {
				h.waiting = append(h.waiting[:i:i], h.waiting[i+1:]...)
				return hint
			}
		}
	}
	return queue.Hint{} // not reached: there is one
}

func (m *Member) deliver(hint queue.Hint) queue.Delivery {
	m.held[&hint] = true
	settle := func(back bool) func(context.Context) error {
		return func(context.Context) error {
			m.hub.mu.Lock()
			defer m.hub.mu.Unlock()
			if m.held[&hint] && back {
				m.hub.waiting = append(m.hub.waiting, hint)
				m.hub.changed.Broadcast()
			}
			delete(m.held, &hint)
			return nil
		}
	}
	return queue.Delivery{Hint: hint, Done: settle(false), Back: settle(true)}
}

// Signal implements queue.Queue.
func (m *Member) Signal(ctx context.Context, s queue.Signal) error {
	if err := m.Queue.Signal(ctx, s); err != nil {
		return err
	}
	m.hub.mu.Lock()
	defer m.hub.mu.Unlock()
	for _, other := range m.hub.members {
		if other != m && m.reached() && other.reached() && !m.hub.happens(m.hub.faults.Lose) {
			_ = other.Queue.Signal(ctx, s) // closed: nobody listens
		}
	}
	return nil
}

// Close implements queue.Queue.
func (m *Member) Close() error {
	m.hub.mu.Lock()
	m.lose(true)
	m.closed = true
	m.hub.changed.Broadcast()
	m.hub.mu.Unlock()
	return m.Queue.Close()
}
