package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"thalweg/internal/app/view"
	"thalweg/internal/base/format"
)

type historyCmd struct {
	Limit int  `help:"Show so many of the latest runs; 0: all." default:"20" placeholder:"N"`
	All   bool `help:"Also runs that were dropped."`
	JSON  bool `name:"json" help:"Print a JSON array."`
	stateFlags
}

// Run implements kong's command.
func (c *historyCmd) Run(ctx context.Context, a *console) error {
	return printRuns(ctx, a, c.stateFlags, c.Limit, c.All, c.JSON)
}

// runsCmd is history without a limit: scripts were told that it lists all runs.
type runsCmd struct {
	JSON bool `name:"json" help:"Print a JSON array."`
	stateFlags
}

// Run implements kong's command.
func (c *runsCmd) Run(ctx context.Context, a *console) error {
	return printRuns(ctx, a, c.stateFlags, 0, false, c.JSON)
}

func printRuns(ctx context.Context, a *console, flags stateFlags, limit int, dropped, asJSON bool) error {
	home, err := flags.openHome(ctx, a, false)
	if err != nil {
		return err
	}
	defer home.Close()
	runs, err := home.Operations.List(ctx, flags.Workspace, limit, dropped)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(a.stdout, runs)
	}
	t := a.newTable("run", "status", "started", "took", "cost", "rows", "bytes", "who", "script",
		"what happened").leaves("bytes",
		"cost", "who", "rows", "script", "took", "started")
	rightAligned(t, 1, 4, 5, 6, 7)
	for _, r := range runs {
		t.AppendRow([]any{r.Run, runStatusText(a, r.Status), r.Created.Local().Format(time.DateTime),
			span(ms(r.Elapsed)), costText(r.Cost), count(r.Rows), size(r.Bytes),
			r.Actor, r.Script, a.whatHappened(r)})
	}
	t.Render()
	return nil
}

// costText writes what work has cost; none is "-".
func costText(c view.Cost) string {
	if c == (view.Cost{}) {
		return "-"
	}
	text := format.Cost(ms(c.Worked), ms(c.Lost))
	if c.USD != nil {
		text += ", " + knownMoney(c.USD, c.Partial)
	}
	return text
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// runStatusText paints a run's status as people see it.
func runStatusText(a *console, status string) string {
	switch status {
	case view.Interrupted, view.ListWaiting, string(view.PausedRun):
		return a.paint(status, yellow)
	case view.ListInvalid:
		return a.paint(status, red)
	}
	return statusText(a, view.Status(status))
}

// whatHappened returns the remarks of a list on a run, beside its status.
func (a *console) whatHappened(r view.ListedRun) string {
	var said []string
	switch {
	case r.Dropped != nil:
		said = append(said, strings.TrimSuffix("dropped by "+r.Dropped.Actor+": "+r.Dropped.Reason, ": "))
	case r.Invalidated != nil:
		said = append(said, strings.TrimSuffix("invalidated by "+r.Invalidated.Actor+": "+r.Invalidated.Reason, ": "))
	case r.Failure != nil:
		said = append(said, r.Failure.Text())
		if r.Taken != nil {
			said = append(said, "taken by "+r.Taken.Actor+": "+r.Taken.Reason)
		}
	case r.Stopped != nil:
		said = append(said, strings.TrimSuffix("stopped by "+r.Stopped.Actor+": "+r.Stopped.Reason, ": "))
	case r.Status == view.Interrupted:
		said = append(said, "nobody works on it: "+r.Do+" goes on with it")
	case r.NoWorker != "":
		said = append(said, "waits for a worker: "+r.NoWorker+"; "+r.Do)
	case r.Status == string(view.PausedRun):
		said = append(said, a.goesOn(r)+" lets it go on")
	case len(r.WaitsFor) > 0:
		said = append(said, "waits for "+strings.Join(r.WaitsFor, ", "))
	}
	if r.Parent > 0 {
		said = append(said, fmt.Sprintf("in place of run %d", r.Parent))
	}
	if r.Priority != view.PriorityNormal {
		said = append(said, string(r.Priority)+" priority")
	}
	if r.Description != "" {
		said = append(said, r.Description)
	}
	return strings.Join(said, "; ")
}

// goesOn is the command by which a run goes on.
func (a *console) goesOn(r view.ListedRun) string {
	return a.command(view.RunKey{Workspace: r.Workspace, Run: r.Run}.Do("resume"))
}
