package statetest

import (
	"fmt"
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/state"
)

func testRunNumbers(t *testing.T, open Open) {
	b := newBench(t, open)
	for want := int64(1); want <= 3; want++ {
		require.Equal(t, state.RunKey{Workspace: b.workspace, Run: want}, b.run())
	}
	runs, err := b.Runs(b.ctx, b.workspace)
	require.NoError(t, err)
	require.Len(t, runs, 3)
	for i, r := range runs {
		require.Equal(t, int64(i+1), r.Run)
		require.Equal(t, state.Running, r.Status)
	}
}

// Numbers have no gaps and no doubles, whoever asks at the same time.
func testRunNumbersConcurrently(t *testing.T, open Open) {
	b := newBench(t, open)
	const n = 24
	numbers := make([]int, n)
	errs := together(n, func(i int) error {
		key, err := b.CreateRun(b.ctx, state.Run{RunKey: state.RunKey{Workspace: b.workspace}}, []state.NodeSpec{{Name: "a"}})
		numbers[i] = int(key.Run)
		return err
	})
	require.Equal(t, n, split(t, errs, nil))
	sort.Ints(numbers)
	for i, got := range numbers {
		require.Equal(t, i+1, got)
	}
	runs, err := b.Runs(b.ctx, b.workspace)
	require.NoError(t, err)
	require.Len(t, runs, n)
}

func testRunRoundTrip(t *testing.T, open Open) {
	b := newBench(t, open)
	run := state.Run{
		RunKey: state.RunKey{Workspace: b.workspace, Run: 77}, // the number is the store's business
		Status: state.Failed,                                  // so is the status
		Script: "path dir/script.yaml", Sources: []int64{3, 1}, ScriptPath: "dir/script.yaml", ParamsPath: "dir/params.json", Fingerprint: "sha256:00",
		StartNodes: []string{"read", "join"}, Description: "a test", Created: start, Definition: []byte("{\x00\xff}"),
	}
	nodes := []state.NodeSpec{
		{Name: "join", Kind: "table_lookup_table", Ordinal: 1, Inputs: []string{"read", "other"}},
		{Name: "read", Kind: "file_table", Ordinal: 0},
	}
	key, err := b.CreateRun(b.ctx, run, nodes)
	require.NoError(t, err)
	run.Run, run.Status = 1, state.Running
	got, err := b.Run(b.ctx, key)
	require.NoError(t, err)
	same(t, run, got)
	list, err := b.Runs(b.ctx, b.workspace)
	require.NoError(t, err)
	same(t, []state.Run{run}, list)

	want := []state.Node{
		{NodeKey: state.NodeKey{RunKey: key, Node: "read"}, NodeSpec: nodes[1], Status: state.Pending},
		{NodeKey: state.NodeKey{RunKey: key, Node: "join"}, NodeSpec: nodes[0], Status: state.Pending},
	}
	gotNodes, err := b.Nodes(b.ctx, key)
	require.NoError(t, err)
	same(t, want, gotNodes)
	same(t, want[1], b.theNode(want[1].NodeKey))
}

func testWorkspaces(t *testing.T, open Open) {
	b := newBench(t, open)
	names := []string{b.workspace + "_b", b.workspace + "_a", b.workspace + "_A"}
	for _, w := range names {
		b.workspace = w
		require.Equal(t, int64(1), b.run("n").Run)
	}
	require.Equal(t, int64(2), b.run("n").Run)

	// What happens in one leaves the others alone.
	one := state.NodeKey{RunKey: state.RunKey{Workspace: names[0], Run: 1}, Node: "n"}
	require.NoError(t, b.PlanNode(b.ctx, one, nil, specs(1)))
	c := b.claim(one, 0, "w", 0)
	require.NoError(t, b.Commit(b.ctx, c, outcome("p"), start))
	for _, w := range names[1:] {
		other := state.NodeKey{RunKey: state.RunKey{Workspace: w, Run: 1}, Node: "n"}
		require.Equal(t, state.Pending, b.theNode(other).Status)
		require.Empty(t, b.manifestKeys(other))
	}

	all, err := b.Workspaces(b.ctx)
	require.NoError(t, err)
	require.IsIncreasing(t, all)
	require.Subset(t, all, names)
	runs, err := b.Runs(b.ctx, b.workspace+"_nobody")
	require.NoError(t, err)
	require.Empty(t, runs)
}

