package benches

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"thalweg/internal/base/format"
	"thalweg/internal/ops/capacity"
	"thalweg/internal/ops/load"
	"thalweg/internal/ops/price"
)

// Served says how quickly a load was served, and for how much work of the servers.
type Served struct {
	Load   string   `json:"load" doc:"Its name, or peak, or sustained."`
	Within []Within `json:"within"`
	// Work of the servers; nil: not all of them tell it.
	Servers *Work `json:"servers,omitempty"`
}

// Within is the part of reads or of writes that were answered sooner than the bounds; failed ones were not.
type Within struct {
	Of   string  `json:"of"`
	Ms1  float64 `json:"below_1ms"`
	Ms10 float64 `json:"below_10ms"`
}

// Work is processor time of servers, and what it stands for.
type Work struct {
	CPU          float64 `json:"cpu" doc:"Processor seconds a second, of all servers."`
	PerCPUSecond float64 `json:"per_cpu_second" doc:"Operations for a processor second."`
	// What all cores of the servers would do if each did what those at work have: nil, nobody said how many there are.
	Projection *Projection `json:"projection,omitempty"`
}

// Projection is what has not been measured.
type Projection struct {
	Cores      int     `json:"cores"`
	Rate       float64 `json:"rate" doc:"Operations a second, in proportion to the cores."`
	PerMillion *Money  `json:"usd_per_million,omitempty"`
}

// CoresOf returns how many cores machines have together, by how many there are of each type; unknown ones have none.
func CoresOf(prices *price.Book, machines map[string]int) (sum int) {
	for machine, n := range machines {
		if line, ok := prices.Find(machine); ok {
			sum += n * line.Cores
		}
	}
	return sum
}

// served says it of all loads of a report.
func (s sender) served(r Report) (out []Served) {
	for _, l := range r.all() {
		out = append(out, s.servedOf(l.Name, l.Result))
	}
	return out
}

func (s sender) servedOf(name string, r load.Result) Served {
	out := Served{Load: name, Within: []Within{}}
	for kind, m := range r.Of {
		if all := m.Ops + m.Failed; m.Response != nil && all > 0 {
			out.Within = append(out.Within, Within{kindNames[kind], below(m.Response, time.Millisecond) / float64(all),
				below(m.Response, 10*time.Millisecond) / float64(all)})
		}
	}
	seen := seenBetween(r.Seconds)
	w := Work{CPU: cpuOf(load.Nodes(seen))}
	rate := rateOf(seen)
	if !(w.CPU > 0) || !(rate > 0) {
		return out
	}
	w.PerCPUSecond = rate / w.CPU
	if s.Cores > 0 {
		rate := w.PerCPUSecond * float64(s.Cores)
		w.Projection = &Projection{s.Cores, rate, perMillion(s.PerHour, rate)}
	}
	out.Servers = &w
	return out
}

// seenBetween returns the seconds from the first to the last at whose ends servers were looked at.
func seenBetween(seconds []load.Second) []load.Second {
	for len(seconds) > 0 && len(seconds[0].Servers) == 0 {
		seconds = seconds[1:]
	}
	for len(seconds) > 0 && len(seconds[len(seconds)-1].Servers) == 0 {
		seconds = seconds[:len(seconds)-1]
	}
	return seconds
}

// rateOf is how many operations a second were answered behind the first of some seconds.
func rateOf(seconds []load.Second) (rate float64) {
	if len(seconds) < 2 {
		return 0
	}
	for _, s := range seconds[1:] {
		rate += float64(s.Ops[load.Read] + s.Ops[load.Write])
	}
	return rate / (seconds[len(seconds)-1].At - seconds[0].At)
}

// below returns how many times are shorter than a bound.
func below(h *hdrhistogram.Histogram, bound time.Duration) (n float64) {
	for _, bar := range h.Distribution() {
		if bar.To >= int64(bound) {
			break
		}
		n += float64(bar.Count)
	}
	return n
}

// cpuOf is the processor time of servers a second; 0: one of them does not tell it.
func cpuOf(nodes []load.NodeUse) (sum float64) {
	for _, n := range nodes {
		cpu := n.Rates[load.CPUSeconds]
		if !(cpu > 0) {
			return 0
		}
		sum += cpu
	}
	return sum
}

// addWork adds what a report is compared by.
func addWork(to map[string]Figure, served []Served) {
	for _, s := range served {
		if s.Servers != nil {
			to[s.Load+": operations a processor second of the servers"] = Figure{Value: s.Servers.PerCPUSecond,
				Unit: "operations/CPU s", Repeats: []float64{}}
		}
	}
}

// servedTables has a row for reads and for writes of each load, and one for what the servers did.
func servedTables(all []Served) []capacity.Table {
	within := capacity.Table{Title: "responses", Header: []string{"load", "", "below 1 ms", "below 10 ms"}}
	work := capacity.Table{Title: "processor time of the servers",
		Header: []string{"load", "cores at work", "operations a second of it"}}
	for _, s := range all {
		for _, w := range s.Within {
			within.Rows = append(within.Rows, []string{s.Load, w.Of, partText(w.Ms1), partText(w.Ms10)})
		}
		if s.Servers != nil {
			work.Rows = append(work.Rows, []string{s.Load, fmt.Sprintf("%.2f", s.Servers.CPU),
				format.Count(int64(s.Servers.PerCPUSecond))})
		}
	}
	out := []capacity.Table{within}
	if len(work.Rows) > 0 {
		out = append(out, work)
	}
	return out
}

// partText writes a part as percents, of which only all are 100.
func partText(part float64) string {
	const most = 0.99999
	if part < 1 {
		part = min(part, most)
	}
	return fmt.Sprintf("%.3f %%", 100*part)
}

// notes say what was not measured.
func (s Served) notes() []string {
	if s.Servers == nil || s.Servers.Projection == nil {
		return nil
	}
	p := s.Servers.Projection
	text := fmt.Sprintf("%s: projection, not measured: %s of these servers would do %s/s", s.Load,
		format.Counted(int64(p.Cores), "core", "cores"), format.Count(int64(p.Rate)))
	if p.PerMillion != nil {
		text += fmt.Sprintf(", a million for %s", p.PerMillion)
	}
	return []string{text + ", if each did as much as those at work."}
}
