package coordinator_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/run/coordinator"
	"thalweg/internal/store/queue"
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
	claim, err := b.Store.Claim(t.Context(), state.ClaimRequest{Offer: d.Offer, Owner: "test",
		Token: time.Now().String(), Now: now, Lease: now.Add(time.Minute)})
	require.NoError(t, err)
	require.NoError(t, b.Store.Commit(t.Context(), claim, state.Outcome{}, now))
}
