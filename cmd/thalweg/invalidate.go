package main

import (
	"context"
	"fmt"
	"strings"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
)

// invalidateCmd declares what a run has written invalid.
type invalidateCmd struct {
	Ref    runRef   `arg:"" name:"run" help:"Run: its number, or last."`
	Node   []string `help:"Only these nodes, and what was computed from them in the run." placeholder:"NODE,…"`
	Reason string   `help:"Why: everybody who wants to read the tables is told." placeholder:"TEXT"`
	DryRun bool     `help:"Only say what would be invalid, and what was made of it."`
	JSON   bool     `name:"json" help:"Print a JSON object."`
	stateFlags
}

func (c *invalidateCmd) Run(ctx context.Context, a *console) error {
	if err := app.InvalidationReason(c.Reason); err != nil && !c.DryRun {
		return err
	}
	home, run, err := c.Ref.open(ctx, a, c.stateFlags)
	if err != nil {
		return err
	}
	defer home.Close()
	would, err := home.Operations.PreviewInvalidation(ctx, run.RunKey, c.Node)
	if err != nil {
		return err
	}
	said := would.Would
	if !c.DryRun {
		if err := c.confirm(ctx, a, said); err != nil {
			return err
		}
		if said, err = home.Operations.Invalidate(ctx, a.caller(), run.RunKey, c.Node, c.Reason, would.Token); err != nil {
			return err
		}
	}
	if c.JSON {
		return printJSON(a.stdout, said)
	}
	c.print(a, said)
	return nil
}

// confirm asks before anything is invalid.
func (c *invalidateCmd) confirm(ctx context.Context, a *console, would view.Invalidated) error {
	what := []replaced{{What: fmt.Sprintf("run %d", would.Run), Note: "all of it: " + strings.Join(would.Nodes, ", ")}}
	if len(c.Node) > 0 {
		what = []replaced{{What: fmt.Sprintf("%s of run %d", strings.Join(would.Nodes, ", "), would.Run),
			Note: "what was named, and what was computed from it"}}
	}
	return a.confirmTaking(ctx, "declares invalid", append(what, madeOf(would.Made)...))
}

// madeOf names what other runs have made of what is taken away.
func madeOf(made []view.Touched) (out []replaced) {
	for _, t := range made {
		out = append(out, replaced{What: fmt.Sprintf("node %s of run %d stays", t.Node, t.Run),
			Note: fmt.Sprintf("it was made from %s of run %d", t.Of.Node, t.Of.Run)})
	}
	return out
}

func (c *invalidateCmd) print(a *console, said view.Invalidated) {
	verb, it := "is", "it has"
	if len(c.Node) > 0 && len(said.Nodes) > 1 {
		verb, it = "are", "they have"
	}
	if said.DryRun {
		verb = "would be"
	}
	what := fmt.Sprintf("run %d", said.Run)
	if len(c.Node) > 0 {
		what = fmt.Sprintf("%s of run %d", strings.Join(said.Nodes, ", "), said.Run)
	}
	fmt.Fprintf(a.stdout, "%s %s invalid: no run reads what %s written\n", what, verb, it)
	for _, f := range said.Files {
		fmt.Fprintf(a.stdout, "  file %s was written from it, and stays\n", f)
	}
	for _, o := range said.Origins {
		fmt.Fprintf(a.stdout, "  rows of node %s are those of run %d, which stays valid: %s\n", o.Node, o.Run,
			a.command(o.Do("invalidate", "node", o.Node, "reason", "TEXT")))
	}
	for _, t := range said.Made {
		how := "was made from"
		if t.Taken {
			how = "has the rows of"
		}
		fmt.Fprintf(a.stdout, "  node %s of run %d %s node %s of run %d\n", t.Node, t.Run, how, t.Of.Node, t.Of.Run)
	}
	if len(said.Made) == 0 {
		fmt.Fprintln(a.stdout, "  no other run has read it")
	}
}
