package runs_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runs"
	"thalweg/internal/base/fault"
	"thalweg/internal/run/orders"
	"thalweg/internal/store/state"
)

// Batches of all nodes of a run are alike that have failed for one reason; neighbours are one range.
func TestAlike(t *testing.T) {
	t.Parallel()
	run := state.RunKey{Workspace: "main", Run: 3}
	batch := func(node string, n int, status state.Status, message string) state.Batch {
		return state.Batch{BatchKey: state.BatchKey{NodeKey: state.NodeKey{RunKey: run, Node: node}, Batch: n},
			Status: status, Failure: &state.Failure{Kind: fault.UserData, Message: message}}
	}
	all := map[string][]state.Batch{
		"a": {batch("a", 0, state.Failed, `"x" is not an int`), batch("a", 1, state.Failed, `"y" is not an int`),
			batch("a", 2, state.Failed, "out of memory"), batch("a", 3, state.Failed, `"z" is not an int`),
			batch("a", 4, state.Claimed, `"z" is not an int`)},
		"b": {batch("b", 4, state.Failed, `"12" is not an int`)},
	}
	store := state.Around(nil, func(_ context.Context, op state.Op, _ func(context.Context) error) error {
		switch op.Method {
		case state.OpBatch:
			key := *op.Args[0].(*state.BatchKey)
			for _, b := range all[key.Node] {
				if b.BatchKey == key {
					*op.Results[0].(*state.Batch) = b
					return nil
				}
			}
			return state.ErrNotFound
		case state.OpNodes:
			*op.Results[0].(*[]state.Node) = []state.Node{{NodeKey: state.NodeKey{RunKey: run, Node: "a"},
				NodeSpec: state.NodeSpec{Name: "a"}},
				{NodeKey: state.NodeKey{RunKey: run, Node: "b"}, NodeSpec: state.NodeSpec{Name: "b"}}}
		case state.OpUnsettled:
			*op.Results[0].(*[]state.Batch) = all[op.Args[0].(*state.NodeKey).Node]
		}
		return nil
	})
	s := &runs.Service{Home: &instance.Instance{State: store}}
	of := func(node string, n int) ([]orders.Batches, error) {
		return s.Alike(t.Context(), state.BatchKey{NodeKey: state.NodeKey{RunKey: run, Node: node}, Batch: n})
	}
	got, err := of("b", 4)
	require.NoError(t, err)
	require.Equal(t, []orders.Batches{{Node: "a", From: 0, To: 1}, {Node: "a", From: 3, To: 3},
		{Node: "b", From: 4, To: 4}}, got)
	got, err = of("a", 2)
	require.NoError(t, err)
	require.Equal(t, []orders.Batches{{Node: "a", From: 2, To: 2}}, got)
	for _, n := range []int{4, 9} {
		_, err = of("a", n)
		require.Equal(t, fault.Conflict, fault.CodeOf(err))
	}
}