// everyStatus is all that a thing could be asked to move between.
var everyStatus = []state.Status{
	state.Pending, state.Running, state.Claimed, state.Succeeded, state.Complete,
	state.Failed, state.Stopped, state.Released, state.Lost, "", "unknown",
}

// runPaths leads a new run to each status.
var runPaths = map[state.Status][]state.Status{
	state.Running:  {},
	state.Complete: {state.Complete},
	state.Failed:   {state.Failed},
	state.Stopped:  {state.Stopped},
}

func testRunTransitions(t *testing.T, open Open) {
	b := newBench(t, open)
	for at, path := range runPaths {
		for _, from := range everyStatus {
			for _, to := range everyStatus {
				b.moveRun(at, path, from, to)
			}
		}
	}
	require.ErrorIs(t, b.SetRunStatus(b.ctx, state.RunKey{Workspace: b.workspace, Run: 1 << 40}, state.Running, state.Stopped, nil), state.ErrNotFound)
}

// moveRun brings a new run to a status and tries one move from there.
func (b *bench) moveRun(at state.Status, path []state.Status, from, to state.Status) {
	b.t.Helper()
	if !state.CanMove("run", from, to) && at != state.Running {
		return // refused by the table alone: one status is enough
	}
	key := b.run()
	last := state.Running
	for _, next := range path {
		f := failure()
		require.NoError(b.t, b.SetRunStatus(b.ctx, key, last, next, &f))
		last = next
	}
	before, err := b.Run(b.ctx, key)
	require.NoError(b.t, err)

	f := failure()
	f.Message = "later"
	err = b.SetRunStatus(b.ctx, key, from, to, &f)
	after, readErr := b.Run(b.ctx, key)
	require.NoError(b.t, readErr)
	what := fmt.Sprintf("run in %q: %q -> %q", at, from, to)
	switch {
	case !state.CanMove("run", from, to):
		require.ErrorIs(b.t, err, state.ErrIllegalMove, what)
		same(b.t, before, after)
	case at != from:
		require.ErrorIs(b.t, err, state.ErrConflict, what)
		same(b.t, before, after)
	default:
		require.NoError(b.t, err, what)
		require.Equal(b.t, to, after.Status, what)
		require.Equal(b.t, to != state.Running, !after.Finished.IsZero(), what)
		if to == state.Failed {
			same(b.t, &f, after.Failure)
		} else {
			require.Nil(b.t, after.Failure, what)
		}
	}
}

// nodePaths leads a new node to each status.
var nodePaths = map[state.Status][]state.Status{
	state.Pending:   {},
	state.Running:   {state.Running},
	state.Succeeded: {state.Running, state.Succeeded},
	state.Failed:    {state.Running, state.Failed},
	state.Stopped:   {state.Stopped},
}

func testNodeTransitions(t *testing.T, open Open) {
	b := newBench(t, open)
	for at, path := range nodePaths {
		for _, from := range everyStatus {
			for _, to := range everyStatus {
				b.moveNode(at, path, from, to)
			}
		}
	}
}

func (b *bench) moveNode(at state.Status, path []state.Status, from, to state.Status) {
	b.t.Helper()
	if !state.CanMove("node", from, to) && at != state.Running {
		return
	}
	key := state.NodeKey{RunKey: b.run("n"), Node: "n"}
	last := state.Pending
	for _, next := range path {
		require.NoError(b.t, b.SetNodeStatus(b.ctx, key, last, next))
		last = next
	}
	before := b.theNode(key)
	err := b.SetNodeStatus(b.ctx, key, from, to)
	after := b.theNode(key)
	what := fmt.Sprintf("node in %q: %q -> %q", at, from, to)
	switch {
	case !state.CanMove("node", from, to):
		require.ErrorIs(b.t, err, state.ErrIllegalMove, what)
		same(b.t, before, after)
	case at != from:
		require.ErrorIs(b.t, err, state.ErrConflict, what)
		same(b.t, before, after)
	default:
		require.NoError(b.t, err, what)
		require.Equal(b.t, to, after.Status, what)
		require.Equal(b.t, to.Terminal(), !after.Finished.IsZero(), what)
	}
}

