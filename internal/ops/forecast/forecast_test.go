package forecast_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"thalweg/internal/base/budget"
	"thalweg/internal/lang/script"
	"thalweg/internal/ops/forecast"
	"thalweg/internal/ops/simulate"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// mib is a unit of the records' sizes.
const mib = 1 << 20

// record is a run that read so many MiB: its load takes 1 s and 0.1 s a MiB, its formulas 0.5 s a MiB.
func record(number, size int64) forecast.Record {
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	table := plan.Size{Rows: size * 10_000, Bytes: size * mib, Parts: 1}
	return forecast.Record{Run: state.RunKey{Workspace: "w", Run: number}, Elapsed: seconds(5 + 0.6*float64(size)),
		Workers: 1, Slots: 1,
		Nodes: []forecast.Node{
			{Name: "load", Kind: script.FileTable, Batches: 1, Files: size * mib, Out: table, Stored: size * mib / 4,
				Worked: seconds(1 + 0.1*float64(size))},
			{Name: "calc", Kind: script.ProcPyCalc, Inputs: []string{"load"}, Batches: 1,
				Out: table, Stored: size * mib / 4, Worked: seconds(0.5 * float64(size))},
		}}
}

func load(t *testing.T, size int64) forecast.Load {
	t.Helper()
	b, err := budget.Split(4<<30, 1, 1)
	require.NoError(t, err)
	return forecast.Load{Files: map[string]int64{"load": size * mib}, Budget: b, State: simulate.Directory()}
}

// worked returns the seconds of a node of a model's costs.
func worked(c simulate.Costs, node string) float64 {
	for _, n := range c.Nodes {
		if n.Name == node {
			return n.Seconds * float64(n.Batches)
		}
	}
	return -1
}

func TestNodesTakeAPartThatIsFixedAndOneByBytes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		runs       []forecast.Record
		size       int64
		load, calc float64
	}{
		{"one run: in proportion", []forecast.Record{record(1, 10)}, 40, 8, 20},
		{"runs of one size: in proportion", []forecast.Record{record(2, 10), record(1, 10)}, 20, 4, 10},
		{"runs of two sizes", []forecast.Record{record(2, 2), record(1, 10)}, 40, 5, 20},
		{"runs of three sizes", []forecast.Record{record(3, 4), record(2, 20), record(1, 10)}, 1, 1.1, 0.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, err := forecast.Fit(c.runs)
			require.NoError(t, err)
			costs := m.Costs(load(t, c.size))
			require.InEpsilon(t, c.load, worked(costs, "load"), 1e-6)
			require.InEpsilon(t, c.calc, worked(costs, "calc"), 1e-6)
		})
	}
}

// TestWhatWasTakenOverIsNoMeasure holds that a run teaches what it has computed itself. What no run of the latest has
// computed is known from where that was done, once.
func TestWhatWasTakenOverIsNoMeasure(t *testing.T) {
	t.Parallel()
	taken := func(number int64, nodes ...int) forecast.Record {
		r := record(number, 10)
		for _, i := range nodes {
			r.Nodes[i].Taken = true
			r.Elapsed -= r.Nodes[i].Worked
		}
		return r
	}
	wrong := taken(3, 0)
	wrong.Nodes[0].Worked = time.Hour
	for _, c := range []struct {
		name       string
		runs       []forecast.Record
		of         int
		load, calc float64
	}{
		{"one node", []forecast.Record{wrong, record(1, 10)}, 1, 4, 10},
		{"all nodes", []forecast.Record{taken(4, 0, 1), taken(3, 0, 1), record(2, 10), record(1, 10)}, 2, 4, 10},
		{"in all runs", []forecast.Record{taken(4, 0), taken(3, 0)}, 1, 4, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, err := forecast.Fit(c.runs)
			require.NoError(t, err)
			l := load(t, 20)
			l.Computed = func(string) bool { return true }
			f, err := m.Forecast(t.Context(), l, forecast.Fleet{Workers: 1, Slots: 1})
			require.NoError(t, err)
			require.Equal(t, c.of, f.Of)
			require.InEpsilon(t, c.load, f.Nodes["load"].Seconds(), 1e-6)
			require.InEpsilon(t, c.calc, f.Nodes["calc"].Seconds(), 1e-6)
			require.InEpsilon(t, c.load+c.calc+4, f.Elapsed.Middle.Seconds(), 0.01, "4 s that the simulator does not know")
			l.Computed = func(node string) bool { return node == "calc" }
			require.Zero(t, worked(m.Costs(l), "load"))
		})
	}
	m, err := forecast.Fit([]forecast.Record{taken(2, 0)})
	require.NoError(t, err)
	require.Zero(t, worked(m.Costs(load(t, 10)), "load"), "a run is simulated as it was")
}

