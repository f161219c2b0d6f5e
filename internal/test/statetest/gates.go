package statetest

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
)

// waits makes a node wait for a decision about what a digest stands for.
func (b *bench) waits(key state.NodeKey, digest string) {
	b.t.Helper()
	require.NoError(b.t, b.MoveNode(b.ctx, key, state.Move{Epoch: b.theNode(key).Epoch, From: state.Pending,
		To:   state.Waiting,
		Gate: []byte("what is asked about " + digest), GateDigest: digest, Actor: "w", Now: start}))
}

// decides gives an order about a gate that was shown.
func (b *bench) decides(key state.NodeKey, kind state.CommandKind, digest string) error {
	b.t.Helper()
	return b.direct(key.RunKey, kind, state.CommandNode{Node: key.Node, Digest: digest, Role: "auditor",
		Answers: []byte(`{"limit":"3"}`)})
}

// decision returns a decision about a gate with that digest.
func decision(approved bool, digest string) *state.Decision {
	return &state.Decision{Approved: approved, Mark: state.Mark{Actor: "boss", Time: start, Reason: "why not"},
		Role: "auditor", Digest: digest, Answers: []byte(`{"limit":"3"}`)}
}

// made is a decision without the order's token, which it has.
func (b *bench) made(d *state.Decision) *state.Decision {
	b.t.Helper()
	require.NotNil(b.t, d)
	require.NotEmpty(b.t, d.Token)
	without := *d
	without.Token = ""
	return &without
}

// A node waits for a decision, and others do not wait with it. A decision about
// something else than it waits for is none; one that was made stands.
func testGate(t *testing.T, open Open) {
	b := newBench(t, open)
	run := b.run("gate", "other")
	gate, other := state.NodeKey{RunKey: run, Node: "gate"}, state.NodeKey{RunKey: run, Node: "other"}
	require.NoError(t, b.plan(other, nil, specs(1)))
	c := b.claim(other, 0, "w", 0)
	require.NoError(t, b.decides(gate, state.CommandApprove, "")) // before it waits
	require.Nil(t, b.theNode(gate).Decision)
	unasked := b.theNode(gate).Epoch
	b.waits(gate, "shown")
	n := b.theNode(gate)
	require.Equal(t, []string{"what is asked about shown", "shown"}, []string{string(n.Gate), n.GateDigest})
	require.ErrorIs(t, b.plan(gate, nil, nil), state.ErrConflict)

	for _, kind := range []state.CommandKind{state.CommandApprove, state.CommandReject} {
		for _, digest := range []string{"another", ""} {
			require.NoError(t, b.decides(gate, kind, digest))
			require.Equal(t, []any{state.Waiting, (*state.Decision)(nil)},
				[]any{b.theNode(gate).Status, b.theNode(gate).Decision}, "void")
		}
	}
	require.NoError(t, b.decides(gate, state.CommandApprove, "shown"))
	approved := b.theNode(gate)
	require.Equal(t, state.Pending, approved.Status)
	same(t, decision(true, "shown"), b.made(approved.Decision))
	require.Equal(t, []string{"what is asked about shown", "shown"}, []string{string(approved.Gate),
		approved.GateDigest})
	require.NoError(t, b.Extend(b.ctx, c, start), "others are not disturbed")

	require.NoError(t, b.decides(gate, state.CommandReject, "shown"))
	same(t, decision(true, "shown"), b.made(b.theNode(gate).Decision))
	again := state.Move{From: state.Pending, To: state.Waiting, Gate: []byte("again"), GateDigest: "shown", Now: start}
	for _, again.Epoch = range []int64{unasked, b.theNode(gate).Epoch} {
		require.ErrorIs(t, b.MoveNode(b.ctx, gate, again), state.ErrConflict, "nobody asks twice")
	}
	require.NoError(t, b.plan(gate, nil, nil))
	require.NoError(t, b.decides(gate, state.CommandReject, "shown"))
	require.NoError(t, b.move(gate, state.Running, state.Succeeded))
	require.NoError(t, b.decides(gate, state.CommandReject, "shown"))
	n = b.theNode(gate)
	require.Equal(t, state.Succeeded, n.Status)
	same(t, decision(true, "shown"), b.made(n.Decision))

	events, err := b.Events(b.ctx, gate, 0, 0)
	require.NoError(t, err)
	var asked []string
	var decided []*state.Decision
	for _, e := range events {
		if e.Gate != "" {
			asked = append(asked, e.Gate)
		}
		if e.Decision != nil {
			decided = append(decided, b.made(e.Decision))
		}
	}
	require.Equal(t, []string{"shown"}, asked)
	same(t, []*state.Decision{decision(true, "shown")}, decided)

	require.NoError(t, b.direct(run, state.CommandRedo, state.CommandNode{Node: "gate", Replan: true}))
	n = b.theNode(gate)
	require.Equal(t, []any{state.Pending, (*state.Decision)(nil), ""}, []any{n.Status, n.Decision, n.GateDigest},
		"it is asked again")
	b.waits(gate, "new")
	require.NoError(t, b.decides(gate, state.CommandApprove, "shown"))
	require.Equal(t, state.Waiting, b.theNode(gate).Status, "what was shown has changed")
}

