package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"thalweg/internal/store/state"
)

// Line is a line of a run's stream of events.
type Line struct {
	N int64 `json:"n"` // 1, 2, 3 … in the stream
	state.Event
}

// Stream reads the events of a run, its own and its nodes', as one. Their order
// over the partitions is the run's sequence: whoever comes to the end of it goes
// on with it, so that all who read, at whatever time, read the same. It reads
// what is new and nothing else. It is not safe for concurrent use.
type Stream struct {
	store  state.Store
	key    state.RunKey
	after  int64
	n      int64                 // lines that were given or passed by
	spans  int64                 // of the sequence that have been read
	queue  []state.Span          // of them, that have not been given
	known  map[string]*partition // by node
	orders []state.Event         // the run's own events so far

	caughtUp bool // nothing that had been read is behind queue

	stopped time.Time // when the run was first seen stopped that is about to go on
}

// partition is a node's events, or the run's own.
type partition struct {
	node  string
	given int64         // Seq of the last event that was given or passed by
	ahead []state.Event // that follow those given, and have been read
	full  bool          // there are more behind ahead
}

// NewStream reads a run's events behind the first so many lines.
func NewStream(store state.Store, key state.RunKey, after int64) *Stream {
	return &Stream{store: store, key: key, after: after, known: map[string]*partition{}}
}

// Next gives the lines that follow, at most so many: none if nothing has
// happened since.
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

func (s *Stream) partition(node string) *partition {
	p := s.known[node]
	if p == nil {
		p = &partition{node: node}
		s.known[node] = p
	}
	return p
}

// pass goes by events.
func (p *partition) pass(n int64) {
	p.given += n
	p.ahead = p.ahead[min(n, int64(len(p.ahead))):]
}

// take gives the next events of a partition, n of which the sequence has.
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

// fetch reads a page of what follows ahead.
func (s *Stream) fetch(ctx context.Context, p *partition) error {
	events, err := s.store.Events(ctx, state.NodeKey{RunKey: s.key, Node: p.node}, p.read(), state.PageMax)
	if err != nil {
		return fmt.Errorf("read the events of run %d: %w", s.key.Run, err)
	}
	p.ahead = append(slices.Clip(p.ahead), events...)
	return nil
}

// read is the Seq of the last event that has been read.
func (p *partition) read() int64 { return p.given + int64(len(p.ahead)) }

// more reads on in the sequence, or goes on with it; false: there is nothing.
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
		case !errors.Is(err, state.ErrConflict): // somebody else came first: what they said is read
			return false, fmt.Errorf("go on with the sequence of run %d's events: %w", s.key.Run, err)
		}
	}
}

// covers reports whether spans have all that has been read ahead, and that is all there was.
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

// unsequenced puts what the sequence does not have yet in order.
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
		// What a node has heard the run has said before: that is read as well.
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

// readOrders brings what the run itself has told up to date. It is little: what
// has happened to the run as a whole.
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
