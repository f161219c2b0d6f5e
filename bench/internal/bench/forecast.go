package bench

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
)

// Forecast is what a run was expected to take, beside what it took, in seconds.
type Forecast struct {
	Name     string  `json:"name"` // deployment or size
	Repeat   int     `json:"repeat"`
	Measured float64 `json:"measured_s"`
	Batches  int     `json:"batches"` // of the run

	Middle    float64 `json:"middle_s,omitempty"` // 0: others were foretold from this one
	Low       float64 `json:"low_s,omitempty"`
	High      float64 `json:"high_s,omitempty"`
	Simulated float64 `json:"simulated_s,omitempty"` // by `simulate --run`; 0: it was not asked
	Expected  int     `json:"batches_foretold,omitempty"`
	Speed     float64 `json:"core_speed,omitempty"` // of a slot, as measured; 0: as one of the run it rests on
	Of        int     `json:"of,omitempty"`         // runs that it rests on
	Shape     bool    `json:"shape,omitempty"`      // it is one of several that have the same cores
}

// off returns by what share a foretold time is off.
func (f Forecast) off(foretold float64) float64 { return math.Abs(foretold/f.Measured - 1) }

// Counts that ScoreForecasts makes.
const (
	MedianError    = "median error %"
	WorstError     = "worst error %"
	MedianSimulate = "median error of simulate %"
	WorstSimulate  = "worst error of simulate %"
	WithinInterval = "in their intervals %"
	MostSpread     = "most spread of repeats %"
	ShapePairs     = "pairs of shapes that differ by 5 %"
	ShapesWrong    = "of them foretold in the wrong order"
)

// differs is by how much the times of two shapes differ whose order counts.
const differs = 0.05

// ScoreForecasts sums up forecasts. What they do not tell is not there.
func ScoreForecasts(all []Forecast) map[string]float64 {
	const percent = 100
	out := map[string]float64{}
	var off, simulated []float64
	within := 0
	byName := map[string][]Forecast{}
	for _, f := range all {
		byName[f.Name] = append(byName[f.Name], f)
		if f.Middle > 0 {
			off = append(off, percent*f.off(f.Middle))
			if f.Low <= f.Measured && f.Measured <= f.High {
				within++
			}
		}
		if f.Simulated > 0 {
			simulated = append(simulated, percent*f.off(f.Simulated))
		}
	}
	if len(off) > 0 {
		out[MedianError], out[WorstError] = median(off), slices.Max(off)
		out[WithinInterval] = percent * float64(within) / float64(len(off))
	}
	if len(simulated) > 0 {
		out[MedianSimulate], out[WorstSimulate] = median(simulated), slices.Max(simulated)
	}
	for _, repeats := range byName {
		if len(repeats) > 1 {
			out[MostSpread] = max(out[MostSpread], percent*spreadOf(repeats))
		}
	}
	scoreShapes(byName, out)
	return out
}

func measuredOf(f Forecast) float64 { return f.Measured }
func middleOf(f Forecast) float64   { return f.Middle }

// middle returns the median of repeats.
func middle(repeats []Forecast, of func(Forecast) float64) float64 {
	var v []float64
	for _, f := range repeats {
		v = append(v, of(f))
	}
	return median(v)
}

// spreadOf returns how far repeats are apart, as a share of their median.
func spreadOf(repeats []Forecast) float64 {
	byTime := func(a, b Forecast) int { return int(math.Copysign(1, a.Measured-b.Measured)) }
	return (slices.MaxFunc(repeats, byTime).Measured - slices.MinFunc(repeats, byTime).Measured) /
		middle(repeats, measuredOf)
}

// scoreShapes counts pairs of shapes whose medians differ, and those of them whose foretold ones are in another order.
func scoreShapes(byName map[string][]Forecast, out map[string]float64) {
	var shapes [][]Forecast
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		if byName[name][0].Shape {
			shapes = append(shapes, byName[name])
		}
	}
	for i, a := range shapes {
		for _, b := range shapes[:i] {
			real, foretold := middle(a, measuredOf)-middle(b, measuredOf), middle(a, middleOf)-middle(b, middleOf)
			out[ShapePairs] += 0
			if math.Abs(real) < differs*min(middle(a, measuredOf), middle(b, measuredOf)) {
				continue
			}
			out[ShapePairs]++
			if out[ShapesWrong] += 0; real*foretold <= 0 {
				out[ShapesWrong]++
			}
		}
	}
}

// forecastTable lists what was foretold by a report's runs; nil: nothing was.
func (r Report) forecastTable() table.Writer {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"run", "repeat", "measured s", "foretold s", "80 % interval", "off %", "simulate --run s",
		"off %", "core speed", "rests on runs", "batches", "foretold"})
	s := func(v float64, how string) string {
		if v == 0 {
			return ""
		}
		return fmt.Sprintf(how, v)
	}
	for _, run := range r.Runs {
		if run.Peer == nil {
			continue
		}
		for _, f := range run.Peer.Forecasts {
			interval, off, simulatedOff := "", "", ""
			if f.Middle > 0 {
				interval = fmt.Sprintf("%.1f–%.1f", f.Low, f.High)
				off = fmt.Sprintf("%+.1f", 100*(f.Middle/f.Measured-1))
			}
			if f.Simulated > 0 {
				simulatedOff = fmt.Sprintf("%+.1f", 100*(f.Simulated/f.Measured-1))
			}
			t.AppendRow(table.Row{f.Name, f.Repeat, s(f.Measured, "%.1f"), s(f.Middle, "%.1f"), interval, off,
				s(f.Simulated, "%.1f"), simulatedOff, s(f.Speed, "%.2f"), s(float64(f.Of), "%g"), f.Batches,
				s(float64(f.Expected), "%g")})
		}
	}
	if t.Length() == 0 {
		return nil
	}
	return t
}

// forecastCases hold forecasts against runs: see bench/cmd/thalweg-forecast.
func forecastCases() []Case {
	judged := func(name string, b bar) check {
		return check{name: name, figure: countFigure + name, side: "forecast", bar: b}
	}
	within := judged(WithinInterval, bar{limit: 80, unit: "%", atLeast: true})
	return []Case{
		{
			Name: "forecast-fleet", What: "a run of one worker of 0.4 core foretells runs of others, over Cassandra and " +
				"RabbitMQ", input: inputPortfolio, size: 400, runs: 1,
			sides: []side{{name: "forecast", program: "forecast over services", file: rowsScript}},
			checks: []check{judged(MedianError, noMore(8, "%")), judged(WorstError, noMore(15, "%")), within,
				judged(ShapesWrong, noMore(0, "pairs")), judged(ShapePairs, bar{}), judged(MostSpread, bar{}),
				judged(MedianSimulate, noMore(8, "%")), judged(WorstSimulate, noMore(15, "%"))},
		},
		{
			Name: "forecast-size", What: "runs of 0.1 and 0.5 times the accounts foretell 2 and 5 times as many, row-wise and " +
				"with numpy", input: inputNone, size: 500, runs: 1,
			sides: []side{{name: "forecast", program: "forecast", file: rowsScript, flags: []string{"--accounts", "{rows}",
				"--inputs", "{work}", "--numpy-script", "{root}/" + numpyScript, "--numpy", "{env:duckdb}/bin/python3"}}},
			checks: []check{judged(WorstError, noMore(10, "%")), judged(MedianError, bar{}), within, judged(MostSpread, bar{})},
		},
	}
}
