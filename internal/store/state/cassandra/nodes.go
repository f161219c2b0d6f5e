package cassandra

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"thalweg/internal/store/state"
)

// Nodes implements state.Store.
func (s *Store) Nodes(ctx context.Context, key state.RunKey) ([]state.Node, error) {
	o := s.operation("Nodes", "list nodes of "+nameRun(key))
	if specs, ok := o.runNodes.get(key); ok {
		nodes, err := o.nodes(ctx, key, specs)
		if !errors.Is(err, state.ErrNotFound) {
			return nodes, o.explain(err)
		}
	}
	var more runMore
	if _, _, err := o.readRun(ctx, key, &more); err != nil {
		return nil, o.explain(err)
	}
	o.runNodes.put(key, more.Nodes)
	nodes, err := o.nodes(ctx, key, more.Nodes)
	return nodes, o.explain(err)
}

// hasNode reports whether the run is known here, and has the node; "" is the run itself.
func (o *operation) hasNode(key state.NodeKey) bool {
	specs, ok := o.runNodes.get(key.RunKey)
	return ok && (key.Node == "" ||
		slices.ContainsFunc(specs, func(n state.NodeSpec) bool { return n.Name == key.Node }))
}

// nodes reads the heads of a run's nodes, in this order. Heads are partitions: a request
// for each would be twice as many requests in a run (decision 0053).
func (o *operation) nodes(ctx context.Context, key state.RunKey, specs []state.NodeSpec) ([]state.Node, error) {
	requests := slices.Collect(slices.Chunk(specs, valuesMax))
	found := make([]map[string]state.Node, len(requests))
	err := together(ctx, len(requests), atOnce/2, func(ctx context.Context, i int) (err error) {
		found[i], err = o.heads(ctx, key, requests[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	nodes := make([]state.Node, len(specs))
	for i, spec := range specs {
		var ok bool
		if nodes[i], ok = found[i/valuesMax][spec.Name]; !ok {
			return nil, state.ErrNotFound
		}
	}
	return nodes, nil
}

// heads reads what stands of some nodes, without their plans, by one request.
func (o *operation) heads(ctx context.Context, key state.RunKey, specs []state.NodeSpec) (map[string]state.Node,
	error) {
	in, found := make([]string, len(specs)), make(map[string]state.Node, len(specs))
	for i, spec := range specs {
		in[i] = spec.Name
	}
	err := o.query(ctx, valuesMax, `SELECT node, data, more FROM state_rows
		WHERE workspace = ? AND run = ? AND node IN ? AND kind = 0 AND n1 = 0 AND n2 = 0`,
		[]any{key.Workspace, key.Run, in}, func(scan func(...any) error) error {
			var m image
			var name string
			var data, more []byte
			if err := scan(&name, &data, &more); err != nil {
				return err
			}
			if err := o.codec.unpack(data, &m.head); err != nil {
				return err
			}
			err := o.codec.unpack(more, &m.node)
			found[name] = m.full()
			return err
		})
	return found, err
}

// Node implements state.Store.
func (s *Store) Node(ctx context.Context, key state.NodeKey) (state.Node, error) {
	o := s.operation("Node", "read "+nameNode(key))
	m, err := o.read(ctx, key)
	if err != nil {
		return state.Node{}, o.explain(err)
	}
	n := m.full()
	if n.PlanDigest == "" {
		return n, nil
	}
	header, err := o.planHeader(ctx, key, n.PlanDigest)
	n.Plan = header.Record
	return n, o.explain(err)
}

// MoveNode implements state.Store.
func (s *Store) MoveNode(ctx context.Context, key state.NodeKey, move state.Move) error {
	o := s.operation("MoveNode", fmt.Sprintf("move %s from %s to %s", nameNode(key), move.From, move.To))
	if !state.Settles(move.From, move.To) {
		return o.explain(state.ErrIllegalMove)
	}
	return o.updateNode(ctx, key, func(_ context.Context, n *nodeChange) (bool, error) {
		if made, err := move.On(n.node); made || err != nil {
			return false, err
		}
		n.become(move.Moves(n.node))
		n.tell(state.NodeMoved, move.Actor, move.Now, move.Tells())
		return true, nil
	})
}

// ApplyCommand implements state.Store.
func (s *Store) ApplyCommand(ctx context.Context, key state.NodeKey, order state.Command) error {
	o := s.operation("Hear", fmt.Sprintf("%s %s", order.Kind, nameNode(key)))
	return o.updateNode(ctx, key, func(ctx context.Context, n *nodeChange) (bool, error) {
		before := n.node
		if before.Epoch >= order.Epoch {
			return false, nil
		}
		e := order.On(before)
		if e.Status != before.Status && !state.CanMove("node", before.Status, e.Status) {
			return false, state.ErrIllegalMove
		}
		if e.Free {
			if err := n.free(ctx, e, order.Time); err != nil {
				return false, err
			}
		}
		after := e.Hears(before, order)
		n.become(after)
		n.tell(state.NodeHeard, order.Actor, order.Time, e.Tells(before, after))
		return true, nil
	})
}

// free gives batches back to Pending, by an era that says so of all of them:
// see segment.live. Only what has succeeded and is named is written.
func (n *nodeChange) free(ctx context.Context, e state.Effect, now time.Time) error {
	if len(e.These) > 0 && !e.All && n.batches() > 0 {
		if err := n.withdraw(ctx, e.These); err != nil {
			return err
		}
	}
	h := &n.head
	h.Era++
	n.put(place{kind: kindEra, n1: h.Era}, column{"data", n.pack(eraRow{Time: stored(now)})})
	h.Failed = 0
	n.tally().Bad = state.Tally{}
	for _, s := range n.segments {
		s.live(h.Era, h.AllEra)
	}
	if !e.All {
		return nil
	}
	h.AllEra = h.Era
	h.Done, h.RowsIn, h.RowsOut, h.BytesIn, h.BytesOut = 0, 0, 0, 0, 0
	n.tally().Good = state.Tally{}
	if e.Unplan {
		h.PlanEra, h.Total, h.Open = h.Era, 0, nil
		return nil
	}
	if n.batches() > 0 {
		l, err := n.layout(ctx)
		if err != nil {
			return err
		}
		h.Open = l.phases()
	}
	return nil
}

// eraRow says when batches were freed.
type eraRow struct {
	Time time.Time `json:"time,omitzero"`
}

// withdraw gives batches that have succeeded back to Pending, and sums up anew
// what the others have measured.
func (n *nodeChange) withdraw(ctx context.Context, these []int) error {
	all, err := n.o.readSegments(ctx, n.key)
	if err != nil {
		return err
	}
	if all.rev != n.rev {
		n.c.rev = -1 // somebody has come first: the change will be lost, and decided again
		return nil
	}
	n.segments = all.segments
	for _, batch := range these {
		if !n.has(batch) {
			continue
		}
		if e := n.entry(batch); e.status == entrySucceeded {
			n.setEntry(batch, e.free())
		}
	}
	t := n.tally()
	h := &n.head
	t.Good = state.Tally{}
	h.Done, h.RowsIn, h.RowsOut, h.BytesIn, h.BytesOut = 0, 0, 0, 0, 0
	l, err := n.layout(ctx)
	if err != nil {
		return err
	}
	h.Open = l.phases()
	return n.o.attempts(ctx, n.key, 0, int64(n.batches()), func(at place, a *attemptRow) error {
		if e := n.entry(int(at.n1)); e.status != entrySucceeded || int64(e.attempt) != at.n2 || a.Stats == nil {
			return nil
		}
		h.Done++
		h.RowsIn, h.RowsOut, h.BytesIn, h.BytesOut = h.RowsIn+a.Stats.RowsIn, h.RowsOut+a.Stats.RowsOut,
			h.BytesIn+a.Stats.BytesIn,
			h.BytesOut+a.Stats.BytesOut
		h.Open[a.Phase]--
		t.Good.Count(int(at.n1), state.Succeeded, *a.Stats)
		return nil
	})
}

// attempts reads the attempts of batches from … to-1, by batch and number.
func (o *operation) attempts(ctx context.Context, key state.NodeKey, from, to int64,
	each func(at place, a *attemptRow) error) error {
	return o.query(ctx, state.PageMax, `SELECT n1, n2, data`+rowsOf+`kind = 3 AND n1 >= ? AND n1 < ?`,
		ofNode(key).with(from, to), func(scan func(...any) error) error {
			at := place{kind: kindAttempt}
			var data []byte
			if err := scan(&at.n1, &at.n2, &data); err != nil {
				return err
			}
			a := &attemptRow{}
			if err := o.codec.unpack(data, a); err != nil {
				return err
			}
			return each(at, a)
		})
}

// Purge implements state.Store.
func (s *Store) Purge(ctx context.Context, key state.NodeKey) error {
	o := s.operation("Purge", "purge "+nameNode(key))
	err := o.updateNode(ctx, key, func(_ context.Context, n *nodeChange) (bool, error) {
		if !n.node.Dropped {
			return false, state.ErrConflict
		}
		if n.head.Purged {
			return false, nil
		}
		n.head.Purged, n.head.Pubs, n.head.Open = true, nil, nil
		node := n.node
		node.PlanDigest, node.InputDigest, node.ReusedFrom = "", "", nil
		n.become(node)
		for _, kind := range []int8{kindSegment, kindAttempt, kindEra} {
			n.c.remove(n.p, kind)
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	return o.explain(o.removePlans(ctx, key))
}
