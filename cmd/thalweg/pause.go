package main

import (
	"context"
	"fmt"

	"thalweg/internal/app/view"
)

// pauseCmd lets a run finish what it is at, and begin nothing more.
type pauseCmd struct{ orderFlags }

func (c *pauseCmd) Run(ctx context.Context, a *console) error {
	home, run, err := c.Ref.open(ctx, a, c.stateFlags)
	if err != nil {
		return err
	}
	defer home.Close()
	out, err := home.Operations.Pause(ctx, a.caller(), run.RunKey, c.Reason)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a.stdout, out)
	}
	if out.Status != view.PausedRun {
		fmt.Fprintf(a.stdout, "run %d is %s: there is nothing to pause\n", run.Run, out.Status)
		return nil
	}
	what := "nothing of it is under way"
	if out.InFlight > 0 {
		what = fmt.Sprintf("%d of its batches are finished first", out.InFlight)
	}
	fmt.Fprintf(a.stdout, "run %d is paused: %s, and no others begin\n  %s lets it go on\n", run.Run, what,
		a.command(run.Do("resume")))
	return nil
}
