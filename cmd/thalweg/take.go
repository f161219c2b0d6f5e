package main

import (
	"context"
	"fmt"

	"thalweg/internal/app"
)

// takeCmd says that somebody looks after the failure of a run.
type takeCmd struct {
	Ref     runRef `arg:"" name:"run" help:"Run that has failed: its number, or last."`
	Comment string `help:"What you do about it: all others see it." placeholder:"TEXT"`
	JSON    bool   `name:"json" help:"Print a JSON object."`
	stateFlags
}

// Run implements kong's command.
func (c *takeCmd) Run(ctx context.Context, a *console) error {
	if err := app.TakeReason(c.Comment); err != nil {
		return err
	}
	home, run, err := c.Ref.open(ctx, a, c.stateFlags)
	if err != nil {
		return err
	}
	defer home.Close()
	out, err := home.Operations.Take(ctx, a.caller(), run.RunKey, c.Comment)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a.stdout, out)
	}
	instead := ""
	if out.Before != nil {
		instead = ", in place of " + out.Before.Actor
	}
	fmt.Fprintf(a.stdout, "run %d is taken by %s%s, until it goes on\n", run.Run, out.Taken.Actor, instead)
	return nil
}
