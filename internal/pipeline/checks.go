package pipeline

import (
	"context"
	"errors"
	"fmt"

	"thalweg/internal/plan"
	"thalweg/internal/script"
	"thalweg/internal/state"
)

// earlierRunsMax is how many runs are searched for one to compare with.
const earlierRunsMax = 1_000

// prepareChecks gathers what the checks of the node's rows need to know.
func (x *attempt) prepareChecks(ctx context.Context) (err error) {
	if x.node.Table != nil {
		if x.own, err = ReadTable(ctx, x.p.cfg.Store, x.claim.NodeKey); err != nil {
			return err
		}
	}
	run, err := x.p.cfg.Store.Run(ctx, x.claim.RunKey)
	if err != nil {
		return fmt.Errorf("read run %d: %w", x.claim.Run, err)
	}
	x.batch.Checks = plan.CheckContext{Run: run.RunKey, Created: run.Created, Report: func(found []state.CheckResult) { x.checks = found }}
	if !comparesRuns(x.node) {
		return nil
	}
	x.batch.Checks.Measured, err = x.p.measuredBefore(ctx, x.claim.NodeKey)
	return err
}

func comparesRuns(n *script.Node) bool {
	for _, c := range n.Checks {
		if c.Previous() {
			return true
		}
	}
	return false
}

// measuredBefore is what the checks of a node measured in the latest complete
// run of the script before this one that has the node, by the check's name.
func (p *Pipeline) measuredBefore(ctx context.Context, key state.NodeKey) (map[string]string, error) {
	runs, err := p.cfg.Store.Runs(ctx, key.Workspace)
	if err != nil {
		return nil, fmt.Errorf("look for the run before run %d: %w", key.Run, err)
	}
	runs = runs[max(len(runs)-earlierRunsMax, 0):]
	for i := len(runs) - 1; i >= 0; i-- {
		r := runs[i]
		if r.Run >= key.Run || r.Status != state.Complete || p.cfg.Identify(r) != p.cfg.Identity {
			continue
		}
		_, err := p.cfg.Store.Node(ctx, state.NodeKey{RunKey: r.RunKey, Node: key.Node})
		if errors.Is(err, state.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look for the run before run %d: %w", key.Run, err)
		}
		return p.measuredIn(ctx, state.NodeKey{RunKey: r.RunKey, Node: key.Node})
	}
	return nil, nil
}

func (p *Pipeline) measuredIn(ctx context.Context, key state.NodeKey) (map[string]string, error) {
	results, err := p.cfg.Store.Checks(ctx, key.RunKey)
	if err != nil {
		return nil, fmt.Errorf("read the checks of run %d: %w", key.Run, err)
	}
	out := map[string]string{}
	for _, r := range results {
		if r.Node == key.Node && r.Measured != "" {
			out[r.Name] = r.Measured
		}
	}
	return out, nil
}
