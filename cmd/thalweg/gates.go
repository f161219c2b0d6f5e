package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
)

func (a *console) askedRows(workspace string, asked []app.Asking) []view.Asked {
	rows := make([]view.Asked, len(asked))
	for i, g := range asked {
		key := view.RunKey{Workspace: workspace, Run: g.Run}
		rows[i] = view.Asked{Workspace: workspace, Run: g.Run, Script: g.Of.ScriptPath, Note: g.Of.Description,
			Gate: g.Record.Gate, Over: g.Record.Over(time.Now()), Record: g.Record, Look: []string{},
			Approve: a.command(g.Record.Decide(key, "approve")), Reject: a.command(g.Record.Decide(key, "reject"))}
		for _, s := range g.Record.Shows {
			rows[i].Look = append(rows[i].Look,
				a.command(view.ShowTable(view.RunKey{Workspace: workspace, Run: s.Run}, s.Table)))
		}
		for _, c := range g.Record.Failed {
			rows[i].Look = append(rows[i].Look,
				a.command(view.ShowTable(view.RunKey{Workspace: workspace, Run: g.Run}, c.Table)))
		}
	}
	return rows
}

// printAsked says what a gate asks, of whom, and how to decide.
func (a *console) printAsked(w io.Writer, workspace string, g view.GateAsked, now time.Time) {
	r, key := g.Record, view.RunKey{Workspace: workspace, Run: g.Run}
	a.printRecord(w, workspace, g, now)
	fmt.Fprintf(w, "  to decide:  %s\n              %s\n", a.command(r.Decide(key, "approve")),
		a.command(r.Decide(key, "reject")))
}

// printRecord says what a gate asks, and of whom.
func (a *console) printRecord(w io.Writer, workspace string, g view.GateAsked, now time.Time) {
	r := g.Record
	fmt.Fprintf(w, "run %d, gate %s: waits for %s since %s (%s)%s\n", g.Run, r.Gate, whoDecides(r), moment(r.Since),
		span(now.Sub(r.Since)), untilText(r, now))
	for line := range strings.Lines(r.Message) {
		fmt.Fprintf(w, "  %s\n", plain(strings.TrimRight(line, "\n")))
	}
	for _, s := range r.Shows {
		fmt.Fprintf(w, "  table %s, %s, %s:  %s\n", s.Table, countRows(s.Rows), size(s.Bytes),
			a.command(view.ShowTable(view.RunKey{Workspace: workspace, Run: s.Run}, s.Table)))
	}
	for _, c := range r.Failed {
		fmt.Fprintf(w, "  check %s failed: %s\n    the rows that failed:  %s\n", c.Name, plain(c.Message),
			a.command(view.ShowTable(view.RunKey{Workspace: workspace, Run: g.Run}, c.Table)))
	}
	if r.MoreFailed > 0 {
		fmt.Fprintf(w, "  and %s more:  %s\n", counted(r.MoreFailed, "check", "checks"),
			a.command(view.RunKey{Workspace: workspace, Run: g.Run}.Do("checks")))
	}
	for _, q := range r.Answers {
		what := q.Name
		if q.Message != "" {
			what += ": " + plain(q.Message)
		}
		fmt.Fprintf(w, "  answer %s (%s; %s if you do not say)\n", what, q.Kind(), cmp.Or(q.Default, "nothing"))
	}
}

// whoDecides names the roles that may decide.
func whoDecides(r view.GateRecord) string {
	if len(r.By) == 0 {
		return "anybody"
	}
	return strings.Join(r.By, " or ")
}

func untilText(r view.GateRecord, now time.Time) string {
	switch {
	case r.Until.IsZero():
		return ""
	case r.Over(now):
		return "; its time was over " + moment(r.Until) + ": it is rejected when somebody next looks at the run"
	}
	return "; rejected if nobody approves until " + moment(r.Until)
}

// moment is a point in time as the machine's users read it.
func moment(t time.Time) string { return t.Local().Format(time.DateTime) }
