package hostile_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"thalweg/internal/store/state"
	"thalweg/internal/test/statetest"
	"thalweg/internal/test/statetest/hostile"
)

// The store that others are compared with passes the suite, too: otherwise one
// of them is wrong.
func TestConformance(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	stores := map[string]*hostile.Store{}
	statetest.Run(t, func(t *testing.T) state.Store {
		mu.Lock()
		defer mu.Unlock()
		if stores[t.Name()] == nil {
			stores[t.Name()] = hostile.New()
		}
		return stores[t.Name()].Open()
	})
}

// Whoever repeats what is not known is served by a store that loses calls and
// answers, repeats them, and delivers them late, as by one that does not.
func TestConformanceUnderFaults(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	stores := map[string]*hostile.Store{}
	var seed atomic.Uint64
	statetest.Run(t, func(t *testing.T) state.Store {
		mu.Lock()
		defer mu.Unlock()
		if stores[t.Name()] == nil {
			stores[t.Name()] = hostile.New()
		}
		return hostile.Insist(hostile.Wrap(stores[t.Name()].Open(), hostile.Everything(seed.Add(1))))
	})
}
