package coordinator_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/runtest"
)

// endlessPlan is a job whose nodes take for ever to be planned.
type endlessPlan struct {
	*runtest.Job
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
	b := runtest.New(t)
	fake := endlessPlan{&runtest.Job{}, make(chan struct{})}
	ctx, cancel := context.WithTimeout(t.Context(), effort.Patience)
	defer cancel()
	go func() {
		<-fake.begun
		b.Order(t, state.CommandStop)
	}()
	c := &runtest.Worker{}
	c.Exec.Store, c.Exec.Owner, c.Coor.Store, c.Coor.Owner = b.Store, t.Name(), b.Store, t.Name()
	out, err := c.Work(ctx, map[state.RunKey]job.Job{b.Run: fake})
	require.NoError(t, err)
	require.NoError(t, ctx.Err(), "it has waited for the plan")
	require.Equal(t, state.Stopped, out[b.Run])
}

// Another order leaves a plan that is on its way alone: it is dropped when it comes.
func TestAnotherOrderDoesNotEndPlanning(t *testing.T) {
	t.Parallel()
	b := runtest.New(t)
	first := true
	fake := &runtest.Job{Batches: map[string]int{"a": 1, "b": 1, "c": 1}}
	fake.Plans = func(n state.Node) (state.Plan, error) {
		if n.Name == "a" && first {
			first = false
			b.Order(t, state.CommandReopen)
		}
		return runtest.Plan(1), nil
	}
	status, err := b.Work(t.Context(), t, fake, nil)
	require.NoError(t, err)
	require.Equal(t, state.Complete, status)
}
