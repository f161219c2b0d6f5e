package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// Nodes are found by what their rows follow from through notes, one for each
// node that has computed them. Another note says of a node that a part of its
// table was found damaged: it is not taken over, until it has been done again.

// topicDamaged is of nodes with a damaged part; the data of a note is which of
// the node's results it was (identityOf).
const topicDamaged = "damaged"

// sameMax limits the nodes with the same rows that are looked at, the latest first. The notes of others are
// removed.
const sameMax = 20

// noteName names a node in a topic: names are in the order of runs.
func noteName(key state.NodeKey) string { return state.RunName(key.Run) + "/" + key.Node }

// noteSame makes a node that is about to complete one that findSame finds.
func (p *Pipeline) noteSame(ctx context.Context, n state.Node) error {
	if n.InputDigest == "" {
		return nil
	}
	note := state.Note{Topic: state.TopicSame + n.InputDigest, Name: noteName(n.NodeKey), Run: n.Run, Node: n.Node,
		Time: time.Now()}
	if err := p.cfg.Store.PutNote(ctx, n.Workspace, note); err != nil {
		return fmt.Errorf("note what the rows of %s follow from: %w", n.Name, err)
	}
	return nil
}

// findSame gives the latest node of the workspace that has computed the rows
// with this digest and that good accepts, with its plan; nil if there is none.
func (p *Pipeline) findSame(ctx context.Context, digest string, good func(context.Context, state.Node) (bool,
	error)) (*state.Node, error) {
	notes, err := state.AllNotes(ctx, p.cfg.Store, p.cfg.Run.Workspace, state.TopicSame+digest)
	if err != nil {
		return nil, err
	}
	slices.Reverse(notes)
	for i, note := range notes {
		key := state.NodeKey{RunKey: state.RunKey{Workspace: p.cfg.Run.Workspace, Run: note.Run}, Node: note.Node}
		n, err := p.cfg.Store.Node(ctx, key)
		gone := errors.Is(err, state.ErrNotFound)
		if err != nil && !gone {
			return nil, fmt.Errorf("read node %s of run %d: %w", key.Node, key.Run, err)
		}
		stale := gone || n.Status == state.Invalidated || n.InputDigest != digest || n.ReusedFrom != nil || i >= sameMax
		if stale {
			if err := p.cfg.Store.RemoveNote(ctx, key.Workspace, note); err != nil {
				return nil, fmt.Errorf("remove a note of run %d: %w", key.Run, err)
			}
			continue
		}
		if n.Status != state.Succeeded { // it is about to, or is done again
			continue
		}
		damaged, err := p.damaged(ctx, n)
		if err != nil {
			return nil, err
		}
		if damaged {
			continue
		}
		if ok, err := good(ctx, n); ok || err != nil {
			return &n, err
		}
	}
	return nil, nil
}

// damagedPart is the failure to read a part that is not what it was.
type damagedPart struct {
	table *plan.Table
	err   error
}

func (d *damagedPart) Error() string { return d.err.Error() }

func (d *damagedPart) Unwrap() error { return d.err }

// noteDamage keeps the next run from taking over what this one could not read.
func (p *Pipeline) noteDamage(ctx context.Context, err error) {
	var d *damagedPart
	if !errors.As(err, &d) {
		return
	}
	key := state.NodeKey{RunKey: d.table.Run, Node: d.table.Writer}
	note := state.Note{Topic: topicDamaged, Name: noteName(key), Run: key.Run, Node: key.Node,
		Data: []byte(d.table.Identity), Time: time.Now()}
	if err := p.cfg.Store.PutNote(ctx, key.Workspace, note); err != nil {
		p.cfg.Logger.Warn("that a part is damaged could not be noted: another run may take it over", "run",
			key.Run, "node", key.Node, "error", err)
	}
}

// damaged reports whether a part of what a node has written was found damaged.
func (p *Pipeline) damaged(ctx context.Context, n state.Node) (bool, error) {
	name := noteName(n.NodeKey)
	notes, err := p.cfg.Store.Notes(ctx, n.Workspace, topicDamaged, name[:len(name)-1], state.PageMax)
	if err != nil {
		return false, fmt.Errorf("look for damage in node %s of run %d: %w", n.Name, n.Run, err)
	}
	for _, note := range notes {
		if note.Name == name {
			return string(note.Data) == identityOf(n), nil
		}
	}
	return false, nil
}
