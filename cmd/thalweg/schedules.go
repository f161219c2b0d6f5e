package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
)

// schedulesCmd lists schedules and watches.
type schedulesCmd struct {
	Pause  string `help:"Pause the schedule or watch of this ID (see --json): it begins no runs." xor:"order" placeholder:"ID"`
	Resume string `help:"Let the one of this ID go on." xor:"order" placeholder:"ID"`
	Reason string `help:"Why: it is shown while it is paused." placeholder:"TEXT"`
	JSON   bool   `name:"json" help:"Print a JSON array."`
	stateFlags
}

// Run implements kong's command.
func (c *schedulesCmd) Run(ctx context.Context, a *console) error {
	home, err := c.openHome(ctx, a, false)
	if err != nil {
		return err
	}
	defer home.Close()
	if id := c.Pause + c.Resume; id != "" {
		return c.order(ctx, a, home.Operations, app.ScheduleOrder{ID: id, Pause: c.Pause != "", Reason: c.Reason})
	}
	rows, err := home.Operations.Schedules(ctx, c.Workspace)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a.stdout, rows)
	}
	if len(rows) == 0 {
		fmt.Fprintln(a.stderr, "no schedule or watch was served in this workspace yet: `thalweg scheduler SCRIPT` "+
			"serves those of a script")
		return nil
	}
	t := a.newTable("script", "schedule", "when", "next", "last run", "for", "status", "waits", "skipped").leaves("for",
		"waits", "schedule", "when")
	for _, r := range rows {
		last, moment := "", ""
		if r.Last != nil {
			last, moment = fmt.Sprint(r.Last.Run), r.Last.At.Format(time.RFC3339)
			if r.Last.File != "" {
				moment = r.Last.File
			}
		}
		t.AppendRow([]any{r.Script, r.Name, scheduleRow{r}.when(), timeText(r.Next), last, moment,
			runStatusText(a, r.Status), len(r.Queue) + r.Waiting, r.Skips})
	}
	t.Render()
	for _, r := range rows {
		for _, line := range (scheduleRow{r}).remarks() {
			fmt.Fprintf(a.stdout, "%s, %s: %s\n", r.Script, r.Name, line)
		}
	}
	return nil
}

// order pauses a schedule or watch, or lets it go on.
func (c *schedulesCmd) order(ctx context.Context, a *console, all app.Operations, o app.ScheduleOrder) error {
	out, err := all.OrderSchedule(ctx, a.caller(), c.Workspace, o)
	switch {
	case err != nil:
		return err
	case c.JSON:
		return printJSON(a.stdout, out)
	}
	how := "goes on"
	if o.Pause {
		how = "is paused: it begins no runs"
	}
	fmt.Fprintf(a.stdout, "%s %s of %s %s\n", out.Schedule.Kind, out.Schedule.Name, out.Schedule.Script, how)
	return nil
}

// scheduleRow is a schedule as people read it.
type scheduleRow struct{ view.Schedule }

func timeText(at *time.Time) string {
	if at == nil || at.IsZero() {
		return ""
	}
	return at.Format(time.RFC3339)
}

func (r scheduleRow) when() string {
	if r.Zone != "" && r.Zone != "UTC" {
		return r.When + " " + r.Zone
	}
	return r.When
}

// remarks say what is not as one may have expected.
func (r scheduleRow) remarks() (out []string) {
	if p := r.Paused; p != nil {
		out = append(out, strings.TrimSpace(fmt.Sprintf("paused by %s at %s, goes on with --resume %s. %s", p.Actor,
			p.Time.Local().Format(time.DateTime), r.ID, p.Reason)))
	}
	if since := time.Since(r.Looked); since > app.OnTime {
		out = append(out, fmt.Sprintf("no scheduler has looked since %s", r.Looked.Local().Format(time.DateTime)))
	}
	if f := r.Blind; f != nil {
		out = append(out, fmt.Sprintf("its files cannot be looked at since %s (tried %s, again at %s): %s",
			f.Since.Local().Format(time.DateTime), counted(f.Tries, "time", "times"),
			f.Next.Local().Format(time.TimeOnly), strings.TrimSpace(f.Message)))
	}
	if f := r.Failing; f != nil {
		what := timeText(&f.At)
		if f.File != "" {
			what = f.File
		}
		out = append(out, fmt.Sprintf("the run for %s could not begin (tried %s, again at %s): %s", what,
			counted(f.Tries, "time", "times"), f.Next.Local().Format(time.TimeOnly), strings.TrimSpace(f.Message)))
	}
	for _, at := range r.Due {
		out = append(out, "waits: "+at.Format(time.RFC3339))
	}
	for _, p := range r.Pending {
		out = append(out, "waits: "+p.File+": "+p.Why)
	}
	for _, s := range r.Skipped {
		out = append(out, "skipped "+s.At.Format(time.RFC3339)+": "+s.Why)
	}
	return out
}
