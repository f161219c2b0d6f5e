package hostile

import (
	"fmt"
	"maps"
	"slices"

	"thalweg/internal/store/state"
)

// Fork gives a store that is as this one is now, and apart from it in one
// partition: that of a node, or with an empty Node that of a run. Nothing else may
// be changed in it, or in this one from now on, and what is changed has no events
// of before. Nobody may be at work on this one meanwhile.
func (s *Store) Fork(key state.NodeKey) *Store {
	c := &Store{workspaces: s.workspaces, runs: s.runs, nodes: s.nodes, blobs: s.blobs}
	if key.Node == "" {
		c.runs = maps.Clone(s.runs)
		c.runs[key.RunKey] = s.runs[key.RunKey].fork()
		return c
	}
	c.nodes = maps.Clone(s.nodes)
	c.nodes[key] = s.nodes[key].fork()
	return c
}

func (p *runPartition) fork() *runPartition {
	return &runPartition{run: p.run, nodes: p.nodes, roles: maps.Clone(p.roles), spans: slices.Clone(p.spans)}
}

func (p *nodePartition) fork() *nodePartition {
	c := &nodePartition{node: p.node, staged: maps.Clone(p.staged), plan: p.plan,
		attempts:     make(map[int][]*attempt, len(p.attempts)),
		publications: slices.Clone(p.publications), purged: p.purged}
	for _, b := range p.batches {
		same := *b
		c.batches = append(c.batches, &same)
	}
	for batch, all := range p.attempts {
		for _, a := range all {
			same := *a
			c.attempts[batch] = append(c.attempts[batch], &same)
		}
	}
	return c
}

// AppendState appends what a partition has (see Fork), in a form that is the same
// for those that answer alike from now on. It leaves out what no answer is
// conditional on; a test names every field, and which are left out.
func (s *Store) AppendState(to []byte, key state.NodeKey) []byte {
	if key.Node == "" {
		return s.runs[key.RunKey].append(to)
	}
	return s.nodes[key].append(to)
}

func (p *runPartition) append(to []byte) []byte {
	to = fmt.Appendf(to, "%s %d %t %t", p.run.Status, p.run.Epoch, p.run.Invalidated != nil, p.run.Dropped != nil)
	if l := p.run.Limit; l != nil {
		to = fmt.Appendf(to, " %d %d %t", l.Elapsed, l.Cost, l.Foreseen)
	}
	if o := p.run.Command; o != nil {
		to = fmt.Appendf(to, " %s %s %s %t", o.Kind, o.Token, o.From, o.Done)
		if l := o.Limit; l != nil { // what the run may take once the order is carried out
			to = fmt.Appendf(to, " %d %d", l.Elapsed, l.Cost)
		}
		for _, r := range o.Nodes {
			to = fmt.Appendf(to, " %s %v %t %s", r.Node, r.Batches, r.Replan, r.Digest)
		}
	}
	return to
}

func (p *nodePartition) append(to []byte) []byte {
	n := p.node
	to = fmt.Appendf(to, "%s %d %d %d %q %q %t %t %s %t", n.Status, n.Epoch, n.Fence, n.Generation,
		n.Gate, n.GateDigest, n.Dropped, n.Failure != nil, n.PlanDigest, p.purged != nil)
	if d := n.Decision; d != nil {
		to = fmt.Appendf(to, " %t %s", d.Approved, d.Digest)
	}
	for i, b := range p.batches {
		to = fmt.Appendf(to, "\n%d %s %d %d %d %s %s %d %d", i, b.Status, b.Attempt, b.Epoch, b.Tries, b.Owner, b.token,
			b.Lease.UnixMilli(), b.NotBefore.UnixMilli())
	}
	for batch := range len(p.attempts) { // they are numbered without gaps
		for _, a := range p.attempts[batch] {
			to = fmt.Appendf(to, "\n%d %s %d %d %s", batch, a.Status, a.Epoch, a.Generation, a.Owner)
			for _, part := range a.out.Parts {
				to = fmt.Appendf(to, " %d %s %s", part.Seq, part.Side, part.Key)
			}
		}
	}
	for _, pub := range p.publications {
		to = fmt.Appendf(to, "\n%d %d %d %s", pub.Batch, pub.Attempt, pub.Seq, pub.Address)
	}
	return to
}
