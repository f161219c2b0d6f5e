package host

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// counters are what the kernel has counted so far.
type counters struct {
	at    time.Time
	cores map[int]coreTime // by number
	hard  table
	soft  table
	joule map[string]energy
}

// coreTime is where a core's time went, in ticks.
type coreTime struct {
	all, interrupts, steal float64
}

// table has lines of counts, by core.
type table struct {
	cores []int
	lines map[string]tableLine
}

type tableLine struct {
	counts []float64
	about  string
}

// count reads all counters.
func (t tree) count() counters {
	return counters{at: time.Now(), cores: coreTimes(t.said("proc/stat")), hard: tableIn(t.said("proc/interrupts")),
		soft: tableIn(t.said("proc/softirqs")), joule: t.energies()}
}

// coreTimes reads lines such as cpu0 user nice system idle iowait irq softirq steal.
func coreTimes(stat string) map[int]coreTime {
	const irq, softIRQ, steal = 5, 6, 7
	out := map[int]coreTime{}
	for line := range strings.SplitSeq(stat, "\n") {
		words := strings.Fields(line)
		if len(words) <= steal+1 {
			continue
		}
		number, is := strings.CutPrefix(words[0], "cpu")
		core, err := strconv.Atoi(number)
		if !is || err != nil {
			continue
		}
		var c coreTime
		for i, word := range words[1 : steal+2] { // times of guests are in those of users
			ticks, _ := strconv.ParseFloat(word, 64) // of the kernel
			c.all += ticks
			switch i {
			case irq, softIRQ:
				c.interrupts += ticks
			case steal:
				c.steal += ticks
			}
		}
		out[core] = c
	}
	return out
}

// tableIn reads a table whose first line names cores: CPU0 CPU2.
func tableIn(text string) table {
	head, rest, _ := strings.Cut(text, "\n")
	t := table{lines: map[string]tableLine{}}
	for _, name := range strings.Fields(head) {
		if core, err := strconv.Atoi(strings.TrimPrefix(name, "CPU")); err == nil {
			t.cores = append(t.cores, core)
		}
	}
	for line := range strings.SplitSeq(rest, "\n") {
		name, values, is := strings.Cut(strings.TrimSpace(line), ":")
		words := strings.Fields(values)
		if !is || len(words) < len(t.cores) {
			continue // totals of lines that belong to no core
		}
		var l tableLine
		for _, word := range words[:len(t.cores)] {
			n, err := strconv.ParseFloat(word, 64)
			if err != nil {
				break
			}
			l.counts = append(l.counts, n)
		}
		if len(l.counts) == len(t.cores) {
			l.about = strings.Join(words[len(t.cores):], " ")
			t.lines[name] = l
		}
	}
	return t
}

// Interrupts is what interrupted the cores in a stretch.
type Interrupts struct {
	During  string      `json:"during"` // full load, loopback, peer
	Seconds float64     `json:"seconds"`
	Cores   []CoreShare `json:"cores"`
	Sources []Source    `json:"sources"` // most first
}

// CoreShare is what a core went through in a stretch.
type CoreShare struct {
	Core       int     `json:"core"`
	Interrupts float64 `json:"interrupts_per_s"`
	Soft       float64 `json:"soft_interrupts_per_s"`
	Busy       float64 `json:"interrupt_time_percent"`
	Steal      float64 `json:"steal_percent"`
}

// Source is what one source did.
type Source struct {
	Name   string    `json:"name"`
	Soft   bool      `json:"soft,omitempty"`
	Card   string    `json:"card,omitempty"` // whose it is
	PerS   float64   `json:"per_s"`
	ByCore []float64 `json:"per_s_by_core"` // in the order of cores
}

// sourcesMost bounds the sources that are listed.
const sourcesMost = 16

// between says what has happened between two counts.
func between(a, b counters, cards []Card, during string) Interrupts {
	s := b.at.Sub(a.at).Seconds()
	out := Interrupts{During: during, Seconds: s}
	if s <= 0 {
		return out
	}
	hard, hardBy := grown(a.hard, b.hard, s, false)
	soft, softBy := grown(a.soft, b.soft, s, true)
	for core := range b.cores {
		was, now := a.cores[core], b.cores[core]
		c := CoreShare{Core: core, Interrupts: hardBy[core], Soft: softBy[core]}
		if all := now.all - was.all; all > 0 {
			c.Busy, c.Steal = 100*(now.interrupts-was.interrupts)/all, 100*(now.steal-was.steal)/all
		}
		out.Cores = append(out.Cores, c)
	}
	slices.SortFunc(out.Cores, func(a, b CoreShare) int { return a.Core - b.Core })
	for i := range hard {
		line, about, _ := strings.Cut(hard[i].Name, " ")
		if c := slices.IndexFunc(cards, func(c Card) bool { return c.interrupts(line, about) }); c >= 0 {
			hard[i].Card = cards[c].Name
		}
	}
	out.Sources = append(hard, soft...)
	slices.SortFunc(out.Sources, func(a, b Source) int {
		if (a.Card == "") != (b.Card == "") { // those of cards are never left out
			return cmp.Compare(b.Card, a.Card)
		}
		return cmp.Or(cmp.Compare(b.PerS, a.PerS), cmp.Compare(a.Name, b.Name))
	})
	ofCards := 0
	for _, source := range out.Sources {
		if source.Card != "" {
			ofCards++
		}
	}
	out.Sources = out.Sources[:min(len(out.Sources), max(sourcesMost, ofCards))]
	slices.SortStableFunc(out.Sources, func(a, b Source) int { return cmp.Compare(b.PerS, a.PerS) })
	return out
}

// grown lists the lines of a table that have grown, a second, and the sums by core.
func grown(a, b table, seconds float64, soft bool) (out []Source, byCore map[int]float64) {
	byCore = map[int]float64{}
	if !slices.Equal(a.cores, b.cores) {
		return nil, byCore // a core has come or gone: columns are not the same
	}
	for name, now := range b.lines {
		was, there := a.lines[name]
		one := Source{Name: strings.TrimSpace(name + " " + now.about), Soft: soft}
		for i, n := range now.counts {
			if there {
				n -= was.counts[i]
			}
			n = max(n, 0) / seconds
			one.ByCore, one.PerS = append(one.ByCore, n), one.PerS+n
			byCore[b.cores[i]] += n
		}
		if one.PerS > 0 {
			out = append(out, one)
		}
	}
	return out, byCore
}
