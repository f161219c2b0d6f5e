package benches

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"thalweg/internal/base/format"
	"thalweg/internal/ops/capacity"
	"thalweg/internal/ops/chart"
	"thalweg/internal/ops/load"
	"thalweg/internal/ops/load/around"
)

func (r Row) of(h *hdrhistogram.Histogram) Row {
	to := []*float64{&r.Mean, &r.P50, &r.P90, &r.P99, &r.P999, &r.P9999, &r.Max}
	for i, t := range responseTimes {
		*to[i] = t.of(h)
	}
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
	add := func(l Load) {
		out = append(out, l.table(r.Target))
		if len(l.Generators) > 0 {
			out = append(out, generatorsTable(l))
		}
		if len(l.Counted) > 0 {
			out = append(out, countedTable(l))
		}
		if len(l.Dips) > 0 {
			out = append(out, dipsTable(l.Name, l.Dips))
		}
		if len(l.Nodes) > 0 {
			out = append(out, nodesTable(l.Name, l.Nodes))
		}
	}
	for _, l := range r.Loads {
		add(l)
	}
	if r.Peak != nil {
		out = append(out, r.foundTable("peak: "+foundText(*r.Peak), *r.Peak))
		add(r.Peak.Load)
	}
	if r.Sustained != nil {
		out = append(out, r.foundTable(fmt.Sprintf("sustained with p99 under %s: %s", timeText(r.Sustained.Bound),
			foundText(*r.Sustained)), *r.Sustained))
		add(r.Sustained.Load)
	}
	return append(append(out, servedTables(r.Served)...), r.hostTable())
}

// generatorsTable says what each generator did, and how far apart they began.
func generatorsTable(l Load) capacity.Table {
	t := capacity.Table{Title: "generators of " + l.Name, Header: []string{"agent", "operations", "processor time", "clock off",
		"unsure by", "began late by"}}
	for _, g := range l.Generators {
		row := []string{g.Agent, format.Count(g.Ops)}
		for _, d := range []time.Duration{g.CPU, g.Offset, g.Unsure, g.Late} {
			row = append(row, d.Round(10*time.Microsecond).String())
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// countedTable says what processors counted of processes.
func countedTable(l Load) capacity.Table {
	t := capacity.Table{Title: "counted by perf in " + l.Name, Header: []string{"process", "what", "of it"}}
	for _, c := range l.Counted {
		name := strings.TrimSpace(fmt.Sprintf("%d %s", c.PID, c.Program))
		for _, figures := range []map[string]float64{c.Derived(), c.Counts} {
			for _, what := range slices.Sorted(maps.Keys(figures)) {
				t.Rows = append(t.Rows, []string{name, what, fmt.Sprintf("%.4g", figures[what])})
			}
		}
		for i, events := range [][]string{c.Unsupported, c.Uncounted} {
			if len(events) > 0 {
				what := [...]string{"not supported here", "not counted"}[i]
				t.Rows = append(t.Rows, []string{name, what, strings.Join(events, ", ")})
			}
		}
		if c.Note != "" {
			t.Rows = append(t.Rows, []string{name, "nothing", c.Note})
		}
	}
	return t
}

// hostTable says on what the figures may depend. Limits of groups are those that hold for this process.
func (r Report) hostTable() capacity.Table {
	t := capacity.Table{Title: "host that measured", Header: []string{"what", "is"}}
	add := func(what string, is ...string) {
		if text := strings.Join(is, " "); text != "" {
			t.Rows = append(t.Rows, []string{what, text})
		}
	}
	limits := func(what string, of []around.Limit) {
		for _, l := range of {
			add(what+l.Name, l.Value, "("+l.Group+")")
		}
	}
	add("kernel", r.Host.Kernel)
	limits("", r.Host.Limits)
	for _, s := range r.Host.Servers {
		name := fmt.Sprintf("Cassandra %d: ", s.PID)
		add(name+"flags", s.Flags...)
		limits(name, s.Limits)
	}
	return t
}

func foundText(f Search) string {
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
		"p50", "p90", "p99", "p99.9", "p99.99", "max", "replicated", "a million"}}
	for _, r := range l.Rows {
		row := []string{r.Of, r.Time, format.Count(r.Ops), format.Count(r.Failed), format.Count(int64(r.Rate))}
		for _, us := range []float64{r.Mean, r.P50, r.P90, r.P99, r.P999, r.P9999, r.Max} {
			row = append(row, timeText(us))
		}
		replicated := ""
		if r.Replicated > 0 {
			replicated = format.Count(int64(r.Replicated))
		}
		t.Rows = append(t.Rows, append(row, replicated, moneyText(r.PerMillion)))
	}
	return t.WithoutEmpty()
}

func (r Report) foundTable(title string, f Search) capacity.Table {
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
		if s.ByClients {
			kept = "clients busy"
		}
		row := []string{fmt.Sprint(s.Clients), asked, format.Count(int64(s.Reached)), timeText(s.P99), kept, cost}
		if s.Reached == 0 {
			row = []string{fmt.Sprint(s.Clients), asked, "", "", "failed", ""}
		}
		t.Rows = append(t.Rows, row)
	}
	return t.WithoutEmpty()
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

// nodeFigures are what is shown of what servers say; their JSON has all.
var nodeFigures = []string{load.Operations, load.CPUSeconds, load.NetworkIn, load.NetworkOut, load.DiskRead,
	load.DiskWritten, load.PauseSecs, load.Compacted, load.Compactions}

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
				if !slices.Contains(nodeFigures, what) {
					continue
				}
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
	used := []string{"processor time", "of what there is"}
	for _, n := range nodes {
		used = append(used, usedText(n))
	}
	t.Rows = append(t.Rows, used)
	return t
}

