package runs

import (
	"time"

	"thalweg/internal/app/inspect"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/view"
)

// Finished returns a summary as the last event of a run.
func Finished(sum runner.Summary) view.RunFinished {
	out := view.RunFinished{Event: "run_finished", Status: sum.Status, Workspace: sum.Key.Workspace, Run: sum.Key.Run,
		ElapsedMS: sum.Elapsed.Milliseconds(), OverheadMS: sum.Overhead.Milliseconds(), PeakBytes: sum.PeakBytes,
		Failure: sum.Failure, Nodes: []view.FinishedNode{}, Files: sum.Files}
	for _, f := range sum.Foreign {
		out.Sources = append(out.Sources, view.SourceTable{Table: f.Table, Run: f.Source.Run, Node: f.Source.Node,
			Script: f.Script})
	}
	for _, n := range sum.Nodes {
		s := sum.Stats[n.Name]
		node := view.FinishedNode{Node: n.Name, Type: n.Kind, Status: n.Status, Batches: n.BatchesTotal,
			RowsIn: n.RowsIn, RowsOut: n.RowsOut, RowsBad: inspect.BadRowsOf(s), Warnings: s.Warnings,
			BytesIn: n.BytesIn, BytesOut: n.BytesOut, StartedMS: epochMS(n.Started), FinishedMS: epochMS(n.Finished),
			ElapsedMS: sum.Worked[n.Name].Milliseconds(), EngineMS: s.Engine.Milliseconds(),
			PythonBusyMS: s.Python.Milliseconds(), ComputedIn: sum.ComputedIn[n.Name],
			ReusedFrom: view.ReusedFromOf(n.ReusedFrom)}
		if c := view.CountChecks(sum.Checks, n.Name); c != (view.CheckCounts{}) {
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
