package runs

import (
	"context"
	"time"

	"thalweg/internal/app/view"
	"thalweg/internal/ops/causes"
	"thalweg/internal/store/state"
)

// Causes says what limited a run, or limits it.
func (s *Service) Causes(ctx context.Context, key state.RunKey) (view.Causes, error) {
	now := time.Now()
	if s.Home.Clock != nil {
		now = s.Home.Clock.Now()
	}
	facts, err := causes.Gather(ctx, s.Home.State, key, now)
	if err != nil {
		return view.Causes{}, err
	}
	return causes.Explain(facts), nil
}
