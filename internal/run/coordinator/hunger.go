package coordinator

import (
	"context"
	"fmt"
	"sync"
	"time"

	"thalweg/internal/store/queue"
	"thalweg/internal/store/state"
)

// A process that waits for hints although its run has work looks for free batches in the state. hungryAfter and
// standsAfter add up to less than a second, so missing hints cost little time, whatever the cause.
const (
	// hungryAfter is the time for which a process waits for hints before it looks, and the least time between
	// two looks.
	hungryAfter = 400 * time.Millisecond
	// standsAfter is the time after which the hint of a free batch counts as late.
	standsAfter = 200 * time.Millisecond
	// answerPatience limits the wait for the broker's number of waiting hints; publishPatience limits the wait
	// until it accepts some.
	answerPatience  = 500 * time.Millisecond
	publishPatience = time.Second
	// leanPage limits how many of a node's free batches are looked at. leanTrust is the time for which a look
	// that found none stays valid while the node does not change.
	leanPage  = 64
	leanTrust = 2 * time.Second
	// aloneGraces limits the number of graces for which a run goes on without its hints.
	aloneGraces = 4
)

// hunger is the state of a process that waits for hints, beside a run that has work.
type hunger struct {
	mu    sync.Mutex
	since time.Duration // how long it has waited; 0: it does not wait
	at    time.Time     // of the latest look
	moved time.Time     // of the last change in the run, as of that look
	works bool          // the run had batches left to do
	free  bool          // some of them could be claimed
	heard bool          // another process has signalled that hints do not arrive

	lean map[string]lean // the last look at each node; only the coordinator's own goroutine uses it
}

// lean is the last look at a node by a process that waits for hints.
type lean struct {
	as   string // revision, epoch and batches done of the node: a text that changes with it
	at   time.Time
	free map[int]mark
}

// Hungry tells the coordinator how long this process has waited for hints that it can use; 0: it does not wait.
// If that is long, the coordinator looks at the run.
func (c *Coordinator) Hungry(since time.Duration) {
	if c.hunger.due(since, c.cfg.Now(), max(c.cfg.FollowSlowest, followShared*c.cfg.Follow)) {
		c.Poke()
	}
}

// due reports whether a look at the run is due. While nothing changes, the pause between looks grows up to longest.
func (h *hunger) due(since time.Duration, now time.Time, longest time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.since = since
	if since < hungryAfter || !h.works {
		return false
	}
	pause := min(max(hungryAfter, now.Sub(h.moved)/quietShare), longest)
	if h.free {
		pause = standsAfter
	}
	if now.Sub(h.at) < pause {
		return false
	}
	h.at = now
	return true
}

// looked notes what a look has found.
func (h *hunger) looked(now, moved time.Time, works bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at, h.moved, h.works = now, moved, works
}

// told notes that somebody else has found that hints do not arrive.
func (h *hunger) told() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heard = h.since >= hungryAfter
}

// now reports whether the process waits, and whether another one has signalled that hints do not arrive.
func (h *hunger) now() (waits, heard bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	waits, heard = h.since >= hungryAfter, h.heard
	h.heard = false
	return waits, heard && waits
}

// sees notes whether batches are free.
func (h *hunger) sees(free bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.free = free
}

// starved reports whether batches stay free although this process waits for hints. Then
// hints do not arrive, whatever the cause.
func (c *Coordinator) starved(ctx context.Context, work []state.Node) (bool, error) {
	waits, heard := c.hunger.now()
	if !waits || heard {
		c.hunger.lean = nil
		c.hunger.sees(false)
		return heard, nil
	}
	seen, free := map[string]lean{}, false
	for _, n := range work {
		l, stands, err := c.freeOf(ctx, n, c.hunger.lean[n.Name])
		if err != nil {
			return false, err
		}
		if stands {
			return true, nil
		}
		seen[n.Name], free = l, free || len(l.free) > 0
	}
	c.hunger.lean = seen
	c.hunger.sees(free)
	return false, nil
}

// freeOf looks which batches of a node are free, and whether one of them stays so.
func (c *Coordinator) freeOf(ctx context.Context, n state.Node, before lean) (seen lean, stands bool, err error) {
	now, as := c.cfg.Now(), fmt.Sprint(n.Revision, n.Epoch, n.BatchesDone)
	if before.as == as && len(before.free) == 0 && now.Sub(before.at) < leanTrust {
		return before, false, nil
	}
	offers, _, err := c.cfg.Store.Offers(ctx, n.NodeKey, now, state.Page{Limit: leanPage})
	if err != nil {
		return lean{}, false, fmt.Errorf("read what is on offer of %s: %w", n.Name, err)
	}
	seen = lean{as: as, at: now, free: map[int]mark{}}
	for _, o := range offers {
		m, ok := before.free[o.Batch]
		if !ok || !m.of(o) {
			m = markOf(o, 0, now)
		}
		seen.free[o.Batch] = m
		stands = stands || now.Sub(m.seen) >= standsAfter
	}
	return seen, stands, nil
}

// feed lets this process go on from the state for a while without the shared queue, and signals
// that to others. The while doubles if the last one ended a short time ago.
func (c *Coordinator) feed(ctx context.Context) error {
	level := c.cfg.Logger.Info
	if c.alone > 0 && c.cfg.Now().Sub(c.apart) < 2*c.cfg.Grace {
		c.alone, level = min(2*c.alone, aloneGraces*c.cfg.Grace), c.cfg.Logger.Debug
	} else {
		c.alone = c.cfg.Grace / 2
	}
	level("hints of batches that are free do not arrive; the run goes on from what is in state", "run", c.run.Run,
		"for", c.alone)
	c.hunger.lean = nil
	c.hunger.sees(false)
	c.signal(ctx, queue.Starved)
	c.leaveQueue(c.alone)
	return nil
}

// leaveQueue lets the run go on without the shared queue for a while.
func (c *Coordinator) leaveQueue(alone time.Duration) {
	c.apart = c.cfg.Now().Add(alone)
	c.Poke()
}

// waiting returns the number of waiting hints of the run's priority. A broker that does not say so soon is
// left alone for a while.
func (c *Coordinator) waiting(ctx context.Context) (int, error) {
	limited, stop := context.WithTimeout(ctx, answerPatience)
	defer stop()
	n, err := c.cfg.Queue.Waiting(limited, c.cfg.Priority)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		c.leaveQueue(c.cfg.Grace / 2)
	}
	return n, err
}
