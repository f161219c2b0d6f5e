package capacity

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
	"thalweg/internal/base/stats"
)

// Measured is a set of measurements: what was measured, where, and each time that it was.
type Measured struct {
	Name    string // of the set
	figures []figureOf
}

// figureOf is one thing that was measured at one place, such as the time of runs of a deployment.
type figureOf struct {
	what, where, unit string
	value             float64   // as it was reported; 0: the geometric mean of the values
	values            []float64 // above 0; none: it was measured once
}

// is returns what is shown of it.
func (f figureOf) is() float64 {
	if f.value > 0 {
		return f.value
	}
	mean, _ := meanOf(logsOf(f.values))
	return math.Exp(mean)
}

// MeasuredRuns returns what runs have taken: time, cost if all have a price, and time by class of node.
func MeasuredRuns(name string, runs []Run) Measured {
	m := Measured{Name: name}
	for _, r := range runs {
		m.add("time", r.Shape.String(), "s", r.Seconds)
		if r.Cost != nil && allPriced(runs) {
			m.add("cost", r.Shape.String(), "USD", r.Cost.USD())
		}
		for _, c := range r.Classes {
			m.add(c.Name, r.Shape.String(), "s", c.Seconds)
		}
	}
	return m
}

// add adds a value; none can be told of what took nothing.
func (m *Measured) add(what, where, unit string, value float64) {
	if !(value > 0) {
		return
	}
	i := slices.IndexFunc(m.figures, func(f figureOf) bool { return f.what == what && f.where == where })
	if i < 0 {
		i = len(m.figures)
		m.figures = append(m.figures, figureOf{what: what, where: where, unit: unit})
	}
	m.figures[i].values = append(m.figures[i].values, value)
}

// figuresMost bounds the figures of a file, and repeats of one.
const figuresMost = 1000

// ReadFigures reads what was measured on a host or of a store, by name, from JSON. Other fields are left alone.
func ReadFigures(name string, text []byte) (Measured, error) {
	var host struct {
		Machine string `json:"machine"`
		Figures map[string]struct {
			Value   float64   `json:"value"`
			Unit    string    `json:"unit"`
			Repeats []float64 `json:"repeats"`
		} `json:"figures"`
	}
	wrong := func(text string, args ...any) error {
		f := fault.New(fault.Script, text, args...)
		f.Place.File = name
		f.Hint = `it is JSON: {"machine": "c8g.large", "figures": {"sort": {"value": 3.1, "unit": "s", "repeats": [3, 3.2]}}}`
		return f
	}
	if err := json.Unmarshal(text, &host); err != nil {
		return Measured{}, wrong("the figures cannot be read: %v", err)
	}
	if len(host.Figures) == 0 || len(host.Figures) > figuresMost {
		return Measured{}, wrong("there are %d figures; there must be 1 to %d", len(host.Figures), figuresMost)
	}
	m := Measured{Name: name}
	if host.Machine != "" {
		m.Name = host.Machine
	}
	for _, what := range slices.Sorted(maps.Keys(host.Figures)) {
		f := host.Figures[what]
		all := f.Repeats
		if f.Value != 0 || len(all) == 0 {
			all = append([]float64{f.Value}, all...)
		}
		for _, v := range all {
			if !(v > 0) || math.IsInf(v, 0) || len(f.Repeats) > figuresMost {
				return m, wrong("figure %q has the value %g, or more than %d: values are above 0", what, v, figuresMost)
			}
		}
		m.figures = append(m.figures, figureOf{what: what, unit: f.Unit, value: f.Value, values: f.Repeats})
	}
	return m, nil
}

// Compared has two sets of measurements beside each other.
type Compared struct {
	A      string   `json:"a"`
	B      string   `json:"b"`
	Ratios []Ratio  `json:"ratios"`
	Notes  []string `json:"notes,omitempty"`
}

// Ratio is how many times as much the second set has as the first one.
type Ratio struct {
	What  string  `json:"what"`            // time, cost, a class of nodes, or a figure of a host
	Where string  `json:"where,omitempty"` // the deployment; "": all that are in both, or a host
	Unit  string  `json:"unit,omitempty"`
	A     float64 `json:"a,omitempty"` // as the report has it; of runs, their geometric mean
	B     float64 `json:"b,omitempty"`
	OfA   int     `json:"a_of"` // how many it is of
	OfB   int     `json:"b_of"`
	Ratio float64 `json:"ratio"`
	// An interval around the ratio, as wide as repeats vary, that holds it in 80 % of cases; 0: it is not known.
	Low  float64 `json:"low,omitempty"`
	High float64 `json:"high,omitempty"`
}

