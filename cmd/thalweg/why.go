package main

import (
	"context"
	"fmt"
)

type whyCmd struct {
	Which runRef `arg:"" name:"run" optional:"" default:"last" help:"Number of the run, or last."`
	JSON  bool   `name:"json" help:"Print a JSON object."`
	stateFlags
}

// Run implements kong's command.
func (c *whyCmd) Run(ctx context.Context, a *console) error {
	home, run, err := c.Which.open(ctx, a, c.stateFlags)
	if err != nil {
		return err
	}
	defer home.Close()
	why, err := home.Operations.Why(ctx, run)
	if err != nil {
		return err
	}
	for i, answer := range why.Answers {
		why.Answers[i].Do, why.Answers[i].Then = a.at.text(answer.Do), a.at.text(answer.Then)
	}
	if c.JSON {
		return printJSON(a.stdout, why)
	}
	for i, answer := range why.Answers {
		if i > 0 {
			fmt.Fprint(a.stdout, "also: ")
		}
		fmt.Fprintln(a.stdout, plain(answer.Text))
		if answer.Do != "" {
			fmt.Fprintf(a.stdout, "  %s\n", plain(answer.Do))
		}
		if answer.Then != "" {
			fmt.Fprintf(a.stdout, "  and when the cause is gone: %s\n", plain(answer.Then))
		}
	}
	for _, p := range why.Workers {
		printPace(a.stdout, p)
	}
	return nil
}
