package history

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"thalweg/internal/store/state"
)

// Line is a line of a run's stream of events.
type Line struct {
	N int64 `json:"n"` // 1, 2, 3 … in the stream
	state.Event
}

// Stream reads the events of a run and its nodes as one stream. The run's stored
// sequence fixes their order. A reader at its end extends the sequence, so that all
// readers get the same stream, whenever they read. A Stream reads only new events.
// It is not safe for concurrent use.
type Stream struct {
	store  state.Store
	key    state.RunKey
	after  int64
	n      int64                 // number of lines returned or skipped
	spans  int64                 // number of spans of the sequence that have been read
	queue  []state.Span          // those spans whose events are not yet returned
	known  map[string]*partition // by node
	orders []state.Event         // the run's own events so far

	caughtUp bool // queue ends with the latest event that has been read

	stopped time.Time // when the run was first seen stopped and about to go on; zero: it was not
}

// partition is a node's events, or the run's own.
type partition struct {
	node  string
	given int64         // Seq of the last event that was returned or skipped
	ahead []state.Event // the events after given that have been read
	full  bool          // there are events after ahead that have not been read
}

// NewStream returns a stream of a run's events that skips the first after lines.
func NewStream(store state.Store, key state.RunKey, after int64) *Stream {
	return &Stream{store: store, key: key, after: after, known: map[string]*partition{}}
}

// Next returns the next lines, at most limit. There are none if nothing has happened
// since.
func (s *Stream) Next(ctx context.Context, limit int) ([]Line, error) {
	var lines []Line
	s.caughtUp = false
	for len(lines) < limit {
		if len(s.queue) == 0 {
			if s.caughtUp {
				return lines, nil
			}
			more, err := s.more(ctx)
			if err != nil || !more {
				return lines, err
			}
		}
		span := &s.queue[0]
		p := s.partition(span.Node)
		if skip := min(span.To-span.From+1, s.after-s.n); skip > 0 {
			p.pass(skip)
			s.n += skip
			span.From += skip
		} else {
			events, err := s.take(ctx, p, min(span.To-span.From+1, int64(limit-len(lines))))
			if err != nil {
				return lines, err
			}
			for _, e := range events {
				s.n++
				lines = append(lines, Line{N: s.n, Event: e})
			}
			span.From += int64(len(events))
		}
		if span.From > span.To {
			s.queue = s.queue[1:]
		}
	}
	return lines, nil
}

// SkipAll skips what has happened so far, and returns the number of lines.
func (s *Stream) SkipAll(ctx context.Context) (int64, error) {
	s.after = math.MaxInt64
	_, err := s.Next(ctx, 1)
	s.after = s.n
	return s.n, err
}

// given returns the number of the last line that was returned or is skipped.
func (s *Stream) given() int64 { return max(s.n, s.after) }

// skip skips the lines up to one.
func (s *Stream) skip(to int64) { s.after = max(s.after, to) }

func (s *Stream) partition(node string) *partition {
	p := s.known[node]
	if p == nil {
		p = &partition{node: node}
		s.known[node] = p
	}
	return p
}

// pass skips n events.
func (p *partition) pass(n int64) {
	p.given += n
	p.ahead = p.ahead[min(n, int64(len(p.ahead))):]
}

// take returns the next events of a partition: those that have been read, n at most.
func (s *Stream) take(ctx context.Context, p *partition, n int64) ([]state.Event, error) {
	if len(p.ahead) == 0 {
		if err := s.fetch(ctx, p); err != nil {
			return nil, err
		}
	}
	if len(p.ahead) == 0 || p.ahead[0].Seq != p.given+1 {
		return nil, fmt.Errorf("event %d of %q in run %d is in the run's sequence and cannot be read", p.given+1,
			p.node, s.key.Run)
	}
	events := p.ahead[:min(n, int64(len(p.ahead)))]
	p.pass(int64(len(events)))
	return events, nil
}

