package capacity

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
	"thalweg/internal/ops/chart"
)

// OfNodes is the power of nodes alone, for machines that are all alike.
var OfNodes = Model{Name: "power of nodes", Formula: "T = e^k · n^a", Parts: []string{"k", "a"}, power: true,
	terms: func(s Shape) []float64 { return []float64{1, math.Log(float64(s.Nodes))} }}

// Scaled is a rate that so many nodes have carried.
type Scaled struct {
	Name  string  `json:"name"` // of what was measured: a file
	Nodes int     `json:"nodes"`
	Rate  float64 `json:"rate"` // operations a second
	// Of what as many nodes would carry if each did what one of the fewest does: 1 is linear.
	Linear float64 `json:"of_linear"`
}

// Linearity says how a rate grows with the number of nodes: with a power of it, which is 1 if it is linear.
type Linearity struct {
	What  string   `json:"what"`
	Rates []Scaled `json:"rates"` // by nodes
	// The power, and the interval that holds it in 80 % of cases; none: High is 0.
	Power float64 `json:"power"`
	Low   float64 `json:"low,omitempty"`
	High  float64 `json:"high,omitempty"`
	// What twice the nodes do, in times: 2 is linear.
	Doubling float64  `json:"doubling"`
	Notes    []string `json:"notes,omitempty"`
}

// linearMost bounds the rates of a fit.
const linearMost = 10_000

// LinearityOf fits a power of nodes to rates. It needs two numbers of nodes, and a third rate for an interval.
func LinearityOf(what string, rates []Scaled) (Linearity, error) {
	out := Linearity{What: what, Rates: slices.Clone(rates)}
	if len(rates) > linearMost {
		return out, fault.New(fault.Script, "there are %d rates; the most are %d", len(rates), linearMost)
	}
	slices.SortStableFunc(out.Rates, func(a, b Scaled) int { return cmp.Compare(a.Nodes, b.Nodes) })
	var runs []Run
	for _, r := range out.Rates {
		if r.Nodes < 1 || !(r.Rate > 0) || math.IsInf(r.Rate, 0) {
			return out, fault.New(fault.Script, "%s has %d nodes and %g operations a second: both are above 0", r.Name,
				r.Nodes, r.Rate)
		}
		runs = append(runs, Run{Shape: Shape{Nodes: r.Nodes, Cores: 1}, Seconds: 1 / r.Rate})
	}
	if len(runs) < 2 || runs[0].Nodes == runs[len(runs)-1].Nodes {
		return out, fault.New(fault.Script, "rates of one number of nodes do not say how they grow: give two numbers at least")
	}
	each, of := 0.0, 0 // logarithms of what a node of the fewest does
	for _, r := range out.Rates {
		if r.Nodes == out.Rates[0].Nodes {
			each, of = each+math.Log(r.Rate/float64(r.Nodes)), of+1
		}
	}
	for i := range out.Rates {
		r := &out.Rates[i]
		r.Linear = r.Rate / float64(r.Nodes) / math.Exp(each/float64(of))
	}
	if len(runs) == 2 {
		out.Power = math.Log(out.Rates[1].Rate/out.Rates[0].Rate) / math.Log(float64(runs[1].Nodes)/float64(runs[0].Nodes))
		out.Notes = append(out.Notes, "Two rates have no interval: measure again, or with another number of nodes.")
	} else {
		fit, err := FitRuns(OfNodes, runs)
		if err != nil {
			return out, err
		}
		a, low, high := fit.Part("a") // of the time, which falls as the rate grows
		out.Power, out.Low, out.High = -a, -high, -low
	}
	out.Doubling = math.Exp2(out.Power)
	return out, nil
}

// unitOfRates is the unit of figures that grow with nodes.
const unitOfRates = "operations/s"

// LinearitiesOf says of each rate that all sets have how it grows with the nodes, of which each set has so many.
func LinearitiesOf(sets []Measured, nodes []int) (out []Linearity, err error) {
	var has []string
	for _, f := range sets[0].figures {
		if f.unit != unitOfRates {
			continue
		}
		has = append(has, f.what)
		var rates []Scaled
		for i, m := range sets {
			if g, there := m.find(f); there {
				rates = append(rates, Scaled{Name: m.Name, Nodes: nodes[i], Rate: g.is()})
			}
		}
		if len(rates) < len(sets) {
			continue
		}
		l, err := LinearityOf(f.what, rates)
		if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	if len(out) == 0 {
		return nil, fault.New(fault.Script, "no rate was measured in all of them; %s has: %s", sets[0].Name,
			strings.Join(has, "; "))
	}
	return out, nil
}

// Verdict says in words whether it is linear.
func (l Linearity) Verdict() string {
	switch {
	case l.High == 0 && l.Low == 0:
		return "not told: no interval"
	case l.High < 1:
		return "less than linear"
	case l.Low > 1:
		return "more than linear"
	}
	return "linear, as far as can be told"
}

// Tables returns the rates and the power as tables.
func (l Linearity) Tables() []Table {
	rates := Table{Title: l.What + " by nodes", Header: []string{"nodes", "operations/s", "a node", "of linear", "from"}}
	for _, r := range l.Rates {
		rates.Rows = append(rates.Rows, []string{format.Count(int64(r.Nodes)), format.Count(int64(math.Round(r.Rate))),
			format.Count(int64(math.Round(r.Rate / float64(r.Nodes)))), percent(r.Linear), r.Name})
	}
	interval := "-"
	if l.Low != 0 || l.High != 0 {
		interval = fmt.Sprintf("%.3f–%.3f", l.Low, l.High)
	}
	power := Table{Title: "how linear: rate = e^k · n^power",
		Header: []string{"power", "80 % interval", "twice the nodes do", "verdict"},
		Rows:   [][]string{{fmt.Sprintf("%.3f", l.Power), interval, fmt.Sprintf("%.2f ×", l.Doubling), l.Verdict()}}}
	return []Table{rates, power}
}

// Panel draws the rates, and a line of what would be linear.
func (l Linearity) Panel() chart.Panel {
	measured := chart.Series{Name: "measured", Dots: true}
	linear := chart.Series{Name: "linear", Dashed: true}
	for _, r := range l.Rates {
		x := float64(r.Nodes)
		measured.Points = append(measured.Points, chart.Point{X: x, Y: r.Rate,
			Text: fmt.Sprintf("%d nodes: %s/s", r.Nodes, format.Count(int64(math.Round(r.Rate))))})
		linear.Points = append(linear.Points, chart.Point{X: x, Y: r.Rate / r.Linear})
	}
	return chart.Panel{Title: l.What + " by nodes", X: "nodes", Y: "operations a second",
		Series: []chart.Series{measured, linear}}
}
