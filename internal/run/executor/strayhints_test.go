package executor_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/run/executor"
	"thalweg/internal/run/job"
	"thalweg/internal/store/queue"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/queuetest/hub"
	"thalweg/internal/test/runtest"
)

// looking is a process that looks for a run of which a hint has come, as a worker does.
type looking struct{ *runtest.Process }

func (l looking) Use(ctx context.Context, key state.RunKey) (executor.Run, func(), error) {
	if _, err := l.Exec.Store.Run(ctx, key); err != nil {
		return nil, nil, err
	}
	return l.Process.Use(ctx, key)
}

// strays are hints that a broker may hold beside those of a run: of what is not there any
// more, or never was.
func strays(run state.RunKey) []queue.Hint {
	right := state.Offer{BatchKey: state.BatchKey{NodeKey: state.NodeKey{RunKey: run, Node: "a"}}}
	var all []queue.Hint
	with := func(change func(o *state.Offer)) {
		o := right
		change(&o)
		all = append(all, queue.Hint{Offer: o})
	}
	for _, text := range []string{"", "nope", "\x00", "\xff", strings.Repeat("n", 60_000)} {
		with(func(o *state.Offer) { o.Workspace = text })
		with(func(o *state.Offer) { o.Node = text })
		with(func(o *state.Offer) { o.Class, o.Batch = text, -1 })
	}
	for _, n := range []int{-1, 999, math.MinInt64, math.MaxInt32 + 1, math.MaxInt64} {
		with(func(o *state.Offer) { o.Run = int64(n) })
		with(func(o *state.Offer) { o.Batch = n })
		with(func(o *state.Offer) { o.Epoch = int64(n) })
		with(func(o *state.Offer) { o.Attempt = n })
	}
	with(func(o *state.Offer) { o.Node = "c" }) // which is not planned
	return all
}

// A queue decides nothing: whatever it holds, no batch of a run that is under way is done
// twice, none is given up, and what names nothing is dropped.
func TestStrayHintsChangeNothing(t *testing.T) {
	t.Parallel()
	ctx := runtest.Patient(t)
	b, broker := runtest.New(t), hub.New(hub.Faults{})
	attacker, foreign := broker.Join(), strays(b.Run)
	throw := func(n int) error {
		for range n {
			if err := attacker.Publish(ctx, foreign[rand.IntN(len(foreign))]); err != nil {
				return err
			}
		}
		return nil
	}
	require.NoError(t, attacker.Publish(ctx, foreign...))
	require.NoError(t, throw(effort.Of(500, 5_000, 100_000)))
	fake := &runtest.Job{Batches: map[string]int{"a": 60, "b": 20, "c": 5}}
	fake.Executes = func(context.Context, state.Claim) (job.Result, error) { return job.Result{}, throw(20) }
	var all []*runtest.Process
	var stops []func() error
	for i := range 2 {
		p := runtest.NewProcess(b, fmt.Sprint("process ", i), broker.Join(), func(state.RunKey) job.Job { return fake })
		p.Exec.Runs = looking{p}
		all = append(all, p)
		stops = append(stops, p.Start(ctx, b.Run))
	}
	for _, p := range all {
		require.Equal(t, state.Complete, <-p.Ended)
	}
	for _, stop := range stops {
		require.NoError(t, stop(), "the state is well")
	}
	for node, batches := range fake.Batches {
		require.Len(t, b.Attempts(t, node), batches)
		require.Equal(t, batches, fake.Executed(node))
	}
	for _, p := range all {
		require.Zero(t, p.Hints[executor.Broken])
	}
}
