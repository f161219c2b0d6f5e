package cassandra

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
)

// counter counts requests.
type counter struct {
	mu                       sync.Mutex
	all, conditional, misses int
	took                     [2][]time.Duration // of those that are not conditional, and of those that are
}

func (c *counter) Request(r Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all++
	kind := 0
	if r.Conditional {
		kind = 1
		c.conditional++
	}
	if r.Lost {
		c.misses++
	}
	c.took[kind] = append(c.took[kind], r.Took)
}

// percentiles gives the median, and what nine of ten are below.
func percentiles(took []time.Duration) (p50, p90 time.Duration) {
	slices.Sort(took)
	at := func(share int) time.Duration { return took[len(took)*share/100].Round(10 * time.Microsecond) }
	return at(50), at(90)
}

// count returns the number of requests.
func (c *counter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

// What claim and commit of a batch cost: alone, and with many claimers on few
// nodes, all in one process and in as many as there are claimers (stores of
// their own, which do not wait for one another).
func TestMeasure(t *testing.T) {
	if !long() {
		t.Skip("it measures: of the long form")
	}
	cfg := newKeyspace(t)
	for _, m := range []struct{ claimers, nodes, stores int }{
		{1, 1, 1}, {16, 1, 1}, {64, 1, 1}, {16, 1, 4}, {64, 1, 4}, {16, 4, 4}, {64, 4, 4}, {64, 16, 1}, {64, 16, 4},
		{16, 1, 16}, {64, 4, 16},
	} {
		c := &counter{}
		stores := make([]*Store, m.stores)
		for i := range stores {
			s, err := Open(context.Background(), Config{Config: cfg, Requests: c})
			require.NoError(t, err)
			stores[i] = s
		}
		key := measure(t, stores, c, m.claimers, m.nodes)
		if m.claimers == 1 {
			measureSize(t, stores[0], key)
		}
		for _, s := range stores {
			require.NoError(t, s.Close())
		}
	}
}

const measuredBatches = 1_500 // of all nodes

func measure(t *testing.T, stores []*Store, c *counter, claimers, nodes int) state.NodeKey {
	t.Helper()
	ctx := context.Background()
	specs := make([]state.NodeSpec, nodes)
	for i := range specs {
		specs[i] = state.NodeSpec{Name: fmt.Sprint("n", i), Ordinal: i}
	}
	run, err := stores[0].CreateRun(ctx,
		state.Run{RunKey: state.RunKey{Workspace: fmt.Sprint("m", claimers, nodes, len(stores))}}, specs)
	require.NoError(t, err)
	batches := make([]state.BatchSpec, measuredBatches/nodes)
	for i := range batches {
		batches[i] = state.BatchSpec{Batch: i, Class: "load", Work: []byte("a slice of a file")}
	}
	for _, n := range specs {
		_, err := state.PlanNode(ctx, stores[0], state.NodeKey{RunKey: run, Node: n.Name}, 0,
			state.Plan{Batches: batches}, "planner", time.Now())
		require.NoError(t, err)
	}
	*c = counter{}
	took := make([][]time.Duration, claimers)
	errs := make([]error, claimers)
	start := time.Now()
	var wg sync.WaitGroup
	for w := range claimers {
		wg.Go(func() {
			for i := w; i < len(batches)*nodes; i += claimers {
				key := state.BatchKey{NodeKey: state.NodeKey{RunKey: run, Node: specs[i%nodes].Name}, Batch: i / nodes}
				one := time.Now()
				errs[w] = errors.Join(errs[w], claimAndCommit(ctx, stores[w%len(stores)], key))
				took[w] = append(took[w], time.Since(one))
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	all := slices.Concat(took...)
	slices.Sort(all)
	n, per := len(all), float64(len(all))
	t.Logf("%2d claimers, %2d nodes, %2d stores: %5.0f batches/s, p50 %v p99 %v; a batch: %.2f requests, %.2f "+
		"conditional, %.2f lost",
		claimers, nodes, len(stores), per/time.Since(start).Seconds(), all[n/2].Round(100*time.Microsecond),
		all[n*99/100].Round(100*time.Microsecond),
		float64(c.all)/per, float64(c.conditional)/per, float64(c.misses)/per)
	for kind, name := range []string{"others", "conditional"} {
		p50, p90 := percentiles(c.took[kind])
		t.Logf("   %s: p50 %v p90 %v", name, p50, p90)
	}
	return state.NodeKey{RunKey: run, Node: "n0"}
}

// measureSize says how many rows and bytes a node's partition has for each batch.
func measureSize(t *testing.T, s *Store, key state.NodeKey) {
	t.Helper()
	rows, bytes, perRow := 0, 0, 40 // bytes of a row's key and moments, about
	err := s.operation("size", "size").query(context.Background(), 500, `SELECT data, more, sums, parts`+rowsOf+
		`kind >= 0`, ofNode(key).with(),
		func(scan func(...any) error) error {
			var cells [4][]byte
			err := scan(&cells[0], &cells[1], &cells[2], &cells[3])
			rows, bytes = rows+1, bytes+perRow
			for _, c := range cells {
				bytes += len(c)
			}
			return err
		})
	require.NoError(t, err)
	t.Logf("a node of %d batches has %d rows, %d bytes: %.1f rows and %d bytes a batch", measuredBatches, rows, bytes,
		float64(rows)/measuredBatches, bytes/measuredBatches)
}

func claimAndCommit(ctx context.Context, s *Store, key state.BatchKey) error {
	now := time.Now()
	c, err := s.Claim(ctx, state.ClaimRequest{Offer: state.Offer{BatchKey: key}, Owner: "w", Token: "t", Now: now,
		Lease: now.Add(time.Hour)})
	if err != nil {
		return err
	}
	return s.Commit(ctx, c, state.Outcome{Parts: []state.Part{{Key: "a part of the table", Rows: 5000, Bytes: 100_000}},
		Stats: state.Stats{RowsIn: 5000, RowsOut: 5000}}, now)
}
