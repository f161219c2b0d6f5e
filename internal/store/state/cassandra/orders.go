package cassandra

import (
	"context"
	"fmt"
	"slices"
	"time"

	"thalweg/internal/store/state"
)

// updateRun changes a run's partition. decide changes the head, and says with
// which events, or that there is nothing to do.
func (o *operation) updateRun(ctx context.Context, key state.RunKey, decide func(ctx context.Context, h *runHead,
	c *change) (changed bool, err error)) error {
	p := ofRun(key)
	return o.update(ctx, p, func(ctx context.Context) (*change, error) {
		rev, head, err := o.readRun(ctx, key, nil)
		if err != nil {
			return nil, err
		}
		c := &change{rev: rev}
		changed, err := decide(ctx, &head, c)
		if err != nil || !changed {
			return nil, err
		}
		data, err := o.codec.pack(head)
		c.puts(p, column{"data", data})
		return c, err
	})
}

// tellRun writes an event of a run.
func (o *operation) tellRun(h *runHead, c *change, kind state.EventKind, actor string, at time.Time,
	data state.EventData) error {
	h.Events++
	packed, err := o.codec.pack(eventRow{Version: state.EventVersion, Time: stored(at), Actor: actor, Kind: kind,
		Data: data})
	c.put(ofRun(h.Run.RunKey), place{kind: kindEvent, n1: h.Events}, column{"data", packed})
	return err
}

// BeginCommand implements state.Store.
func (s *Store) BeginCommand(ctx context.Context, key state.RunKey, order state.Command) error {
	order.Done = false
	o := s.operation("BeginOrder", fmt.Sprintf("%s %s", order.Kind, nameRun(key)))
	return o.updateRun(ctx, key, func(_ context.Context, h *runHead, c *change) (bool, error) {
		if begun, err := order.Begins(h.Run); begun || err != nil {
			return false, err
		}
		h.Run.Epoch, h.Run.Command = order.Epoch, &order
		return true, o.tellRun(h, c, state.OrderBegun, order.Actor, order.Time,
			state.EventData{Epoch: order.Epoch, Command: &order})
	})
}

// CommitCommand implements state.Store.
func (s *Store) CommitCommand(ctx context.Context, key state.RunKey, epoch int64, now time.Time) error {
	o := s.operation("EndOrder", fmt.Sprintf("end order %d of %s", epoch, nameRun(key)))
	return o.updateRun(ctx, key, func(_ context.Context, h *runHead, c *change) (bool, error) {
		if h.Run.Epoch != epoch || h.Run.Command == nil {
			return false, state.ErrConflict
		}
		if h.Run.Command.Done {
			return false, nil
		}
		h.Run = h.Run.Command.Ends(h.Run, stored(now))
		return true, o.tellRun(h, c, state.OrderEnded, h.Run.Command.Actor, now,
			state.EventData{Epoch: epoch, Status: h.Run.Status})
	})
}

// CompleteRun implements state.Store.
func (s *Store) CompleteRun(ctx context.Context, key state.RunKey, epoch int64, actor string, now time.Time) error {
	o := s.operation("CompleteRun", "complete "+nameRun(key))
	return o.updateRun(ctx, key, func(_ context.Context, h *runHead, c *change) (bool, error) {
		switch {
		case h.Run.Epoch != epoch || h.Run.Command.Pending():
			return false, state.ErrConflict
		case h.Run.Status == state.Complete:
			return false, nil
		case h.Run.Status != state.Running:
			return false, state.ErrConflict
		}
		h.Run.Status, h.Run.Finished = state.Complete, stored(now)
		return true, o.tellRun(h, c, state.RunCompleted, actor, now, state.EventData{Status: state.Complete})
	})
}

// Acquire implements state.Store.
func (s *Store) Acquire(ctx context.Context, key state.RunKey, role, owner string, now,
	until time.Time) (got state.Role, err error) {
	o := s.operation("Acquire", fmt.Sprintf("take the role %s of %s", role, nameRun(key)))
	err = o.updateRun(ctx, key, func(_ context.Context, h *runHead, _ *change) (bool, error) {
		got = h.Roles[role]
		got.Name = role
		before := got
		if !got.Take(owner, stored(now), stored(until)) {
			return false, state.ErrHeld
		}
		if h.Roles == nil {
			h.Roles = map[string]state.Role{}
		}
		h.Roles[role] = got
		return got.Owner != before.Owner || got.Term != before.Term || !got.Until.Equal(before.Until), nil
	})
	return got, err
}

