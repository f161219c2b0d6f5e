package hub

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/ops/history"
	"thalweg/internal/store/state"
)

// told returns the next lines of a workspace, as run and status.
func (l *SpaceListener) told(t *testing.T) (out []history.Run) {
	t.Helper()
	lines, err := l.Next(t.Context())
	require.NoError(t, err)
	for _, line := range lines {
		require.Equal(t, "run", line.Event)
		require.Zero(t, line.Number)
		var r history.Run
		require.NoError(t, json.Unmarshal(line.JSON, &r))
		out = append(out, r)
	}
	return out
}

func (l *SpaceListener) next(t *testing.T) (run int64, status string) {
	t.Helper()
	all := l.told(t)
	require.Len(t, all, 1)
	return all[0].Run, all[0].Status
}

// Who listens to a workspace hears which runs are open, and then what becomes of each, whoever writes.
func TestWorkspace(t *testing.T) {
	t.Parallel()
	f := open(t, Config{pace: time.Millisecond})
	over := f.begin(t, f.store)
	f.command(t, f.other, over, state.CommandStop)
	l, err := f.hub.Workspace("w")
	require.NoError(t, err)
	defer l.Close()
	run, status := l.next(t)
	require.Equal(t, f.key.Run, run, "what is open, and nothing else")
	require.Equal(t, "running", status)
	is := func(run state.RunKey, status string, why string) {
		t.Helper()
		for now := ""; now != status; { // what is between the two steps of an order may be told, too
			var got int64
			got, now = l.next(t)
			require.Equal(t, run.Run, got, why)
		}
	}
	for _, by := range []state.Store{f.other, f.store} {
		f.command(t, by, f.key, state.CommandPause)
		is(f.key, "paused", "it moves on")
		f.command(t, by, f.key, state.CommandUnpause)
		is(f.key, "running", "it moves on")
		fresh := f.begin(t, by)
		is(fresh, "running", "it begins")
		gate := state.NodeKey{RunKey: fresh, Node: "n"}
		require.NoError(t, by.MoveNode(t.Context(), gate, state.Move{From: state.Pending, To: state.Waiting,
			Gate: []byte("{}"), GateDigest: "d", Now: time.Now()}))
		is(fresh, "waiting", "it asks for a decision")
		f.command(t, by, fresh, state.CommandStop)
		is(fresh, "stopped", "it ends")
		f.command(t, by, fresh, state.CommandInvalidate)
		is(fresh, "invalidated", "also behind its end")
		f.command(t, by, over, state.CommandReopen)
		is(over, "running", "what was over before goes on")
		f.command(t, by, over, state.CommandStop)
		is(over, "stopped", "and ends")
	}
	late, err := f.hub.Workspace("w")
	require.NoError(t, err)
	defer late.Close()
	var open []int64
	for _, r := range late.told(t) {
		if r.Finished == nil {
			open = append(open, r.Run)
		}
	}
	require.Equal(t, []int64{f.key.Run}, open)
}

// Who listens to a workspace hears that a schedule is paused or goes on, whoever writes; who comes later is told of
// none of before.
func TestWorkspaceHearsPauses(t *testing.T) {
	t.Parallel()
	f := open(t, Config{pace: time.Millisecond})
	listen := func() *SpaceListener {
		l, err := f.hub.Workspace("w")
		require.NoError(t, err)
		t.Cleanup(l.Close)
		l.next(t) // the run
		return l
	}
	note := state.Note{Topic: state.TopicPaused, Name: "a", Data: []byte("{}"), Time: time.Now()}
	require.NoError(t, f.other.PutNote(t.Context(), "w", note))
	l := listen()
	heard := func() {
		t.Helper()
		lines, err := l.Next(t.Context())
		require.NoError(t, err)
		require.Len(t, lines, 1)
		require.Equal(t, "schedules", lines[0].Event)
		require.JSONEq(t, `{"workspace":"w"}`, string(lines[0].Discreet))
	}
	for _, by := range []state.Store{f.other, f.store} {
		require.NoError(t, by.RemoveNote(t.Context(), "w", note))
		heard()
		require.NoError(t, by.PutNote(t.Context(), "w", note))
		heard()
	}
}

// Nobody misses a run that is over before it is looked at, in a cluster.
func TestWorkspaceOfShortRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := openMemory(t, Config{})
		l, err := f.hub.Workspace("w")
		require.NoError(t, err)
		l.told(t)
		const runs = 2*recentRuns + 5
		for range runs {
			key := f.begin(t, f.other)
			f.command(t, f.other, key, state.CommandStop)
		}
		// A late listener is told of no more than are kept; who listens in time of all that are.
		var heard []int64
		for len(heard) < recentRuns {
			for _, r := range l.told(t) {
				require.Equal(t, "stopped", r.Status)
				heard = append(heard, r.Run)
			}
		}
		require.EqualValues(t, f.key.Run+runs, heard[len(heard)-1])
		f.begin(t, f.other)
		run, status := l.next(t)
		require.EqualValues(t, f.key.Run+runs+1, run)
		require.Equal(t, "running", status)
		l.Close()
		require.NoError(t, f.hub.Close())
	})
}

// What is read for a workspace does not grow with the runs that are over.
func TestWorkspaceReadsOpenRuns(t *testing.T) {
	t.Parallel()
	reads := map[int]int64{}
	for _, over := range []int{recentRuns, 10 * recentRuns} {
		synctest.Test(t, func(t *testing.T) {
			f := openMemory(t, Config{})
			for range over {
				f.command(t, f.other, f.begin(t, f.other), state.CommandStop)
			}
			l, err := f.hub.Workspace("w")
			require.NoError(t, err)
			l.told(t)
			passes(time.Minute)
			reads[over] = f.reads.Load()
			l.Close()
			require.NoError(t, f.hub.Close())
		})
	}
	require.Equal(t, reads[recentRuns], reads[10*recentRuns])
}

// Progress alone is not told; who comes later has the latest that was seen of it.
func TestWorkspaceKeepsProgressQuiet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := openMemory(t, Config{})
		l, err := f.hub.Workspace("w")
		require.NoError(t, err)
		l.told(t)
		node := state.NodeKey{RunKey: f.key, Node: "n"}
		_, err = state.PlanNode(t.Context(), f.store, node, 0, state.Plan{Record: []byte("x"),
			Batches: []state.BatchSpec{{}, {Batch: 1}}}, "me", time.Now())
		require.NoError(t, err)
		offers, _, err := f.store.Offers(t.Context(), node, time.Now(), state.Page{Limit: 1})
		require.NoError(t, err)
		claim, err := f.store.Claim(t.Context(), state.ClaimRequest{Offer: offers[0], Owner: "me", Token: "c", Now: time.Now(),
			Lease: time.Now().Add(time.Hour)})
		require.NoError(t, err)
		require.NoError(t, f.store.Commit(t.Context(), claim, state.Outcome{Stats: state.Stats{RowsOut: 7}}, time.Now()))
		passes(time.Minute)
		synctest.Wait()
		lines, _, err := l.changed()
		require.NoError(t, err)
		require.Empty(t, lines)
		late, err := f.hub.Workspace("w")
		require.NoError(t, err)
		require.EqualValues(t, 7, late.told(t)[0].Rows)
		l.Close()
		late.Close()
		require.NoError(t, f.hub.Close())
	})
}
