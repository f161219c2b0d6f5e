package executor_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/run/executor"
	"thalweg/internal/run/job"
	"thalweg/internal/store/queue/inproc"
	"thalweg/internal/store/state"
	"thalweg/internal/test/queuetest/hub"
	"thalweg/internal/test/runtest"
)

// A process that cannot work on a run leaves its hints to others.
func TestHintsAreHandedOn(t *testing.T) {
	t.Parallel()
	ctx := runtest.Patient(t)
	b, broker := runtest.New(t), hub.New(hub.Faults{})
	fake := &runtest.Job{Batches: map[string]int{"a": 20, "b": 20, "c": 5}}
	unable := runtest.NewProcess(b, "unable", broker.Join(), nil)
	stopUnable := unable.Start(ctx)
	able := runtest.NewProcess(b, "able", broker.Join(), func(state.RunKey) job.Job { return fake })
	able.Exec.Slots = 1
	stop := able.Start(ctx, b.Run)
	require.Equal(t, state.Complete, <-able.Ended)
	require.NoError(t, stop())
	require.NoError(t, stopUnable())
	require.Zero(t, unable.Hints[executor.Used])
	require.Equal(t, 45, able.Hints[executor.Used])
	require.Less(t, unable.Hints[executor.Handed], 1_000, "it pauses between two of them")
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
