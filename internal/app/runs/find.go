package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
	"thalweg/internal/store/state"
)

// Last names the latest run of a workspace.
const Last = "last"

// refForm is the form of the names of runs.
var refForm = regexp.MustCompile(`^(last(~[0-9]{1,3})?|0*[1-9][0-9]{0,17})$`)

// CheckRef refuses what Find takes for no name of a run.
func CheckRef(ref string) error {
	if !refForm.MatchString(ref) {
		return notOne(ref)
	}
	return nil
}

// Find finds the run that ref names: its number, last, or last~1 for the one before that.
func (s *Service) Find(ctx context.Context, workspace, ref string) (state.Run, error) {
	rest, latest := strings.CutPrefix(ref, Last)
	back := 0
	if latest && rest != "" {
		n, err := strconv.Atoi(strings.TrimPrefix(rest, "~"))
		if back = n; err != nil || n < 0 || n >= state.PageMax || rest[0] != '~' {
			return state.Run{}, notOne(ref)
		}
	}
	if !latest {
		n, err := strconv.ParseInt(ref, 10, 64)
		if err != nil || n < 1 {
			return state.Run{}, notOne(ref)
		}
		return s.Numbered(ctx, workspace, n)
	}
	runs, _, err := s.Home.State.Runs(ctx, workspace, state.Page{Limit: back + 1})
	if err != nil {
		return state.Run{}, fmt.Errorf("read the runs of workspace %s: %w", workspace, err)
	}
	if len(runs) <= back {
		return state.Run{}, s.fewRuns(ctx, workspace, len(runs), ref)
	}
	run, err := s.Home.State.Run(ctx, runs[back].RunKey)
	if errors.Is(err, state.ErrNotFound) {
		return run, &fault.Error{Kind: fault.Script, Code: fault.NotFound,
			Message: fmt.Sprintf("run %d is gone", runs[back].Run), Err: err}
	}
	return run, err
}

// Numbered finds a run by its number, 0 being the workspace's last.
func (s *Service) Numbered(ctx context.Context, workspace string, number int64) (state.Run, error) {
	if number > 0 {
		r, err := s.Home.State.Run(ctx, state.RunKey{Workspace: workspace, Run: number})
		if errors.Is(err, state.ErrNotFound) {
			return r, instance.RunNotFound(state.RunKey{Workspace: workspace, Run: number})
		}
		return r, err
	}
	runs, _, err := s.Home.State.Runs(ctx, workspace, state.Page{Limit: 1})
	if err != nil {
		return state.Run{}, err
	}
	if len(runs) == 0 {
		return state.Run{}, &fault.Error{Kind: fault.Script, Code: fault.NotFound,
			Message: "workspace " + workspace + " has no runs",
			Hint:    "run a script first, or name another workspace with {{set workspace}}"}
	}
	return runs[0], nil
}

// Latest lists the latest runs of a workspace, the latest first.
func (s *Service) Latest(ctx context.Context, workspace string, limit int) ([]state.Run, error) {
	runs, _, err := s.Home.State.Runs(ctx, workspace, state.Page{Limit: limit})
	return runs, err
}

// Open is the latest run that is not over, among others.
type Open struct {
	state.Run
	Last  state.Run // the workspace's last run
	Count int       // of runs that are not over
}

// FindOpen finds the latest run that is not over, one that is under way before
// one that is paused; the last run if all are over.
func (s *Service) FindOpen(ctx context.Context, workspace string) (out Open, err error) {
	if out.Last, err = s.Find(ctx, workspace, Last); err != nil {
		return out, err
	}
	out.Run = out.Last
	open, err := state.OpenRuns(ctx, s.Home.State, workspace, nil)
	if err != nil {
		return out, fmt.Errorf("look for runs that are not over: %w", err)
	}
	if out.Count = len(open); out.Count == 0 {
		return out, nil
	}
	out.Run = slices.MaxFunc(open, func(a, b state.Run) int {
		return cmp.Or(underWay(a)-underWay(b), cmp.Compare(a.Run, b.Run))
	})
	return out, nil
}

// ListOpen lists the runs that are not over, the one of FindOpen first.
func (s *Service) ListOpen(ctx context.Context, workspace string) ([]view.ListedRun, error) {
	open, err := state.OpenRuns(ctx, s.Home.State, workspace, nil)
	if err != nil {
		return nil, fmt.Errorf("look for runs that are not over: %w", err)
	}
	slices.SortFunc(open, func(a, b state.Run) int {
		return cmp.Or(underWay(b)-underWay(a), cmp.Compare(b.Run, a.Run))
	})
	out := []view.ListedRun{}
	for _, r := range open {
		one, err := s.Listed(ctx, r.RunKey)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// underWay ranks a run that is running above others.
func underWay(r state.Run) int {
	if r.Status == state.Running {
		return 1
	}
	return 0
}

func notOne(ref string) error {
	return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("%q does not name a run", ref),
		Hint: "write a run's number, last, or last~1 for the one before the last"}
}

// fewRuns says that a workspace has no such run, and, of an empty one, which others there are.
func (s *Service) fewRuns(ctx context.Context, workspace string, runs int, ref string) error {
	f := &fault.Error{Kind: fault.Script, Code: fault.NotFound,
		Message: fmt.Sprintf("workspace %s has %s: there is no %s", workspace,
			format.Counted(int64(runs), "run", "runs"), ref), Hint: "{{do runs}} lists them"}
	if runs > 0 {
		return f
	}
	f.Message, f.Hint = fmt.Sprintf("workspace %s has no runs", workspace),
		"run a script first, or name another workspace with {{set workspace}}"
	others, err := s.Home.State.Workspaces(ctx)
	if err != nil || len(others) == 0 {
		return f // what the hint says is right without them
	}
	const named = 5
	f.Hint += ": there is " + strings.Join(others[:min(len(others), named)], ", ")
	return f.Suggest(workspace, others)
}
