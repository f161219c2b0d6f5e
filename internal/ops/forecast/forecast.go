package forecast

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"thalweg/internal/base/stats"
	"thalweg/internal/ops/simulate"
)

// Fleet is where a run is to work.
type Fleet struct {
	Workers int
	Slots   int // of each
	Seeds   int // how many runs are simulated at most; 0: nine
}

// Forecast is what a run is expected to take. Four of five runs lie between the low and the high ends.
type Forecast struct {
	Elapsed Interval
	Worked  Interval // of slots, by batches
	Of      int      // runs that it rests on
	Limit   string   // what takes most of the time of slots that is no work
	// Nodes is the time of slots that batches of each node take.
	Nodes map[string]time.Duration
}

// Interval holds the middle and both ends of what is expected.
type Interval struct{ Low, Middle, High time.Duration }

const (
	// seeds is how many runs are simulated for one forecast: fewer, where they have more than batchesMost together.
	seeds       = 9
	batchesMost = 50_000
	// assumedOff is by what a forecast is taken to be off before anything is known, as a logarithm. That counts as much
	// as what is seen of assumedRuns.
	assumedOff, assumedRuns = 0.15, 2
)

// Forecast simulates a run of that load.
func (m Model) Forecast(ctx context.Context, l Load, fleet Fleet) (Forecast, error) {
	var out Forecast
	out.Of, _ = m.Of(l.Computed)
	costs := m.Costs(l)
	if len(costs.Nodes) == 0 {
		return out, nil
	}
	var took []float64
	for seed := range uint64(SeedsOf(BatchesOf(costs), fleet.Seeds)) {
		r, err := simulate.Alone(ctx, simulate.Config{Costs: costs, Workers: fleet.Workers, Slots: fleet.Slots,
			Seed: seed + 1})
		if err != nil {
			return out, err
		}
		took, out.Limit = append(took, r.Elapsed), r.Limit
	}
	slices.Sort(took)
	rest, err := l.Rest, error(nil)
	if rest == nil {
		worked, rerr := m.Rest(ctx, l)
		rest, err = &worked, rerr
	}
	if err != nil {
		return out, err
	}
	off := m.Spread(l)
	middle, most := took[len(took)/2], took[len(took)-1]
	out.Elapsed = interval(middle+*rest, math.Hypot(off, math.Log((most+*rest)/(middle+*rest))),
		math.Hypot(off, math.Log((middle+*rest)/(took[0]+*rest))))
	out.Worked = interval(work(costs), off, off)
	out.Nodes = map[string]time.Duration{}
	for _, n := range costs.Nodes {
		out.Nodes[n.Name] = time.Duration(n.Seconds * float64(n.Batches) * float64(time.Second))
	}
	return out, nil
}

// Known is how many times as large as what was measured a run may be before more is assumed to be off.
const Known = 2

// assumedBeyond is what is assumed to be off more for each doubling beyond Known.
const assumedBeyond = 0.1

func beyond(times float64) float64 { return assumedBeyond * max(math.Log2(times/Known), 0) }

// Spread returns how far the ends of four of five runs are from the middle at least, as a logarithm.
func (m Model) Spread(l Load) float64 {
	of, _ := m.Of(l.Computed)
	return math.Hypot(m.off(l), beyond(l.Beyond)) * stats.Student90(of+assumedRuns-1)
}

func interval(middle, up, down float64) Interval {
	of := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	return Interval{Low: of(middle * math.Exp(-down)), Middle: of(middle), High: of(middle * math.Exp(up))}
}

// off returns by how much the model is off, as a logarithm: the root of the mean of squares over its records, each
// foretold from the others, and over what is assumed.
func (m Model) off(l Load) float64 {
	sum, n := assumedRuns*assumedOff*assumedOff, float64(assumedRuns)
	for i, r := range m.records {
		others, err := fit(slices.Delete(slices.Clone(m.records), i, i+1))
		if err != nil { // there are no others
			continue
		}
		want := 0.0
		known := func(node string) bool { return r.node(node).measured() && others.of[node] > 0 }
		l.Files, l.Scale, l.Computed, l.Speed = map[string]int64{}, 0, known, 0
		l.Workers, l.Slots = r.Workers, r.Slots
		for _, n := range r.Nodes {
			if len(n.Inputs) == 0 {
				l.Files[n.Name] = n.Files
			}
			if known(n.Name) {
				want += n.Worked.Seconds()
			}
		}
		got := work(others.Costs(l))
		if want > 0 && got > 0 {
			sum, n = sum+math.Pow(math.Log(got/want), 2), n+1
		}
	}
	return math.Sqrt(sum / n)
}

// SeedsOf returns how many runs of so many batches are simulated for one forecast, most of them; 0: nine.
func SeedsOf(batches, most int) int {
	return min(max(batchesMost/max(batches, 1), 1), cmp.Or(most, seeds))
}

// BatchesOf counts batches.
func BatchesOf(c simulate.Costs) (n int) {
	for _, node := range c.Nodes {
		n += node.Batches
	}
	return n
}

// work returns the seconds of slots that batches take.
func work(c simulate.Costs) (sum float64) {
	for _, n := range c.Nodes {
		sum += n.Seconds * float64(n.Batches)
	}
	return sum
}

// restOf is how many of the latest records say what the simulator does not know.
const restOf = 3

// Rest returns the seconds that runs took longer than the simulator says of them: the middle of the latest records.
func (m Model) Rest(ctx context.Context, l Load) (float64, error) {
	was := l.was()
	back := Load{Budget: was.Budget, State: was.State, Queue: was.Queue}
	var more []float64
	for _, r := range m.records[:min(len(m.records), restOf)] {
		if r.Workers == 0 || r.Slots == 0 || !r.Computed() {
			continue
		}
		own := Model{records: []Record{r}, lines: map[string]line{}}
		for _, n := range r.Nodes {
			own.lines[n.Name] = line{a: n.Worked.Seconds() * r.threads(n, r.Slots, n.Batches)}
		}
		simulated, err := simulate.Alone(ctx, simulate.Config{Costs: own.Costs(back), Workers: r.Workers, Slots: r.Slots,
			Seed: 1})
		if err != nil {
			return 0, err
		}
		more = append(more, max(r.Elapsed.Seconds()-simulated.Elapsed, 0))
	}
	if len(more) == 0 {
		return 0, nil
	}
	slices.Sort(more)
	return more[len(more)/2], nil
}
