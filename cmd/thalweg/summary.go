package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"thalweg/internal/app/runner"
	"thalweg/internal/base/format"
	"thalweg/internal/lang/script"
	"thalweg/internal/ops/history"
	"thalweg/internal/run/gate"
	"thalweg/internal/store/state"
)

// printSummary is what a person sees when a run is over.
func printSummary(a *app, sum runner.Summary) {
	headers := []any{"node", "type", "status", "batches", "rows in", "rows out", "bytes out", "time"}
	if len(sum.Checks) > 0 {
		headers = append(headers, "checks")
	}
	t := a.newTable(headers...).leaves("batches", "bytes out", "type", "rows in")
	rightAligned(t, 4, 5, 6, 7, 8)
	for _, n := range sum.Nodes {
		row := []any{n.Name, n.Kind, nodeStatus(a, n, sum.ComputedIn), batchText(n, sum.ComputedIn), count(n.RowsIn),
			count(n.RowsOut), size(n.BytesOut), span(sum.Worked[n.Name])}
		if len(sum.Checks) > 0 {
			row = append(row, countChecks(sum.Checks, n.Name).text(a))
		}
		t.AppendRow(row)
	}
	t.Render()
	fmt.Fprintf(a.stdout, "\nrun %d in workspace %s: %s in %s", sum.Key.Run, sum.Key.Workspace, statusText(a, sum.Status),
		span(sum.Elapsed))
	if sum.PeakBytes > 0 { // others have worked on it, else
		fmt.Fprintf(a.stdout, ", peak memory %s", size(sum.PeakBytes))
	}
	fmt.Fprintln(a.stdout)
	if taken := takenOver(sum.Nodes); len(taken) > 0 {
		fmt.Fprintf(a.stdout, "  %s run, %d taken over: their inputs, code and parameters are those of an earlier run; "+
			"--fresh runs all\n", countNodes(len(sum.Nodes)-len(taken)), len(taken))
	}
	for _, f := range sum.Foreign {
		fmt.Fprintf(a.stdout, "  table %s was read from run %d of %s\n", f.Table, f.Source.Run, f.Script)
	}
	printFiles(a, sum.Files)
	printBroken(a, sum.Checks)
	printBadRows(a, sum.Nodes, sum.Stats)
	printWarnings(a, sum.Nodes, sum.Stats)
}

// printFiles says what was written: a directory of files in one line.
func printFiles(a *app, files []state.File) {
	dirs := map[state.NodeKey]string{}
	for _, f := range files {
		if dir, ok := strings.CutSuffix(f.URL, script.DirManifest); f.Manifest && ok {
			dirs[f.NodeKey] = dir
		}
	}
	var count int
	var rows, bytes int64
	for i, f := range files {
		dir := dirs[f.NodeKey]
		switch {
		case dir != "":
			count, rows, bytes = count+1, rows+f.Rows, bytes+f.Bytes
			if i+1 == len(files) || files[i+1].NodeKey != f.NodeKey {
				fmt.Fprintf(a.stdout, "  %s  (%s, %s, %s)\n", dir, counted(count-1, "file", "files"), countRows(rows), size(bytes))
				count, rows, bytes = 0, 0, 0
			}
		case f.Manifest:
			fmt.Fprintf(a.stdout, "  %s  (%s)\n", f.URL, size(f.Bytes))
		default:
			fmt.Fprintf(a.stdout, "  %s  (%s, %s)\n", f.URL, countRows(f.Rows), size(f.Bytes))
		}
	}
}

// takenOver lists the nodes that have the rows of an earlier run.
func takenOver(all []state.Node) []state.Node {
	return slices.DeleteFunc(slices.Clone(all), func(n state.Node) bool {
		return n.ReusedFrom == nil ||
			n.Status != state.Succeeded
	})
}

func countNodes(n int) string { return counted(n, "node", "nodes") }

// counted writes a number of things.
func counted(n int, one, many string) string { return format.Counted(int64(n), one, many) }

func countRows(n int64) string { return format.Counted(n, "row", "rows") }

// printWarnings says what succeeded and may not be what was meant.
func printWarnings(a *app, nodes []state.Node, stats map[string]state.Stats) {
	const linesMax = 20
	lines := 0
	for _, n := range nodes {
		for _, w := range stats[n.Name].Warnings {
			if lines++; lines > linesMax {
				continue
			}
			fmt.Fprintf(a.stdout, "%s node %s: %s\n", a.paint("warning:", yellow), n.Name, w)
		}
	}
	if lines > linesMax {
		fmt.Fprintf(a.stdout, "%s %d more; --json has them all\n", a.paint("warning:", yellow), lines-linesMax)
	}
}

// printBadRows says which nodes have put rows aside and how to see them.
func printBadRows(a *app, nodes []state.Node, stats map[string]state.Stats) {
	for _, b := range runner.ListBadRows(nodes, stats) {
		fmt.Fprintf(a.stdout, "%s %s in node %s; %s shows them\n", a.paint("bad rows:", yellow), count(b.Rows),
			b.Node, a.command(b.Show))
	}
}

func statusText(a *app, s state.Status) string {
	switch s {
	case state.Succeeded, state.Complete:
		return a.paint(string(s), green)
	case state.Failed:
		return a.paint(string(s), red)
	case state.Stopped, state.Running, state.Claimed:
		return a.paint(string(s), yellow)
	}
	return string(s)
}

