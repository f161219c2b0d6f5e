package local

import (
	"context"
	"time"

	"thalweg/internal/secret"
	"thalweg/internal/state"
)

// discreetStore keeps secrets out of the texts that are stored for people. What
// a run itself needs (plans, parts) has none: it is made of references.
type discreetStore struct {
	state.Store
	known *secret.Known
}

// CreateRun implements state.Store.
func (d discreetStore) CreateRun(ctx context.Context, run state.Run, nodes []state.NodeSpec) (state.RunKey, error) {
	run.ScriptPath, run.ParamsPath, run.Description = d.known.Text(run.ScriptPath), d.known.Text(run.ParamsPath), d.known.Text(run.Description)
	run.Definition = []byte(d.known.Text(string(run.Definition)))
	run.Failure = d.failure(run.Failure)
	return d.Store.CreateRun(ctx, run, nodes)
}

// SetRunStatus implements state.Store.
func (d discreetStore) SetRunStatus(ctx context.Context, key state.RunKey, from, to state.Status, failure *state.Failure) error {
	return d.Store.SetRunStatus(ctx, key, from, to, d.failure(failure))
}

// Commit implements state.Store.
func (d discreetStore) Commit(ctx context.Context, c state.Claim, out state.Outcome, now time.Time) error {
	return d.Store.Commit(ctx, c, d.outcome(out), now)
}

// Fail implements state.Store.
func (d discreetStore) Fail(ctx context.Context, c state.Claim, failure state.Failure, out state.Outcome, now time.Time) error {
	return d.Store.Fail(ctx, c, *d.failure(&failure), d.outcome(out), now)
}

func (d discreetStore) failure(f *state.Failure) *state.Failure {
	if f == nil {
		return nil
	}
	out := *f
	out.Place = d.known.Place(f.Place)
	out.Message, out.Hint, out.Detail = d.known.Text(f.Message), d.known.Text(f.Hint), d.known.Text(f.Detail)
	return &out
}

func (d discreetStore) outcome(out state.Outcome) state.Outcome {
	out.Files = append([]state.File(nil), out.Files...)
	for i := range out.Files {
		out.Files[i].URL = d.known.Text(out.Files[i].URL)
	}
	out.Checks = append([]state.CheckResult(nil), out.Checks...)
	for i := range out.Checks {
		out.Checks[i].Message = d.known.Text(out.Checks[i].Message)
	}
	out.Stats.Warnings = append([]string(nil), out.Stats.Warnings...)
	for i, w := range out.Stats.Warnings {
		out.Stats.Warnings[i] = d.known.Text(w)
	}
	return out
}
