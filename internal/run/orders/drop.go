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

// Drop describes the loss if a run is dropped, and who has read the run.
type Drop struct {
	Run   state.Run
	Nodes []string  // that have results of their own
	Bytes int64     // that they wrote
	Made  []Touched // what other runs have made of its tables, and keep
}

// Drops finds what dropping runs means. It refuses those that are not over, and
// those whose rows a run has that is not dropped with them: nobody could read
// that one any more. A run that is at work and may be about to read one counts
// as one that does.
func Drops(ctx context.Context, s state.Store, keys []state.RunKey) ([]Drop, error) {
	var all []Drop
	for _, key := range keys {
		d, err := MayDrop(ctx, s, key, keys)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// MayDrop finds what dropping a run together with others means, as Drops does.
func MayDrop(ctx context.Context, s state.Store, key state.RunKey, with []state.RunKey) (Drop, error) {
	run, err := s.Run(ctx, key)
	if err != nil {
		return Drop{}, fmt.Errorf("read run %d: %w", key.Run, err)
	}
	return drops(ctx, s, run, with)
}

// DropRuns drops runs, the latest first: those that have others' rows go before
// those others. All are looked at before the first is dropped, and each once
// more as it is when its order begins.
func DropRuns(ctx context.Context, s state.Store, keys []state.RunKey, by state.Mark) ([]Drop, error) {
	keys = slices.Clone(keys)
	slices.SortFunc(keys, func(a, b state.RunKey) int { return int(b.Run - a.Run) })
	keys = slices.Compact(keys)
	all, err := Drops(ctx, s, keys)
	if err != nil {
		return nil, err
	}
	for i, key := range keys {
		if all[i], err = dropRun(ctx, s, key, keys, by); err != nil {
			return all[:i], err
		}
	}
	return all, nil
}

// ErrDropping says that somebody is about to drop a run.
var ErrDropping = errors.New("the run is about to be dropped")

const (
	// topicDropping is of runs that somebody is about to drop.
	topicDropping = "dropping"
	// droppingFor is the time for which such a note is valid: its writer may have died.
	droppingFor = time.Minute
)

// dropRun drops a run. That it is about to is noted before it looks for readers;
// who is about to take rows over notes that first, and then looks whether the
// run is about to be dropped: one of the two sees the other.
func dropRun(ctx context.Context, s state.Store, key state.RunKey, with []state.RunKey, by state.Mark) (d Drop,
	err error) {
	note := state.Note{Topic: topicDropping, Name: state.RunName(key.Run), Run: key.Run, Time: by.Time}
	if err := s.PutNote(ctx, key.Workspace, note); err != nil {
		return d, fmt.Errorf("note that run %d is about to be dropped: %w", key.Run, err)
	}
	err = state.Decide(ctx, s, key, by.OrderToken(), by.Time, func(run state.Run) (state.Command, error) {
		var err error
		d, err = drops(ctx, s, run, with)
		return state.Command{Kind: state.CommandDrop, Mark: by}, err
	})
	if noteErr := s.RemoveNote(ctx, key.Workspace, note); err == nil && noteErr != nil {
		err = fmt.Errorf("remove the note that run %d is about to be dropped: %w", key.Run, noteErr)
	}
	return d, err
}

// dropping is ErrDropping if somebody is about to drop a run.
func dropping(ctx context.Context, s state.Store, key state.RunKey, now time.Time) error {
	notes, err := s.Notes(ctx, key.Workspace, topicDropping, state.RunName(key.Run-1), 1)
	if err != nil {
		return fmt.Errorf("look whether run %d is about to be dropped: %w", key.Run, err)
	}
	if len(notes) == 1 && notes[0].Run == key.Run && now.Sub(notes[0].Time) < droppingFor {
		return fmt.Errorf("run %d: %w", key.Run, ErrDropping)
	}
	return nil
}

func drops(ctx context.Context, s state.Store, run state.Run, with []state.RunKey) (Drop, error) {
	d := Drop{Run: run}
	switch {
	case run.Dropped != nil:
		return d, &fault.Error{Kind: fault.Script, Code: fault.Conflict,
			Message: fmt.Sprintf("run %d was dropped by %s: %s", run.Run, run.Dropped.Actor, run.Dropped.Reason),
			Hint:    run.Beside("gc").String() + " removes what it has written"}
	case !run.Status.Terminal() || run.GoesOn():
		return d, &fault.Error{Kind: fault.Script, Code: fault.Conflict,
			Message: fmt.Sprintf("run %d is %s", run.Run, run.Status),
			Hint:    "stop it first: " + run.Do("stop").String()}
	}
	nodes, err := s.Nodes(ctx, run.RunKey)
	if err != nil {
		return d, fmt.Errorf("read the nodes of run %d: %w", run.Run, err)
	}
	for _, n := range nodes {
		if n.ReusedFrom == nil && n.PlanDigest != "" {
			d.Nodes, d.Bytes = append(d.Nodes, n.Name), d.Bytes+n.BytesOut
		}
		if err := d.read(ctx, s, n.NodeKey, with); err != nil {
			return d, err
		}
	}
	return d, nil
}

// read finds who has read a node that is to be dropped.
func (d *Drop) read(ctx context.Context, s state.Store, of state.NodeKey, with []state.RunKey) error {
	notes, err := state.AllNotes(ctx, s, of.Workspace, topicOf(of))
	if err != nil {
		return err
	}
	for _, note := range notes {
		by := state.NodeKey{RunKey: state.RunKey{Workspace: of.Workspace, Run: note.Run}, Node: note.Node}
		if slices.Contains(with, by.RunKey) {
			continue
		}
		run, err := s.Run(ctx, by.RunKey)
		if errors.Is(err, state.ErrNotFound) || err == nil && run.Dropped != nil {
			continue
		}
		n, nodeErr := s.Node(ctx, by)
		if err := errors.Join(err, nodeErr); err != nil {
			return fmt.Errorf("read node %s of run %d: %w", by.Node, by.Run, err)
		}
		taken := n.ReusedFrom != nil && *n.ReusedFrom == of
		switch {
		case n.Status == state.Invalidated:
		case taken:
			return &fault.Error{Kind: fault.Script,
				Message: fmt.Sprintf("node %s of run %d has the rows of node %s of run %d: nobody could read "+
					"it any more", n.Name, n.Run, of.Node, of.Run),
				Hint: fmt.Sprintf("name run %d, too, to drop both; or %s computes its rows there", n.Run,
					n.Do("retry", "node", n.Name))}
		case !run.Status.Terminal() || run.GoesOn():
			return &fault.Error{Kind: fault.Script,
				Message: fmt.Sprintf("node %s of run %d, which is %s, reads node %s of run %d", n.Name,
					n.Run, run.Status, of.Node, of.Run),
				Hint: "wait until that run is over, or stop it: " + n.Do("stop").String()}
		case n.PlanDigest != "" && n.Kind != state.KindGate:
			d.Made = append(d.Made, Touched{NodeKey: by, Of: of})
		}
	}
	return nil
}
