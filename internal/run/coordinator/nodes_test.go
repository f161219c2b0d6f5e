package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/runtest"
)

func TestRunsNodesInOrderAndCompletes(t *testing.T) {
	t.Parallel()
	b := runtest.New(t)
	fake := &runtest.Job{Batches: map[string]int{"a": 5, "b": 1, "c": 3}}
	fake.Executes = func(ctx context.Context, c state.Claim) (job.Result, error) {
		if c.Node == "c" && (fake.Executed("a") < 5 || fake.Executed("b") < 1) {
			return job.Result{}, errors.New("c began before its inputs were complete")
		}
		return job.Result{Outcome: state.Outcome{Stats: state.Stats{RowsOut: 2}}}, nil
	}
	var finished []string
	status, err := b.Work(context.Background(), t, fake, func(c *runtest.Worker) {
		c.Coor.Observe = func(e job.Event) {
			if e.Kind == job.NodeFinished {
				finished = append(finished, e.Node)
			}
		}
	})
	require.NoError(t, err)
	require.Equal(t, state.Complete, status)
	require.ElementsMatch(t, []string{"a", "b", "c"}, finished)
	nodes, err := b.Store.Nodes(context.Background(), b.Run)
	require.NoError(t, err)
	for _, n := range nodes {
		require.Equal(t, state.Succeeded, n.Status, n.Name)
	}
	require.EqualValues(t, 10, nodes[0].RowsOut)
}

func TestNodeWithoutBatchesSucceeds(t *testing.T) {
	t.Parallel()
	b := runtest.New(t)
	status, err := b.Work(context.Background(), t, &runtest.Job{Batches: map[string]int{"b": 1, "c": 1}}, nil)
	require.NoError(t, err)
	require.Equal(t, state.Complete, status)
}

func TestFailedBatchFailsTheRunAndGivesTheOthersBack(t *testing.T) {
	t.Parallel()
	b := runtest.New(t)
	inFlight := make(chan struct{})
	fake := &runtest.Job{Batches: map[string]int{"a": 1, "b": 1, "c": 1}}
	fake.Executes = func(ctx context.Context, c state.Claim) (job.Result, error) {
		if c.Node == "a" { // waits for b's failure to cancel it
			close(inFlight)
			<-ctx.Done()
			return job.Result{}, ctx.Err()
		}
		<-inFlight
		return job.Result{}, &fault.Error{Kind: fault.UserData, Message: "bad row",
			Place: fault.Place{File: "in.csv", Line: 7}}
	}
	status, err := b.Work(context.Background(), t, fake, nil)
	require.NoError(t, err)
	require.Equal(t, state.Failed, status)
	run, err := b.Store.Run(context.Background(), b.Run)
	require.NoError(t, err)
	require.Equal(t, "bad row", run.Failure.Message)
	require.EqualValues(t, 7, run.Failure.Place.Line)
	require.Zero(t, fake.Executed("c"))

	// The cause is gone: a resumed run does only what is left.
	b.Order(t, state.CommandReopen)
	again := &runtest.Job{Batches: fake.Batches}
	status, err = b.Work(context.Background(), t, again, nil)
	require.NoError(t, err)
	require.Equal(t, state.Complete, status)
}

func TestFailedPlanFailsTheRun(t *testing.T) {
	t.Parallel()
	b := runtest.New(t)
	fake := &runtest.Job{Batches: map[string]int{"a": 1, "b": 1},
		PlanErr: map[string]error{"c": fault.New(fault.Environment, "no such file")}}
	status, err := b.Work(context.Background(), t, fake, nil)
	require.NoError(t, err)
	require.Equal(t, state.Failed, status)
	run, err := b.Store.Run(context.Background(), b.Run)
	require.NoError(t, err)
	require.Equal(t, "no such file", run.Failure.Message)
	require.Equal(t, "c", run.Failure.Node)
}

