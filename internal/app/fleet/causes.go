package fleet

import (
	"context"

	"thalweg/internal/app/view"
	"thalweg/internal/ops/causes"
)

// Causes says what limited a run, or limits it now.
func (s *Service) Causes(ctx context.Context, run view.RunKey) (view.Causes, error) {
	facts, err := causes.Gather(ctx, s.Home.State, run, s.Home.Clock.Now())
	if err != nil {
		return view.Causes{}, err
	}
	return causes.Explain(facts), nil
}
