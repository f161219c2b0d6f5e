package main

import (
	"context"
	"fmt"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
)

// runFlag picks a run; 0 is the workspace's last.
type runFlag struct {
	Run int64 `help:"Number of the run; default: the last." placeholder:"N"`
}

// pick finds the run in state.
func (f runFlag) pick(ctx context.Context, home *app.App, workspace string) (view.Run, error) {
	return home.Operations.Numbered(ctx, workspace, f.Run)
}

type nodesCmd struct {
	JSON bool `name:"json" help:"Print a JSON array."`
	runFlag
	stateFlags
}

func (c *nodesCmd) Run(ctx context.Context, a *console) error {
	home, r, err := c.runFlag.open(ctx, a, c.stateFlags)
	if err != nil {
		return err
	}
	defer home.Close()
	sum, err := home.Operations.Nodes(ctx, r)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a.stdout, app.Finished(sum).Nodes)
	}
	fmt.Fprintf(a.stdout, "run %d in workspace %s: %s\n\n", r.Run, r.Workspace,
		runStatusText(a, home.Operations.Status(ctx, r)))
	headers := []any{"node", "type", "status", "batches", "failed", "rows in", "rows out", "bytes out", "time"}
	if len(sum.Checks) > 0 {
		headers = append(headers, "checks")
	}
	t := a.newTable(headers...).leaves("failed", "batches", "bytes out", "type", "time", "rows in")
	rightAligned(t, 4, 5, 6, 7, 8, 9)
	for _, n := range sum.Nodes {
		row := []any{n.Name, n.Kind, nodeStatus(a, n, sum.ComputedIn), batchText(n, sum.ComputedIn), n.BatchesFailed,
			count(n.RowsIn), count(n.RowsOut), size(n.BytesOut), span(sum.Worked[n.Name])}
		if len(sum.Checks) > 0 {
			row = append(row, countsText(a, view.CountChecks(sum.Checks, n.Name)))
		}
		t.AppendRow(row)
	}
	t.Render()
	printBadRows(a, sum)
	printWarnings(a, sum)
	return nil
}

type batchesCmd struct {
	Node string `arg:"" help:"Node."`
	JSON bool   `name:"json" help:"Print a JSON array."`
	runFlag
	stateFlags
}

func (c *batchesCmd) Run(ctx context.Context, a *console) error {
	home, r, err := c.runFlag.open(ctx, a, c.stateFlags)
	if err != nil {
		return err
	}
	defer home.Close()
	rows, err := home.Operations.Batches(ctx, r.RunKey, c.Node)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a.stdout, rows)
	}
	t := a.newTable("batch", "status", "attempt", "rows in", "rows out", "bytes out", "time",
		"failure").leaves("bytes out", "attempt", "rows in", "time", "rows out")
	rightAligned(t, 1, 3, 4, 5, 6, 7)
	for _, b := range rows {
		what := ""
		if b.Failure != nil {
			if what = b.Failure.Place.String(); what != "" {
				what += ": "
			}
			what += b.Failure.Message
		}
		t.AppendRow([]any{b.Batch, statusText(a, b.Status), b.Attempt, ofWhole(b.Status, count(b.RowsIn)),
			ofWhole(b.Status, count(b.RowsOut)), ofWhole(b.Status, size(b.BytesOut)), span(b.Took), what})
	}
	t.Render()
	return nil
}
