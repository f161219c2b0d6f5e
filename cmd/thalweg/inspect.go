package main

import (
	"context"
	"errors"
	"fmt"

	"thalweg/internal/app/inspect"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/similar"
	"thalweg/internal/store/state"
)

// runStatus is the status of a run as history has it, for a heading.
func (a *app) runStatus(ctx context.Context, home *instance.Instance, r state.Run) string {
	if seen, err := a.statusOf(ctx, home, r); err == nil {
		return runStatusText(a, seen.Status)
	}
	return string(r.Status)
}

// runFlag picks a run; 0 is the workspace's last.
type runFlag struct {
	Run int64 `help:"Number of the run; default: the last." placeholder:"N"`
}

// pick finds the run in state.
func (f runFlag) pick(ctx context.Context, home *instance.Instance, workspace string) (state.Run, error) {
	if f.Run > 0 {
		r, err := home.State.Run(ctx, state.RunKey{Workspace: workspace, Run: f.Run})
		if errors.Is(err, state.ErrNotFound) {
			return r, &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("workspace %s has no run %d", workspace, f.Run),
				Hint: "`thalweg runs` lists them"}
		}
		return r, err
	}
	runs, _, err := home.State.Runs(ctx, workspace, state.Page{Limit: 1})
	if err != nil {
		return state.Run{}, err
	}
	if len(runs) == 0 {
		return state.Run{}, &fault.Error{Kind: fault.Script, Message: "workspace " + workspace + " has no runs",
			Hint: "run a script first, or name another workspace with --workspace"}
	}
	return runs[0], nil
}

type nodesCmd struct {
	JSON bool `name:"json" help:"Print a JSON array."`
	runFlag
	stateFlags
}

func (c *nodesCmd) Run(ctx context.Context, a *app) error {
	home, r, err := c.runFlag.open(ctx, a, c.stateFlags)
	if err != nil {
		return err
	}
	defer home.Close()
	nodes, err := home.State.Nodes(ctx, r.RunKey)
	if err != nil {
		return err
	}
	checks, err := inspect.Checks(ctx, home.State, nodes)
	if err != nil {
		return err
	}
	nodes = settled(r.Status, r.Finished, nodes)
	stats := runner.NodeStats(ctx, home.State, nodes)
	worked := runner.Worked(ctx, home.State, r, nodes)
	computedIn := runner.ComputedIn(ctx, home.State, nodes)
	nodes = inspect.Shown(ctx, home.State, nodes)
	if c.JSON {
		return printJSON(a.stdout, finishedEvent(runner.Summary{ComputedIn: computedIn, Key: r.RunKey, Nodes: nodes,
			Checks: checks, Stats: stats, Worked: worked}).Nodes)
	}
	fmt.Fprintf(a.stdout, "run %d in workspace %s: %s\n\n", r.Run, r.Workspace, a.runStatus(ctx, home, r))
	headers := []any{"node", "type", "status", "batches", "failed", "rows in", "rows out", "bytes out", "time"}
	if len(checks) > 0 {
		headers = append(headers, "checks")
	}
	t := a.newTable(headers...).leaves("failed", "batches", "bytes out", "type", "time", "rows in")
	rightAligned(t, 4, 5, 6, 7, 8, 9)
	for _, n := range nodes {
		row := []any{n.Name, n.Kind, nodeStatus(a, n, computedIn), batchText(n, computedIn), n.BatchesFailed, count(n.RowsIn),
			count(n.RowsOut), size(n.BytesOut), span(worked[n.Name])}
		if len(checks) > 0 {
			row = append(row, countChecks(checks, n.Name).text(a))
		}
		t.AppendRow(row)
	}
	t.Render()
	printBadRows(a, nodes, stats)
	printWarnings(a, nodes, stats)
	return nil
}

type batchesCmd struct {
	Node string `arg:"" help:"Node."`
	JSON bool   `name:"json" help:"Print a JSON array."`
	runFlag
	stateFlags
}

// batchRow is the JSON form of a batch.
type batchRow struct {
	Batch    int            `json:"batch"`
	Status   state.Status   `json:"status"`
	Attempt  int            `json:"attempt"`
	Owner    string         `json:"owner,omitempty"`
	RowsIn   int64          `json:"rows_in"`
	RowsOut  int64          `json:"rows_out"`
	BytesIn  int64          `json:"bytes_in"`
	BytesOut int64          `json:"bytes_out"`
	MS       int64          `json:"elapsed_ms"`
	Failure  *state.Failure `json:"failure,omitempty"`
}

func (c *batchesCmd) Run(ctx context.Context, a *app) error {
	home, r, err := c.runFlag.open(ctx, a, c.stateFlags)
	if err != nil {
		return err
	}
	defer home.Close()
	batches, err := state.All(ctx, home.State.Batches, state.NodeKey{RunKey: r.RunKey, Node: c.Node})
	if errors.Is(err, state.ErrNotFound) {
		return noNode(ctx, home, r, c.Node)
	}
	if err != nil {
		return err
	}
	rows := make([]batchRow, len(batches))
	for i, b := range batches {
		rows[i] = batchRow{Batch: b.BatchKey.Batch, Status: b.Status, Attempt: b.Attempt, Owner: b.Owner,
			RowsIn: b.Stats.RowsIn, RowsOut: b.Stats.RowsOut,
			BytesIn: b.Stats.BytesIn, BytesOut: b.Stats.BytesOut, MS: b.Stats.Elapsed.Milliseconds(), Failure: b.Failure}
	}
	if c.JSON {
		return printJSON(a.stdout, rows)
	}
	t := a.newTable("batch", "status", "attempt", "rows in", "rows out", "bytes out", "time",
		"failure").leaves("bytes out", "attempt", "rows in", "time", "rows out")
	rightAligned(t, 1, 3, 4, 5, 6, 7)
	for i, b := range rows {
		what := ""
		if b.Failure != nil {
			if what = b.Failure.Place.String(); what != "" {
				what += ": "
			}
			what += b.Failure.Message
		}
		t.AppendRow([]any{b.Batch, statusText(a, b.Status), b.Attempt, ofWhole(b.Status, count(b.RowsIn)),
			ofWhole(b.Status, count(b.RowsOut)), ofWhole(b.Status, size(b.BytesOut)), span(batches[i].Stats.Elapsed), what})
	}
	t.Render()
	return nil
}

// noNode says of a run that it has not got a node.
func noNode(ctx context.Context, home *instance.Instance, r state.Run, name string) error {
	f := &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("run %d has no node %s", r.Run, name),
		Hint: fmt.Sprintf("`thalweg nodes --run %d` lists them", r.Run)}
	nodes, err := home.State.Nodes(ctx, r.RunKey)
	if err != nil {
		return f // the list says it, too
	}
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Node
	}
	if near := similar.Nearest(name, names); near != "" {
		f.Hint = "did you mean " + near + "? " + f.Hint
	}
	return f
}
