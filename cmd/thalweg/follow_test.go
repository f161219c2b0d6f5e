package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/runner"
	"thalweg/internal/ops/history"
	"thalweg/internal/store/state"
)

// Who follows a run is told a lost attempt, and one that is repeated, from a failure.
func TestFollowerTellsLostFromFailed(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	view := newRunView(&app{stdout: &out, stderr: &out}, false)
	key := state.NodeKey{RunKey: state.RunKey{Workspace: "main", Run: 1}, Node: "calc"}
	view.begin(runner.Started{Key: key.RunKey, Remote: true,
		Nodes: []state.Node{{NodeKey: key, NodeSpec: state.NodeSpec{Name: "calc"}}}})
	shown := eventsShown{view: view, sums: map[string]state.Stats{}, from: map[string]*state.NodeKey{}}
	tell := func(kind state.EventKind, batch int, status state.Status, failure *state.Failure) {
		e := state.Event{NodeKey: key, Time: time.Now(), Kind: kind, EventData: state.EventData{Status: status, Batch: &batch,
			Batches: 9, Failure: failure}}
		require.NoError(t, shown.tell([]history.Line{{Event: e}}))
	}
	tell(state.NodePlanned, 0, state.Running, nil)
	tell(state.BatchClaimed, 6, state.Claimed, nil)
	tell(state.BatchEnded, 6, state.Lost, nil)
	tell(state.BatchClaimed, 6, state.Claimed, nil)
	tell(state.BatchEnded, 6, state.Failed, &state.Failure{Message: "the process of slot 1 ended", Again: true})
	require.Contains(t, out.String(), "batch 6: its worker went away; another one does it again\n")
	require.Contains(t, out.String(), "batch 6 is tried again: the process of slot 1 ended\n")
	require.NotContains(t, out.String(), "failed")
	tell(state.BatchEnded, 7, state.Failed, &state.Failure{Message: "not a number"})
	require.Contains(t, out.String(), "batch 7 failed\n")
	require.Contains(t, view.line(view.nodes["calc"]), "failed")
	tell(state.BatchClaimed, 7, state.Claimed, nil)
	require.NotContains(t, view.line(view.nodes["calc"]), "failed")
	// What a node has taken over is not none.
	require.NoError(t, shown.tell([]history.Line{{Event: state.Event{NodeKey: key, Kind: state.NodePlanned,
		EventData: state.EventData{Status: state.Running, ReusedFrom: &state.NodeKey{RunKey: state.RunKey{Run: 3}}}}},
		{Event: state.Event{NodeKey: key, Kind: state.NodeMoved, EventData: state.EventData{Status: state.Succeeded}}}}))
	require.Contains(t, out.String(), "taken over from run 3\n")
	require.NotContains(t, out.String(), "0 rows")
}
