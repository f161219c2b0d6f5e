package planning

import (
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
	"thalweg/internal/ops/forecast"
	"thalweg/internal/ops/price"
)

// Family returns the part of a type's name that says what it is, without its size: c7g of c7g.large.
func Family(machine string) string {
	family, _, _ := strings.Cut(machine, ".")
	return family
}

// MachinesOf returns the types that may be taken: those that are named, or the family of the run's own machine. speeds
// has those that were measured.
func MachinesOf(book *price.Book, names []string, own string, speeds map[string]float64) ([]Machine, error) {
	if len(names) == 0 {
		if _, priced := book.Find(own); !priced {
			f := fault.New(fault.Script, "the run's own machine is %s: nobody knows which machines may be taken",
				map[bool]string{true: "not known", false: own + ", which has no price"}[own == ""])
			f.Hint = "name types of machines with {{set machines}}, and prices with {{set prices}}"
			return nil, f
		}
		for _, name := range book.Machines() {
			if Family(name) == Family(own) {
				names = append(names, name)
			}
		}
	}
	var out []Machine
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	if len(names) > machinesMost {
		f := fault.New(fault.Script, "there are %d types of machines; a plan takes %d", len(names), machinesMost)
		f.Hint = "name fewer with {{set machines}}"
		return nil, f
	}
	for measured := range speeds {
		if !slices.Contains(names, measured) {
			return nil, fault.New(fault.Script, "there is a speed of machine %s, which the plan does not take: it takes %s",
				measured, strings.Join(names, ", "))
		}
	}
	for _, name := range names {
		line, ok := book.Find(name)
		switch {
		case name == "":
			f := fault.New(fault.Script, "a type of machine has no name")
			f.Hint = "name types with {{set machines}}: c7g.large"
			return nil, f
		case !ok:
			return nil, fault.New(fault.Script, "machine %q has no price", name).Suggest(name, book.Machines())
		case line.Cores == 0:
			return nil, fault.New(fault.Script, "the price of machine %s does not say how many cores it has", name)
		}
		m := Machine{Line: line, Speed: speeds[name]}
		if m.Measured = m.Speed > 0; !m.Measured {
			m.Speed = 1
		}
		out = append(out, m)
	}
	slices.SortStableFunc(out, func(a, b Machine) int { return a.Cores - b.Cores })
	return out, nil
}

// Notes says what a plan rests on, and what it does not know: a sentence each.
func (q Question) Notes() []string {
	out := q.Model.Rests(q.Alone)
	if q.Alone.State.Kind != q.Many.State.Kind {
		out[0] = "Of one machine: " + out[0]
		out = append(out, "Several machines need a cluster: its state and parts have the built-in times.")
	}
	var guessed []string
	for _, m := range q.Machines {
		if !m.Measured && m.Machine != q.Record.Machine {
			guessed = append(guessed, m.Machine)
		}
	}
	if len(guessed) > 0 {
		out = append(out, fmt.Sprintf("Nobody has measured %s: a core is taken to be as fast as the run's own.",
			strings.Join(guessed, ", ")))
	}
	var sizes []string
	for _, m := range q.Machines {
		if m.MemoryBytes == 0 {
			sizes = append(sizes, m.Machine)
		}
	}
	if len(sizes) > 0 {
		out = append(out, fmt.Sprintf("The price of %s does not say how much memory it has: as much for a core is taken as "+
			"the run had.", strings.Join(sizes, ", ")))
	}
	return out
}

// Warnings says where a plan goes beyond what was measured.
func (q Question) Warnings(p Plan) (out []string) {
	if q.Alone.Scale > forecast.Known {
		out = append(out, fmt.Sprintf("The run is %.3g times as large as the measured one: beyond twice, intervals are "+
			"wider.", q.Alone.Scale))
	}
	cores := q.Record.Cores * q.Record.Workers
	if a := p.Answer; a != nil && a.Cores*a.Count > forecast.Known*cores {
		out = append(out, fmt.Sprintf("The run was measured on %s, and the answer has %d: beyond twice, intervals are "+
			"wider.", format.Counted(int64(cores), "core", "cores"), a.Cores*a.Count))
	}
	return out
}
