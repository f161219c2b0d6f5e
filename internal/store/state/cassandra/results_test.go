package cassandra

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
	"thalweg/internal/store/state/retrying"
)

// published is a node of which all batches have parts.
func published(t *testing.T, s *Store, workspace string, batches int) state.NodeKey {
	t.Helper()
	ctx, now := t.Context(), time.Now()
	run, err := s.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: workspace}}, []state.NodeSpec{{Name: "n"}})
	require.NoError(t, err)
	key := state.NodeKey{RunKey: run, Node: "n"}
	specs := make([]state.BatchSpec, batches)
	for i := range specs {
		specs[i].Batch = i
	}
	_, err = state.PlanNode(ctx, s, key, 0, state.Plan{Batches: specs}, "planner", now)
	require.NoError(t, err)
	for i := range batches {
		c, err := s.Claim(ctx, state.ClaimRequest{Offer: state.Offer{BatchKey: state.BatchKey{NodeKey: key, Batch: i}},
			Owner: "w", Token: fmt.Sprint(i),
			Now: now, Lease: now.Add(time.Hour)})
		require.NoError(t, err)
		require.NoError(t, s.Commit(ctx, c, state.Outcome{Parts: []state.Part{{Key: fmt.Sprint("p", i)}}}, now))
	}
	return key
}

// purge drops a node's run, and purges it.
func purge(t *testing.T, s *Store, key state.NodeKey) {
	t.Helper()
	for _, kind := range []state.CommandKind{state.CommandStop, state.CommandDrop} {
		order := state.Command{Kind: kind, Token: string(kind), Mark: state.Mark{Actor: "a", Time: time.Now()}}
		require.NoError(t, state.Direct(t.Context(), s, key.RunKey, order))
	}
	require.NoError(t, s.Purge(t.Context(), key))
}

// Parts that a node has and that are not where they should be fail the list, in place of
// being left out of it: by its own word, for a node that has been purged there are none.
func TestMissingParts(t *testing.T) {
	t.Parallel()
	const batches = valuesMax + 3
	ctx := t.Context()
	s, err := Open(ctx, Config{Config: newKeyspace(t)})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	key := published(t, s, "w", batches)
	all, _, err := s.Parts(ctx, key, state.Page{})
	require.NoError(t, err)
	require.Len(t, all, batches)
	where := ` WHERE workspace = ? AND run = ? AND node = ? AND kind = 3 AND n1 = ? AND n2 = 1`
	for batch, text := range map[int]string{valuesMax + 1: `DELETE parts FROM state_rows`,
		4: `DELETE FROM state_rows`} {
		require.NoError(t, s.session.Query(text+where, key.Workspace, key.Run, key.Node, batch).ExecContext(ctx))
		_, _, err = s.Parts(ctx, key, state.Page{From: int64(batch), Limit: 1})
		var f *fault.Error
		require.ErrorAs(t, err, &f, "%d", batch)
		require.Equal(t, fault.Environment, f.Kind)
		require.ErrorContains(t, f, "parts of 1 batches")
		require.Contains(t, f.Hint, "repair")
		require.True(t, retrying.Passes(err))
		_, _, err = s.Parts(ctx, key, state.Page{})
		require.ErrorAs(t, err, &f)
	}
	some, _, err := s.Parts(ctx, key, state.Page{Limit: 4})
	require.NoError(t, err)
	require.Len(t, some, 4)
	// Rows go when a node is purged: between the look at it and that at its rows as well.
	o := s.operation("Parts", "list parts")
	m, err := o.readSegments(ctx, key)
	require.NoError(t, err)
	purge(t, s, key)
	missing, err := o.published(ctx, m, []int{1, 2}, "parts", func(int, int, []byte) error { return nil })
	require.NoError(t, err)
	require.Equal(t, 2, missing)
	require.NoError(t, o.unlessPurged(ctx, key, &missingError{name: "parts", batches: missing}))
	none, _, err := s.Parts(ctx, key, state.Page{})
	require.NoError(t, err)
	require.Empty(t, none)
}