// A rejected gate fails with the decision, and asks again when the run goes on.
func testGateRejected(t *testing.T, open Open) {
	b := newBench(t, open)
	key := state.NodeKey{RunKey: b.run("gate"), Node: "gate"}
	b.waits(key, "shown")
	require.NoError(t, b.decides(key, state.CommandReject, "shown"))
	n := b.theNode(key)
	require.Equal(t, state.Failed, n.Status)
	same(t, &state.Failure{Kind: fault.Canceled, Message: "rejected by boss", Detail: "why not",
		Node: "gate", Batch: -1},
		n.Failure)
	same(t, decision(false, "shown"), b.made(n.Decision))
	require.NoError(t, b.decides(key, state.CommandApprove, "shown"))
	same(t, n.Decision, b.theNode(key).Decision)
	require.NoError(t, b.direct(key.RunKey, state.CommandFail))
	same(t, n.Failure, b.theNode(key).Failure)
	require.NoError(t, b.direct(key.RunKey, state.CommandReopen))
	n = b.theNode(key)
	require.Equal(t, []any{state.Pending, (*state.Decision)(nil), "", (*state.Failure)(nil)},
		[]any{n.Status, n.Decision, n.GateDigest, n.Failure})

	// An approval that does not stand: what was shown had changed, or it came too late.
	b.waits(key, "shown")
	require.NoError(t, b.decides(key, state.CommandApprove, "shown"))
	require.NoError(t, b.move(key, state.Pending, state.Failed))
	same(t, decision(true, "shown"), b.made(b.theNode(key).Decision))
	require.NoError(t, b.direct(key.RunKey, state.CommandFail))
	require.NoError(t, b.direct(key.RunKey, state.CommandReopen))
	n = b.theNode(key)
	require.Equal(t, []any{state.Pending, (*state.Decision)(nil), ""}, []any{n.Status, n.Decision, n.GateDigest})

	// One with a failure of its own.
	b.waits(key, "shown")
	why := order(state.CommandReject, state.CommandNode{Node: "gate", Digest: "shown"})
	f := failure()
	why.Cause = &f
	require.NoError(t, state.Direct(b.ctx, b.Store, key.RunKey, why))
	same(t, &f, b.theNode(key).Failure)
}

