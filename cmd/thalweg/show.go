package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
	"thalweg/internal/base/format"
)

type showCmd struct {
	Which   runRef `arg:"" name:"run" optional:"" default:"last" help:"Number of the run, or last."`
	Node    string `arg:"" optional:"" help:"Node of it."`
	Batch   *int   `arg:"" optional:"" help:"Batch of the node."`
	JSON    bool   `name:"json" help:"Print a JSON object."`
	Workers bool   `help:"Show the time sheets of its workers: what the time of their slots went to."`
	SVG     bool   `name:"svg" help:"Draw the run: its script's nodes with their rows, times and failures."`
	Out     string `help:"Write the picture to FILE instead of standard output." short:"o" placeholder:"FILE" type:"path"`
	overwriteFlag
	remoteFlags
	stateFlags
}

// Run implements kong's command.
func (c *showCmd) Run(ctx context.Context, a *console) error {
	if err := c.check(); err != nil {
		return err
	}
	client, err := c.client(newLogger(a, false))
	if err != nil {
		return err
	}
	home, run, err := c.Which.open(ctx, a, c.stateFlags, func(p *app.Process) { p.Remote = client })
	if err != nil {
		return err
	}
	defer home.Close()
	var shown any
	var print func()
	switch {
	case c.Workers:
		w, err := home.Operations.Workers(ctx, run.RunKey)
		if err != nil {
			return err
		}
		shown, print = w, func() { a.showWorkers(w) }
	case c.Node == "":
		d, err := home.Operations.Show(ctx, run.RunKey)
		if err != nil {
			return err
		}
		if c.SVG {
			return c.draw(ctx, a, home, run.RunKey, d)
		}
		shown, print = d, func() { a.showRun(d) }
	case c.Batch == nil:
		d, err := home.Operations.ShowNode(ctx, run.RunKey, c.Node)
		if err != nil {
			return err
		}
		shown, print = d, func() { a.showNode(run.RunKey, d) }
	default:
		d, err := home.Operations.ShowBatch(ctx, run.RunKey, c.Node, *c.Batch)
		if err != nil {
			return err
		}
		shown, print = d, func() { a.showBatch(run.RunKey, d) }
	}
	if c.JSON {
		return printJSON(a.stdout, shown)
	}
	print()
	return nil
}

// stageBar is the width of the bar of a node's stages.
const stageBar = 20

func (a *console) showRun(d view.RunDetail) {
	fmt.Fprintf(a.stdout, "run %d in workspace %s: %s", d.Run.Run, d.Workspace, runStatusText(a, d.Status))
	fmt.Fprintf(a.stdout, ", begun %s%s, %s\n", d.Created.Local().Format(time.DateTime), by(d.Actor),
		span(ms(d.Elapsed)))
	a.say("cost", costText(d.Cost))
	if d.Limit != nil {
		a.say("limit", d.Limit.Text())
	}
	a.say("script", d.Script)
	a.say("", a.whatHappened(d.Run))
	if o := d.Order; o != nil && o.Kind != view.CommandFail { // that says what the failure does
		a.say("last order", string(o.Kind)+mark(o.Mark))
	}
	if w := d.Workers; w != nil {
		a.say("workers", workersLine(*w))
	}
	a.sayBill(d.Bill)
	fmt.Fprintln(a.stdout)
	t := a.newTable("node", "type", "status", "batches", "rows in", "rows out", "bytes out", "time", "where it went",
		"longest batch").leaves("longest batch", "type", "batches", "bytes out", "rows in", "where it went")
	rightAligned(t, 4, 5, 6, 7, 8)
	for _, n := range d.Nodes {
		in, out, bytes := count(n.RowsIn), count(n.RowsOut), size(n.BytesOut)
		if n.ReusedFrom != nil { // what it has is the other run's
			in, out, bytes = "-", "-", "-"
		}
		t.AppendRow([]any{n.Node, n.Type, shownStatus(a, n), shownBatches(n), in, out, bytes, span(ms(n.Elapsed)),
			bar(n.Stages), longest(n)})
	}
	t.Render()
	a.legend()
	for _, n := range d.Nodes {
		if n.Failure != nil {
			a.say("node "+n.Node, n.Failure.Text())
		}
		if n.Gate != nil && n.Status == view.Waiting {
			fmt.Fprintln(a.stdout)
			a.printRecord(a.stdout, d.Workspace, view.GateAsked{Run: d.Run.Run, Node: n.Node,
				Record: *n.Gate}, time.Now())
		}
		if d := n.Decision; d != nil {
			a.say("node "+n.Node, decided(*d))
		}
		if n.Generation > 0 {
			a.say("node "+n.Node, "was done again "+format.Counted(int64(n.Generation), "time", "times"))
		}
	}
}

func by(actor string) string {
	if actor == "" {
		return ""
	}
	return " by " + actor
}

// mark says who did something, when, and why.
func mark(m view.Mark) string {
	text := by(m.Actor) + ", " + m.Time.Local().Format(time.DateTime)
	if m.Reason != "" {
		text += ": " + m.Reason
	}
	return text
}

