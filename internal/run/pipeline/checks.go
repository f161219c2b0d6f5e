package pipeline

import (
	"context"
	"fmt"
	"slices"

	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// earlierRunsMax limits the runs that are searched for one to compare with.
const earlierRunsMax = 1_000

// prepareChecks gathers what the checks of the node's rows need to know.
func (x *attempt) prepareChecks(ctx context.Context) (err error) {
	if x.node.Table != nil {
		if x.own, err = ReadTable(ctx, x.p.cfg.Store, x.claim.NodeKey); err != nil {
			return err
		}
	}
	if share := x.batch.Work.Share; share != nil && !share.Looks() {
		found, err := state.SideParts(ctx, x.p.cfg.Store, x.claim.NodeKey)
		if err != nil {
			return fmt.Errorf("read what the checks of %s found: %w", x.node.Name, err)
		}
		x.batch.Work.Found = slices.DeleteFunc(found, func(p state.Part) bool { return p.Side != state.SideFound })
	}
	run, err := x.p.cfg.Store.Run(ctx, x.claim.RunKey)
	if err != nil {
		return fmt.Errorf("read run %d: %w", x.claim.Run, err)
	}
	x.batch.Checks = plan.CheckContext{Run: run.RunKey, Created: run.Created,
		Report: func(found []state.CheckResult) { x.checks = found }}
	if !comparesRuns(x.node) {
		return nil
	}
	same := func(r state.Run) bool { return x.p.cfg.Identify(r) == x.p.cfg.Identity }
	x.batch.Checks.Measured, err = MeasuredBefore(ctx, x.p.cfg.Store, x.claim.NodeKey, same)
	return err
}

// lookAgain executes a batch that checks with all rows at hand.
func (x *attempt) lookAgain(ctx context.Context) (engine.Result, error) {
	x.letGo()
	x.batch.Work.Again = true
	done := during(&x.strain.measured.read)
	err := x.fetch(ctx)
	if done(); err != nil {
		return engine.Result{}, err
	}
	task, err := x.p.planner.Task(x.node, x.in, x.plan, x.own, x.batch)
	if err != nil {
		return engine.Result{}, err
	}
	return x.p.execute(ctx, x, task)
}

func comparesRuns(n *script.Node) bool {
	for _, c := range n.Checks {
		if c.Previous() {
			return true
		}
	}
	return false
}

// MeasuredBefore returns the measurements of a node's checks, by name, in an earlier run. That is the latest
// complete run before key's for which same returns true.
func MeasuredBefore(ctx context.Context, store state.Store, key state.NodeKey,
	same func(state.Run) bool) (map[string]string, error) {
	runs, _, err := store.Runs(ctx, key.Workspace, state.Page{From: key.Run, Limit: earlierRunsMax})
	if err != nil {
		return nil, fmt.Errorf("look for the run before run %d: %w", key.Run, err)
	}
	for _, r := range runs {
		if n, ok := r.Brief(key.Node); ok && n.Status == state.Succeeded && r.Status == state.Complete && same(r) {
			return measuredIn(ctx, store, state.NodeKey{RunKey: r.RunKey, Node: key.Node})
		}
	}
	return nil, nil
}

func measuredIn(ctx context.Context, store state.Store, key state.NodeKey) (map[string]string, error) {
	results, err := state.All(ctx, store.Checks, key)
	if err != nil {
		return nil, fmt.Errorf("read the checks of %s in run %d: %w", key.Node, key.Run, err)
	}
	out := map[string]string{}
	for _, r := range results {
		if r.Measured != "" {
			out[r.Name] = r.Measured
		}
	}
	return out, nil
}
