package main

import (
	"context"

	"thalweg/internal/base/action"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/registry"
	"thalweg/internal/ops/history"
	"thalweg/internal/store/state"
)

// alone is the one rule of all commands by which a run that is not over has nobody who works on it,
// and what is said then: a state directory's is interrupted, a cluster's waits for a worker.
func (a *app) alone(ctx context.Context, home *instance.Instance) func(state.Run) (history.Alone, bool) {
	return func(r state.Run) (out history.Alone, is bool) {
		if r.Status.Terminal() {
			return out, false
		}
		atWork := home.AtWork(r.RunKey)
		if atWork && home.Cluster() == nil {
			return out, false
		}
		if home.Cluster() == nil {
			return history.Alone{Do: r.Do("resume").String()}, true
		}
		text, hint, err := registry.NobodyTakes(ctx, home, r.RunKey)
		switch {
		case atWork && (err != nil || text == ""): // whoever works on it can
			return out, false
		case err != nil:
			return history.Alone{Why: "it could not be seen which are there: " + err.Error(),
				Do: action.Do("doctor").String() + " looks at the cluster's services"}, true
		case text != "":
			return history.Alone{Why: text, Do: hint}, true
		}
		return history.Alone{Why: "none of those that are there has taken it yet",
			Do: r.Do("attach").String() + " follows it"}, true
	}
}

// statusOf is how a run is, as history has it.
func (a *app) statusOf(ctx context.Context, home *instance.Instance, r state.Run) (history.Run, error) {
	return history.One(ctx, home.State, r.RunKey, history.ListOptions{All: true, Alone: a.alone(ctx, home)})
}
