package main

import (
	"context"
	"fmt"

	"thalweg/internal/app"
)

// stopCmd stops a run from outside.
type stopCmd struct{ orderFlags }

func (c *stopCmd) Run(ctx context.Context, a *console) error {
	home, run, err := c.Ref.open(ctx, a, c.stateFlags)
	if err != nil {
		return err
	}
	defer home.Close()
	out, err := home.Operations.Stop(ctx, a.caller(), run.RunKey, c.Reason)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a.stdout, out)
	}
	switch {
	case out.Before.Terminal():
		fmt.Fprintf(a.stdout, "run %d is %s: there is nothing to stop\n", run.Run, out.Status)
	case out.AtWork:
		fmt.Fprintf(a.stdout, "run %d is stopped; a process has not ended its work on it within %s: what it still "+
			"does goes nowhere\n", run.Run, app.StopBound)
	default:
		fmt.Fprintf(a.stdout, "run %d is stopped, and nothing of it is under way any more (%s)\n", run.Run,
			span(out.Took))
	}
	if !out.Before.Terminal() {
		fmt.Fprintf(a.stdout, "  %s lets it go on\n", a.command(run.Do("resume")))
	}
	return nil
}
