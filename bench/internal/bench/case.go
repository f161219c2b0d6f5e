package bench

import (
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/ops/sweep"
)

// Case is something to measure: sides that do the same work, in turn, and
// what is asked of their figures.
type Case struct {
	Name     string // as in --case
	What     string
	input    string // what makes it: one of the kinds of input.go, or a directory of bench/steps
	size     int64  // of the input, for which the bars are set: accounts or rows; 0: there is but one
	runs     int    // of each side; 0: bigRuns
	anyOrder bool   // peers may leave the order of result lines to chance
	sides    []side
	checks   []check
}

// side is one way to do a case's work.
type side struct {
	name    string
	program string         // of programs
	file    string         // script or statements, below the repository
	part    int64          // of the case's size, one in so many; 0: all of it
	memory  string         // limit; "": none given
	flags   []string       // more of the command line
	params  map[string]any // more of the script's
	unlike  bool           // its results are its own
}

// check asks something of a side's figure.
type check struct {
	name   string
	side   string
	figure string  // of figures, or nodeFigure, engineFigure or stepFigure and a name
	over   string  // the side by whose figure it is divided; "": the bar is on the figure itself
	less   string  // the side whose figure is taken off, the rest divided by per
	per    float64 // 0: 1
	bar    bar     // zero: not judged
	note   string
}

// bigRuns is the number of runs of a side that takes long.
const bigRuns = 2

// elapsedFigure is the time that the product says a run took.
const elapsedFigure = "elapsed"

// What stands before the name of a node whose time is asked for, or that of
// DuckDB in it, or of a step that a program has measured by itself.
const (
	nodeFigure   = "node:"
	engineFigure = "engine:"
	stepFigure   = "step:"
	countFigure  = "count:" // of what a program has counted
	loadFigure   = "load:"  // mean time of an operation of what a bench of a store did first, or last
	shareFigure  = "share:" // of the best fixed number's rate that a worker's own choice reaches, of a class
)

// figureOf is a figure that a run may have: false if it has not.
type figureOf struct {
	unit  string
	of    func(Run) (float64, bool)
	worst bool // the largest of all runs counts, not the median
}

var figures = map[string]figureOf{
	"wall": {unit: "s", of: func(r Run) (float64, bool) { return r.WallMS / 1000, true }},
	"load_join": {unit: "s",
		of: func(r Run) (float64, bool) { return r.StepsMS["load_join"] / 1000, r.StepsMS != nil }},
	"peak": {unit: "GB", of: func(r Run) (float64, bool) { return float64(r.PeakRSS) / 1e9, true }, worst: true},
	elapsedFigure: {unit: "s", of: func(r Run) (float64, bool) {
		if r.Result == nil {
			return 0, false
		}
		return r.Result.ElapsedMS / 1000, true
	}},
	// What the product says it spent outside engine and Python, and the process's time outside the run.
	"overhead": {unit: "s", of: func(r Run) (float64, bool) {
		if r.Result == nil {
			return 0, false
		}
		return (r.Result.OverheadMS + r.WallMS - r.Result.ElapsedMS) / 1000, true
	}},
	"python_cpu": {unit: "%", of: func(r Run) (float64, bool) {
		if r.PythonCPUShare == nil {
			return 0, false
		}
		return 100 * *r.PythonCPUShare, true
	}},
}

