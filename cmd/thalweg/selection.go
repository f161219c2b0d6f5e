package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
)

// selectFlags name a part of a script.
type selectFlags struct {
	Node   []string `help:"Compute these nodes, and what has changed of what they read." placeholder:"NODE,…"`
	Tag    []string `help:"Compute the nodes that have one of these tags, as --node does." placeholder:"TAG,…"`
	From   []string `help:"Compute these nodes and all behind; a number: read tables of that run." placeholder:"NODE|RUN,…"`
	To     []string `help:"Compute these nodes and what they are made of." placeholder:"NODE,…"`
	DryRun bool     `help:"Only say what would be computed, and what taken over of earlier runs."`
}

// selection reads what the flags name: a part of the script, and runs.
func (f selectFlags) selection(start []string, resume bool) (sel app.Selection, runs []int64, err error) {
	sel = app.Selection{Nodes: f.Node, Tags: f.Tag, To: f.To}
	for _, name := range f.From {
		if n, err := strconv.ParseInt(name, 10, 64); err == nil {
			runs = append(runs, n)
			continue
		}
		sel.From = append(sel.From, name)
	}
	switch {
	case len(start) > 0 && !sel.Empty():
		return sel, nil, &fault.Error{Kind: fault.Script,
			Message: "--start does not go with --node, --from NODE, --to and --tag",
			Hint:    "--from NODE is --start NODE that also brings up to date what the nodes are made of"}
	case resume && (f.DryRun || !sel.Empty()):
		return sel, nil, &fault.Error{Kind: fault.Script, Message: "a resumed run has its nodes already",
			Hint: "leave --node, --from, --to, --tag and --dry-run out, or --resume; `thalweg retry RUN --node NODE` " +
				"does nodes of a run again"}
	}
	return sel, runs, nil
}

// printPlan says what a run computes, and what it takes over of earlier runs, before it begins.
func (c *runCmd) printPlan(ctx context.Context, a *console, place *workplace, opts app.RunOptions) error {
	planned, err := place.home.Operations.Plan(ctx, a.caller(), opts)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a.stdout, planned)
	}
	printRunPlan(a, planned, c.DryRun)
	return nil
}

// printRunPlan says what a run does with its nodes.
func printRunPlan(a *console, p view.RunPlanned, dry bool) {
	computed := 0
	for _, n := range p.Nodes {
		if n.From == nil {
			computed++
		}
	}
	verbs := [2]string{"computes", "takes over"}
	if dry {
		verbs = [2]string{"would compute", "would take over"}
	}
	fmt.Fprintf(a.stdout, "the run %s %s and %s %d\n\n", verbs[0], countNodes(computed), verbs[1],
		len(p.Nodes)-computed)
	printPlanTable(a, p)
	if len(p.Outside) > 0 {
		fmt.Fprintf(a.stdout, "not part of it: %s\n", strings.Join(p.Outside, ", "))
	}
	if p.Forecast != nil && (dry || p.Forecast.Elapsed != nil) {
		fmt.Fprintln(a.stdout, forecastText(*p.Forecast))
	}
	fmt.Fprintln(a.stdout)
	if dry && p.Refused != "" {
		fmt.Fprintf(a.stderr, "%s %s\n", a.mark("warning:", yellow), plain(a.at.text(p.Refused)))
	}
}

// forecastText says what a run is expected to take, and what that rests on.
func forecastText(f view.Forecast) string {
	if f.Elapsed == nil {
		return "how long it takes is not foreseen: " + f.Why
	}
	of := func(s view.ForecastSpan) string {
		ms := func(n int64) string { return span(time.Duration(n) * time.Millisecond) }
		return fmt.Sprintf("%s (four of five: %s to %s)", ms(s.Middle), ms(s.Low), ms(s.High))
	}
	text := fmt.Sprintf("expected: %s on %s\nwork of slots: %s\nfrom %s", of(*f.Elapsed),
		format.Counted(int64(f.Slots), "slot", "slots"), of(*f.Worked),
		format.Counted(int64(f.Of), "earlier run", "earlier runs"))
	if f.Of == 1 {
		text += ", in proportion to the bytes of its files"
	}
	if f.Cost != nil {
		text += fmt.Sprintf("\ncost: %s (four of five: %s to %s)", f.Cost.Middle, f.Cost.Low,
			f.Cost.High)
	}
	if f.Unpriced != "" {
		text += "\ncost: not foreseen: " + f.Unpriced
	}
	return text
}

// printPlanTable prints what becomes of each node.
func printPlanTable(a *console, p view.RunPlanned) {
	t := a.newTable("node", "what becomes of it")
	for _, n := range p.Nodes {
		what := "computed: " + n.Why
		if n.From != nil {
			what = a.paint(fmt.Sprintf("taken over from run %d", n.From.Run), green)
		}
		t.AppendRow([]any{n.Node, what})
	}
	t.Render()
}