// What was approved stays so over a stop and a pause; a gate that waits asks
// again after a stop, and goes on waiting over a pause.
func testGateAndOrders(t *testing.T, open Open) {
	b := newBench(t, open)
	run := b.run("approved", "waiting")
	approved, waiting := state.NodeKey{RunKey: run, Node: "approved"}, state.NodeKey{RunKey: run, Node: "waiting"}
	b.waits(approved, "shown")
	b.waits(waiting, "shown")
	require.NoError(t, b.decides(approved, state.CommandApprove, "shown"))
	require.NoError(t, b.direct(run, state.CommandPause))
	require.Equal(t, []state.Status{state.Paused, state.Paused, state.Waiting}, b.statuses(run))
	require.NoError(t, b.direct(run, state.CommandUnpause))
	require.Equal(t, []state.Status{state.Running, state.Pending, state.Waiting}, b.statuses(run))
	require.NoError(t, b.direct(run, state.CommandStop))
	require.ErrorIs(t, b.decides(waiting, state.CommandApprove, "shown"), state.ErrConflict, "a run that is over")
	require.Empty(t, b.theNode(waiting).GateDigest)
	require.NoError(t, b.direct(run, state.CommandReopen))
	same(t, decision(true, "shown"), b.made(b.theNode(approved).Decision))
	require.Equal(t, []state.Status{state.Running, state.Pending, state.Pending}, b.statuses(run))

	b.waits(waiting, "shown")
	require.NoError(t, b.direct(run, state.CommandPause))
	require.NoError(t, b.decides(waiting, state.CommandApprove, "shown"))
	require.Equal(t, []state.Status{state.Paused, state.Paused, state.Paused}, b.statuses(run),
		"decided, and planned when it goes on")
	require.NoError(t, b.direct(run, state.CommandUnpause))
	same(t, decision(true, "shown"), b.made(b.theNode(waiting).Decision))
	require.NoError(t, b.plan(waiting, nil, nil))
}

// A gate that is done again, however that is asked for, is planned again: a plan
// that stands would let it succeed without a decision.
func testGateRedone(t *testing.T, open Open) {
	b := newBench(t, open)
	for name, again := range map[string]func(key state.NodeKey) error{
		"redo": func(key state.NodeKey) error {
			return b.direct(key.RunKey, state.CommandRedo, state.CommandNode{Node: key.Node})
		},
		"redo of a batch": func(key state.NodeKey) error {
			return b.direct(key.RunKey, state.CommandRedo, state.CommandNode{Node: key.Node, Batches: []int{0}})
		},
		"reopened after it was invalid": func(key state.NodeKey) error {
			return errors.Join(b.direct(key.RunKey, state.CommandStop), b.direct(key.RunKey, state.CommandInvalidate,
				state.CommandNode{Node: key.Node}), b.direct(key.RunKey, state.CommandReopen))
		},
	} {
		for _, asked := range []bool{true, false} { // it may have been planned without
			run, err := b.CreateRun(b.ctx, state.Run{RunKey: state.RunKey{Workspace: b.workspace}, Created: start},
				[]state.NodeSpec{{Name: "gate", Kind: state.KindGate}})
			require.NoError(t, err)
			key := state.NodeKey{RunKey: run, Node: "gate"}
			if asked {
				b.waits(key, "shown")
				require.NoError(t, b.decides(key, state.CommandApprove, "shown"))
			}
			require.NoError(t, b.plan(key, nil, nil))
			require.NoError(t, b.move(key, state.Running, state.Succeeded))
			require.NoError(t, again(key), name)
			n := b.theNode(key)
			require.Equal(t, []any{state.Pending, "", (*state.Decision)(nil), ""},
				[]any{n.Status, n.PlanDigest, n.Decision,
					n.GateDigest}, name)
		}
	}
}

// Of two who decide at the same time, one does, and both see what.
func testGateRace(t *testing.T, open Open) {
	b := newBench(t, open)
	key := state.NodeKey{RunKey: b.run("gate"), Node: "gate"}
	b.waits(key, "shown")
	kinds := []state.CommandKind{state.CommandApprove, state.CommandReject}
	errs := together(8, func(i int) error {
		return state.Direct(b.ctx, b.Store, key.RunKey, order(kinds[i%2], state.CommandNode{Node: "gate", Digest: "shown"}))
	})
	require.Equal(t, 8, split(t, errs, nil))
	n := b.theNode(key)
	require.Equal(t, n.Decision.Approved, n.Status == state.Pending)
	require.Equal(t, !n.Decision.Approved, n.Status == state.Failed)
	events, err := b.Events(b.ctx, key, 0, 0)
	require.NoError(t, err)
	decided := 0
	for _, e := range events {
		if e.Decision != nil {
			decided++
		}
	}
	require.Equal(t, 1, decided)
}
