package app

import (
	"context"

	"thalweg/internal/app/registry"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/scripts"
	"thalweg/internal/app/workerprocess"
)

// limiter is the runner.Limiter of an instance.
type limiter struct{ app *App }

// Prospect implements runner.Limiter.
func (l limiter) Prospect(ctx context.Context, s *scripts.Script, o RunOptions) (runner.Prospect, error) {
	nodes, err := runner.PlanRun(ctx, l.app.home, s, o)
	if err != nil {
		return runner.Prospect{}, err
	}
	next, err := l.app.next(s, o, nodes)
	if err != nil {
		return runner.Prospect{}, err
	}
	return l.app.Runs.Prospect(ctx, next)
}

// Rates implements runner.Limiter. A run pays for all workers that are there, as if no other run was.
func (l limiter) Rates(ctx context.Context) (out runner.Rates, err error) {
	home := l.app.home
	machine, err := workerprocess.Machine(home, l.app.process.Getenv)
	if err != nil {
		return out, err
	}
	workers := 1
	if cfg := home.Cluster(); cfg != nil {
		machine = cfg.Worker.Machine
		all, err := registry.Workers(ctx, home)
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
	out.PerHour, out.Unpriced = home.Basis.PerHour(machine, workers)
	return out, nil
}
