package main

import (
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
	"thalweg/internal/base/format"
)

// printSummary prints the summary of a run that is over.
func printSummary(a *console, sum app.Summary) {
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
			row = append(row, countsText(a, view.CountChecks(sum.Checks, n.Name)))
		}
		t.AppendRow(row)
	}
	t.Render()
	fmt.Fprintf(a.stdout, "\nrun %d in workspace %s: %s in %s", sum.Key.Run, sum.Key.Workspace,
		statusText(a, sum.Status), span(sum.Elapsed))
	if sum.PeakBytes > 0 { // others have worked on it, else
		fmt.Fprintf(a.stdout, ", peak memory %s", size(sum.PeakBytes))
	}
	fmt.Fprintln(a.stdout)
	if taken := takenOver(sum.Nodes); len(taken) > 0 {
		fmt.Fprintf(a.stdout, "  %s run, %d taken over: their inputs, code and parameters are those of an earlier "+
			"run; --fresh runs all\n", countNodes(len(sum.Nodes)-len(taken)), len(taken))
	}
	for _, f := range sum.Foreign {
		fmt.Fprintf(a.stdout, "  table %s was read from run %d of %s\n", f.Table, f.Source.Run, f.Script)
	}
	printFiles(a, sum.Files)
	printBroken(a, sum.Checks)
	printBadRows(a, sum)
	printWarnings(a, sum)
}

// printFiles says what was written: a directory of files in one line.
func printFiles(a *console, files []view.File) {
	dirs := map[view.NodeKey]string{}
	for _, f := range files {
		if dir, ok := strings.CutSuffix(f.URL, view.DirManifest); f.Manifest && ok {
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
				fmt.Fprintf(a.stdout, "  %s  (%s, %s, %s)\n", dir, counted(count-1, "file", "files"),
					countRows(rows), size(bytes))
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
func takenOver(all []view.Node) []view.Node {
	return slices.DeleteFunc(slices.Clone(all), func(n view.Node) bool {
		return n.ReusedFrom == nil ||
			n.Status != view.Succeeded
	})
}

func countNodes(n int) string { return counted(n, "node", "nodes") }

// counted writes a number of things.
func counted(n int, one, many string) string { return format.Counted(int64(n), one, many) }

func countRows(n int64) string { return format.Counted(n, "row", "rows") }

// printWarnings says what succeeded and may not be what was meant.
func printWarnings(a *console, sum app.Summary) {
	const linesMax = 20
	lines := 0
	for _, n := range sum.Nodes {
		for _, w := range sum.Stats[n.Name].Warnings {
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
func printBadRows(a *console, sum app.Summary) {
	for _, b := range sum.BadRows() {
		fmt.Fprintf(a.stdout, "%s %s in node %s; %s shows them\n", a.paint("bad rows:", yellow), count(b.Rows),
			b.Node, a.command(b.Show))
	}
}

func statusText(a *console, s view.Status) string {
	switch s {
	case view.Succeeded, view.Complete:
		return a.paint(string(s), green)
	case view.FailedRun:
		return a.paint(string(s), red)
	case view.StoppedRun, view.Running, view.Claimed:
		return a.paint(string(s), yellow)
	}
	return string(s)
}

// nodeStatus is a node's status. An ephemeral one has done nothing by itself.
func nodeStatus(a *console, n view.Node, computedIn map[string]string) string {
	switch {
	case n.Status == view.Succeeded && computedIn[n.Name] != "":
		return "ephemeral"
	case n.Status == view.Succeeded && n.ReusedFrom != nil:
		return a.paint(fmt.Sprintf("from run %d", n.ReusedFrom.Run), green)
	}
	return statusText(a, n.Status)
}

func batchText(n view.Node, computedIn map[string]string) string {
	if n.BatchesTotal == 0 && (n.Status == view.Pending || n.Kind == view.GateKind) {
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
