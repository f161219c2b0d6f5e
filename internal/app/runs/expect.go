package runs

import (
	"context"
	"slices"
	"time"

	"thalweg/internal/app/view"
	"thalweg/internal/base/calendar"
	"thalweg/internal/ops/history"
	"thalweg/internal/store/state"
)

// Expect says when a run is expected to end, from what complete runs of its script took that began with the same
// nodes, and what the latest one of those before it cost.
func (s *Service) Expect(ctx context.Context, run state.Run) (view.Expectation, error) {
	same := func(r state.Run) bool { return s.SameScript(r, run) }
	var earlier []state.Run
	if run.Status == state.Running {
		var err error
		if earlier, err = history.Earlier(ctx, s.Home.State, run.Workspace, same); err != nil {
			return view.Expectation{}, err
		}
	}
	out, err := s.ExpectAfter(ctx, history.NewExperience(s.Home.State), run, earlier)
	if err != nil {
		return out, err
	}
	if out.Last, err = history.Last(ctx, s.Home.State, run.RunKey, same); err == nil && out.Last != nil {
		err = s.price(ctx, state.RunKey{Workspace: run.Workspace, Run: out.Last.Run}, &out.Last.Cost)
	}
	return out, err
}

// ExpectAfter does so for a caller that knows the earlier runs, the latest first.
func (s *Service) ExpectAfter(ctx context.Context, known *history.Experience, run state.Run,
	earlier []state.Run) (view.Expectation, error) {
	nodes, err := s.nodes(ctx, run.RunKey)
	if err != nil {
		return view.Expectation{}, err
	}
	_, alone := s.Alone(ctx)(run)
	if alone = alone && !state.Waits(nodes); alone {
		earlier = nil
	}
	out, err := known.Expect(ctx, run, nodes, earlier, time.Now())
	if alone && run.Status == state.Running {
		out.Why = "nobody works on it"
	}
	return out, err
}

// DeadlineOf returns when a run that begins at a moment is to be over, by the script of an earlier one; zero: that
// says nothing, or cannot be read any more.
func (s *Service) DeadlineOf(ctx context.Context, earlier state.Run, begins time.Time) time.Time {
	if s.Scripts == nil {
		return time.Time{}
	}
	d, err := s.Scripts.of(ctx, earlier, false)
	if err != nil || d.deadline == "" {
		return time.Time{}
	}
	deadline, err := calendar.ParseDeadline(d.deadline)
	if err != nil {
		return time.Time{}
	}
	return deadline.Of(begins)
}

// SameScript reports whether two runs are of one script, and began with the same nodes.
func (s *Service) SameScript(a, b state.Run) bool {
	return s.Home.IdentityOf(a) == s.Home.IdentityOf(b) && slices.Equal(a.StartNodes, b.StartNodes)
}
