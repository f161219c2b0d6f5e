package benches

import (
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"thalweg/internal/ops/host"
	"thalweg/internal/ops/load"
)

// Figure is what was measured several times.
type Figure = host.Figure

// Units of figures.
const (
	perSecond = "operations/s"
	micros    = "µs"
	dollars   = "USD"
)

// figures are what reports are compared by, by name: only what is above 0, and of batches of a window as repeats.
func (r Report) figures() map[string]Figure {
	out := map[string]Figure{}
	for _, l := range r.all() {
		addFigures(out, l.Name, l.Result)
		for _, row := range l.Rows {
			if row.PerMillion != nil && *row.PerMillion > 0 {
				out[l.Name+": a million operations"] = Figure{Value: row.PerMillion.USD(), Unit: dollars}
			}
		}
		if ops := l.Of[load.Read].Ops + l.Of[load.Write].Ops; ops > 0 && l.CPU > 0 {
			out[l.Name+": processor time of the client an operation"] = Figure{
				Value: float64(l.CPU.Nanoseconds()) / 1e3 / float64(ops), Unit: micros}
		}
	}
	for _, f := range []*Search{r.Peak, r.Sustained} {
		if f != nil {
			name := f.Load.Name + ": all"
			all := out[name]
			all.Value, all.Unit = f.Rate, perSecond
			out[name] = all
		}
	}
	addWork(out, r.Served)
	return out
}

// beyondLeast is how many operations of a part of a window are beyond a quantile, at least, for that of the part to be
// a repeat of the window's: of fewer it is hardly more than their longest, which says nothing of a longer time.
const beyondLeast = 10

// bears reports whether each part of a window has a quantile of its own.
func bears(batches []load.Batch, kind int, quantile float64) bool {
	return !slices.ContainsFunc(batches, func(b load.Batch) bool {
		return b.Of[kind] == nil || float64(b.Of[kind].TotalCount())*(100-quantile) < 100*beyondLeast
	})
}

// addFigures adds rates and times of a load.
func addFigures(to map[string]Figure, name string, r load.Result) {
	batches := r.Batches()
	add := func(what, unit string, value float64, batches []load.Batch, of func(load.Batch) float64) {
		f := Figure{Value: value, Unit: unit, Repeats: []float64{}}
		for _, b := range batches {
			f.Repeats = append(f.Repeats, of(b))
		}
		if slices.ContainsFunc(f.Repeats, func(v float64) bool { return !(v > 0) }) {
			f.Repeats = []float64{} // a part of the window had none
		}
		if value > 0 {
			to[name+": "+what] = f
		}
	}
	for kind, m := range r.Of {
		if m.Ops == 0 {
			continue
		}
		rate := func(b load.Batch) float64 {
			if b.Of[kind] == nil {
				return 0
			}
			return float64(b.Of[kind].TotalCount()) / b.Seconds
		}
		add(kindNames[kind], perSecond, float64(m.Ops)/r.Took.Seconds(), batches, rate)
		for _, t := range responseTimes {
			parts := batches
			if !bears(batches, kind, t.quantile) {
				parts = nil
			}
			add(kindNames[kind]+" "+t.name, micros, t.of(m.Response), parts, func(b load.Batch) float64 {
				return t.of(b.Of[kind])
			})
		}
	}
	if r.Of[load.Read].Ops > 0 && r.Of[load.Write].Ops > 0 {
		add("all", perSecond, r.Rate(), batches, func(b load.Batch) (rate float64) {
			for _, h := range b.Of {
				if h != nil {
					rate += float64(h.TotalCount()) / b.Seconds
				}
			}
			return rate
		})
	}
}

// responseTimes are the times of a histogram that are shown, in microseconds, by the quantile that they are.
var responseTimes = []struct {
	name     string
	quantile float64 // in percent; 0: another
	of       func(*hdrhistogram.Histogram) float64
}{{"mean", 0, func(h *hdrhistogram.Histogram) float64 { return h.Mean() / 1e3 }},
	{"p50", 50, quantile(50)}, {"p90", 90, quantile(90)}, {"p99", 99, quantile(99)}, {"p99.9", 99.9, quantile(99.9)},
	{"p99.99", 99.99, quantile(99.99)},
	{"max", 100, func(h *hdrhistogram.Histogram) float64 { return float64(h.Max()) / 1e3 }}}

func quantile(q float64) func(*hdrhistogram.Histogram) float64 {
	return func(h *hdrhistogram.Histogram) float64 { return float64(h.ValueAtQuantile(q)) / 1e3 }
}
