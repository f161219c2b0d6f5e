package orders_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/run/orders"
	"thalweg/internal/store/state"
	"thalweg/internal/store/state/sqlite"
)

// bundle is a store with a run of these nodes: a and b read files, c reads a
// and is an ephemeral table inside d, d reads c, e reads b and d. Each has
// three batches and one that checks them, c none.
type bundle struct {
	*sqlite.Store
	run state.RunKey
}

func newBundle(t *testing.T) bundle {
	t.Helper()
	ctx := context.Background()
	store, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	run, err := store.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: "w"}, Created: time.Now()},
		[]state.NodeSpec{
			{Name: "a", Table: "a"}, {Name: "b", Table: "b", Ordinal: 1},
			{Name: "c", Table: "c", Ordinal: 2, Inputs: []string{"a"}},
			{Name: "d", Table: "d", Ordinal: 3, Inputs: []string{"c"}}, {Name: "e", Ordinal: 4,
				Inputs: []string{"b", "d"}},
		})
	require.NoError(t, err)
	return bundle{store, run}
}

// complete does the nodes.
func (b bundle) complete(t *testing.T, nodes string) {
	t.Helper()
	ctx, now := context.Background(), time.Now()
	for name := range strings.SplitSeq(nodes, "") {
		key := state.NodeKey{RunKey: b.run, Node: name}
		n, err := b.Node(ctx, key)
		require.NoError(t, err)
		plan := state.Plan{Record: []byte("{}")}
		for i := range 4 {
			plan.Batches = append(plan.Batches, state.BatchSpec{Batch: i, Phase: i / 3, Work: []byte("{}")})
		}
		if name == "c" {
			plan.Batches = nil
		}
		_, err = state.PlanNode(ctx, b, key, n.Epoch, plan, "test", now)
		require.NoError(t, err)
		for i := range plan.Batches {
			c, err := b.Claim(ctx, state.ClaimRequest{Offer: state.Offer{BatchKey: state.BatchKey{NodeKey: key, Batch: i},
				Epoch: n.Epoch}, Owner: "test", Token: fmt.Sprint(key, i), Now: now, Lease: now.Add(time.Hour)})
			require.NoError(t, err)
			require.NoError(t, b.Commit(ctx, c, state.Outcome{Stats: state.Stats{RowsOut: 10, Elapsed: time.Second}},
				now))
		}
		require.NoError(t, b.MoveNode(ctx, key, state.Move{Epoch: n.Epoch, From: state.Running, To: state.Succeeded,
			Now: now}))
	}
}

// said writes a closure in a line.
func said(c orders.RedoPlan) string {
	var out []string
	for _, t := range c.Tasks {
		one := fmt.Sprintf("%s %s", t.Node, t.Why)
		if t.Of != "" {
			one += " " + t.Of
		}
		if len(t.Batches) > 0 {
			one += fmt.Sprint(" ", t.Batches)
		}
		if t.Replan {
			one += " replan"
		}
		out = append(out, fmt.Sprintf("%s, %d rows in %s", one, t.Rows, t.Elapsed))
	}
	return strings.Join(out, "\n")
}

func TestClosure(t *testing.T) {
	t.Parallel()
	batches := func(node string, from, to int) orders.RedoSelection {
		return orders.RedoSelection{Batches: []orders.Batches{{Node: node, From: from, To: to}}}
	}
	const behindA = "c reads a replan, 0 rows in 0s\nd reads c replan, 40 rows in 4s\ne reads d replan, 40 rows in 4s"
	for name, tc := range map[string]struct {
		done string
		wish orders.RedoSelection
		want string
	}{
		"a batch, its check, and all behind": {"abcde", batches("a", 1, 1),
			"a asked [1], 10 rows in 1s\na follows [3], 10 rows in 1s\n" + behindA},
		"a check follows nothing": {"abcde", batches("b", 3, 3),
			"b asked [3], 10 rows in 1s\ne reads b replan, 40 rows in 4s"},
		"batches of a whole node": {"abcde",
			orders.RedoSelection{Nodes: []string{"a"}, Batches: []orders.Batches{{Node: "a", From: 0, To: 0}}},
			"a asked, 40 rows in 4s\n" + behindA},
		"the last node": {"abcde", orders.RedoSelection{Nodes: []string{"e"}}, "e asked, 40 rows in 4s"},
		"an ephemeral table": {"abcde",
			orders.RedoSelection{Nodes: []string{"c"}, Inside: map[string]string{"c": "d"}},
			"d computes c, 40 rows in 4s\ne reads d replan, 40 rows in 4s"},
		"one behind another": {"abcde", orders.RedoSelection{Nodes: []string{"d", "a"}},
			"a asked, 40 rows in 4s\nc reads a replan, 0 rows in 0s\nd asked replan, 40 rows in 4s\ne reads d " +
				"replan, 40 rows in 4s"},
		"nodes that were not planned": {"ab", orders.RedoSelection{Nodes: []string{"a"}},
			"a asked, 40 rows in 4s\nc left, 0 rows in 0s\nd left, 0 rows in 0s\ne left, 0 rows in 0s"},
		"nothing": {"abcde", orders.RedoSelection{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t)
			b.complete(t, tc.done)
			c, err := orders.Close(context.Background(), b, state.Run{RunKey: b.run}, tc.wish)
			require.NoError(t, err)
			require.Equal(t, tc.want, said(c))
		})
	}
}

