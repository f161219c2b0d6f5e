package inproc

import "thalweg/internal/store/queue"

// ring is a first-in, first-out list that reuses its memory.
type ring struct {
	slots []queue.Hint
	first int
	n     int
}

// ringStart is the size of a ring that has held anything at all.
const ringStart = 16

func (r *ring) len() int { return r.n }

func (r *ring) push(h queue.Hint) {
	if r.n == len(r.slots) {
		r.grow()
	}
	r.slots[(r.first+r.n)%len(r.slots)] = h
	r.n++
}

// pop takes the first; there must be one.
func (r *ring) pop() queue.Hint {
	h := r.slots[r.first]
	r.slots[r.first] = queue.Hint{} // its texts may go
	r.first = (r.first + 1) % len(r.slots)
	r.n--
	return h
}

func (r *ring) grow() {
	bigger := make([]queue.Hint, max(ringStart, 2*len(r.slots)))
	for i := range r.n {
		bigger[i] = r.slots[(r.first+i)%len(r.slots)]
	}
	r.slots, r.first = bigger, 0
}
