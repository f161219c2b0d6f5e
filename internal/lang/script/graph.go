package script

import (
	"sort"
	"strings"

	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
)

// sources lists the nodes that n reads, as far as they are known.
func sources(n *Node) []*Node {
	var out []*Node
	if n.Reader != nil {
		out = append(out, n.Reader.Creators...)
	}
	if n.Lookup != nil && n.Lookup.Index != nil {
		out = append(out, n.Lookup.Index.Node)
	}
	return append(out, n.Named()...)
}

// dependencyOrder lists the nodes so that each comes behind those that it
// names as its sources, otherwise in the order of the document. In a cycle
// some node has to come too early: see cycles.
func (l *loader) dependencyOrder() []*nodeDraft {
	out := make([]*nodeDraft, 0, len(l.nodes))
	seen := make(map[*nodeDraft]bool, len(l.nodes))
	type frame struct {
		d    *nodeDraft
		next []*Node
	}
	for _, start := range l.nodes {
		if seen[start] {
			continue
		}
		// Depth first without recursion: a script may be one long chain.
		stack := []frame{{d: start, next: l.namedSources(start)}}
		seen[start] = true
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if len(top.next) == 0 {
				out = append(out, top.d)
				stack = stack[:len(stack)-1]
				continue
			}
			d := l.drafts[top.next[0]]
			top.next = top.next[1:]
			if d != nil && !seen[d] {
				seen[d] = true
				stack = append(stack, frame{d: d, next: l.namedSources(d)})
			}
		}
	}
	return out
}

// namedSources lists the nodes whose tables and indexes a node names.
func (l *loader) namedSources(d *nodeDraft) []*Node {
	var out []*Node
	if v := d.r.get("table"); v != nil && l.script.byTable[v.Text] != nil {
		out = append(out, l.script.byTable[v.Text])
	}
	if v := d.l.get("table"); v != nil && l.script.byTable[v.Text] != nil {
		out = append(out, l.script.byTable[v.Text])
	}
	for _, e := range l.queryTables(d) {
		if n := l.script.byTable[e.Value.Text]; n != nil {
			out = append(out, n)
		}
	}
	if v := d.l.get("index_name"); v != nil && l.script.byIndex[v.Text] != nil {
		out = append(out, l.script.byIndex[v.Text].Node)
	}
	return append(out, l.checkedTables(d)...)
}

// cycles reports nodes that need their own output.
func (l *loader) cycles() {
	const fresh, open, done = 0, 1, 2
	state := map[*Node]int{}
	keys := map[*Node]*document.Value{}
	for _, d := range l.nodes {
		keys[d.node] = d.key
	}
	for _, start := range l.script.Nodes {
		if state[start] != fresh {
			continue
		}
		// Depth first without recursion: a script may be one long chain.
		stack := []step{{node: start, next: sources(start)}}
		state[start] = open
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if len(top.next) == 0 {
				state[top.node] = done
				stack = stack[:len(stack)-1]
				continue
			}
			n := top.next[0]
			top.next = top.next[1:]
			switch state[n] {
			case open:
				l.cycle(stack, n, keys)
			case fresh:
				state[n] = open
				stack = append(stack, step{node: n, next: sources(n)})
			}
		}
	}
}

type step struct {
	node *Node
	next []*Node
}

// cycle reports the cycle that closes at n, written in the direction of the data.
func (l *loader) cycle(stack []step, n *Node, keys map[*Node]*document.Value) {
	first := len(stack) - 1
	for stack[first].node != n {
		first--
	}
	var names []string
	var related []document.Pos
	for i := len(stack) - 1; i >= first; i-- {
		names = append(names, stack[i].node.Name)
		related = append(related, stack[i].node.Pos)
	}
	// The walk went against the data: n needs …, needs the top of the stack, needs n.
	d := l.ErrorAt(keys[n], join("nodes", n.Name), "nodes depend on each other in a cycle: %s",
		strings.Join(append([]string{n.Name}, names...), " -> "))
	d.Hint = "an arrow means: its table is read by"
	if d.Severity != "" && len(related) > 1 {
		d.Related = related[:len(related)-1]
	}
}

// Topological lists all nodes so that each comes behind those that it reads:
// by the length of the longest way to it, then in the order of the script.
func (s *Script) Topological() []*Node {
	all := map[*Node]bool{}
	for _, n := range s.Nodes {
		all[n] = true
	}
	return s.ordered(all)
}

