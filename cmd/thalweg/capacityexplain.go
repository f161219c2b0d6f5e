package main

import (
	"context"
	"fmt"
	"io"

	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
)

type capacityExplainCmd struct {
	Which runRef `arg:"" name:"run" optional:"" default:"last" help:"Number of the run, or last."`
	JSON  bool   `name:"json" help:"Print a JSON object."`
	SVG   bool   `name:"svg" help:"Draw slots, batches, rows, bytes, and processors over time, by class of node."`
	Out   string `help:"Write the charts to FILE instead of standard output." short:"o" placeholder:"FILE" type:"path"`
	overwriteFlag
	stateFlags
}

// check looks at which flags go together.
func (c *capacityExplainCmd) check() error {
	switch {
	case c.SVG && c.JSON:
		return &fault.Error{Kind: fault.Script, Message: "--svg and --json are two forms", Hint: "leave one of them out"}
	case !c.SVG && c.Out != "":
		return &fault.Error{Kind: fault.Script, Message: "--out is where charts go", Hint: "add --svg"}
	}
	return nil
}

// Run implements kong's command.
func (c *capacityExplainCmd) Run(ctx context.Context, a *console) error {
	if err := c.check(); err != nil {
		return err
	}
	to := outFile{path: c.Out, overwrite: c.Overwrite, mine: madeSVG}
	if err := to.check(); err != nil {
		return err
	}
	home, run, err := c.Which.open(ctx, a, c.stateFlags)
	if err != nil {
		return err
	}
	defer home.Close()
	r, err := home.Operations.Causes(ctx, run.RunKey)
	switch {
	case err != nil:
		return err
	case c.SVG:
		return to.write(a, func(w io.Writer) error { return r.WriteSVG(w) })
	case c.JSON:
		return printJSON(a.stdout, r)
	}
	a.showCauses(r)
	return nil
}

func (a *console) showCauses(r view.Causes) {
	fmt.Fprintf(a.stdout, "run %d in workspace %s: %s, %.3g s", r.Run, r.Workspace, r.Status, r.Elapsed)
	if r.Slots > 0 {
		fmt.Fprintf(a.stdout, ", %.3g slots on average", r.Slots)
	}
	fmt.Fprintln(a.stdout)
	for _, note := range r.Notes {
		a.say("", note)
	}
	a.say("", r.Why)
	for _, n := range r.Named {
		a.say("", n.Sentence())
		a.say("", "  "+n.Do)
	}
	if len(r.Zones) > 0 {
		fmt.Fprintf(a.stdout, "\n%s\n", a.paint("processors of workers by class of the nodes at work", bold))
		t := a.newTable("class", "time of workers", "workers", "their processes")
		rightAligned(t, 2, 3, 4)
		for _, z := range r.Zones {
			t.AppendRow([]any{a.plain(z.Class), fmt.Sprintf("%.3g s", z.Seconds), fmt.Sprintf("%.0f %%", 100*z.CPU),
				fmt.Sprintf("%.0f %%", 100*z.Children)})
		}
		t.Render()
	}
	for _, n := range r.Nodes {
		fmt.Fprintf(a.stdout, "\n%s\n", a.paint(plain(fmt.Sprintf("%s (%s): %s, %.3g s of slots", n.Node, n.Class,
			format.Counted(int64(n.Batches), "batch", "batches"), n.Slots)), bold))
		t := a.newTable("cause", "", "slots", "gain at most", "measured").leaves("measured", "slots")
		rightAligned(t, 3, 4)
		for _, row := range n.Table() {
			cells := make([]any, len(row))
			for i, cell := range row {
				cells[i] = a.plain(cell)
			}
			t.AppendRow(cells)
		}
		t.Render()
	}
}
