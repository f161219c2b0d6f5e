package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/app/inspect"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
	"thalweg/internal/store/state"
)

type checksCmd struct {
	Node string `help:"Only this node's." placeholder:"NODE"`
	JSON bool   `name:"json" help:"Print a JSON array."`
	runFlag
	stateFlags
}

// What a check says. The words appear in JSON output: they do not change.
const (
	checkPassed = "passed"
	checkWarned = "warned"
	checkFailed = "failed"
)

// checkRow is the JSON form of a check's result.
type checkRow struct {
	Node     string `json:"node"`
	Name     string `json:"check"`
	Kind     string `json:"kind"`
	Severity string `json:"severity"`
	Status   string `json:"status"` // passed, warned, failed
	Checked  int64  `json:"checked"`
	Failed   int64  `json:"failed"`
	Kept     int64  `json:"kept"`
	Message  string `json:"message,omitempty"`
}

func checkRows(node string, results []state.CheckResult) []checkRow {
	rows := make([]checkRow, len(results))
	for i, r := range results {
		if r.Node != "" {
			node = r.Node
		}
		rows[i] = checkRow{Node: node, Name: r.Name, Kind: r.Kind, Severity: r.Severity, Status: checkStatus(r),
			Checked: r.Checked, Failed: r.Failed, Kept: r.Kept, Message: r.Message}
	}
	return rows
}

func checkStatus(r state.CheckResult) string {
	switch {
	case r.Passed:
		return checkPassed
	case r.Severity == script.SeverityWarn:
		return checkWarned
	}
	return checkFailed
}

func (c *checksCmd) Run(ctx context.Context, a *app) error {
	home, r, err := c.runFlag.open(ctx, a, c.stateFlags)
	if err != nil {
		return err
	}
	defer home.Close()
	nodes, err := home.State.Nodes(ctx, r.RunKey)
	if err != nil {
		return err
	}
	if c.Node != "" {
		if nodes = slices.DeleteFunc(nodes, func(n state.Node) bool { return n.Name != c.Node }); len(nodes) == 0 {
			return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("run %d has no node %s", r.Run, c.Node),
				Hint: "`thalweg nodes` lists them"}
		}
	}
	results, err := inspect.Checks(ctx, home.State, nodes)
	if err != nil {
		return err
	}
	rows := checkRows("", results)
	if c.JSON {
		return printJSON(a.stdout, rows)
	}
	fmt.Fprintf(a.stdout, "run %d in workspace %s: %s\n\n", r.Run, r.Workspace, a.runStatus(ctx, home, r))
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

func (a *app) paintCheck(status string) string {
	return a.paint(status, map[string]color{checkPassed: green, checkWarned: yellow, checkFailed: red}[status])
}

// checkCounts is how a node's checks ended.
type checkCounts struct {
	Passed int `json:"passed"`
	Warned int `json:"warned"`
	Failed int `json:"failed"`
}

// countChecks counts the results of a node.
func countChecks(results []state.CheckResult, node string) checkCounts {
	var c checkCounts
	for _, r := range results {
		if r.Node != node {
			continue
		}
		switch checkStatus(r) {
		case checkPassed:
			c.Passed++
		case checkWarned:
			c.Warned++
		default:
			c.Failed++
		}
	}
	return c
}

func (c checkCounts) text(a *app) string {
	var parts []string
	for _, p := range []struct {
		n      int
		status string
	}{{c.Passed, checkPassed}, {c.Warned, checkWarned}, {c.Failed, checkFailed}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, a.paintCheck(p.status)))
		}
	}
	return strings.Join(parts, ", ")
}

// printBroken lists the checks that did not pass.
func printBroken(a *app, results []state.CheckResult) {
	for _, row := range checkRows("", results) {
		if row.Status != checkPassed {
			fmt.Fprintf(a.stdout, "  check %s: node %s, %s: %s\n", a.paintCheck(row.Status), row.Node, row.Name, row.Message)
		}
	}
}