// fetch reads a page of the events after ahead, and appends them to it.
func (s *Stream) fetch(ctx context.Context, p *partition) error {
	events, err := s.store.Events(ctx, state.NodeKey{RunKey: s.key, Node: p.node}, p.read(), state.PageMax)
	if err != nil {
		return fmt.Errorf("read the events of run %d: %w", s.key.Run, err)
	}
	p.ahead = append(slices.Clip(p.ahead), events...)
	return nil
}

// read returns the Seq of the last event that has been read.
func (p *partition) read() int64 { return p.given + int64(len(p.ahead)) }

// more reads the next spans of the sequence, or extends it at its end; false: there is nothing new.
func (s *Stream) more(ctx context.Context) (bool, error) {
	for {
		spans, _, err := s.store.Sequence(ctx, s.key, state.Page{From: s.spans})
		if err != nil {
			return false, fmt.Errorf("read the sequence of run %d's events: %w", s.key.Run, err)
		}
		if len(spans) > 0 {
			s.queue, s.spans = spans, s.spans+int64(len(spans))
			return true, nil
		}
		if spans, err = s.unsequenced(ctx); err != nil || len(spans) == 0 {
			return false, err
		}
		err = s.store.ExtendSequence(ctx, s.key, s.spans, spans)
		switch {
		case err == nil:
			s.queue, s.spans, s.caughtUp = spans, s.spans+int64(len(spans)), s.covers(spans)
			return true, nil
		case !errors.Is(err, state.ErrConflict): // another reader came first: read what it has appended
			return false, fmt.Errorf("go on with the sequence of run %d's events: %w", s.key.Run, err)
		}
	}
}

// covers reports whether spans hold all events that have been read ahead, and there were no more to read.
func (s *Stream) covers(spans []state.Span) bool {
	var have, read int64
	for _, span := range spans {
		have += span.To - span.From + 1
	}
	for _, p := range s.known {
		if p.full || len(p.ahead) >= state.PageMax {
			return false
		}
		read += int64(len(p.ahead))
	}
	return have == read
}

// unsequenced reads the events that the sequence does not hold yet, and returns spans of them in order.
func (s *Stream) unsequenced(ctx context.Context) ([]state.Span, error) {
	own := s.partition("")
	var nodes []*partition
	for settled := false; !settled; {
		if err := s.fetch(ctx, own); err != nil {
			return nil, err
		}
		list, err := s.store.Nodes(ctx, s.key)
		if err != nil {
			return nil, fmt.Errorf("read the nodes of run %d: %w", s.key.Run, err)
		}
		nodes = nodes[:0]
		for _, n := range list {
			p := s.partition(n.Name)
			if n.Revision > p.read() && len(p.ahead) < state.PageMax {
				if err := s.fetch(ctx, p); err != nil {
					return nil, err
				}
			}
			p.full = n.Revision > p.read()
			nodes = append(nodes, p)
		}
		// An order is stored with the run before nodes follow it: read the run's events again.
		known := len(own.ahead)
		if err := s.fetch(ctx, own); err != nil {
			return nil, err
		}
		settled = len(own.ahead) == known
	}
	if err := s.readOrders(ctx, own); err != nil {
		return nil, err
	}
	return merge(s.orders, own, nodes), nil
}

// readOrders updates s.orders, the run's own events from the first one on. There are
// few of them.
func (s *Stream) readOrders(ctx context.Context, own *partition) error {
	for int64(len(s.orders)) < own.given {
		events, err := s.store.Events(ctx, state.NodeKey{RunKey: s.key}, int64(len(s.orders)), state.PageMax)
		if err != nil {
			return fmt.Errorf("read the events of run %d: %w", s.key.Run, err)
		}
		if len(events) == 0 {
			return nil
		}
		s.orders = append(s.orders, events...)
	}
	s.orders = append(s.orders[:own.given:own.given], own.ahead...)
	return nil
}
