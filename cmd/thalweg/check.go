package main

import (
	"context"
	"encoding/json"
	"fmt"

	"thalweg/internal/apiclient"
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
	out, warnings, err := c.check(ctx, a)
	if err != nil {
		return err
	}
	if c.JSON {
		err = printJSON(a.stdout, out)
	} else {
		a.printDiagnostics(warnings)
		fmt.Fprintf(a.stdout, "the checks of %s, over the tables of run %d in workspace %s\n\n", c.Script, out.Run,
			out.Workspace)
		a.printChecked(out.Checks)
		err = a.printFailing(out.Checks)
		fmt.Fprintf(a.stdout, "\n%s\n", countsText(a, out.Counts))
	}
	if err == nil && out.Counts.Failed > 0 {
		return errReported{exitUsers}
	}
	return err
}

// check makes the checks, here or on the server. Warnings are of the script.
func (c *checkCmd) check(ctx context.Context, a *console) (out view.Checked, warnings view.Diagnostics, err error) {
	ctx, end := a.showProgress(ctx)
	defer end()
	if a.server != "" {
		client, sent, err := c.throughServer(ctx, a)
		if err != nil {
			return out, nil, err
		}
		return client.Check(ctx, c.Workspace, sent, apiclient.CheckOptions{Run: c.Of, Nodes: c.Node, RowsMax: c.Limit})
	}
	memory, err := parseSize(c.Memory)
	if err != nil {
		return out, nil, err
	}
	s, diags, err := c.valid(ctx, a)
	if err != nil {
		return out, nil, err
	}
	home, err := c.openHome(ctx, a, false)
	if err != nil {
		return out, nil, err
	}
	defer home.Close()
	r, err := c.find(ctx, home, s)
	if err != nil {
		return out, nil, err
	}
	found, err := home.Data.Check(ctx, a.caller(), s, r, app.CheckOptions{ScriptPath: c.Script, Nodes: c.Node,
		Process: app.Process{MemoryBytes: memory}, RowsMax: c.Limit})
	if err != nil {
		return out, nil, err
	}
	out, err = app.CheckedView(r, found)
	return out, diags.Warnings(), err
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

func (a *console) printChecked(found []view.CheckedRow) {
	t := a.newTable("node", "check", "status", "in the run", "checked", "failed", "what was found").leaves("checked",
		"failed", "in the run")
	rightAligned(t, 5, 6)
	for _, f := range found {
		before := "not there"
		if f.InRun != "" {
			before = a.paintCheck(f.InRun)
		}
		t.AppendRow([]any{f.Node, f.Name, a.paintCheck(f.Status), before, count(f.Checked), count(f.Failed), f.Message})
	}
	t.Render()
}

// printFailing shows rows that failed, check by check.
func (a *console) printFailing(found []view.CheckedRow) error {
	for _, f := range found {
		shown := len(f.Rows)
		if shown == 0 {
			continue
		}
		of := ""
		if int64(shown) < f.Failed {
			of = fmt.Sprintf(", the first %s", count(int64(shown)))
		}
		fmt.Fprintf(a.stdout, "\nnode %s, %s%s\n\n", a.plain(f.Node), a.plain(f.Name), of)
		var rows app.QueryResult
		for _, text := range f.Rows {
			var row view.Object
			if err := json.Unmarshal(text, &row); err != nil {
				return fmt.Errorf("read a row that failed: %w", err)
			}
			for i, cell := range row.Cells {
				if raw, is := cell.(json.RawMessage); is {
					row.Cells[i] = string(raw)
				}
			}
			rows.Columns, rows.Rows = row.Names, append(rows.Rows, row.Cells)
		}
		sheet := sqlCmd{Format: "table"}
		if err := sheet.print(a, a.data, rows); err != nil {
			return err
		}
	}
	return nil
}
