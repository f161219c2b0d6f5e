package property

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/base/fault"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/orders"
	interpreters "thalweg/internal/run/python"
	"thalweg/internal/store/state"
)

// failsOnce makes the n-th task of a process fail, in a way that is tried again
// by itself, or is not.
func failsOnce(n int, again bool) func(engine.Executor) engine.Executor {
	left := &atomic.Int64{}
	left.Store(int64(n))
	return func(e engine.Executor) engine.Executor { return failing{e, left, again} }
}

type failing struct {
	engine.Executor
	left  *atomic.Int64
	again bool
}

func (f failing) Execute(ctx context.Context, c engine.InstanceConfig, p *interpreters.Pool,
	t engine.Task) (engine.Result, error) {
	if f.left.Add(-1) == 0 {
		return engine.Result{}, &fault.Error{Kind: fault.Environment, Retryable: f.again,
			Message: "this task fails once"}
	}
	return f.Executor.Execute(ctx, c, p, t)
}

// retry does a wish, as the command does.
func (v variant) retry(ctx context.Context, home *instance.Instance, key state.RunKey,
	wish orders.RedoSelection) (runner.Summary,
	error) {
	r, err := runner.PlanRetry(ctx, home, key, runner.RetryOptions{Again: wish})
	if err != nil {
		return runner.Summary{}, fmt.Errorf("plan a retry: %w", err)
	}
	if len(r.Changed) > 0 {
		return runner.Summary{}, fmt.Errorf("a retry of what has not changed begins another run: %+v", r.Changed)
	}
	opts := r.Options
	opts.MemoryBytes, opts.Cores, opts.Interpreter, opts.Tune = v.Memory, v.Cores, "python3", v.tune
	before, err := attempts(ctx, home, key)
	if err != nil {
		return runner.Summary{}, err
	}
	sum, err := runner.Run(ctx, home, opts)
	if err != nil || sum.Status != state.Complete {
		return sum, err
	}
	after, err := attempts(ctx, home, key)
	if err != nil {
		return sum, err
	}
	return sum, errors.Join(onlyThat(r.Closure, before, after), inOrder(ctx, home, key))
}

// inOrder checks that no batch of a complete run was begun before all that its
// node reads was there as it is now: what is done again gives the same rows
// here, so that files do not tell.
func inOrder(ctx context.Context, home *instance.Instance, key state.RunKey) error {
	nodes, err := home.State.Nodes(ctx, key)
	if err != nil {
		return err
	}
	first, last := map[string]time.Time{}, map[string]time.Time{}
	for _, n := range nodes {
		batches, err := state.All(ctx, home.State.Batches, n.NodeKey)
		if err != nil {
			return err
		}
		for _, b := range batches {
			if at, ok := first[n.Name]; !ok || b.Started.Before(at) {
				first[n.Name] = b.Started
			}
			if b.Finished.After(last[n.Name]) {
				last[n.Name] = b.Finished
			}
		}
	}
	for _, n := range nodes {
		for _, in := range n.Inputs {
			if last[n.Name] = later(last[n.Name], last[in]); !first[n.Name].IsZero() && first[n.Name].Before(last[in]) {
				return fmt.Errorf("node %s was begun before %s, which it reads, was there as it is now", n.Name, in)
			}
		}
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// attempts gives the latest attempt at each batch of a run.
func attempts(ctx context.Context, home *instance.Instance, key state.RunKey) (map[state.BatchKey]int, error) {
	batches, err := state.OfNodes(ctx, home.State, key, home.State.Batches)
	out := map[state.BatchKey]int{}
	for _, b := range batches {
		out[b.BatchKey] = b.Attempt
	}
	return out, err
}

// onlyThat checks that exactly what was named was done.
func onlyThat(c orders.RedoPlan, before, after map[state.BatchKey]int) error {
	var errs []error
	for key, attempt := range after {
		named := slices.ContainsFunc(c.Tasks, func(t orders.RedoStep) bool {
			return t.Node == key.Node && (len(t.Batches) == 0 && (t.Why != orders.Left || before[key] == 0) ||
				slices.Contains(t.Batches, key.Batch))
		})
		left := slices.ContainsFunc(c.Tasks, func(t orders.RedoStep) bool {
			return t.Node == key.Node &&
				t.Why == orders.Left
		})
		if did := attempt != before[key]; did != named && !left {
			errs = append(errs, fmt.Errorf("batch %d of node %s: named %v, done again %v", key.Batch,
				key.Node, named, did))
		}
	}
	return errors.Join(errs...)
}

// redo does random pieces of the complete run in dir again.
func (v variant) redo(ctx context.Context, dir string) (err error) {
	home, err := instance.Open(ctx, filepath.Join(dir, "state"), false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, home.Close()) }()
	rng := rand.New(rand.NewPCG(v.Seed, 5))
	runs, _, err := home.State.Runs(ctx, "main", state.Page{Limit: 1})
	if err != nil {
		return err
	}
	nodes, err := home.State.Nodes(ctx, runs[0].RunKey)
	if err != nil {
		return err
	}

	for range v.Redo {
		var wish orders.RedoSelection
		for range 1 + rng.IntN(2) {
			n := nodes[rng.IntN(len(nodes)/2+1)] // early ones have more behind them
			if rng.IntN(3) == 0 || n.BatchesTotal == 0 {
				wish.Nodes = append(wish.Nodes, n.Name)
				continue
			}
			from := rng.IntN(n.BatchesTotal)
			wish.Batches = append(wish.Batches, orders.Batches{Node: n.Name, From: from,
				To: from + rng.IntN(min(2, n.BatchesTotal-from))})
		}
		sum, err := v.retry(ctx, home, runs[0].RunKey, wish)
		if err != nil {
			return fmt.Errorf("do %+v again: %w%s", wish, err, hint(sum))
		}
		if sum.Status != state.Complete {
			return fmt.Errorf("do %+v again: the run is %s%s", wish, sum.Status, hint(sum))
		}
		if nodes, err = home.State.Nodes(ctx, runs[0].RunKey); err != nil {
			return err
		}
	}
	return nil
}
