package inproc

import (
	"sync"

	"thalweg/internal/store/queue"
)

// limitSignals limits the waiting signals: more runs than any process works on. Further ones are dropped, as
// signals may be.
const limitSignals = 10_000

// signals are those that wait, each once. The queue's lock protects them.
type signals struct {
	came  *sync.Cond
	known map[queue.Signal]bool
	order []queue.Signal
}

func newSignals(mu *sync.Mutex) signals {
	return signals{came: sync.NewCond(mu), known: map[queue.Signal]bool{}}
}

func (s *signals) add(sig queue.Signal) {
	if s.known[sig] || len(s.order) >= limitSignals {
		return
	}
	s.known[sig] = true
	s.order = append(s.order, sig)
	s.came.Signal()
}

// take gives the first; there must be one.
func (s *signals) take() queue.Signal {
	sig := s.order[0]
	s.order = s.order[1:]
	delete(s.known, sig)
	return sig
}
