package hostile_test

import (
	"sync"
	"testing"

	"thalweg/internal/state"
	"thalweg/internal/state/statetest"
	"thalweg/internal/state/statetest/hostile"
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
