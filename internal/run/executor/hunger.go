package executor

import (
	"sync"
	"time"

	"thalweg/internal/run/sheet"
)

// hunger knows since when slots wait for work that does not come.
type hunger struct {
	mu    sync.Mutex
	waits int       // slots that do
	since time.Time // when the first of them began to, or work has come last
}

// mouth says whether a slot waits for hints. Hints that are of no use to it do not end that.
type mouth struct {
	open  bool
	place *sheet.Place // of the slot
	slot  int          // its number, from 1 on
}

func (h *hunger) begin(m *mouth, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m.open {
		return
	}
	if m.open = true; h.waits == 0 {
		h.since = now
	}
	h.waits++
}

func (h *hunger) end(m *mouth) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m.open {
		m.open = false
		h.waits--
	}
}

// served says that work has come.
func (h *hunger) served(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.since = now
}

// Hungry is for how long places for batches have waited while no work has come; 0: none waits.
func (e *Executor) Hungry() time.Duration {
	now := e.cfg.Now()
	e.hunger.mu.Lock()
	defer e.hunger.mu.Unlock()
	if e.hunger.waits == 0 {
		return 0
	}
	return max(0, now.Sub(e.hunger.since))
}

// Kept says that hints were kept for this process: who pauses because of others' takes them now.
func (e *Executor) Kept() {
	for range cap(e.kept) {
		select {
		case e.kept <- struct{}{}:
		default:
		}
	}
}
