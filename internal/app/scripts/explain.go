package scripts

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/view"
	"thalweg/internal/base/address"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/plan"
)

// ExplainOptions say what a script is planned for.
type ExplainOptions struct {
	Node      string // only this one; "": all
	Ephemeral bool   // as a run with Ephemeral
	Path      string // of the script
	Workspace string // whose runs rows are taken over from
	Seen      Named  // its Dir is where inputs are looked for from, and its Policy says which may be
	Process   runtime.Process
}

// Explain says how a run of a script would go about it: layouts, batches, memory
// and SQL, and what it would take over of the runs of home, nil being none.
func Explain(ctx context.Context, home *instance.Instance, s *script.Script, o ExplainOptions) (out view.Explained,
	err error) {
	e, err := runner.Explain(ctx, s, runner.Options{Process: o.Process, Ephemeral: o.Ephemeral, Dir: o.Seen.Dir,
		Policy: o.Seen.Policy})
	if err != nil {
		return out, err
	}
	reuse := map[*script.Node]runner.Foreseen{}
	if home != nil {
		if reuse, err = runner.Forecast(ctx, home, s, s.Nodes, runner.Options{ScriptPath: o.Path,
			Workspace: o.Workspace, Ephemeral: o.Ephemeral, Dir: o.Seen.Dir, Policy: o.Seen.Policy,
			Process: o.Process}); err != nil {
			return out, err
		}
	}
	out = view.Explained{Budget: e.Budget, Nodes: []view.ExplainedNode{}}
	var names []string
	for _, p := range e.Nodes {
		names = append(names, p.Node.Name)
		if o.Node == "" || p.Node.Name == o.Node {
			one := explainNode(p, e.Budget)
			one.ReusedFrom, one.Computed = view.ReusedFromOf(reuse[p.Node].From), reuse[p.Node].Why
			one.Waits = gatesBefore(s, p.Node)
			out.Nodes = append(out.Nodes, one)
		}
	}
	if len(out.Nodes) == 0 {
		return out, fault.New(fault.Script, "the script has no node %q", o.Node).Suggest(o.Node, names)
	}
	return out, nil
}

// explainNode puts a preview into words.
func explainNode(p plan.Preview, b budget.Budget) view.ExplainedNode {
	n := p.Node
	out := view.ExplainedNode{Node: n.Name, Type: runner.KindOf(n), Manual: n.StartPolicy == script.PolicyManual,
		Sources: sourceNames(n),
		Fields:  p.Plan.Layout.Columns, OrderCols: p.Plan.Layout.OrderCols, Buckets: p.Plan.Layout.Buckets,
		BucketKey: p.Plan.Layout.BucketKey,
		Batches:   p.Batches, Checks: p.Checks, Shares: p.Shares, RowsIn: p.Rows, BytesIn: p.Bytes, RowsOut: p.RowsOut,
		Estimated: p.Estimated,
		Cut:       p.Cut, Memory: b.SlotEngineBytes, OneThread: p.Task.OneThread, SQL: p.Task.Query,
		ComputedIn: p.Plan.ComputedIn,
		Stored:     p.Stored}
	if n.Table != nil {
		out.Table = n.Table.Name
	}
	if n.Out != nil {
		out.File = n.Out.URL
	}
	if f := p.Task.Output.File; f != nil {
		out.SQL = f.Copy.SQL()
	}
	out.SQL = sqltext.Format(out.SQL)
	for _, s := range p.Task.Setup {
		out.Setup = append(out.Setup, sqltext.Format(s))
	}
	if p.Task.Python != nil {
		out.Python = sqltext.Format(p.Task.Python.Source)
	}
	if join := p.Plan.Join; join != nil {
		out.Join = "every batch reads all of table " + n.Lookup.Index.Node.Table.Name
		if join.Buckets > 0 {
			out.Join = fmt.Sprintf("both tables meet in %s of the key", format.Counted(int64(join.Buckets),
				"bucket", "buckets"))
		}
	}
	if p.Problem != nil {
		out.Problem = p.Problem.Error()
	}
	return out
}

// gatesBefore says what a node waits for, and whom.
func gatesBefore(s *script.Script, n *script.Node) []string {
	var out []string
	for _, g := range s.Gates {
		if !slices.Contains(g.Guards, n) {
			continue
		}
		text := g.Name
		if len(g.By) > 0 {
			text += " by " + strings.Join(g.By, " or ")
		}
		if !g.Always {
			text += ", if a check of table " + g.Name + " fails"
		}
		if g.Timeout > 0 {
			text += fmt.Sprintf(", rejected after %s", format.Span(g.Timeout))
		}
		if len(g.Answers) > 0 {
			names := make([]string, len(g.Answers))
			for i, a := range g.Answers {
				names[i] = a.Name + " = " + a.Default
			}
			text += "; it asks for " + strings.Join(names, ", ")
		}
		out = append(out, text)
	}
	return out
}

// sourceNames lists the files or the tables that a node reads.
func sourceNames(n *script.Node) []string {
	out := []string{}
	for _, source := range n.Sources(nil) {
		if name := "table " + source.Table.Name; !slices.Contains(out, name) { // a check may name it again
			out = append(out, name)
		}
	}
	for _, r := range n.FileReaders() {
		for _, u := range r.URLs {
			out = append(out, address.Redact(u.URL))
		}
	}
	return out
}