// say prints a line below a heading, if there is anything to say.
func (a *console) say(what, text string) {
	text = a.plain(text)
	switch {
	case text == "":
	case what == "":
		fmt.Fprintf(a.stdout, "  %s\n", text)
	default:
		fmt.Fprintf(a.stdout, "  %s: %s\n", what, text)
	}
}

// decided says how somebody has decided.
func decided(d view.GateChoice) string {
	text := "rejected"
	if d.Approved {
		text = "approved"
	}
	if d.Role != "" {
		text += " as " + d.Role
	}
	return text + answersText(view.GateAnswers(d)) + mark(d.Mark)
}

func shownStatus(a *console, n view.ListedNode) string {
	switch {
	case n.ReusedFrom != nil:
		return fmt.Sprintf("from run %d", n.ReusedFrom.Run)
	case n.ComputedIn != "" && n.Status == view.Succeeded:
		return "ephemeral"
	}
	return statusText(a, n.Status)
}

func shownBatches(n view.ListedNode) string {
	switch {
	case n.ComputedIn != "":
		return "in " + n.ComputedIn
	case n.Batches == 0:
		return "-"
	}
	return fmt.Sprintf("%d/%d", n.Done, n.Batches)
}

// bar draws where the time of batches went.
func bar(s view.Stages) string {
	var pieces []format.Piece
	var whole int64
	for _, st := range s.List() {
		pieces, whole = append(pieces, format.Piece{Letter: st.Letter, Value: st.MS}), whole+st.MS
	}
	return format.Bar(stageBar, whole, pieces...)
}

// legend says what the letters of bars are.
func (a *console) legend() {
	var names []string
	for _, st := range (view.Stages{}).List() {
		names = append(names, string(st.Letter)+" "+st.Name)
	}
	fmt.Fprintf(a.stdout, "\n%s\n", strings.Join(names, ", "))
}

// longest is the batch that took longest, where it stands out.
func longest(n view.ListedNode) string {
	if n.Longest == nil || n.Done < 2 {
		return ""
	}
	text := fmt.Sprintf("%d: %s", n.Longest.Batch, span(ms(n.Longest.Elapsed)))
	if n.Median > 0 && n.Longest.Elapsed >= 2*n.Median {
		text += fmt.Sprintf(" (%d × middle)", n.Longest.Elapsed/n.Median)
	}
	return text
}

func (a *console) showNode(key view.RunKey, d view.NodeDetail) {
	n := d.Node
	if n.ReusedFrom != nil { // what it has is the other run's
		fmt.Fprintf(a.stdout, "node %s (%s) of run %d: taken over from run %d\n", n.Node, n.Type, key.Run,
			n.ReusedFrom.Run)
		a.say("table", n.Table)
		a.say("reads", strings.Join(d.Inputs, ", "))
		a.say("", a.command(n.ReusedFrom.Do("show", "node", n.ReusedFrom.Node))+
			" has its rows, batches and time")
		return
	}
	fmt.Fprintf(a.stdout, "node %s (%s) of run %d: %s, %s of %s done, %s\n", n.Node, n.Type, key.Run, shownStatus(a, n),
		count(int64(n.Done)),
		format.Counted(int64(n.Batches), "batch", "batches"), span(ms(n.Elapsed)))
	a.say("table", n.Table)
	a.say("reads", strings.Join(d.Inputs, ", "))
	a.say("rows", fmt.Sprintf("%s in, %s out, %s", count(n.RowsIn), count(n.RowsOut), size(n.BytesOut)))
	a.say("cost", costText(n.Cost))
	if n.PeakBytes > 0 {
		a.say("peak memory", size(n.PeakBytes))
	}
	if n.Failure != nil {
		a.say("failure", n.Failure.Text())
	}
	a.printStages(n.Stages)
	a.printTimes(d.Times)
	a.printBatches("slowest batches", d.Slowest)
	a.printBatches("batches under way or in the way", d.Unsettled)
	if d.More {
		fmt.Fprintf(a.stdout, "  …; %s lists all\n", a.command(key.Do("batches", "node", n.Node)))
	}
	for _, w := range d.Told {
		fmt.Fprintf(a.stdout, "%s batch %d: %s\n", a.paint("warning:", yellow), w.Batch, plain(w.Text))
	}
	if more := n.Warnings - len(d.Told); more > 0 {
		fmt.Fprintf(a.stdout, "%s %d more\n", a.paint("warning:", yellow), more)
	}
}

// barWidth is the width of bars that have a line of their own.
const barWidth = 40

