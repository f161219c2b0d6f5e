package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
)

// Who follows a run is told a lost attempt, and one that is repeated, from a failure.
func TestFollowerTellsLostFromFailed(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	shown := newRunView(&console{stdout: &out, stderr: &out}, false)
	key := view.NodeKey{RunKey: view.RunKey{Workspace: "main", Run: 1}, Node: "calc"}
	node := view.Node{NodeKey: key}
	node.Name = "calc"
	shown.begin(app.Started{Key: key.RunKey, Remote: true, Nodes: []view.Node{node}})
	tell := func(kind view.EventKind, batch int, failure *view.Failure) {
		require.NoError(t, shown.follow(view.Event{Run: key.RunKey, Node: "calc", Kind: kind, Batch: batch, Batches: 9,
			Failure: failure}))
	}
	tell(view.NodePlanned, 0, nil)
	tell(view.BatchStarted, 6, nil)
	tell(view.BatchLost, 6, nil)
	tell(view.BatchStarted, 6, nil)
	tell(view.BatchRetried, 6, &view.Failure{Message: "the process of slot 1 ended"})
	require.Contains(t, out.String(), "batch 6: its worker went away; another one does it again\n")
	require.Contains(t, out.String(), "batch 6 is tried again: the process of slot 1 ended\n")
	require.NotContains(t, out.String(), "failed")
	tell(view.BatchFailed, 7, &view.Failure{Message: "not a number"})
	require.Contains(t, out.String(), "batch 7 failed\n")
	require.Contains(t, shown.line(shown.nodes["calc"]), "failed")
	tell(view.BatchStarted, 7, nil)
	require.NotContains(t, shown.line(shown.nodes["calc"]), "failed")
	// What a node has taken over is not none.
	from := &view.NodeKey{RunKey: view.RunKey{Run: 3}}
	require.NoError(t, shown.follow(view.Event{Node: "calc", Kind: view.NodePlanned, ReusedFrom: from}))
	require.NoError(t, shown.follow(view.Event{Node: "calc", Kind: view.NodeFinished, ReusedFrom: from}))
	require.Contains(t, out.String(), "taken over from run 3\n")
	require.NotContains(t, out.String(), "0 rows")
}
