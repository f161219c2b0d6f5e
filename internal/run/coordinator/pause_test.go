package coordinator_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/runtest"
)

// claimed counts the batches of a bundle that somebody is at work on.
func claimed(t testing.TB, b runtest.Bundle) (n int) {
	t.Helper()
	for _, node := range []string{"a", "b", "c"} {
		for _, batch := range b.Batches(t, node) {
			if batch.Status == state.Claimed {
				n++
			}
		}
	}
	return n
}

// pausingJob pauses its run while batches of a are in flight.
func pausingJob(b runtest.Bundle, t testing.TB) *runtest.Job {
	fake := &runtest.Job{Batches: map[string]int{"a": 40, "b": 20, "c": 3}}
	var once sync.Once
	paused := make(chan struct{})
	fake.Executes = func(context.Context, state.Claim) (job.Result, error) {
		once.Do(func() {
			b.Order(t, state.CommandPause)
			close(paused)
		})
		<-paused
		return job.Result{}, nil
	}
	return fake
}

// A run that is paused ends what is in flight, claims nothing more although
// hints are queued, and is left; it goes on where it was.
func TestAPausedRunEndsWhatIsInFlightAndIsLeft(t *testing.T) {
	t.Parallel()
	b := runtest.New(t)
	fake := pausingJob(b, t)
	status, err := b.Work(context.Background(), t, fake, nil)
	require.NoError(t, err)
	require.Equal(t, state.Paused, status)
	require.Zero(t, claimed(t, b))
	before := len(fake.Begun())
	require.LessOrEqual(t, before, 3, "no more than there are slots")
	done := 0
	for _, a := range append(b.Attempts(t, "a"), b.Attempts(t, "b")...) {
		require.Equal(t, state.Succeeded, a.Status)
		done++
	}
	require.Equal(t, before, done)

	b.Order(t, state.CommandUnpause)
	status, err = b.Work(context.Background(), t, fake, nil)
	require.NoError(t, err)
	require.Equal(t, state.Complete, status)
	require.Equal(t, 63, len(fake.Begun()), "each batch once")
}

// Who is told to stay with a paused run goes on with it.
func TestWhoStaysGoesOnWithAPausedRun(t *testing.T) {
	t.Parallel()
	b := runtest.New(t)
	fake := pausingJob(b, t)
	var human sync.WaitGroup
	defer human.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), effort.Patience)
	defer cancel()
	human.Go(func() {
		for ctx.Err() == nil {
			run, err := b.Store.Run(ctx, b.Run)
			if err == nil && run.Status == state.Paused && claimed(t, b) == 0 {
				b.Order(t, state.CommandUnpause)
				return
			}
		}
	})
	status, err := b.Work(ctx, t, fake, func(c *runtest.Worker) { c.Coor.Stay, c.Coor.Follow = true, time.Millisecond })
	require.NoError(t, err)
	require.Equal(t, state.Complete, status)
	require.Equal(t, 63, len(fake.Begun()), "each batch once")
}

// A run in which only a decision is missing is left, and holds nothing.
func TestARunThatWaitsIsLeft(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	b := runtest.New(t)
	c := state.NodeKey{RunKey: b.Run, Node: "c"}
	require.NoError(t, b.Store.MoveNode(context.Background(), c, state.Move{From: state.Pending, To: state.Waiting,
		GateDigest: "shown", Now: time.Now()}))
	fake := &runtest.Job{Batches: map[string]int{"a": 5, "b": 1}}
	status, err := b.Work(context.Background(), t, fake, nil)
	require.NoError(t, err)
	require.Equal(t, state.Waiting, status)
	require.Equal(t, 5, fake.Executed("a"), "what need not wait is done")
	role, err := b.Store.Acquire(context.Background(), b.Run, "coordinator", "another", time.Now(),
		time.Now().Add(time.Hour))
	require.NoError(t, err, role.Owner)
	require.NoError(t, b.Store.Resign(context.Background(), b.Run, "coordinator", "another"))

	approve := state.Command{Kind: state.CommandApprove, Token: "t", Mark: state.Mark{Time: time.Now()},
		Nodes: []state.CommandNode{{Node: "c", Digest: "shown"}}}
	require.NoError(t, state.Direct(context.Background(), b.Store, b.Run, approve))
	status, err = b.Work(context.Background(), t, fake, nil)
	require.NoError(t, err)
	require.Equal(t, state.Complete, status)
}