// ordered lists the nodes of a set in topological order.
func (s *Script) ordered(set map[*Node]bool) []*Node {
	depth := map[*Node]int{}
	position := map[*Node]int{}
	for i, n := range s.Nodes {
		position[n] = i
	}
	// Kahn's algorithm; ready nodes are taken in the order of the script.
	missing := map[*Node]int{}
	readers := s.readers()
	var ready []*Node
	for _, n := range s.Nodes {
		if !set[n] {
			continue
		}
		for _, from := range sources(n) {
			if set[from] {
				missing[n]++
			}
		}
		if missing[n] == 0 {
			ready = append(ready, n)
		}
	}
	var out []*Node
	for len(ready) > 0 {
		n := ready[0]
		ready = ready[1:]
		out = append(out, n)
		for _, to := range readers[n] {
			if !set[to] {
				continue
			}
			depth[to] = max(depth[to], depth[n]+1)
			if missing[to]--; missing[to] == 0 {
				ready = append(ready, to)
			}
		}
	}
	sort.SliceStable(out, func(i, j int) bool {
		if depth[out[i]] != depth[out[j]] {
			return depth[out[i]] < depth[out[j]]
		}
		return position[out[i]] < position[out[j]]
	})
	return out
}

// readers maps each node to the nodes that read its table, once for each way
// of reading (a node may read and look up the same table).
func (s *Script) readers() map[*Node][]*Node {
	out := map[*Node][]*Node{}
	for _, n := range s.Nodes {
		for _, from := range sources(n) {
			out[from] = append(out[from], n)
		}
	}
	return out
}

// StartNodes lists the nodes that a run starts with when it is not told:
// those that read no table, except for a check, and whose start_policy is auto.
func (s *Script) StartNodes() []*Node {
	var out []*Node
	for _, n := range s.Nodes {
		if n.Reader == nil && n.Lookup == nil && (n.Query == nil || len(n.Query.Inputs) == 0) &&
			n.StartPolicy == PolicyAuto {
			out = append(out, n)
		}
	}
	return out
}

// Affected lists the nodes that a run beginning at the nodes named by start
// executes, so that each comes behind those that it reads. A manual node is
// part of it only if it is named; nodes behind a manual node that is not
// named are not. Empty names are passed over; without any name the run
// begins at StartNodes. An unknown name is a *fault.Error of kind Script.
func (s *Script) Affected(start []string) ([]*Node, error) {
	first := map[*Node]bool{}
	for _, name := range start {
		name = strings.TrimSpace(name)
		if name == "" {
			continue
		}
		n := s.Node(name)
		if n == nil {
			return nil, s.noNode(name)
		}
		first[n] = true
	}
	if len(first) == 0 {
		for _, n := range s.StartNodes() {
			first[n] = true
		}
	}
	if len(first) == 0 {
		err := fault.New(fault.Script, "no node starts by itself: all nodes that read files are manual")
		err.Place.File = s.Path
		err.Hint = "name the nodes to start with"
		return nil, err
	}
	readers := s.readers()
	manual := manualNodes(first, readers)
	affected := map[*Node]bool{}
	walk(first, func(n *Node, visit func(*Node)) {
		affected[n] = true
		for _, child := range readers[n] {
			if !manual[child] {
				visit(child)
			}
		}
	})
	return s.ordered(affected), nil
}

// manualNodes lists the descendants of the start nodes that wait for a
// person: manual ones, and all behind them, but not behind start nodes.
func manualNodes(first map[*Node]bool, readers map[*Node][]*Node) map[*Node]bool {
	below := map[*Node]bool{}
	walk(first, func(n *Node, visit func(*Node)) {
		for _, child := range readers[n] {
			below[child] = true
			visit(child)
		}
	})
	roots := map[*Node]bool{}
	for n := range below {
		if n.StartPolicy == PolicyManual {
			roots[n] = true
		}
	}
	manual := map[*Node]bool{}
	walk(roots, func(n *Node, visit func(*Node)) {
		manual[n] = true
		if first[n] {
			return
		}
		for _, child := range readers[n] {
			visit(child)
		}
	})
	return manual
}

// walk visits each node reachable from the roots once.
func walk(roots map[*Node]bool, at func(n *Node, visit func(*Node))) {
	seen := map[*Node]bool{}
	var stack []*Node
	push := func(n *Node) {
		if !seen[n] {
			seen[n] = true
			stack = append(stack, n)
		}
	}
	for n := range roots {
		push(n)
	}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		at(n, push)
	}
}