// behind is an Observer that calls do once, when an operation has made so many requests.
type behind struct {
	operation string
	requests  int
	do        func()
}

func (b *behind) Request(r Request) {
	if r.Operation != b.operation {
		return
	}
	if b.requests--; b.requests == 0 {
		b.do()
	}
}

// A plan that goes between the look at its node and that at the plan is what a purged node
// is for the caller: no fault of the network.
func TestPurgedMeanwhile(t *testing.T) {
	t.Parallel()
	ctx, now := t.Context(), time.Now()
	cfg := newKeyspace(t)
	other, err := Open(ctx, Config{Config: cfg})
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close()) }()
	for operation, tc := range map[string]struct {
		requests int // the last of them is the look at the node
		call     func(s *Store, key state.NodeKey) error
	}{
		"Claim": {1, func(s *Store, key state.NodeKey) error {
			_, err := s.Claim(ctx, state.ClaimRequest{Offer: state.Offer{BatchKey: state.BatchKey{NodeKey: key}},
				Owner: "w", Token: "t", Now: now, Lease: now.Add(time.Hour)})
			require.ErrorIs(t, err, state.ErrNotClaimable)
			return err
		}},
		"Offers": {1, func(s *Store, key state.NodeKey) error {
			offers, _, err := s.Offers(ctx, key, now, state.Page{})
			require.Empty(t, offers)
			return err
		}},
		"Batch": {2, func(s *Store, key state.NodeKey) error {
			_, _, err := s.Batch(ctx, state.BatchKey{NodeKey: key})
			require.ErrorIs(t, err, state.ErrNotFound)
			return err
		}},
		"Hear": {1, func(s *Store, key state.NodeKey) error {
			return s.ApplyCommand(ctx, key,
				state.Command{Kind: state.CommandReopen, Epoch: 9, Mark: state.Mark{Time: now}})
		}},
	} {
		purged := false
		b := &behind{operation: operation, requests: tc.requests}
		s, err := Open(ctx, Config{Config: cfg, Requests: b})
		require.NoError(t, err)
		key := planned1(t, other, operation)
		b.do = func() {
			purge(t, other, key)
			purged = true
		}
		err = tc.call(s, key)
		require.True(t, purged, operation)
		var f *fault.Error
		require.NotErrorAs(t, err, &f, operation)
		require.NoError(t, s.Close())
	}
	// A plan that its node has, and that is not there all the same, has been lost.
	s, err := Open(ctx, Config{Config: cfg})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	key := planned1(t, other, "lost")
	n, err := s.Node(ctx, key)
	require.NoError(t, err)
	s.plans = newMemory[planKey, headerRow](plansMax)
	require.NoError(t, s.session.Query(
		`DELETE FROM state_plans WHERE workspace = ? AND run = ? AND node = ? AND digest = ? AND slice = ?`,
		key.Workspace, key.Run, key.Node, n.PlanDigest, headerSlice).ExecContext(ctx))
	_, _, err = s.Offers(ctx, key, now, state.Page{})
	var f *fault.Error
	require.ErrorAs(t, err, &f)
	require.Contains(t, f.Hint, "repair")
	require.True(t, retrying.Passes(err))
}

// planned1 is a node with a plan of one batch.
func planned1(t *testing.T, s *Store, workspace string) state.NodeKey {
	t.Helper()
	run, err := s.CreateRun(t.Context(), state.Run{RunKey: state.RunKey{Workspace: workspace}},
		[]state.NodeSpec{{Name: "n"}})
	require.NoError(t, err)
	key := state.NodeKey{RunKey: run, Node: "n"}
	_, err = state.PlanNode(t.Context(), s, key, 0, state.Plan{Batches: []state.BatchSpec{{}}}, "planner", time.Now())
	require.NoError(t, err)
	return key
}
