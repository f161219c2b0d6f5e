package gc_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/ops/gc"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/store/parts"
	"thalweg/internal/store/state"
	"thalweg/internal/store/state/cassandra"
	"thalweg/internal/store/state/sqlite"
	"thalweg/internal/test/cassandratest"
)

// shelf is a part store without parts: keys and sizes.
type shelf map[string]int64

func (s shelf) Put(context.Context, string, string) (parts.Info, error) {
	return parts.Info{}, parts.ErrExists
}

func (s shelf) Open(context.Context, string, int64, int64) (io.ReadCloser, int64, error) {
	return nil, 0, parts.ErrNotFound
}

func (s shelf) Delete(_ context.Context, key string) error { delete(s, key); return nil }

func (s shelf) Properties() parts.Properties { return parts.Properties{} }

func (s shelf) Close() error { return nil }

func (s shelf) List(_ context.Context, prefix, after string) iter.Seq2[parts.Info, error] {
	return func(yield func(parts.Info, error) bool) {
		for _, key := range slices.Sorted(maps.Keys(s)) {
			if strings.HasPrefix(key, prefix) && key > after && !yield(parts.Info{Key: key, Bytes: s[key]}, nil) {
				return
			}
		}
	}
}

// between calls do once, behind the first of the two answers about a node's
// attempts and its manifest.
type between struct {
	state.Store
	do func()
}

func (b *between) once() {
	if do := b.do; do != nil {
		b.do = nil
		do()
	}
}

func (b *between) Attempts(ctx context.Context, key state.NodeKey, page state.Page) ([]state.Attempt, int64, error) {
	defer b.once()
	return b.Store.Attempts(ctx, key, page)
}

func (b *between) Parts(ctx context.Context, key state.NodeKey, page state.Page) ([]state.Part, int64, error) {
	defer b.once()
	return b.Store.Parts(ctx, key, page)
}

// bench is a run with one planned node.
type bench struct {
	t     *testing.T
	store state.Store
	node  state.Node
	now   time.Time
}

func newBench(t *testing.T, batches int) *bench {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return newBenchIn(t, store, batches)
}

func newBenchIn(t *testing.T, store state.Store, batches int) *bench {
	t.Helper()
	b := &bench{t: t, store: store, now: time.Now()}
	run, err := store.CreateRun(t.Context(), state.Run{RunKey: state.RunKey{Workspace: "main"}, Created: b.now},
		[]state.NodeSpec{{Name: "n", Table: "n"}})
	require.NoError(t, err)
	key := state.NodeKey{RunKey: run, Node: "n"}
	plan := state.Plan{Record: []byte(`{"version":1,"layout":{}}`)}
	for i := range batches {
		plan.Batches = append(plan.Batches, state.BatchSpec{Batch: i, RowsIn: -1, BytesIn: -1})
	}
	_, err = state.PlanNode(t.Context(), store, key, 0, plan, "a", b.now)
	require.NoError(t, err)
	b.node, err = store.Node(t.Context(), key)
	require.NoError(t, err)
	return b
}

func (b *bench) claim(batch, attempt int) state.Claim {
	b.t.Helper()
	c, err := b.store.Claim(b.t.Context(),
		state.ClaimRequest{Offer: state.Offer{BatchKey: state.BatchKey{NodeKey: b.node.NodeKey, Batch: batch},
			Attempt: attempt - 1},
			Owner: "w", Token: fmt.Sprint(batch, attempt), Now: b.now, Lease: b.now.Add(time.Minute)})
	require.NoError(b.t, err)
	return c
}

func (b *bench) key(batch, attempt, seq int) string {
	return fmt.Sprintf("%sb%05d-a%d-%04d.parquet", pipeline.PartsDir(b.node), batch, attempt, seq)
}

func (b *bench) collect(store state.Store, s parts.Backend, dry bool) gc.Report {
	b.t.Helper()
	report, err := b.tryCollect(store, s, dry)
	require.NoError(b.t, err)
	return report
}

func (b *bench) tryCollect(store state.Store, s parts.Backend, dry bool) (gc.Report, error) {
	return gc.Collect(b.t.Context(), gc.Config{Store: store, Parts: s, Leavings: pipeline.Leavings{Store: store},
		Workspace: "main", DryRun: dry,
		Script: func(state.Run) string { return "" }, Alone: func(state.RunKey) (func(), bool, error) {
			return nil,
				false, nil
		}})
}

// An attempt commits between the two looks at its node: its part stays.
func TestACommitBetweenTwoLooks(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1)
	claim := b.claim(0, 1)
	s := shelf{b.key(0, 1, 0): 7}
	store := &between{Store: b.store, do: func() {
		out := state.Outcome{Parts: []state.Part{{Key: b.key(0, 1, 0), Bytes: 7, Bucket: -1}}}
		require.NoError(t, b.store.Commit(t.Context(), claim, out, b.now))
	}}
	report := b.collect(store, s, false)
	require.Nil(t, store.do)
	require.Equal(t, gc.Report{Drops: []int64{}}, report)
	require.Len(t, s, 1)
}

