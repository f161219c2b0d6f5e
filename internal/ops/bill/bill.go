package bill

import (
	"cmp"
	"slices"
	"time"

	"thalweg/internal/ops/price"
	"thalweg/internal/run/sheet"
	"thalweg/internal/store/state"
)

// Basis is what bills rest on.
type Basis struct {
	Book     *price.Book
	Services []Service      // machines that run beside workers
	Others   []Hourly       // what else is paid by the hour
	BringUp  *time.Duration // that machines are paid for before they can work; nil: nobody said
}

// Service is some machines of one type.
type Service struct {
	Machine string
	Count   int
}

// Hourly is a thing that is paid by the hour.
type Hourly struct {
	Name    string
	PerHour price.Money
}

// Node is a node of a run, with the time of attempts at it.
type Node struct {
	Name  string
	Spent state.Spent
}

// NodesOf returns the nodes of a run as bills have them.
func NodesOf(nodes []state.Node) []Node {
	out := make([]Node, len(nodes))
	for i, n := range nodes {
		out[i] = Node{n.Name, n.Spent}
	}
	return out
}

// Part is a part of what a run cost.
type Part struct {
	Seconds float64      `json:"machine_s" doc:"Time of machines."`
	USD     *price.Money `json:"usd,omitempty" doc:"Price in US dollars of the time that has one; none: there is none."`
}

// Bill is what a run cost.
type Bill struct {
	Worked   Part  `json:"worked" doc:"Work that was committed."`
	Waited   Part  `json:"waited" doc:"Waits for work or memory, calls of the state that gave no batch, batches in flight."`
	Lost     Part  `json:"lost" doc:"Attempts that committed nothing."`
	Services *Part `json:"services,omitempty" doc:"Services of the cluster; none: it names none."`
	// Total leaves BringUp out: runs share it.
	Total    *price.Money `json:"usd,omitempty" doc:"Sum of worked, waited, lost and services, as far as they have a price."`
	Unpriced float64      `json:"unpriced_s,omitempty" doc:"Time of machines that has no price, part of the times above."`
	BringUp  *Part        `json:"bring_up,omitempty" doc:"Paid once for all runs, when machines start; not in the sum."`
	Dates    []string     `json:"prices_of,omitempty" doc:"Dates of the prices."`
	Machines []Machine    `json:"machines" doc:"Machines of workers by type."`
	Beside   []Beside     `json:"beside,omitempty" doc:"What the services are."`
	Nodes    []Share      `json:"nodes" doc:"Nodes by what was worked and lost for them."`
}

// Machine is the time of a type of machine.
type Machine struct {
	Machine string       `json:"machine,omitempty" doc:"Type; none: it is not known."`
	Workers int          `json:"workers"`
	Seconds float64      `json:"machine_s"`
	PerHour *price.Money `json:"usd_per_hour,omitempty" doc:"None: it has no price."`
	USD     *price.Money `json:"usd,omitempty"`
	Date    string       `json:"date,omitempty" doc:"Of the price."`
	Source  string       `json:"source,omitempty" doc:"Of the price."`
}

// Beside is a thing that is paid by the hour while a run is worked on.
type Beside struct {
	Name    string       `json:"name" doc:"Type of machine, or the name of another thing."`
	Count   int          `json:"count"`
	PerHour *price.Money `json:"usd_per_hour,omitempty" doc:"Of one of them; none: it has no price."`
}

// Share is a node's share of a bill.
type Share struct {
	Node   string `json:"node"`
	Worked Part   `json:"worked"`
	Lost   Part   `json:"lost"`
}

// Complete reports whether all that is billed has a price.
func (b *Bill) Complete() bool {
	return b.Unpriced == 0 && !slices.ContainsFunc(b.Beside, func(o Beside) bool { return o.PerHour == nil })
}

// sum is a time, and what is known of its price.
type sum struct {
	time   time.Duration
	usd    price.Money
	priced bool
}

// add adds a time at a price by the hour, if it has one.
func (s *sum) add(d time.Duration, perHour *price.Money) {
	s.time += d
	if perHour != nil {
		s.usd, s.priced = s.usd+perHour.For(d), true
	}
}

func (s sum) plus(o sum) sum { return sum{s.time + o.time, s.usd + o.usd, s.priced || o.priced} }

func (s sum) part() Part {
	p := Part{Seconds: seconds(s.time)}
	if s.priced {
		p.USD = new(s.usd)
	}
	return p
}