// The nodes behind the failed one in the list could be planned, but for the
// run being over.
func TestFailedPlanEndsTheRunAlthoughOtherNodesAreDue(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), effort.Patience)
	defer cancel()
	b := runtest.New(t)
	fake := &runtest.Job{Batches: map[string]int{"b": 1, "c": 1},
		PlanErr: map[string]error{"a": fault.New(fault.Environment, "no such file")}}
	status, err := b.Work(ctx, t, fake, nil)
	require.NoError(t, err)
	require.Equal(t, state.Failed, status)
	run, err := b.Store.Run(context.Background(), b.Run)
	require.NoError(t, err)
	require.Equal(t, "no such file", run.Failure.Message)
	require.Equal(t, "a", run.Failure.Node)
	require.Zero(t, fake.Executed("b"))
	require.NoError(t, ctx.Err(), "the run has to end by itself")
}

// A plan that fails for what may pass is tried again, too.
func TestPlanThatMayPassIsTriedAgain(t *testing.T) {
	t.Parallel()
	for failures, want := range map[int]state.Status{2: state.Complete, 99: state.Failed} {
		b := runtest.New(t)
		tries := 0
		fake := &runtest.Job{Plans: func(n state.Node) (state.Plan, error) {
			if n.Name == "a" {
				if tries++; tries <= failures {
					return state.Plan{}, &fault.Error{Kind: fault.Environment, Retryable: true,
						Message: "the server is away"}
				}
			}
			return runtest.Plan(1), nil
		}}
		status, err := b.Work(context.Background(), t, fake, runtest.Hurried(time.Minute))
		require.NoError(t, err)
		require.Equal(t, want, status)
		require.Equal(t, min(failures+1, 4), tries)
	}
}

// A batch whose workers do not come back is given up, and says so.
func TestBatchThatEndsItsWorkersIsGivenUp(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := runtest.New(t)
	at := time.Now()
	deaths := 0
	for { // workers that claim it and are never heard of again
		stop, cancel := context.WithCancel(ctx)
		fake := &runtest.Job{Batches: map[string]int{"a": 1, "b": 1, "c": 1}}
		fake.Executes = func(_ context.Context, c state.Claim) (job.Result, error) {
			if c.Node == "a" {
				cancel()
				// As if it had died: nothing is recorded, the lease ends.
				return job.Result{}, fmt.Errorf("%w", state.ErrLeaseLost)
			}
			return job.Result{}, nil
		}
		c := &runtest.Worker{}
		c.Exec.Store, c.Coor.Store, c.Exec.Owner, c.Coor.Owner = b.Store, b.Store, "w", "w"
		c.Exec.Now = func() time.Time { return at }
		c.Coor.Now = c.Exec.Now
		out, err := c.Work(stop, map[state.RunKey]job.Job{b.Run: fake})
		cancel()
		require.NoError(t, err)
		at = at.Add(time.Hour)
		if out[b.Run] != state.Running {
			require.Equal(t, state.Failed, out[b.Run])
			require.Zero(t, fake.Executed("a"))
			break
		}
		deaths++
		require.Less(t, deaths, 20, "it is given up some day")
	}
	require.Equal(t, 5, deaths)
	f := b.Failure(t)
	require.Equal(t, "batch 0 of node a was given up: 5 attempts before did not come back, or failed", f.Message)
	require.Contains(t, f.Hint, "{{do batches run=1 node=a workspace=w}}")
	// An order, a resume say, counts from the beginning.
	b.Order(t, state.CommandReopen)
	status, err := b.Work(ctx, t, &runtest.Job{Batches: map[string]int{"a": 1, "b": 1, "c": 1}}, nil)
	require.NoError(t, err)
	require.Equal(t, state.Complete, status)
}

// Somebody else decides how a run ends while its last batch commits: that is
// how it ended.
func TestEndThatSomebodyElseDecided(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	b := runtest.New(t)
	fake := &runtest.Job{Batches: map[string]int{"a": 1, "b": 1, "c": 1}}
	fake.Executes = func(_ context.Context, c state.Claim) (job.Result, error) {
		if c.Node == "c" {
			b.Order(t, state.CommandStop)
		}
		return job.Result{}, nil
	}
	status, err := b.Work(context.Background(), t, fake, nil)
	require.NoError(t, err)
	require.Equal(t, state.Stopped, status, "it is not said to be complete")
}
