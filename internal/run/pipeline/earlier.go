package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/gate"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// What a dependency policy's rules see of a run and of a node in it.
// A run that is paused is under way to them: what it has not written will come.
var (
	policyRunStatus = map[state.Status]string{
		state.Running: "RunStart", state.Paused: "RunStart", state.Complete: "RunComplete", state.Failed: "RunComplete",
		state.Stopped: "RunStop",
	}
	policyNodeStatus = map[state.Status]string{
		state.Pending: "NodeBatchNone", state.Running: "NodeBatchStart", state.Paused: "NodeBatchStart",
		state.Waiting:   "NodeBatchStart",
		state.Succeeded: "NodeBatchSuccess", state.Failed: "NodeBatchFail", state.Stopped: "NodeBatchRunStopReceived",
	}
)

// policyStatus returns the statuses that a dependency policy's rules see of a candidate. A run that failed is
// over: nodes that it did not complete will not come, whether they failed, waited or were under way. So all
// of it is failed to the rules, also in the moment before the run knows.
func (c candidate) policyStatus() (run, node string) {
	run, node = policyRunStatus[c.run.Status], policyNodeStatus[c.node.Status]
	if c.node.Status == state.Failed && c.run.Status == state.Running {
		run = policyRunStatus[state.Failed]
	}
	if c.run.Status == state.Failed && c.node.Status != state.Succeeded {
		node = policyNodeStatus[state.Failed]
	}
	return run, node
}

// candidate is a run that contains the node whose table is wanted.
type candidate struct {
	run     state.Run
	node    state.NodeBrief
	current bool // the reader's own run
}

// source finds the node that wrote a table for a reader: in the runs that the user named, or as the reader's
// dependency policy decides.
func (p *Pipeline) source(ctx context.Context, source *script.Node, reader state.Node) (state.NodeKey, error) {
	policy := p.cfg.Script.Node(reader.Name).Policy
	own := slices.Contains(reader.Inputs, source.Name)
	if own && policy.BuiltIn() {
		return state.NodeKey{RunKey: p.cfg.Run, Node: source.Name}, nil
	}
	if reader.Plan != nil { // decided when the node was planned
		if np, err := plan.DecodeNodePlan(reader.Plan); err == nil {
			if from, ok := np.Sources[source.Table.Name]; ok {
				from.Node = cmp.Or(from.Node, source.Name)
				return from.NodeKey, nil
			}
		}
	}
	if !own {
		if key, told, err := p.told(ctx, source); told || err != nil {
			return key, err
		}
	}
	candidates, err := p.candidates(ctx, source, policy, own)
	if err != nil {
		return state.NodeKey{}, err
	}
	if len(candidates) == 0 {
		return state.NodeKey{}, p.noSource(ctx, source, reader)
	}
	chosen, cmd, err := p.applyPolicy(ctx, policy, candidates)
	if err != nil {
		return state.NodeKey{}, err
	}
	if cmd == "go" && chosen.node.Status == state.Succeeded {
		return state.NodeKey{RunKey: chosen.run.RunKey, Node: source.Name}, nil
	}
	said := "allows none of the runs that write it"
	if cmd != "" {
		said = fmt.Sprintf("says %s: run %d is %s and its node %s is %s", cmd, chosen.run.Run,
			chosen.run.Status, source.Name, chosen.node.Status)
	}
	hint := fmt.Sprintf("finish that run ({{set resume}} {{set run=N}}), or name %s in {{set start}} as well",
		source.Name)
	if !own {
		hint += ", or the run to read it from with {{set from=N}}"
	}
	f := &fault.Error{Kind: fault.Script, Hint: hint,
		Message: fmt.Sprintf("it reads table %s, but its dependency policy %s", source.Table.Name, said)}
	if cmd == "" || chosen.current {
		return state.NodeKey{}, f
	}
	node, err := p.cfg.Store.Node(ctx, state.NodeKey{RunKey: chosen.run.RunKey, Node: source.Name})
	if err != nil {
		return state.NodeKey{}, fmt.Errorf("read node %s of run %d: %w", source.Name, chosen.run.Run, err)
	}
	return state.NodeKey{}, p.mayCome(ctx, f, node, chosen.node.Status)
}