// Parts whose manifest cannot be read whole stay: nothing says that they were withdrawn.
func TestAManifestThatHasLostSomething(t *testing.T) {
	t.Parallel()
	cfg := cassandratest.Keyspace(t, nil)
	require.NoError(t, cassandra.Init(t.Context(), cfg, map[string]int{"": 1}))
	store, err := cassandra.Open(t.Context(), cassandra.Config{Config: cfg})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	b := newBenchIn(t, store, 2)
	s := shelf{}
	for batch := range 2 {
		key := b.key(batch, 1, 0)
		s[key] = 7
		require.NoError(t, store.Commit(t.Context(), b.claim(batch, 1),
			state.Outcome{Parts: []state.Part{{Key: key, Bytes: 7, Bucket: -1}}}, b.now))
	}
	b.collect(store, s, false)
	require.Len(t, s, 2)
	raw := cassandratest.Open(t, cfg)
	require.NoError(t, raw.Query(
		`DELETE parts FROM state_rows WHERE workspace = ? AND run = ? AND node = ? AND kind = 3 AND n1 = 1 AND n2 = 1`,
		b.node.Workspace, b.node.Run, b.node.Name).ExecContext(t.Context()))
	_, err = b.tryCollect(store, s, false)
	require.ErrorContains(t, err, "the parts of 1 batches")
	require.Len(t, s, 2)
}

// Parts go by what state says of their attempts, however old they are; what it
// does not know stays.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	b := newBench(t, 3)
	s := shelf{}
	for _, key := range []string{b.key(0, 1, 0), b.key(0, 2, 0), b.key(0, 3, 0), b.key(7, 1, 0), b.key(1, 1, 0),
		b.key(2, 1, 0),
		"main/00001/05-other/b00000-a1-0000.parquet", "main/00009/00-n/b00000-a1-0000.parquet", "main/strange",
		"elsewhere/00001/00-n/b00000-a1-0000.parquet"} {
		s[key] = 10
	}
	require.NoError(t, b.store.Release(t.Context(), b.claim(0, 1), b.now))
	require.NoError(t, b.store.Commit(t.Context(), b.claim(0, 2),
		state.Outcome{Parts: []state.Part{{Key: b.key(0, 2, 0), Bytes: 10, Bucket: -1}}}, b.now))
	b.claim(1, 1) // at work; its lease is over before anybody looks
	require.NoError(t, b.store.Fail(t.Context(), b.claim(2, 1), state.Failure{Message: "no"}, state.Outcome{}, b.now))
	want := gc.Report{Drops: []int64{}, Dead: gc.Amount{Count: 2, Bytes: 20},
		Unknown: gc.Amount{Count: 5, Bytes: 50}}
	require.Equal(t, want, b.collect(b.store, s, true))
	require.Len(t, s, 10)
	require.Equal(t, want, b.collect(b.store, s, false))
	require.NotContains(t, s, b.key(0, 1, 0))
	require.NotContains(t, s, b.key(2, 1, 0))
	require.Len(t, s, 8)
	// An order fences what is at work.
	require.NoError(t, state.Direct(t.Context(), b.store, b.node.RunKey, state.Command{Kind: state.CommandStop, Token: "t",
		Mark: state.Mark{Actor: "a", Time: b.now}}))
	b.collect(b.store, s, false)
	require.NotContains(t, s, b.key(1, 1, 0))
	require.Contains(t, s, b.key(0, 2, 0))
}

// halves is a store in which Puts that did not end leave something.
type halves struct {
	shelf
	left shelf
}

func (h halves) Unfinished(ctx context.Context, prefix, after string) iter.Seq2[parts.Info, error] {
	return h.left.List(ctx, prefix, after)
}

func (h halves) Abandon(ctx context.Context, key string) error { return h.left.Delete(ctx, key) }

// around is a store around another, as one with copies is.
type around struct{ parts.Backend }

func (a around) Unwrap() parts.Backend { return a.Backend }

// What processes left that died while they put a part goes as parts do.
func TestPutsThatDidNotEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2)
	h := halves{shelf: shelf{b.key(0, 1, 0): 1}, left: shelf{b.key(0, 1, 1): 10, b.key(1, 1, 0): 100,
		"main/strange": 1000}}
	require.NoError(t, b.store.Release(t.Context(), b.claim(0, 1), b.now))
	b.claim(1, 1) // may still commit
	want := gc.Report{Drops: []int64{}, Dead: gc.Amount{Count: 2, Bytes: 11},
		Unknown: gc.Amount{Count: 1, Bytes: 1000}}
	require.Equal(t, want, b.collect(b.store, around{h}, true))
	require.Len(t, h.left, 3)
	require.Equal(t, want, b.collect(b.store, around{h}, false))
	require.Empty(t, h.shelf)
	require.Equal(t, shelf{b.key(1, 1, 0): 100, "main/strange": 1000}, h.left)
}
