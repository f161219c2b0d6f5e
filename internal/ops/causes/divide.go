package causes

import (
	"cmp"
	"slices"
	"time"

	"thalweg/internal/ops/history"
)

// Series are the charts over time: values are of Bins equal times from the beginning to the end of the run.
type Series struct {
	Step    float64              `json:"step_s" doc:"Seconds from a value to the next."`
	Slots   []float64            `json:"slots" doc:"Slots that were there, on average."`
	Working map[string][]float64 `json:"working" doc:"Slots at work by class of node, on average."`
	Done    map[string][]float64 `json:"batches" doc:"Batches done by class of node, up to the end of each time."`
	Rows    map[string][]float64 `json:"rows_per_s" doc:"Rows made a second by class of node."`
	Bytes   map[string][]float64 `json:"bytes_per_s" doc:"Bytes read and written a second by class of node."`
	Calls   []float64            `json:"claims_and_commits_per_s" doc:"Batches claimed and committed a second."`
	// What workers used of their processors: nothing if no sample is kept.
	CPU      []float64 `json:"cpu,omitempty" doc:"Processors that workers used themselves."`
	Children []float64 `json:"children_cpu,omitempty" doc:"Processors of processes that they have started."`
	Cores    []float64 `json:"cores,omitempty" doc:"Processors that they might use."`
	stood    float64   // seconds in which the run stood still
}

// Bins is the number of values of a series.
const Bins = 120

// divided is the time of slots that a node had, in seconds.
type divided struct {
	busy   float64 // its batches were executed
	window float64 // of the clock, in which that was so

	// slots were free because
	few      float64 // it had fewer batches than there are slots
	last     float64 // its last batches were at work
	skew     float64 // only batches that took far longer than the others were at work
	handover float64 // no batch was handed out: before its first, after the last of the run, or while it had more
}

func (d divided) all() float64 { return d.busy + d.few + d.last + d.skew + d.handover }

// node is what the sweep knows of a node at a moment.
type node struct {
	planned  int
	begun    int
	at, long int // batches that are at work, those that are outliers among them
}

// change is a moment at which something of a run changes.
type change struct {
	at    time.Time
	node  int     // of a batch; -1: none
	more  int     // batches at work
	long  bool    // the batch takes far longer than others
	slots float64 // more
	holds int     // more
}

// sweep divides the time of a run.
type sweep struct {
	f       *Facts
	changes []change
	nodes   []node
	out     []divided
	slots   float64
	holds   int
	ended   int // the node whose batch ended last
	begins  []int
	series  *Series
}

// divide says for each node of the facts what the time of slots went to, and what went on over time.
func divide(f *Facts) ([]divided, *Series) {
	s := &sweep{f: f, nodes: make([]node, len(f.Nodes)), out: make([]divided, len(f.Nodes)),
		series: &Series{Step: f.elapsed() / Bins, Slots: make([]float64, Bins), Working: map[string][]float64{},
			Done: map[string][]float64{}, Rows: map[string][]float64{}, Bytes: map[string][]float64{},
			Calls: make([]float64, Bins)}}
	s.collect()
	s.drawSamples()
	for i, c := range s.changes {
		s.apply(c)
		if i+1 < len(s.changes) {
			s.span(c.at, s.changes[i+1].at, i)
		}
	}
	for _, done := range s.series.Done {
		for i := range Bins - 1 {
			done[i+1] += done[i]
		}
	}
	return s.out, s.series
}

// elapsed is what the run has taken, in seconds, with the times in which it stood still.
func (f *Facts) elapsed() float64 { return max(f.To.Sub(f.Run.Created).Seconds(), 0) }

