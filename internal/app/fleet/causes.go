package fleet

import (
	"context"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/view"
	"thalweg/internal/ops/causes"
)

// Causes says what limited a run, or limits it now. Without values it quotes none of the data.
func (s *Service) Causes(ctx context.Context, run view.RunKey, values bool) (view.Causes, error) {
	store := s.Home.State
	if !values {
		store = instance.WithoutValues(store)
	}
	facts, err := causes.Gather(ctx, store, run, s.Home.Clock.Now())
	if err != nil {
		return view.Causes{}, err
	}
	return causes.Explain(facts), nil
}
