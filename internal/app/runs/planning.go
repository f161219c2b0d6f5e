package runs

import (
	"context"

	"thalweg/internal/app/sizing"
	"thalweg/internal/base/budget"
	"thalweg/internal/store/state"
)

// Types of plans.
type (
	Wanted  = sizing.Wanted
	Planned = sizing.Planned
)

// PlanFor chooses machines for a complete run, or a larger one of its script. here cuts the batches where its time
// sheets do not say how much memory there was.
func (s *Service) PlanFor(ctx context.Context, key state.RunKey, w Wanted, here budget.Budget) (Planned, error) {
	model, record, err := s.learnt(ctx, key)
	if err != nil {
		return Planned{}, err
	}
	return w.Answer(ctx, model, record, s.load(here), s.Home.Costs.Basis)
}
