package main

import (
	"context"
	"fmt"
	"strings"

	"thalweg/internal/app/view"
)

type checksCmd struct {
	Node string `help:"Only this node's." placeholder:"NODE"`
	JSON bool   `name:"json" help:"Print a JSON array."`
	runFlag
	stateFlags
}

func (c *checksCmd) Run(ctx context.Context, a *console) error {
	home, r, err := c.runFlag.open(ctx, a, c.stateFlags)
	if err != nil {
		return err
	}
	defer home.Close()
	rows, err := home.Operations.Checks(ctx, r.RunKey, c.Node)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a.stdout, rows)
	}
	fmt.Fprintf(a.stdout, "run %d in workspace %s: %s\n\n", r.Run, r.Workspace,
		runStatusText(a, home.Operations.Status(ctx, r)))
	t := a.newTable("node", "check", "status", "checked", "failed", "kept", "what was found").leaves("kept",
		"checked", "failed")
	rightAligned(t, 4, 5, 6)
	for _, row := range rows {
		t.AppendRow([]any{row.Node, row.Name, a.paintCheck(row.Status), count(row.Checked), count(row.Failed),
			count(row.Kept), row.Message})
	}
	t.Render()
	return nil
}

func (a *console) paintCheck(status string) string {
	return a.paint(status, map[string]color{view.CheckPassed: green, view.CheckWarned: yellow,
		view.CheckFailed: red}[status])
}

// countsText says how checks ended.
func countsText(a *console, c view.CheckCounts) string {
	var parts []string
	for _, p := range []struct {
		n      int
		status string
	}{{c.Passed, view.CheckPassed}, {c.Warned, view.CheckWarned}, {c.Failed, view.CheckFailed}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, a.paintCheck(p.status)))
		}
	}
	return strings.Join(parts, ", ")
}

// printBroken lists the checks that did not pass.
func printBroken(a *console, results []view.CheckResult) {
	for _, row := range view.ChecksOf("", results) {
		if row.Status != view.CheckPassed {
			fmt.Fprintf(a.stdout, "  check %s: node %s, %s: %s\n", a.paintCheck(row.Status), row.Node,
				row.Name, row.Message)
		}
	}
}
