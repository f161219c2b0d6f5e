package main

import (
	"cmp"
	"context"
	"fmt"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
)

// dropCmd drops runs.
type dropCmd struct {
	Refs   []runRef `arg:"" name:"run" help:"Runs: numbers, or last."`
	Reason string   `help:"Why: it is recorded." placeholder:"TEXT"`
	DryRun bool     `help:"Only say what would be dropped, and what was made of it."`
	JSON   bool     `name:"json" help:"Print a JSON array."`
	stateFlags
}

// Run implements kong's command.
func (c *dropCmd) Run(ctx context.Context, a *console) error {
	if err := app.DropReason(c.Reason); err != nil && !c.DryRun {
		return err
	}
	home, err := c.openHome(ctx, a, false)
	if err != nil {
		return err
	}
	defer home.Close()
	var keys []view.RunKey
	for _, ref := range c.Refs {
		run, err := ref.find(ctx, home, c.Workspace)
		if err != nil {
			return err
		}
		keys = append(keys, run.RunKey)
	}
	would, err := home.Operations.PreviewDrop(ctx, keys)
	said := would.Would
	if err == nil && !c.DryRun {
		if err := c.confirm(ctx, a, said); err != nil {
			return err
		}
		said, err = home.Operations.Drop(ctx, a.caller(), keys, c.Reason, would.Token)
	}
	if err != nil && len(said) == 0 {
		return err
	}
	if c.JSON {
		return cmp.Or(err, printJSON(a.stdout, said))
	}
	for _, d := range said {
		printDropped(a, d)
	}
	return err
}

// confirm asks before runs are dropped.
func (c *dropCmd) confirm(ctx context.Context, a *console, would []view.Dropped) error {
	var what, made []replaced
	for _, d := range would {
		what = append(what, replaced{What: fmt.Sprintf("run %d", d.Run), Note: size(d.Bytes) + " of tables"})
		made = append(made, madeOf(d.Made)...)
	}
	return a.confirmTaking(ctx, "drops, for good,", append(what, made...))
}

func printDropped(a *console, d view.Dropped) {
	verb := "is"
	if d.DryRun {
		verb = "would be"
	}
	fmt.Fprintf(a.stdout, "run %d %s dropped: nobody reads, continues or lists it; %s of tables\n", d.Run, verb,
		size(d.Bytes))
	for _, t := range d.Made {
		fmt.Fprintf(a.stdout, "  node %s of run %d was made from node %s of run %d, and stays\n", t.Node, t.Run,
			t.Of.Node, t.Of.Run)
	}
}
