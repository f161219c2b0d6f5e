package state_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
)

// told is a store that has only the events of a node.
type told struct {
	state.Store
	events []state.Event
}

func (s told) Events(_ context.Context, _ state.NodeKey, after int64, limit int) ([]state.Event, error) {
	rest := s.events[after:]
	return rest[:min(len(rest), limit)], nil
}

// A node's time is that in which it was worked on, whatever lies between.
func TestWorked(t *testing.T) {
	t.Parallel()
	at := func(minute int) time.Time {
		return time.Date(2031, 5, 6, 12, minute, 0, 0, time.UTC)
	}
	event := func(minute int, kind state.EventKind, status state.Status) state.Event {
		return state.Event{Time: at(minute), Kind: kind, EventData: state.EventData{Status: status}}
	}
	const claimed, moved, heard, ended = state.BatchClaimed, state.NodeMoved, state.NodeHeard, state.BatchEnded
	first := []state.Event{event(0, state.NodePlanned, ""), event(1, claimed, ""), event(3, claimed, ""),
		event(4, ended, state.Succeeded)}
	for name, tc := range map[string]struct {
		events []state.Event // behind the first
		node   state.Node
		run    state.Run
		want   time.Duration
	}{
		"not begun": {node: state.Node{Epoch: 1}},
		"no order":  {node: state.Node{Started: at(1), Finished: at(5)}, want: 4 * time.Minute},
		"at work":   {node: state.Node{Started: at(1)}, run: state.Run{Status: state.Running}, want: 29 * time.Minute},
		"its run ended": {node: state.Node{Started: at(1)}, run: state.Run{Status: state.Stopped, Finished: at(9)},
			want: 8 * time.Minute},
		"done again": {[]state.Event{event(5, moved, state.Succeeded), event(20, heard, state.Running),
			event(21, claimed, ""), event(22, moved, state.Succeeded)}, state.Node{Epoch: 1, Started: at(1),
			Finished: at(22)},
			state.Run{}, 5 * time.Minute},
		"failed alone": {[]state.Event{event(6, moved, state.Failed), event(8, heard, state.Failed),
			event(20, heard, state.Running), event(20, claimed, "")}, state.Node{Epoch: 2, Started: at(1)},
			state.Run{Status: state.Running}, 15 * time.Minute},
		"goes on at it": {[]state.Event{event(6, heard, state.Running), event(7, claimed, ""),
			event(8, moved, state.Succeeded)}, state.Node{Epoch: 1, Started: at(1), Finished: at(8)}, state.Run{},
			7 * time.Minute},
		"stopped": {[]state.Event{event(6, heard, state.Stopped)},
			state.Node{Epoch: 1, Started: at(1), Finished: at(6)}, state.Run{Status: state.Stopped}, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := told{events: append(append([]state.Event{}, first...), tc.events...)}
			for i := range s.events {
				s.events[i].Seq = int64(i) + 1
			}
			took, err := state.Worked(t.Context(), s, tc.run, tc.node, at(30))
			require.NoError(t, err)
			require.Equal(t, tc.want, took)
		})
	}
}