// Of returns the bill of a run, from the time sheets of its workers and the times of its nodes; nil: there are no
// sheets.
func Of(sheets []sheet.Sheet, nodes []Node, basis Basis) *Bill {
	if len(sheets) == 0 {
		return nil
	}
	b := &Bill{Machines: []Machine{}, Nodes: []Share{}}
	lost := lostShare(sheets, nodes)
	var worked, waited, gone, whole sum
	var unpriced time.Duration
	for i, s := range sheets {
		line, perHour := basis.find(s.Machine)
		part := hostShare(sheets, i) / float64(max(s.Slots, 1))
		all := scaled(s.SlotTime(), part)
		did := scaled(s.Time(sheet.Work)+s.Time(sheet.Parts)+s.Time(sheet.Commits), part)
		failed := min(scaled(s.Time(sheet.Other), part*lost), all-did)
		paid, own, off := sum{}, sum{}, sum{}
		paid.add(all, perHour)
		own.add(did, perHour)
		off.add(failed, perHour)
		off.usd = min(off.usd, paid.usd-own.usd) // both may have been rounded up
		worked, gone = worked.plus(own), gone.plus(off)
		waited = waited.plus(sum{all - did - failed, paid.usd - own.usd - off.usd, paid.priced})
		whole = whole.plus(paid)
		if perHour == nil {
			unpriced += all
		}
		b.machine(s.Machine, line, perHour, paid)
	}
	b.Worked, b.Waited, b.Lost, b.Unpriced = worked.part(), waited.part(), gone.part(), seconds(unpriced)
	b.services(sheets, basis, whole)
	b.bringUp(sheets, basis)
	b.divide(nodes, worked, gone)
	slices.SortFunc(b.Machines, func(a, o Machine) int { return cmp.Compare(a.Machine, o.Machine) })
	slices.Sort(b.Dates)
	b.Dates = slices.Compact(b.Dates)
	return b
}

// find returns the price of a type of machine; nil: it has none.
func (basis Basis) find(machine string) (price.Line, *price.Money) {
	if basis.Book == nil {
		return price.Line{}, nil
	}
	line, ok := basis.Book.Find(machine)
	if !ok {
		return price.Line{}, nil
	}
	return line, &line.PerHour
}

// machine adds the time of a worker to its type of machine.
func (b *Bill) machine(name string, line price.Line, perHour *price.Money, paid sum) {
	i := slices.IndexFunc(b.Machines, func(m Machine) bool { return m.Machine == name })
	if i < 0 {
		i = len(b.Machines)
		b.Machines = append(b.Machines, Machine{Machine: name, PerHour: perHour, Date: line.Date, Source: line.Source})
		if line.Date != "" {
			b.Dates = append(b.Dates, line.Date)
		}
	}
	m := &b.Machines[i]
	m.Workers++
	m.Seconds = round(m.Seconds + seconds(paid.time))
	if paid.priced {
		m.USD = new(valueOf(m.USD) + paid.usd)
	}
}

// services bills what runs beside the workers, and sums up.
func (b *Bill) services(sheets []sheet.Sheet, basis Basis, workers sum) {
	all := workers
	rate, priced := b.beside(basis)
	if len(b.Beside) > 0 {
		services := sum{time: attended(sheets), priced: priced}
		if priced {
			services.usd = rate.For(services.time)
		}
		part := services.part()
		b.Services = &part
		all.usd, all.priced = all.usd+services.usd, all.priced || priced
	}
	if all.priced {
		b.Total = &all.usd
	}
}

// beside lists what runs beside the workers, and returns its price by the hour.
func (b *Bill) beside(basis Basis) (rate price.Money, priced bool) {
	for _, s := range basis.Services {
		line, perHour := basis.find(s.Machine)
		b.Beside = append(b.Beside, Beside{s.Machine, s.Count, perHour})
		if perHour != nil {
			rate, priced = rate+perHour.Times(s.Count), true
			b.Dates = append(b.Dates, line.Date)
		}
	}
	for _, o := range basis.Others {
		b.Beside = append(b.Beside, Beside{o.Name, 1, &o.PerHour})
		rate, priced = rate+o.PerHour, true
	}
	return rate, priced
}

// bringUp bills the time before machines can work: of each host of a worker once, and of services.
func (b *Bill) bringUp(sheets []sheet.Sheet, basis Basis) {
	if basis.BringUp == nil || *basis.BringUp <= 0 {
		return
	}
	bringUp := *basis.BringUp
	var all sum
	hosts := map[string]bool{}
	for _, s := range sheets {
		if !hosts[s.Host] {
			hosts[s.Host] = true
			_, perHour := basis.find(s.Machine)
			all.add(bringUp, perHour)
		}
	}
	for _, o := range b.Beside {
		if o.PerHour != nil {
			all.usd, all.priced = all.usd+o.PerHour.Times(o.Count).For(bringUp), true
		}
	}
	for _, s := range basis.Services {
		all.time += bringUp * time.Duration(s.Count)
	}
	part := all.part()
	b.BringUp = &part
}

// divide gives nodes what was worked and lost, by the times of the attempts at them.
func (b *Bill) divide(nodes []Node, worked, lost sum) {
	var spent, upTo state.Spent
	for _, n := range nodes {
		spent = spent.Plus(n.Spent)
	}
	share := func(of sum, upTo, whole time.Duration, before *sum) Part {
		part := 0.0
		if whole > 0 {
			part = float64(upTo) / float64(whole)
		}
		now := sum{scaled(of.time, part), price.Money(scaled(time.Duration(of.usd), part)), of.priced}
		own := sum{now.time - before.time, now.usd - before.usd, now.priced}
		*before = now
		return own.part()
	}
	var workedBefore, lostBefore sum // of the nodes up to here together: so roundings do not add up
	for _, n := range nodes {
		upTo = upTo.Plus(n.Spent)
		b.Nodes = append(b.Nodes, Share{Node: n.Name, Worked: share(worked, upTo.Worked, spent.Worked, &workedBefore),
			Lost: share(lost, upTo.Lost, spent.Lost, &lostBefore)})
	}
}
