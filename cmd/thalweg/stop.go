package main

import (
	"context"
	"fmt"

	"thalweg/internal/app/control"
	"thalweg/internal/store/state"
)

// stopCmd stops a run from outside.
type stopCmd struct{ orderFlags }

// stopped is the JSON form of what came of a stop.
type stopped struct {
	Workspace string       `json:"workspace"`
	Run       int64        `json:"run"`
	Before    state.Status `json:"before"`
	Status    state.Status `json:"status"`
	AtWork    bool         `json:"at_work"` // a process had not ended within the time that a stop waits
	MS        int64        `json:"took_ms"`
}

func (c *stopCmd) Run(ctx context.Context, a *app) error {
	home, run, err := c.Ref.open(ctx, a, c.stateFlags)
	if err != nil {
		return err
	}
	defer home.Close()
	out, err := control.Stop(ctx, home, run.RunKey, a.order(c.Reason))
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a.stdout, stopped{Workspace: run.Workspace, Run: run.Run, Before: out.Before, Status: out.After,
			AtWork: out.AtWork, MS: out.Took.Milliseconds()})
	}
	switch {
	case out.Before.Terminal():
		fmt.Fprintf(a.stdout, "run %d is %s: there is nothing to stop\n", run.Run, out.After)
	case out.AtWork:
		fmt.Fprintf(a.stdout, "run %d is stopped; a process has not ended its work on it within %s: what it still does "+
			"goes nowhere\n", run.Run, control.StopBound)
	default:
		fmt.Fprintf(a.stdout, "run %d is stopped, and nothing of it is under way any more (%s)\n", run.Run, span(out.Took))
	}
	if !out.Before.Terminal() {
		fmt.Fprintf(a.stdout, "  %s lets it go on\n", a.command(run.Do("resume")))
	}
	return nil
}
