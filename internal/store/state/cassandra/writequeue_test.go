package cassandra

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
	"thalweg/internal/test/statetest"
)

// stopped lets conditional writes through when it is opened.
type stopped struct {
	begun chan struct{} // of the first
	once  sync.Once
	open  chan struct{}
}

func (s *stopped) pass(do func() (bool, error)) (bool, error) {
	s.once.Do(func() { close(s.begun) })
	<-s.open
	return do()
}

// What comes for a node while it is being changed is decided together and written at
// once: each call has its own answer, one that is refused harms no other, events have
// no gaps, and a lease that is renewed goes first.
func TestTogether(t *testing.T) {
	t.Parallel()
	const batches, others = 40, 6
	ctx := t.Context()
	c := &counter{}
	s, err := Open(ctx, Config{Config: newKeyspace(t), Requests: c})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	run, err := s.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: "w"}}, []state.NodeSpec{{Name: "n"}})
	require.NoError(t, err)
	key := state.NodeKey{RunKey: run, Node: "n"}
	specs := make([]state.BatchSpec, batches)
	for i := range specs {
		specs[i].Batch = i
	}
	now := time.Now()
	_, err = state.PlanNode(ctx, s, key, 0, state.Plan{Batches: specs}, "planner", now)
	require.NoError(t, err)
	bid := func(batch int, owner string) state.ClaimRequest {
		return state.ClaimRequest{Offer: state.Offer{BatchKey: state.BatchKey{NodeKey: key, Batch: batch}},
			Owner: owner, Token: owner, Now: now, Lease: now.Add(time.Hour)}
	}
	first, err := s.Claim(ctx, bid(0, "first"))
	require.NoError(t, err)
	gate := &stopped{begun: make(chan struct{}), open: make(chan struct{})}
	s.fate = gate.pass
	*c = counter{}
	errs := make([]error, 2*others+2)
	claims := make([]state.Claim, others+1)
	var all sync.WaitGroup
	all.Go(func() { claims[others], errs[2*others] = s.Claim(ctx, bid(others+1, "ahead")) })
	<-gate.begun
	waits := func(n int) func() bool {
		return func() bool {
			s.writeQueues.mu.Lock()
			defer s.writeQueues.mu.Unlock()
			return len(s.writeQueues.known[key].waiting) == n
		}
	}
	for i := range others {
		all.Go(func() { claims[i], errs[i] = s.Claim(ctx, bid(i+1, fmt.Sprint("one", i))) })
	}
	soon(t, waits(others))
	for i := range others {
		all.Go(func() { _, errs[others+i] = s.Claim(ctx, bid(i+1, fmt.Sprint("another", i))) })
	}
	soon(t, waits(2*others))
	all.Go(func() { errs[2*others+1] = s.Extend(ctx, first, now.Add(2*time.Hour)) })
	soon(t, waits(2*others+1))
	s.writeQueues.mu.Lock()
	require.Equal(t, "Extend", s.writeQueues.known[key].waiting[0].name)
	s.writeQueues.mu.Unlock()
	close(gate.open)
	all.Wait()
	for i, err := range errs {
		if i >= others && i < 2*others {
			require.ErrorIs(t, err, state.ErrNotClaimable, i)
			continue
		}
		require.NoError(t, err, i)
	}
	require.Equal(t, 2, c.conditional, "one that was under way, and one for all others")
	n, err := s.Node(ctx, key)
	require.NoError(t, err)
	require.Equal(t, int64(1+1+1+others), n.Revision, "the plan, and a claim each")
	for _, claim := range claims {
		require.NoError(t, s.Commit(ctx, claim, state.Outcome{Parts: []state.Part{{Key: fmt.Sprint(claim.Batch)}}},
			now))
	}
	require.NoError(t, statetest.Audit(ctx, s, run))
}

// Who leaves while others are decided is not waited for, and harms nobody.
func TestLeaves(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Config{Config: newKeyspace(t)})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	run, err := s.CreateRun(t.Context(), state.Run{RunKey: state.RunKey{Workspace: "w"}}, []state.NodeSpec{{Name: "n"}})
	require.NoError(t, err)
	key := state.NodeKey{RunKey: run, Node: "n"}
	gate := &stopped{begun: make(chan struct{}), open: make(chan struct{})}
	s.fate = gate.pass
	ctx, cancel := context.WithCancel(t.Context())
	order := state.Command{Kind: state.CommandStop, Epoch: 1, Mark: state.Mark{Time: time.Now()}}
	left, stays := make(chan error, 1), make(chan error, 1)
	go func() { left <- s.ApplyCommand(ctx, key, order) }()
	<-gate.begun
	go func() { stays <- s.ApplyCommand(t.Context(), key, order) }()
	cancel()
	require.ErrorIs(t, <-left, context.Canceled)
	close(gate.open)
	require.NoError(t, <-stays)
	n, err := s.Node(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, int64(1), n.Epoch)
	require.Equal(t, int64(1), n.Revision, "it was heard once")
	require.NoError(t, s.Close())
	require.Error(t, s.ApplyCommand(t.Context(), key, order), "of a store that is closed")
	require.False(t, errors.Is(s.ApplyCommand(t.Context(), key, order), state.ErrUnknown))
}

// soon waits for a condition that is near.
func soon(t *testing.T, met func() bool) {
	t.Helper()
	for !met() {
		require.NoError(t, t.Context().Err())
		runtime.Gosched()
	}
}
