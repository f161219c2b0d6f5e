package pipeline

import (
	"sync"
	"time"
)

// busyMeter measures for how long at least one batch was inside DuckDB or Python.
type busyMeter struct {
	mu     sync.Mutex
	inside int
	since  time.Time
	total  time.Duration
}

func (m *busyMeter) enter() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.inside == 0 {
		m.since = time.Now()
	}
	m.inside++
}

func (m *busyMeter) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inside--
	if m.inside == 0 {
		m.total += time.Since(m.since)
	}
}

// Idle returns the time since start in which no batch was inside DuckDB or Python: Thalweg's own overhead,
// and waiting.
func (p *Pipeline) Idle(start time.Time) time.Duration {
	p.busy.mu.Lock()
	defer p.busy.mu.Unlock()
	return time.Since(start) - p.busy.total
}