func TestWishesThatCannotBeHad(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.complete(t, "ac")
	for want, wish := range map[string]orders.RedoSelection{
		"has no node x":                       {Nodes: []string{"x"}},
		"node b of run 1 has not been":        {Nodes: []string{"b"}},
		"has no batches 3 to 9: it has 4":     {Batches: []orders.Batches{{Node: "a", From: 3, To: 9}}},
		"has no batches 2 to 1: it has 4":     {Batches: []orders.Batches{{Node: "a", From: 2, To: 1}}},
		"node c of run 1 has no batches":      {Batches: []orders.Batches{{Node: "c"}}},
		"node d of run 1 has not been planne": {Batches: []orders.Batches{{Node: "d"}}},
	} {
		_, err := orders.Close(context.Background(), b, state.Run{RunKey: b.run}, wish)
		require.ErrorContains(t, err, want)
		require.Equal(t, fault.Script, fault.Of(err).Kind)
	}
}

// A run that may be worked on is stopped before something of it is done again,
// and the order names what is planned when it begins.
func TestGoOnStopsARunThatMoves(t *testing.T) {
	t.Parallel()
	ctx, by := context.Background(), state.Mark{Actor: "test", Time: time.Now()}
	b := newBundle(t)
	b.complete(t, "a")
	c, err := orders.GoOn(ctx, b, b.run, orders.RedoSelection{Nodes: []string{"a"}}, by, nil)
	require.NoError(t, err)
	require.Len(t, c.Redo, 1)
	run, err := b.Run(ctx, b.run)
	require.NoError(t, err)
	require.Equal(t, state.Running, run.Status)
	require.EqualValues(t, 2, run.Epoch, "a stop, and then the redo")
	require.Equal(t, state.CommandRedo, run.Command.Kind)
	require.Equal(t, state.Stopped, run.Command.From)

	before, err := orders.Stop(ctx, b, b.run, by)
	require.NoError(t, err)
	require.Equal(t, state.Running, before)
	before, err = orders.Stop(ctx, b, b.run, by)
	require.NoError(t, err)
	require.Equal(t, state.Stopped, before, "it is stopped once")
	status, err := orders.Pause(ctx, b, b.run, by)
	require.NoError(t, err)
	require.Equal(t, state.Stopped, status, "what is over is not paused")
}

// An invalidated node takes along what was computed from it, and nothing else;
// who goes on does all of that again.
func TestInvalidateANode(t *testing.T) {
	t.Parallel()
	ctx, by := context.Background(), state.Mark{Actor: "test", Time: time.Now(), Reason: "wrong"}
	b := newBundle(t)
	b.complete(t, "abcde")
	_, err := orders.Invalidate(ctx, b, b.run, []string{"d"}, by)
	require.ErrorContains(t, err, "run 1 is running")
	require.NoError(t, b.CompleteRun(ctx, b.run, 0, "test", time.Now()))
	reader := state.NodeKey{RunKey: b.run, Node: "b"} // stands for a node of another run
	require.NoError(t, orders.NoteReads(ctx, b, reader, []state.NodeKey{{RunKey: b.run, Node: "d"}}, time.Now()))
	inv, err := orders.Invalidate(ctx, b, b.run, []string{"d"}, by)
	require.NoError(t, err)
	require.Equal(t, []string{"d", "e"}, inv.Nodes)
	n, err := b.Node(ctx, state.NodeKey{RunKey: b.run, Node: "e"})
	require.NoError(t, err)
	mark, voided, err := state.Voided(ctx, b, n)
	require.NoError(t, err)
	require.True(t, voided)
	require.Equal(t, "wrong", mark.Reason)
	made, err := orders.Reaches(ctx, b, b.run, inv.Nodes)
	require.NoError(t, err)
	require.Len(t, made, 1)
	require.Equal(t, reader, made[0].NodeKey)
	run, err := b.Run(ctx, b.run)
	require.NoError(t, err)
	c, err := orders.Close(ctx, b, run, orders.RedoSelection{})
	require.NoError(t, err)
	require.Equal(t, "d invalidated replan, 40 rows in 4s\ne invalidated replan, 40 rows in 4s", said(c))
	require.True(t, c.Redoes("e"))
	require.False(t, c.Redoes("a"))
}
