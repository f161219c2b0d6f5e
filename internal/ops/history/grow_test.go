package history_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/ops/history"
	"thalweg/internal/store/state"
	"thalweg/internal/test/statetest/hostile"
)

// counted counts what is read of a store: calls, and what lists gave.
type counted struct {
	state.Store
	calls, rows atomic.Int64
}

// add counts a call that gave so many.
func (c *counted) add(rows int) {
	c.calls.Add(1)
	c.rows.Add(int64(rows))
}

func (c *counted) Run(ctx context.Context, key state.RunKey) (state.Run, error) {
	c.add(1)
	return c.Store.Run(ctx, key)
}

func (c *counted) Runs(ctx context.Context, w string, p state.Page) ([]state.Run, int64, error) {
	all, next, err := c.Store.Runs(ctx, w, p)
	c.add(len(all))
	return all, next, err
}

func (c *counted) Nodes(ctx context.Context, key state.RunKey) ([]state.Node, error) {
	all, err := c.Store.Nodes(ctx, key)
	c.add(len(all))
	return all, err
}

func (c *counted) Node(ctx context.Context, key state.NodeKey) (state.Node, error) {
	c.add(1)
	return c.Store.Node(ctx, key)
}

func (c *counted) Tally(ctx context.Context, key state.NodeKey) (state.Tally, error) {
	c.add(1)
	return c.Store.Tally(ctx, key)
}

func (c *counted) Batch(ctx context.Context, key state.BatchKey) (state.Batch, []state.Attempt, error) {
	b, all, err := c.Store.Batch(ctx, key)
	c.add(1 + len(all))
	return b, all, err
}

func (c *counted) Batches(ctx context.Context, key state.NodeKey, p state.Page) ([]state.Batch, int64, error) {
	all, next, err := c.Store.Batches(ctx, key, p)
	c.add(len(all))
	return all, next, err
}

func (c *counted) Unsettled(ctx context.Context, key state.NodeKey, p state.Page) ([]state.Batch, int64, error) {
	all, next, err := c.Store.Unsettled(ctx, key, p)
	c.add(len(all))
	return all, next, err
}

func (c *counted) Attempts(ctx context.Context, key state.NodeKey, p state.Page) ([]state.Attempt, int64, error) {
	all, next, err := c.Store.Attempts(ctx, key, p)
	c.add(len(all))
	return all, next, err
}

func (c *counted) Events(ctx context.Context, key state.NodeKey, after int64, limit int) ([]state.Event, error) {
	all, err := c.Store.Events(ctx, key, after, limit)
	c.add(len(all))
	return all, err
}

func (c *counted) Sequence(ctx context.Context, key state.RunKey, p state.Page) ([]state.Span, int64, error) {
	all, next, err := c.Store.Sequence(ctx, key, p)
	c.add(len(all))
	return all, next, err
}

// long is a run in a workspace of so many, most of whose batches are done.
func long(t *testing.T, runs, batches int) (*counted, state.RunKey) {
	t.Helper()
	ctx := t.Context()
	store := hostile.New().Open()
	var key state.RunKey
	for range runs {
		var err error
		key, err = store.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: "main"}, Created: noon},
			[]state.NodeSpec{{Name: "a"}, {Name: "b", Ordinal: 1, Inputs: []string{"a"}}})
		require.NoError(t, err)
	}
	node := state.NodeKey{RunKey: key, Node: "a"}
	specs := make([]state.BatchSpec, batches)
	for i := range specs {
		specs[i].Batch = i
	}
	_, err := state.PlanNode(ctx, store, node, 0, state.Plan{Record: []byte("x"), Batches: specs}, "w", noon)
	require.NoError(t, err)
	for i := range batches - 3 {
		c := claim(t, store, node, i)
		require.NoError(t, store.Commit(ctx, c,
			state.Outcome{Stats: state.Stats{Elapsed: time.Second, Warnings: []string{"odd"}}}, noon))
	}
	claim(t, store, node, batches-3)
	again := claim(t, store, node, batches-2)
	require.NoError(t, store.Retry(ctx, again, state.Failure{Message: "away"}, state.Stats{},
		noon.Add(time.Minute), noon))
	return &counted{Store: store}, key
}

func claim(t *testing.T, store state.Store, node state.NodeKey, batch int) state.Claim {
	t.Helper()
	c, err := store.Claim(t.Context(),
		state.ClaimRequest{Offer: state.Offer{BatchKey: state.BatchKey{NodeKey: node, Batch: batch}},
			Owner: "w", Token: fmt.Sprint(batch), Now: noon, Lease: noon.Add(time.Hour)})
	require.NoError(t, err)
	return c
}

// What is read to show a run, a node, a batch, the history or a reason does not
// grow with the batches of the run and the runs of the workspace; nor does what
// is read of a stream whose beginning is known.
func TestReadingDoesNotGrow(t *testing.T) {
	t.Parallel()
	read := func(runs, batches int) map[string][2]int64 {
		store, key := long(t, runs, batches)
		node := state.NodeKey{RunKey: key, Node: "a"}
		stream := history.NewStream(store, key, 0)
		for {
			lines, err := stream.Next(t.Context(), state.PageMax)
			require.NoError(t, err)
			if len(lines) == 0 {
				break
			}
		}
		o := history.ListOptions{Limit: 20, Now: noon}
		cost := map[string][2]int64{}
		for name, do := range map[string]func() error{
			"history": func() error { _, err := history.List(t.Context(), store, "main", o); return err },
			"audit":   func() error { _, err := history.AuditAll(t.Context(), store, "main", 20); return err },
			"show":    func() error { _, err := history.ShowRun(t.Context(), store, key, o); return err },
			"node":    func() error { _, err := history.ShowNode(t.Context(), store, node, noon); return err },
			"batch": func() error {
				_, err := history.ShowBatch(t.Context(), store, state.BatchKey{NodeKey: node, Batch: 7}, noon)
				return err
			},
			"why": func() error {
				_, err := history.Gather(t.Context(), store, key, noon, history.ProcessFacts{})
				return err
			},
		} {
			calls, rows := store.calls.Load(), store.rows.Load()
			require.NoError(t, do())
			cost[name] = [2]int64{store.calls.Load() - calls, store.rows.Load() - rows}
		}
		claim(t, store.Store, node, batches-1)
		calls, rows := store.calls.Load(), store.rows.Load()
		lines, err := stream.Next(t.Context(), 1)
		require.NoError(t, err)
		require.Len(t, lines, 1)
		cost["events"] = [2]int64{store.calls.Load() - calls, store.rows.Load() - rows}
		return cost
	}
	small := read(30, 30)
	require.Equal(t, small, read(300, 1500))
	require.Equal(t, [2]int64{1, 20}, small["history"])
	t.Logf("calls and rows: %v", small)
}