// Compare returns what is in both sets, and names what is in one alone: nothing is assumed of what was not measured.
func Compare(a, b Measured) (Compared, error) {
	out := Compared{A: a.Name, B: b.Name, Ratios: []Ratio{}}
	byWhat := map[string][]float64{} // logarithms of ratios, by place
	var order, onlyA, onlyB []string
	for _, f := range a.figures {
		g, there := b.find(f)
		switch {
		case !there:
			onlyA = append(onlyA, f.name())
			continue
		case f.unit != g.unit:
			return out, fault.New(fault.Script, "%s is in %q in %s, and in %q in %s", f.name(), f.unit, a.Name, g.unit, b.Name)
		}
		r := ratio(f, g)
		out.Ratios = append(out.Ratios, r)
		if f.where != "" {
			if byWhat[f.what] == nil {
				order = append(order, f.what)
			}
			byWhat[f.what] = append(byWhat[f.what], math.Log(r.Ratio))
		}
	}
	for _, g := range b.figures {
		if _, there := a.find(g); !there {
			onlyB = append(onlyB, g.name())
		}
	}
	if len(out.Ratios) == 0 {
		return out, fault.New(fault.Script, "nothing was measured in both: %s has %s, %s has %s", a.Name,
			strings.Join(onlyA, ", "), b.Name, strings.Join(onlyB, ", "))
	}
	for _, what := range order {
		if logs := byWhat[what]; len(logs) > 1 {
			mean, spread := meanOf(logs)
			r := Ratio{What: what, OfA: len(logs), OfB: len(logs), Ratio: math.Exp(mean)}
			r.within(mean, math.Sqrt(spread/float64(len(logs)-1)/float64(len(logs))), len(logs)-1)
			out.Ratios = append(out.Ratios, r)
		}
	}
	for _, only := range []struct {
		set  string
		what []string
	}{{a.Name, onlyA}, {b.Name, onlyB}} {
		if len(only.what) > 0 {
			out.Notes = append(out.Notes, fmt.Sprintf("Measured in %s alone, and not compared: %s.", only.set,
				strings.Join(only.what, ", ")))
		}
	}
	return out, nil
}

func (m Measured) find(f figureOf) (figureOf, bool) {
	i := slices.IndexFunc(m.figures, func(g figureOf) bool { return g.what == f.what && g.where == f.where })
	if i < 0 {
		return figureOf{}, false
	}
	return m.figures[i], true
}

func (f figureOf) name() string { return strings.TrimSpace(f.what + " " + f.where) }

// ratio compares measurements, with an interval from their repeats. Both are taken to spread alike, so one side may
// have a single one.
func ratio(f, g figureOf) Ratio {
	_, spreadA := meanOf(logsOf(f.values))
	_, spreadB := meanOf(logsOf(g.values))
	a, b := max(len(f.values), 1), max(len(g.values), 1)
	r := Ratio{What: f.what, Where: f.where, Unit: f.unit, A: f.is(), B: g.is(), OfA: a, OfB: b}
	r.Ratio = r.B / r.A
	if free := a + b - 2; free > 0 {
		r.within(math.Log(r.Ratio), math.Sqrt((spreadA+spreadB)/float64(free)*(1/float64(a)+1/float64(b))), free)
	}
	return r
}

func logsOf(values []float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = math.Log(v)
	}
	return out
}

// within sets the interval around the logarithm of a ratio, by Student's distribution.
func (r *Ratio) within(mean, off float64, free int) {
	width := stats.Student90(free) * off
	r.Low, r.High = math.Exp(mean-width), math.Exp(mean+width)
}

// meanOf returns the mean, and the sum of squares around it.
func meanOf(values []float64) (mean, squares float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return mean, squares
}

// Tables returns the comparison as a table.
func (c Compared) Tables() []Table {
	t := Table{Title: c.B + " over " + c.A, Header: []string{"what", "where", "a", "b", "of", "ratio", "80 % interval", ""}}
	for _, r := range c.Ratios {
		where, interval := r.Where, "-"
		if r.A == 0 {
			where = "all " + format.Count(int64(r.OfA))
		}
		if r.High > 0 {
			interval = fmt.Sprintf("%.3f–%.3f", r.Low, r.High)
		}
		t.Rows = append(t.Rows, []string{r.What, where, r.value(r.A), r.value(r.B), fmt.Sprintf("%d, %d", r.OfA, r.OfB),
			fmt.Sprintf("%.3f", r.Ratio), interval, r.verdict()})
	}
	return []Table{t.WithoutEmpty()}
}

func (r Ratio) value(v float64) string {
	const whole = 1000
	switch {
	case v == 0:
		return ""
	case v >= whole:
		return strings.TrimSpace(format.Count(int64(math.Round(v))) + " " + r.Unit)
	}
	return strings.TrimSpace(fmt.Sprintf("%.3g %s", v, r.Unit))
}

// verdict says whether the sets differ.
func (r Ratio) verdict() string {
	switch {
	case r.High == 0:
		return "not repeated"
	case r.Low > 1:
		return "more"
	case r.High < 1:
		return "less"
	}
	return "no difference told"
}
