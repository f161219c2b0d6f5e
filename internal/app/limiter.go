package app

import (
	"context"

	"thalweg/internal/app/runner"
	"thalweg/internal/app/scripts"
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

// Rates implements runner.Limiter.
func (l limiter) Rates(ctx context.Context) (runner.Rates, error) {
	return l.app.Runs.Rates(ctx, l.app.process.Getenv)
}
