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
		Failure: sum.Failure, Nodes: []view.FinishedNode{}, Files: sum.Files, Bill: sum.Bill}
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

// SummaryView returns a summary as it is sent to others.
func SummaryView(sum runner.Summary) view.RunSummary {
	out := view.RunSummary{Run: Finished(sum), More: []view.NodeSummary{}, Checks: append([]view.CheckResult{}, sum.Checks...)}
	for _, n := range sum.Nodes {
		out.More = append(out.More, view.NodeSummary{Table: n.Table, BatchesDone: n.BatchesDone,
			BatchesFailed: n.BatchesFailed})
	}
	return out
}

// SummaryFrom returns the summary that a view was made of, without what waits for people.
func SummaryFrom(v view.RunSummary) runner.Summary {
	r := v.Run
	out := runner.Summary{Key: view.RunKey{Workspace: r.Workspace, Run: r.Run}, Status: r.Status, Failure: r.Failure,
		Files: r.Files, Bill: r.Bill, Checks: v.Checks, Elapsed: ofMS(r.ElapsedMS), Overhead: ofMS(r.OverheadMS),
		PeakBytes: r.PeakBytes,
		Stats:     map[string]view.Stats{}, Worked: map[string]time.Duration{}, ComputedIn: map[string]string{}}
	for _, s := range r.Sources {
		out.Foreign = append(out.Foreign, inspect.ForeignTable{Table: s.Table, Script: s.Script,
			Source: view.NodeKey{RunKey: view.RunKey{Workspace: r.Workspace, Run: s.Run}, Node: s.Node}})
	}
	for i, n := range r.Nodes {
		node := view.Node{NodeKey: view.NodeKey{RunKey: out.Key, Node: n.Node}, Status: n.Status, BatchesTotal: n.Batches,
			RowsIn: n.RowsIn, RowsOut: n.RowsOut, BytesIn: n.BytesIn, BytesOut: n.BytesOut, Started: timeOf(n.StartedMS),
			Finished: timeOf(n.FinishedMS)}
		node.Name, node.Kind = n.Node, n.Type
		if f := n.ReusedFrom; f != nil {
			node.ReusedFrom = &view.NodeKey{RunKey: view.RunKey{Workspace: r.Workspace, Run: f.Run}, Node: f.Node}
		}
		if i < len(v.More) {
			node.Table, node.BatchesDone, node.BatchesFailed = v.More[i].Table, v.More[i].BatchesDone, v.More[i].BatchesFailed
		}
		out.Nodes = append(out.Nodes, node)
		out.Stats[n.Node] = view.Stats{Warnings: n.Warnings, Engine: ofMS(n.EngineMS), Python: ofMS(n.PythonBusyMS),
			Counters: inspect.CountedBadRows(n.RowsBad)}
		out.Worked[n.Node] = ofMS(n.ElapsedMS)
		if n.ComputedIn != "" {
			out.ComputedIn[n.Node] = n.ComputedIn
		}
	}
	return out
}

func ofMS(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
