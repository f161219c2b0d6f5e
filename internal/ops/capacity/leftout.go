package capacity

import (
	"math"
	"slices"

	"thalweg/internal/base/fault"
)

// Foreseen is what a fit says of a deployment whose runs it has not seen.
type Foreseen struct {
	Shape
	Took    float64 `json:"seconds"`
	Seconds float64 `json:"foreseen_seconds"`
	Lower   float64 `json:"lower_seconds"` // of the 80 % interval
	Upper   float64 `json:"upper_seconds"`
}

// Error returns by which share the foreseen time is too long.
func (f Foreseen) Error() float64 { return f.Seconds/f.Took - 1 }

// Held reports whether the run was within the interval.
func (f Foreseen) Held() bool { return f.Lower <= f.Took && f.Took <= f.Upper }

// LeftOut foresees each run by the model fitted to the runs of all other shapes, in the order of the runs.
func LeftOut(m Model, runs []Run) ([]Foreseen, error) {
	out := make([]Foreseen, 0, len(runs))
	fits := map[Shape]Fit{}
	for _, r := range runs {
		f, fitted := fits[r.Shape]
		if !fitted {
			var err error
			others := slices.DeleteFunc(slices.Clone(runs), func(o Run) bool { return o.Shape == r.Shape })
			if f, err = FitRuns(m, others); err != nil {
				known := fault.Of(err)
				return nil, fault.New(known.Kind, "without the deployment %s, %s", r.Shape, known.Message)
			}
			fits[r.Shape] = f
		}
		lower, upper := f.Between(r.Shape)
		out = append(out, Foreseen{Shape: r.Shape, Took: r.Seconds, Seconds: f.At(r.Shape), Lower: lower, Upper: upper})
	}
	return out, nil
}

// Errors sums up how far off a model is for deployments left out, as shares.
type Errors struct {
	Median float64 `json:"median_error"`
	Worst  float64 `json:"worst_error"`
	Held   int     `json:"intervals_held"`
	Of     int     `json:"of"`
}

// ErrorsOf sums up what was foreseen.
func ErrorsOf(foreseen []Foreseen) Errors {
	e := Errors{Of: len(foreseen)}
	var misses []float64
	for _, f := range foreseen {
		miss := math.Abs(f.Error())
		misses = append(misses, miss)
		e.Worst = max(e.Worst, miss)
		if f.Held() {
			e.Held++
		}
	}
	e.Median = median(misses)
	return e
}
