package load

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

const (
	// DipBelow is the part of the median rate below which a second is a dip.
	DipBelow = 0.7
	// dipBeside is how many seconds before and behind a dip what moved is looked for.
	dipBeside = 2
	// movedBy is by how many robust deviations beyond its median something has moved.
	movedBy = 4
	// movedMost bounds what is named beside a dip.
	movedMost = 6
	// secondsLeast are the fewest seconds that have a median which says something.
	secondsLeast = 5
	// madToDeviation makes the median absolute deviation that of a normal distribution.
	madToDeviation = 1.4826
	// wholeSecond is how much of a second must be there for its rate to count.
	wholeSecond = 0.95
)

// OwnCollector names the processor time of this process's garbage collector.
const OwnCollector = "own collector (s)"

// Dip is seconds on end whose rate is far below the median, and what else moved then.
type Dip struct {
	From   float64 `json:"from_s"`
	To     float64 `json:"to_s"`
	Part   float64 `json:"part_of_median"` // the lowest
	Beside []Jump  `json:"beside,omitempty"`
}

// Jump is something that grew beyond its usual within two seconds of a dip.
type Jump struct {
	What  string  `json:"what"` // this process's collector or processor time, or a counter or gauge of a server
	Node  string  `json:"node,omitempty"`
	At    float64 `json:"at_s"`
	Value float64 `json:"value"`
	Usual float64 `json:"usual"` // median of the window
}

// track is one figure over the seconds of a window; NaN: not known.
type track struct {
	what, node string
	values     []float64
}

// Dips returns the dips of a load.
func (r Result) Dips() []Dip {
	rates := r.Rates()
	if len(rates) < secondsLeast {
		return nil
	}
	usual := median(rates)
	if usual == 0 {
		return nil
	}
	var dips []Dip
	tracks := r.tracks()
	for i := 0; i < len(rates); i++ {
		if rates[i] >= DipBelow*usual {
			continue
		}
		from := i
		for i+1 < len(rates) && rates[i+1] < DipBelow*usual {
			i++
		}
		d := Dip{From: float64(from), To: float64(i + 1), Part: slices.Min(rates[from:i+1]) / usual}
		d.Beside = beside(tracks, from-dipBeside, i+dipBeside)
		dips = append(dips, d)
	}
	return dips
}

// Rates returns operations a second that succeeded, of each whole second, the first one not being a part.
func (r Result) Rates() []float64 {
	var out []float64
	before := 0.0
	for _, s := range r.Seconds {
		if long := s.At - before; long >= wholeSecond && s.At <= r.Took.Seconds()+1e-9 {
			out = append(out, float64(s.Ops[Read]+s.Ops[Write])/long)
		}
		before = s.At
	}
	return out
}

// tracks returns what may move beside a dip.
func (r Result) tracks() []track {
	collector, cpu := track{what: OwnCollector}, track{what: "own processor time (s)"}
	byName := map[[3]string]*track{}
	last := map[[3]string]float64{}
	look := func(i int, readings []Reading) {
		for _, reading := range readings {
			for kind, figures := range map[string]map[string]float64{"counter": reading.Counters, "gauge": reading.Gauges} {
				for name, v := range figures {
					key := [3]string{reading.Node, kind, name}
					if byName[key] == nil {
						byName[key] = &track{what: name, node: reading.Node, values: unknown(len(r.Seconds))}
					}
					before, seen := last[key]
					switch last[key] = v; {
					case i < 0:
					case kind == "gauge":
						byName[key].values[i] = v
					case seen && v >= before:
						byName[key].values[i] = v - before
					}
				}
			}
		}
	}
	look(-1, r.Before)
	for i, s := range r.Seconds {
		collector.values, cpu.values = append(collector.values, s.Collector), append(cpu.values, s.CPU)
		look(i, s.Servers)
	}
	out := []track{collector, cpu}
	for _, t := range byName {
		out = append(out, *t)
	}
	slices.SortStableFunc(out[2:], func(a, b track) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.what, b.what))
	})
	return out
}

func unknown(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = math.NaN()
	}
	return out
}

// beside returns what was beyond its usual in the seconds from and to, the farthest first.
func beside(tracks []track, from, to int) []Jump {
	type far struct {
		Jump
		by float64
	}
	var found []far
	for _, t := range tracks {
		known := slices.DeleteFunc(slices.Clone(t.values), math.IsNaN)
		if len(known) < secondsLeast {
			continue
		}
		usual := median(known)
		off := make([]float64, len(known))
		for i, v := range known {
			off[i] = math.Abs(v - usual)
		}
		// What hardly ever varies has moved when it does by a tenth.
		unit := max(madToDeviation*median(off), math.Abs(usual)/10/movedBy, slices.Max(off)/100, 1e-9)
		best := far{by: movedBy}
		for i := max(from, 0); i <= min(to, len(t.values)-1); i++ {
			if by := (t.values[i] - usual) / unit; by > best.by {
				best = far{Jump{What: t.what, Node: t.node, At: float64(i + 1), Value: t.values[i], Usual: usual}, by}
			}
		}
		if best.What != "" {
			found = append(found, best)
		}
	}
	slices.SortStableFunc(found, func(a, b far) int { return cmp.Compare(b.by, a.by) })
	var out []Jump
	for _, f := range found[:min(len(found), movedMost)] {
		out = append(out, f.Jump)
	}
	return out
}

// Name names what moved, and where.
func (m Jump) Name() string { return track{what: m.What, node: m.Node}.name() }

func (m Jump) String() string {
	return fmt.Sprintf("%s %.3g, usually %.3g", m.Name(), m.Value, m.Usual)
}

func (t track) name() string {
	if t.node == "" {
		return t.what
	}
	return t.what + " of " + t.node
}

// Track returns what has a name over the seconds of a load: growth of counters, values of gauges; NaN: not known.
func (r Result) Track(name string) []float64 {
	for _, t := range r.tracks() {
		if t.name() == name {
			return t.values
		}
	}
	return nil
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
