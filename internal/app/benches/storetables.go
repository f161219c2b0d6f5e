package benches

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"thalweg/internal/base/format"
	"thalweg/internal/ops/capacity"
	"thalweg/internal/ops/chart"
	"thalweg/internal/ops/load"
)

func (r Row) of(h *hdrhistogram.Histogram) Row {
	at := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1e3 }
	r.Mean, r.P50, r.P90, r.P99 = h.Mean()/1e3, at(50), at(90), at(99)
	r.P999, r.P9999, r.Max = at(99.9), at(99.99), float64(h.Max())/1e3
	return r
}

// timeText writes microseconds with three digits.
func timeText(us float64) string {
	switch {
	case us >= 1e6:
		return fmt.Sprintf("%.3g s", us/1e6)
	case us >= 1e3:
		return fmt.Sprintf("%.3g ms", us/1e3)
	}
	return fmt.Sprintf("%.3g µs", us)
}

// Tables returns the report as tables.
func (r Report) Tables() (out []capacity.Table) {
	for _, l := range r.Loads {
		out = append(out, l.table(r.Target))
		if len(l.Dips) > 0 {
			out = append(out, dipsTable(l.Name, l.Dips))
		}
		if len(l.Nodes) > 0 {
			out = append(out, nodesTable(l.Name, l.Nodes))
		}
	}
	if r.Peak != nil {
		out = append(out, r.foundTable("peak: "+foundText(*r.Peak), *r.Peak))
	}
	if r.Sustained != nil {
		out = append(out, r.foundTable(fmt.Sprintf("sustained with p99 under %s: %s", timeText(r.Sustained.Bound),
			foundText(*r.Sustained)), *r.Sustained))
	}
	return out
}

func foundText(f load.Found) string {
	return fmt.Sprintf("%s/s, %d clients", format.Count(int64(f.Rate)), f.Clients)
}

func moneyText(m *Money) string {
	if m == nil {
		return ""
	}
	return m.String()
}

func (l Load) table(target string) capacity.Table {
	t := capacity.Table{Title: target + ", " + l.Name, Header: []string{"", "time", "operations", "failed", "a second", "mean",
		"p50", "p90", "p99", "p99.9", "p99.99", "max", "a million"}}
	for _, r := range l.Rows {
		row := []string{r.Of, r.Time, format.Count(r.Ops), format.Count(r.Failed), format.Count(int64(r.Rate))}
		for _, us := range []float64{r.Mean, r.P50, r.P90, r.P99, r.P999, r.P9999, r.Max} {
			row = append(row, timeText(us))
		}
		t.Rows = append(t.Rows, append(row, moneyText(r.PerMillion)))
	}
	return t
}

func (r Report) foundTable(title string, f load.Found) capacity.Table {
	t := capacity.Table{Title: title, Header: []string{"clients", "asked", "a second", "p99", "", "a million"}}
	for _, s := range f.Steps {
		asked, kept, cost := "", "", ""
		if s.Asked > 0 {
			asked = format.Count(int64(s.Asked))
		}
		if s.Kept {
			kept = map[bool]string{true: "kept", false: "best so far"}[f.Bound > 0]
			if r.PerHour != nil {
				cost = moneyText(perMillion(*r.PerHour, s.Reached))
			}
		}
		t.Rows = append(t.Rows, []string{fmt.Sprint(s.Clients), asked, format.Count(int64(s.Reached)), timeText(s.P99), kept, cost})
	}
	return t
}

func dipsTable(name string, dips []load.Dip) capacity.Table {
	t := capacity.Table{Title: "dips of " + name, Header: []string{"seconds", "of the median", "within 2 s of it"}}
	for _, d := range dips {
		beside := "nothing else that was looked at"
		if len(d.Beside) > 0 {
			var all []string
			for _, j := range d.Beside {
				all = append(all, j.String())
			}
			beside = strings.Join(all, "; ")
		}
		t.Rows = append(t.Rows, []string{fmt.Sprintf("%.0f to %.0f", d.From, d.To), fmt.Sprintf("%.0f %%", 100*d.Part), beside})
	}
	return t
}

