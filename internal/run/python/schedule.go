package python

import (
	"slices"
	"time"
)

// Which chunk goes to which process. A process without work is served first. One
// that computes gets a second chunk into its pipe only if the first is a matter of
// milliseconds and more are sure to come: a chunk that waits behind a long row, or
// behind another one at the end of the input, would be done earlier elsewhere. Of
// several Runs, the one that occupies the fewest processes is served.

// chunk is some consecutive rows of a Run on their way through a process.
type chunk struct {
	run      *run
	sequence uint64
	first    int64  // rows of the Run before it
	rows     int    // or calls of a function over many rows
	weight   int    // rows that are read
	calls    []call // of a function over many rows
	at       int    // the call whose failure err is; -1: unknown
	columns  []byte // encoded, until it is done: it may have to be sent again
	size     int64  // bytes held for it

	done   chan struct{} // closed when there is an answer or an error
	answer *answer
	err    error
}

// join lets a Run take part.
func (p *Pool) join(r *run) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return p.canceled(noContext)
	}
	p.runs = append(p.runs, r)
	p.runsWG.Add(1)
	return nil
}

// leave takes a Run out, with all chunks that nobody will wait for any more.
func (p *Pool) leave(r *run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.over.Store(true)
	r.ready = nil
	p.runs = slices.DeleteFunc(p.runs, func(other *run) bool { return other == r })
	p.schedule() // its place may be free for others
	p.runsWG.Done()
}

// offer makes a chunk ready for a process. False: the Run has enough of them
// under way; its room channel says when to try again.
func (p *Pool) offer(c *chunk) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, size := c.run, int64(len(c.columns))
	if r.pending > 0 && (len(r.ready) >= len(p.slots) || r.pending >= maxWindowChunks ||
		r.heldBytes+size > p.windowBytes()) {
		return false
	}
	p.sequence++
	c.sequence = p.sequence
	c.size = size
	r.pending++
	r.heldBytes += size
	r.ready = append(r.ready, c)
	p.schedule()
	return true
}

// windowBytes limits what a Run holds: chunks in processes, made ready, and done
// but waiting for an earlier one.
func (p *Pool) windowBytes() int64 {
	return int64(maxChunksInProcess*len(p.slots)+2) * p.cfg.MaxChunkBytes
}

// emitted gives back what was held for a chunk.
func (p *Pool) emitted(c *chunk) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.run.pending--
	c.run.heldBytes -= c.size
	c.size, c.answer = 0, nil
	c.run.signalRoom()
}

// ended says that no chunk will be offered after those that have been.
func (p *Pool) ended(r *run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.ended = true
}

// schedule gives ready chunks to processes while there are both. p.mu is held.
func (p *Pool) schedule() {
	for {
		s, prefetch := p.freeSlot()
		if s == nil {
			return
		}
		r := p.neediest()
		if r == nil || prefetch && r.ended {
			return // nobody overtakes the neediest Run: it waits for the next process that is free
		}
		c := r.ready[0]
		r.ready = r.ready[1:]
		r.inProcess++
		s.load++
		s.last = c
		s.assigned = append(s.assigned, c)
		r.signalRoom()
		s.rouse()
	}
}

// rouse has a slot look what there is to do. p.mu is held.
func (s *slot) rouse() {
	select {
	case s.wake <- struct{}{}:
	default: // already told
	}
}

// freeSlot returns a slot that can take a chunk; prefetch: behind another one.
func (p *Pool) freeSlot() (_ *slot, prefetch bool) {
	var second *slot
	for _, s := range p.slots[:min(p.limit, len(p.slots))] {
		switch {
		case s.stopped:
		case s.load == 0:
			return s, false
		case s.load < maxChunksInProcess && second == nil && p.isShort(s.last):
			second = s
		}
	}
	return second, true
}

func (p *Pool) isShort(c *chunk) bool {
	cost := c.run.rowCost
	return cost > 0 && cost*float64(c.weight) <= 2*float64(p.cfg.ChunkTarget)
}

// neediest returns the Run with ready chunks that has the fewest in processes, and
// of those the one that has used the least time.
func (p *Pool) neediest() *run {
	var best *run
	for _, r := range p.runs {
		if len(r.ready) == 0 {
			continue
		}
		if best == nil || r.inProcess < best.inProcess || r.inProcess == best.inProcess && r.busy < best.busy {
			best = r
		}
	}
	return best
}

// finished takes over a chunk's answer or error from a slot.
func (p *Pool) finished(s *slot, c *chunk, a *answer, err error, peakBytes int64, cpu, starved time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := c.run
	s.load--
	r.inProcess--
	r.chunks++
	r.peakBytes = max(r.peakBytes, peakBytes)
	r.cpu += cpu
	r.starved += starved
	size := int64(0)
	if a != nil {
		size = int64(len(a.columns))
		r.busy += a.busy + a.imports
		r.learn(c.weight, a.busy, &p.cfg)
	}
	r.heldBytes += size - c.size
	c.size, c.columns = size, nil
	c.answer, c.err = a, err
	close(c.done)
	r.signalRoom()
	p.schedule()
}

// returned takes a chunk back from a slot whose process ended before its turn.
func (p *Pool) returned(s *slot, c *chunk) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.load--
	c.run.inProcess--
	if !c.run.over.Load() {
		c.run.ready = slices.Insert(c.run.ready, 0, c)
	}
	p.schedule()
}

// learn adjusts the size of chunks to what rows have cost. p.mu is held.
func (r *run) learn(rows int, busy time.Duration, cfg *Config) {
	if rows == 0 {
		return
	}
	cost := max(float64(busy)/float64(rows), 1)
	if r.rowCost == 0 {
		r.rowCost = cost
	} else {
		r.rowCost += (cost - r.rowCost) / 2
	}
	r.largest = max(r.largest, rows)
	want := min(float64(cfg.ChunkTarget)/r.rowCost, float64(r.largest*chunkGrowthFactor), maxChunkRows)
	r.chunkRows.Store(int64(max(want, 1)))
}
