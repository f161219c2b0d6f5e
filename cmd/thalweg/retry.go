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
)

// retryCmd does parts of a run again.
type retryCmd struct {
	Ref    runRef   `arg:"" name:"run" help:"Run: its number, or last."`
	Failed bool     `help:"What failed, and what is left behind it: the default."`
	Node   []string `help:"A node, all of it; may be repeated." placeholder:"NODE,…"`
	Batch  []string `help:"A batch of a node, or several; may be repeated." placeholder:"NODE:3,NODE:3-7,…"`
	DryRun bool     `help:"Only say what would be done, and why."`
	driveFlags
}

func (c *retryCmd) Run(ctx context.Context, a *console) error {
	wish, err := c.wish()
	if err != nil {
		return err
	}
	place, err := openWorkplace(ctx, a, c.placeFlags, c.engineFlags, c.remoteFlags, c.Verbose)
	if err != nil {
		return err
	}
	defer place.close()
	run, err := c.Ref.find(ctx, place.home, c.Workspace)
	if err != nil {
		return err
	}
	r, err := place.home.Operations.PreviewRetry(ctx, a.caller(), run.RunKey, wish)
	if err != nil {
		return err
	}
	if c.JSON {
		err = printJSON(a.stdout, r.Would.RetryPlanned)
	} else {
		printRetry(a, run, r.Would.RetryPlanned)
	}
	if err != nil || c.DryRun {
		return err
	}
	if err := a.confirm(ctx, "does again, with the files that are written,", againOf(r.Would.RetryPlanned)); err != nil {
		return err
	}
	opts := r.Would.Options
	opts.Most = c.again(a).Over(opts.Most)
	return place.work(ctx, a, c.JSON, opts)
}

// againOf lists the nodes that a retry does.
func againOf(r view.RetryPlanned) (what []replaced) {
	if r.NewRun {
		for _, n := range r.Nodes {
			if n.From == nil {
				what = append(what, replaced{What: "node " + n.Node})
			}
		}
		return what
	}
	for _, task := range r.Tasks {
		what = append(what, replaced{What: "node " + task.Node, Note: taskBatches(task)})
	}
	return what
}

// wish reads what the flags name.
func (c *retryCmd) wish() (app.RedoSelection, error) {
	w := app.RedoSelection{Nodes: c.Node}
	for _, text := range c.Batch {
		b, ok := parseBatches(text)
		if !ok {
			return w, &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("%q does not name batches", text),
				Hint: "write NODE:3, or NODE:3-7 for 3 to 7"}
		}
		w.Batches = append(w.Batches, b)
	}
	if c.Failed && !w.Empty() {
		return w, &fault.Error{Kind: fault.Script, Message: "--failed stands alone",
			Hint: "what failed is done in any case, beside the nodes and batches that are named"}
	}
	return w, nil
}

// parseBatches reads NODE:3 or NODE:3-7.
func parseBatches(text string) (b app.RedoBatches, ok bool) {
	i := strings.LastIndexByte(text, ':')
	if i <= 0 {
		return b, false
	}
	b.Node = text[:i]
	from, to, several := strings.Cut(text[i+1:], "-")
	var err error
	if b.From, err = strconv.Atoi(from); err != nil {
		return b, false
	}
	if b.To = b.From; several {
		b.To, err = strconv.Atoi(to)
	}
	return b, err == nil
}

// printRetry says what is done, and why.
func printRetry(a *console, of view.Run, r view.RetryPlanned) {
	if r.NewRun {
		printNewRun(a, of, r)
		return
	}
	fmt.Fprintf(a.stdout, "run %d in workspace %s: this is done, and nothing else\n\n", r.Run, r.Workspace)
	t := a.newTable("node", "batches", "why", "rows before", "time before")
	rightAligned(t, 4, 5)
	again, some := time.Duration(0), false
	for _, task := range r.Tasks {
		rows, took := any("-"), "-"
		if task.Again() {
			again, some = again+task.Elapsed, true
			rows, took = count(task.Rows), span(task.Elapsed)
		}
		t.AppendRow([]any{task.Node, taskBatches(task), taskReason(task), rows, took})
	}
	t.Render()
	if len(r.Passed) > 0 {
		var what []string
		for _, c := range r.Passed {
			what = append(what, strings.TrimSpace(c.What+" "+c.Name)+" "+c.How)
		}
		fmt.Fprintf(a.stderr, "%s %s; what is named is done as run %d began with it: `%s` takes the change into "+
			"a new run\n", a.mark("warning:", yellow), strings.Join(what, "; "), r.Run,
			a.command(of.Do("retry")))
	}
	if !some {
		return
	}
	fmt.Fprintf(a.stdout, "\nwhat is done again took %s of batches' time before\n", span(again))
}

func taskBatches(t view.RedoStep) string {
	switch asks := view.IsGate(t.Node); {
	case asks && t.Why == view.RedoLeft:
		return "not decided yet"
	case asks:
		return "asked again"
	case len(t.Batches) > 0:
		return fmt.Sprintf("%s of %d", ranges(t.Batches), t.Total)
	case t.Why == view.RedoLeft && t.Total == 0, t.Why == view.RedoFailed && t.Total == 0:
		return "not planned yet"
	case t.Why == view.RedoLeft:
		return fmt.Sprintf("%d left of %d", t.Count, t.Total)
	case t.Replan:
		return fmt.Sprintf("all, planned again (%d before)", t.Total)
	}
	return fmt.Sprintf("all %d", t.Total)
}

func taskReason(t view.RedoStep) string {
	switch t.Why {
	case view.RedoAsked:
		return "named"
	case view.RedoFollows:
		return "checks what is done again"
	case view.RedoReads:
		if view.IsGate(t.Of) {
			return "waits for " + t.Of + ", which is asked again"
		}
		return "reads what " + t.Of + " writes again"
	case view.RedoComputes:
		return "computes the table of " + t.Of + ", which is named"
	case view.RedoInvalidated:
		return "its rows were invalidated"
	case view.RedoFailed:
		if t.Failure != "" {
			return "failed: " + t.Failure
		}
		return "failed"
	}
	return "was not done yet"
}

// ranges writes numbers in order, neighbours as 3-7.
func ranges(numbers []int) string {
	var out []string
	for i := 0; i < len(numbers); {
		end := i
		for end+1 < len(numbers) && numbers[end+1] == numbers[end]+1 {
			end++
		}
		text := strconv.Itoa(numbers[i])
		if end > i {
			text += "-" + strconv.Itoa(numbers[end])
		}
		out, i = append(out, text), end+1
	}
	return strings.Join(out, ",")
}

// printNewRun says why a new run begins, and what it does.
func printNewRun(a *console, of view.Run, r view.RetryPlanned) {
	fmt.Fprintf(a.stdout, "run %d in workspace %s cannot go on as it is, so a new run begins:\n", r.Run, r.Workspace)
	for _, c := range r.Changed {
		switch c.What {
		case "node":
			fmt.Fprintf(a.stdout, "  node %s %s\n", c.Name, c.How)
		case "input":
			fmt.Fprintf(a.stdout, "  node %s: %s\n", c.Name, c.How)
		default:
			fmt.Fprintf(a.stdout, "  the script %s, and no node of it by itself\n", c.How)
		}
	}
	if !of.Status.Terminal() {
		fmt.Fprintf(a.stdout, "  run %d is not over: it is stopped, because both would write the same files\n", r.Run)
	}
	fmt.Fprintln(a.stdout)
	printPlanTable(a, view.RunPlanned{Nodes: r.Nodes})
}
