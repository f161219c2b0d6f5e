package history_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/ops/history"
	"thalweg/internal/store/state"
)

func TestSelection(t *testing.T) {
	t.Parallel()
	batch := 17
	at := func(kind state.EventKind, node string, d state.EventData) state.Event {
		e := state.Event{Kind: kind, EventData: d, Actor: "anna"}
		e.Node = node
		return e
	}
	events := []state.Event{
		at(state.RunCreated, "", state.EventData{}),
		at(state.BatchClaimed, "load", state.EventData{Batch: &batch, Attempt: 1}),
		at(state.BatchEnded, "load", state.EventData{Batch: &batch, Attempt: 1, Status: state.Failed,
			Failure: &state.Failure{Message: "is no Number", Place: fault.Place{File: "sums",
				Origin: &fault.Place{File: "in.csv", Line: 12, Raw: "5;x"}}}}),
		at(state.BatchEnded, "load", state.EventData{Batch: &batch, Attempt: 2, Status: state.Lost}),
		at(state.BatchEnded, "load", state.EventData{Batch: &batch, Attempt: 3, Status: state.Succeeded}),
		at(state.OrderBegun, "", state.EventData{Command: &state.Command{Kind: state.CommandStop,
			Mark: state.Mark{Reason: "Enough"}, Nodes: []state.CommandNode{{Node: "sum"}}}}),
		at(state.NodeHeard, "sum", state.EventData{}),
		at(state.NodeMoved, "sum", state.EventData{Status: state.Succeeded,
			Decision: &state.Decision{Role: "sales", Answers: []byte(`{"cutoff":7}`)}}),
	}
	for _, c := range []struct {
		s    history.Selection
		want []int
	}{
		{history.Selection{}, []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{history.Selection{Least: history.Noise}, []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{history.Selection{Least: history.Usual}, []int{0, 2, 3, 4, 5, 7}},
		{history.Selection{Least: history.Concern}, []int{0, 2, 3, 5, 7}},
		{history.Selection{Kinds: []string{"batch_ended", "node_heard"}}, []int{2, 3, 4, 6}},
		{history.Selection{Kinds: []string{"batch_ended"}, Not: []string{"batch_ended"}}, nil},
		{history.Selection{Not: []string{"batch_ended", "batch_claimed"}}, []int{0, 5, 6, 7}},
		{history.Selection{Node: "sum"}, []int{6, 7}},
		{history.Selection{Text: "NUMBER"}, []int{2}},
		{history.Selection{Text: "in.csv:12"}, []int{2}},
		{history.Selection{Text: "5;x"}, []int{2}},
		{history.Selection{Text: "batch 17, try 3"}, []int{4}},
		{history.Selection{Text: "batch claimed"}, []int{1}},
		{history.Selection{Text: "enough"}, []int{5}},
		{history.Selection{Text: "sum"}, []int{2, 5, 6, 7}},
		{history.Selection{Text: "cutoff"}, []int{7}},
		{history.Selection{Text: "sales", Node: "load"}, nil},
		{history.Selection{Text: "anna", Least: history.Concern, Node: "load"}, []int{2, 3}},
	} {
		var got []int
		for i, e := range events {
			if c.s.Has(e) {
				got = append(got, i)
			}
		}
		require.Equal(t, c.want, got, "%+v", c.s)
	}
	require.True(t, history.Selection{Least: history.Noise}.All())
	require.False(t, history.Selection{Text: "a"}.All())
}
