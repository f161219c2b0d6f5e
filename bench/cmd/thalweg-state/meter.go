package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"thalweg/bench/internal/idle"
	"thalweg/internal/store/state"
)

// meter is a store that notes what its calls take while a run is driven.
type meter struct {
	state.Store
	mu      sync.Mutex
	claim   time.Duration   // of the batch that was claimed last
	batches []time.Duration // claim and commit of each, in order
	reading time.Duration   // of all that a coordinator reads and renews
}

// newMeter returns a meter of a store.
func newMeter(of state.Store) *meter {
	m := &meter{}
	m.Store = state.Around(of, m.call)
	return m
}

// call notes what a call takes.
func (m *meter) call(ctx context.Context, op state.Op, call func(context.Context) error) error {
	began := time.Now()
	err := call(ctx)
	took := time.Since(began)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch op.Method {
	case state.OpClaim:
		m.claim = took
	case state.OpCommit:
		m.batches = append(m.batches, m.claim+took)
	case state.OpRun, state.OpNodes, state.OpOffers, state.OpUnsettled:
		m.reading += took
	}
	return err
}

// drive begins a run of so many batches and works on it, one at a time, to its end.
func (m *meter) drive(ctx context.Context, batches int) error {
	err := idle.Drive(ctx, m, state.Run{RunKey: state.RunKey{Workspace: batchesWorkspace}},
		state.NodeSpec{Name: batchesNode, Table: "n"}, batches)
	if err == nil && len(m.batches) != batches {
		err = fmt.Errorf("%d of %d batches have been measured", len(m.batches), batches)
	}
	return err
}
