package pipeline

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"thalweg/internal/engine"
	"thalweg/internal/expr"
	"thalweg/internal/fault"
	"thalweg/internal/plan"
	"thalweg/internal/script"
	"thalweg/internal/sqltext"
	"thalweg/internal/state"
)

// What a dependency policy's rules see of a run and of a node in it.
var (
	policyRunStatus = map[state.Status]string{
		state.Running: "RunStart", state.Complete: "RunComplete", state.Failed: "RunComplete", state.Stopped: "RunStop",
	}
	policyNodeStatus = map[state.Status]string{
		state.Pending: "NodeBatchNone", state.Running: "NodeBatchStart", state.Succeeded: "NodeBatchSuccess",
		state.Failed: "NodeBatchFail", state.Stopped: "NodeBatchRunStopReceived",
	}
)

// candidate is a run that contains the node whose table is wanted.
type candidate struct {
	run     state.Run
	node    state.Node
	current bool // the reader's own run
}

// sourceRun is the run whose table a node reads: what the node's dependency
// policy says of the runs that the source is part of. The source has
// succeeded by now if it is part of the reader's own run.
func (p *Pipeline) sourceRun(ctx context.Context, source *script.Node, reader state.Node) (state.RunKey, error) {
	policy := p.cfg.Script.Node(reader.Name).Policy
	own := contains(reader.Inputs, source.Name)
	if own && policy.BuiltIn() {
		return p.cfg.Run, nil
	}
	if reader.Plan != nil { // decided when the node was planned
		if np, err := plan.DecodeNodePlan(reader.Plan); err == nil {
			if key, ok := np.Sources[source.Table.Name]; ok {
				return key, nil
			}
		}
	}
	candidates, err := p.candidates(ctx, source, policy, own)
	if err != nil {
		return state.RunKey{}, err
	}
	if len(candidates) == 0 {
		return state.RunKey{}, &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("node %s reads table %s, which no run in workspace %s has written", reader.Name, source.Table.Name, p.cfg.Run.Workspace),
			Hint:    fmt.Sprintf("run node %s first, or name it in --start", source.Name)}
	}
	chosen, cmd, err := p.applyPolicy(ctx, policy, candidates)
	if err != nil {
		return state.RunKey{}, err
	}
	if cmd == "go" && chosen.node.Status == state.Succeeded {
		return chosen.run.RunKey, nil
	}
	said := "allows none of the runs that write it"
	if cmd != "" {
		said = fmt.Sprintf("says %s: run %d is %s and its node %s is %s", cmd, chosen.run.Run, chosen.run.Status, source.Name, chosen.node.Status)
	}
	return state.RunKey{}, &fault.Error{Kind: fault.Script,
		Message: fmt.Sprintf("node %s reads table %s, but its dependency policy %s", reader.Name, source.Table.Name, said),
		Hint:    fmt.Sprintf("finish that run (--resume --run N), or name %s in --start as well", source.Name)}
}

// candidates lists the runs of the workspace that contain the node, its own
// among them if it does. Where the policy looks at that one first, and has a
// rule for it, the others are of no concern.
func (p *Pipeline) candidates(ctx context.Context, source *script.Node, policy *script.DependencyPolicy, own bool) ([]candidate, error) {
	var out []candidate
	if own {
		current := candidate{run: state.Run{RunKey: p.cfg.Run, Status: state.Running}, node: state.Node{Status: state.Succeeded}, current: true}
		out = append(out, current)
		if first := policy.Order; len(first) > 0 && first[0].Field == "run_is_current" && first[0].Desc {
			if _, cmd, err := p.applyPolicy(ctx, policy, out); err != nil || cmd != "" {
				return out, err
			}
		}
	}
	runs, err := p.cfg.Store.Runs(ctx, p.cfg.Run.Workspace)
	if err != nil {
		return nil, fmt.Errorf("look for a run of %s: %w", source.Name, err)
	}
	for _, r := range runs {
		if r.RunKey == p.cfg.Run {
			continue
		}
		node, err := p.cfg.Store.Node(ctx, state.NodeKey{RunKey: r.RunKey, Node: source.Name})
		if errors.Is(err, state.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look for a run of %s: %w", source.Name, err)
		}
		out = append(out, candidate{run: r, node: node})
	}
	return out, nil
}

