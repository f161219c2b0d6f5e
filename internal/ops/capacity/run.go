package capacity

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"thalweg/internal/base/format"
	"thalweg/internal/ops/price"
)

// Shape is how the work is spread: nodes that have so many cores each. What stands beside each node, such as the
// worker of a node of the database, is not counted.
type Shape struct {
	Nodes int `json:"nodes"`
	Cores int `json:"cores_per_node"`
}

// Total returns the cores of all nodes.
func (s Shape) Total() int { return s.Nodes * s.Cores }

// String writes the shape as the tables do: 4 × 8.
func (s Shape) String() string { return fmt.Sprintf("%d × %d", s.Nodes, s.Cores) }

func (s Shape) compare(t Shape) int {
	return cmp.Or(cmp.Compare(s.Cores, t.Cores), cmp.Compare(s.Nodes, t.Nodes))
}

// Run is one measured run of a deployment.
type Run struct {
	Shape
	Machines   string       `json:"machines,omitempty"`
	TotalCores int          `json:"total_cores,omitempty"` // of all machines, with those beside the nodes
	Seconds    float64      `json:"seconds"`
	Classes    []Class      `json:"classes,omitempty"`      // its time by class of node, one behind the other
	PerHour    *price.Money `json:"usd_per_hour,omitempty"` // of all machines; nil: not known
	Cost       *price.Money `json:"usd,omitempty"`
}

// Class is the time of a run that nodes of a class took.
type Class struct {
	Name    string  `json:"class"`
	Seconds float64 `json:"seconds"`
}

// Priced returns the run with the cost that follows from a price an hour.
func (r Run) Priced(perHour price.Money) Run {
	cost := perHour.For(duration(r.Seconds))
	r.PerHour, r.Cost = &perHour, &cost
	return r
}

func duration(seconds float64) time.Duration {
	return time.Duration(math.Round(seconds * float64(time.Second)))
}

// deployments returns a run of each shape, the one of median time, by cores and nodes.
func deployments(runs []Run) (out []Run) {
	by := map[Shape][]Run{}
	for _, r := range runs {
		by[r.Shape] = append(by[r.Shape], r)
	}
	for _, same := range by {
		slices.SortStableFunc(same, func(a, b Run) int { return cmp.Compare(a.Seconds, b.Seconds) })
		out = append(out, same[(len(same)-1)/2])
	}
	slices.SortFunc(out, func(a, b Run) int { return a.compare(b.Shape) })
	return out
}

func allPriced(runs []Run) bool {
	return !slices.ContainsFunc(runs, func(r Run) bool { return r.Cost == nil })
}

// secondsText writes a time of a table: 1,408 s; below 10 s with a tenth.
func secondsText(s float64) string {
	if s < 10 {
		return fmt.Sprintf("%.1f s", s)
	}
	return format.Count(int64(math.Round(s))) + " s"
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if n := len(sorted); n%2 == 1 {
		return sorted[n/2]
	} else if n > 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return math.NaN()
}
