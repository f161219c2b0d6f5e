package main

import (
	"context"
	"errors"
	"fmt"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
)

// runRef names a run on the command line: its number, last, or last~1 for the
// one before that.
type runRef string

// open opens state and finds the run. The caller closes the home.
func (r runRef) open(ctx context.Context, a *console, at stateFlags, settings ...func(*app.Process)) (*app.App,
	view.Run, error) {
	return openRun(ctx, a, at, r.find, settings...)
}

// open is as that of runRef.
func (f runFlag) open(ctx context.Context, a *console, at stateFlags, settings ...func(*app.Process)) (*app.App,
	view.Run, error) {
	return openRun(ctx, a, at, f.pick, settings...)
}

func openRun(ctx context.Context, a *console, at stateFlags,
	find func(context.Context, *app.App, string) (view.Run, error), settings ...func(*app.Process)) (*app.App, view.Run,
	error) {
	home, err := at.openHome(ctx, a, false, settings...)
	if err != nil {
		return nil, view.Run{}, err
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

// find finds the run in state.
func (r runRef) find(ctx context.Context, home *app.App, workspace string) (view.Run, error) {
	return home.Operations.Find(ctx, workspace, string(r))
}

// findOpen finds the latest run that is not over, one that is under way before one that is paused, and says
// so where it is not the last; that one if all are over.
func (a *console) findOpen(ctx context.Context, home *app.App, workspace string) (view.Run, error) {
	found, err := home.Operations.FindOpen(ctx, workspace)
	switch {
	case err != nil || found.Count == 0:
	case found.Count > 1:
		which := "latest that is not over"
		if found.Status == view.Running {
			which = "latest under way"
		}
		fmt.Fprintf(a.stderr, "run %d is the %s; %d are not over\n", found.Run.Run, which, found.Count)
	case found.Run.Run != found.Last.Run:
		fmt.Fprintf(a.stderr, "run %d is the one that is not over: run %d is %s\n", found.Run.Run, found.Last.Run,
			found.Last.Status)
	}
	return found.Run, err
}
