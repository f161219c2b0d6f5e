package benches

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"thalweg/internal/app/sizing"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
	"thalweg/internal/ops/host"
)

// Types of measured hosts.
type (
	Host         = host.Result
	HostOptions  = host.Options
	HostPeer     = host.Other
	HostListener = host.Listener
)

// MeasureHost measures the machine that it is on.
func MeasureHost(ctx context.Context, o HostOptions) (Host, error) { return host.Measure(ctx, o) }

// ListenForHosts opens a listener for those who measure the network to this machine. The caller serves it.
func ListenForHosts(ctx context.Context, addr string, token []byte) (*HostListener, error) {
	return host.Listen(ctx, addr, token)
}

// ReadHost reads what was measured of a host; errors name the file.
func ReadHost(name string, text []byte) (h Host, err error) {
	if err := json.Unmarshal(text, &h); err != nil {
		f := fault.New(fault.Script, "what was measured of a host cannot be read: %v", err)
		f.Place.File = name
		return h, f
	}
	return h, nil
}

// HostTables returns what was measured of a host as tables.
func HostTables(h Host) (out []sizing.Table) {
	out = []sizing.Table{hostFacts(h), hostFigures(h)}
	if len(h.Facts.Cards) > 0 {
		out = append(out, hostCards(h))
	}
	for _, i := range h.Interrupts {
		out = append(out, hostCores(i), hostSources(i))
	}
	if len(h.Power)+len(h.Temperatures) > 0 {
		out = append(out, hostPower(h))
	}
	return append(out, hostRules(h))
}

// measuredWidth is how wide what was measured for a rule is shown.
const measuredWidth = 60