// applyPolicy tests the candidates, in the policy's order, against its rules
// in turn: the first that matches decides. DuckDB evaluates the expressions,
// as it does everywhere; most nodes of a run ask the same, so answers are kept.
func (p *Pipeline) applyPolicy(ctx context.Context, policy *script.DependencyPolicy, candidates []candidate) (chosen candidate, cmd string, err error) {
	query := policySQL(policy, candidates)
	p.mu.Lock()
	found, known := p.policies[query]
	p.mu.Unlock()
	if !known {
		if found, err = p.askPolicy(ctx, query); err != nil {
			return chosen, "", fmt.Errorf("apply dependency policy %s: %w", policy.Name, err)
		}
		p.mu.Lock()
		p.policies[query] = found
		p.mu.Unlock()
	}
	if found.rule < 0 {
		return chosen, "", nil
	}
	return candidates[found.candidate], policy.Rules[found.rule].Cmd, nil
}

// decision is the candidate that is taken, and the rule for it; -1 for none.
type decision struct{ candidate, rule int }

func (p *Pipeline) askPolicy(ctx context.Context, query string) (d decision, err error) {
	d.rule = -1
	in, err := engine.OpenInstance(ctx, engine.InstanceConfig{Threads: 1, SpillDir: filepath.Join(p.cfg.WorkDir, "policy")})
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	rows, err := in.Query(ctx, query)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := rows.Scan(&d.candidate, &d.rule); err != nil || d.rule >= 0 {
			return d, err
		}
	}
	return d, rows.Err()
}

// policySQL gives, in the policy's order, each candidate's index and that of
// the first rule that it matches, -1 for none.
func policySQL(policy *script.DependencyPolicy, candidates []candidate) string {
	values := make([]string, len(candidates))
	for i, c := range candidates {
		run, _ := script.PolicyConstant(policyRunStatus[c.run.Status])
		node, _ := script.PolicyConstant(policyNodeStatus[c.node.Status])
		values[i] = fmt.Sprintf("(%d, CAST(%d AS BIGINT), %t, CAST(%d AS BIGINT), CAST(%d AS BIGINT))", i, c.run.Run, c.current, run, node)
	}
	var rules strings.Builder
	rules.WriteString(" WHEN false THEN -1")
	for i, r := range policy.Rules {
		fmt.Fprintf(&rules, " WHEN %s THEN %d", r.Cond.SQL(func(ref expr.Ref) string { return "nrs." + sqltext.Ident(ref.Field) }, ""), i)
	}
	types := map[string]expr.Type{"run_id": expr.Int, "run_is_current": expr.Bool, "run_status": expr.Int, "node_status": expr.Int}
	order := policy.Order.SortSQL(types, func(field string) string { return "nrs." + sqltext.Ident(field) })
	if order != "" {
		order += ", "
	}
	return fmt.Sprintf("SELECT nrs.nth, CASE%s ELSE -1 END FROM (VALUES %s) AS nrs(nth, run_id, run_is_current, run_status, node_status) ORDER BY %snrs.nth",
		rules.String(), strings.Join(values, ", "), order)
}

// fits checks that a table of an earlier run has what the script says of it now.
func fits(t *plan.Table, source *script.Node) error {
	stored := map[string]string{}
	nullable := map[string]bool{}
	for _, c := range t.Layout.Columns {
		stored[c.Name], nullable[c.Name] = c.Type, c.Nullable
	}
	for _, f := range source.Table.Fields {
		if nullable[f.Name] && !f.Nullable {
			return &fault.Error{Kind: fault.Script, Place: fault.Place{File: f.Pos.File, Line: int64(f.Pos.Line), Column: f.Pos.Col, Field: f.Name},
				Message: fmt.Sprintf("field %s of table %s is not nullable now, but the table that run %d wrote may have NULLs in it", f.Name, source.Table.Name, t.Run.Run),
				Hint:    fmt.Sprintf("run node %s again with this script", source.Name)}
		}
		if stored[f.Name] != f.Type.String() {
			was := "has no such field"
			if stored[f.Name] != "" {
				was = "has it as " + stored[f.Name]
			}
			return &fault.Error{Kind: fault.Script, Place: fault.Place{File: f.Pos.File, Line: int64(f.Pos.Line), Column: f.Pos.Col, Field: f.Name},
				Message: fmt.Sprintf("field %s of table %s is %s now, but the table that run %d wrote %s", f.Name, source.Table.Name, f.Type, t.Run.Run, was),
				Hint:    fmt.Sprintf("run node %s again with this script", source.Name)}
		}
	}
	return nil
}
