package orders

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
)

// Invalidation lists the nodes that become unreadable when a run, or nodes of it, are declared invalid.
type Invalidation struct {
	Run    state.Run
	Whole  bool         // all of the run
	Nodes  []string     // that have rows; with what was computed from those that were named
	Lost   []state.Node // those nodes
	Origin []state.Node
}

// Invalidate makes what a run has written unreadable: nodes none: all of it;
// else what those have, and in the same run all that was computed from them.
func Invalidate(ctx context.Context, s state.Store, key state.RunKey, nodes []string, by state.Mark) (inv Invalidation,
	err error) {
	err = state.Decide(ctx, s, key, by.OrderToken(), by.Time, func(run state.Run) (state.Command, error) {
		o := state.Command{Kind: state.CommandInvalidate, Mark: by}
		if inv, err = Invalidates(ctx, s, run, nodes); err != nil || inv.Whole {
			return o, err
		}
		for _, n := range inv.Nodes {
			o.Nodes = append(o.Nodes, state.CommandNode{Node: n})
		}
		return o, nil
	})
	return inv, err
}

// Invalidates finds what Invalidate would cover.
func Invalidates(ctx context.Context, s state.Store, run state.Run, nodes []string) (inv Invalidation, err error) {
	inv = Invalidation{Run: run, Whole: len(nodes) == 0}
	switch {
	case !run.Status.Terminal():
		return inv, &fault.Error{Kind: fault.Script, Code: fault.Conflict,
			Message: fmt.Sprintf("run %d is %s", run.Run, run.Status),
			Hint:    "stop it first: " + run.Do("stop").String()}
	case run.Dropped != nil:
		return inv, &fault.Error{Kind: fault.Script, Code: fault.Conflict,
			Message: fmt.Sprintf("run %d was dropped: nobody reads it any more", run.Run)}
	}
	all, err := s.Nodes(ctx, run.RunKey)
	if err != nil {
		return inv, fmt.Errorf("read the nodes of run %d: %w", run.Run, err)
	}
	c := closer{store: s, run: run, nodes: all, redo: map[string]*state.CommandNode{}, why: map[string]RedoStep{}}
	for _, name := range nodes {
		n, err := c.find(name)
		if err != nil {
			return inv, err
		}
		c.redo[n.Name] = &state.CommandNode{Node: n.Name, Replan: true}
	}
	c.readers()
	for _, n := range all {
		if !inv.Whole && c.redo[n.Name] == nil || n.PlanDigest == "" {
			continue
		}
		inv.Nodes, inv.Lost = append(inv.Nodes, n.Name), append(inv.Lost, n)
		if n.ReusedFrom != nil {
			inv.Origin = append(inv.Origin, n)
		}
	}
	return inv, nil
}

// Touched is a node of another run that has rows made of what is invalid.
type Touched struct {
	state.NodeKey
	Of    state.NodeKey `json:"of"`         // what it has read, or taken over
	Taken bool          `json:"taken_over"` // it has no rows of its own: nobody reads it either
}

// topicReads is of nodes that have read, or taken over, a table of another run:
// followed by that run's name and the node that wrote it.
const topicReads = "reads/"

func topicOf(of state.NodeKey) string { return topicReads + state.RunName(of.Run) + "/" + of.Node }

// NoteReads notes that a node is about to be planned to read, or to take over,
// what nodes of other runs have written. It is called before the plan is made
// true: who invalidates one of them finds either the note, or no reader that
// could commit. ErrDropping if somebody is about to drop one of them: who can do
// without it does.
func NoteReads(ctx context.Context, s state.Store, reader state.NodeKey, of []state.NodeKey, now time.Time) error {
	for _, one := range of {
		note := state.Note{Topic: topicOf(one), Name: state.RunName(reader.Run) + "/" + reader.Node, Run: reader.Run,
			Node: reader.Node, Time: now}
		if err := s.PutNote(ctx, reader.Workspace, note); err != nil {
			return fmt.Errorf("note that node %s reads node %s of run %d: %w", reader.Node, one.Node, one.Run, err)
		}
	}
	for _, one := range of {
		if err := dropping(ctx, s, one.RunKey, now); err != nil {
			return err
		}
	}
	return nil
}

// readers lists the nodes of other runs that were planned to read a node's
// table. A note of one that is gone, or has no plan now, says nothing.
func readers(ctx context.Context, s state.Store, of state.NodeKey) ([]Touched, error) {
	notes, err := state.AllNotes(ctx, s, of.Workspace, topicOf(of))
	if err != nil {
		return nil, err
	}
	var out []Touched
	for _, note := range notes {
		key := state.NodeKey{RunKey: state.RunKey{Workspace: of.Workspace, Run: note.Run}, Node: note.Node}
		n, err := s.Node(ctx, key)
		switch {
		case errors.Is(err, state.ErrNotFound):
		case err != nil:
			return nil, fmt.Errorf("read node %s of run %d: %w", key.Node, key.Run, err)
		case n.Kind == state.KindGate: // it shows, and makes nothing
		case n.PlanDigest != "" && n.Status != state.Invalidated:
			out = append(out, Touched{NodeKey: key, Of: of, Taken: n.ReusedFrom != nil && *n.ReusedFrom == of})
		}
	}
	return out, nil
}

// Reaches lists what other runs have made of tables, themselves or through
// others, in the order in which it was found.
func Reaches(ctx context.Context, s state.Store, key state.RunKey, nodes []string) ([]Touched, error) {
	var out []Touched
	seen := map[state.NodeKey]bool{}
	var queue []state.NodeKey
	for _, n := range nodes {
		queue = append(queue, state.NodeKey{RunKey: key, Node: n})
	}
	for _, q := range queue {
		seen[q] = true
	}
	for len(queue) > 0 {
		of := queue[0]
		queue = queue[1:]
		found, err := readers(ctx, s, of)
		if err != nil {
			return nil, err
		}
		if of.RunKey != key { // what was made of it in its own run
			own, err := downstream(ctx, s, of)
			if err != nil {
				return nil, err
			}
			found = append(found, own...)
		}
		for _, t := range found {
			if !seen[t.NodeKey] {
				seen[t.NodeKey] = true
				out, queue = append(out, t), append(queue, t.NodeKey)
			}
		}
	}
	return out, nil
}

// downstream are the planned nodes of a node's own run that read it.
func downstream(ctx context.Context, s state.Store, of state.NodeKey) ([]Touched, error) {
	nodes, err := s.Nodes(ctx, of.RunKey)
	if err != nil {
		return nil, fmt.Errorf("read the nodes of run %d: %w", of.Run, err)
	}
	var out []Touched
	for _, n := range nodes {
		if n.PlanDigest != "" && n.Kind != state.KindGate && slices.Contains(n.Inputs, of.Node) {
			out = append(out, Touched{NodeKey: n.NodeKey, Of: of, Taken: n.ReusedFrom != nil})
		}
	}
	return out, nil
}
