package explore_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/test/effort"
	"thalweg/internal/test/statetest/explore"
)

// statesMost bounds the memory of one exploration: a state takes some hundred
// bytes, one that is still to be left some thousand. Six million took less than 5 GB.
const statesMost = 10_000_000

// Every state within small bounds: those of one worker and one person, and of two
// workers beside each other. TestChaosEveryState has the others.
func TestEveryState(t *testing.T) {
	t.Parallel()
	visit(t, explore.Bounds{Batches: 1, Alternate: true})
	for _, o := range []explore.Choice{explore.Stop, explore.Pause, explore.Again, explore.AgainAlive} {
		visit(t, explore.Bounds{Batches: 1, Alternate: true, Workers: 1, Orders: []explore.Choice{o}})
	}
}

// Every state of two workers, a person, and three batches in two nodes with a
// gate between them, each time with something more that may happen.
func TestChaosEveryState(t *testing.T) {
	if !effort.All() {
		t.Skip("visits some twenty million states: THALWEG_CHAOS=1 does")
	}
	all := []explore.Bounds{
		{},
		{Crashes: 1, Ticks: 2},
		{Unheard: 1},
		{Duplicates: 1},
		{Failures: 1},
	}
	for _, o := range []explore.Choice{explore.Stop, explore.Pause, explore.Again} {
		all = append(all, explore.Bounds{Orders: []explore.Choice{o}})
	}
	// What takes more room is explored with a node of one batch.
	for _, o := range [][]explore.Choice{
		{explore.AgainAlive},
		{explore.Stop, explore.GoOn}, {explore.Stop, explore.Again}, {explore.Pause, explore.Stop},
		{explore.Stop, explore.Invalidate},
		{explore.Again, explore.DecideLate}, {explore.AgainAlive, explore.DecideLate},
		{explore.InvalidateNode, explore.GoOn},
	} {
		all = append(all, explore.Bounds{Batches: 1, Orders: o})
	}
	all = append(all,
		explore.Bounds{Batches: 1, Orders: []explore.Choice{explore.Again}, Crashes: 1},
		explore.Bounds{Batches: 1, Orders: []explore.Choice{explore.GoOn}, Failures: 1},
	)
	for _, b := range all {
		b.Alternate = true
		t.Run(fmt.Sprintf("%+v", b), func(t *testing.T) { visit(t, b) })
	}
}

func visit(t *testing.T, b explore.Bounds) {
	t.Helper()
	b.States = statesMost
	res, err := explore.Explore(b)
	t.Logf("%+v: %s", b, res)
	require.NoError(t, err)
	require.True(t, res.All)
}
