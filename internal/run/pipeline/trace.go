package pipeline

import (
	"context"
	"fmt"
	"os"
	"slices"
	"thalweg/internal/base/budget"

	"thalweg/internal/base/fault"
	"thalweg/internal/io/files"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// TracedNode is a node of a run as it was planned, for tracing its rows back to their inputs.
type TracedNode struct {
	State state.Node
	Node  *script.Node
	In    plan.Inputs
	Plan  plan.NodePlan
}

// asTraced stands for the epoch of nodes that are only looked at.
const asTraced = -1

// Run is the run whose content p is.
func (p *Pipeline) Run() state.RunKey { return p.cfg.Run }

// TracedNode finds a node and the tables that it has read.
func (p *Pipeline) TracedNode(ctx context.Context, name string) (t TracedNode, err error) {
	if p, err = p.versionFor(ctx, name, asTraced); err != nil {
		return t, err
	}
	if t.Node = p.cfg.Script.Node(name); t.Node == nil {
		return t, fault.New(fault.Bug, "the script of run %d has no node %s", p.cfg.Run.Run, name)
	}
	if t.State, err = p.cfg.Store.Node(ctx, state.NodeKey{RunKey: p.cfg.Run, Node: name}); err != nil {
		return t, fmt.Errorf("read node %s of run %d: %w", name, p.cfg.Run.Run, err)
	}
	if t.State.PlanDigest == "" {
		return t, &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("node %s of run %d has not been planned: it has no rows", name, p.cfg.Run.Run)}
	}
	if t.Plan, err = plan.DecodeNodePlan(t.State.Plan); err != nil {
		return t, err
	}
	t.In, err = p.inputs(ctx, t.Node, t.State)
	return t, err
}

// TracedBatch is a batch that was executed once more.
type TracedBatch struct {
	Path  string // Parquet: see plan.Planner.TraceTask; "": there are no rows
	Rows  int64
	Files []files.Slice   // that it reads
	Scans [][]files.Slice // of queries: by the files that they name
}

// Again says how a batch is executed once more.
type Again struct {
	Inside []string // names of tables that lead to an ephemeral one inside; none: the rows of its node
	Dir    string   // of the file
	Beside bool     // it has the memory of one slot, as other batches have; else that of all
}

// TraceBatch executes a batch once more, for what its rows are made of.
func (p *Pipeline) TraceBatch(ctx context.Context, key state.NodeKey, spec state.BatchSpec, how Again) (out TracedBatch,
	err error) {
	if p, err = p.versionFor(ctx, key.Node, asTraced); err != nil {
		return out, err
	}
	x, err := p.gather(ctx, state.Claim{BatchKey: state.BatchKey{NodeKey: key, Batch: spec.Batch}, Spec: spec})
	if err != nil {
		return out, err
	}
	defer x.cleanup()
	work, in, n, np := &x.batch.Work, x.in, x.node, x.plan
	for _, name := range how.Inside {
		t := in.Reader
		if !t.Ephemeral() || t.Node.Table.Name != name {
			t = in.Lookup
		}
		if !t.Ephemeral() || t.Node.Table.Name != name || work.Inner[name] == nil {
			return out, fault.New(fault.Bug, "batch %d of %s computes no table %s", spec.Batch, key.Node, name)
		}
		work, in, n, np = work.Inner[name], *t.Inner, t.Node, plan.NodePlan{Layout: t.Layout}
	}
	return x.trace(ctx, n, in, np, *work, "", how)
}

// TraceQuery executes a query once more, over whole tables: traced is it with
// the lists of query.Traced behind its columns.
func (p *Pipeline) TraceQuery(ctx context.Context, key state.NodeKey, spec state.BatchSpec, traced,
	dir string) (out TracedBatch, err error) {
	if p, err = p.versionFor(ctx, key.Node, asTraced); err != nil {
		return out, err
	}
	x, err := p.gather(ctx, state.Claim{BatchKey: state.BatchKey{NodeKey: key, Batch: spec.Batch}, Spec: spec})
	if err != nil {
		return out, err
	}
	defer x.cleanup()
	whole := plan.Work{Scans: x.batch.Work.Scans}
	var tables []*plan.Table
	for _, input := range x.node.Query.Inputs {
		tables = append(tables, x.in.Named[input.Creator.Table.Name])
	}
	paths, release, err := FetchTables(ctx, p.cfg.Parts, tables)
	if err != nil {
		return out, err
	}
	defer release()
	x.batch.Paths = paths
	out, err = x.trace(ctx, x.node, x.in, x.plan, whole, traced, Again{Dir: dir})
	out.Scans = whole.Scans
	return out, err
}

// trace executes work of a batch for what its rows are made of.
func (x *attempt) trace(ctx context.Context, n *script.Node, in plan.Inputs, np plan.NodePlan, work plan.Work,
	query string, how Again) (out TracedBatch, err error) {
	out.Files = slices.Concat(work.FileLists()...)
	if err := files.Unchanged(out.Files); err != nil {
		return out, err
	}
	b := x.batch
	b.Work, b.StageDir, b.Traced = work, how.Dir, query
	b.Stage = func(context.Context) (string, error) {
		f, err := os.CreateTemp(how.Dir, "rows-*.parquet")
		if err != nil {
			return "", fmt.Errorf("make a file for traced rows: %w", err)
		}
		return f.Name(), f.Close()
	}
	task, err := x.p.planner.TraceTask(n, in, np, b)
	if err != nil {
		return out, err
	}
	share := budget.AllSlots
	if how.Beside {
		share = budget.OneSlot
	}
	res, _, err := x.p.executeWith(ctx, x, task, share)
	if err != nil {
		return out, err
	}
	for _, w := range res.Written {
		out.Path, out.Rows = w.Path, w.Rows
	}
	return out, nil
}