// printStages shows where the time of batches went, a stage a line.
func (a *console) printStages(s view.Stages) {
	if s.Total == 0 {
		return
	}
	var values []int64
	stages := slices.DeleteFunc(s.List(), func(st view.Stage) bool { return st.MS == 0 })
	for _, st := range stages {
		values = append(values, st.MS)
	}
	fmt.Fprintln(a.stdout)
	t := a.newTable("stage", "time", "share", "")
	rightAligned(t, 2, 3)
	for i, line := range format.Lengths(barWidth, values) {
		st := stages[i]
		t.AppendRow([]any{st.Name, span(ms(st.MS)), format.Percent(ms(st.MS), ms(s.Total)), line})
	}
	t.Render()
}

// printTimes shows how long batches took: a line for each power of two.
func (a *console) printTimes(times []view.TimeSpan) {
	var lines []view.TimeSpan
	for _, s := range times {
		from := int64(1)
		for 2*from <= s.From {
			from *= 2
		}
		if len(lines) == 0 || lines[len(lines)-1].From != from {
			lines = append(lines, view.TimeSpan{From: from, To: 2 * from})
		}
		lines[len(lines)-1].Batches += s.Batches
	}
	if len(lines) < 2 {
		return // one line says nothing
	}
	values := make([]int64, len(lines))
	for i, l := range lines {
		values[i] = int64(l.Batches)
	}
	fmt.Fprintln(a.stdout)
	t := a.newTable("batches that took", "", "")
	rightAligned(t, 2)
	for i, line := range format.Lengths(barWidth, values) {
		t.AppendRow([]any{fine(lines[i].From) + " to " + fine(lines[i].To), count(values[i]), line})
	}
	t.Render()
}

// fine writes a time of microseconds.
func fine(us int64) string {
	if d := time.Duration(us) * time.Microsecond; d >= 10*time.Millisecond {
		return span(d)
	}
	return fmt.Sprintf("%.1f ms", float64(us)/1000)
}

func (a *console) printBatches(title string, batches []view.ListedBatch) {
	if len(batches) == 0 {
		return
	}
	fmt.Fprintln(a.stdout)
	t := a.newTable(title, "status", "rows in", "rows out", "bytes out", "time", "where it went", "").
		leaves("bytes out",
			"where it went", "rows in", "rows out")
	rightAligned(t, 1, 3, 4, 5, 6)
	for _, b := range batches {
		t.AppendRow([]any{b.Batch, statusText(a, b.Status), ofWhole(b.Status, count(b.RowsIn)),
			ofWhole(b.Status, count(b.RowsOut)), ofWhole(b.Status, size(b.BytesOut)),
			span(ms(b.Elapsed)), bar(b.Stages), batchNote(b)})
	}
	t.Render()
}

// ofWhole returns a count of a batch, or "-" for a batch that has not succeeded: it has counted
// nothing, which is not 0.
func ofWhole(s view.Status, counted string) string {
	if s == view.Succeeded {
		return counted
	}
	return "-"
}

// batchNote says what a batch waits for.
func batchNote(b view.ListedBatch) string {
	switch {
	case b.Failure != nil:
		return b.Failure.Text()
	case b.NotBefore != nil:
		return "tried again at " + b.NotBefore.Local().Format(time.TimeOnly)
	case b.Lease != nil:
		return b.Owner + ", lease until " + b.Lease.Local().Format(time.TimeOnly)
	}
	return ""
}

func (a *console) showBatch(key view.RunKey, d view.BatchDetail) {
	fmt.Fprintf(a.stdout, "batch %d of node %s in run %d: %s, %s\n", d.Batch.Batch, d.Node, key.Run,
		statusText(a, d.Status), format.Counted(int64(len(d.Attempts)), "attempt", "attempts"))
	if d.Covers != "" {
		a.say("slice", d.Covers)
	}
	for _, at := range d.Attempts {
		fmt.Fprintf(a.stdout, "\nattempt %d: %s, %s, by %s", at.Attempt, statusText(a, at.Status), span(ms(at.Elapsed)),
			at.Owner)
		if at.Slot > 0 {
			fmt.Fprintf(a.stdout, " in slot %d", at.Slot)
		}
		fmt.Fprintf(a.stdout, " at %s", at.Started.Local().Format(time.DateTime))
		if at.Withdrawn {
			fmt.Fprint(a.stdout, ", withdrawn since")
		}
		fmt.Fprintln(a.stdout)
		if at.Stages.Total > 0 {
			if at.Status == view.Succeeded {
				a.say("rows", fmt.Sprintf("%s in, %s out", count(at.RowsIn), count(at.RowsOut)))
				a.say("bytes", fmt.Sprintf("%s in, %s out", size(at.BytesIn), size(at.BytesOut)))
			}
			if at.PeakBytes > 0 {
				a.say("peak memory", size(at.PeakBytes))
			}
			a.printStages(at.Stages)
		}
		for _, w := range at.Warnings {
			fmt.Fprintf(a.stdout, "%s %s\n", a.paint("warning:", yellow), plain(w))
		}
		if f := at.Failure; f != nil {
			a.say(a.paint("error", red), f.Text())
			a.say("value", f.Place.Value)
			a.say("expression", f.Place.Expr)
			a.say("hint", a.at.text(f.Hint))
		}
	}
}
