package executor_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// endlessPlan is a job whose nodes take for ever to be planned.
type endlessPlan struct {
	*fakeJob
	begun chan struct{}
}

func (j endlessPlan) Plan(ctx context.Context, _ state.Node) (state.Plan, error) {
	close(j.begun)
	<-ctx.Done()
	return state.Plan{}, ctx.Err()
}

// A coordinator that plans a node for long sees that somebody stops the run.
func TestAStopEndsPlanning(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	fake := endlessPlan{&fakeJob{}, make(chan struct{})}
	ctx, cancel := context.WithTimeout(t.Context(), effort.Patience)
	defer cancel()
	go func() {
		<-fake.begun
		b.order(t, state.CommandStop)
	}()
	c := &crew{}
	c.exec.Store, c.exec.Owner, c.coor.Store, c.coor.Owner = b.store, t.Name(), b.store, t.Name()
	out, err := c.work(ctx, map[state.RunKey]job.Job{b.run: fake})
	require.NoError(t, err)
	require.NoError(t, ctx.Err(), "it has waited for the plan")
	require.Equal(t, state.Stopped, out[b.run])
}

// Another order leaves a plan that is on its way alone: it is dropped when it comes.
func TestAnotherOrderDoesNotEndPlanning(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	first := true
	fake := &fakeJob{batches: map[string]int{"a": 1, "b": 1, "c": 1}}
	fake.plan = func(n state.Node) (state.Plan, error) {
		if n.Name == "a" && first {
			first = false
			b.order(t, state.CommandReopen)
		}
		return planOf(1), nil
	}
	status, err := b.work(t.Context(), t, fake, nil)
	require.NoError(t, err)
	require.Equal(t, state.Complete, status)
}
