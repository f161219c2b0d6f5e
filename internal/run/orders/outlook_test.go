package orders_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/run/orders"
	"thalweg/internal/store/state"
)

// What an order to a whole run would do is what it does, and looking changes nothing.
func TestPreview(t *testing.T) {
	t.Parallel()
	given := func(kinds ...state.CommandKind) func(t *testing.T, b bundle) {
		return func(t *testing.T, b bundle) {
			t.Helper()
			for _, kind := range kinds {
				require.NoError(t, state.Direct(t.Context(), b, b.run, state.Command{Kind: kind, Token: string(kind),
					Mark: state.Mark{Actor: "ann", Time: time.Now(), Reason: "why"}, Cause: &state.Failure{Message: "m"}}))
			}
		}
	}
	const stop, pause, resume = state.CommandStop, state.CommandPause, state.CommandReopen
	for name, tc := range map[string]struct {
		before func(t *testing.T, b bundle)
		kind   state.CommandKind
		want   state.Status // ""; it is refused
		tasks  int
	}{
		"stop":                        {nil, stop, state.Stopped, 0},
		"pause":                       {nil, pause, state.Paused, 0},
		"stop of a paused run":        {given(pause), stop, state.Stopped, 0},
		"pause of a paused run":       {given(pause), pause, state.Paused, 0},
		"stop of a failed run":        {given(state.CommandFail), stop, state.Failed, 0},
		"resume of a failed run":      {given(state.CommandFail), resume, state.Running, 3},
		"resume of a taken failure":   {given(state.CommandFail, state.CommandTake), resume, state.Running, 3},
		"resume of a paused run":      {given(pause), resume, state.Running, 3},
		"resume of an invalid run":    {given(stop, state.CommandInvalidate), resume, "", 0},
		"resume of a dropped run":     {given(stop, state.CommandDrop), resume, "", 0},
		"pause of a run that is over": {given(stop), pause, state.Stopped, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t)
			b.complete(t, "ab")
			if tc.before != nil {
				tc.before(t, b)
			}
			was, err := b.Run(t.Context(), b.run)
			require.NoError(t, err)
			got, err := orders.Preview(t.Context(), b, b.run, tc.kind)
			is, readErr := b.Run(t.Context(), b.run)
			require.NoError(t, readErr)
			require.Equal(t, was, is)
			if tc.want == "" {
				require.Equal(t, fault.Conflict, fault.CodeOf(err))
				return
			}
			require.NoError(t, err)
			require.Equal(t, []any{was.Status, tc.want}, []any{got.Before, got.Status})
			require.Len(t, got.Left, 3)
			require.Len(t, got.Tasks, tc.tasks)
		})
	}
}

// Batches at work are counted.
func TestPreviewOfWork(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.complete(t, "a")
	key := state.NodeKey{RunKey: b.run, Node: "b"}
	_, err := state.PlanNode(t.Context(), b, key, 0, state.Plan{Record: []byte("{}"),
		Batches: []state.BatchSpec{{Batch: 0, Work: []byte("{}")}, {Batch: 1, Work: []byte("{}")}}}, "w", time.Now())
	require.NoError(t, err)
	offers, _, err := b.Offers(t.Context(), key, time.Now(), state.Page{})
	require.NoError(t, err)
	_, err = b.Claim(t.Context(), state.ClaimRequest{Offer: offers[0], Owner: "w", Token: "t", Now: time.Now(),
		Lease: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	got, err := orders.Preview(t.Context(), b, b.run, state.CommandPause)
	require.NoError(t, err)
	require.Equal(t, 1, got.InFlight)
	require.Equal(t, orders.NodeLeft{Node: "b", Status: state.Running, Batches: 2}, got.Left[0])
	require.Len(t, got.Left, 4)
}
