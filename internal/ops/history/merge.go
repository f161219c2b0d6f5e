package history

import (
	"slices"

	"thalweg/internal/store/state"
)

// merge puts the events that partitions have ahead into one order, by time. Events of one partition keep their order.
// An order comes before the events of nodes that hear of it; its end and the end of the run come after them. merge
// stops where an event that has not been read could come next.
func merge(orders []state.Event, own *partition, nodes []*partition) (spans []state.Span) {
	m := merger{orders: orders, all: append([]*partition{own}, nodes...), at: map[*partition]int{}, own: own}
	for len(spans) < state.PageMax {
		p := m.next()
		if p == nil {
			return spans
		}
		e := p.ahead[m.at[p]]
		m.at[p]++
		if last := len(spans) - 1; last >= 0 && spans[last].Node == p.node {
			spans[last].To = e.Seq
		} else {
			spans = append(spans, state.Span{Node: p.node, From: e.Seq, To: e.Seq})
		}
	}
	return spans
}

type merger struct {
	orders []state.Event // the run's own events from the first on
	all    []*partition  // the run's own, then the nodes' in their order
	own    *partition
	at     map[*partition]int // number of events taken from each

	held  int64              // Seq of the run's event that waits for nodes
	until map[*partition]int // number of events of each that must be taken before it
}

// next returns the partition with the next event; nil if that cannot be known yet, or there is none.
func (m *merger) next() (first *partition) {
	for _, p := range m.all {
		if m.at[p] == len(p.ahead) {
			if p.full {
				return nil
			}
			continue
		}
		if p == m.own && m.waits() || p != m.own && m.hearsLater(p.ahead[m.at[p]]) {
			continue
		}
		if first == nil || before(p.ahead[m.at[p]], first.ahead[m.at[first]]) {
			first = p
		}
	}
	return first
}

// before reports whether an event comes before one of another partition.
func before(a, b state.Event) bool {
	if !a.Time.Equal(b.Time) {
		return a.Time.Before(b.Time)
	}
	return rank(a.Kind) < rank(b.Kind)
}

// rank orders events of the same moment.
func rank(k state.EventKind) int {
	switch k {
	case state.RunCreated, state.OrderBegun:
		return 0
	case state.OrderEnded, state.RunCompleted:
		return 2
	}
	return 1
}

// waits reports whether the run's next event has to wait, because events of nodes
// come before it.
func (m *merger) waits() bool {
	e := m.own.ahead[m.at[m.own]]
	if rank(e.Kind) != 2 {
		return false
	}
	if m.held != e.Seq {
		m.held, m.until = e.Seq, map[*partition]int{}
		epoch := m.epoch(e)
		for _, p := range m.all[1:] {
			m.until[p] = follows(e, epoch, p)
		}
	}
	for _, p := range m.all[1:] {
		if m.at[p] < m.until[p] {
			return true
		}
	}
	return false
}

// hearsLater reports whether an event says that a node has followed an order whose
// begin has not been taken yet.
func (m *merger) hearsLater(e state.Event) bool {
	return e.Kind == state.NodeHeard && slices.ContainsFunc(m.own.ahead[m.at[m.own]:], func(o state.Event) bool {
		return o.Kind == state.OrderBegun && o.Epoch == e.Epoch
	})
}

// epoch returns the number of the latest order that began before an event of the
// run. For the end of an order, that is the order itself.
func (m *merger) epoch(e state.Event) (epoch int64) {
	for _, o := range m.orders {
		if o.Kind == state.OrderBegun && o.Seq < e.Seq {
			epoch = o.Epoch
		}
	}
	return epoch
}

// follows returns how many of a node's events come before e, the end of an order or
// of the run. It counts up to where the node follows that order, or a later one.
func follows(e state.Event, epoch int64, p *partition) int {
	for i, x := range p.ahead {
		switch {
		case x.Kind != state.NodeHeard:
		case x.Epoch == epoch && e.Kind == state.OrderEnded:
			return i + 1
		case x.Epoch > epoch:
			if e.Kind == state.OrderEnded {
				return 0 // it did not have to hear of this one
			}
			return i
		}
	}
	if e.Kind == state.OrderEnded && !p.full {
		return 0 // it has heard before, or did not have to
	}
	return len(p.ahead)
}
