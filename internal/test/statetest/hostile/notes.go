package hostile

import (
	"context"
	"slices"
	"strings"

	"thalweg/internal/store/state"
)

// workspace finds a workspace's partition, and makes it where there is none.
func (s *Store) workspace(name string) *workspacePartition {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.workspaces[name]
	if p == nil {
		p = &workspacePartition{tokens: map[string]int64{}, notes: map[string][]state.Note{}}
		s.workspaces[name] = p
	}
	return p
}

// find looks for a note.
func (p *workspacePartition) find(topic, name string) (at int, found bool) {
	return slices.BinarySearchFunc(p.notes[topic], name,
		func(n state.Note, name string) int { return strings.Compare(n.Name, name) })
}

func (p *workspacePartition) put(n state.Note) {
	n.Data, n.Time = slices.Clone(n.Data), milli(n.Time)
	at, found := p.find(n.Topic, n.Name)
	if found {
		p.notes[n.Topic][at] = n
		return
	}
	p.notes[n.Topic] = slices.Insert(p.notes[n.Topic], at, n)
}

// PutNote implements state.Store.
func (s *Store) PutNote(ctx context.Context, workspace string, n state.Note) error {
	if err := n.Check(); err != nil {
		return err
	}
	p := s.workspace(workspace)
	p.Lock()
	defer p.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	p.put(n)
	return nil
}

// RemoveNote implements state.Store.
func (s *Store) RemoveNote(ctx context.Context, workspace string, n state.Note) error {
	p := s.workspace(workspace)
	p.Lock()
	defer p.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if at, found := p.find(n.Topic, n.Name); found && p.notes[n.Topic][at].Same(n) {
		p.notes[n.Topic] = slices.Delete(p.notes[n.Topic], at, at+1)
	}
	return nil
}

// Notes implements state.Store.
func (s *Store) Notes(ctx context.Context, workspace, topic, after string, n int) (notes []state.Note, err error) {
	p := s.workspace(workspace)
	p.Lock()
	defer p.Unlock()
	for _, note := range p.notes[topic] {
		if note.Name > after && len(notes) < limit(state.Page{Limit: n}) {
			notes = append(notes, note)
		}
	}
	return notes, ctx.Err()
}

// Sequence implements state.Store.
func (s *Store) Sequence(ctx context.Context, key state.RunKey, page state.Page) (spans []state.Span, next int64,
	err error) {
	err = s.inRun(ctx, key, func(p *runPartition) error {
		rest := p.spans[min(max(page.From, 0), int64(len(p.spans))):]
		spans = slices.Clone(rest[:min(len(rest), limit(page))])
		if len(spans) < len(rest) {
			next = page.From + int64(len(spans))
		}
		return nil
	})
	return spans, next, err
}

// ExtendSequence implements state.Store.
func (s *Store) ExtendSequence(ctx context.Context, key state.RunKey, at int64, spans []state.Span) error {
	if err := state.CheckSpans(at, spans); err != nil {
		return err
	}
	return s.inRun(ctx, key, func(p *runPartition) error {
		switch n := int64(len(p.spans)); {
		case n == at:
			p.spans = append(p.spans, spans...)
		case n < at+int64(len(spans)) || !slices.Equal(p.spans[at:at+int64(len(spans))], spans):
			return state.ErrConflict
		}
		return nil
	})
}

// Purge implements state.Store.
func (s *Store) Purge(ctx context.Context, key state.NodeKey) error {
	return s.inNode(ctx, key, func(p *nodePartition) error {
		switch {
		case !p.node.Dropped:
			return state.ErrConflict
		case p.purged == nil:
			p.node = p.read()
			p.purged = p.tally()
		}
		p.node.Plan, p.node.PlanDigest, p.node.InputDigest, p.node.ReusedFrom = nil, "", "", nil
		p.staged, p.plan, p.batches, p.attempts, p.publications = map[string]*stagedPlan{}, nil, nil,
			map[int][]*attempt{}, nil
		return nil
	})
}
