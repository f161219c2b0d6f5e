package gc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/run/orders"
	"thalweg/internal/run/sheet"
	"thalweg/internal/store/state"
)

// The time sheets of a run go with it, and not before.
func TestTimeSheetsOfDroppedRuns(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	m := sheet.NewMeter(sheet.Config{Worker: "host/1/1", Slots: 1})
	m.Open(b.node.RunKey)
	require.NoError(t, sheet.NewKeeper(m, b.store).Close(t.Context(), b.node.RunKey))
	left := func() int {
		sheets, err := sheet.Of(t.Context(), b.store, b.node.RunKey)
		require.NoError(t, err)
		return len(sheets)
	}
	by := state.Mark{Actor: "eve", Reason: "old", Time: b.now}
	_, err := orders.Stop(t.Context(), b.store, b.node.RunKey, by)
	require.NoError(t, err)
	b.collect(b.store, shelf{}, false)
	require.Equal(t, 1, left())
	_, err = orders.DropRuns(t.Context(), b.store, []state.RunKey{b.node.RunKey}, by)
	require.NoError(t, err)
	b.collect(b.store, shelf{}, true)
	require.Equal(t, 1, left(), "a dry run removes nothing")
	b.collect(b.store, shelf{}, false)
	require.Zero(t, left())
}
