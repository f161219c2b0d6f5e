package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
)

type checkCmd struct {
	scriptFlags
	Node   []string `help:"Only the checks of these nodes." placeholder:"NODE,…"`
	Limit  int      `help:"Failing rows to show of each check; 0 for all that the check keeps." default:"5"`
	Memory string   `help:"Memory for the checks, e.g. 4GB; default: as run." placeholder:"SIZE"`
	JSON   bool     `name:"json" help:"Print a JSON object."`
	Of     int64    `name:"run" help:"Run whose tables are checked; default: the last." placeholder:"N"`
	stateFlags
}

// Help says more than the list of commands has room for.
func (c *checkCmd) Help() string {
	return "No node is run, and nothing is written: the checks of the script, as it is now, look at the rows that a " +
		"run has left. " +
		"Write a check, and try it against yesterday's run: thalweg check script.yaml --run 41"
}

func (c *checkCmd) Run(ctx context.Context, a *console) error {
	memory, err := parseSize(c.Memory)
	if err != nil {
		return err
	}
	s, diags, err := c.valid(ctx, a)
	if err != nil {
		return err
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
	found, err := home.Data.Check(ctx, a.caller(), s, r, app.CheckOptions{ScriptPath: c.Script, Nodes: c.Node,
		Process: app.Process{MemoryBytes: memory}, RowsMax: c.Limit})
	if err != nil {
		return err
	}
	counts := countFound(found)
	if c.JSON {
		out := view.Checked{Run: r.Run, Workspace: r.Workspace, Counts: counts}
		if out.Checks, err = checkedRows(found); err == nil {
			err = printJSON(a.stdout, out)
		}
	} else {
		fmt.Fprintf(a.stdout, "the checks of %s, over the tables of run %d in workspace %s\n\n", s.Path,
			r.Run, r.Workspace)
		a.printChecked(found)
		err = a.printFailing(found)
		fmt.Fprintf(a.stdout, "\n%s\n", countsText(a, counts))
	}
	if err == nil && counts.Failed > 0 {
		return errReported{exitUsers}
	}
	return err
}

// find is the run whose tables are looked at.
func (c *checkCmd) find(ctx context.Context, home *app.App, s *app.Script) (view.Run, error) {
	if c.Of == 0 {
		r, ok, err := home.Data.LatestOf(ctx, c.Workspace, s, c.Script)
		if ok || err != nil {
			return r, err
		}
	}
	return runFlag{Run: c.Of}.pick(ctx, home, c.Workspace)
}

func countFound(found []app.CheckFound) (c view.CheckCounts) {
	for _, f := range found {
		one := view.CountChecks([]view.CheckResult{f.CheckResult}, f.Node)
		c.Passed, c.Warned, c.Failed = c.Passed+one.Passed, c.Warned+one.Warned, c.Failed+one.Failed
	}
	return c
}

// inRun returns the status that a check had in the run; "" if the run had no such check.
func inRun(f app.CheckFound) string {
	if f.Before == nil {
		return ""
	}
	return view.CheckStatus(*f.Before)
}

func (a *console) printChecked(found []app.CheckFound) {
	t := a.newTable("node", "check", "status", "in the run", "checked", "failed", "what was found").leaves("checked",
		"failed", "in the run")
	rightAligned(t, 5, 6)
	for _, f := range found {
		before := "not there"
		if f.Before != nil {
			before = a.paintCheck(inRun(f))
		}
		t.AppendRow([]any{f.Node, f.Name, a.paintCheck(view.CheckStatus(f.CheckResult)), before, count(f.Checked),
			count(f.Failed), f.Message})
	}
	t.Render()
}

// printFailing shows rows that failed, check by check.
func (a *console) printFailing(found []app.CheckFound) error {
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
func checkedRows(found []app.CheckFound) ([]view.CheckedRow, error) {
	out := make([]view.CheckedRow, len(found))
	for i, f := range found {
		out[i] = view.CheckedRow{Check: view.ChecksOf(f.Node, []view.CheckResult{f.CheckResult})[0], InRun: inRun(f)}
		var lines bytes.Buffer
		if err := f.Failing.WriteJSON(&lines); err != nil {
			return nil, err
		}
		for line := range bytes.Lines(lines.Bytes()) {
			out[i].Rows = append(out[i].Rows, json.RawMessage(bytes.TrimSpace(line)))
		}
	}
	return out, nil
}