// Resign implements state.Store.
func (s *Store) Resign(ctx context.Context, key state.RunKey, role, owner string) error {
	o := s.operation("Resign", fmt.Sprintf("give up the role %s of %s", role, nameRun(key)))
	return o.updateRun(ctx, key, func(_ context.Context, h *runHead, _ *change) (bool, error) {
		r, there := h.Roles[role]
		if !there || r.Owner != owner || owner == "" {
			return false, nil
		}
		h.Roles[role] = state.Role{Name: role, Term: r.Term}
		return true, nil
	})
}

// Sequence implements state.Store.
func (s *Store) Sequence(ctx context.Context, key state.RunKey, page state.Page) (spans []state.Span, next int64,
	err error) {
	o := s.operation("Sequence", "read the order of the events of "+nameRun(key))
	_, head, err := o.readRun(ctx, key, nil)
	if err != nil {
		return nil, 0, o.explain(err)
	}
	from := max(page.From, 0)
	to := min(from+int64(pageLimit(page.Limit)), head.Spans)
	if spans, err = o.spans(ctx, key, from, to); err != nil {
		return nil, 0, o.explain(err)
	}
	if to < head.Spans {
		next = to
	}
	return spans, next, nil
}

// spans reads those at places from … to-1.
func (o *operation) spans(ctx context.Context, key state.RunKey, from, to int64) (spans []state.Span, err error) {
	if from >= to {
		return nil, nil
	}
	err = o.query(ctx, state.PageMax, `SELECT data`+rowsOf+`kind = 5 AND n1 >= ? AND n1 < ?`, ofRun(key).with(from, to),
		func(scan func(...any) error) error {
			var data []byte
			var span state.Span
			if err := scan(&data); err != nil {
				return err
			}
			err := o.codec.unpack(data, &span)
			spans = append(spans, span)
			return err
		})
	return spans, err
}

// ExtendSequence implements state.Store.
func (s *Store) ExtendSequence(ctx context.Context, key state.RunKey, at int64, spans []state.Span) error {
	o := s.operation("ExtendSequence", "go on with the order of the events of "+nameRun(key))
	if err := state.CheckSpans(at, spans); err != nil {
		return o.explain(err)
	}
	return o.updateRun(ctx, key, func(ctx context.Context, h *runHead, c *change) (bool, error) {
		if h.Spans != at {
			there, err := o.spans(ctx, key, at, min(at+int64(len(spans)), h.Spans))
			if err == nil && (h.Spans < at || !slices.Equal(there, spans)) {
				err = state.ErrConflict
			}
			return false, err
		}
		for i, span := range spans {
			data, err := o.codec.pack(span)
			if err != nil {
				return false, err
			}
			c.put(ofRun(key), place{kind: kindSpan, n1: at + int64(i)}, column{"data", data})
		}
		h.Spans += int64(len(spans))
		return len(spans) > 0, nil
	})
}

// Events implements state.Store.
func (s *Store) Events(ctx context.Context, key state.NodeKey, after int64, limit int) (events []state.Event,
	err error) {
	o := s.operation("Events", "list events of "+nameNode(key))
	if !isRun(key.RunKey) {
		return nil, o.explain(state.ErrNotFound)
	}
	limit = pageLimit(limit)
	err = o.query(ctx, limit, `SELECT n1, data`+rowsOf+`kind = 8 AND n1 > ? LIMIT ?`, ofNode(key).with(after, limit),
		func(scan func(...any) error) error {
			e := state.Event{NodeKey: key}
			var data []byte
			var row eventRow
			if err := scan(&e.Seq, &data); err != nil {
				return err
			}
			err := o.codec.unpack(data, &row)
			e.Version, e.Time, e.Actor, e.Kind, e.EventData = row.Version, row.Time, row.Actor, row.Kind, row.Data
			events = append(events, e)
			return err
		})
	if err == nil && len(events) == 0 && !o.hasNode(key) { // none, or nothing that has any
		rev := int64(0)
		if rev, err = o.readRows(ctx, ofNode(key), func(place, []byte) error { return nil }); err == nil && rev == 0 {
			err = state.ErrNotFound
		}
	}
	return events, o.explain(err)
}