// usedText says how much of its cores a server used, and of the one core that its main thread can use.
func usedText(n load.NodeUse) string {
	var out []string
	cpu, told := n.Rates[load.CPUSeconds]
	switch cores := n.Gauges[load.Cores]; {
	case told && cores > 0:
		out = append(out, fmt.Sprintf("%.0f %% of %s", 100*cpu/cores, format.Counted(int64(cores), "core", "cores")))
	case told:
		out = append(out, "unknown: how many cores")
	default:
		out = append(out, "unknown: no exporter tells")
	}
	if main, told := n.Rates[load.MainThread]; told {
		out = append(out, fmt.Sprintf("main thread %.0f %% of one", 100*main))
	}
	return strings.Join(out, "; ")
}

// Notes are what is to be known of the figures.
func (r Report) Notes() (out []string) {
	for _, l := range r.all() {
		out = append(out, l.notes()...)
	}
	for _, s := range r.Served {
		out = append(out, s.notes()...)
	}
	for _, s := range []*Search{r.Peak, r.Sustained} {
		if s == nil {
			continue
		}
		for _, wrong := range s.Wrong {
			out = append(out, s.Load.Name+": a load of the search failed, and is not kept: "+wrong+".")
		}
	}
	if r.Measured() {
		out = append(out, "Responses count from when an operation was meant to begin, service times from when it was sent; of "+
			"closed loops both are one. Operations that failed have no times.")
	}
	if r.Copies > 0 {
		out = append(out, fmt.Sprintf("Each row has %s.", format.Counted(int64(r.Copies), "copy", "copies")))
	}
	if r.Kept != "" {
		out = append(out, "What was written stays: "+r.Kept+".")
	}
	out = append(out, r.Host.Unseen...)
	if r.Cost != nil {
		out = append(out, fmt.Sprintf("All of it took %s, and with %s to bring machines up it cost %s.", format.Span(r.Took),
			format.Span(r.BringUp), r.Cost))
	}
	return out
}

func (l Load) notes() (out []string) {
	add := func(text string, args ...any) { out = append(out, l.Name+": "+fmt.Sprintf(text, args...)) }
	if l.Unsent > 0 {
		add("%s operations were meant to begin and were never sent, so the times are too short: the store, or so few "+
			"clients, cannot carry out that rate.", format.Count(l.Unsent))
	}
	for _, text := range slices.Sorted(maps.Keys(l.Errors)) {
		add("%s failed: %s.", format.Counted(l.Errors[text], "operation", "operations"), text)
	}
	for _, note := range l.Result.Notes {
		add("%s.", note)
	}
	if s := l.Took.Seconds(); s > 0 && l.Cores > 0 {
		add("the processes that measured used %.0f %% of their %s.", 100*l.CPU.Seconds()/s/float64(l.Cores),
			format.Counted(int64(l.Cores), "core", "cores"))
	}
	if m := l.Moved; m != nil && m.Sent+m.Received > 0 {
		add("%s of keys and values took %s on the wire, with the warm-up.", format.Size(m.Payload),
			format.Size(m.Sent+m.Received))
	}
	if b := l.Second; b != nil {
		text := ""
		if b.Ended {
			text = "; what followed was measured alone"
		}
		add("beside it ran %q for %s%s.", b.Command, format.Span(b.Ran), text)
	}
	return out
}

// WriteSVG draws rate, times, and what moved over time of each load.
func (r Report) WriteSVG(w io.Writer) error {
	var panels []chart.Panel
	for _, l := range r.all() {
		panels = append(panels, l.panels()...)
	}
	return chart.Write(w, r.Target, panels)
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
	names := map[string]bool{load.OwnCollector: true}
	for _, n := range load.Nodes(l.Seconds) { // what servers say of compactions and pauses
		for _, what := range []string{load.Compactions, load.PauseSecs} {
			_, counted := n.Rates[what]
			if _, seen := n.Gauges[what]; seen || counted {
				names[load.Jump{What: what, Node: n.Node}.Name()] = true
			}
		}
	}
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
