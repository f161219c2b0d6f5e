package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
)

type auditCmd struct {
	Which runRef `arg:"" name:"run" optional:"" help:"Number of the run, or last; none: all runs of the workspace."`
	Limit int    `help:"Of all runs, show so many of the latest deeds at least; 0: all." default:"100" placeholder:"N"`
	JSON  bool   `name:"json" help:"Print a JSON array."`
	stateFlags
}

// Run implements kong's command.
func (c *auditCmd) Run(ctx context.Context, a *console) error {
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
		return printJSON(a.stdout, deeds)
	}
	t := a.newTable("when", "run", "who", "what", "about", "why").leaves("when", "about")
	rightAligned(t, 2)
	for _, d := range deeds {
		t.AppendRow([]any{d.Time.Local().Format(time.DateTime), deedRun(d), d.Actor, deedText(a, d), deedAbout(d), d.Reason})
	}
	t.Render()
	return nil
}

// read lists the deeds, the latest last.
func (c *auditCmd) read(ctx context.Context, home *app.App) ([]view.AuditEntry, error) {
	if c.Which == "" {
		return home.Operations.AuditAll(ctx, c.Workspace, c.Limit)
	}
	run, err := c.Which.find(ctx, home, c.Workspace)
	if err != nil {
		return nil, err
	}
	return home.Operations.Audit(ctx, run.RunKey)
}

func deedText(a *console, d view.AuditEntry) string {
	if d.Void {
		return d.Action + a.paint(" (void: it had changed)", yellow)
	}
	return d.Action
}

// deedRun is the number of the run that an order was about, if it was about one.
func deedRun(d view.AuditEntry) string {
	if d.Run == 0 {
		return ""
	}
	return strconv.FormatInt(d.Run, 10)
}

// deedAbout says what an order was about.
func deedAbout(d view.AuditEntry) string {
	var about []string
	for _, n := range d.Nodes {
		about = append(about, redoText(n))
	}
	if d.Schedule != "" {
		about = append(about, d.Schedule)
	}
	if d.Script != "" {
		about = append(about, d.Script)
	}
	return strings.Join(about, ", ")
}

// batchesMax is the most batches of an order that are named.
const batchesMax = 5

func redoText(r view.Redo) string {
	text := r.Node
	if len(r.Batches) > 0 {
		shown := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(r.Batches[:min(len(r.Batches), batchesMax)])),
			","),
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
	return text + answersText(view.GateAnswers(view.GateChoice{Answers: r.Answers}))
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