// TestOtherCodeIsNoMeasure holds that nothing is said of a node that only other code has computed.
func TestOtherCodeIsNoMeasure(t *testing.T) {
	t.Parallel()
	other := record(2, 10)
	other.Nodes[1].Other, other.Nodes[1].Worked = true, time.Hour
	m, err := forecast.Fit([]forecast.Record{other})
	require.NoError(t, err)
	of, node := m.Of(func(string) bool { return true })
	require.Zero(t, of)
	require.Equal(t, "calc", node)
	of, node = m.Of(func(node string) bool { return node == "load" })
	require.Equal(t, 1, of)
	require.Empty(t, node)
	m, err = forecast.Fit([]forecast.Record{other, record(1, 10)})
	require.NoError(t, err)
	of, _ = m.Of(nil)
	require.Equal(t, 1, of)
	require.InEpsilon(t, 5, worked(m.Costs(load(t, 10)), "calc"), 1e-6)
	taken := other
	taken.Nodes = append([]forecast.Node{}, other.Nodes...)
	taken.Nodes[1].Taken = true
	m, err = forecast.Fit([]forecast.Record{taken})
	require.NoError(t, err)
	_, node = m.Of(func(string) bool { return true })
	require.Equal(t, "calc", node)
}

// TestIntervals holds that they lie around the truth, and narrow with runs.
func TestIntervals(t *testing.T) {
	t.Parallel()
	var runs []forecast.Record
	widest := time.Hour
	for n := range int64(4) {
		runs = append(runs, record(n+1, 10*(n+1)))
		m, err := forecast.Fit(runs)
		require.NoError(t, err)
		f, err := m.Forecast(t.Context(), load(t, 10), forecast.Fleet{Workers: 1, Slots: 1})
		require.NoError(t, err)
		require.Equal(t, int(n)+1, f.Of)
		truth := record(1, 10).Elapsed
		require.Less(t, f.Elapsed.Low, truth, f)
		require.Greater(t, f.Elapsed.High, truth, f)
		if n > 0 { // the first one is in proportion
			require.Less(t, f.Worked.High-f.Worked.Low, widest)
		}
		widest = f.Worked.High - f.Worked.Low
	}
}

func TestWithoutRecords(t *testing.T) {
	t.Parallel()
	_, err := forecast.Fit(nil)
	require.ErrorIs(t, err, forecast.ErrNoRecord)
	_, err = forecast.Fit([]forecast.Record{{}})
	require.ErrorIs(t, err, forecast.ErrNoRecord)
}

// TestOtherScriptsAreLeftOut holds that what had other nodes than the latest run is no record.
func TestOtherScriptsAreLeftOut(t *testing.T) {
	t.Parallel()
	other := record(1, 10)
	other.Nodes = other.Nodes[:1]
	m, err := forecast.Fit([]forecast.Record{record(2, 10), other})
	require.NoError(t, err)
	of, _ := m.Of(nil)
	require.Equal(t, 1, of)
}

// TestWhatTheSimulatorDoesNotKnowIsAdded holds that a run of the same size is foreseen to take as long as it did,
// whatever a run of a part of its nodes asks.
func TestWhatTheSimulatorDoesNotKnowIsAdded(t *testing.T) {
	t.Parallel()
	m, err := forecast.Fit([]forecast.Record{record(1, 10)})
	require.NoError(t, err)
	fleet := forecast.Fleet{Workers: 1, Slots: 1}
	f, err := m.Forecast(t.Context(), load(t, 10), fleet)
	require.NoError(t, err)
	require.InEpsilon(t, 11, f.Elapsed.Middle.Seconds(), 0.01)
	l := load(t, 10)
	l.Computed = func(node string) bool { return node == "calc" }
	part, err := m.Forecast(t.Context(), l, fleet)
	require.NoError(t, err)
	require.InEpsilon(t, 9, part.Elapsed.Middle.Seconds(), 0.01)
	far := load(t, 10)
	far.Beyond = 8
	wide, err := m.Forecast(t.Context(), far, fleet)
	require.NoError(t, err)
	require.Greater(t, wide.Elapsed.High-wide.Elapsed.Low, f.Elapsed.High-f.Elapsed.Low)
}

// TestMoreSlotsHaveMoreBatches holds that nodes are cut for the slots of the whole fleet.
func TestMoreSlotsHaveMoreBatches(t *testing.T) {
	t.Parallel()
	r := record(1, 100)
	for i := range r.Nodes {
		r.Nodes[i].Batches = 4 // as planned for one slot
	}
	m, err := forecast.Fit([]forecast.Record{r})
	require.NoError(t, err)
	l := load(t, 100)
	require.Equal(t, 4, m.Costs(l).Nodes[0].Batches)
	l.Workers, l.Slots = 4, 2
	c := m.Costs(l)
	require.Equal(t, 32, c.Nodes[0].Batches)
	require.InEpsilon(t, 11, worked(c, "load"), 1e-6)
}

// TestThreadsOfFewBatchesCount holds that a batch which had both cores stands for twice its time where there are
// several, and that one of Python does not.
func TestThreadsOfFewBatchesCount(t *testing.T) {
	t.Parallel()
	r := record(1, 10)
	r.Slots = 2 // and one batch
	m, err := forecast.Fit([]forecast.Record{r})
	require.NoError(t, err)
	l := load(t, 10)
	l.Workers, l.Slots = 1, 2
	require.InEpsilon(t, 2, worked(m.Costs(l), "load"), 1e-6)
	l.Files["load"] = 100 * mib
	many := m.Costs(l)
	require.Greater(t, many.Nodes[0].Batches, 1)
	require.InEpsilon(t, 40, worked(many, "load"), 1e-6)
	require.InEpsilon(t, 50, worked(many, "calc"), 1e-6)
}
