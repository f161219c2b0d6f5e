package main

import (
	"context"
	"fmt"
	"strings"

	"thalweg/internal/app/control"
	"thalweg/internal/app/instance"
	"thalweg/internal/run/orders"
	"thalweg/internal/store/state"
)

// invalidateCmd declares what a run has written invalid.
type invalidateCmd struct {
	Ref    runRef   `arg:"" name:"run" help:"Run: its number, or last."`
	Node   []string `help:"Only this node, and what was computed from it in the run; may be repeated." placeholder:"NODE,…"`
	Reason string   `help:"Why: everybody who wants to read the tables is told." placeholder:"TEXT"`
	DryRun bool     `help:"Only say what would be invalid, and what was made of it."`
	JSON   bool     `name:"json" help:"Print a JSON object."`
	stateFlags
}

// invalidated is the JSON form of what is invalid.
type invalidated struct {
	Workspace string           `json:"workspace"`
	Run       int64            `json:"run"`
	DryRun    bool             `json:"dry_run"`
	Nodes     []string         `json:"nodes"`
	Files     []string         `json:"files"`
	Made      []orders.Touched `json:"made_from_it"`
	Origins   []state.NodeKey  `json:"rows_of_other_runs"` // of nodes that have those of others, which stay valid
}

func (c *invalidateCmd) Run(ctx context.Context, a *app) error {
	if err := needReason(c.Reason, "an invalidation", "shown to everybody who wants to read the tables"); err != nil &&
		!c.DryRun {
		return err
	}
	home, run, err := c.Ref.open(ctx, a, c.stateFlags)
	if err != nil {
		return err
	}
	defer home.Close()
	if err := c.confirm(ctx, a, home, run); err != nil {
		return err
	}
	out, err := control.Invalidate(ctx, home, run.RunKey, control.InvalidateOptions{Nodes: c.Node,
		By: a.order(c.Reason), DryRun: c.DryRun})
	if err != nil {
		return err
	}
	said := invalidated{Workspace: run.Workspace, Run: run.Run, DryRun: c.DryRun, Nodes: out.Nodes, Files: []string{},
		Made: out.Made, Origins: []state.NodeKey{}}
	for _, f := range out.Files {
		said.Files = append(said.Files, f.URL)
	}
	for _, n := range out.Origin {
		said.Origins = append(said.Origins, *n.ReusedFrom)
	}
	if c.JSON {
		if said.Made == nil {
			said.Made = []orders.Touched{}
		}
		return printJSON(a.stdout, said)
	}
	c.print(a, said)
	return nil
}

// confirm asks before anything is invalid.
func (c *invalidateCmd) confirm(ctx context.Context, a *app, home *instance.Instance, run state.Run) error {
	if c.DryRun {
		return nil
	}
	would, err := control.Invalidate(ctx, home, run.RunKey, control.InvalidateOptions{Nodes: c.Node, DryRun: true})
	if err != nil {
		return err
	}
	what := []replaced{{What: fmt.Sprintf("run %d", run.Run), Note: "all of it: " + strings.Join(would.Nodes, ", ")}}
	if len(c.Node) > 0 {
		what = []replaced{{What: fmt.Sprintf("%s of run %d", strings.Join(would.Nodes, ", "), run.Run),
			Note: "what was named, and what was computed from it"}}
	}
	return a.confirmTaking(ctx, "declares invalid", append(what, madeOf(would.Made)...))
}

// madeOf names what other runs have made of what is taken away.
func madeOf(made []orders.Touched) (out []replaced) {
	for _, t := range made {
		out = append(out, replaced{What: fmt.Sprintf("node %s of run %d stays", t.Node, t.Run),
			Note: fmt.Sprintf("it was made from %s of run %d", t.Of.Node, t.Of.Run)})
	}
	return out
}

func (c *invalidateCmd) print(a *app, said invalidated) {
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