func hostRules(h Host) sizing.Table {
	t := sizing.Table{Title: "is it as the studies advise", Header: []string{"rule", "verdict", "measured"}}
	for _, r := range h.Rules {
		row := []string{r.Rule, string(r.Verdict), ""}
		for i, part := range strings.SplitAfter(r.Measured, ", ") { // of several cards
			if i > 0 && utf8.RuneCountInString(row[2]+part) > measuredWidth {
				t.Rows, row = append(t.Rows, row), []string{"", "", ""}
			}
			row[2] += part
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// HostChanges returns what to change where a machine is not as the rules advise.
func HostChanges(h Host) (out []string) {
	for _, r := range h.Rules {
		if r.Verdict == host.No {
			out = append(out, fmt.Sprintf("%s: %s. It should be: %s.", r.Rule, r.Change, r.Threshold))
		}
	}
	return out
}

// HostAdvice returns what the rules rest on.
func HostAdvice(h Host) (out []string) {
	for _, r := range h.Rules {
		out = append(out, fmt.Sprintf("%s: %s Threshold: %s (%s).", r.Rule, r.Advice, r.Threshold, r.Source))
	}
	return out
}

// HostUnseen says what could not be seen or measured: once why, for all that has the same reason.
func HostUnseen(h Host) (out []string) {
	what := map[string][]string{}
	for _, u := range h.Unseen {
		what[u.Why] = append(what[u.Why], u.What)
	}
	for _, u := range h.Unseen {
		if all := what[u.Why]; all != nil {
			out = append(out, strings.Join(all, ", ")+": "+u.Why+".")
			delete(what, u.Why)
		}
	}
	return out
}

func hostFacts(h Host) sizing.Table {
	t := sizing.Table{Title: "machine", Header: []string{"what", "is"}}
	add := func(what, is string) {
		if is != "" {
			t.Rows = append(t.Rows, []string{what, is})
		}
	}
	f, p := h.Facts, h.Facts.Processor
	add("host", h.Host)
	add("type", h.Machine)
	add("kernel", strings.TrimSpace(f.Kernel+" "+f.Arch))
	add("processor", p.Model)
	add("cores", strconv.Itoa(p.Cores))
	if p.Sockets > 0 {
		add("sockets", strconv.Itoa(p.Sockets))
	}
	if p.PerCore > 0 {
		add("SMT", cmp.Or(p.SMT, "not known")+", "+format.Counted(int64(p.PerCore), "thread a core", "threads a core"))
	}
	var caches []string
	for _, c := range p.Caches {
		caches = append(caches, fmt.Sprintf("L%d %s %s", c.Level, strings.ToLower(c.Type), format.Size(c.Bytes)))
	}
	add("caches", strings.Join(caches, ", "))
	add("frequency", p.Governor)
	add("virtualisation", strings.Join(slices.DeleteFunc([]string{cmp.Or(f.Guest.Kind, "not known"), f.Guest.Hypervisor,
		f.Guest.Vendor, f.Guest.Product, f.Guest.Container}, func(s string) bool { return s == "" }), ", "))
	if f.Memory > 0 {
		add("memory", format.Size(f.Memory))
	}
	for _, n := range f.Nodes {
		add("NUMA node "+strconv.Itoa(n.Node), fmt.Sprintf("cores %s, %s, distances %s",
			n.Cores, format.Size(n.Bytes), n.Distances))
	}
	add("huge pages", fmt.Sprintf("transparent: %s; reserved: %d of %s", cmp.Or(f.Huge.Transparent, "not known"),
		f.Huge.Reserved, format.Size(f.Huge.Bytes)))
	if f.Clock.Source != "" {
		add("clock", f.Clock.Source+" (of "+f.Clock.Available+")")
	}
	add("limits", limitsText(f.Limits))
	add("disk", strings.TrimSpace(h.Disk.Dir+" "+h.Disk.FileSystem+" "+h.Disk.Device))
	s := h.Load.Steal
	if s.Known {
		add("steal", fmt.Sprintf("%.2f %% of %.0f s of full load; by sample %.2f to %.2f %%, sd %.2f", s.Mean, h.Load.Seconds,
			s.Least, s.Most, s.Spread))
	}
	if h.CoreSpeed > 0 {
		add("core_speed", fmt.Sprintf("%.3f times that of a core of %s", h.CoreSpeed, h.Reference))
	}
	return t
}

func limitsText(l host.Limits) string {
	if l.Version == 0 {
		return "not known"
	}
	var said []string
	if l.CPUs > 0 {
		said = append(said, fmt.Sprintf("%.2f processors", l.CPUs))
	}
	if l.MemoryBytes > 0 {
		said = append(said, format.Size(l.MemoryBytes)+" of memory")
	}
	for path, text := range l.IO {
		said = append(said, path+": "+text)
	}
	slices.Sort(said)
	if len(said) == 0 {
		said = []string{"none"}
	}
	return fmt.Sprintf("cgroup version %d: %s; cores %s", l.Version, strings.Join(said, ", "), l.Cores)
}

func hostFigures(h Host) sizing.Table {
	t := sizing.Table{Title: "figures", Header: []string{"figure", "mean", "unit", "least", "most", "of"}}
	names := make([]string, 0, len(h.Figures))
	for name := range h.Figures {
		names = append(names, name)
	}
	slices.SortFunc(names, byNumbers)
	for _, name := range names {
		f := h.Figures[name]
		t.Rows = append(t.Rows, []string{name, figure(f.Value), f.Unit, figure(slices.Min(f.Repeats)),
			figure(slices.Max(f.Repeats)), strconv.Itoa(len(f.Repeats))})
	}
	return t
}

// byNumbers orders sizes in names by what they are: 32k, 2m.
func byNumbers(a, b string) int {
	const latency = "memory_latency_"
	bytes := func(name string) int {
		size, is := strings.CutPrefix(name, latency)
		if !is {
			return 0
		}
		n, _ := strconv.Atoi(size[:len(size)-1]) // ours
		if strings.HasSuffix(size, "m") {
			n <<= 10
		}
		return n
	}
	if x, y := bytes(a), bytes(b); x > 0 && y > 0 {
		return x - y
	}
	return strings.Compare(a, b)
}

// figure shows four digits.
func figure(v float64) string {
	const whole = 1000
	if v >= whole {
		return format.Count(int64(v + 0.5))
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

func hostCards(h Host) sizing.Table {
	t := sizing.Table{Title: "network",
		Header: []string{"card", "driver", "Mbit/s", "rx", "tx", "RPS", "XPS", "coalescing"}}
	counted := func(n int, one, many string) string { return format.Counted(int64(n), one, many) }
	for _, c := range h.Facts.Cards {
		speed, waits := "not known", "not known"
		if c.Mbps > 0 {
			speed = figure(c.Mbps)
		}
		if co := c.Coalescing; co != nil {
			waits = fmt.Sprintf("adaptive %t, %d µs, %d frames", co.Adaptive, co.Micros, co.Frames)
		}
		t.Rows = append(t.Rows, []string{c.Name, cmp.Or(c.Driver, "none"), speed, strconv.Itoa(c.Receiving),
			strconv.Itoa(c.Sending), counted(c.RPSCores, "core", "cores"), counted(c.XPSQueues(), "queue", "queues"), waits})
	}
	return t
}

// Rows of interrupts that are shown; --json has all.
const (
	coresShown   = 16
	sourcesShown = 8
)

func hostCores(i host.Interrupts) sizing.Table {
	t := sizing.Table{Title: "interrupts by core, " + i.During,
		Header: []string{"core", "interrupts/s", "soft/s", "time %", "steal %"}}
	cores := slices.Clone(i.Cores)
	if len(cores) > coresShown {
		slices.SortStableFunc(cores, func(a, b host.CoreShare) int { return cmp.Compare(b.Busy, a.Busy) })
		t.Title += fmt.Sprintf(" (the %d busiest of %d)", coresShown, len(cores))
		cores = cores[:coresShown]
	}
	for _, c := range cores {
		t.Rows = append(t.Rows, []string{strconv.Itoa(c.Core), figure(c.Interrupts), figure(c.Soft), figure(c.Busy),
			figure(c.Steal)})
	}
	return t
}

func hostSources(i host.Interrupts) sizing.Table {
	t := sizing.Table{Title: "what interrupted, " + i.During,
		Header: []string{"source", "card", "a second", "of the busiest core"}}
	for _, s := range i.Sources[:min(len(i.Sources), sourcesShown)] {
		name := s.Name
		if s.Soft {
			name += " (soft)"
		}
		t.Rows = append(t.Rows, []string{name, s.Card, figure(s.PerS),
			fmt.Sprintf("%.0f %%", 100*slices.Max(s.ByCore)/s.PerS)})
	}
	return t
}

func hostPower(h Host) sizing.Table {
	t := sizing.Table{Title: "power and temperature under full load", Header: []string{"what", "before", "loaded"}}
	for _, p := range h.Power {
		t.Rows = append(t.Rows, []string{p.Domain, "", figure(p.Watts) + " W"})
	}
	for _, s := range h.Temperatures {
		t.Rows = append(t.Rows, []string{s.Sensor, figure(s.Before) + " °C", figure(s.Loaded) + " °C"})
	}
	return t
}
