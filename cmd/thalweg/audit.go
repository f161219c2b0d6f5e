package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"thalweg/internal/app/instance"
	"thalweg/internal/ops/history"
	"thalweg/internal/run/gate"
	"thalweg/internal/store/state"
)

type auditCmd struct {
	Which runRef `arg:"" name:"run" optional:"" help:"Number of the run, or last; none: all runs of the workspace."`
	Limit int    `help:"Of all runs, show so many of the latest deeds at least; 0: all." default:"100" placeholder:"N"`
	JSON  bool   `name:"json" help:"Print a JSON array."`
	stateFlags
}

// Run implements kong's command.
func (c *auditCmd) Run(ctx context.Context, a *app) error {
	home, err := c.openHome(ctx, a, false)
	if err != nil {
		return err
	}
	defer home.Close()
	deeds, err := c.read(ctx, home)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a.stdout, append([]history.AuditEntry{}, deeds...))
	}
	t := a.newTable("when", "run", "who", "what", "about", "why").leaves("when", "about")
	rightAligned(t, 2)
	for _, d := range deeds {
		t.AppendRow([]any{d.Time.Local().Format(time.DateTime), d.Run, d.Actor, deedText(a, d), deedAbout(d), d.Reason})
	}
	t.Render()
	return nil
}

// read lists the deeds, the latest last.
func (c *auditCmd) read(ctx context.Context, home *instance.Instance) ([]history.AuditEntry, error) {
	if c.Which == "" {
		deeds, err := history.AuditAll(ctx, home.State, c.Workspace, c.Limit)
		slices.Reverse(deeds)
		return deeds, err
	}
	run, err := c.Which.find(ctx, home, c.Workspace)
	if err != nil {
		return nil, err
	}
	return history.Audit(ctx, home.State, run.RunKey)
}

func deedText(a *app, d history.AuditEntry) string {
	if d.Void {
		return d.Action + a.paint(" (void: it had changed)", yellow)
	}
	return d.Action
}

// deedAbout says what an order was about.
func deedAbout(d history.AuditEntry) string {
	var about []string
	for _, n := range d.Nodes {
		about = append(about, redoText(n))
	}
	if d.Script != "" {
		about = append(about, d.Script)
	}
	return strings.Join(about, ", ")
}

// batchesMax is how many batches of an order are named.
const batchesMax = 5

func redoText(r state.Redo) string {
	text := r.Node
	if len(r.Batches) > 0 {
		shown := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(r.Batches[:min(len(r.Batches), batchesMax)])), ","),
			"[]")
		if len(r.Batches) > batchesMax {
			shown += ",…"
		}
		text += ":" + shown
	}
	if r.Role != "" {
		text += " as " + r.Role
	}
	if r.Digest != "" {
		text += " " + shortDigest(r.Digest)
	}
	if answers, err := gate.Answers(state.Decision{Answers: r.Answers}); err == nil { // what cannot be read is not shown
		text += answersText(answers)
	}
	return text
}

// shortDigest is as much of a digest as tells it from others.
func shortDigest(digest string) string {
	const letters = 12
	_, hex, _ := strings.Cut(digest, ":")
	if hex == "" {
		hex = digest
	}
	return hex[:min(len(hex), letters)]
}
