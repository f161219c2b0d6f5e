package causes

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"thalweg/internal/base/format"
	"thalweg/internal/ops/chart"
	"thalweg/internal/ops/history"
	"thalweg/internal/store/state"
)

// Verdict says whether a cause is one.
type Verdict string

// The verdicts.
const (
	Yes     Verdict = "yes"
	No      Verdict = "no"
	Unknown Verdict = "not measured"
)

// Cause is one of a node.
type Cause struct {
	Cause    string  `json:"cause"`
	Words    string  `json:"words"`
	Verdict  Verdict `json:"verdict"`
	Seconds  float64 `json:"slots_s" doc:"Time of slots that it took."`
	Part     float64 `json:"part" doc:"Part of the node's time of slots."`
	Gain     float64 `json:"gain_s" doc:"What the run would gain without it, at most."`
	Least    float64 `json:"least" doc:"From which part on it is a cause, if the run would gain a tenth."`
	Source   string  `json:"source" doc:"Where that is from."`
	Evidence string  `json:"evidence,omitempty"`
	Do       string  `json:"do,omitempty" doc:"What to do about it; none: it is no cause."`
}

// NodeReport has the causes of a node, those that are ones and gain the most first.
type NodeReport struct {
	Node    string  `json:"node"`
	Class   string  `json:"class"`
	Batches int     `json:"batches"`
	Slots   float64 `json:"slots_s" doc:"Time of slots: in which its batches had them, and in which they were free for it."`
	Causes  []Cause `json:"causes"`
}

// Named is a cause of a node that is one.
type Named struct {
	Node string `json:"node"`
	Cause
}

// Report says what limited a run.
type Report struct {
	Workspace string       `json:"workspace"`
	Run       int64        `json:"run"`
	Status    state.Status `json:"status"`
	Elapsed   float64      `json:"elapsed_s"`
	Slots     float64      `json:"slots" doc:"On average; 0: there are no time sheets, and nothing is said of free slots."`
	Why       string       `json:"why,omitempty" doc:"Why no cause is named."`
	Notes     []string     `json:"notes,omitempty" doc:"What it is not of: the rest of a run, what is not measured."`
	Named     []Named      `json:"named"`
	Zones     []Zone       `json:"zones" doc:"Use of workers' processors by class of node; none: no sample is kept."`
	Nodes     []NodeReport `json:"nodes"`
	Series    *Series      `json:"series"`
}

// Explain makes the report of a run.
func Explain(f Facts) Report {
	of, series := divide(&f)
	r := derive(&f, of, series.stood)
	out := Report{Workspace: f.Run.Workspace, Run: f.Run.Run, Status: f.Run.Status, Elapsed: rounded(r.elapsed),
		Slots: rounded(r.slots), Notes: f.notes(), Named: []Named{}, Zones: zonesOf(&f), Nodes: []NodeReport{},
		Series: series.rounded()}
	for i := range f.Nodes {
		a := &at{r, &f.Nodes[i], of[i]}
		n := NodeReport{Node: a.n.Name, Class: a.n.Class, Batches: a.n.Planned}
		all := a.all()
		n.Slots = rounded(all)
		for _, rule := range rules {
			c := rule.judge(a, all)
			n.Causes = append(n.Causes, c)
			if c.Verdict == Yes {
				out.Named = append(out.Named, Named{n.Node, c})
			}
		}
		slices.SortStableFunc(n.Causes, func(a, b Cause) int {
			return cmp.Or(cmp.Compare(places[a.Verdict], places[b.Verdict]), byGain(a, b))
		})
		out.Nodes = append(out.Nodes, n)
	}
	slices.SortStableFunc(out.Named, func(a, b Named) int { return byGain(a.Cause, b.Cause) })
	switch {
	case len(out.Named) > 0:
	case !f.begun():
		out.Why = "no batch has begun"
	case r.going < history.SlowAtLeast.Seconds():
		out.Why = "the run is too short to say anything of it"
	default:
		out.Why = fmt.Sprintf("nothing takes a large part of a node, and of the run %.0f %%", 100*GainLeast)
	}
	return out
}

// begun reports whether a batch has.
func (f *Facts) begun() bool {
	return slices.ContainsFunc(f.Nodes, func(n Node) bool { return len(n.Batches) > 0 })
}

// notes say what a report is not of.
func (f *Facts) notes() (out []string) {
	switch f.Run.Status {
	case state.Running, state.Paused:
		out = append(out, "the run is "+string(f.Run.Status)+": this is of its work so far")
	case state.Failed, state.Stopped:
		out = append(out, "the run has not come to its end, it is "+string(f.Run.Status)+": this is of the work that it did")
		if failure := f.Run.Failure; failure != nil {
			out = append(out, "it failed for this: "+failure.Text())
		}
	}
	if len(f.Workers) == 0 && f.begun() {
		out = append(out, "there is no time sheet of a worker: nothing is said of free slots")
	}
	for _, n := range f.Nodes {
		if n.More {
			out = append(out, fmt.Sprintf("of node %s only %s are looked at", n.Name,
				format.Counted(int64(len(n.Batches)), "batch", "batches")))
		}
	}
	return out
}

