package statetest

import (
	"errors"
	"fmt"
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
)

func testRunNumbers(t *testing.T, open Open) {
	b := newBench(t, open)
	for want := int64(1); want <= 3; want++ {
		require.Equal(t, state.RunKey{Workspace: b.workspace, Run: want}, b.run())
	}
	runs, err := state.All(b.ctx, b.Runs, b.workspace)
	require.NoError(t, err)
	require.Len(t, runs, 3)
	for i, r := range runs {
		require.Equal(t, int64(3-i), r.Run)
		require.Equal(t, state.Running, r.Status)
	}
}

// Numbers have no gaps and no doubles, whoever asks at the same time.
func testRunNumbersConcurrently(t *testing.T, open Open) {
	b := newBench(t, open)
	const n = 24
	numbers := make([]int, n)
	errs := together(n, func(i int) error {
		key, err := b.CreateRun(b.ctx, state.Run{RunKey: state.RunKey{Workspace: b.workspace}},
			[]state.NodeSpec{{Name: "a"}})
		numbers[i] = int(key.Run)
		return err
	})
	require.Equal(t, n, split(t, errs, nil))
	sort.Ints(numbers)
	for i, got := range numbers {
		require.Equal(t, i+1, got)
	}
	runs, err := state.All(b.ctx, b.Runs, b.workspace)
	require.NoError(t, err)
	require.Len(t, runs, n)
}

func testRunRoundTrip(t *testing.T, open Open) {
	b := newBench(t, open)
	run := state.Run{
		RunKey: state.RunKey{Workspace: b.workspace, Run: 77}, // the number is the store's business
		Status: state.Failed,                                  // so is the status
		Token:  "mine",
		Script: "path dir/script.yaml", Sources: []int64{3, 1}, ScriptPath: "dir/script.yaml",
		ParamsPath: "dir/params.json", Fingerprint: "sha256:00",
		StartNodes: []string{"read", "join"}, Description: "a test", Created: start, Actor: "me@here", Parent: 7,
		Deadline: start.Add(time.Hour),
		Program:  "v1", Engine: "v2", BucketHash: "h3", Priority: state.PriorityHigh,
		Limit: &state.Limit{Elapsed: time.Hour, Cost: 5_000_000, PerHour: 72_500, PerSlotHour: 1,
			Expected: map[string]time.Duration{"n": time.Minute}},
		Pins: []state.Pin{{Kind: state.PinScript, Name: "a.yaml", Digest: "d", Bytes: 3, Redacted: true}},
	}
	nodes := []state.NodeSpec{
		{Name: "join", Kind: "table_lookup_table", Ordinal: 1, Inputs: []string{"read", "other"}, Table: "joined",
			Fingerprint: "f"},
		{Name: "read", Kind: "file_table", Ordinal: 0},
	}
	key, err := b.CreateRun(b.ctx, run, nodes)
	require.NoError(t, err)
	run.Run, run.Status = 1, state.Running
	got, err := b.Run(b.ctx, key)
	require.NoError(t, err)
	same(t, run, got)
	list, err := state.All(b.ctx, b.Runs, b.workspace)
	require.NoError(t, err)
	run.Pins = nil // lists are light
	run.Nodes = []state.NodeBrief{{Name: "read", Status: state.Pending},
		{Name: "join", Table: "joined", Status: state.Pending}}
	same(t, []state.Run{run}, list)

	want := []state.Node{
		{NodeKey: state.NodeKey{RunKey: key, Node: "read"}, NodeSpec: nodes[1], Status: state.Pending},
		{NodeKey: state.NodeKey{RunKey: key, Node: "join"}, NodeSpec: nodes[0], Status: state.Pending},
	}
	gotNodes, err := b.Nodes(b.ctx, key)
	require.NoError(t, err)
	same(t, want, gotNodes)
	require.Zero(t, gotNodes[0].Revision)
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
	require.NoError(t, b.plan(one, nil, specs(1)))
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
	runs, err := state.All(b.ctx, b.Runs, b.workspace+"_nobody")
	require.NoError(t, err)
	require.Empty(t, runs)
}

// everyStatus is all that a thing could be asked to move between.
var everyStatus = []state.Status{
	state.Pending, state.Running, state.Claimed, state.Succeeded, state.Complete,
	state.Failed, state.Stopped, state.Paused, state.Waiting, state.Released, state.Lost, "", "unknown",
}

// runAt makes a run of no nodes in a status.
func (b *bench) runAt(at state.Status) state.RunKey {
	b.t.Helper()
	key := b.run()
	switch at {
	case state.Complete:
		require.NoError(b.t, b.CompleteRun(b.ctx, key, 0, "w", start))
	case state.Failed:
		require.NoError(b.t, b.direct(key, state.CommandFail))
	case state.Stopped:
		require.NoError(b.t, b.direct(key, state.CommandStop))
	case state.Paused:
		require.NoError(b.t, b.direct(key, state.CommandPause))
	}
	return key
}

