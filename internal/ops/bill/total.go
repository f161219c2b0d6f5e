package bill

import (
	"slices"

	"thalweg/internal/ops/price"
)

// Sum is what several runs cost, or nodes of them.
type Sum struct {
	Runs       int          `json:"runs"`
	Unmeasured int          `json:"runs_without_sheets,omitempty" doc:"Runs without time sheets: what they cost is not known."`
	Worked     Part         `json:"worked"`
	Waited     *Part        `json:"waited,omitempty" doc:"Of runs; nodes have none."`
	Lost       Part         `json:"lost"`
	Services   *Part        `json:"services,omitempty"`
	Total      *price.Money `json:"usd,omitempty" doc:"Sum, as far as there are prices."`
	Unpriced   float64      `json:"unpriced_s,omitempty" doc:"Time of machines that has no price, part of the times above; not known of nodes."`
	Partial    bool         `json:"usd_partial,omitempty" doc:"Something of it has no price."`
	Dates      []string     `json:"prices_of,omitempty" doc:"Dates of the prices."`
}

// Add adds a run; nil: what it cost is not known.
func (s *Sum) Add(b *Bill) {
	s.Runs++
	if b == nil {
		s.Unmeasured++
		return
	}
	s.plus(Sum{Worked: b.Worked, Waited: &b.Waited, Lost: b.Lost, Services: b.Services, Total: b.Total,
		Unpriced: b.Unpriced,
		Partial:  !b.Complete(), Dates: b.Dates})
}

// AddNode adds a node of a run that has a bill.
func (s *Sum) AddNode(b *Bill, n Share) {
	s.Runs++
	one := Sum{Worked: n.Worked, Lost: n.Lost, Partial: b.Unpriced > 0 && n.Worked.Seconds+n.Lost.Seconds > 0,
		Dates: b.Dates}
	both := n.Worked.plus(n.Lost)
	one.Total = both.USD
	s.plus(one)
}

// Plus adds other runs.
func (s *Sum) Plus(o Sum) {
	s.Runs, s.Unmeasured = s.Runs+o.Runs, s.Unmeasured+o.Unmeasured
	s.plus(o)
}

func (s *Sum) plus(o Sum) {
	s.Worked, s.Lost = s.Worked.plus(o.Worked), s.Lost.plus(o.Lost)
	s.Waited, s.Services = both(s.Waited, o.Waited), both(s.Services, o.Services)
	s.Total = sumOf(s.Total, o.Total)
	s.Unpriced = round(s.Unpriced + o.Unpriced)
	s.Partial = s.Partial || o.Partial
	s.Dates = append(slices.Clone(s.Dates), o.Dates...)
	slices.Sort(s.Dates)
	s.Dates = slices.Compact(s.Dates)
}

// Seconds returns the time of workers' machines.
func (s *Sum) Seconds() float64 {
	all := s.Worked.Seconds + s.Lost.Seconds
	if s.Waited != nil {
		all += s.Waited.Seconds
	}
	return all
}

func (p Part) plus(o Part) Part { return Part{round(p.Seconds + o.Seconds), sumOf(p.USD, o.USD)} }

func both(a, b *Part) *Part {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return new(a.plus(*b))
}

// sumOf adds amounts; nil: there is none.
func sumOf(a, b *price.Money) *price.Money {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return new(*a + *b)
}