// all is the time of slots of a node, the calls of the state included.
func (a *at) all() float64 {
	return max(a.d.all(), a.state().seconds+a.refused().seconds+a.d.busy)
}

// places are the verdicts' places in a table.
var places = map[Verdict]int{Yes: 0, No: 1, Unknown: 2}

func byGain(a, b Cause) int {
	return cmp.Or(cmp.Compare(b.Gain, a.Gain), cmp.Compare(b.Seconds, a.Seconds))
}

// judge says whether a rule applies to a node, whose time of slots is all.
func (r rule) judge(a *at, all float64) Cause {
	c := Cause{Cause: r.name, Words: r.words, Verdict: Unknown, Least: r.least, Source: r.source}
	f := r.find(a)
	if f.unknown {
		return c
	}
	c.Verdict, c.Seconds, c.Gain, c.Evidence = No, rounded(f.seconds), rounded(min(f.gain, a.going)), f.evidence
	if all > 0 {
		c.Part = rounded(f.seconds / all)
	}
	if all > 0 && f.seconds >= r.least*all && f.gain >= GainLeast*a.going &&
		a.going >= history.SlowAtLeast.Seconds() {
		c.Verdict, c.Do = Yes, r.do
	}
	return c
}

// rounded keeps milliseconds.
func rounded(v float64) float64 { return math.Round(v*1e3) / 1e3 }

func (s *Series) rounded() *Series {
	s.Step = math.Round(s.Step*1e6) / 1e6
	all := [][]float64{s.Slots, s.Calls, s.CPU, s.Children, s.Cores}
	for _, by := range []map[string][]float64{s.Working, s.Rows, s.Bytes} {
		all = slices.AppendSeq(all, maps.Values(by))
	}
	for _, values := range all {
		for i, v := range values {
			values[i] = rounded(v)
		}
	}
	return s
}

// Sentence says what a cause is, for people.
func (n Named) Sentence() string {
	return fmt.Sprintf("node %s: %s, %.3g s of slots, at most %.3g s of the run (%s)", n.Node, n.Words, n.Seconds, n.Gain,
		n.Evidence)
}

// WriteSVG draws what went on over time, by class of node.
func (r Report) WriteSVG(w io.Writer) error {
	title := fmt.Sprintf("run %d of workspace %s", r.Run, r.Workspace)
	panels := []chart.Panel{
		{Title: title + ": slots at work", Y: "slots",
			Series: append(r.byClass(r.Series.Working), r.line("slots there", r.Series.Slots))}, // a class has one colour in all
		{Title: "batches done", Y: "batches", Series: r.byClass(r.Series.Done)}}
	if r.Series.Cores != nil {
		panels = append(panels, chart.Panel{Title: "processors of workers", Y: "processors", Series: []chart.Series{
			r.line("workers", r.Series.CPU), r.line("their processes", r.Series.Children),
			r.line("there are", r.Series.Cores)}})
	}
	panels = append(panels,
		chart.Panel{Title: "rows made a second", Y: "rows a second", Series: r.byClass(r.Series.Rows)},
		chart.Panel{Title: "bytes read and written a second", Y: "bytes a second", Series: r.byClass(r.Series.Bytes)},
		chart.Panel{Title: "calls of the state: batches claimed and committed a second", Y: "batches a second",
			Series: []chart.Series{r.line("all nodes", r.Series.Calls)}})
	for i := range panels {
		panels[i].X, panels[i].Even = "seconds", true
	}
	return chart.Write(w, title, panels)
}

func (r Report) byClass(of map[string][]float64) (out []chart.Series) {
	for _, class := range slices.Sorted(maps.Keys(of)) {
		out = append(out, r.line(class, of[class]))
	}
	return out
}

func (r Report) line(name string, values []float64) chart.Series {
	return chart.Series{Name: name, Line: true, Points: r.points(values, name)}
}

func (r Report) points(values []float64, name string) (out []chart.Point) {
	for i, v := range values {
		x := (float64(i) + 0.5) * r.Series.Step
		out = append(out, chart.Point{X: x, Y: v, Text: fmt.Sprintf("%s, %.3g s: %.3g", name, x, v)})
	}
	return out
}

// Table has the rows of a node's table for people: cause, verdict, time of slots, gain, and what was measured.
func (n NodeReport) Table() (rows [][]string) {
	for _, c := range n.Causes {
		if c.Verdict == Unknown {
			rows = append(rows, []string{c.Words, string(c.Verdict), "", "", ""})
			continue
		}
		rows = append(rows, []string{c.Words, string(c.Verdict), seconds(c.Seconds), seconds(c.Gain), c.Evidence})
	}
	return rows
}

func seconds(s float64) string { return format.Span(time.Duration(s * float64(time.Second))) }
