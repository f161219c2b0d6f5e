package simulate_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"thalweg/internal/ops/simulate"
	"thalweg/internal/store/state/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func run(t *testing.T, c simulate.Config) simulate.Result {
	t.Helper()
	r, err := simulate.Alone(t.Context(), c)
	require.NoError(t, err)
	return r
}

// two is a script of two nodes.
func two(workers, batches int) simulate.Config {
	c := simulate.Portfolio()
	c.Nodes = []simulate.Node{
		{Name: "a", Class: "load", Batches: 3, Seconds: 1, WriteMB: 5},
		{Name: "b", Class: "python", Inputs: []string{"a"}, Batches: 1, Seconds: 2, ReadMB: 5},
	}
	return simulate.Config{Costs: c, Workers: workers, Slots: 2, Batches: batches, Seed: 1}
}

// TestSameSeedSameTrace holds the promise of the package over fleets in which
// workers die, many want the same batches, and the state is of either kind. A real store gives the same trace.
func TestSameSeedSameTrace(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*simulate.Config){
		"plain":  func(*simulate.Config) {},
		"polls":  func(c *simulate.Config) { c.Costs.Queue = simulate.Latency{} },
		"deaths": func(c *simulate.Config) { c.Deaths = 200 },
		"many":   func(c *simulate.Config) { c.Batches, c.Deaths = 2000, 20 },
		"crowd":  func(c *simulate.Config) { c.Workers, c.Hot = 12, 5 },
		"sqlite": func(c *simulate.Config) { c.Costs.State.Kind, c.Slow = simulate.SQLite, 3 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := two(3, 24)
			change(&c)
			var first, again, other bytes.Buffer
			c.Trace = &first
			r := run(t, c)
			c.Trace = &again
			require.Equal(t, r, run(t, c))
			require.Equal(t, first.String(), again.String())
			again.Reset()
			store, err := sqlite.OpenScratch(t.Context(), filepath.Join(t.TempDir(), "state.db"))
			require.NoError(t, err)
			defer func() { require.NoError(t, store.Close()) }()
			real, err := simulate.Run(t.Context(), store, c)
			require.NoError(t, err)
			require.Equal(t, r, real, "a store that runs have decides as that of simulations")
			require.Equal(t, first.String(), again.String())
			if name == "plain" {
				c.Trace, c.Seed = &other, 2
				run(t, c)
				require.NotEqual(t, first.String(), other.String())
			}
		})
	}
}

func TestSharesAddUp(t *testing.T) {
	t.Parallel()
	r := run(t, two(3, 60))
	sum := 0.0
	for _, share := range r.Shares {
		sum += share
	}
	require.InDelta(t, 1, sum, 0.01)
	require.Equal(t, 60, r.Batches)
}

// TestWhatLimits makes one thing scarce at a time.
func TestWhatLimits(t *testing.T) {
	t.Parallel()
	slow := func(l *simulate.Latency) { l.Median, l.Slow = 900, 1000 }
	for limit, change := range map[string]func(*simulate.Config){
		"parts":              func(c *simulate.Config) { c.Costs.Parts.StoreMB = 5 },
		"skew":               func(c *simulate.Config) { c.Hot = 100 },
		"state: conditional": func(c *simulate.Config) { c.Workers = 1; slow(&c.Costs.State.Write) },
	} {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			c := two(2, 60)
			change(&c)
			require.Contains(t, run(t, c).Limit, limit)
		})
	}
}

func TestDeathsCostWorkAndNothingElse(t *testing.T) {
	t.Parallel()
	c := two(3, 60)
	c.Deaths = 200
	r, alive := run(t, c), run(t, two(3, 60))
	require.Positive(t, r.Deaths)
	require.Equal(t, alive.Batches, r.Batches)
	require.Greater(t, r.Elapsed, alive.Elapsed)
}

func TestCostsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		`{"nodes": [{"name": "a", "batches": 1, "price": 1}]}`: `unknown field "price"`,
		`{"nodes": []}`: "there are no nodes",
		`{"nodes": [{"name": "a", "batches": 0}]}`:                             "no batches",
		`{"nodes": [{"name": "a", "batches": 1}], "state": {"kind": "paper"}}`: `the kind of state is "paper"`,
	} {
		_, err := simulate.ReadCosts("costs.json", []byte(text))
		require.ErrorContains(t, err, says)
	}
}
