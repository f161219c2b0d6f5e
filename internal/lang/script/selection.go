package script

import (
	"slices"
	"strings"

	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/similar"
)

// Selection names a part of a script for a run. What the selected nodes read is part of the
// run, too: it is taken over of earlier runs where nothing has changed, and computed else.
type Selection struct {
	Nodes []string `json:"nodes,omitempty"` // these are computed
	Tags  []string `json:"tags,omitempty"`  // nodes with one of these tags are computed
	From  []string `json:"from,omitempty"`  // these are computed, and all behind them is selected
	To    []string `json:"to,omitempty"`    // only these and what they are made of
}

// Empty reports whether nothing is named: a run of all nodes.
func (sel Selection) Empty() bool {
	return len(sel.Nodes)+len(sel.Tags)+len(sel.From)+len(sel.To) == 0
}

// Selected lists the nodes of a run of a selection, so that each comes behind those that it
// reads, and the names of those that are computed whatever earlier runs have. A manual node
// is part of it only if it is selected; else its readers read the table of an earlier run.
// An unknown name or tag is a *fault.Error of kind Script.
func (s *Script) Selected(sel Selection) (nodes []*Node, named []string, err error) {
	targets, again := map[*Node]bool{}, map[*Node]bool{}
	add := func(list []*Node, set ...map[*Node]bool) {
		for _, n := range list {
			for _, one := range set {
				one[n] = true
			}
		}
	}
	byName, err := s.namedNodes(sel.Nodes)
	if err != nil {
		return nil, nil, err
	}
	add(byName, targets, again)
	tagged, err := s.taggedNodes(sel.Tags)
	if err != nil {
		return nil, nil, err
	}
	add(tagged, targets, again)
	between, first, err := s.between(sel.From, sel.To)
	if err != nil {
		return nil, nil, err
	}
	add(between, targets)
	add(first, again)
	all := map[*Node]bool{}
	walk(targets, func(n *Node, visit func(*Node)) {
		all[n] = true
		for _, from := range sources(n) {
			if targets[from] || from.StartPolicy != PolicyManual {
				visit(from)
			}
		}
	})
	nodes = s.ordered(all)
	for _, n := range nodes {
		if again[n] {
			named = append(named, n.Name)
		}
	}
	return nodes, named, nil
}

// between lists the nodes from some to others, and the first of them that are named.
func (s *Script) between(from, to []string) (all, first []*Node, err error) {
	ends, err := s.namedNodes(to)
	if err != nil || len(from) == 0 {
		return ends, nil, err
	}
	if first, err = s.namedNodes(from); err != nil {
		return nil, nil, err
	}
	if all, err = s.Affected(from); err != nil || len(to) == 0 {
		return all, first, err
	}
	above := map[*Node]bool{}
	roots := map[*Node]bool{}
	for _, n := range ends {
		roots[n] = true
	}
	walk(roots, func(n *Node, visit func(*Node)) {
		above[n] = true
		for _, from := range sources(n) {
			visit(from)
		}
	})
	outside := func(n *Node) bool { return !above[n] }
	all, first = slices.DeleteFunc(all, outside), slices.DeleteFunc(first, outside)
	if len(all) == 0 {
		err := fault.New(fault.Script, "no way leads from %s to %s", strings.Join(from, ", "), strings.Join(to, ", "))
		err.Place.File, err.Hint = s.Path, "{{do graph}} draws what reads what"
		return nil, nil, err
	}
	return all, first, nil
}

// namedNodes finds nodes by their names.
func (s *Script) namedNodes(names []string) (out []*Node, err error) {
	for _, name := range names {
		n := s.Node(strings.TrimSpace(name))
		if n == nil {
			return nil, s.noNode(name)
		}
		out = append(out, n)
	}
	return out, nil
}

// noNode says that there is no node of a name.
func (s *Script) noNode(name string) error {
	err := fault.New(fault.Script, "the script has no node %s", document.Quote(name))
	err.Place.File = s.Path
	err.Hint = document.SuggestKey(name, s.byName)
	return err
}

// taggedNodes lists the nodes that have one of some tags.
func (s *Script) taggedNodes(tags []string) (out []*Node, err error) {
	known := s.Tags()
	for _, tag := range tags {
		if tag = strings.TrimSpace(tag); slices.Contains(known, tag) {
			continue
		}
		err := fault.New(fault.Script, "no node of the script has the tag %s", document.Quote(tag))
		err.Place.File = s.Path
		if err.Hint = "its tags are " + strings.Join(known, ", "); len(known) == 0 {
			err.Hint = "no node has tags: `tags: [" + tag + "]` is a key of a node, beside r and w"
		}
		if near := similar.Nearest(tag, known); near != "" {
			err.Hint = "did you mean " + near + "? " + err.Hint
		}
		return nil, err
	}
	for _, n := range s.Nodes {
		if slices.ContainsFunc(n.Tags, func(tag string) bool { return slices.Contains(tags, tag) }) {
			out = append(out, n)
		}
	}
	return out, nil
}

// Tags lists the tags of all nodes.
func (s *Script) Tags() (out []string) {
	for _, n := range s.Nodes {
		out = append(out, n.Tags...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
