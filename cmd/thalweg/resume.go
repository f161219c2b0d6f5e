package main

import (
	"context"
	"fmt"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
)

// driveFlags are for commands that work on a run that there is.
type driveFlags struct {
	engineFlags
	remoteFlags
	limitFlags
	JSON    bool `name:"json" help:"Print events as JSON lines."`
	Verbose bool `short:"v" help:"Log what the machinery does, to standard error."`
	stateFlags
}

// resumeCmd lets a run go on without its script.
type resumeCmd struct {
	Ref runRef `arg:"" name:"run" help:"Run: its number, or last."`
	driveFlags
}

func (c *resumeCmd) Run(ctx context.Context, a *console) error {
	return c.drive(ctx, a, c.Ref, func(view.Run) (app.RunOptions, error) { return app.RunOptions{}, nil })
}

// drive works on a run until it is over, from what it was begun with. wish
// gives what else is wanted of it.
func (f *driveFlags) drive(ctx context.Context, a *console, ref runRef,
	wish func(view.Run) (app.RunOptions, error)) error {
	place, err := openWorkplace(ctx, a, f.placeFlags, f.engineFlags, f.remoteFlags, f.Verbose)
	if err != nil {
		return err
	}
	defer place.close()
	run, err := ref.find(ctx, place.home, f.Workspace)
	if err != nil {
		return err
	}
	opts, err := wish(run)
	if err != nil {
		return err
	}
	if err := a.confirm(ctx, "goes on with",
		[]replaced{{What: fmt.Sprintf("run %d, which writes its files", run.Run)}}); err != nil {
		return err
	}
	opts.Workspace, opts.Resume, opts.Pinned, opts.ResumeRun = f.Workspace, true, true, run.Run
	opts.Most = f.again(a)
	return place.work(ctx, a, f.JSON, opts)
}
