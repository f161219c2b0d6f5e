package main

import (
	"context"
	"fmt"
	"time"

	"thalweg/internal/app/view"
)

// approvalsCmd lists what waits for people.
type approvalsCmd struct {
	JSON bool `name:"json" help:"Print a JSON array."`
	stateFlags
}

func (c *approvalsCmd) Run(ctx context.Context, a *console) error {
	home, err := c.openHome(ctx, a, false)
	if err != nil {
		return err
	}
	defer home.Close()
	asked, err := home.Operations.Approvals(ctx, c.Workspace)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a.stdout, a.askedRows(c.Workspace, asked))
	}
	now := time.Now()
	if len(asked) == 0 {
		fmt.Fprintf(a.stdout, "nothing waits for a decision in workspace %s\n", c.Workspace)
		return nil
	}
	for i, g := range asked {
		if i > 0 {
			fmt.Fprintln(a.stdout)
		}
		a.printAsked(a.stdout, c.Workspace, g.GateAsked, now)
		fmt.Fprintf(a.stdout, "  the run:    %s\n", runText(g.Of))
	}
	return nil
}

// runText says which run of what it is, for who knows it by its number only.
func runText(run view.Run) string {
	text := "of " + run.ScriptPath + ", begun by " + run.Actor + " " + moment(run.Created)
	if run.Description != "" {
		text += ": " + run.Description
	}
	return text
}
