package runs

import (
	"context"

	"thalweg/internal/app/registry"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/workerprocess"
)

// Rates returns what the time of a run costs. It pays for all workers that are there, as if no other run was.
func (s *Service) Rates(ctx context.Context, getenv func(name string) string) (out runner.Rates, err error) {
	machine, err := workerprocess.Machine(s.Home, getenv)
	if err != nil {
		return out, err
	}
	workers := 1
	if cfg := s.Home.Cluster(); cfg != nil {
		machine = cfg.Worker.Machine
		all, err := registry.Workers(ctx, s.Home)
		if err != nil {
			return out, err
		}
		workers = 0
		for _, w := range all {
			if !w.Gone && !w.Draining {
				workers++
			}
		}
		workers = max(workers, 1)
	}
	out.PerHour, out.Unpriced = s.Home.Costs.Basis.PerHour(machine, workers)
	return out, nil
}
