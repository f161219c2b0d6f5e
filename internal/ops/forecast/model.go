package forecast

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"thalweg/internal/base/budget"
	"thalweg/internal/ops/simulate"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// ErrNoRecord means that there is no run to learn from.
var ErrNoRecord = errors.New("no complete run of this script can be learnt from")

// RecordsMost is how many of the latest records a model rests on.
const RecordsMost = 20

// Model foretells what nodes take.
type Model struct {
	records []Record // the latest first
	lines   map[string]line
	of      map[string]int // runs that a node was measured in
}

// line is the time of a node: a + b × bytes, in seconds.
type line struct{ a, b float64 }

// Fit learns from records of one script, the latest first. Those that have other nodes than the latest are left out. A
// node that all of them have taken over took what it took where it was computed.
func Fit(records []Record) (Model, error) {
	m, err := fit(records)
	if err != nil {
		return m, err
	}
	for _, n := range m.records[0].Nodes {
		if m.of[n.Name] == 0 && n.Taken && !n.Other && n.Worked > 0 {
			m.of[n.Name], m.lines[n.Name] = 1, fitLine([]point{m.records[0].point(n)})
		}
	}
	return m, nil
}

// fit learns from what the records' own runs have computed.
func fit(records []Record) (Model, error) {
	m := Model{lines: map[string]line{}, of: map[string]int{}}
	for _, r := range records {
		if len(m.records) < RecordsMost && (len(m.records) == 0 || sameNodes(r, m.records[0])) {
			m.records = append(m.records, r)
		}
	}
	if len(m.records) == 0 || len(m.records[0].Nodes) == 0 {
		return m, ErrNoRecord
	}
	for _, n := range m.records[0].Nodes {
		var points []point
		for _, r := range m.records {
			one := r.node(n.Name)
			if !one.measured() {
				continue
			}
			if m.of[n.Name]++; one.Worked > 0 {
				points = append(points, r.point(one))
			}
		}
		m.lines[n.Name] = fitLine(points)
	}
	return m, nil
}

// Of returns how many runs the model rests on, for nodes that have work: in the least of them each was measured. node
// is one that was measured in none; "": each was. A nil work is that of the latest record.
func (m Model) Of(work func(node string) bool) (of int, node string) {
	of = len(m.records)
	for _, n := range m.records[0].Nodes {
		if work == nil && n.Taken || work != nil && !work(n.Name) || n.Kind == state.KindGate {
			continue
		}
		if of = min(of, m.of[n.Name]); m.of[n.Name] == 0 {
			return 0, n.Name
		}
	}
	return of, ""
}

func sameNodes(a, b Record) bool {
	return slices.EqualFunc(a.Nodes, b.Nodes, func(x, y Node) bool { return x.Name == y.Name && x.Kind == y.Kind })
}

// bytes returns what a node reads. Of tables that were never stored it is what their nodes read.
func (r Record) bytes(n Node) int64 {
	read, lookup, _ := r.reads(n)
	if all := read.Bytes + lookup.Bytes; all > 0 || len(n.Inputs) == 0 {
		return all
	}
	var all int64
	for _, name := range n.Inputs {
		all += r.bytes(r.node(name))
	}
	return all
}

// point is what a node read, and how long that took.
type point struct{ bytes, seconds float64 }

func (r Record) point(n Node) point {
	return point{float64(r.bytes(n)), n.Worked.Seconds() * r.threads(n, r.Slots, n.Batches)}
}

// alikeBytes is how much larger the largest of a node's inputs must be than the smallest before a part of its time can
// be told from its bytes.
const alikeBytes = 1.25

// fitLine returns the line with the least sum of squares of relative errors, of which neither part is below 0.
func fitLine(points []point) line {
	if len(points) == 0 {
		return line{}
	}
	least, most := math.Inf(1), 0.0
	var ww, wx, xx, wy, xy float64 // of weights 1/seconds²
	for _, p := range points {
		least, most = min(least, p.bytes), max(most, p.bytes)
		w := 1 / (p.seconds * p.seconds)
		ww, wx, xx = ww+w, wx+w*p.bytes, xx+w*p.bytes*p.bytes
		wy, xy = wy+w*p.seconds, xy+w*p.bytes*p.seconds
	}
	switch {
	case most == 0:
		return line{a: wy / ww}
	case most < alikeBytes*least:
		return line{b: xy / xx}
	}
	det := ww*xx - wx*wx
	l := line{a: (wy*xx - xy*wx) / det, b: (ww*xy - wx*wy) / det}
	switch {
	case l.a < 0:
		return line{b: xy / xx}
	case l.b < 0:
		return line{a: wy / ww}
	}
	return l
}

// Load is what a run is to read and where it runs.
type Load struct {
	// Files holds the bytes of files that nodes will read; of a node that is not there, Scale times what it read last.
	Files map[string]int64
	Scale float64 // 0 is 1
	// Computed reports whether a node has any work; nil: those have that the latest record has computed. The rows of
	// others are there.
	Computed func(node string) bool
	// Budget cuts the batches.
	Budget budget.Budget
	State  simulate.State
	Queue  simulate.Latency
	// Was is where the records' runs were; nil: there as well. With another kind of state they say nothing of how quick
	// state and parts are: State and Parts alone do.
	Was   *Place
	Parts simulate.Parts
	// Speed is how many times as fast a slot is as one of the records; Batches is how many times as many batches nodes
	// have that have several. 0 is 1.
	Speed, Batches float64
	// Beyond is how many times as large as what was measured the run or its fleet is: it widens the interval.
	Beyond float64
	Rest   *float64 // what Rest says; nil: it is not known yet
	// Workers and Slots, of each, are those for which nodes are planned: more slots have more batches. 0: as many as the
	// records had.
	Workers, Slots int
}