// nodeStatus is a node's status. An ephemeral one has done nothing by itself.
func nodeStatus(a *app, n state.Node, computedIn map[string]string) string {
	switch {
	case n.Status == state.Succeeded && computedIn[n.Name] != "":
		return "ephemeral"
	case n.Status == state.Succeeded && n.ReusedFrom != nil:
		return a.paint(fmt.Sprintf("from run %d", n.ReusedFrom.Run), green)
	}
	return statusText(a, n.Status)
}

// settled shows nodes of a run that is over as it left them: nothing of it is
// running any more.
func settled(run state.Status, finished time.Time, nodes []state.Node) []state.Node {
	if run == state.Running {
		return nodes
	}
	out := make([]state.Node, len(nodes))
	for i, n := range nodes {
		switch {
		case n.Dropped:
			n.Status = history.Dropped
		case n.Status == state.Running:
			n.Status = state.Stopped
			if n.Finished.IsZero() {
				n.Finished = finished
			}
		}
		out[i] = n
	}
	return out
}

func batchText(n state.Node, computedIn map[string]string) string {
	if n.BatchesTotal == 0 && (n.Status == state.Pending || gate.Is(n.NodeSpec)) {
		return "-"
	}
	if n.ReusedFrom != nil {
		return "-"
	}
	if in := computedIn[n.Name]; in != "" {
		return "in " + in
	}
	return fmt.Sprintf("%d/%d", n.BatchesDone, n.BatchesTotal)
}

// finished is the last JSON event of a run.
type finished struct {
	Event      string         `json:"event"`
	Status     state.Status   `json:"status"`
	Workspace  string         `json:"workspace"`
	Run        int64          `json:"run"`
	ElapsedMS  int64          `json:"elapsed_ms"`
	OverheadMS int64          `json:"overhead_ms"`
	PeakBytes  int64          `json:"peak_bytes"`
	Failure    *state.Failure `json:"failure,omitempty"`
	Nodes      []finishedNode `json:"nodes"`
	Sources    []sourceRow    `json:"sources,omitempty"`
	Files      []state.File   `json:"files"`
}

// sourceRow is a table of another run that was read.
type sourceRow struct {
	Table  string `json:"table"`
	Run    int64  `json:"run"`
	Node   string `json:"node"`
	Script string `json:"script"`
}

type finishedNode struct {
	Node         string       `json:"node"`
	Type         string       `json:"type"`
	Status       state.Status `json:"status"`
	Batches      int          `json:"batches"`
	RowsIn       int64        `json:"rows_in"`
	RowsOut      int64        `json:"rows_out"`
	RowsBad      int64        `json:"rows_bad"`
	Warnings     []string     `json:"warnings,omitempty"`
	BytesIn      int64        `json:"bytes_in"`
	BytesOut     int64        `json:"bytes_out"`
	StartedMS    int64        `json:"started_ms"`  // since the epoch
	FinishedMS   int64        `json:"finished_ms"` // since the epoch; 0 if it did not finish
	ElapsedMS    int64        `json:"elapsed_ms"`  // see state.Worked
	EngineMS     int64        `json:"engine_ms"`
	PythonBusyMS int64        `json:"python_busy_ms"`
	Checks       *checkCounts `json:"checks,omitempty"`
	ComputedIn   string       `json:"computed_in,omitempty"` // of an ephemeral table: the node that computes it
	ReusedFrom   *reusedFrom  `json:"reused_from,omitempty"` // the node whose rows were taken over
}

// reusedFrom is the JSON form of a node whose rows another has taken over.
type reusedFrom struct {
	Run  int64  `json:"run"`
	Node string `json:"node"`
}

func reusedFromOf(key *state.NodeKey) *reusedFrom {
	if key == nil {
		return nil
	}
	return &reusedFrom{Run: key.Run, Node: key.Node}
}

func finishedEvent(sum runner.Summary) finished {
	out := finished{Event: "run_finished", Status: sum.Status, Workspace: sum.Key.Workspace, Run: sum.Key.Run,
		ElapsedMS:  sum.Elapsed.Milliseconds(),
		OverheadMS: sum.Overhead.Milliseconds(), PeakBytes: sum.PeakBytes, Failure: sum.Failure, Nodes: []finishedNode{},
		Files: sum.Files}
	for _, f := range sum.Foreign {
		out.Sources = append(out.Sources, sourceRow{Table: f.Table, Run: f.Source.Run, Node: f.Source.Node, Script: f.Script})
	}
	for _, n := range sum.Nodes {
		s := sum.Stats[n.Name]
		node := finishedNode{Node: n.Name, Type: n.Kind, Status: n.Status, Batches: n.BatchesTotal, RowsIn: n.RowsIn,
			RowsOut: n.RowsOut, RowsBad: runner.BadRowsOf(s), Warnings: s.Warnings,
			BytesIn: n.BytesIn, BytesOut: n.BytesOut, StartedMS: epochMS(n.Started), FinishedMS: epochMS(n.Finished),
			ElapsedMS: sum.Worked[n.Name].Milliseconds(),
			EngineMS:  s.Engine.Milliseconds(), PythonBusyMS: s.Python.Milliseconds(), ComputedIn: sum.ComputedIn[n.Name],
			ReusedFrom: reusedFromOf(n.ReusedFrom)}
		if c := countChecks(sum.Checks, n.Name); c != (checkCounts{}) {
			node.Checks = &c
		}
		out.Nodes = append(out.Nodes, node)
	}
	return out
}

func epochMS(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
