package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
	"thalweg/internal/store/state"
)

// ScriptName is an identity of a script (state.Run.Script) as people read it.
func ScriptName(identity string) string {
	if _, name, ok := strings.Cut(identity, " "); ok && name != "" {
		return name
	}
	return "without a path"
}

// told finds a table in the runs that the user named for reading tables from,
// whatever their script; told is false if none of them has it.
func (p *Pipeline) told(ctx context.Context, source *script.Node) (key state.NodeKey, told bool, err error) {
	for _, run := range p.cfg.From {
		node, err := p.writer(ctx, state.RunKey{Workspace: p.cfg.Run.Workspace, Run: run}, source.Table.Name)
		switch {
		case err != nil:
			return key, false, err
		case node == nil:
			continue
		case told:
			return key, false, &fault.Error{Kind: fault.Script,
				Message: fmt.Sprintf("runs %d and %d both have written table %s", key.Run, run, source.Table.Name),
				Hint:    "name one of them"}
		case node.Status == state.Invalidated:
			return key, false, Voided(ctx, p.cfg.Store, *node)
		case node.Status != state.Succeeded:
			f := &fault.Error{Kind: fault.Script,
				Message: fmt.Sprintf("table %s is to be read from run %d, but node %s there is %s",
					source.Table.Name, run, node.Name, node.Status),
				Hint: "finish that run ({{set resume}} {{set run=N}}), or name another one"}
			return key, false, p.mayCome(ctx, f, *node, node.Status)
		}
		key, told = node.NodeKey, true
	}
	return key, told, nil
}

// mayCome makes the failure to read the table of a node, which had a status when
// it was looked at, one that may pass: if the table is being done again by a run
// that is at work, or if that run came to another status meanwhile.
func (p *Pipeline) mayCome(ctx context.Context, f *fault.Error, node state.Node, seen state.Status) error {
	run, err := p.cfg.Store.Run(ctx, node.RunKey)
	if err != nil {
		return fmt.Errorf("read run %d: %w", node.Run, err)
	}
	passing := node.Generation > 0 && run.GoesOn()
	if !passing {
		now, err := p.writer(ctx, node.RunKey, node.Table)
		if err != nil {
			return err
		}
		passing = now != nil && now.Status != seen
	}
	if passing {
		f.Kind, f.Retryable = fault.Environment, true
	}
	return f
}

// writer is the node of a run that has been planned to write a table, or is to
// write it again; nil if there is none.
func (p *Pipeline) writer(ctx context.Context, run state.RunKey, table string) (*state.Node, error) {
	nodes, err := p.cfg.Store.Nodes(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("look for table %s in run %d: %w", table, run.Run, err)
	}
	briefs := make([]state.NodeBrief, len(nodes))
	for i, n := range nodes {
		briefs[i] = state.NodeBrief{Name: n.Name, Table: n.Table, Status: n.Status}
	}
	for i, n := range nodes {
		if (n.PlanDigest != "" || n.Generation > 0) && n.Table == table {
			nodes[i].Status = behindGate(briefs, briefs[i])
			return &nodes[i], nil
		}
	}
	return nil, nil
}

// noSource says that no run of this script has the table that a node reads,
// that the one which had it was declared invalid, or which other script's does:
// that one is not taken unasked.
func (p *Pipeline) noSource(ctx context.Context, source *script.Node, reader state.Node) error {
	f := &fault.Error{Kind: fault.Script,
		Message: fmt.Sprintf("it reads table %s, which no run of script %s in workspace %s has written",
			source.Table.Name, ScriptName(p.cfg.Identity), p.cfg.Run.Workspace),
		Hint: fmt.Sprintf("run node %s first, or name it in {{set start}}", source.Name)}
	runs, _, err := p.cfg.Store.Runs(ctx, p.cfg.Run.Workspace, state.Page{Limit: earlierRunsMax})
	if err != nil {
		return fmt.Errorf("look for a run of %s: %w", source.Name, err)
	}
	for _, r := range runs {
		if brief, _ := r.Brief(source.Name); brief.Status == state.Invalidated && p.cfg.Identify(r) == p.cfg.Identity {
			node, err := p.cfg.Store.Node(ctx, state.NodeKey{RunKey: r.RunKey, Node: source.Name})
			if err != nil {
				return fmt.Errorf("read node %s of run %d: %w", source.Name, r.Run, err)
			}
			return Voided(ctx, p.cfg.Store, node)
		}
		wrote := func(n state.NodeBrief) bool { return n.Table == source.Table.Name && n.Status == state.Succeeded }
		if p.cfg.Identify(r) != p.cfg.Identity && slices.ContainsFunc(r.Nodes, wrote) {
			f.Message += fmt.Sprintf("; run %d of script %s has", r.Run, ScriptName(p.cfg.Identify(r)))
			f.Hint += fmt.Sprintf("; {{set from=%d}} reads the other script's table", r.Run)
			break
		}
	}
	return f
}
