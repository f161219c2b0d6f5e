package pipeline

import (
	"context"
	"fmt"
	"path/filepath"

	"thalweg/internal/base/fault"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// BatchPlan is the SQL of a batch, and the plan by which DuckDB executes it.
type BatchPlan struct {
	engine.Statements
	Plan *engine.Step // of Statements.Planned; nil: the batch has no query
	// Names are how people know the files of this machine that the SQL names, each behind its path.
	Names []string
}

// ExplainBatch says what a batch of a run executes. What it reads is got ready for that, and not computed.
func (p *Pipeline) ExplainBatch(ctx context.Context, key state.BatchKey) (out BatchPlan, err error) {
	if p, err = p.versionFor(ctx, key.Node, asTraced); err != nil {
		return out, err
	}
	specs, _, err := p.cfg.Store.Specs(ctx, key.NodeKey, state.Page{From: int64(key.Batch), Limit: 1})
	if err != nil {
		return out, fmt.Errorf("read batch %d of %s: %w", key.Batch, key.Node, err)
	}
	if len(specs) == 0 || specs[0].Batch != key.Batch {
		return out, &fault.Error{Kind: fault.Script, Code: fault.NotFound,
			Message: fmt.Sprintf("node %s of run %d has no batch %d", key.Node, key.Run, key.Batch)}
	}
	x, err := p.gather(ctx, state.Claim{BatchKey: key, Spec: specs[0]})
	if err != nil {
		return out, err
	}
	defer x.cleanup()
	if x.node.Out != nil {
		x.batch.OutPath = filepath.Join(x.dir, "output")
	}
	task, err := p.planner.Task(x.node, x.in, x.plan, x.own, x.batch)
	if err != nil {
		return out, err
	}
	out.Statements = engine.StatementsOf(task)
	for key, path := range x.batch.Paths {
		out.Names = append(out.Names, path, filepath.Join(plan.PreviewParts, key))
	}
	out.Names = append(out.Names, x.batch.Scratch, plan.PreviewScratch, x.dir, plan.PreviewScratch)
	if out.Planned() == "" {
		return out, nil
	}
	step, err := engine.Explain(ctx, x.instance(), task)
	out.Plan = &step
	return out, err
}
