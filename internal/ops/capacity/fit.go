package capacity

import (
	"math"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/stats"
)

// Model says how the time of a run follows from the shape of its deployment.
type Model struct {
	Name    string   // as tables have it
	Formula string   // of the time T, with n nodes of c cores, N = n·c
	Parts   []string // what the fit finds, in the order of the formula
	terms   func(Shape) []float64
	// power: the logarithm of the time is the sum of parts × terms, and parts may be negative; else the time is, and
	// none is
	power bool
}

// Models of the time of a run.
var (
	// Floors is the model to plan with: s that nothing shortens, p divided by all cores, q by the cores of one node.
	Floors = Model{Name: "floors", Formula: "T = s + p/(n·c) + q/c", Parts: []string{"s", "p", "q"},
		terms: func(s Shape) []float64 { return []float64{1, 1 / float64(s.Total()), 1 / float64(s.Cores)} }}
	// Amdahl is a part that nothing shortens, and one divided by all cores.
	Amdahl = Model{Name: "Amdahl", Formula: "T = s + p/N", Parts: []string{"s", "p"},
		terms: func(s Shape) []float64 { return []float64{1, 1 / float64(s.Total())} }}
	// USL is the universal scalability law over all cores: contention a, and coherence b, which grows with them.
	USL = Model{Name: "USL", Formula: "T = (p + a·(N-1))/N + b·(N-1)", Parts: []string{"p", "a", "b"},
		terms: func(s Shape) []float64 {
			n := float64(s.Total())
			return []float64{1 / n, (n - 1) / n, n - 1}
		}}
	// Power is a power of nodes and of cores.
	Power = Model{Name: "power", Formula: "T = e^k · n^a · c^b", Parts: []string{"k", "a", "b"}, power: true,
		terms: func(s Shape) []float64 {
			return []float64{1, math.Log(float64(s.Nodes)), math.Log(float64(s.Cores))}
		}}
)

// models are all of them, in the order of tables: the one to plan with first.
var models = []Model{Floors, Amdahl, USL, Power}

// Fit is a model with the parts that some runs have given it.
type Fit struct {
	Model
	Values  []float64 // of the parts
	spread  float64   // of the logarithm of times around the fit
	free    int       // runs less parts
	inverse [][]float64
}

// FitRuns finds the parts for which the squares of log(T/measured) are least: a miss by a tenth counts the same for
// short and long runs, above and below.
func FitRuns(m Model, runs []Run) (Fit, error) {
	f := Fit{Model: m, free: len(runs) - len(m.Parts)}
	if f.free < 1 {
		return f, fault.New(fault.UserData, "%d runs are too few to fit %s, which needs %d", len(runs), m.Formula,
			len(m.Parts)+1)
	}
	if !f.find(runs) {
		return f, fault.New(fault.UserData, "the shapes of the runs do not tell the parts of %s apart", m.Formula)
	}
	f.spread = math.Sqrt(f.squares(runs) / float64(f.free))
	return f, nil
}

func (f *Fit) find(runs []Run) (ok bool) {
	all := make([]int, len(f.Parts))
	for k := range all {
		all[k] = k
	}
	if f.power {
		rows := f.slopes(runs)
		if f.inverse, ok = invertedSquares(rows, all); !ok {
			return false
		}
		f.Values = make([]float64, len(f.Parts))
		for k := range f.Values {
			for i, row := range rows {
				f.Values[k] += dot(f.inverse[k], row) * math.Log(runs[i].Seconds)
			}
		}
		return true
	}
	rows, ones := make([][]float64, len(runs)), make([]float64, len(runs))
	for i, r := range runs {
		rows[i], ones[i] = divided(f.terms(r.Shape), r.Seconds), 1
	}
	if _, ok = invertedSquares(rows, all); !ok {
		return false
	}
	if f.Values = least(rows, ones); !f.descend(runs) {
		return false
	}
	f.inverse, ok = invertedSquares(f.slopes(runs), all)
	return ok
}

// Bounds of descend: the steps that it makes, how often it halves one, and the gain that ends it.
const (
	stepsMax   = 200
	halvesMax  = 40
	gainsLeast = 1e-13
)

// descend goes from the parts with the least relative errors to those with the least logarithms of T/measured, step by
// step as Gauss and Newton do, and never upwards. It reports whether all times of the fit are above 0.
func (f *Fit) descend(runs []Run) bool {
	squares := f.squares(runs)
	for range stepsMax {
		rows, want := f.slopes(runs), make([]float64, len(runs))
		for i, r := range runs {
			want[i] = 1 + math.Log(r.Seconds/f.At(r.Shape))
		}
		next, before := least(rows, want), f.Values
		if next == nil || math.IsInf(squares, 1) {
			return false
		}
		for step := range halvesMax {
			f.Values = between(before, next, math.Ldexp(1, -step))
			if f.squares(runs) < squares {
				break
			}
			f.Values = before
		}
		now := f.squares(runs)
		if squares-now <= gainsLeast*squares {
			break
		}
		squares = now
	}
	return true
}

func between(from, to []float64, share float64) []float64 {
	out := make([]float64, len(from))
	for k := range out {
		out[k] = from[k] + share*(to[k]-from[k])
	}
	return out
}

func divided(terms []float64, by float64) []float64 {
	for k := range terms {
		terms[k] /= by
	}
	return terms
}

// slopes are the changes of the logarithm of each run's time with each part.
func (f Fit) slopes(runs []Run) [][]float64 {
	out := make([][]float64, len(runs))
	for i, r := range runs {
		out[i] = f.slope(r.Shape)
	}
	return out
}

func (f Fit) slope(s Shape) []float64 {
	if f.power {
		return f.terms(s)
	}
	return divided(f.terms(s), f.At(s))
}

// squares is the sum of the squares of log(T/measured).
func (f Fit) squares(runs []Run) (sum float64) {
	for _, r := range runs {
		miss := math.Log(r.Seconds / f.At(r.Shape))
		sum += miss * miss
	}
	return sum
}

// At returns the time in seconds that a run of a shape takes by the fit.
func (f Fit) At(s Shape) float64 {
	t := dot(f.terms(s), f.Values)
	if f.power {
		return math.Exp(max(-farthest, min(t, farthest)))
	}
	return t
}

// Between returns the 80 % interval of the time of one run of a shape: the spread of runs around the fit, and what the
// fit itself does not know of the shape, by Student's distribution.
func (f Fit) Between(s Shape) (lower, upper float64) {
	slope := f.slope(s)
	unknown := 0.0
	for k := range slope {
		unknown += slope[k] * dot(f.inverse[k], slope)
	}
	width := math.Exp(min(widest, stats.Student90(f.free)*f.spread*math.Sqrt(1+unknown)))
	return f.At(s) / width, f.At(s) * width
}

// farthest and widest, logarithms, keep times and the ends of their intervals numbers: what is farther says nothing
// anyway.
const farthest, widest = 300, 100

// Part returns the value of a part, by its name in the formula, and its 80 % interval.
func (f Fit) Part(name string) (value, lower, upper float64) {
	for k, part := range f.Parts {
		if part == name {
			width := stats.Student90(f.free) * f.spread * math.Sqrt(f.inverse[k][k])
			value, lower, upper = f.Values[k], f.Values[k]-width, f.Values[k]+width
		}
	}
	if !f.power {
		lower = max(0, lower)
	}
	return value, lower, upper
}