// budgets returns those by which nodes are planned and were planned: a fleet's has the slots of all workers.
func (l Load) budgets(r Record) (now, was budget.Budget) {
	now, was = l.Budget, l.was().Budget
	if l.Workers > 0 && r.Workers > 0 {
		now.Slots, was.Slots = l.Workers*l.Slots, r.Workers*r.Slots
	}
	return now, was
}

// threadBytes is the least input of a batch that is worth a second thread to the pipeline.
const threadBytes = 1 << 20

// threads returns how many cores a batch of a node has. Workers give nodes of fewer batches than they have slots the
// idle ones as threads, so that what one such batch takes says too little of several.
func (r Record) threads(n Node, slots, batches int) float64 {
	if slots <= batches || classOf(n.Kind) == "python" || r.bytes(n)/int64(max(batches, 1)) <= threadBytes {
		return 1
	}
	return float64(slots / max(batches, 1))
}

// Place is where runs are.
type Place struct {
	Budget budget.Budget
	State  simulate.State
	Queue  simulate.Latency
}

func (l Load) was() Place {
	if l.Was != nil {
		return *l.Was
	}
	return Place{l.Budget, l.State, l.Queue}
}

// moves reports whether state and parts are others than those of the records.
func (l Load) moves() bool { return l.was().State.Kind != l.State.Kind }

// Costs are what the simulator needs.
type Costs = simulate.Costs

// LoadOf returns what all runs of a state directory, or of a cluster, have in common.
func LoadOf(b budget.Budget, cluster bool) Load {
	if !cluster {
		return Load{Budget: b, State: simulate.Directory()}
	}
	portfolio := simulate.Portfolio()
	return Load{Budget: b, State: portfolio.State, Queue: portfolio.Queue}
}

// Costs returns what the simulator needs for a run of that load.
func (m Model) Costs(l Load) simulate.Costs {
	last := m.records[0]
	c := simulate.Costs{Name: fmt.Sprintf("run %d", last.Run.Run), State: last.state(l), Queue: l.Queue}
	next := last.grown(l)
	nowBudget, wasBudget := l.budgets(last)
	moved, took := 0.0, 0.0
	for i, n := range last.Nodes {
		grown := next.Nodes[i]
		read, lookup, stored := next.reads(grown)
		wasRead, wasLookup, was := last.reads(n)
		ratio := float64(plan.EstimateBatches(nowBudget, n.Kind, read, lookup)) /
			float64(plan.EstimateBatches(wasBudget, n.Kind, wasRead, wasLookup))
		batches := max(int(math.Round(float64(n.Batches)*ratio)), 1)
		if batches > 1 {
			batches = max(int(math.Round(float64(batches)*cmp.Or(l.Batches, 1))), 1)
		}
		next.Nodes[i].Out.Parts = n.Out.Parts * batches / max(n.Batches, 1)
		if l.Computed == nil && n.Taken || l.Computed != nil && !l.Computed(n.Name) {
			c.Nodes = append(c.Nodes, simulate.Node{Name: n.Name, Class: string(n.Kind), Inputs: n.Inputs, Batches: 1})
			continue
		}
		seconds := (m.lines[n.Name].a + m.lines[n.Name].b*float64(next.bytes(grown))) / cmp.Or(l.Speed, 1)
		seconds /= next.threads(grown, cmp.Or(l.Slots, last.Slots), batches)
		each := float64(batches)
		c.Nodes = append(c.Nodes, simulate.Node{
			Name: n.Name, Class: string(n.Kind), Inputs: n.Inputs, Batches: batches, Seconds: seconds / each,
			ReadMB: float64(stored) / 1e6 / each, WriteMB: float64(grown.Stored) / 1e6 / each, Spread: n.Spread,
		})
		moved, took = moved+float64(was+n.Stored)/1e6, took+n.Moved.Seconds()
	}
	switch {
	case l.moves():
		c.Parts = l.Parts
	case took > 0:
		c.Parts = simulate.Parts{WorkerMB: moved / took * float64(max(last.Slots, 1)), Overlap: true}
	}
	return c
}

// grown returns the record with the sizes that its tables will have.
func (r Record) grown(l Load) Record {
	scale := l.Scale
	if scale == 0 {
		scale = 1
	}
	out := Record{Run: r.Run, Nodes: slices.Clone(r.Nodes)}
	for i, n := range r.Nodes {
		by := scale
		if bytes, ok := l.Files[n.Name]; ok && n.Files > 0 {
			by = float64(bytes) / float64(n.Files)
		} else if was := r.bytes(n); len(n.Inputs) > 0 && was > 0 {
			by = float64(out.bytes(n)) / float64(was)
		}
		times := func(v int64) int64 { return int64(math.Round(float64(v) * by)) }
		out.Nodes[i].Files = times(n.Files)
		out.Nodes[i].Out = plan.Size{Rows: times(n.Out.Rows), Bytes: times(n.Out.Bytes), Parts: n.Out.Parts}
		out.Nodes[i].Stored = times(n.Stored)
	}
	return out
}
