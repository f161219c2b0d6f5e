package coordinator_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/run/orders"
	"thalweg/internal/store/state"
	"thalweg/internal/test/runtest"
)

// between does something between the reading of one node and that of the last,
// once they are as somebody waits for: a list of a store is not of one moment.
type between struct {
	state.Store
	when func(nodes []state.Node) bool
	do   func()
	once sync.Once
}

func (s *between) Nodes(ctx context.Context, key state.RunKey) ([]state.Node, error) {
	nodes, err := s.Store.Nodes(ctx, key)
	if err != nil || !s.when(nodes) {
		return nodes, err
	}
	s.once.Do(func() {
		s.do()
		last := len(nodes) - 1
		nodes[last], err = s.Node(ctx, nodes[last].NodeKey)
	})
	return nodes, err
}

// A coordinator that has read some nodes before an order and others behind it
// plans nothing from that: what a node reads may be about to be made again.
func TestNothingIsPlannedFromTwoMoments(t *testing.T) {
	t.Parallel()
	b := runtest.New(t)
	ctx := context.Background()
	st := &between{Store: b.Store,
		when: func(nodes []state.Node) bool {
			return nodes[0].Status == state.Succeeded && nodes[1].Status == state.Succeeded
		},
		do: func() {
			require.NoError(t, state.Direct(ctx, b.Store, b.Run, state.Command{Kind: state.CommandRedo, Token: "again",
				Mark:  state.Mark{Time: time.Now()},
				Nodes: []state.CommandNode{{Node: "a", Replan: true}, {Node: "c", Replan: true}}}))
		}}
	fake := &runtest.Job{Batches: map[string]int{"a": 2, "b": 2, "c": 1}}
	fake.Plans = func(n state.Node) (state.Plan, error) {
		if n.Name == "c" {
			read, err := b.Store.Node(ctx, state.NodeKey{RunKey: b.Run, Node: "a"})
			require.NoError(t, err)
			require.Equal(t, state.Succeeded, read.Status, "c is planned, which reads a")
		}
		return runtest.Plan(fake.Batches[n.Name]), nil
	}
	status, err := b.Work(ctx, t, fake, func(c *runtest.Worker) { c.Exec.Store, c.Coor.Store = st, st })
	require.NoError(t, err)
	require.Equal(t, state.Complete, status)
	require.Equal(t, 4, fake.Executed("a"))
}

// settling is a job that finds at first that what a has taken over is gone, and
// something else meanwhile.
type settling struct {
	runtest.Job
	store state.Store
	once  sync.Once
	finds func(n state.Node)
}

func (j *settling) Settle(ctx context.Context, n state.Node) (err error) {
	if n.Name == "a" {
		j.once.Do(func() {
			j.finds(n)
			if err = orders.PlanAgain(ctx, j.store, n, state.Mark{Time: time.Now(), Reason: "it is gone"}); err == nil {
				err = state.ErrConflict
			}
		})
	}
	return err
}

// What was taken over is found to be gone by one coordinator when another has just
// found it good, and planned what reads it: that is planned again, too.
func TestWhatIsGoneIsPlannedAgainWithItsReaders(t *testing.T) {
	t.Parallel()
	b := runtest.New(t)
	ctx := context.Background()
	fake := &settling{store: b.Store, Job: runtest.Job{Batches: map[string]int{"a": 1, "b": 0, "c": 1}}}
	fake.finds = func(n state.Node) {
		require.NoError(t, b.Store.MoveNode(ctx, n.NodeKey, state.Move{Epoch: n.Epoch, From: state.Running,
			To: state.Succeeded, Now: time.Now()}))
		_, err := state.PlanNode(ctx, b.Store, state.NodeKey{RunKey: b.Run, Node: "c"}, 0, runtest.Plan(1),
			"other", time.Now())
		require.NoError(t, err)
	}
	status, err := b.Work(ctx, t, fake, nil)
	require.NoError(t, err)
	require.Equal(t, state.Complete, status)
	c, err := b.Store.Node(ctx, state.NodeKey{RunKey: b.Run, Node: "c"})
	require.NoError(t, err)
	require.Equal(t, 1, c.Generation)
	require.Equal(t, 2, fake.Executed("a"))
}

// A coordinator that is behind does not fail a run again which somebody has
// reopened since it was seen to fail.
func TestAFailureOfBeforeEndsNothing(t *testing.T) {
	t.Parallel()
	b := runtest.New(t)
	ctx := context.Background()
	give := func(o state.Command, token string) {
		o.Token, o.Time = token, time.Now()
		require.NoError(t, state.Direct(ctx, b.Store, b.Run, o))
	}
	a := state.NodeKey{RunKey: b.Run, Node: "a"}
	require.NoError(t, b.Store.MoveNode(ctx, a, state.Move{From: state.Pending, To: state.Failed,
		Failure: &state.Failure{Message: "of before"}, Now: time.Now()}))
	st := &between{Store: b.Store,
		when: func(nodes []state.Node) bool { return nodes[0].Status == state.Failed },
		do: func() {
			give(state.Command{Kind: state.CommandFail, Cause: &state.Failure{Message: "of before"}}, "other")
			give(state.Command{Kind: state.CommandReopen}, "again")
		}}
	fake := &runtest.Job{Batches: map[string]int{"a": 1, "b": 1, "c": 1}}
	status, err := b.Work(ctx, t, fake, func(c *runtest.Worker) { c.Exec.Store, c.Coor.Store = st, st })
	require.NoError(t, err)
	require.Equal(t, state.Complete, status)
}
