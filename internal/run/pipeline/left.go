package pipeline

import (
	"context"
	"errors"
	"fmt"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// Left finds what a run has left of the tables of a script, which may have changed since.
type Left struct {
	Store state.Store
	Run   state.RunKey
}

// Checked gives the tables that a node's checks look at: its own, and what they, or its
// files, are made of. Those that the run read of other runs are among them.
func (l Left) Checked(ctx context.Context, n *script.Node) (own *plan.Table, in plan.Inputs, err error) {
	if n.Table != nil {
		if own, err = l.table(ctx, n, n); err != nil {
			return nil, in, err
		}
	} else if n.Reader != nil {
		var read []*plan.Table
		for _, source := range n.Reader.Creators {
			t, err := l.table(ctx, source, n)
			if err != nil {
				return nil, in, err
			}
			read = append(read, t)
		}
		in.Reader = plan.Together(n.Reader.Fields(), read)
	}
	in.Named = map[string]*plan.Table{}
	for _, target := range n.CheckedTables() {
		if in.Named[target.Table.Name], err = l.table(ctx, target, n); err != nil {
			return nil, in, err
		}
	}
	return own, in, nil
}

// NotLeftError says that a run has not left a table that is wanted of it.
type NotLeftError struct {
	Table string
	err   *fault.Error
}

// Error implements error.
func (e *NotLeftError) Error() string { return e.err.Error() }

// Unwrap gives the failure as people are told it.
func (e *NotLeftError) Unwrap() error { return e.err }

// table is the table that a node of the script writes, as the run has it for a reader.
func (l Left) table(ctx context.Context, source, reader *script.Node) (*plan.Table, error) {
	writer, err := l.writer(ctx, source, reader)
	if err != nil {
		return nil, err
	}
	node, err := holder(ctx, l.Store, writer)
	if err != nil {
		return nil, err
	}
	if node.Status == state.Invalidated {
		return nil, Voided(ctx, l.Store, node)
	}
	if node.Status != state.Succeeded {
		whole, err := l.whole(ctx, node)
		if err != nil {
			return nil, err
		}
		if !whole {
			return nil, l.notLeft(source, fmt.Sprintf("run %d has not written all of table %s: its node %s is %s",
				node.Run, source.Table.Name, node.Name, node.Status))
		}
	}
	t, err := readTable(ctx, l.Store, node)
	if err != nil {
		return nil, err
	}
	if t.ComputedIn != "" {
		return nil, l.notLeft(source, fmt.Sprintf("run %d did not store table %s: it was computed in node %s",
			node.Run, source.Table.Name, t.ComputedIn))
	}
	t.Node = source
	return t, fits(t, source)
}

// writer is the node that wrote a table: of the run, or of the run from which it was read there.
func (l Left) writer(ctx context.Context, source, reader *script.Node) (state.Node, error) {
	nodes, err := l.Store.Nodes(ctx, l.Run)
	if err != nil {
		return state.Node{}, fmt.Errorf("read the nodes of run %d: %w", l.Run.Run, err)
	}
	for _, n := range nodes {
		if n.Table == source.Table.Name {
			return l.Store.Node(ctx, n.NodeKey)
		}
	}
	node, err := l.Store.Node(ctx, state.NodeKey{RunKey: l.Run, Node: reader.Name})
	switch {
	case errors.Is(err, state.ErrNotFound):
	case err != nil:
		return state.Node{}, fmt.Errorf("read node %s of run %d: %w", reader.Name, l.Run.Run, err)
	case node.Plan != nil:
		np, err := plan.DecodeNodePlan(node.Plan)
		if err != nil {
			return state.Node{}, err
		}
		if from, ok := np.Sources[source.Table.Name]; ok && from.Node != "" {
			return l.Store.Node(ctx, from.NodeKey)
		}
	}
	return state.Node{}, l.notLeft(source, fmt.Sprintf("run %d has no table %s", l.Run.Run, source.Table.Name))
}

func (l Left) notLeft(source *script.Node, message string) error {
	return &NotLeftError{Table: source.Table.Name, err: &fault.Error{Kind: fault.Script, Message: message}}
}

// whole reports whether a node that did not succeed has written all of its rows: it failed
// for what a look at them found.
func (l Left) whole(ctx context.Context, node state.Node) (bool, error) {
	if node.BatchesTotal == 0 {
		return false, nil
	}
	batches, err := state.All(ctx, l.Store.Batches, node.NodeKey)
	if err != nil {
		return false, fmt.Errorf("read the batches of %s: %w", node.Name, err)
	}
	for _, b := range batches {
		if b.Status == state.Succeeded {
			continue
		}
		whole, _, err := l.Store.Batch(ctx, b.BatchKey) // lists are without the work
		if err != nil {
			return false, fmt.Errorf("read batch %d of %s: %w", b.BatchKey.Batch, node.Name, err)
		}
		var w plan.Work
		if err := w.Decode(whole.BatchSpec); err != nil {
			return false, err
		}
		if !w.Check && !w.BadCaps {
			return false, nil
		}
	}
	return true, nil
}
