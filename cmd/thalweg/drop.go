package main

import (
	"cmp"
	"context"
	"fmt"

	"thalweg/internal/app/control"
	"thalweg/internal/app/instance"
	"thalweg/internal/run/orders"
	"thalweg/internal/store/state"
)

// dropCmd drops runs.
type dropCmd struct {
	Refs   []runRef `arg:"" name:"run" help:"Runs: numbers, or last."`
	Reason string   `help:"Why: it is recorded." placeholder:"TEXT"`
	DryRun bool     `help:"Only say what would be dropped, and what was made of it."`
	JSON   bool     `name:"json" help:"Print a JSON array."`
	stateFlags
}

// dropped is the JSON form of a run that is dropped.
type dropped struct {
	Workspace string           `json:"workspace"`
	Run       int64            `json:"run"`
	DryRun    bool             `json:"dry_run"`
	Nodes     []string         `json:"nodes"`
	Bytes     int64            `json:"bytes"`
	Made      []orders.Touched `json:"made_from_it"`
}

// Run implements kong's command.
func (c *dropCmd) Run(ctx context.Context, a *app) error {
	if err := needReason(c.Reason, "dropping a run", "recorded with it"); err != nil && !c.DryRun {
		return err
	}
	home, err := c.openHome(ctx, a, false)
	if err != nil {
		return err
	}
	defer home.Close()
	var keys []state.RunKey
	for _, ref := range c.Refs {
		run, err := ref.find(ctx, home, c.Workspace)
		if err != nil {
			return err
		}
		keys = append(keys, run.RunKey)
	}
	if err := c.confirm(ctx, a, home, keys); err != nil {
		return err
	}
	out, err := control.Drop(ctx, home, keys, control.DropOptions{By: a.order(c.Reason), DryRun: c.DryRun})
	said := []dropped{}
	for _, d := range out {
		said = append(said, dropped{Workspace: d.Run.Workspace, Run: d.Run.Run, DryRun: c.DryRun,
			Nodes: append([]string{}, d.Nodes...), Bytes: d.Bytes, Made: append([]orders.Touched{}, d.Made...)})
	}
	if err != nil && len(said) == 0 {
		return err
	}
	if c.JSON {
		return cmp.Or(err, printJSON(a.stdout, said))
	}
	for _, d := range said {
		d.print(a)
	}
	return err
}

// confirm asks before runs are dropped.
func (c *dropCmd) confirm(ctx context.Context, a *app, home *instance.Instance, keys []state.RunKey) error {
	if c.DryRun {
		return nil
	}
	would, err := control.Drop(ctx, home, keys, control.DropOptions{DryRun: true})
	if err != nil {
		return err
	}
	var what, made []replaced
	for _, d := range would {
		what = append(what, replaced{What: fmt.Sprintf("run %d", d.Run.Run), Note: size(d.Bytes) + " of tables"})
		made = append(made, madeOf(d.Made)...)
	}
	return a.confirmTaking(ctx, "drops, for good,", append(what, made...))
}

func (d dropped) print(a *app) {
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