func figureNamed(name string) figureOf {
	kind, which, ok := strings.Cut(name, ":")
	switch {
	case !ok:
		return figures[name]
	case kind+":" == countFigure:
		return figureOf{of: func(r Run) (float64, bool) {
			if r.Peer == nil {
				return 0, false
			}
			n, ok := r.Peer.Counts[which]
			return n, ok
		}}
	case kind+":" == loadFigure:
		return figureOf{unit: "s", of: func(r Run) (float64, bool) {
			if r.Peer == nil || len(r.Peer.Loads) == 0 {
				return 0, false
			}
			l := r.Peer.Loads[0]
			if which == "last" {
				l = r.Peer.Loads[len(r.Peer.Loads)-1]
			}
			if len(l.Rows) == 0 || l.Rows[0].Failed > 0 {
				return 0, false
			}
			return l.Rows[0].Mean / 1e6, true
		}}
	case kind+":" == shareFigure:
		return figureOf{of: func(r Run) (float64, bool) {
			if r.Peer == nil {
				return 0, false
			}
			i := slices.IndexFunc(r.Peer.Classes, func(c sweep.Class) bool { return c.Class == which })
			if i < 0 || r.Peer.Classes[i].Share == nil {
				return 0, false
			}
			return r.Peer.Classes[i].Share.Mean, true
		}}
	case kind+":" == stepFigure:
		return figureOf{unit: "s", of: func(r Run) (float64, bool) {
			if r.Peer == nil {
				return 0, false
			}
			seconds, ok := r.Peer.Steps[which]
			return seconds, ok
		}}
	}
	return figureOf{unit: "s", of: func(r Run) (float64, bool) {
		if r.Result == nil {
			return 0, false
		}
		i := slices.IndexFunc(r.Result.Nodes, func(n node) bool { return n.Node == which })
		switch {
		case i < 0:
			return 0, false
		case kind+":" == engineFigure:
			return r.Result.Nodes[i].EngineMS / 1000, true
		}
		return float64(r.Result.Nodes[i].FinishedMS-r.Result.Nodes[i].StartedMS) / 1000, true
	}}
}

// figure sums up a figure of a side's runs; nil where no run has it.
func (f figureOf) figure(runs []Run, side string) *Figure {
	var all []float64
	for _, r := range runs {
		if v, ok := f.of(r); ok && r.Side == side {
			all = append(all, v)
		}
	}
	if len(all) == 0 {
		return nil
	}
	sum := &Figure{Side: side, Value: median(all), Min: slices.Min(all), Max: slices.Max(all)}
	if f.worst {
		sum.Value = sum.Max
	}
	return sum
}

// judge works out the case's checks. Bars are judged at the full size, and of
// sides whose results are as they should be.
func (c Case) judge(r *Report, full bool, wrong map[string]bool) {
	for _, k := range c.checks {
		f := figureNamed(k.figure)
		out := Check{Name: k.name, Unit: f.unit, Ratio: k.over != "", Status: NotJudged, Note: k.note,
			Of: f.figure(r.Runs, k.side)}
		other := k.over + k.less // one of them at most
		if other != "" {
			out.Over = f.figure(r.Runs, other)
		}
		if k.bar != (bar{}) {
			out.Bar = k.bar.String()
		}
		switch {
		case wrong[k.side] || wrong[other]:
			out.Note = "a run failed or results differ: the figures mean nothing"
		case out.Of == nil:
			out.Note = k.side + " has not been measured, or for too short a time"
		case other != "" && out.Over == nil:
			out.Note = other + " has not been measured, or for too short a time"
		default:
			value, ok := k.value(out)
			if !ok {
				out.Note = other + " took no time"
				break
			}
			out.Value = &value
			if k.bar != (bar{}) && full {
				out.Status = k.bar.judge(value)
			}
		}
		r.Checks = append(r.Checks, out)
	}
}

// value returns the figure that is compared with the bar.
func (k check) value(c Check) (float64, bool) {
	switch {
	case k.over != "":
		if c.Over.Value <= 0 {
			return 0, false
		}
		return c.Of.Value / c.Over.Value, true
	case k.less != "":
		return (c.Of.Value - c.Over.Value) / k.per, true
	default:
		return c.Of.Value, true
	}
}

// bar is a limit that a value is held to.
type bar struct {
	limit   float64
	atLeast bool
	unit    string // empty for a ratio
}

func atMost(limit float64) bar              { return bar{limit: limit} }
func noMore(limit float64, unit string) bar { return bar{limit: limit, unit: unit} }

func (b bar) String() string {
	sign := "≤"
	if b.atLeast {
		sign = "≥"
	}
	if b.unit == "" {
		return fmt.Sprintf("%s %.2f%s", sign, b.limit, times)
	}
	return fmt.Sprintf("%s %g %s", sign, b.limit, b.unit)
}

// judge holds value to the bar.
func (b bar) judge(value float64) Status {
	if b.atLeast && value >= b.limit || !b.atLeast && value <= b.limit {
		return Pass
	}
	return Miss
}