func (s *sweep) collect() {
	for i, n := range s.f.Nodes {
		s.nodes[i].planned = max(n.Planned, len(n.Batches))
		if n.More {
			s.nodes[i].planned = len(n.Batches)
		}
		middle := middleOf(n.Batches)
		for _, by := range []map[string][]float64{s.series.Working, s.series.Done, s.series.Rows, s.series.Bytes} {
			if by[n.Class] == nil {
				by[n.Class] = make([]float64, Bins)
			}
		}
		for _, b := range n.Batches {
			took := b.To.Sub(b.From)
			s.spread(s.series.Rows[n.Class], b.From, b.To, float64(b.Rows)/took.Seconds())
			s.spread(s.series.Bytes[n.Class], b.From, b.To, float64(b.Bytes)/took.Seconds())
			long := len(n.Batches) >= history.SkewBatches && took >= history.SkewTimes*middle
			s.changes = append(s.changes, change{at: b.From, node: i, more: 1, long: long},
				change{at: b.To, node: i, more: -1, long: long})
		}
	}
	for _, w := range s.f.Workers {
		d, to := w.To.Sub(w.From).Seconds(), w.To
		if to.After(s.f.To) { // it has noticed the end later
			to = s.f.To
		}
		if to.After(w.From) {
			there := w.SlotTime().Seconds() / d
			s.changes = append(s.changes, change{at: w.From, node: -1, slots: there}, change{at: to, node: -1, slots: -there})
		}
	}
	for _, h := range s.f.Holds {
		s.changes = append(s.changes, change{at: h.From, node: -1, holds: 1}, change{at: h.To, node: -1, holds: -1})
	}
	slices.SortStableFunc(s.changes, func(a, b change) int {
		return cmp.Or(a.at.Compare(b.at),
			cmp.Compare(b.more, a.more))
	})
	s.begins = make([]int, len(s.changes)) // the node that begins a batch next
	next := -1
	for i := len(s.changes) - 1; i >= 0; i-- {
		s.begins[i] = next
		if c := s.changes[i]; c.node >= 0 && c.more > 0 {
			next = c.node
		}
	}
}

// middleOf is how long the middle one of batches took.
func middleOf(batches []Batch) time.Duration {
	if len(batches) == 0 {
		return 0
	}
	took := make([]time.Duration, len(batches))
	for i, b := range batches {
		took[i] = b.To.Sub(b.From)
	}
	slices.Sort(took)
	return took[(len(took)-1)/2]
}

func (s *sweep) apply(c change) {
	s.slots += c.slots
	s.holds += c.holds
	if c.node < 0 {
		return
	}
	n := &s.nodes[c.node]
	n.at += c.more
	if c.long {
		n.long += c.more
	}
	i := s.bin(c.at)
	if i >= 0 {
		s.series.Calls[i] += 1 / s.series.Step
	}
	if c.more > 0 {
		n.begun++
		return
	}
	if s.ended = c.node; i >= 0 {
		s.series.Done[s.f.Nodes[c.node].Class][i]++
	}
}

// span divides the time between two changes.
func (s *sweep) span(from, to time.Time, change int) {
	d := to.Sub(from).Seconds()
	if d <= 0 {
		return
	}
	at, nodes := 0, 0
	for _, n := range s.nodes {
		if at += n.at; n.at > 0 {
			nodes++
		}
	}
	for i, n := range s.nodes {
		if n.at > 0 {
			s.out[i].busy += float64(n.at) * d
			s.out[i].window += d
			s.spread(s.series.Working[s.f.Nodes[i].Class], from, to, float64(n.at))
		}
	}
	s.spread(s.series.Slots, from, to, s.slots)
	if s.holds > 0 && at == 0 {
		s.series.stood += d
	}
	idle := max(s.slots-float64(at), 0) * d
	switch {
	case idle == 0 || s.holds > 0 || len(s.nodes) == 0:
	case at == 0:
		whose := s.begins[change]
		if whose < 0 {
			whose = s.ended
		}
		s.out[whose].handover += idle
	default:
		for i, n := range s.nodes {
			if n.at > 0 {
				*s.out[i].of(n, s.slots) += idle / float64(nodes)
			}
		}
	}
}

// of says why slots are free beside a node's batches.
func (d *divided) of(n node, slots float64) *float64 {
	switch {
	case n.begun < n.planned:
		return &d.handover
	case n.long == n.at:
		return &d.skew
	case float64(n.planned) < slots-0.5:
		return &d.few
	}
	return &d.last
}

// bin is the place of a moment in a series; -1: it is not in it.
func (s *sweep) bin(at time.Time) int {
	since := at.Sub(s.f.Run.Created).Seconds()
	if since < 0 || s.series.Step <= 0 || at.After(s.f.To) {
		return -1
	}
	return min(int(since/s.series.Step), Bins-1)
}

// spread adds a value to a series, from one moment to another.
func (s *sweep) spread(series []float64, from, to time.Time, value float64) {
	step := s.series.Step
	if step <= 0 || value == 0 {
		return
	}
	begin, end := from.Sub(s.f.Run.Created).Seconds()/step, to.Sub(s.f.Run.Created).Seconds()/step
	begin, end = max(begin, 0), min(end, Bins)
	for i := int(begin); float64(i) < end; i++ {
		series[i] += value * (min(end, float64(i+1)) - max(begin, float64(i)))
	}
}
