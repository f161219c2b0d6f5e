package executor_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/run/coordinator"
	"thalweg/internal/run/executor"
	"thalweg/internal/run/job"
	"thalweg/internal/store/queue"
	"thalweg/internal/store/queue/inproc"
	"thalweg/internal/store/state"
	"thalweg/internal/test/queuetest/hub"
	"thalweg/internal/test/runtest"
)

// foreign are hints of another run, more than the run in question has.
const foreign = 50

// behindOthers leads a run whose hints wait among those of another run.
func behindOthers(t *testing.T) (b runtest.Bundle, broker *hub.Hub, here *hub.Member, others []queue.Hint) {
	ctx := runtest.Patient(t)
	b, broker = runtest.New(t), hub.New(hub.Faults{})
	here = broker.Join()
	node := state.NodeKey{RunKey: state.RunKey{Workspace: "another", Run: 1}, Node: "x"}
	for i := range foreign {
		others = append(others, queue.Hint{Offer: state.Offer{BatchKey: state.BatchKey{NodeKey: node, Batch: i}}})
	}
	require.NoError(t, here.Publish(ctx, others...))
	fake := &runtest.Job{Batches: map[string]int{"a": lostBatches, "b": 1, "c": 1}}
	c := coordinator.New(ctx, coordinator.Config{Store: b.Store, Queue: broker.Join(), Job: fake,
		Owner: "leader", Slots: 1,
		Grace: 50 * time.Millisecond, Follow: 5 * time.Millisecond}, b.Run)
	done := make(chan error, 1)
	go func() {
		_, err := c.Run()
		done <- err
	}()
	t.Cleanup(func() {
		c.Leave(nil)
		require.NoError(t, <-done)
	})
	return b, broker, here, others
}

const lostBatches = 20

// Hints that get lost while another run's wait are published again: the last one of them
// first, and when that is taken, those that were before it.
func TestLostHintsAmongOthers(t *testing.T) {
	t.Parallel()
	ctx := runtest.Patient(t)
	b, broker, here, others := behindOthers(t)
	runtest.Wait(t, func() bool { return broker.Left() >= foreign+lostBatches })
	broker.Purge()
	require.NoError(t, here.Publish(ctx, others...))
	runtest.Wait(t, func() bool { return broker.Left() > foreign })
	used := map[int]bool{}
	for len(used) < lostBatches {
		d, err := here.Receive(ctx)
		require.NoError(t, err)
		if d.Workspace == "another" {
			require.NoError(t, d.Back(ctx)) // what waits stays as much
			continue
		}
		if d.Node == "a" && !used[d.Batch] {
			complete(t, b, d)
			used[d.Batch] = true
		}
		require.NoError(t, d.Done(ctx))
	}
}

// What waits for long behind another run's hints has few too many.
func TestHintsThatWaitBehindOthers(t *testing.T) {
	t.Parallel()
	_, broker, _, _ := behindOthers(t)
	const own = lostBatches + 1 // of nodes a and b
	runtest.Wait(t, func() bool { return broker.Left() > foreign+own })
	require.LessOrEqual(t, broker.Left(), foreign+own+2, "one of each node, and no more before it is taken")
}

func complete(t *testing.T, b runtest.Bundle, d queue.Delivery) {
	t.Helper()
	now := time.Now()
	claim, err := b.Store.Claim(t.Context(), state.Bid{Offer: d.Offer, Owner: "test",
		Token: time.Now().String(), Now: now, Lease: now.Add(time.Minute)})
	require.NoError(t, err)
	require.NoError(t, b.Store.Commit(t.Context(), claim, state.Outcome{}, now))
}

// A worker that has no room for a class of work leaves its hints to others, claims
// nothing of it, and goes on with the rest.
func TestNoRoomForAClass(t *testing.T) {
	t.Parallel()
	ctx := runtest.Patient(t)
	b, broker := runtest.New(t), hub.New(hub.Faults{})
	fake := &runtest.Job{Batches: map[string]int{"a": 20, "b": 20, "c": 5}}
	full := runtest.NewProcess(b, "full", broker.Join(), func(state.RunKey) job.Job { return fake })
	full.Exec.Room = func(string) (func(), bool) { return nil, false }
	stopFull := full.Start(ctx)
	able := runtest.NewProcess(b, "able", broker.Join(), func(state.RunKey) job.Job { return fake })
	var inside atomic.Int64
	able.Exec.Room = func(string) (func(), bool) {
		inside.Add(1)
		return func() { inside.Add(-1) }, true
	}
	stop := able.Start(ctx, b.Run)
	require.Equal(t, state.Complete, <-able.Ended)
	require.NoError(t, stop())
	require.NoError(t, stopFull())
	require.Zero(t, full.Hints[executor.Used])
	require.Equal(t, 45, able.Hints[executor.Used])
	require.Less(t, full.Hints[executor.Handed], 1_000, "it pauses between two of them")
	require.Zero(t, inside.Load())
}

// In a process that has a queue of its own, what had no room comes again.
func TestNoRoomAlone(t *testing.T) {
	t.Parallel()
	ctx := runtest.Patient(t)
	b := runtest.New(t)
	fake := &runtest.Job{Batches: map[string]int{"a": 20, "b": 20, "c": 5}}
	p := runtest.NewProcess(b, "alone", inproc.New(0), func(state.RunKey) job.Job { return fake })
	var asked atomic.Int64
	p.Exec.Room = func(string) (func(), bool) { return func() {}, asked.Add(1)%4 != 0 }
	stop := p.Start(ctx, b.Run)
	require.Equal(t, state.Complete, <-p.Ended)
	require.NoError(t, stop())
	require.Equal(t, 45, p.Hints[executor.Used])
	require.NotZero(t, p.Hints[executor.Handed])
}