// A run moves by orders and by being complete, and is as they say.
func testRunTransitions(t *testing.T, open Open) {
	b := newBench(t, open)
	to := map[state.CommandKind]map[state.Status]state.Status{
		state.CommandStop:    {state.Running: state.Stopped, state.Paused: state.Stopped},
		state.CommandFail:    {state.Running: state.Failed, state.Paused: state.Failed},
		state.CommandPause:   {state.Running: state.Paused},
		state.CommandUnpause: {state.Paused: state.Running},
		state.CommandReopen: {state.Running: state.Running, state.Paused: state.Running, state.Failed: state.Running,
			state.Stopped: state.Running},
		state.CommandDrop:       {state.Failed: state.Failed, state.Stopped: state.Stopped, state.Complete: state.Complete},
		state.CommandInvalidate: {state.Failed: state.Failed, state.Stopped: state.Stopped, state.Complete: state.Complete},
		state.CommandTake:       {state.Failed: state.Failed},
		state.CommandRedo:       {}, // of nothing
		state.CommandForesee:    {}, // no limit
		state.CommandApprove:    {},
		state.CommandReject:     {},
		"unknown":               {},
	}
	for kind, moves := range to {
		for _, at := range []state.Status{state.Running, state.Paused, state.Complete, state.Failed, state.Stopped} {
			key, what := b.runAt(at), fmt.Sprintf("%s a run that is %s", kind, at)
			before, err := b.Run(b.ctx, key)
			require.NoError(t, err)
			err = b.direct(key, kind)
			after, readErr := b.Run(b.ctx, key)
			require.NoError(t, readErr)
			want, ok := moves[at]
			if !ok {
				require.ErrorIs(t, err, state.ErrConflict, what)
				same(t, before, after)
				continue
			}
			require.NoError(t, err, what)
			require.Equal(t, want, after.Status, what)
			require.Equal(t, want.Terminal(), !after.Finished.IsZero(), what)
			require.Equal(t, want == state.Failed, after.Failure != nil, what)
			require.Equal(t, kind == state.CommandInvalidate, after.Invalidated != nil, what)
			require.Equal(t, kind == state.CommandDrop, after.Dropped != nil, what)
			require.Equal(t, before.Epoch+1, after.Epoch)
			require.True(t, after.Command.Done)
			require.Equal(t, "boss", after.Command.Actor)
		}
	}
	key := b.runAt(state.Running)
	require.ErrorIs(t, b.CompleteRun(b.ctx, key, 1, "w", start), state.ErrConflict, "an order that the run has not had")
	for range 2 { // the second time as one that did not hear the answer
		require.NoError(t, b.CompleteRun(b.ctx, key, 0, "w", start))
	}
	key = b.runAt(state.Stopped)
	require.ErrorIs(t, b.CompleteRun(b.ctx, key, 1, "w", start), state.ErrConflict)
}

// nodePaths leads a new node to each status.
var nodePaths = map[state.Status]func(b *bench, key state.NodeKey) error{
	state.Pending: func(*bench, state.NodeKey) error { return nil },
	state.Waiting: func(b *bench, key state.NodeKey) error { return b.move(key, state.Pending, state.Waiting) },
	state.Running: func(b *bench, key state.NodeKey) error { return b.plan(key, nil, nil) },
	state.Succeeded: func(b *bench, key state.NodeKey) error {
		return errors.Join(b.plan(key, nil, nil), b.move(key, state.Running, state.Succeeded))
	},
	state.Failed: func(b *bench, key state.NodeKey) error {
		return errors.Join(b.plan(key, nil, nil), b.move(key, state.Running, state.Failed))
	},
	state.Stopped: func(b *bench, key state.NodeKey) error { return b.direct(key.RunKey, state.CommandStop) },
	state.Paused:  func(b *bench, key state.NodeKey) error { return b.direct(key.RunKey, state.CommandPause) },
	state.Invalidated: func(b *bench, key state.NodeKey) error {
		return errors.Join(b.direct(key.RunKey, state.CommandStop), b.direct(key.RunKey, state.CommandInvalidate))
	},
}

func testNodeTransitions(t *testing.T, open Open) {
	b := newBench(t, open)
	for at := range nodePaths {
		for _, from := range everyStatus {
			for _, to := range everyStatus {
				b.moveNode(at, from, to)
			}
		}
	}
}

