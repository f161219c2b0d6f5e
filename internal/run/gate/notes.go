package gate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"thalweg/internal/store/state"
)

// Note announces that a gate is about to wait, so that Waiting finds it.
func Note(ctx context.Context, s state.Store, key state.NodeKey, now time.Time) error {
	note := state.Note{Topic: state.TopicWaiting, Name: state.RunName(key.Run) + "/" + key.Node, Run: key.Run,
		Node: key.Node, Time: now}
	if err := s.PutNote(ctx, key.Workspace, note); err != nil {
		return fmt.Errorf("note that gate %s waits: %w", NameOf(key.Node), err)
	}
	return nil
}

// Asked is a gate that waits.
type Asked struct {
	Run    int64
	Node   string
	Record Record
}

// staleAfter is the age at which the note of a gate that does not wait is removed. Younger notes stay, because
// a note is written before its gate waits.
const staleAfter = time.Minute

// Waiting lists the gates of a workspace that wait, by run. Its cost grows with the
// gates that wait, not with the runs. It removes stale notes of other gates. A gate
// whose deadline has passed is listed until some process has rejected it.
func Waiting(ctx context.Context, s state.Store, workspace string, now time.Time) ([]Asked, error) {
	notes, err := state.AllNotes(ctx, s, workspace, state.TopicWaiting)
	if err != nil {
		return nil, fmt.Errorf("look for what waits in workspace %s: %w", workspace, err)
	}
	var out []Asked
	for _, note := range notes {
		n, err := s.Node(ctx, state.NodeKey{RunKey: state.RunKey{Workspace: workspace, Run: note.Run}, Node: note.Node})
		if err != nil && !errors.Is(err, state.ErrNotFound) {
			return nil, fmt.Errorf("read gate %s of run %d: %w", NameOf(note.Node), note.Run, err)
		}
		if err != nil || n.Status != state.Waiting {
			if now.Sub(note.Time) < staleAfter {
				continue
			}
			if err := s.RemoveNote(ctx, workspace, note); err != nil {
				return nil, fmt.Errorf("remove the note of a gate that does not wait: %w", err)
			}
			continue
		}
		r, err := Decode(n.Gate)
		if err != nil {
			return nil, err
		}
		out = append(out, Asked{Run: note.Run, Node: note.Node, Record: r})
	}
	return out, nil
}
