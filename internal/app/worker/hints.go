package worker

import (
	"context"
	"fmt"

	"thalweg/internal/run/executor"
	"thalweg/internal/store/queue"
	"thalweg/internal/store/state"
)

// hinted joins a run of which a hint has come. It fails with state.ErrNotFound
// where there is nothing to do for it.
func (s *Server) hinted(ctx context.Context, key state.RunKey) error {
	r, err := s.Store.Run(ctx, key)
	if err != nil {
		return fmt.Errorf("read run %d: %w", key.Run, err)
	}
	if !r.GoesOn() {
		return fmt.Errorf("run %d is %s: %w", key.Run, r.Status, state.ErrNotFound)
	}
	if s.entersOther(key) { // which may take long: others may have this one, and this place what they offer
		return fmt.Errorf("run %d is not open, and another one is being joined: %w", key.Run, executor.ErrElsewhere)
	}
	s.consider(ctx, r)
	return nil
}

// look makes watch look for runs now.
func (s *Server) look(queue.Signal) {
	select {
	case s.called <- struct{}{}:
	default:
	}
}
