package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thalweg/internal/app/instance"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/similar"
	"thalweg/internal/store/state"
)

// runRef names a run on the command line: its number, last, or last~1 for the
// one before that.
type runRef string

const lastRun = "last"

// open opens state and finds the run. The caller closes the home.
func (r runRef) open(ctx context.Context, a *app, at stateFlags) (*instance.Instance, state.Run, error) {
	return openRun(ctx, a, at, r.find)
}

// open is as that of runRef.
func (f runFlag) open(ctx context.Context, a *app, at stateFlags) (*instance.Instance, state.Run, error) {
	return openRun(ctx, a, at, f.pick)
}

func openRun(ctx context.Context, a *app, at stateFlags, find func(context.Context, *instance.Instance,
	string) (state.Run,
	error)) (*instance.Instance, state.Run, error) {
	home, err := at.openHome(ctx, a, false)
	if err != nil {
		return nil, state.Run{}, err
	}
	run, err := find(ctx, home, at.Workspace)
	if err != nil {
		return nil, run, errors.Join(err, home.Close())
	}
	return home, run, nil
}

// orderFlags are those of orders to one run.
type orderFlags struct {
	Ref    runRef `arg:"" name:"run" help:"Run: its number, or last."`
	Reason string `help:"Why, for the record." placeholder:"TEXT"`
	JSON   bool   `name:"json" help:"Print a JSON object."`
	stateFlags
}

// needReason refuses an order that says why to nobody. hint names who is told.
func needReason(reason, what, hint string) error {
	if strings.TrimSpace(reason) != "" {
		return nil
	}
	return &fault.Error{Kind: fault.Script, Message: what + " needs a reason", Hint: "--reason TEXT is " + hint}
}

// find finds the run in state.
func (r runRef) find(ctx context.Context, home *instance.Instance, workspace string) (state.Run, error) {
	rest, latest := strings.CutPrefix(string(r), lastRun)
	back := 0
	if latest && rest != "" {
		n, err := strconv.Atoi(strings.TrimPrefix(rest, "~"))
		if back = n; err != nil || n < 0 || n >= state.PageMax || rest[0] != '~' {
			return state.Run{}, r.notOne()
		}
	}
	if !latest {
		n, err := strconv.ParseInt(string(r), 10, 64)
		if err != nil || n < 1 {
			return state.Run{}, r.notOne()
		}
		return runFlag{Run: n}.pick(ctx, home, workspace)
	}
	runs, _, err := home.State.Runs(ctx, workspace, state.Page{Limit: back + 1})
	if err != nil {
		return state.Run{}, fmt.Errorf("read the runs of workspace %s: %w", workspace, err)
	}
	if len(runs) <= back {
		return state.Run{}, fewRuns(ctx, home, workspace, len(runs), r)
	}
	run, err := home.State.Run(ctx, runs[back].RunKey)
	if errors.Is(err, state.ErrNotFound) {
		return run, &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("run %d is gone", runs[back].Run), Err: err}
	}
	return run, err
}

// findOpen finds the latest run that is not over, one that is under way before one that is paused, and says
// so where it is not the last; that one if all are over.
func (a *app) findOpen(ctx context.Context, home *instance.Instance, workspace string) (state.Run, error) {
	last, err := runRef(lastRun).find(ctx, home, workspace)
	if err != nil {
		return last, err
	}
	open, err := state.OpenRuns(ctx, home.State, workspace, nil)
	if err != nil {
		return last, fmt.Errorf("look for runs that are not over: %w", err)
	}
	if len(open) == 0 {
		return last, nil
	}
	underWay := func(r state.Run) (rank int) {
		if r.Status == state.Running {
			rank = 1
		}
		return rank
	}
	found := slices.MaxFunc(open, func(a, b state.Run) int {
		return cmp.Or(underWay(a)-underWay(b), cmp.Compare(a.Run, b.Run))
	})
	switch {
	case len(open) > 1:
		which := "latest that is not over"
		if found.Status == state.Running {
			which = "latest under way"
		}
		fmt.Fprintf(a.stderr, "run %d is the %s; %d are not over\n", found.Run, which, len(open))
	case found.Run != last.Run:
		fmt.Fprintf(a.stderr, "run %d is the one that is not over: run %d is %s\n", found.Run, last.Run, last.Status)
	}
	return found, nil
}

func (r runRef) notOne() error {
	return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("%q does not name a run", string(r)),
		Hint: "write a run's number, last, or last~1 for the one before the last"}
}

// fewRuns says that a workspace has no such run, and, of an empty one, which others there are.
func fewRuns(ctx context.Context, home *instance.Instance, workspace string, runs int, r runRef) error {
	f := &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("workspace %s has %s: there is no %s", workspace,
		counted(runs, "run", "runs"), r), Hint: "`thalweg runs` lists them"}
	if runs > 0 {
		return f
	}
	f.Message, f.Hint = fmt.Sprintf("workspace %s has no runs", workspace),
		"run a script first, or name another workspace with --workspace"
	others, err := home.State.Workspaces(ctx)
	if err != nil || len(others) == 0 {
		return f // what the hint says is right without them
	}
	const named = 5
	f.Hint += ": there is " + strings.Join(others[:min(len(others), named)], ", ")
	if near := similar.Nearest(workspace, others); near != "" {
		f.Hint = "did you mean " + near + "? " + f.Hint
	}
	return f
}