func (b *bench) moveNode(at, from, to state.Status) {
	b.t.Helper()
	if !state.Settles(from, to) && at != state.Running {
		return // refused by the table alone: one status is enough
	}
	key := state.NodeKey{RunKey: b.run("n"), Node: "n"}
	require.NoError(b.t, nodePaths[at](b, key))
	before := b.theNode(key)
	require.Equal(b.t, at, before.Status)
	err := b.move(key, from, to)
	after := b.theNode(key)
	what := fmt.Sprintf("node in %q: %q -> %q", at, from, to)
	switch {
	case !state.Settles(from, to):
		require.ErrorIs(b.t, err, state.ErrIllegalMove, what)
		same(b.t, before, after)
	case at == to: // by somebody who did not hear the answer
		require.NoError(b.t, err, what)
		same(b.t, before, after)
	case at != from:
		require.ErrorIs(b.t, err, state.ErrConflict, what)
		same(b.t, before, after)
	default:
		require.NoError(b.t, err, what)
		require.Equal(b.t, to, after.Status, what)
		require.Equal(b.t, to.Terminal(), !after.Finished.IsZero(), what)
		require.Equal(b.t, to == state.Failed, after.Failure != nil, what)
		require.Equal(b.t, to == state.Waiting, after.Gate != nil, what)
		require.Equal(b.t, before.Revision+1, after.Revision, what)
		require.ErrorIs(b.t, b.MoveNode(b.ctx, key, state.Move{Epoch: 7, From: from, To: to}), state.ErrConflict,
			"an order that the node has not heard")
	}
}

// Of several that see the same status and move on from it, one way is gone.
func testTransitionRace(t *testing.T, open Open) {
	b := newBench(t, open)
	key := state.NodeKey{RunKey: b.run("n"), Node: "n"}
	require.NoError(t, b.plan(key, nil, nil))
	targets := []state.Status{state.Succeeded, state.Failed}
	errs := together(12, func(i int) error {
		return b.MoveNode(b.ctx, key, state.Move{From: state.Running, To: targets[i%2], Now: start})
	})
	require.Equal(t, 6, split(t, errs, state.ErrConflict))
	require.Equal(t, int64(2), b.theNode(key).Revision, "it was planned and moved, each once")
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
		_, err = b.Events(b.ctx, state.NodeKey{RunKey: key.RunKey}, 0, 0)
		require.ErrorIs(t, err, state.ErrNotFound)
		_, err = b.Acquire(b.ctx, key.RunKey, "r", "w", start, start)
		require.ErrorIs(t, err, state.ErrNotFound)
		require.ErrorIs(t, b.Resign(b.ctx, key.RunKey, "r", "w"), state.ErrNotFound)
		require.ErrorIs(t, b.CompleteRun(b.ctx, key.RunKey, 0, "w", start), state.ErrNotFound)
		require.ErrorIs(t, b.BeginCommand(b.ctx, key.RunKey, order(state.CommandStop)), state.ErrNotFound)
		require.ErrorIs(t, b.CommitCommand(b.ctx, key.RunKey, 1, start), state.ErrNotFound)
		require.ErrorIs(t, b.direct(key.RunKey, state.CommandStop), state.ErrNotFound)
	}
	for _, key := range []state.NodeKey{noRun, noWorkspace, noNode} {
		_, err := b.Node(b.ctx, key)
		require.ErrorIs(t, err, state.ErrNotFound)
		for name, err := range nodeLists(b.ctx, b.Store, key) {
			require.ErrorIs(t, err, state.ErrNotFound, name)
		}
		require.ErrorIs(t, planAt(b.ctx, b.Store, key, 0, nil, specs(1)), state.ErrNotFound)
		require.ErrorIs(t, b.StagePlan(b.ctx, key, "d", state.PlanPiece{Batches: specs(1)}), state.ErrNotFound)
		require.ErrorIs(t, b.MoveNode(b.ctx, key, state.Move{From: state.Pending, To: state.Failed}), state.ErrNotFound)
		require.ErrorIs(t, b.ApplyCommand(b.ctx, key, order(state.CommandStop)), state.ErrNotFound)
		require.ErrorIs(t, b.Purge(b.ctx, key), state.ErrNotFound)
		require.ErrorIs(t, b.Forget(b.ctx, batchOf(key, 0), 1), state.ErrNotFound)
	}
	for _, key := range []state.BatchKey{batchOf(noRun, 0), batchOf(noNode, 0), batchOf(planned, 1),
		batchOf(planned, -1)} {
		_, err := b.Claim(b.ctx, state.ClaimRequest{Offer: state.Offer{BatchKey: key}, Owner: "w", Now: start,
			Lease: start.Add(time.Hour)})
		require.ErrorIs(t, err, state.ErrNotFound)
		c := state.Claim{BatchKey: key, Attempt: 1, Owner: "w"}
		require.ErrorIs(t, b.Extend(b.ctx, c, start), state.ErrNotFound)
		require.ErrorIs(t, b.Commit(b.ctx, c, state.Outcome{}, start), state.ErrNotFound)
		require.ErrorIs(t, b.Fail(b.ctx, c, failure(), state.Outcome{}, start), state.ErrNotFound)
		require.ErrorIs(t, b.Release(b.ctx, c, start), state.ErrNotFound)
	}
}
