package statetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"thalweg/internal/fault"
	"thalweg/internal/state"
)

// The model passes the suite, too: otherwise one of them is wrong.
func TestModel(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	models := map[string]*model{}
	Run(t, func(t *testing.T) state.Store {
		mu.Lock()
		defer mu.Unlock()
		m := models[t.Name()]
		if m == nil {
			m = newModel()
			models[t.Name()] = m
		}
		return &strict{model: m}
	})
}

// strict adds what the model leaves out: it refuses what no caller may ask,
// and any use after Close.
type strict struct {
	*model
	closing sync.Mutex
	closed  bool
}

var errClosed = errors.New("closed")

func (s *strict) CreateRun(ctx context.Context, run state.Run, nodes []state.NodeSpec) (state.RunKey, error) {
	seen := map[string]bool{}
	for _, n := range nodes {
		if seen[n.Name] {
			return state.RunKey{}, fault.New(fault.Bug, "node twice")
		}
		seen[n.Name] = true
	}
	if run.Workspace == "" {
		return state.RunKey{}, fault.New(fault.Bug, "no workspace")
	}
	return s.model.CreateRun(ctx, run, nodes)
}

func (s *strict) PlanNode(ctx context.Context, key state.NodeKey, plan []byte, batches []state.BatchSpec) error {
	for i, b := range batches {
		if b.Batch != i {
			return fault.New(fault.Bug, "out of order")
		}
	}
	return s.model.PlanNode(ctx, key, plan, batches)
}

func (s *strict) Commit(ctx context.Context, c state.Claim, out state.Outcome, now time.Time) error {
	seen := map[int]bool{}
	for _, p := range out.Parts {
		if seen[p.Seq] {
			return fault.New(fault.Bug, "place twice")
		}
		seen[p.Seq] = true
	}
	return s.model.Commit(ctx, c, out, now)
}

func (s *strict) Fail(ctx context.Context, c state.Claim, failure state.Failure, out state.Outcome, now time.Time) error {
	for _, p := range out.Parts {
		if p.Side == "" {
			return fault.New(fault.Bug, "a part of the table")
		}
	}
	if len(out.Files) > 0 {
		return fault.New(fault.Bug, "a file")
	}
	return s.model.Fail(ctx, c, failure, out, now)
}

func (s *strict) Run(ctx context.Context, key state.RunKey) (state.Run, error) {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.closed {
		return state.Run{}, errClosed
	}
	return s.model.Run(ctx, key)
}

func (s *strict) Close() error {
	s.closing.Lock()
	defer s.closing.Unlock()
	s.closed = true
	return nil
}