// nodesTable has a column a node: growth of counters a second, and the most of gauges.
func nodesTable(name string, nodes []load.NodeUse) capacity.Table {
	t := capacity.Table{Title: "servers in " + name, Header: []string{"what", "of it"}}
	type figure struct{ name, of string }
	rows := map[figure][]string{}
	for i, n := range nodes {
		t.Header = append(t.Header, n.Node)
		for of, figures := range map[string]map[string]float64{"a second": n.Rates, "most": n.Gauges} {
			for what, v := range figures {
				key := figure{what, of}
				if rows[key] == nil {
					rows[key] = make([]string, len(nodes))
				}
				rows[key][i] = fmt.Sprintf("%.4g", v)
			}
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(rows), func(a, b figure) int {
		return strings.Compare(a.name+a.of, b.name+b.of)
	}) {
		t.Rows = append(t.Rows, append([]string{key.name, key.of}, rows[key]...))
	}
	return t
}

// Notes are what is to be known of the figures.
func (r Report) Notes() (out []string) {
	for _, l := range r.Loads {
		if l.Unsent > 0 {
			out = append(out, fmt.Sprintf("%s: %s operations were meant to begin and were never sent, so the times are too short: "+
				"the store cannot carry out that rate.", l.Name, format.Count(l.Unsent)))
		}
		for _, text := range slices.Sorted(maps.Keys(l.Errors)) {
			out = append(out, fmt.Sprintf("%s: %s failed: %s.", l.Name, format.Counted(l.Errors[text], "operation", "operations"),
				text))
		}
		for _, note := range l.Result.Notes {
			out = append(out, l.Name+": "+note+".")
		}
		if s := l.Took.Seconds(); s > 0 && l.Cores > 0 {
			out = append(out, fmt.Sprintf("%s: this process used %.0f %% of its %s.", l.Name,
				100*l.CPU.Seconds()/s/float64(l.Cores), format.Counted(int64(l.Cores), "core", "cores")))
		}
		if m := l.Moved; m != nil && m.Sent+m.Received > 0 {
			out = append(out, fmt.Sprintf("%s: %s of keys and values took %s on the wire.", l.Name, format.Size(m.Payload),
				format.Size(m.Sent+m.Received)))
		}
	}
	if len(r.Loads) > 0 {
		out = append(out, "Responses count from when an operation was meant to begin, service times from when it was sent; of "+
			"closed loops both are one. Operations that failed have no times.")
	}
	return out
}

// WriteSVG draws rate, times, and what moved over time of each load.
func (r Report) WriteSVG(w io.Writer) error {
	var panels []chart.Panel
	for _, l := range r.Loads {
		panels = append(panels, l.panels()...)
	}
	if len(panels) == 0 {
		for name, f := range map[string]*load.Found{"peak": r.Peak, "sustained": r.Sustained} {
			if f != nil {
				panels = append(panels, Load{Name: name, Result: f.Result, Dips: f.Result.Dips()}.panels()...)
			}
		}
	}
	return chart.Write(w, "thalweg bench store: "+r.Target, panels)
}

func (l Load) panels() []chart.Panel {
	rate := chart.Panel{Title: l.Name, X: "seconds", Y: "operations a second", Even: true}
	late := chart.Panel{Title: "response times", X: "seconds", Y: "p99, ms", Even: true, Log: true,
		Series: []chart.Series{{Name: "p99", Line: true}}}
	beside := chart.Panel{Title: "what else moved", X: "seconds", Y: "part of its most", Even: true}
	var kinds [2]chart.Series
	before := 0.0
	for _, s := range l.Seconds {
		for kind := range kinds {
			v := float64(s.Ops[kind]) / max(s.At-before, 1e-3)
			kinds[kind].Points = append(kinds[kind].Points, chart.Point{X: s.At, Y: v})
		}
		late.Series[0].Points = append(late.Series[0].Points, chart.Point{X: s.At, Y: s.P99 / 1e3})
		before = s.At
	}
	for kind, s := range kinds {
		if l.Of[kind].Ops > 0 {
			s.Name, s.Line = kindNames[kind], true
			rate.Series = append(rate.Series, s)
		}
	}
	dips := chart.Series{Name: "dips", Dots: true}
	names := map[string]bool{}
	for _, d := range l.Dips {
		dips.Points = append(dips.Points, chart.Point{X: d.To, Y: 0, Text: fmt.Sprintf("%.0f %% of the median", 100*d.Part)})
		for _, j := range d.Beside {
			names[j.Name()] = true
		}
	}
	if len(dips.Points) > 0 {
		rate.Series = append(rate.Series, dips)
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		beside.Series = append(beside.Series, chart.Series{Name: name, Line: true, Points: points(l.Track(name))})
	}
	if len(beside.Series) == 0 {
		beside.Series = []chart.Series{{Name: load.OwnCollector, Line: true, Points: points(l.Track(load.OwnCollector))}}
	}
	return []chart.Panel{rate, late, beside}
}

// points are the values of seconds as parts of their most.
func points(values []float64) (out []chart.Point) {
	most := 0.0
	for _, v := range values {
		if v > most {
			most = v
		}
	}
	for i, v := range values {
		if most > 0 {
			out = append(out, chart.Point{X: float64(i + 1), Y: v / most, Text: fmt.Sprintf("%.4g", v)})
		}
	}
	return out
}