// Of several that see the same status and move on from it, one wins.
func testTransitionRace(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.run("n")
	targets := []state.Status{state.Complete, state.Failed, state.Stopped}
	errs := together(12, func(i int) error {
		return b.SetRunStatus(b.ctx, key, state.Running, targets[i%len(targets)], nil)
	})
	require.Equal(t, 1, split(t, errs, state.ErrConflict))
	node := state.NodeKey{RunKey: key, Node: "n"}
	errs = together(12, func(int) error { return b.SetNodeStatus(b.ctx, node, state.Pending, state.Stopped) })
	require.Equal(t, 1, split(t, errs, state.ErrConflict))
}

func testNotFound(t *testing.T, open Open) {
	b := newBench(t, open)
	planned := b.planned(1)
	noRun := state.NodeKey{RunKey: state.RunKey{Workspace: b.workspace, Run: 99}, Node: "n"}
	noWorkspace := state.NodeKey{RunKey: state.RunKey{Workspace: b.workspace + "x", Run: 1}, Node: "n"}
	noNode := state.NodeKey{RunKey: planned.RunKey, Node: "N"}
	for _, key := range []state.NodeKey{noRun, noWorkspace} {
		_, err := b.Run(b.ctx, key.RunKey)
		require.ErrorIs(t, err, state.ErrNotFound)
		_, err = b.Nodes(b.ctx, key.RunKey)
		require.ErrorIs(t, err, state.ErrNotFound)
		_, err = b.Files(b.ctx, key.RunKey)
		require.ErrorIs(t, err, state.ErrNotFound)
		_, err = b.Checks(b.ctx, key.RunKey)
		require.ErrorIs(t, err, state.ErrNotFound)
		require.ErrorIs(t, b.SetRunStatus(b.ctx, key.RunKey, state.Running, state.Stopped, nil), state.ErrNotFound)
		require.ErrorIs(t, b.Reopen(b.ctx, key.RunKey, start), state.ErrNotFound)
	}
	for _, key := range []state.NodeKey{noRun, noWorkspace, noNode} {
		_, err := b.Node(b.ctx, key)
		require.ErrorIs(t, err, state.ErrNotFound)
		_, err = b.Batches(b.ctx, key)
		require.ErrorIs(t, err, state.ErrNotFound)
		_, err = b.Attempts(b.ctx, key)
		require.ErrorIs(t, err, state.ErrNotFound)
		_, err = b.Manifest(b.ctx, key)
		require.ErrorIs(t, err, state.ErrNotFound)
		_, err = b.SideParts(b.ctx, key)
		require.ErrorIs(t, err, state.ErrNotFound)
		require.ErrorIs(t, b.PlanNode(b.ctx, key, nil, specs(1)), state.ErrNotFound)
		require.ErrorIs(t, b.SetNodeStatus(b.ctx, key, state.Pending, state.Running), state.ErrNotFound)
	}
	for _, key := range []state.BatchKey{batchOf(noRun, 0), batchOf(noNode, 0), batchOf(planned, 1), batchOf(planned, -1)} {
		_, err := b.Claim(b.ctx, key, "w", start, start.Add(time.Hour))
		require.ErrorIs(t, err, state.ErrNotFound)
		c := state.Claim{BatchKey: key, Attempt: 1, Owner: "w"}
		require.ErrorIs(t, b.Extend(b.ctx, c, start), state.ErrNotFound)
		require.ErrorIs(t, b.Commit(b.ctx, c, state.Outcome{}, start), state.ErrNotFound)
		require.ErrorIs(t, b.Fail(b.ctx, c, failure(), state.Outcome{}, start), state.ErrNotFound)
		require.ErrorIs(t, b.Release(b.ctx, c, start), state.ErrNotFound)
	}
}
