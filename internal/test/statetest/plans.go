package statetest

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
)

func testPlan(t *testing.T, open Open) {
	b := newBench(t, open)
	key := state.NodeKey{RunKey: b.run("n"), Node: "n"}
	plan := []byte("{\x00plan}")
	require.Nil(t, b.theNode(key).Plan)
	for range 3 { // the second and third are no-ops
		require.NoError(t, b.plan(key, plan, specs(3)))
		n := b.theNode(key)
		require.Equal(t, state.Running, n.Status)
		require.Equal(t, 3, n.BatchesTotal)
		require.Equal(t, plan, n.Plan)
		all, err := state.All(b.ctx, b.Batches, key)
		require.NoError(t, err)
		planned, err := state.All(b.ctx, b.Specs, key)
		require.NoError(t, err)
		same(t, specs(3), planned)
		want := []state.Batch{}
		for i, s := range specs(3) {
			want = append(want, state.Batch{BatchKey: batchOf(key, i), BatchSpec: light(s), Status: state.Pending})
		}
		same(t, want, all)
	}

	other := specs(3)
	other[1].Work = []byte("another slice")
	rows := specs(3)
	rows[2].RowsIn = -1
	for what, again := range map[string][]state.BatchSpec{"work": other, "rows": rows, "fewer": specs(2),
		"more": specs(4), "none": nil} {
		require.ErrorIs(t, b.plan(key, plan, again), errOtherPlan, what)
	}
	require.ErrorIs(t, b.plan(key, []byte("other"), specs(3)), errOtherPlan)
	require.ErrorIs(t, b.plan(key, nil, specs(3)), errOtherPlan)

	// A late planner finds the work under way, or over, and changes nothing.
	c := b.claim(key, 1, "w", 0)
	require.NoError(t, b.Commit(b.ctx, c, outcome("p"), start))
	require.NoError(t, b.plan(key, plan, specs(3)))
	require.Equal(t, state.Succeeded, b.theBatch(key, 1).Status)
	require.NoError(t, b.move(key, state.Running, state.Failed))
	require.NoError(t, b.plan(key, plan, specs(3)))
	require.Equal(t, state.Failed, b.theNode(key).Status)
	require.NoError(t, b.direct(key.RunKey, state.CommandStop))
	require.ErrorIs(t, planAt(b.ctx, b.Store, key, 0, plan, specs(3)), state.ErrConflict, "an order came")
}

// light is a planned batch as lists have it.
func light(s state.BatchSpec) state.BatchSpec {
	s.Work = nil
	return s
}

func testPlanEmpty(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(0)
	require.NoError(t, b.plan(key, []byte("plan"), nil))
	all, err := state.All(b.ctx, b.Batches, key)
	require.NoError(t, err)
	require.Empty(t, all)
	require.Empty(t, b.offers(key, 0))
	require.NoError(t, b.move(key, state.Running, state.Succeeded))

	// A plan without a record of its own is still a plan.
	bare := state.NodeKey{RunKey: b.run("n"), Node: "n"}
	require.NoError(t, b.plan(bare, nil, nil))
	require.NotEmpty(t, b.theNode(bare).PlanDigest)
	require.NoError(t, b.plan(bare, []byte{}, nil))
	require.ErrorIs(t, b.plan(bare, nil, specs(1)), errOtherPlan)
}

func testPlanRefused(t *testing.T, open Open) {
	b := newBench(t, open)
	key := state.NodeKey{RunKey: b.run("n"), Node: "n"}
	gap := specs(3)
	gap[2].Batch = 3
	require.Error(t, b.plan(key, nil, gap))
	require.Error(t, b.plan(key, nil, specs(2)[1:]))
	_, err := b.AdoptPlan(b.ctx, key, state.Adoption{Digest: "d", Batches: 2, Rest: state.PlanPiece{Batches: specs(1)}})
	require.Error(t, err, "a piece is missing")

	require.NoError(t, b.direct(key.RunKey, state.CommandStop))
	require.ErrorIs(t, b.plan(key, nil, specs(1)), state.ErrConflict)
	require.Nil(t, b.theNode(key).Plan)

	require.NoError(t, b.direct(key.RunKey, state.CommandReopen))
	require.ErrorIs(t, planAt(b.ctx, b.Store, key, 0, nil, specs(1)), state.ErrConflict,
		"a planner that has slept through it")
	require.NoError(t, b.plan(key, nil, specs(1)))
}

// Every worker plans; all of them are told that it is done.
func testPlanRace(t *testing.T, open Open) {
	b := newBench(t, open)
	key := state.NodeKey{RunKey: b.run("n"), Node: "n"}
	errs := together(8, func(int) error { return planAt(b.ctx, b.Store, key, 0, []byte("plan"), specs(50)) })
	require.Equal(t, 8, split(t, errs, nil))
	require.Equal(t, 50, b.theNode(key).BatchesTotal)

	// Two planners that disagree: one plan stays whole, the other is told.
	key = state.NodeKey{RunKey: b.run("n"), Node: "n"}
	errs = together(8, func(i int) error { return planAt(b.ctx, b.Store, key, 0, nil, specs(20+i%2)) })
	require.Equal(t, 4, split(t, errs, errOtherPlan))
	all, err := state.All(b.ctx, b.Batches, key)
	require.NoError(t, err)
	require.Len(t, all, b.theNode(key).BatchesTotal)
}

// A big node is planned and listed in about a second, not in minutes: it takes
// as long as small ones of as many batches together, and not so many times it.
func testPlanMany(t *testing.T, open Open) {
	const batches, parts, most, negligible = 10_000, 10, 5, 5 * time.Second
	b := newBench(t, open)
	small := planTimed(b, parts, batches/parts)
	large := planTimed(b, 1, batches)
	t.Logf("%d nodes of %d batches: %v; a node of %d: %v", parts, batches/parts, small, batches, large)
	require.Less(t, large, max(most*small, negligible))
}

// planTimed plans nodes of so many batches, plans them again, and lists them.
func planTimed(b *bench, nodes, batches int) time.Duration {
	many := specs(batches)
	for i := range many {
		many[i].Work = bytes.Repeat([]byte{byte(i)}, 200)
	}
	var took time.Duration
	for range nodes {
		key := state.NodeKey{RunKey: b.run("n"), Node: "n"}
		began := time.Now()
		require.NoError(b.t, b.plan(key, []byte("plan"), many))
		require.NoError(b.t, b.plan(key, []byte("plan"), many))
		all, err := state.All(b.ctx, b.Specs, key)
		took += time.Since(began)
		require.NoError(b.t, err)
		require.Len(b.t, all, batches)
		for i, got := range all {
			require.Equal(b.t, i, got.Batch)
		}
		require.Equal(b.t, many[batches-1].Work, all[batches-1].Work)
	}
	return took
}
