package runs

import (
	"context"
	"errors"

	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/forecast"
	"thalweg/internal/ops/simulate"
	"thalweg/internal/store/state"
)

// Replay returns what the simulator needs to carry a complete run out again, on scale times its files. Workers of that
// budget cut the batches.
func (s *Service) Replay(ctx context.Context, key state.RunKey, scale float64, b budget.Budget) (simulate.Costs, error) {
	run, err := s.Numbered(ctx, key.Workspace, key.Run)
	if err != nil {
		return simulate.Costs{}, err
	}
	if run.Status != state.Complete {
		f := fault.New(fault.Script, "run %d is %s: only a complete run can be simulated", run.Run, run.Status)
		f.Hint = "{{do history}} lists runs"
		return simulate.Costs{}, f
	}
	record, err := forecast.Read(ctx, s.Home.State, run)
	if err != nil {
		return simulate.Costs{}, err
	}
	model, err := forecast.Fit([]forecast.Record{record})
	if errors.Is(err, forecast.ErrNoRecord) {
		return simulate.Costs{}, fault.New(fault.Script, "run %d has no nodes that took any time", run.Run)
	}
	if err != nil {
		return simulate.Costs{}, err
	}
	load := forecast.Load{Scale: scale, Budget: b, State: simulate.Directory()}
	if s.Home.Cluster() != nil {
		load.State, load.Queue = simulate.Portfolio().State, simulate.Portfolio().Queue
	}
	return model.Costs(load), nil
}
