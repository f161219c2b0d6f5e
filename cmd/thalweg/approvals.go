package main

import (
	"context"
	"fmt"
	"time"

	"thalweg/internal/run/gate"
	"thalweg/internal/store/state"
)

// approvalsCmd lists what waits for people.
type approvalsCmd struct {
	JSON bool `name:"json" help:"Print a JSON array."`
	stateFlags
}

func (c *approvalsCmd) Run(ctx context.Context, a *app) error {
	home, err := c.openHome(ctx, a, false)
	if err != nil {
		return err
	}
	defer home.Close()
	now := time.Now()
	asked, err := gate.Waiting(ctx, home.State, c.Workspace, now)
	if err != nil {
		return err
	}
	of := make([]state.Run, len(asked))
	for i, g := range asked {
		if of[i], err = home.State.Run(ctx, state.RunKey{Workspace: c.Workspace, Run: g.Run}); err != nil {
			return fmt.Errorf("read run %d, which waits: %w", g.Run, err)
		}
	}
	if c.JSON {
		return printJSON(a.stdout, a.askedRows(c.Workspace, asked, of))
	}
	if len(asked) == 0 {
		fmt.Fprintf(a.stdout, "nothing waits for a decision in workspace %s\n", c.Workspace)
		return nil
	}
	for i, g := range asked {
		if i > 0 {
			fmt.Fprintln(a.stdout)
		}
		a.printAsked(a.stdout, c.Workspace, g, now)
		fmt.Fprintf(a.stdout, "  the run:    %s\n", runText(of[i]))
	}
	return nil
}

// runText says which run of what it is, for who knows it by its number only.
func runText(run state.Run) string {
	text := "of " + run.ScriptPath + ", begun by " + run.Actor + " " + moment(run.Created)
	if run.Description != "" {
		text += ": " + run.Description
	}
	return text
}
