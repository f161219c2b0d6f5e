package main

import (
	"context"
	"fmt"

	"thalweg/internal/app/control"
	"thalweg/internal/store/state"
)

// pauseCmd lets a run finish what it is at, and begin nothing more.
type pauseCmd struct{ orderFlags }

// paused is the JSON form of what came of a pause.
type paused struct {
	Workspace string       `json:"workspace"`
	Run       int64        `json:"run"`
	Status    state.Status `json:"status"`
	InFlight  int          `json:"in_flight"` // batches that are still at work
}

func (c *pauseCmd) Run(ctx context.Context, a *app) error {
	home, run, err := c.Ref.open(ctx, a, c.stateFlags)
	if err != nil {
		return err
	}
	defer home.Close()
	status, inFlight, err := control.Pause(ctx, home, run.RunKey, a.order(c.Reason))
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a.stdout, paused{Workspace: run.Workspace, Run: run.Run, Status: status, InFlight: inFlight})
	}
	if status != state.Paused {
		fmt.Fprintf(a.stdout, "run %d is %s: there is nothing to pause\n", run.Run, status)
		return nil
	}
	what := "nothing of it is under way"
	if inFlight > 0 {
		what = fmt.Sprintf("%d of its batches are finished first", inFlight)
	}
	fmt.Fprintf(a.stdout, "run %d is paused: %s, and no others begin\n  %s lets it go on\n", run.Run, what,
		a.command(run.Do("resume")))
	return nil
}