// candidates lists the script's runs that contain the node, its own among them
// if it does. Where the policy looks at that one first, and has a
// rule for it, the others are of no concern.
func (p *Pipeline) candidates(ctx context.Context, source *script.Node, policy *script.DependencyPolicy,
	own bool) ([]candidate, error) {
	var out []candidate
	if own {
		current := candidate{run: state.Run{RunKey: p.cfg.Run, Status: state.Running},
			node: state.NodeBrief{Status: state.Succeeded}, current: true}
		out = append(out, current)
		if first := policy.Order; len(first) > 0 && first[0].Field == "run_is_current" && first[0].Desc {
			if _, cmd, err := p.applyPolicy(ctx, policy, out); err != nil || cmd != "" {
				return out, err
			}
		}
	}
	runs, err := state.All(ctx, p.cfg.Store.Runs, p.cfg.Run.Workspace)
	if err != nil {
		return nil, fmt.Errorf("look for a run of %s: %w", source.Name, err)
	}
	for _, r := range slices.Backward(runs) { // the oldest first
		node, ok := r.Brief(source.Name)
		node.Status = behindGate(r.Nodes, node)
		if !ok || node.Status == state.Invalidated || r.RunKey == p.cfg.Run || p.cfg.Identify(r) != p.cfg.Identity {
			continue
		}
		out = append(out, candidate{run: r, node: node})
	}
	return out, nil
}

// behindGate is the status of a node to those who would read its table from
// another run: it is not there for them before the table's gate in its run, if
// there is one, has let it pass.
func behindGate(nodes []state.NodeBrief, writer state.NodeBrief) state.Status {
	i := slices.IndexFunc(nodes, func(n state.NodeBrief) bool {
		return writer.Table != "" &&
			n.Name == gate.Prefix+writer.Table
	})
	switch {
	case i < 0 || writer.Status != state.Succeeded:
		return writer.Status
	case nodes[i].Status == state.Pending || nodes[i].Status == state.Waiting:
		return state.Running
	}
	return nodes[i].Status
}

// applyPolicy tests the candidates, in the policy's order, against its rules
// in turn: the first that matches decides. DuckDB evaluates the expressions,
// as it does everywhere; most nodes of a run ask the same, so answers are kept.
func (p *Pipeline) applyPolicy(ctx context.Context, policy *script.DependencyPolicy,
	candidates []candidate) (chosen candidate, cmd string, err error) {
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
	spill, err := os.MkdirTemp(p.cfg.WorkDir, "policy-")
	if err != nil {
		return d, fmt.Errorf("make a directory for applying a dependency policy: %w", err)
	}
	in, err := engine.OpenInstance(ctx, engine.InstanceConfig{Threads: 1, SpillDir: spill})
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
		runStatus, nodeStatus := c.policyStatus()
		run, _ := script.PolicyConstant(runStatus)
		node, _ := script.PolicyConstant(nodeStatus)
		values[i] = fmt.Sprintf("(%d, CAST(%d AS BIGINT), %t, CAST(%d AS BIGINT), CAST(%d AS BIGINT))", i, c.run.Run,
			c.current, run, node)
	}
	var rules strings.Builder
	rules.WriteString(" WHEN false THEN -1")
	for i, r := range policy.Rules {
		fmt.Fprintf(&rules, " WHEN %s THEN %d",
			r.Cond.SQL(func(ref expr.Ref) string { return "nrs." + sqltext.Ident(ref.Field) }, ""), i)
	}
	types := map[string]expr.Type{"run_id": expr.Int, "run_is_current": expr.Bool, "run_status": expr.Int,
		"node_status": expr.Int}
	order := policy.Order.SortSQL(types, func(field string) string { return "nrs." + sqltext.Ident(field) })
	if order != "" {
		order += ", "
	}
	return fmt.Sprintf("SELECT nrs.nth, CASE%s ELSE -1 END FROM (VALUES %s) AS nrs(nth, run_id, run_is_current, "+
		"run_status, node_status) ORDER BY %snrs.nth",
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
			return &fault.Error{Kind: fault.Script, Place: fault.Place{File: f.Pos.File, Line: int64(f.Pos.Line),
				Column: f.Pos.Col, Field: f.Name},
				Message: fmt.Sprintf("field %s of table %s is not nullable now, but the table that run %d wrote may "+
					"have NULLs in it", f.Name, source.Table.Name, t.Run.Run),
				Hint: fmt.Sprintf("run node %s again with this script", source.Name)}
		}
		if stored[f.Name] != f.Type.String() {
			was := "has no such field"
			if stored[f.Name] != "" {
				was = "has it as " + stored[f.Name]
			}
			return &fault.Error{Kind: fault.Script, Place: fault.Place{File: f.Pos.File, Line: int64(f.Pos.Line),
				Column: f.Pos.Col, Field: f.Name},
				Message: fmt.Sprintf("field %s of table %s is %s now, but the table that run %d wrote %s", f.Name,
					source.Table.Name, f.Type, t.Run.Run, was),
				Hint: fmt.Sprintf("run node %s again with this script", source.Name)}
		}
	}
	return nil
}
