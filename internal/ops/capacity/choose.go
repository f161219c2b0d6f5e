package capacity

import (
	"cmp"
	"math"
	"slices"

	"thalweg/internal/ops/price"
)

// Step is what twice the cores of a deployment change, by twice the nodes (out) or by twice the cores of each (up).
type Step struct {
	From Shape   `json:"from"`
	To   Shape   `json:"to"`
	Up   bool    `json:"up"`
	Time float64 `json:"time_times"`           // the time after it, in times of that before
	Cost float64 `json:"cost_times,omitempty"` // likewise; 0: not known
}

// StepsOf returns every doubling that two of the runs show, by the shape that it begins from, out before up.
func StepsOf(runs []Run) (out []Step) {
	all := deployments(runs)
	for _, from := range all {
		for _, to := range []Shape{{2 * from.Nodes, from.Cores}, {from.Nodes, 2 * from.Cores}} {
			i := slices.IndexFunc(all, func(r Run) bool { return r.Shape == to })
			if i < 0 {
				continue
			}
			s := Step{From: from.Shape, To: to, Up: to.Nodes == from.Nodes, Time: all[i].Seconds / from.Seconds}
			if from.Cost != nil && all[i].Cost != nil && *from.Cost > 0 {
				s.Cost = all[i].Cost.USD() / from.Cost.USD()
			}
			out = append(out, s)
		}
	}
	return out
}

// Perfect is the time and cost that a deployment would have if all cores were as good as those of the smallest
// measured one.
type Perfect struct {
	Seconds float64
	Cost    *price.Money
}

// PerfectOf returns what a run would be by the smallest deployment of all runs.
func PerfectOf(r Run, all []Run) Perfect {
	least := deploymentOfLeastCores(all)
	p := Perfect{Seconds: least.Seconds * float64(least.Total()) / float64(r.Total())}
	if r.PerHour != nil {
		cost := r.PerHour.For(duration(p.Seconds))
		p.Cost = &cost
	}
	return p
}

func deploymentOfLeastCores(runs []Run) Run {
	return slices.MinFunc(deployments(runs), func(a, b Run) int { return cmp.Compare(a.Total(), b.Total()) })
}

// Choice is a deployment than which none is both as fast and cheaper.
type Choice struct {
	Run
	Until float64 `json:"until_seconds,omitempty"` // it is the cheapest for deadlines below this; 0: for all later ones
}

// Frontier returns the deployments that are the cheapest for some deadline, the fastest first. All have a cost.
func Frontier(runs []Run) (out []Choice) {
	all := deployments(runs)
	slices.SortStableFunc(all, func(a, b Run) int {
		return cmp.Or(cmp.Compare(a.Seconds, b.Seconds), cmp.Compare(*a.Cost, *b.Cost))
	})
	for _, r := range all {
		if n := len(out); n == 0 || *r.Cost < *out[n-1].Cost {
			if n > 0 {
				out[n-1].Until = r.Seconds
			}
			out = append(out, Choice{Run: r})
		}
	}
	return out
}

// Planning is how plans for many deadlines would have gone: see TryPlanning.
type Planning struct {
	Margin    float64 `json:"margin"`
	Deadlines int     `json:"deadlines"`
	Refused   int     `json:"refused"` // for which no deployment was foreseen in time
	Planned   int     `json:"planned"`
	Kept      int     `json:"kept"`             // of the planned ones
	Over      float64 `json:"median_over_best"` // the share by which the plans' costs were above the best possible ones
	overs     []float64
}

// TryPlanning plans for deadlines in equal ratios from the fastest to the slowest run. Each time it chooses the
// cheapest deployment whose time, foreseen from all others and lengthened by the margin, is in time; what is foreseen
// of one never rests on its own run. If none is in time, the deadline is refused. What the choice really took and cost
// is then held against the deadline, and against the cheapest deployment that really was in time.
func TryPlanning(m Model, runs []Run, margin float64, deadlines int) (Planning, error) {
	all := deployments(runs)
	foreseen, err := LeftOut(m, all)
	if err != nil {
		return Planning{}, err
	}
	bySeconds := func(a, b Run) int { return cmp.Compare(a.Seconds, b.Seconds) }
	fastest, slowest := slices.MinFunc(all, bySeconds).Seconds, slices.MaxFunc(all, bySeconds).Seconds
	p := Planning{Margin: margin, Deadlines: deadlines}
	for i := range deadlines {
		deadline := fastest * math.Pow(slowest/fastest, float64(i)/float64(max(1, deadlines-1)))
		p.plan(all, foreseen, deadline)
	}
	if len(p.overs) > 0 {
		p.Over = median(p.overs)
	}
	return p, nil
}

func (p *Planning) plan(all []Run, foreseen []Foreseen, deadline float64) {
	chosen, expected := -1, math.Inf(1)
	best := math.Inf(1)
	for i, r := range all {
		cost := r.PerHour.For(duration(foreseen[i].Seconds)).USD()
		if foreseen[i].Seconds*(1+p.Margin) <= deadline && cost < expected {
			chosen, expected = i, cost
		}
		if r.Seconds <= deadline*(1+1e-12) { // the last deadline is the slowest time, but for rounding
			best = min(best, r.Cost.USD())
		}
	}
	if chosen < 0 {
		p.Refused++
		return
	}
	p.Planned++
	if all[chosen].Seconds <= deadline {
		p.Kept++
	}
	if best > 0 {
		p.overs = append(p.overs, all[chosen].Cost.USD()/best-1)
	}
}
