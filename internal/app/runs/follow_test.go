package runs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
)

// Who follows a run is told what its workers tell: a lost attempt, and one that is repeated, are no failures, and a
// node that has taken rows over has them of another.
func TestFollowerIsToldAsWorkersTell(t *testing.T) {
	t.Parallel()
	key, three := state.NodeKey{Node: "calc"}, &state.NodeKey{RunKey: state.RunKey{Run: 3}}
	batch := 6
	work := workEvents{sums: map[string]state.Stats{}, from: map[string]*state.NodeKey{}}
	for i, tc := range []struct {
		kind state.EventKind
		data state.EventData
		want job.EventKind // "": nothing is shown
		rows int64
		from *state.NodeKey
	}{
		{state.NodePlanned, state.EventData{Status: state.Running}, job.NodePlanned, 0, nil},
		{state.BatchClaimed, state.EventData{Status: state.Claimed}, job.BatchStarted, 0, nil},
		{state.BatchEnded, state.EventData{Status: state.Lost}, job.BatchLost, 0, nil},
		{state.BatchEnded, state.EventData{Status: state.Released}, job.BatchReleased, 0, nil},
		{state.BatchEnded, state.EventData{Status: state.Failed, Failure: &state.Failure{Again: true}},
			job.BatchRetried, 0, nil},
		{state.BatchEnded, state.EventData{Status: state.Failed, Failure: &state.Failure{}}, job.BatchFailed, 0, nil},
		{state.BatchEnded, state.EventData{Status: state.Succeeded, RowsOut: 4}, job.BatchFinished, 4, nil},
		{state.BatchEnded, state.EventData{Status: state.Succeeded, RowsOut: 5}, job.BatchFinished, 5, nil},
		{state.NodeMoved, state.EventData{Status: state.Succeeded}, job.NodeFinished, 9, nil},
		{state.NodePlanned, state.EventData{Status: state.Running, ReusedFrom: three}, job.NodePlanned, 0, three},
		{state.NodeMoved, state.EventData{Status: state.Succeeded}, job.NodeFinished, 0, three},
		{state.NodeMoved, state.EventData{Status: state.Failed}, "", 0, nil},
	} {
		tc.data.Batch = &batch
		e, ok := work.of(state.Event{NodeKey: key, Kind: tc.kind, EventData: tc.data})
		require.Equal(t, tc.want != "", ok, i)
		if ok {
			require.Equal(t, tc.want, e.Kind, i)
			require.Equal(t, tc.rows, e.Stats.RowsOut, i)
			require.Equal(t, tc.from, e.ReusedFrom, i)
		}
	}
}
