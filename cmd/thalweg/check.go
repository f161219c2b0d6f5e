package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"thalweg/internal/app/inspect"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/scripts"
	"thalweg/internal/lang/script"
	"thalweg/internal/store/state"
)

type checkCmd struct {
	scriptFlags
	Node   []string `help:"Only the checks of these nodes." placeholder:"NODE,…"`
	Limit  int      `help:"Failing rows to show of each check; 0 for all that the check keeps." default:"5"`
	Memory string   `help:"Memory for the checks, e.g. 4GB; default: as run." placeholder:"SIZE"`
	JSON   bool     `name:"json" help:"Print a JSON object."`
	Of     int64    `name:"run" help:"Number of the run whose tables are looked at; default: the last of this script, else the last." placeholder:"N"`
	stateFlags
}

// checked is the JSON form of what the checks found.
type checked struct {
	Run       int64        `json:"run"`
	Workspace string       `json:"workspace"`
	Counts    checkCounts  `json:"counts"`
	Checks    []checkedRow `json:"checks"`
}

type checkedRow struct {
	checkRow
	InRun string            `json:"in_run,omitempty"` // what the check of this name found in the run; "": it had none
	Rows  []json.RawMessage `json:"rows,omitempty"`   // failing ones
}

// Help says more than the list of commands has room for.
func (c *checkCmd) Help() string {
	return "No node is run, and nothing is written: the checks of the script, as it is now, look at the rows that a run " +
		"has left. " +
		"Write a check, and try it against yesterday's run: thalweg check script.yaml --run 41"
}

func (c *checkCmd) Run(ctx context.Context, a *app) error {
	memory, err := parseSize(c.Memory)
	if err != nil {
		return err
	}
	s, diags, err := c.load(ctx, a)
	if err != nil {
		return err
	}
	if diags.HasErrors() {
		return &scripts.InvalidScriptError{Diagnostics: diags}
	}
	home, err := c.openHome(ctx, a, false)
	if err != nil {
		return err
	}
	defer home.Close()
	r, err := c.find(ctx, home, s)
	if err != nil {
		return err
	}
	if !c.JSON {
		a.printDiagnostics(diags.Warnings())
	}
	found, err := inspect.Check(ctx, home, s, inspect.CheckOptions{
		Run: r, ScriptPath: c.Script, Nodes: c.Node, Process: runtime.Process{Caller: a.caller(), MemoryBytes: memory},
		RowsMax: c.Limit,
	})
	if err != nil {
		return err
	}
	counts := countFound(found)
	if c.JSON {
		out := checked{Run: r.Run, Workspace: r.Workspace, Counts: counts}
		if out.Checks, err = checkedRows(found); err == nil {
			err = printJSON(a.stdout, out)
		}
	} else {
		fmt.Fprintf(a.stdout, "the checks of %s, over the tables of run %d in workspace %s\n\n", s.Path, r.Run, r.Workspace)
		a.printChecked(found)
		err = a.printFailing(found)
		fmt.Fprintf(a.stdout, "\n%s\n", counts.text(a))
	}
	if err == nil && counts.Failed > 0 {
		return errReported{exitUsers}
	}
	return err
}

// find is the run whose tables are looked at.
func (c *checkCmd) find(ctx context.Context, home *instance.Instance, s *script.Script) (state.Run, error) {
	if c.Of == 0 {
		r, ok, err := inspect.LatestOf(ctx, home, c.Workspace, s, c.Script)
		if ok || err != nil {
			return r, err
		}
	}
	return runFlag{Run: c.Of}.pick(ctx, home, c.Workspace)
}

func countFound(found []inspect.CheckFound) (c checkCounts) {
	for _, f := range found {
		one := countChecks([]state.CheckResult{f.CheckResult}, f.Node)
		c.Passed, c.Warned, c.Failed = c.Passed+one.Passed, c.Warned+one.Warned, c.Failed+one.Failed
	}
	return c
}

// inRun is what a check found in the run.
func inRun(f inspect.CheckFound) string {
	if f.Before == nil {
		return ""
	}
	return checkStatus(*f.Before)
}

func (a *app) printChecked(found []inspect.CheckFound) {
	t := a.newTable("node", "check", "status", "in the run", "checked", "failed", "what was found").leaves("checked",
		"failed", "in the run")
	rightAligned(t, 5, 6)
	for _, f := range found {
		before := "not there"
		if f.Before != nil {
			before = a.paintCheck(inRun(f))
		}
		t.AppendRow([]any{f.Node, f.Name, a.paintCheck(checkStatus(f.CheckResult)), before, count(f.Checked), count(f.Failed),
			f.Message})
	}
	t.Render()
}

// printFailing shows rows that failed, check by check.
func (a *app) printFailing(found []inspect.CheckFound) error {
	for _, f := range found {
		shown := len(f.Failing.Rows)
		if shown == 0 {
			continue
		}
		of := ""
		if int64(shown) < f.Failed {
			of = fmt.Sprintf(", the first %s", count(int64(shown)))
		}
		fmt.Fprintf(a.stdout, "\nnode %s, %s%s\n\n", a.plain(f.Node), a.plain(f.Name), of)
		sheet := sqlCmd{Format: "table"}
		if err := sheet.print(a, a.data, f.Failing); err != nil {
			return err
		}
	}
	return nil
}

// checkedRows is the JSON form of what was found, with the failing rows as objects.
func checkedRows(found []inspect.CheckFound) ([]checkedRow, error) {
	out := make([]checkedRow, len(found))
	for i, f := range found {
		out[i] = checkedRow{checkRow: checkRows(f.Node, []state.CheckResult{f.CheckResult})[0], InRun: inRun(f)}
		var lines bytes.Buffer
		if err := printRows(&lines, f.Failing); err != nil {
			return nil, err
		}
		for line := range bytes.Lines(lines.Bytes()) {
			out[i].Rows = append(out[i].Rows, json.RawMessage(bytes.TrimSpace(line)))
		}
	}
	return out, nil
}
